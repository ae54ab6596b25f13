"""trainyard's models in PyTorch, from the same random streams: what benchmarks and tests hold the runner against."""
import hashlib
import math

import torch
from torch import nn


def stream(purpose, seed, detail):
    """The generator that trainyard draws from: it starts at the first 8 digits of SHA-256("purpose/seed/detail")."""
    start = int(hashlib.sha256(f"{purpose}/{seed}/{detail}".encode()).hexdigest()[:8], 16)
    return torch.Generator().manual_seed(start)


def epoch_order(samples, seed, epoch):
    return torch.randperm(samples, generator=stream("order", seed, epoch))


def build(model, shape, classes, hidden, channels=()):
    """The chain of layers of `model` for images of `shape` (channels, height, width)."""
    depth, height, width = shape
    layers = []
    if model == "cnn":
        for outputs in channels:
            layers += [nn.Conv2d(depth, outputs, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
            depth, height, width = outputs, height // 2, width // 2
    layers.append(nn.Flatten())
    inputs = depth * height * width
    for outputs in hidden:
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
        inputs = outputs
    layers.append(nn.Linear(inputs, classes))
    return nn.Sequential(*layers)


@torch.no_grad()
def initialise(network, seed):
    """PyTorch's own distribution for these layers, ±1/√fan_in, drawn from the stream of each layer's path."""
    for path, layer in network.named_children():
        if not hasattr(layer, "weight"):
            continue
        bound = 1 / math.sqrt(layer.weight[0].numel())
        generator = stream("weights", seed, path)
        for parameter in (layer.weight, layer.bias):
            parameter.copy_(torch.empty(parameter.shape, dtype=torch.float64).uniform_(-bound, bound, generator=generator))
    return network


def optimizer(parameters, kind, learning_rate, momentum, weight_decay, fused=None):
    if kind == "adam":
        return torch.optim.Adam(parameters, lr=learning_rate, weight_decay=weight_decay, fused=fused)
    return torch.optim.SGD(parameters, lr=learning_rate, momentum=momentum, weight_decay=weight_decay, fused=fused)
