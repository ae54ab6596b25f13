"""Functions for `trainyard export --seeds`, and those that it refuses."""
import torch
from torch import nn


class Own(nn.Module):
    """Values that no rule of a module describes, tied parameters, and buffers."""

    def __init__(self, persistent=True):
        super().__init__()
        self.first, self.second = nn.Linear(16, 16), nn.Linear(16, 16)
        nn.init.trunc_normal_(self.first.weight, std=0.02)
        self.second.weight = self.first.weight
        self.norm, self.head = nn.BatchNorm1d(16), nn.Linear(16, 10)
        self.register_buffer("shift", torch.randn(16), persistent=persistent)

    def forward(self, x):
        return self.head(self.norm(self.second(torch.relu(self.first(x)))) + self.shift)


def made(module):
    return module, torch.randn(4, 16), "classification"


def own():
    return made(Own())


def temporary_buffer():
    return made(Own(persistent=False))


def own_seed():
    torch.manual_seed(5)
    return made(Own())


GENERATOR = torch.Generator()


def own_generator():
    module = Own()
    nn.init.normal_(module.head.weight, generator=GENERATOR)
    return made(module)


def constant():
    class Shifted(nn.Module):
        def __init__(self):
            super().__init__()
            self.head, self.shift = nn.Linear(16, 10), torch.randn(10)

        def forward(self, x):
            return self.head(x) + self.shift

    return made(Shifted())


def other_sizes():
    width = int(torch.randint(3, 99, ()))
    return made(nn.Sequential(nn.Linear(16, width), nn.Linear(width, 10)))


def partly_the_same():
    module = nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 10))
    nn.init.eye_(module[0].weight)
    nn.init.zeros_(module[0].bias)
    return made(module)
