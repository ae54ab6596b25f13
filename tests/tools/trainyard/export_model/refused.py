"""Networks that `trainyard export` refuses: a function for each."""
import pathlib
import random

import torch
from networks import Fn, images, tokens
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


def vectors():
    return torch.randn(4, 16)


class Deciding(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(16, 10)

    def forward(self, x):
        h = self.a(x)
        if h.sum() > 0:
            return h
        return -h


def control_flow():
    return nn.Sequential(nn.Linear(16, 16), Deciding()), vectors()


def packed():
    def compute(m, x):
        lengths = x.ne(0).sum(1).cpu()
        y, _ = m.lstm(pack_padded_sequence(m.embed(x), lengths, batch_first=True, enforce_sorted=False))
        return m.head(pad_packed_sequence(y, batch_first=True)[0][:, 0])

    return Fn(compute, embed=nn.Embedding(30, 8), lstm=nn.LSTM(8, 8, batch_first=True), head=nn.Linear(8, 5)), tokens(4, 9, 30)


@torch.library.custom_op("authors::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


twice.register_fake(torch.empty_like)
twice.register_autograd(lambda context, gradient: gradient * 2)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(16, 16), nn.Linear(16, 10)

    def forward(self, x):
        return self.b(torch.tanh(self.a(x)))


def hook():
    net = Net()
    net.a.weight.register_hook(lambda gradient: gradient.clamp(-1e9, 1e9))
    return net, vectors()


def hook_after_accumulation():
    net = Net()
    net.b.bias.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(0.1))
    return net, vectors()


class ReadsView(Net):
    """Its weight is trained through a view that the constructor made."""

    def __init__(self):
        super().__init__()
        self.turned = self.a.weight.t()

    def forward(self, x):
        return self.b(torch.tanh(x @ self.turned))


def view_of_parameter():
    return ReadsView(), vectors()


class Derived(Net):
    def __init__(self):
        super().__init__()
        self.doubled = 2 * self.a.weight

    def forward(self, x):
        return self.b(torch.tanh(x @ self.doubled.t()))


def made_from_parameter():
    return Derived(), vectors()


class Counting(Net):
    """The first step is that of another network than the second."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += self.training
        return super().forward(x) / max(1, self.calls)


def counter():
    return Counting(), vectors()


class Skipping(Net):
    def forward(self, x):
        return super().forward(x) if self.training and random.random() < 0.9 else super().forward(x + 1)


def numbers_of_python():
    return Skipping(), vectors()


the_only_net = Net()


def same_net():
    return the_only_net, vectors()


class Merging(Net):
    """eval() adds a part to a weight, as LoRA does."""

    def __init__(self):
        super().__init__()
        self.part, self.merged = nn.Parameter(torch.ones(16, 16)), False

    def train(self, mode=True):
        super().train(mode)
        if mode == self.merged:
            self.a.weight.data += -self.part.data if mode else self.part.data
            self.merged = not mode
        return self

    def forward(self, x):
        return super().forward(x) if self.merged else super().forward(x) + x @ self.part[:, :10]


def merging():
    return Merging(), vectors()


class Averaging(Net):
    """Evaluation changes a buffer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(10))

    def forward(self, x):
        result = super().forward(x)
        if not self.training:
            self.mean.add_(result.detach().mean(0))
        return result


def buffer_in_evaluation():
    return Averaging(), vectors()


