#!/usr/bin/env python3
"""Processor time that the recorder of python/trainyard adds to a step of PyTorch.

    build/venv/bin/python bench/recorder_cost.py              a tiny network, so that the step is short
    build/venv/bin/python bench/recorder_cost.py --contents   samples without index, named by their content
    build/venv/bin/python bench/recorder_cost.py --steps first   steps of the first two epochs, after the third step
    build/venv/bin/python bench/recorder_cost.py --steps timed   the up to 21 steps of an epoch whose phases are timed

Two equal networks train in turn, in blocks of 100 steps whose order is random. One of them is recorded. The first three
steps and the ends of epochs are left out, and by default also the steps of the other two kinds. It prints the median of
the differences and its 95 % interval (bootstrap)."""
import argparse
import os
import pathlib
import random
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

import torch
from torch import nn

import trainyard
from trainyard import patches

STEPS = 100  # of a block


def network(batches):
    model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*batches), 8)
    return model, torch.optim.SGD(model.parameters(), lr=0.0), loader


def block(model, optimizer, loader, run):
    """Microseconds of processor time per step."""
    began = time.process_time()
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        value = loss.item()
        if run is not None:
            run.add("loss", value * len(y), len(y))
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--contents", action="store_true")
    parser.add_argument("--steps", choices=("usual", "first", "timed"), default="usual")
    parser.add_argument("--blocks", type=int, default=150)
    args = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        found = differences(args.blocks, args.contents, args.steps)
    added = [difference for difference, _ in found]
    medians = sorted(statistics.median(random.choices(added, k=len(added))) for _ in range(1000))
    print(f"a step takes {statistics.median(plain for _, plain in found):.0f} µs of processor time; the recorder adds "
          f"{statistics.median(added):.1f} µs [{medians[25]:.1f}, {medians[974]:.1f}] ({len(added)} pairs of {STEPS} steps)")


if __name__ == "__main__":
    main()
