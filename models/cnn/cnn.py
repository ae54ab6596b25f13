"""The CNN in PyTorch."""
from torch import nn


def build(values, shape):
    layers, depth, height, width = [], shape["channels"], shape["height"], shape["width"]
    for outputs in values["channels"]:
        layers += [nn.Conv2d(depth, outputs, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        depth, height, width = outputs, height // 2, width // 2
    layers.append(nn.Flatten())
    inputs = depth * height * width
    for outputs in values["hidden"]:
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
        inputs = outputs
    return nn.Sequential(*layers, nn.Linear(inputs, shape["classes"]))