class LastOnly(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.head = nn.Embedding(30, 8), nn.Linear(8, 30)

    def forward(self, x):
        values = self.tokens(x)
        return self.head(values if self.training else values[:, -1:])


def shorter_in_evaluation():
    return LastOnly(), tokens(4, 9, 30)


def custom_operator():
    return Fn(lambda m, x: twice(m.a(x)), a=nn.Linear(16, 10)), vectors()


class Sign(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x.sign()

    @staticmethod
    def backward(context, gradient):
        return gradient


def lost_backward():
    return Fn(lambda m, x: m.b(Sign.apply(m.a(x))), a=nn.Linear(16, 16), b=nn.Linear(16, 10)), vectors()


def unknown_operator():
    return Fn(lambda m, x: m.a(x).digamma(), a=nn.Linear(16, 10)), vectors()


def region():
    def compute(m, x):
        with torch.no_grad():
            h = m.teacher(x)
        return m.a(x) + h

    return Fn(compute, teacher=nn.Linear(16, 10), a=nn.Linear(16, 10)), vectors()


def condition():
    return Fn(lambda m, x: torch.cond(x.sum() > 0, lambda t: m.a(t).relu(), lambda t: m.a(t).tanh(), (x,)),
              a=nn.Linear(16, 10)), vectors()


def vmapped():
    return Fn(lambda m, x: torch.vmap(lambda w: x @ w)(m.w).mean(0), w=nn.Parameter(torch.randn(3, 16, 10))), vectors()


def fixed_batch():
    return Fn(lambda m, x: m.a(x).view(4, 10) * 1, a=nn.Linear(16, 10)), vectors()


def many_samples():
    return Fn(lambda m, x: m.a(x) * (2 if x.size(0) > 5 else 1), a=nn.Linear(16, 10)), vectors()


def numpy_inside():
    return Fn(lambda m, x: m.a(x) * torch.from_numpy(x.detach().numpy().sum(1, keepdims=True)), a=nn.Linear(16, 10)), vectors()


def two_outputs():
    return Fn(lambda m, x: (m.a(x), x), a=nn.Linear(16, 10)), vectors()


def no_task():
    return Fn(lambda m, x: m.a(x)[:, None], a=nn.Linear(16, 10)), vectors()


def wrong_task():
    return nn.Linear(16, 10), vectors(), "reconstruction"


def unknown_task():
    return nn.Linear(16, 10), vectors(), "sorting"


def folder_in_names():
    net = nn.Sequential()
    net.add_module(str(pathlib.Path(__file__).resolve().parent).replace(".", "_") + "/", nn.Linear(16, 10))
    return net, vectors()


def wrong_inputs():
    return nn.Linear(16, 10), torch.randn(4, 15)


def not_tensors():
    return nn.Linear(16, 10), [[1.0, 2.0]]


def no_pair():
    return nn.Linear(16, 10)


def needs_more(batch, width):
    return nn.Linear(width, 10), torch.randn(batch, width)


def half():
    return nn.Linear(16, 10).half(), vectors().half()


def raises():
    return nn.Linear(-1, 10), images(int("four"))


def shorter_logits():
    return nn.Sequential(nn.Embedding(9, 4), nn.Flatten(1), nn.Unflatten(1, (6, 8))), torch.zeros(4, 12, dtype=torch.int64), "language-model"


def weighted_mean(batch):
    weights = torch.tensor([1.0, 2.0, 5.0])
    return nn.Linear(8, 3), torch.randn(batch, 8), lambda outputs, targets: nn.functional.cross_entropy(outputs, targets, weights)


def four_parts(batch):
    return nn.Linear(8, 3), torch.randn(batch, 8), lambda outputs, targets: dict.fromkeys(("loss", "a", "b", "c", "d"), outputs.sum(1))


def weighted_part(batch):
    return nn.Linear(8, 3), torch.randn(batch, 8), lambda outputs, targets: {"loss": outputs.sum(1), "a": (outputs.sum(1), outputs.sum(1))}


def loss_of_two(batch):
    return nn.Linear(8, 3), torch.randn(batch, 8), lambda outputs, targets: (outputs.sum(1), targets, outputs)


def failing_loss(batch):
    return nn.Linear(8, 3), torch.randn(batch, 8), lambda outputs, targets: outputs.no_such_name


def other_optimizer(batch):
    net = nn.Linear(8, 3)
    return net, torch.randn(batch, 8), torch.optim.RMSprop(net.parameters())


def optimizer_of_another(batch):
    return nn.Linear(8, 3), torch.randn(batch, 8), torch.optim.SGD(nn.Linear(8, 3).parameters())


def nesterov(batch):
    net = nn.Linear(8, 3)
    return net, torch.randn(batch, 8), torch.optim.SGD(net.parameters(), momentum=0.9, nesterov=True)
