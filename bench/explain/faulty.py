#!/usr/bin/env python3
"""A training script with switches for faults of data-parallel training, recorded by trainyard.

    bench/explain/faulty.py --model cnn                                              one process
    torchrun --nproc-per-node 2 bench/explain/faulty.py --model cnn --fault sum      two, whose gradients are summed

Several faults are joined by "+". confusion.py trains a list of jobs in the same processes (--jobs FILE)."""
import argparse
import contextlib
import ctypes
import dataclasses
import datetime
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, DistributedSampler, RandomSampler, default_collate

import networks
import trainyard

SPEED = ("healthy_speed slow_loader slow_loader_rank1 straggler_busy straggler_sleep straggler_in_backward straggler_late "
         "straggler_sync_bn threads other_process slow_link").split()
LINK = 20e6        # bytes per second of the slow link
JOB_SECONDS = 120  # more than any job takes
PR_SET_PDEATHSIG = 1
# Uses the processor until its parent ends, or for JOB_SECONDS.
OTHER_PROCESS = (f"import ctypes, signal\nctypes.CDLL(None).prctl({PR_SET_PDEATHSIG}, int(signal.SIGKILL))\nsignal.alarm({JOB_SECONDS})\n"
                 "while True: pass")


@dataclasses.dataclass
class Job:
    model: str = "cnn"
    fault: str = "healthy"
    seed: int = 1
    delay: float = 0.03  # seconds that a fault of speed adds to a step
    processes: int = 1

    def __post_init__(self):
        self.faults = set(self.fault.split("+")) if self.processes > 1 else set()
        # The kind of training, also of the one process that it is compared with.
        self.kind = "speed" if self.fault in SPEED else self.fault if self.fault in ("adam", "manual") else ""
        # Model and arguments in the yard. Each seed is a model, so that `explain` judges each pair of runs.
        self.name = "-".join(part for part in (self.model, self.kind, str(self.seed)) if part)
        self.arguments = [self.fault.replace("_", "-").replace("+", "-")] if self.processes > 1 else []
        sizes = (1152, 64, 128, 0.01, 3) if self.kind == "speed" else (1003, 501, 64, 0.05, 2)
        sizes = (403, 101, 32, 0.1, 2) if self.model == "gpt" else sizes
        self.samples, self.validation, self.batch, self.rate, self.epochs = sizes  # batch over all ranks


def burn(seconds):
    """Use the processor in this thread."""
    begin = time.thread_time()
    while time.thread_time() - begin < seconds:
        pass


def loader_of(job, data, rank):
    """The loader and its sampler. One process shuffles by its own generator, as scripts do."""
    if job.processes == 1:
        sampler = RandomSampler(data, generator=torch.Generator().manual_seed(job.seed * 77 + 5))
    else:
        rank = 0 if "same_data" in job.faults else rank
        parts = job.processes * (2 if "half" in job.faults else 1)
        sampler = DistributedSampler(data, parts, rank, seed=job.seed)
        if "pad" not in job.faults:  # no repeated samples
            sampler.total_size, sampler.num_samples = len(data), len(range(rank, len(data), parts))

    def slow(samples):
        time.sleep(job.delay)
        return default_collate(samples)
    is_slow = "slow_loader" in job.faults or "slow_loader_rank1" in job.faults and rank == 1
    per_rank = job.batch if job.faults & {"batch", "batch_lr"} else job.batch // job.processes
    return DataLoader(data, per_rank, sampler=sampler, collate_fn=slow if is_slow else None), sampler


def network_of(job):
    torch.manual_seed(job.seed + (555 if "init" in job.faults else 0))
    dropout = 0.0 if job.kind == "speed" else 0.25
    if job.model == "gpt":
        return networks.GPT(32, dropout)
    norm = nn.Identity if job.kind in ("adam", "manual") else nn.BatchNorm2d
    if job.processes > 1 and (job.kind == "" and "local_bn" not in job.faults or "straggler_sync_bn" in job.faults):
        norm = networks.SyncBatchNorm
    return networks.CNN(16 if job.kind == "speed" else 8, dropout, norm)


def wrapped(job, network, rank):
    """The network with DistributedDataParallel and its communication hook."""
    faults, world = job.faults, job.processes
    if world == 1 or "manual" in faults:
        return network
    model = nn.parallel.DistributedDataParallel(network)

    def hook(state, bucket):
        given = bucket.buffer()
        if "bf16" in faults:  # rounded to bfloat16, summed, and rounded again
            given = (given / world).bfloat16().float()

        def end(done):
            total = done.value()[0]
            if "slow_link" in faults:
                time.sleep(total.numel() * 4 / LINK)
                return total / world
            return total.bfloat16().float() if "bf16" in faults else total
        return dist.all_reduce(given, async_op=True).get_future().then(end)

    def slow_gradient(module, args, output):
        if output.requires_grad:
            output.register_hook(lambda gradient: burn(job.delay))
    if faults & {"sum", "sum_accum", "bf16", "slow_link"}:
        model.register_comm_hook(None, hook)
    if rank == 1 and faults & {"straggler_in_backward", "straggler_late"}:
        (network.conv1 if "straggler_late" in faults else network.hidden).register_forward_hook(slow_gradient)
    return model


