"""The networks of exported_speed: as users write them in PyTorch, reduced so that a step takes 10 to 100 ms."""
import math
import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools/trainyard/export_model"))
import two_graphs  # noqa: E402

CLASSES = 10


class Residual(nn.Module):
    """He, Zhang, Ren, Sun, "Deep residual learning for image recognition", 2016: the block of ResNet-18."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        same = x if self.downsample is None else self.downsample(x)
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        y += same
        return self.relu(y)


def resnet18():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Residual(inputs, outputs, stride), Residual(outputs, outputs, 1)]
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, CLASSES))


def convolution(inputs, outputs, kernel, stride=1, groups=1):
    return [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(outputs),
            nn.ReLU6(inplace=True)]


class InvertedResidual(nn.Module):
    """Sandler et al., "MobileNetV2: inverted residuals and linear bottlenecks", 2018."""

    def __init__(self, inputs, outputs, stride, factor):
        super().__init__()
        hidden = inputs * factor
        self.same = stride == 1 and inputs == outputs
        self.layers = nn.Sequential(*(convolution(inputs, hidden, 1) if factor > 1 else []),
                                    *convolution(hidden, hidden, 3, stride, hidden),
                                    nn.Conv2d(hidden, outputs, 1, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return x + self.layers(x) if self.same else self.layers(x)


def mobilenet_v2():
    layers, inputs = convolution(3, 32, 3, 2), 32
    for factor, outputs, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                           (6, 160, 3, 2), (6, 320, 1, 1)):
        for i in range(count):
            layers.append(InvertedResidual(inputs, outputs, stride if i == 0 else 1, factor))
            inputs = outputs
    return nn.Sequential(*layers, *convolution(inputs, 1280, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2),
                         nn.Linear(1280, CLASSES))


class VisionTransformer(nn.Module):
    """Dosovitskiy et al., "An image is worth 16×16 words", 2021."""

    def __init__(self, side=32, patch=4, width=128, layers=4, heads=4):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, (side // patch) ** 2 + 1, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True,
                                           norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(x.size(0), -1, -1), x], 1) + self.positions
        return self.head(self.encoder(x, is_causal=False)[:, 0])


class TextEncoder(nn.Module):
    """Vaswani et al., "Attention is all you need", 2017: the encoder, as a classifier."""

    def __init__(self, vocabulary, width=128, layers=4, heads=4, longest=64):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(longest, width)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, tokens):
        x = self.tokens(tokens) * math.sqrt(128) + self.positions(torch.arange(tokens.size(1), device=tokens.device))
        return self.head(self.encoder(x, is_causal=False).mean(1))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv(x).split(width, dim=2))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width, bias=False), nn.LayerNorm(width, bias=False)
        self.attention = Attention(width, heads)
        self.fc, self.proj = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.proj(functional.gelu(self.fc(self.norm2(x))))


class GPT(nn.Module):
    """Radford et al., 2019, in the size of nanoGPT's character model for a CPU, with tied embeddings. The task is a
    translation whose source is not used."""

    def __init__(self, vocabulary, layers=4, heads=4, width=128, context=64):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width, bias=False)
        self.head = nn.Linear(width, vocabulary, bias=False)
        for name, p in self.named_parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * layers) if name.endswith("proj.weight") else 0.02)
        self.tokens.weight = self.head.weight

    def forward(self, source, target):
        h = self.tokens(target) + self.positions(torch.arange(target.size(1), device=target.device))
        for block in self.blocks:
            h = block(h)
        return self.head(self.norm(h))


class Recurrent(nn.Module):
    """Hochreiter, Schmidhuber, "Long short-term memory", 1997: two layers, over the rows of an image. torch.export fixes
    the number of rows, so that texts of any length are not possible."""

    def __init__(self, width=128):
        super().__init__()
        self.lstm = nn.LSTM(width, width, 2, batch_first=True)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x):
        return self.head(self.lstm(x.squeeze(1))[0][:, -1])


IMAGES = {"image": [3, 32, 32], "classes": CLASSES}
TEXTS = {"length": 64, "vocabulary": 1000, "classes": CLASSES}
SGD = {"optimizer": "sgd", "learning_rate": 0.01, "momentum": 0.9, "weight_decay": 0.0}
ADAM = {"optimizer": "adam", "learning_rate": 0.0003, "momentum": 0.0, "weight_decay": 0.0}

# name: (task, function that builds it, configuration, whether it draws random numbers)
NETWORKS = {
    "resnet18": ("classification", resnet18, {**IMAGES, **SGD, "batch": 16}, False),
    "mobilenet-v2": ("classification", mobilenet_v2, {**IMAGES, **SGD, "batch": 16}, True),
    "vit": ("classification", VisionTransformer, {**IMAGES, **ADAM, "batch": 12}, False),
    "transformer-encoder": ("classification", lambda: TextEncoder(1000), {**TEXTS, **ADAM, "batch": 12}, True),
    "gpt": ("translation", lambda: GPT(65), {"length": 64, "vocabulary": 65, **ADAM, "batch": 12}, False),
    "lstm": ("classification", Recurrent, {"image": [1, 64, 128], "classes": CLASSES, **ADAM, "batch": 32}, False),
}


def build(name):
    torch.manual_seed(0)
    return NETWORKS[name][1]()


def example(name, batch=3):
    """Inputs for the export, with sizes that no layer has."""
    task, _, settings, _ = NETWORKS[name]
    if "image" in settings:
        return (torch.randn(batch, *settings["image"]),)
    lengths = (5, 7) if task == "translation" else (7,)
    return tuple(torch.randint(1, settings["vocabulary"], (batch, length)) for length in lengths)


def export(name, file):
    """The network in training and in evaluation. Batch and lengths are symbolic."""
    inputs, batch = example(name), torch.export.Dim("batch", min=1)
    shapes = tuple({0: batch} if x.dim() == 4 else {0: batch, 1: torch.export.Dim(f"length_{i}", min=1, max=64)}
                   for i, x in enumerate(inputs))
    network, evaluation = build(name), f"{file}.evaluation.pt2"
    torch.export.save(torch.export.export(network, inputs, dynamic_shapes=shapes), file)
    torch.export.save(torch.export.export(network.eval(), inputs, dynamic_shapes=shapes), evaluation)
    two_graphs.add_evaluation(file, evaluation)
    pathlib.Path(evaluation).unlink()
