"""Names of samples, hashes of tensors and data sets, and the hash of what each step trained on.

A sample is named by its index in the data set. A sample without an index is named by a hash of its content. The hash of
a step does not depend on the order of its samples. So it does not depend on how a step is divided among ranks."""
from __future__ import annotations

import collections.abc
import hashlib
import pickle
import random
from pathlib import Path
from typing import Any, Iterable

import numpy as np
import torch

SAMPLED = 64  # samples of a data set that its fingerprint reads
COMPARED = 512  # samples of an epoch that ranks compare
_factors: dict[int, np.ndarray] = {}


def raw(tensor: torch.Tensor) -> memoryview:
    """The bytes of a tensor in C order. A sharded tensor is gathered, which is a collective operation."""
    tensor = tensor.detach()
    tensor = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return tensor.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data


def sha(data: Any) -> str:
    return hashlib.sha256(data).hexdigest()


def first_tensor(batch: Any) -> torch.Tensor | None:
    """The first tensor with a dimension in nested lists, tuples and mappings. Its first dimension counts the samples."""
    if not isinstance(batch, (list, tuple)):
        if isinstance(batch, torch.Tensor):
            return batch if batch.dim() else None
        batch = batch.values() if isinstance(batch, collections.abc.Mapping) else ()
    for each in batch:
        if (found := first_tensor(each)) is not None:
            return found
    return None


def content_ids(batch: torch.Tensor) -> np.ndarray:
    """One int64 per sample [samples]: the dot product of its bytes with fixed odd numbers modulo 2^64."""
    batch = batch.detach().cpu().contiguous().reshape(len(batch), -1)
    rows = (batch.view(torch.uint8) if batch.dtype is torch.bfloat16 else batch).numpy().view(np.uint8)
    rows = np.pad(rows, ((0, 0), (0, -rows.shape[1] % 8))) if rows.shape[1] % 8 else rows
    rows = rows.view(np.uint64)
    width = rows.shape[1]
    if width not in _factors:
        draw = np.random.Generator(np.random.PCG64(width))
        _factors[width] = draw.integers(0, 2**63, width, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    return (rows @ _factors[width]).view(np.int64)


def _mixed(ids: np.ndarray) -> np.ndarray:
    """SplitMix64 of each id: uint64 [samples]."""
    z = (ids.view(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def step_sums(steps: list[list[np.ndarray]]) -> list[int]:
    """The sum of the mixed ids of each step modulo 2^64. The sums of several ranks are added."""
    lengths = [sum(map(len, step)) for step in steps]
    if not steps or 0 in lengths:
        return []
    ids = np.ascontiguousarray(np.concatenate([ids for step in steps for ids in step]), np.int64)
    return np.add.reduceat(_mixed(ids), np.cumsum([0, *lengths[:-1]])).tolist()


def order_hash(sums_of_ranks: Iterable[list[int]]) -> str:
    """The term `batches`: SHA-256 of the sums of all steps, little-endian, after the ranks are added."""
    sums = [sum(step) % 2**64 for step in zip(*sums_of_ranks)]
    return "steps:" + sha(np.array(sums, "<u8").tobytes())


def smallest(steps: list[list[np.ndarray]]) -> tuple[list[int], int]:
    """The smallest mixed ids of an epoch, each once, and how many ids there are. Ranks that share samples share these."""
    ids = [np.ascontiguousarray(each, np.int64) for step in steps for each in step]
    found = np.unique(_mixed(np.concatenate(ids))) if ids else np.zeros(0)
    return found[:COMPARED].tolist(), len(found)


def overlap(one: list[int], other: list[int]) -> float:
    """The share of the samples of the shorter epoch that the other one has too, from their `smallest`."""
    limit = min([ids[-1] for ids in (one, other) if len(ids) == COMPARED], default=2**64)  # both have all ids up to it
    below = [{each for each in ids if each <= limit} for ids in (one, other)]
    return len(below[0] & below[1]) / max(min(map(len, below)), 1)


def files_fingerprint(files: str | Path | Iterable[str | Path]) -> str:
    """SHA-256 of the content of the files in their order. OSError if one cannot be read."""
    total = hashlib.sha256()
    for path in [files] if isinstance(files, (str, Path)) else files:
        each = hashlib.sha256()
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                each.update(block)
        total.update(each.digest())
    return total.hexdigest()


def _sampled(dataset: Any) -> str:
    """Hash of evenly spaced samples and of the length, with seeded random numbers."""
    length = len(dataset)
    taken, total = min(SAMPLED, length), hashlib.sha256(str(length).encode())
    for i in range(taken):
        torch.manual_seed(i), np.random.seed(i), random.seed(i)
        sample = dataset[i * length // taken]
        tensor = first_tensor(sample)
        total.update(raw(tensor) if tensor is not None else pickle.dumps(sample))
    return f"{taken} of {length} samples: {total.hexdigest()}"


def random_states(device: torch.device = torch.device("cpu")) -> dict[str, str]:
    """A hash of the state of each random number generator. "torch" is the one of this device."""
    state = torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()
    states = {"torch": raw(state), "python": pickle.dumps(random.getstate()), "numpy": pickle.dumps(np.random.get_state())}
    return {name: sha(state)[:16] for name, state in states.items()}


def dataset_fingerprint(dataset: Any) -> tuple[str | None, str]:
    """(fingerprint, why there is none). All random number generators are as they were before."""
    if isinstance(dataset, torch.utils.data.TensorDataset):
        total = hashlib.sha256()
        for tensor in dataset.tensors:
            total.update(raw(tensor))
        return total.hexdigest(), ""
    if isinstance(dataset, torch.utils.data.IterableDataset) or not (hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")):
        return None, "the data set has no index: pass data=[files] to trainyard.start()"
    states = torch.get_rng_state(), np.random.get_state(), random.getstate()
    try:
        first, second = _sampled(dataset), _sampled(dataset)
    except Exception as error:  # code of the user, which may need a worker or more
        return None, f"a sample cannot be read: {type(error).__name__}: {error}; pass data=[files] to trainyard.start()"
    finally:
        torch.set_rng_state(states[0]), np.random.set_state(states[1]), random.setstate(states[2])
    if first != second:
        return None, "a sample that is read twice differs: pass data=[files] to trainyard.start()"
    return first, ""
