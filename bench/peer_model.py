"""trainyard's random streams, models and optimizers in PyTorch, for benchmarks and tests."""
import hashlib
import importlib
import math
import pathlib
import sys

import torch
import torch.distributed
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer


def stream(purpose, seed, detail):
    """A random stream of trainyard. Its seed is the first 8 digits of SHA-256("purpose/seed/detail")."""
    start = int(hashlib.sha256(f"{purpose}/{seed}/{detail}".encode()).hexdigest()[:8], 16)
    return torch.Generator().manual_seed(start)


def epoch_order(samples, seed, epoch):
    return torch.randperm(samples, generator=stream("order", seed, epoch))


def module(model):
    """models/MODEL/MODEL.py, from the folder of this file (an arm has copies there) or from the repository."""
    name, folder = model.replace("-", "_"), pathlib.Path(__file__).resolve().parent
    models = folder / "models" if (folder / "models").is_dir() else folder.parent / "models"
    sys.path.insert(0, str(models / name))
    return importlib.import_module(name)


def build(model, shape, classes, hidden, channels=()):
    """The MLP or the CNN for images of `shape` (channels, height, width)."""
    depth, height, width = shape
    return module(model).build({"hidden": hidden, "channels": channels},
                               {"channels": depth, "height": height, "width": width, "classes": classes})


@torch.no_grad()
def initialise(network, seed):
    """Set the initial weights of trainyard. They are drawn from the stream of each layer: uniform in ±1/√fan_in, in
    ±1/√hidden for an LSTM, normal for embeddings with a zero row for padding. Normalisation keeps PyTorch's ones and zeros."""
    for path, layer in network.named_children():
        generator = stream("weights", seed, path)
        if isinstance(layer, (nn.Embedding, nn.EmbeddingBag)):
            layer.weight.copy_(torch.empty(layer.weight.shape, dtype=torch.float64).normal_(generator=generator))
            layer.weight[0] = 0
        elif isinstance(layer, (nn.Linear, nn.Conv2d, nn.ConvTranspose2d, nn.LSTM)):
            fan_in = layer.hidden_size if isinstance(layer, nn.LSTM) else layer.weight[0].numel()
            for parameter in layer.parameters():
                values = torch.empty(parameter.shape, dtype=torch.float64)
                parameter.copy_(values.uniform_(-1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in), generator=generator))
    return network


def optimizer_class(kind, learning_rate, momentum, weight_decay, fused=None):
    """The optimizer of PyTorch and its arguments."""
    more = {"momentum": momentum} if kind == "sgd" else {}
    return (torch.optim.SGD if kind == "sgd" else torch.optim.Adam,
            {"lr": learning_rate, "weight_decay": weight_decay, "fused": fused, **more})


def optimizer(parameters, **settings):
    rule, arguments = optimizer_class(**settings)
    return rule(parameters, **arguments)


def sharded(network, sharding, settings, device="cpu"):
    """(forward, optimizer) with PyTorch's own sharding among all ranks: ZeRO 1, or FSDP2 with each layer as a unit."""
    if sharding == "optimizer":
        rule, arguments = optimizer_class(**settings)
        zero = ZeroRedundancyOptimizer(network.parameters(), rule, **arguments)
        return nn.parallel.DistributedDataParallel(network), zero
    network.to(memory_format=torch.contiguous_format)  # FSDP2 refuses another
    mesh = torch.distributed.device_mesh.init_device_mesh(device, (torch.distributed.get_world_size(),))
    for layer in [*network.children(), network]:
        if layer is network or list(layer.parameters()):
            fully_shard(layer, mesh=mesh, reshard_after_forward=sharding == "parameters")
    return network, optimizer(network.parameters(), **settings)


def whole(parameter):
    """All values of a parameter, which may be in slices."""
    return parameter.full_tensor() if hasattr(parameter, "full_tensor") else parameter
