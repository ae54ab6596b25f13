"""exported_networks.py FOLDER: export the networks of the parity table to FOLDER/NAME.float64.pt2 and FOLDER/NAME.float32.pt2.

They are small, so that a step takes milliseconds. `NETWORKS` has the builder and an example of each. They mask padding
(token 0), so that the result for a sample does not depend on the other samples, except by batch normalisation."""
import pathlib
import sys

import torch
import torch.nn.functional as functional
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools/trainyard/export_model"))
import recurrent  # noqa: E402
import two_graphs  # noqa: E402

CHANNELS, HEIGHT, WIDTH, CLASSES = 2, 9, 8, 10
VOCABULARY, TARGET_VOCABULARY, TEXT_CLASSES, LONGEST = 23, 19, 2, 16


def attend(heads, q, k, v, mask=None, causal=False, dropout=0.0):
    """Attention of [batch, positions, features]; `mask` [batch, positions of keys] is true for keys that are seen."""
    q, k, v = (x.unflatten(2, (heads, -1)).transpose(1, 2) for x in (q, k, v))
    mask = None if mask is None else mask[:, None, None, :]
    y = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, dropout_p=dropout)
    return y.transpose(1, 2).flatten(2)


class BasicBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        y += x if self.downsample is None else self.downsample(x)
        return self.relu(y)


