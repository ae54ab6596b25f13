"""Networks that `trainyard export` writes: a function for each. Small, so that each takes seconds."""
import importlib
import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional as F

ROOT = pathlib.Path(__file__).resolve().parents[4]
IMAGES = {"channels": 3, "height": 32, "width": 32, "classes": 10}
TEXTS = {"vocabulary": 40, "classes": 2}
PAIRS = {"vocabulary": 40, "target_vocabulary": 30}


class Fn(nn.Module):
    """Modules, and what is computed with them."""

    def __init__(self, compute, **parts):
        super().__init__()
        self.compute = compute
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x):
        return self.compute(self, x)


def images(batch, side=8):
    return torch.randn(batch, 3, side, side)


def tokens(batch, length, vocabulary):
    return torch.randint(1, vocabulary, (batch, length))


def mlp(batch):
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(inplace=True), nn.Linear(32, 10)), torch.randn(batch, 16)


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)
        self.conv2, self.norm2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)

    def forward(self, x):
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        y += x
        return F.relu(y)


def digits(batch):
    """Images of digits with batch normalisation and dropout."""
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(4), nn.Dropout2d(0.2), nn.Flatten(),
                         nn.Dropout(0.5), nn.Linear(144, 10)), torch.randn(batch, 1, 28, 28)


def residual_cnn():
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), Residual(8), nn.MaxPool2d(2),
                        nn.Dropout2d(0.1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.5), nn.Linear(8, 10))
    return net, images(4), "classification"


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.norm1, self.norm2 = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1))

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).chunk(3, 2)
        q, k, v = (a.view(a.size(0), a.size(1), self.heads, -1).transpose(1, 2) for a in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=0.1)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """Continues a source: logits of the target's tokens. The head is tied to the embedding."""

    def __init__(self, vocabulary=50, context=24, width=32):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, 2) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, source, target):
        x = torch.cat([source, target], 1)
        x = F.dropout(self.tokens(x) + self.places(torch.arange(x.size(1), device=x.device)), 0.1, self.training)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x[:, source.size(1):]))


def gpt_tied(batch):
    return GPT(), (tokens(batch, 12, 50), tokens(batch, 10, 50))


def transformer_encoder():
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
    net = Fn(lambda m, x: m.head(m.encoder(m.embed(x), is_causal=False).mean(1)), embed=nn.Embedding(30, 16),
             encoder=nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), head=nn.Linear(16, 5))
    return net, tokens(4, 12, 30)


def lstm():
    net = Fn(lambda m, x: m.head(m.lstm(m.embed(x))[0][:, -1]), embed=nn.Embedding(30, 16, padding_idx=0),
             lstm=nn.LSTM(16, 20, 2, dropout=0.2, batch_first=True), head=nn.Linear(20, 5))
    return net, tokens(4, 12, 30)


def recurrent():
    """Recurrent layers of all kinds, both ways and with a projection."""
    net = Fn(lambda m, x: m.head(m.lstm(m.tanh(m.relu(m.gru(m.embed(x))[0])[0])[0])[0][:, -1]), embed=nn.Embedding(30, 6),
             gru=nn.GRU(6, 5, bidirectional=True, batch_first=True), relu=nn.RNN(10, 7, nonlinearity="relu", batch_first=True),
             tanh=nn.RNN(7, 8, 2, batch_first=True), lstm=nn.LSTM(8, 9, proj_size=4, batch_first=True), head=nn.Linear(4, 5))
    return net, tokens(4, 12, 30)


def attention():
    net = Fn(lambda m, x: m.head(m.attend(x, x, x, need_weights=False)[0].mean(1)),
             attend=nn.MultiheadAttention(16, 2, dropout=0.1, batch_first=True), head=nn.Linear(16, 5))
    return net, torch.randn(4, 6, 16)


def norm_of_one():
    """Batch normalisation over single values: PyTorch refuses one sample."""
    return nn.Sequential(nn.Linear(16, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4)), torch.randn(4, 16)


def noisy():
    return Fn(lambda m, x: m.a(x + 0.1 * torch.randn_like(x)), a=nn.Linear(16, 10)), torch.randn(4, 16)


def fixed_length():
    """Its head reads all steps, so that other lengths are errors."""
    return nn.Sequential(nn.Embedding(30, 4), nn.Flatten(), nn.Linear(48, 5)), tokens(4, 12, 30)


def own_values():
    """Its first layer is not initialised as PyTorch does it."""
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    nn.init.normal_(net[0].weight, std=0.02)
    return net, torch.randn(4, 64)


class Closure(nn.Module):
    """A function of its own calls its layers, as in minGPT."""

    def __init__(self):
        super().__init__()
        self.mlp = nn.ModuleDict({"first": nn.Linear(16, 32), "second": nn.Linear(32, 10)})
        layers = self.mlp
        self.compute = lambda x: layers.second(torch.tanh(layers.first(x)))

    def forward(self, x):
        return self.compute(x)


def closure(batch):
    return Closure(), torch.randn(batch, 16)


