#!/usr/bin/env python3
"""Processor time that the recorder of python/trainyard adds to a step of PyTorch.

    build/venv/bin/python bench/recorder_cost.py              a tiny network, so that the step is short
    build/venv/bin/python bench/recorder_cost.py --contents   samples without index, named by their content
    build/venv/bin/python bench/recorder_cost.py --steps first   steps of the first two epochs, after the third step
    build/venv/bin/python bench/recorder_cost.py --steps timed   the up to 21 steps of an epoch whose phases are timed
    build/venv/bin/python bench/recorder_cost.py --steps all --data DIR   all steps of three epochs of a CNN on the 10,000
                                                               test images of DIR/mnist; it trains four times

Two equal networks train in turn, in blocks of 100 steps whose order is random. One of them is recorded. The first three
steps and the ends of epochs are left out, and by default also the steps of the other two kinds. It prints the median of
the differences and its 95 % interval (bootstrap). With `--steps all` single steps alternate, and it prints means."""
import argparse
import gzip
import os
import pathlib
import random
import statistics
import sys
import tempfile
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / "python"), str(pathlib.Path(__file__).resolve().parent / "explain")]

import numpy as np
import torch
from torch import nn

import trainyard
from networks import CNN
from trainyard import patches

STEPS = 100  # of a block


def network(batches):
    model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*batches), 8)
    return model, torch.optim.SGD(model.parameters(), lr=0.0), loader


def train_step(model, optimizer, x, y, run):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    value = loss.item()
    if run is not None:
        run.add("loss", value * len(y), len(y))


def block(model, optimizer, loader, run):
    """Microseconds of processor time per step."""
    began = time.process_time()
    for x, y in loader:
        train_step(model, optimizer, x, y, run)
    return (time.process_time() - began) / STEPS * 1e6


def differences(blocks, contents, kind):
    """(added, plain) microseconds per step of each pair of blocks."""
    data = torch.randn(8 * STEPS, 16), torch.randint(0, 4, (8 * STEPS,))
    plain, recorded = network(data), network(data)
    if contents:
        recorded = *recorded[:2], [(x, y) for x, y in zip(data[0].split(8), data[1].split(8))]
        plain = *plain[:2], recorded[2]
    run = trainyard.start(*recorded[:2], loader=None if contents else recorded[2], data=__file__)
    steps, found = patches.active, []
    block(*recorded, run)  # the first three steps
    if kind != "first":
        steps.chain.end()
        steps.chain = None
    if kind == "timed":
        trainyard.steps.LAST = trainyard.phases.LAST = STEPS
    else:
        steps.phases.problem = "left out"
    for i in range(blocks + 2):
        order, times = [True, False], {}
        random.shuffle(order)
        for each in order:
            patches.active = steps if each else None
            steps.begin_epoch()
            steps.inputs = [""] * 3
            times[each] = block(*(recorded if each else plain), run if each else None)
        if i > 1:
            found.append((times[True] - times[False], times[False]))
    patches.active = steps
    run.finish()
    return found


def images(folder):
    """(float32 [10000, 1, 28, 28], int64 [10000]) of MNIST."""
    def numbers(name, header):
        return np.frombuffer(gzip.open(folder / "mnist" / f"{name}.gz").read(), np.uint8, offset=header)
    pixels = torch.from_numpy(numbers("t10k-images-idx3-ubyte", 16).reshape(-1, 1, 28, 28).copy())
    return pixels.float() / 255, torch.from_numpy(numbers("t10k-labels-idx1-ubyte", 8).copy()).long()


def whole_epochs(data, seed):
    """(recorded, plain) seconds of processor time of each step of three epochs, in which two equal networks take turns."""
    def made():
        torch.manual_seed(seed)
        model = CNN(8, 0.2, nn.BatchNorm2d)
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*data), 64, shuffle=True, drop_last=True)
        return model, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9), loader

    def seconds(model, optimizer, batches, run):
        began = time.process_time()
        train_step(model, optimizer, *next(batches), run)
        return time.process_time() - began

    plain, recorded, found = made(), made(), []
    warm = iter(plain[2])
    for _ in range(20):
        seconds(*plain[:2], warm, None)
    run = trainyard.start(*recorded[:2], loader=recorded[2], data=__file__)
    steps = patches.active
    for _ in run.epochs(3):
        batches = {True: iter(recorded[2]), False: iter(plain[2])}
        for _ in range(len(plain[2])):
            times = {}
            for each in random.sample([True, False], 2):
                patches.active = steps if each else None
                times[each] = seconds(*(recorded if each else plain)[:2], batches[each], run if each else None)
            found.append((times[True], times[False]))
        patches.active = steps
    run.finish()
    return found


def print_whole_epochs(folder):
    data, shares = images(folder), []
    for seed in range(4):
        os.chdir(tempfile.mkdtemp(dir=os.getcwd()))  # each run has its folder
        found = np.array(whole_epochs(data, seed)).reshape(3, -1, 2)
        shares.append((found[..., 0] - found[..., 1]).mean(1) / found[..., 1].mean())
    print(f"a step takes {1000 * found[..., 1].mean():.2f} ms; the recorder adds "
          + ", ".join(f"{100 * share:.1f} %" for share in np.mean(shares, 0)) + " in epochs 1 to 3")
    means = 100 * np.mean(shares, 1)
    print(f"in all: {means.mean():.2f} % ± {3.18 * means.std(ddof=1) / 2:.2f} (4 runs, 95 % t interval)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--contents", action="store_true")
    parser.add_argument("--steps", choices=("usual", "first", "timed", "all"), default="usual")
    parser.add_argument("--data", type=pathlib.Path, help="folder with mnist, for --steps all")
    parser.add_argument("--blocks", type=int, default=150)
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.steps == "all" and args.data is None:
        parser.error("--steps all needs --data DIR")
    data = args.data and args.data.resolve()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        if args.steps == "all":
            return print_whole_epochs(data)
        found = differences(args.blocks, args.contents, args.steps)
    added = [difference for difference, _ in found]
    medians = sorted(statistics.median(random.choices(added, k=len(added))) for _ in range(1000))
    print(f"a step takes {statistics.median(plain for _, plain in found):.0f} µs of processor time; the recorder adds "
          f"{statistics.median(added):.1f} µs [{medians[25]:.1f}, {medians[974]:.1f}] ({len(added)} pairs of {STEPS} steps)")


if __name__ == "__main__":
    main()
