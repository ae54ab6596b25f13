"""The networks that trained_test.py trains."""
import torch
from torch import nn

WORDS, TARGET_WORDS = 600, 700  # more than the data has


def words(batch, length=20, below=WORDS):
    return torch.randint(1, below, (batch, length))


class LastState(nn.Module):
    """Reads padding, because the last state of the LSTM comes after it."""

    def __init__(self):
        super().__init__()
        self.tokens, self.lstm, self.head = nn.Embedding(WORDS, 8), nn.LSTM(8, 8, batch_first=True), nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.lstm(self.tokens(x))[1][0][-1])


def last_state(batch):
    return LastState(), words(batch)


class FixedTexts(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.hidden, self.head = nn.Embedding(WORDS, 4), nn.Linear(4 * 24, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.hidden(self.tokens(x).flatten(1)).relu())


def fixed_texts(batch):
    return FixedTexts(), words(batch, 24)


class ShortTexts(nn.Module):
    """Has positions for ten tokens."""

    def __init__(self):
        super().__init__()
        self.tokens, self.places, self.head = nn.Embedding(WORDS, 8), nn.Embedding(10, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.head((self.tokens(x) + self.places(torch.arange(x.size(1), device=x.device))).tanh().mean(1))


def short_texts(batch):
    return ShortTexts(), words(batch, 7)


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.types, self.head = nn.Embedding(WORDS, 8), nn.Embedding(2, 8), nn.Linear(8, 2)

    def forward(self, x, mask, types=None):
        values = self.tokens(x).tanh() + (0 if types is None else self.types(types))
        seen = mask.unsqueeze(2).to(values.dtype)
        return self.head((values * seen).sum(1) / seen.sum(1))


def masked_texts(batch):
    return Masked(), (words(batch), torch.ones(batch, 20, dtype=torch.bool))


class TypesFirst(nn.Module):
    """Its names say which input is the mask."""

    def __init__(self):
        super().__init__()
        self.net = Masked()

    def forward(self, input_ids, token_type_ids, attention_mask):
        return self.net(input_ids, attention_mask, token_type_ids)


def named_types_and_mask(batch):
    return TypesFirst(), (words(batch), torch.zeros(batch, 20, dtype=torch.long), torch.ones(batch, 20))


class Translator(nn.Module):
    """Reads the padding of the source. It has more words than the data."""

    def __init__(self):
        super().__init__()
        self.source, self.target = nn.Embedding(WORDS, 8), nn.Embedding(TARGET_WORDS, 8)
        self.encoder, self.decoder = nn.GRU(8, 8, batch_first=True), nn.GRU(8, 8, batch_first=True)
        self.head = nn.Linear(8, TARGET_WORDS)

    def forward(self, source, target):
        _, state = self.encoder(self.source(source))
        return self.head(self.decoder(self.target(target), state)[0])


def large_vocabularies(batch):
    return Translator(), (words(batch, 9), words(batch, 7, TARGET_WORDS)), "translation"


def convolution(channels, features, classes):
    return nn.Sequential(nn.Conv2d(channels, 4, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(features, classes))


def larger_images(batch):
    return convolution(3, 4 * 19 * 19, 10), torch.randn(batch, 3, 40, 40)


def grey_images(batch):
    return convolution(1, 4 * 7 * 7, 10), torch.randn(batch, 1, 16, 16)


def arrays_of_any_shape(batch):
    return convolution(1, 4 * 2 * 4, 3), torch.randn(batch, 1, 6, 10)
