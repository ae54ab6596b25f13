"""Observes a DataLoader: which samples each batch has, how long the script waits for it, and calls of `set_epoch`.

The loader stays the same object. It gets a subclass of its class, so `isinstance` and its attributes work as before."""
from __future__ import annotations

import array
import collections
import sys
import time
from typing import Any, Callable, Iterator

import numpy as np
import torch
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from . import samples

# iterator, its batch, the indices of the batch or None, seconds of the wait; returns what the script gets
OnBatch = Callable[[Any, Any, "np.ndarray | None", float], Any]
clock = time.perf_counter
set_class = object.__dict__["__class__"].__set__  # loaders of accelerate have a property of this name


def indices_of(entry: Any) -> array.array | np.ndarray | None:
    """What a batch sampler, or without batches a sampler, yields: int64 [samples], or None if these are not indices."""
    entry = [entry] if isinstance(entry, (int, np.integer)) else entry
    if isinstance(entry, (list, tuple)) and entry and isinstance(entry[0], (int, np.integer)):
        return array.array("q", entry)  # made faster than an array of NumPy
    if isinstance(entry, torch.Tensor) and entry.dim() and not entry.is_floating_point():
        return entry.detach().cpu().numpy().astype(np.int64)
    return None


def place_of_caller() -> str:
    """"train.py:12" of the innermost frame outside of packages."""
    frame = sys._getframe(1)
    while frame is not None and ("site-packages" in frame.f_code.co_filename or frame.f_globals.get("__package__") == __package__):
        frame = frame.f_back
    return f"{frame.f_code.co_filename.rsplit('/', 1)[-1]}:{frame.f_lineno}" if frame is not None else ""


class _Iterator(Iterator[Any]):
    """Gives each batch of an observed loader with the indices that belong to it."""

    def __init__(self, batches: Iterator[Any], indices: collections.deque, on_batch: OnBatch):
        self._batches, self._indices, self._on_batch = batches, indices, on_batch

    def __len__(self) -> int:
        return len(self._batches)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batches, name)

    def __next__(self) -> Any:
        begin = clock()
        batch = next(self._batches)
        return self._on_batch(self, batch, self._indices.popleft() if self._indices else None, clock() - begin)


class Loader:
    """What was observed of a DataLoader.

    problem: why the indices of its batches are unknown, empty if they are known. seen: of random numbers, or None."""

    def __init__(self, loader: DataLoader, on_batch: OnBatch, seen: dict | None = None):
        self.loader, self.problem, self.epochs_set, self.sampler = loader, "", [], None
        self.workers = loader.num_workers
        self.samples = len(loader.dataset) if hasattr(loader.dataset, "__len__") else None
        self.place = getattr(loader, "_trainyard_place", "")
        if loader.num_workers > 1 and not getattr(loader, "in_order", True):
            self.problem = "with in_order=False the order of the batches is not that of the sampler; remove it"
        self._observe_sampler(loader)
        self._observe(loader, on_batch, seen if not self.workers else None)  # the generators of workers cannot be seen

    def _observe(self, loader: DataLoader, on_batch: OnBatch, seen: dict | None) -> None:
        index_sampler, loader_class = loader._index_sampler, type(loader)
        sampler_class = type(index_sampler)
        drawn: list[collections.deque] = [collections.deque()]  # of the newest iterator: what its batches will have

        def draw(self: Any) -> Iterator[Any]:
            indices = drawn[0]

            def entries() -> Iterator[Any]:
                for number, entry in enumerate(sampler_class.__iter__(self)):
                    indices.append(indices_of(entry))
                    if number == 1 and seen is not None and "fetch" not in seen:
                        seen["fetch"] = [samples.random_states()]  # on_batch appends those after the fetch
                    yield entry
            return entries() if self is index_sampler else sampler_class.__iter__(self)

        def iterate(self: Any) -> Iterator[Any]:
            drawn[0] = collections.deque()
            batches = loader_class.__iter__(self)
            return _Iterator(batches, drawn[0], on_batch) if self is loader else batches  # else a copy

        self._classes = [(index_sampler, sampler_class), (loader, loader_class)]
        set_class(index_sampler, type(sampler_class.__name__, (sampler_class,), {"__iter__": draw}))
        set_class(loader, type(loader_class.__name__, (loader_class,), {"__iter__": iterate}))

    def close(self) -> None:
        """Give loader and samplers their own classes and methods back."""
        for each, own in self._classes:
            set_class(each, own)
        getattr(self.sampler, "__dict__", {}).pop("set_epoch", None)  # a list has none

    def _observe_sampler(self, loader: DataLoader) -> None:
        sampler = loader._index_sampler
        while not hasattr(sampler, "set_epoch") and (inner := getattr(sampler, "batch_sampler", getattr(sampler, "sampler", None))):
            sampler = inner
        self.sampler = sampler
        if hasattr(sampler, "set_epoch"):
            set_epoch = sampler.set_epoch

            def observed(epoch: int) -> None:
                self.epochs_set.append(int(epoch))
                set_epoch(epoch)
            sampler.set_epoch = observed

    def order(self) -> str:
        """What the order of the samples comes from: "DistributedSampler with seed 1 of train.py:12"."""
        how = ""
        if hasattr(self.sampler, "seed") and hasattr(self.sampler, "shuffle"):  # ours, and that of torch
            how = f" with seed {self.sampler.seed}" if self.sampler.shuffle else " without shuffling"
        return type(self.sampler).__name__ + how + (f" of {self.place}" if self.place else "")

    def repeats(self) -> bool:
        """Whether a DistributedSampler repeats samples, because the ranks do not divide their number."""
        return isinstance(self.sampler, DistributedSampler) and self.sampler.total_size > len(self.sampler.dataset)

    def advice(self, epochs: int) -> str:
        """What is wrong if epochs repeat their order, else empty."""
        called = len(set(self.epochs_set))
        if not isinstance(self.sampler, DistributedSampler) or not self.sampler.shuffle or called >= epochs:
            return ""
        return (f"{self.place}: set_epoch of the DistributedSampler was called for {called} of {epochs} epochs, so epochs repeat "
                "their order; call it before each epoch")