def train(job):
    """Train and record one run. All ranks call it."""
    faults, world = job.faults, job.processes
    rank = dist.get_rank() if world > 1 else 0
    torch.set_num_threads(4 if "threads" in faults else 1)
    data, valid_x, valid_y = networks.data(job.model, job.samples, job.validation, augment=job.kind != "speed")
    network, (loader, sampler) = network_of(job), loader_of(job, data, rank)
    rate = job.rate * (2 if faults & {"batch_lr", "lr_only"} else 1)
    optimizer = (torch.optim.Adam(network.parameters(), 2e-3) if job.kind == "adam" else
                 torch.optim.SGD(network.parameters(), rate, momentum=0.9))
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, len(loader) * job.epochs)
    model = wrapped(job, network, rank)
    torch.manual_seed(job.seed)
    sys.argv = [f"{job.name}.py", *job.arguments]
    run = trainyard.start(model, optimizer, loader=loader, scheduler=scheduler)
    stream = job.seed * 31 + 9 * (world > 1)  # one process draws other numbers than two
    torch.manual_seed(stream + (0 if "drop_seed" in faults else rank))
    random.seed(stream + (0 if "same_aug" in faults else rank))
    with contextlib.ExitStack() as stack:
        if "other_process" in faults and rank == 0:
            other = stack.enter_context(subprocess.Popen([sys.executable, "-c", OTHER_PROCESS]))
            stack.callback(other.kill)
        if world > 1:
            dist.barrier()
        for epoch in run.epochs(job.epochs):
            if world > 1 and "no_set_epoch" not in faults:
                sampler.set_epoch(epoch)
            model.train()
            for number, (x, y) in enumerate(loader):
                loss, weight = gradients(job, run, model, optimizer, x, y, rank)
                if "fewer_steps" not in faults or number % 2 == 0:
                    optimizer.step()
                for _ in range(2 if "sched_n" in faults else 1):
                    scheduler.step()
                if job.model == "cnn":
                    run.add("loss", loss, weight)
            validate(job, run, model, valid_x, valid_y, rank)
    run.finish()


def gradients(job, run, model, optimizer, x, y, rank):
    """The forward and backward passes of a step. Returns the sum of the losses and their weight on this rank."""
    faults, world = job.faults, job.processes
    weight = divisor = (y != networks.PADDING).sum().item()
    if world > 1 and "uneven" not in faults and job.kind != "speed":  # else the mean of this rank
        total = torch.tensor(weight)
        dist.all_reduce(total)
        divisor = total.item() / world
    whole, parts = 0.0, 2 if faults & {"accum_undivided", "sum_accum", "healthy_accum"} else 1
    optimizer.zero_grad()
    for i, (inputs, labels) in enumerate(zip(x.chunk(parts), y.chunk(parts))):
        with model.no_sync() if i + 1 < parts and "manual" not in faults or "unsynced" in faults else contextlib.nullcontext():
            loss = F.cross_entropy(model(inputs).flatten(0, -2), labels.flatten(), reduction="sum")
            part = (labels != networks.PADDING).sum().item()
            scaled = loss / (part if faults & {"accum_undivided", "sum_accum"} else divisor)
            if "div_twice" in faults:
                scaled = scaled / world
            if "multiplied" in faults:
                scaled = scaled * world
            if rank == 1 and faults & {"straggler_busy", "straggler_sleep", "straggler_sync_bn"}:
                (time.sleep if "straggler_sleep" in faults else burn)(job.delay)
            scaled.backward()
        whole += loss.item()
        if job.model == "gpt":  # before the step, as some scripts do
            run.add("loss", loss.item(), part)
    if "manual" in faults:
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= world
    return whole, weight


def validate(job, run, model, x, y, rank):
    rows = list(range(len(y)))
    if "val_twice" in job.faults:
        rows += rows[:-len(rows) % job.processes]
    rows = rows[rank::job.processes]
    model.eval()
    with torch.no_grad():
        output, labels = model(x[rows]).flatten(0, -2), y[rows].flatten()
        loss = F.cross_entropy(output, labels, reduction="sum").item()
    correct, weight = (output.argmax(1) == labels).sum().item(), (labels != networks.PADDING).sum().item()
    if "mean_of_means" in job.faults:
        loss, correct, weight = loss / weight, correct / weight, 1
    if "metric_rank0" not in job.faults or rank == 0:
        run.validation("loss", loss, weight)
        run.validation("correct", correct, weight)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=("cnn", "gpt"), default="cnn")
    parser.add_argument("--fault", default="healthy")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--delay", type=float, default=0.03, help="seconds that a fault of speed adds to a step")
    parser.add_argument("--jobs", type=pathlib.Path, help="a list of jobs, in JSON")
    args = parser.parse_args()
    world = int(os.environ.get("WORLD_SIZE", 1))
    jobs = [Job(args.model, args.fault, args.seed, args.delay, world)]
    if args.jobs:  # the end of the parent ends this process, and so does a job that hangs
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
        jobs = [Job(**job) for job in json.loads(args.jobs.read_text())]
    if world > 1:
        dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=JOB_SECONDS))
    for number, job in enumerate(jobs):
        signal.alarm(JOB_SECONDS)
        begin = time.monotonic()
        train(job)
        if world == 1 or dist.get_rank() == 0:
            print(f"{number + 1} of {len(jobs)}: {job.name} {job.fault}, {time.monotonic() - begin:.1f} s", flush=True)
    if world > 1:
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
