"""Two small networks and their data: a CNN on images of MNIST, and a GPT on lines of Shakespeare."""
import functools
import gzip
import os
import pathlib
import random

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.utils.data import Dataset, TensorDataset

PADDING = -100  # label of a position without a token
LENGTH, TOKENS = 48, 70


class Images(Dataset):
    """Images and labels. augment: shift each image by up to two pixels, with numbers of the module `random`."""

    def __init__(self, images, labels, augment):
        self.images, self.labels, self.augment = images, labels, augment

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = self.images[index]
        if self.augment:
            image = torch.roll(image, (random.randint(-2, 2), random.randint(-2, 2)), (1, 2))
        return image, self.labels[index]


def _folder():
    return pathlib.Path(os.environ.get("TRAINYARD_DATA") or pathlib.Path(__file__).resolve().parents[3] / "shared/data")


def has_data():
    return _folder().is_dir()


def _file(name):
    return (_folder() / name).read_bytes()


@functools.cache
def _images():
    images, labels = (torch.frombuffer(bytearray(gzip.decompress(_file(f"mnist/t10k-{name}-ubyte.gz"))[header:]), dtype=torch.uint8)
                      for name, header in (("images-idx3", 16), ("labels-idx1", 8)))
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    return images.view(-1, 1, 28, 28)[order].float() / 255 - 0.13, labels[order].long()


@functools.cache
def _lines():
    text = _file("tiny-shakespeare/input.txt").decode()
    code = {letter: i + 1 for i, letter in enumerate(sorted(set(text)))}
    lines = [line for line in text.split("\n") if len(line) > 3]
    random.Random(0).shuffle(lines)
    tokens = torch.zeros(4096, LENGTH + 1, dtype=torch.long)
    for row, line in zip(tokens, lines):
        codes = [code[letter] for letter in (line + "\n")[:LENGTH + 1]]
        row[:len(codes)] = torch.tensor(codes)
    return tokens[:, :-1].contiguous(), torch.where(tokens[:, 1:] == 0, PADDING, tokens[:, 1:])


def data(model, samples, validation, augment):
    """The data set of training, and the inputs and labels of validation."""
    x, y = _images() if model == "cnn" else _lines()
    first = Images(x[:samples], y[:samples], augment) if model == "cnn" else TensorDataset(x[:samples], y[:samples])
    return first, x[-validation:], y[-validation:]


class _SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group, total = group, x.clone()
        dist.all_reduce(total, group=group)
        return total

    @staticmethod
    def backward(ctx, gradient):
        return _SumOverRanks.apply(gradient, ctx.group), None


class SyncBatchNorm(nn.modules.batchnorm._BatchNorm):
    """Batch normalisation over the samples of all ranks. The class of torch with this name refuses the CPU."""
    group = None

    def _check_input_dim(self, x):
        assert x.dim() == 4

    def forward(self, x):
        if not self.training:
            return super().forward(x)
        SyncBatchNorm.group = SyncBatchNorm.group or dist.new_group()
        own = torch.cat([x.sum((0, 2, 3)), x.square().sum((0, 2, 3)), x.new_tensor([x.numel() / x.shape[1]])])
        total, squares, number = _SumOverRanks.apply(own, SyncBatchNorm.group).split([x.shape[1], x.shape[1], 1])
        mean = total / number
        variance = squares / number - mean.square()
        with torch.no_grad():
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(variance * number / (number - 1), self.momentum)
        scale = self.weight * torch.rsqrt(variance + self.eps)
        return x * scale[:, None, None] + (self.bias - mean * scale)[:, None, None]


class CNN(nn.Module):
    """norm: the class of batch normalisation. 52k parameters with width 8."""

    def __init__(self, width, dropout, norm):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(1, width, 3, padding=1), norm(width)
        self.conv2, self.norm2 = nn.Conv2d(width, 2 * width, 3, padding=1), norm(2 * width)
        self.hidden, self.dropout, self.last = nn.Linear(2 * width * 49, 64), nn.Dropout(dropout), nn.Linear(64, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.norm2(self.conv2(x))), 2)
        return self.last(self.dropout(F.relu(self.hidden(x.flatten(1)))))


class GPT(nn.Module):
    """Two layers, 31k parameters with width 32."""

    def __init__(self, width, dropout):
        super().__init__()
        self.token, self.place, self.dropout = nn.Embedding(TOKENS, width), nn.Embedding(LENGTH, width), nn.Dropout(dropout)
        layer = nn.TransformerEncoderLayer(width, 2, 4 * width, dropout, "gelu", batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, nn.LayerNorm(width), enable_nested_tensor=False)
        self.last = nn.Linear(width, TOKENS)

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.last(self.layers(self.dropout(self.token(x) + self.place.weight[:x.shape[1]]), mask, is_causal=True))
