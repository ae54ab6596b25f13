"""Divides the batches of a DataLoader among the ranks, so that all arms train on the same samples in each step.

The order follows from the seed of the run, the epoch, and the pass within the epoch. An incomplete last batch is left out."""
from __future__ import annotations

from typing import Any, Callable, Iterator

import torch
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, RandomSampler, SequentialSampler

from . import samples


class GlobalBatches:
    """Gives rank r of n the r-th of n equal parts of each batch of `whole`. epoch(): the number of the epoch from 0."""

    def __init__(self, whole: BatchSampler, seed: int, rank: int, world: int, epoch: Callable[[], int]):
        self.whole, self.seed, self.shuffle = whole, seed, isinstance(whole.sampler, RandomSampler)
        self._rank, self._part, self._epoch, self._pass = rank, whole.batch_size // world, epoch, (-1, 0)

    def __len__(self) -> int:
        return len(self.whole.sampler) // self.whole.batch_size

    def __iter__(self) -> Iterator[list[int]]:
        epoch = self._epoch()
        self._pass = epoch, self._pass[1] + 1 if self._pass[0] == epoch else 0
        seed = int(samples.sha(f"{self.seed} {self._pass}".encode())[:15], 16)
        order = torch.randperm(len(self.whole.sampler), generator=torch.Generator().manual_seed(seed)).tolist()
        for begin in range(self._rank * self._part, len(self) * self.whole.batch_size, self.whole.batch_size):
            part = range(begin, begin + self._part)
            yield [order[i] for i in part] if self.shuffle else list(part)


def divide(loader: Any, seed: int, rank: int, world: int, epoch: Callable[[], int]) -> str:
    """Let the loader give only the part of this rank. Returns a message if it leaves out other samples than before, else "".
    TypeError if it is not a DataLoader, ValueError if its batches cannot be divided."""
    if not isinstance(loader, DataLoader):
        raise TypeError(f"run.batches() needs a DataLoader of torch, and got a {type(loader).__name__}")
    whole, data, problem = getattr(loader.batch_sampler, "whole", loader.batch_sampler), loader.dataset, ""
    if isinstance(data, IterableDataset) or not hasattr(data, "__len__"):
        problem = "its data set has no index or no length, so each rank must read its own samples"
    elif type(whole) is not BatchSampler:
        problem = "it has a batch sampler of its own, or none; use DataLoader(data, batch_size)"
    elif type(whole.sampler) not in (RandomSampler, SequentialSampler) or len(whole.sampler) != len(data):
        problem = f"it has a {type(whole.sampler).__name__} of its own; use shuffle=True or shuffle=False without a sampler"
    elif getattr(whole.sampler, "replacement", False):
        problem = "it draws samples with replacement"
    elif whole.batch_size % world:
        problem = f"a batch of {whole.batch_size} samples has no equal parts for {world} ranks; use a multiple of {world}"
    elif whole.batch_size > len(data):
        problem = f"{len(data)} samples are less than one batch"
    if problem:
        raise ValueError(f"run.batches() cannot divide the batches of this DataLoader: {problem}")
    vars(loader)["batch_sampler"] = GlobalBatches(whole, seed, rank, world, epoch)  # torch forbids an assignment
    loader._iterator = None  # of persistent workers
    rest = len(data) % whole.batch_size
    return "" if whole.drop_last or not rest else (
        f"run.batches() leaves out the incomplete last batch: {rest} of {len(data)} samples in each epoch; drop_last=True states it")
