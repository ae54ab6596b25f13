"""recording.py: a small network, its data, and what the tests of the recorder share."""
import contextlib
import hashlib
import json
import os
import pathlib
import struct
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "python"))

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

import trainyard
from trainyard import patches

torch.set_num_threads(1)
X = torch.randn(40, 6, generator=torch.Generator().manual_seed(0))
Y = (X.sum(1) > 0).long()


@contextlib.contextmanager
def scratch_folder():
    """Runs its block in a temporary folder."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def network():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))


def mixed(number):
    """SplitMix64 in plain Python."""
    mask = 2**64 - 1
    z = ((number + 1) & mask) * 0x9E3779B97F4A7C15 & mask
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
    z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
    return z ^ z >> 31


def order_of(steps):
    """The documented hash of the data order."""
    return "steps:" + hashlib.sha256(b"".join(struct.pack("<Q", sum(map(mixed, step)) % 2**64) for step in steps)).hexdigest()


def last_start(records):
    return [record for record in records if record["type"] == "start"][-1]


class Stream(IterableDataset):
    def __iter__(self):
        yield from zip(X, Y)


class Numbered(Dataset):
    """Gives the index of each sample."""

    def __len__(self):
        return 40

    def __getitem__(self, i):
        return i


class Recorded(unittest.TestCase):
    def setUp(self):
        stack = contextlib.ExitStack()
        stack.enter_context(scratch_folder())
        self.addCleanup(stack.close)
        self.addCleanup(setattr, patches, "active", None)

    def records(self):
        (file,) = pathlib.Path("trainyard-runs/recorded").glob("*/rank-0.records.jsonl")
        return [json.loads(line) for line in file.read_text().splitlines()]

    def train(self, model=None, optimizer=None, loader=None, epochs=1, step=None, stated=True, **options):
        """Train and return the last `start` record, or all records. step(model, x, y) trains on one batch."""
        model = network() if model is None else model
        optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(X, Y), 8) if loader is None else loader
        run = trainyard.start(model, optimizer, loader=loader, **options)
        for _ in run.epochs(epochs):
            for x, y in loader:
                (step or self.step)(model, optimizer, x, y)
                run.add("loss", len(y), len(y))
        run.finish()
        records = self.records()
        return last_start(records) if stated else records

    def step(self, model, optimizer, x, y):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    def lacks(self, start, *names):
        for name in names:
            self.assertNotIn(name, start)
            self.assertIn(name, start["observed"]["missing"])
