"""trained.py CASE SEED: a small network, trained as the case says. `trainyard run` starts it with one rank and with two.

plain; compiled: with two ranks compiled, and workers load the data; divided: by run.batches(); shuffled: one rank draws
its own order; scaled: two optimizers with a GradScaler, one of them fused, and two skipped steps; rest: a stream, four
batches per step and two left over; broken: ends an epoch early; doubled: two ranks multiply the loss by two; short:
ends after one epoch; renamed: a metric has another name in the second epoch; nan: its loss is not a number; raised: rank
1 fails; killed: as divided, but the first attempt is killed in its second epoch."""
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, IterableDataset, TensorDataset

import trainyard

case, seed = sys.argv[1], int(sys.argv[2])
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
divided = case in ("divided", "killed")
torch.set_num_threads(1)
torch.manual_seed(0)
images = torch.randn(144, 1, 8, 8)
labels = (images.mean((1, 2, 3)) > 0).long()
train, valid = TensorDataset(images[:96], labels[:96]), (images[96 + rank::world], labels[96 + rank::world])
if world > 1:
    dist.init_process_group("gloo")


class Stream(IterableDataset):
    """Samples in one order, every second one for each of two ranks."""

    def __iter__(self):
        order = torch.randperm(96, generator=torch.Generator().manual_seed(seed))
        for i in order[rank::world].tolist():
            yield train[i]


torch.manual_seed(seed)
model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 2))
parameters = list(model.parameters())
if case == "compiled" and world > 1:
    model = torch.compile(model, backend="aot_eager")
if world > 1:
    model = nn.parallel.DistributedDataParallel(model)
if case == "rest":
    sampler, loader = None, DataLoader(Stream(), 16 // world)
elif divided or case == "shuffled" and world == 1:
    sampler, loader = None, DataLoader(train, 16, shuffle=True)
else:
    sampler = DistributedSampler(train, world, rank, seed=seed)
    workers = 2 if case == "compiled" and world > 1 else 0
    loader = DataLoader(train, 16 // world, sampler=sampler, num_workers=workers, persistent_workers=workers > 0)
if case == "scaled":
    optimizers = [torch.optim.SGD(parameters[:2], lr=0.1), torch.optim.AdamW(parameters[2:], lr=0.01, fused=True)]
else:
    optimizers = [torch.optim.AdamW(parameters, lr=0.01)]
scheduler = torch.optim.lr_scheduler.StepLR(optimizers[0], 1, 0.5)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, enabled=case == "scaled")
run = trainyard.start(model, optimizers, loader=loader, scheduler=scheduler, data=__file__ if case == "rest" else None,
                      state=[scaler])
for epoch in run.epochs(2):
    if case == "short" and epoch == 1:
        break
    if sampler:
        sampler.set_epoch(epoch)
    model.train()
    for i, (x, y) in enumerate(run.batches(loader) if divided else loader):
        if case == "broken" and epoch == 1 and i == 2:
            break
        if case == "raised" and rank == 1 and epoch == 1:
            raise ValueError("a bad sample")
        with torch.autocast("cpu", torch.bfloat16, enabled=case == "scaled"):
            loss = nn.functional.cross_entropy(model(x), y)
        name = "cost" if case == "renamed" and epoch == 1 else "loss"
        run.add(name, float("nan") if case == "nan" and epoch == 1 else loss.item() * len(y), len(y))
        loss = loss * world if case == "doubled" else loss
        loss = loss / 4 if case == "rest" else loss * float("inf") if case == "scaled" and i == 3 else loss
        scaler.scale(loss).backward()
        if case != "rest" or i % 4 == 3:
            for each in optimizers:
                scaler.step(each)
            scaler.update()
            for each in optimizers:
                each.zero_grad()
        if case == "killed" and epoch == 1 and run.info["attempt"] == 1:
            os.kill(os.getpid(), 9)
    if case == "doubled":
        run.metric("samples_of_the_rank", 8 * (rank + 1), unit="samples", better="higher", combine="sum")
    scheduler.step()
    model.eval()
    with torch.no_grad():
        output = model(valid[0])
        run.validation("loss", nn.functional.cross_entropy(output, valid[1], reduction="sum"), len(valid[1]))
        run.validation("correct", (output.argmax(1) == valid[1]).sum(), len(valid[1]))
run.finish()
