"""replicas.py: kinds of replicas, one after the other, in two ranks that torchrun starts. The last one fails on rank 1.

The name of the metric is the kind. alone, closure: gradients are not averaged. unlike: the ranks make different numbers of
steps. divided: run.batches() divides what the ranks would shuffle with different seeds."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import trainyard

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = int(os.environ["RANK"])
x = torch.randn(40, 6, generator=torch.Generator().manual_seed(0))
data = TensorDataset(x, (x.sum(1) > 0).long())


def wrapped(kind, model):
    if kind == "ddp":
        return DistributedDataParallel(model, find_unused_parameters=True, bucket_cap_mb=3)
    if kind == "fsdp1":
        return FullyShardedDataParallel(model, device_id=torch.device("cpu"))
    if kind == "fsdp2":
        fully_shard(model, mesh=dist.init_device_mesh("cpu", (2,)))
    return DistributedDataParallel(model) if kind in ("divided", "raised") else model


def one_step():
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    return loss


for kind in ("alone", "closure", "ddp", "late", "divided", "fsdp1", "fsdp2", "unlike", "raised"):
    torch.manual_seed(rank if kind in ("late", "divided") else 0)  # DistributedDataParallel copies the parameters of rank 0
    model = wrapped(kind, nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2)))
    sampler = DistributedSampler(data, 2, rank, shuffle=False)
    loader = DataLoader(data, 8, shuffle=True) if kind == "divided" else DataLoader(data, 4, sampler=sampler)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = trainyard.start(model, optimizer, loader=loader)
    if kind == "late":
        model = DistributedDataParallel(model)
    for epoch in run.epochs(2):
        for i, (x, y) in enumerate(run.batches(loader) if kind == "divided" else loader):
            if kind == "raised" and rank == 1 and epoch == 1:
                raise ValueError("a bad sample")
            if kind == "unlike" and rank == 1 and i == 3:
                break
            loss = optimizer.step(one_step) if kind == "closure" else one_step()
            if kind != "closure":
                optimizer.step()
            run.add(kind, loss.item() * len(y), len(y))
    run.finish()
