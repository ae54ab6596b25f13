"""The MLP in PyTorch."""
from torch import nn


def build(values, shape):
    layers, inputs = [nn.Flatten()], shape["channels"] * shape["height"] * shape["width"]
    for outputs in values["hidden"]:
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
        inputs = outputs
    return nn.Sequential(*layers, nn.Linear(inputs, shape["classes"]))
