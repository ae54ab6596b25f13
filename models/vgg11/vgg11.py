"""VGG11 with batch normalisation in PyTorch: torchvision's configuration A, without bias in the convolutions."""
from torch import nn

CONFIGURATION_A = [64, "pool", 128, "pool", 256, 256, "pool", 512, 512, "pool", 512, 512, "pool"]


def build(values, shape):
    layers, depth, height, width = [], shape["channels"], shape["height"], shape["width"]
    for step in CONFIGURATION_A:
        if step == "pool":
            layers.append(nn.MaxPool2d(2, 2))
            height, width = height // 2, width // 2
        else:
            outputs = step * values["width"] // 64
            layers += [nn.Conv2d(depth, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
            depth = outputs
    layers.append(nn.Flatten())
    inputs = depth * height * width
    if values["head"] == "paper":
        for _ in range(2):
            layers += [nn.Linear(inputs, values["head_width"]), nn.ReLU(), nn.Dropout(values["dropout"])]
            inputs = values["head_width"]
    return nn.Sequential(*layers, nn.Linear(inputs, shape["classes"]))
