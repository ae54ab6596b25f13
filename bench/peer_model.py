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
    """PyTorch's own distributions, drawn from the stream of each layer's path: ±1/√fan_in, of an LSTM ±1/√hidden,
    normal for embeddings, whose row of padding is zero. Normalisation begins with ones and zeros as it does anyway."""
    for path, layer in network.named_children():
        generator = stream("weights", seed, path)
        if isinstance(layer, (nn.Embedding, nn.EmbeddingBag)):
            layer.weight.copy_(torch.empty(layer.weight.shape, dtype=torch.float64).normal_(generator=generator))
            layer.weight[0] = 0
        elif isinstance(layer, (nn.Linear, nn.Conv2d, nn.ConvTranspose2d, nn.LSTM)):
            of = layer.hidden_size if isinstance(layer, nn.LSTM) else layer.weight[0].numel()
            for parameter in layer.parameters():
                values = torch.empty(parameter.shape, dtype=torch.float64)
                parameter.copy_(values.uniform_(-1 / math.sqrt(of), 1 / math.sqrt(of), generator=generator))
    return network


def optimizer(parameters, kind, learning_rate, momentum, weight_decay, fused=None):
    if kind == "adam":
        return torch.optim.Adam(parameters, lr=learning_rate, weight_decay=weight_decay, fused=fused)
    return torch.optim.SGD(parameters, lr=learning_rate, momentum=momentum, weight_decay=weight_decay, fused=fused)
