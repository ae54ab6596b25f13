"""The networks that trained_test.py trains."""
import torch
from torch import nn
from torch.nn import functional as F

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


class Smoothed(nn.Module):
    """A loss with parameters of its own."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, outputs, targets):
        return F.cross_entropy(outputs * self.scale, targets, label_smoothing=0.1, reduction="none")


def smoothed(batch):
    return convolution(1, 4 * 13 * 13, 10), torch.randn(batch, 1, 28, 28), Smoothed()


def mean_of_samples(batch):
    return LastState(), words(batch), nn.CrossEntropyLoss(label_smoothing=0.2)


class TwoHeads(nn.Module):
    """Two outputs in training, and one in evaluation."""

    def __init__(self):
        super().__init__()
        self.body, self.first, self.second = nn.Conv2d(3, 4, 3, stride=4), nn.Linear(256, 10), nn.Linear(256, 10)

    def forward(self, x):
        values = self.body(x).relu().flatten(1)
        return (self.first(values), self.second(values)) if self.training else self.first(values)


def auxiliary_head(batch):
    def loss(outputs, targets):
        if isinstance(outputs, tuple):
            return F.cross_entropy(outputs[0], targets) + 0.4 * F.cross_entropy(outputs[1], targets)
        return F.cross_entropy(outputs, targets)

    return TwoHeads(), torch.randn(batch, 3, 32, 32), loss


class Variational(nn.Module):
    """As in PyTorch's examples, with three outputs, random numbers, and a sum as its loss."""

    def __init__(self):
        super().__init__()
        self.hidden, self.mean, self.deviation, self.back = nn.Linear(784, 16), nn.Linear(16, 4), nn.Linear(16, 4), nn.Linear(4, 784)

    def forward(self, x):
        values = self.hidden(x.flatten(1)).relu()
        mean, deviation = self.mean(values), self.deviation(values)
        drawn = mean + torch.randn_like(mean) * torch.exp(0.5 * deviation)
        return self.back(drawn).sigmoid(), mean, deviation


def variational(batch):
    def loss(outputs, targets):
        image, mean, deviation = outputs
        return (F.binary_cross_entropy(image, targets.flatten(1), reduction="sum")
                - 0.5 * torch.sum(1 + deviation - mean.pow(2) - deviation.exp())) / 784

    return Variational(), torch.rand(batch, 1, 28, 28), "reconstruction", loss


def named_parts(batch):
    def loss(outputs, targets):
        image, mean, deviation = outputs
        error = F.binary_cross_entropy(image, targets.flatten(1), reduction="none").sum(1) / 784
        divergence = -0.5 * torch.sum(1 + deviation - mean.pow(2) - deviation.exp(), 1) / 784
        return {"kl": divergence.mean(), "loss": error + divergence, "error": error}

    return Variational(), torch.rand(batch, 1, 28, 28), "reconstruction", loss


def class_weights(batch):
    return convolution(1, 4 * 2 * 4, 3), torch.randn(batch, 1, 6, 10), nn.CrossEntropyLoss(torch.tensor([0.1, 1.0, 3.0]), label_smoothing=0.1)


class Characters(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.layer, self.head = nn.Embedding(90, 8), nn.GRU(8, 8, batch_first=True), nn.Linear(8, 90)

    def forward(self, x):
        return {"logits": self.head(self.layer(self.tokens(x))[0]), "states": x}


def smoothed_tokens(batch):
    def loss(outputs, targets):
        return F.cross_entropy(outputs["logits"].transpose(1, 2), targets, label_smoothing=0.1, reduction="none")  # [batch, length]

    return Characters(), torch.randint(90, (batch, 12)), loss, "language-model"


def counted_tokens(batch):
    """Its weights are those of ignore_index = 5."""
    def loss(outputs, targets):
        values = F.cross_entropy(outputs["logits"].transpose(1, 2), targets, ignore_index=5, reduction="none")
        return values, (targets != 5).to(values.dtype)

    return Characters(), torch.randint(90, (batch, 12)), loss, "language-model"


def grouped(batch):
    net = convolution(1, 4 * 13 * 13, 10)
    weights, others = [p for p in net.parameters() if p.dim() > 1], [net[0].bias]  # the last bias is not trained
    groups = [{"params": weights, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0, "lr": 0.001}]
    return net, torch.randn(batch, 1, 28, 28), torch.optim.AdamW(groups, lr=0.002, betas=(0.9, 0.95))


class WithoutAutocast(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = convolution(1, 4 * 13 * 13, 10)

    @torch.autocast("cpu", enabled=False)
    def forward(self, x):
        return self.net(x)


def without_autocast(batch):
    return WithoutAutocast(), torch.randn(batch, 1, 28, 28)