class Switching(nn.Module):
    """In evaluation it drops no path, changes a sign, reads a parameter of its own, and has another constant."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = nn.Linear(16, 16), nn.BatchNorm1d(16), nn.Linear(16, 10)
        self.temperature = nn.Parameter(torch.full((10,), 2.0))

    def forward(self, x):
        path = self.norm(self.first(x))
        if self.training:
            path = path * F.dropout(x.new_ones(x.size(0), 1), 0.5)
        else:
            path = -path
        result = self.second(x + torch.tanh(path)) * torch.tensor([1.0 if self.training else 0.5] * 10)
        return result if self.training else result / self.temperature


def switching(batch):
    return Switching(), torch.randn(batch, 16)


def unused():
    return Fn(lambda m, x: m.a(x), a=nn.Linear(16, 10), b=nn.Linear(3, 3)), torch.randn(4, 16)


def of_trainyard(name, values, shape):
    sys.path.insert(0, str(ROOT / "models" / name))
    return importlib.import_module(name).build(values, shape)


def trainyard_mlp():
    return of_trainyard("mlp", {"hidden": [13, 11]}, IMAGES), images(4, 32)


def trainyard_cnn():
    return of_trainyard("cnn", {"channels": [4, 6], "hidden": [13]}, IMAGES), images(4, 32)


def trainyard_vgg11():
    return of_trainyard("vgg11", {"width": 4, "head": "compact"}, IMAGES), images(4, 32)


def trainyard_nbow():
    return of_trainyard("nbow", {"embedding": 7, "dropout": 0.5}, TEXTS), tokens(4, 9, 40)


def trainyard_conv_autoencoder():
    return of_trainyard("conv_autoencoder", {"channels": [3, 4, 5]}, IMAGES), images(4, 32)


class MaskedGPT(nn.Module):
    """A language model whose mask has infinite values and fixes its length."""

    def __init__(self, rows=50, width=16, length=12):
        super().__init__()
        self.tokens, self.head = nn.Embedding(rows, width), nn.Linear(width, rows)
        self.layer = nn.TransformerEncoderLayer(width, 2, 32, batch_first=True)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(length))

    def forward(self, x):
        length = x.size(1)
        return self.head(self.layer(self.tokens(x), src_mask=self.mask[:length, :length], is_causal=True))


def masked_gpt(batch):
    return MaskedGPT(), tokens(batch, 12, 50)


class Drawing(nn.Module):
    """It draws numbers in dimensions that the batch shares with others: windows of a sample, and steps of all samples."""

    def __init__(self):
        super().__init__()
        self.tokens, self.mix, self.head = nn.Embedding(30, 8), nn.Linear(8, 8), nn.Linear(8, 5)

    def forward(self, x):
        h = F.dropout(self.tokens(x).transpose(0, 1), 0.3, self.training)  # [12, batch, 8]
        h = self.mix(h) + 0.1 * torch.randn(h.shape)
        windows = h.transpose(0, 1).reshape(-1, 4, 8)  # [3 * batch, 4, 8]
        windows = F.dropout(windows, 0.2, self.training) * torch.zeros(windows.size(0), 1, 1).uniform_()
        return self.head(windows.view(x.size(0), 12, 8).mean(1))


def drawing_digits(batch):
    """Noise by pixel, dropout of windows, and stochastic depth, on images of digits."""
    def compute(m, x):
        h = torch.relu(m.conv(x))
        h = h + 0.1 * torch.randn_like(h)
        h = F.dropout(h.reshape(-1, 4, 169), 0.3, m.training).reshape(h.shape[0], 676)
        return m.head(h) + m.branch(h) * torch.rand(h.shape[0], 1).round()

    return Fn(compute, conv=nn.Conv2d(1, 4, 3, stride=2), head=nn.Linear(676, 10), branch=nn.Linear(676, 10)), torch.randn(batch, 1, 28, 28)


def drawing(batch):
    return Drawing(), tokens(batch, 12, 30)


def sample_minor(batch):
    """The dimension of its dropout has the samples of step 0, then those of step 1, …"""
    return Fn(lambda m, x: m.b(F.dropout(torch.cat([m.a(x[:, i]) for i in range(3)]), 0.5, m.training).view(3, -1, 8).sum(0)),
              a=nn.Linear(4, 8), b=nn.Linear(8, 5)), torch.randn(batch, 3, 4)


def mixing(batch):
    """Statistics of the batch by hand."""
    return Fn(lambda m, x: m.b(torch.relu(m.a(x) - m.a(x).mean(0))), a=nn.Linear(16, 8), b=nn.Linear(8, 5)), torch.randn(batch, 16)


class NamedTypes(nn.Module):
    """It names float32, makes constants in forward, keeps one as an attribute, and has buffers that no node reads."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(16, 16), nn.Linear(16, 10)
        self.scale = torch.linspace(0.1, 1.1, 16)
        self.register_buffer("version", torch.tensor([2.0]))
        self.register_buffer("steps", torch.zeros(3, dtype=torch.int64))

    def forward(self, x):
        x = self.first(x).to(torch.float32) * self.scale + torch.tensor(0.1)
        x = x * torch.rsqrt(x.float().pow(2).mean(1, keepdim=True) + 1e-6)
        x = x + torch.arange(16, dtype=torch.float32).div(7).sin() + torch.zeros(16)
        return self.second(torch.tanh(x)).type_as(x)


def named_types(batch):
    return NamedTypes(), torch.randn(batch, 16)


def trainyard_seq2seq(batch):
    net = of_trainyard("seq2seq", {"embedding": 7, "hidden": 8, "layers": 2, "dropout": 0.1}, PAIRS)
    sys.modules["seq2seq"].without_lengths(net)
    return net, (tokens(batch, 9, 40), tokens(batch, 8, 30)), "translation"
