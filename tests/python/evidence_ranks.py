"""evidence_ranks.py: trainings with one fault each, one after the other, in two ranks that torchrun starts.

The name of the metric beside the loss is the fault. healthy: none. late: DistributedDataParallel is made after start(). sum: a hook adds
gradients. half: the loss is divided by the number of ranks. rounded: gradients are reduced as bfloat16. same: both ranks have
the same samples, the same dropout and the same augmentation. uneven: the ranks have different weights in the last step.
unsynced: half of the step is accumulated without reduction. alone: gradients are not averaged. manual: the script averages gradients.
asleep: rank 1 sleeps 50 ms before each backward pass. hidden: the same, and the other rank waits in a collective call."""
import contextlib
import os
import random
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

import trainyard

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = int(os.environ["RANK"])
X = torch.randn(88, 6, generator=torch.Generator().manual_seed(0))
Y = (X.sum(1) > 0).long()


class Augmented(Dataset):
    def __len__(self):
        return len(X)

    def __getitem__(self, i):
        return X[i] * random.choice((0.9, 1.1)), Y[i]


def added(state, bucket):
    return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(lambda done: done.value()[0])


def rounded(state, bucket):  # that of torch refuses gloo
    sent = (bucket.buffer() / 2).bfloat16().float()
    return dist.all_reduce(sent, async_op=True).get_future().then(lambda done: done.value()[0].bfloat16().float())


def train(fault, recorded=True):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.25), nn.Linear(8, 2))
    if fault not in ("alone", "late", "manual"):
        model = DistributedDataParallel(model)
    if fault in ("sum", "rounded"):
        model.register_comm_hook(None, added if fault == "sum" else rounded)
    order = list(range(80)) if fault == "same" else list(range(rank, 80, 2))
    if fault == "uneven":
        order += [86, 87] if rank else range(80, 86)
    loader = DataLoader(Augmented(), 8, sampler=order)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = trainyard.start(model, optimizer, loader=loader) if recorded else None
    model = DistributedDataParallel(model) if fault == "late" else model
    for generator in (torch.manual_seed, random.seed):
        generator(0 if fault == "same" else rank)
    for _ in run.epochs(2) if recorded else range(2):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            parts = list(zip(x.chunk(2), y.chunk(2))) if fault == "unsynced" else [(x, y)]
            for i, (inputs, labels) in enumerate(parts):
                with model.no_sync() if i + 1 < len(parts) else contextlib.nullcontext():
                    loss = nn.functional.cross_entropy(model(inputs), labels) / len(parts)
                    if fault in ("asleep", "hidden") and rank == 1:
                        time.sleep(0.05)
                    if fault == "hidden":
                        dist.all_reduce(torch.ones(1))
                    (loss / 2 if fault == "half" else loss).backward()
            if fault == "manual":
                for parameter in model.parameters():
                    dist.all_reduce(parameter.grad)
                    parameter.grad /= 2
            optimizer.step()
            if recorded:
                run.add("loss", loss.item() * len(x), len(x))
                run.add(fault, 1, 1)
        model.eval()
        with torch.no_grad():
            model(X[:10 + rank])
    if recorded:
        run.finish()
    return [each.detach() for each in model.state_dict().values()]


for mine, other in zip(train("healthy"), train("healthy", recorded=False), strict=True):
    assert torch.equal(mine, other), "the recorder changed the training"
for fault in ("late", "sum", "half", "rounded", "same", "uneven", "unsynced", "alone", "manual", "asleep", "hidden"):
    train(fault)
dist.destroy_process_group()
