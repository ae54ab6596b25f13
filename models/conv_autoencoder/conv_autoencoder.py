"""The convolutional autoencoder in PyTorch, for images of 28×28 and 32×32."""
from torch import nn


def build(values, shape):
    sides = {28: [28, 14, 7, 4], 32: [32, 16, 8, 4]}[shape["height"]]
    channels = [shape["channels"], *values["channels"]]
    layers = []
    for i in range(3):
        layers += [nn.Conv2d(channels[i], channels[i + 1], 3, stride=2, padding=1), nn.ReLU()]
    for i in (2, 1, 0):
        layers.append(nn.ConvTranspose2d(channels[i + 1], channels[i], 3, stride=2, padding=1,
                                         output_padding=sides[i] - (2 * sides[i + 1] - 1)))
        layers.append(nn.ReLU() if i else nn.Sigmoid())
    return nn.Sequential(*layers)