def resnet(dropout):
    return nn.Sequential(nn.Conv2d(CHANNELS, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU(inplace=True),
                         BasicBlock(4, 4, 1), BasicBlock(4, 6, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Dropout(dropout), nn.Linear(6, CLASSES))


class InvertedResidual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        hidden = 2 * inputs
        self.skips = stride == 1 and inputs == outputs
        self.conv = nn.Sequential(
            nn.Conv2d(inputs, hidden, 1, bias=False), nn.BatchNorm2d(hidden), nn.ReLU6(inplace=True),
            nn.Conv2d(hidden, hidden, 3, stride, 1, groups=hidden, bias=False), nn.BatchNorm2d(hidden),
            nn.ReLU6(inplace=True), nn.Conv2d(hidden, outputs, 1, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return x + self.conv(x) if self.skips else self.conv(x)


class MobileNet(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(CHANNELS, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU6(inplace=True),
            InvertedResidual(4, 4, 1), InvertedResidual(4, 6, 2), InvertedResidual(6, 6, 1))
        self.classifier = nn.Sequential(nn.Dropout(dropout), nn.Linear(6, CLASSES))

    def forward(self, x):
        return self.classifier(self.features(x).mean([2, 3]))


class Block(nn.Module):
    """Attention to its own positions, then to others if there are any, then a perceptron."""

    def __init__(self, width, heads, dropout, reads_others=False):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm1, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.of_others = nn.Linear(width, 2 * width) if reads_others else None
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width), nn.Dropout(dropout))

    def forward(self, x, others=None, seen=None):
        q, k, v = self.qkv(self.norm1(x)).chunk(3, 2)
        p = self.dropout if self.training else 0.0
        x = x + self.out(attend(self.heads, q, k, v, causal=others is not None, dropout=p))
        if others is not None:
            x = x + attend(self.heads, x, *self.of_others(others).chunk(2, 2), mask=seen, dropout=p)
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    def __init__(self, dropout, width=8):
        super().__init__()
        self.patches = nn.Conv2d(CHANNELS, width, 3, 3)
        self.class_token = nn.Parameter(0.02 * torch.randn(1, 1, width))
        self.places = nn.Parameter(0.02 * torch.randn(1, 1 + (HEIGHT // 3) * (WIDTH // 3), width))
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.Sequential(Block(width, 2, dropout), Block(width, 2, dropout))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, CLASSES)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_token.expand(x.size(0), -1, -1), x], 1) + self.places
        return self.head(self.norm(self.blocks(self.dropout(x)))[:, 0])


class Transformer(nn.Module):
    def __init__(self, dropout, width=8):
        super().__init__()
        self.embed, self.places = nn.Embedding(VOCABULARY, width, padding_idx=0), nn.Embedding(LONGEST, width)
        layer = nn.TransformerEncoderLayer(width, 2, 2 * width, dropout=dropout, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, TEXT_CLASSES)

    def forward(self, tokens):
        padding = tokens.eq(0)
        x = self.embed(tokens) + self.places(torch.arange(tokens.size(1), device=tokens.device))
        x = self.encoder(x, src_key_padding_mask=padding)
        words = padding.logical_not().unsqueeze(2).to(x.dtype)
        return self.head((x * words).sum(1) / words.sum(1))


class GPT(nn.Module):
    """A decoder that sees a source. Its head is tied to the embedding of the target."""

    def __init__(self, dropout, width=8):
        super().__init__()
        self.source, self.tokens = nn.Embedding(VOCABULARY, width, padding_idx=0), nn.Embedding(TARGET_VOCABULARY, width)
        self.places, self.dropout = nn.Embedding(LONGEST, width), nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(width, 2, dropout, reads_others=True) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, TARGET_VOCABULARY, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, source, target):
        seen = source.ne(0)
        others = self.source(source) + self.places(torch.arange(source.size(1), device=source.device))
        x = self.dropout(self.tokens(target) + self.places(torch.arange(target.size(1), device=target.device)))
        for block in self.blocks:
            x = block(x, others, seen)
        return self.head(self.norm(x))


class LSTM(nn.Module):
    def __init__(self, dropout, width=6, hidden=7):
        super().__init__()
        self.embed, self.dropout = nn.Embedding(VOCABULARY, width, padding_idx=0), nn.Dropout(dropout)
        self.lower, self.upper = nn.LSTM(width, hidden, 2, batch_first=True), nn.LSTM(hidden, hidden, batch_first=True)
        self.head = nn.Linear(hidden, TEXT_CLASSES)

    def forward(self, tokens):
        x, _ = self.lower(self.dropout(self.embed(tokens)))
        x, _ = self.upper(self.dropout(x))
        last = tokens.ne(0).sum(1) - 1
        return self.head(x.gather(1, last[:, None, None].expand(-1, 1, x.size(2))).squeeze(1))


class Switching(nn.Module):
    """In evaluation it drops no path, changes a sign, reads its layers in another order, and has another constant."""

    def __init__(self, dropout, width=12):
        super().__init__()
        self.dropout = dropout
        self.first, self.norm = nn.Linear(CHANNELS * HEIGHT * WIDTH, width), nn.LayerNorm(width)
        self.left, self.right = nn.Linear(width, width), nn.Linear(width, width)
        self.second, self.head = nn.Linear(width, width), nn.Linear(width, CLASSES)

    def drop_path(self, x):
        return x * functional.dropout(torch.ones_like(x[:, :1]), self.dropout) if self.training else x

    def forward(self, x):
        x = torch.tanh(self.first(x.flatten(1)))
        left, right = (self.left(x), self.right(x)) if self.training else (self.right(x), -self.left(x))[::-1]
        x = x + self.drop_path(torch.tanh(self.norm(left * right)))
        x = x * torch.as_tensor([1.0 if self.training else 0.5] * 12, dtype=x.dtype)
        return self.head(x + self.drop_path(torch.tanh(self.second(x))))


def images(batch):
    return (torch.rand(batch, CHANNELS, HEIGHT, WIDTH),)


def texts(batch):
    return (torch.randint(1, VOCABULARY, (batch, 7)),)


def pairs(batch):
    return torch.randint(1, VOCABULARY, (batch, 7)), torch.randint(1, TARGET_VOCABULARY, (batch, 6))


NETWORKS = {"exported-resnet": (resnet, images), "exported-mobilenet": (MobileNet, images), "exported-vit": (ViT, images),
            "exported-transformer": (Transformer, texts), "exported-switching": (Switching, images), "exported-gpt": (GPT, pairs), "exported-lstm": (LSTM, texts)}


def build(name, dropout):
    """The network `name` in training, in float64. Its values do not depend on `dropout`."""
    torch.manual_seed(1)
    return NETWORKS[name][0](dropout).double().train()


def in_dtype(inputs, dtype):
    return tuple(x.to(dtype) if x.is_floating_point() else x for x in inputs)


def write(file, network, inputs):
    """Export `network` with a symbolic batch, and with symbolic lengths of its tokens. Its graph in evaluation is beside it."""
    batch, names = torch.export.Dim("batch", min=1), ("length", "steps")
    shapes = tuple({0: batch, 1: torch.export.Dim(name, min=1, max=LONGEST)} if x.dtype == torch.int64 else {0: batch}
                   for x, name in zip(inputs, names))
    evaluation = file.with_suffix(".evaluation.pt2")
    for training, name in ((True, file), (False, evaluation)):
        with recurrent.as_nodes():
            program = recurrent.put_back(torch.export.export(network.train(training), inputs, dynamic_shapes=shapes))
        torch.export.save(program, name)
    two_graphs.add_evaluation(file, evaluation)
    evaluation.unlink()
    network.train()


def main():
    folder = pathlib.Path(sys.argv[1])
    torch.set_num_threads(1)
    for name, (_, example) in NETWORKS.items():
        for dtype in (torch.float64, torch.float32):
            network, inputs = build(name, 0.3).to(dtype), in_dtype(example(4), dtype)
            write(folder / f"{name}.{str(dtype).removeprefix('torch.')}.pt2", network, inputs)


if __name__ == "__main__":
    main()
