"""Checkpoints of a run with `checkpoint = "epoch"`: weights, optimizers, schedule and random numbers after each epoch.

epoch-K.pt is of rank 0, and epoch-K.rank-R.pt has the random numbers of rank R. The last two epochs are kept. Sharded
parameters (FSDP) have no checkpoints."""
from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any, Iterable

import numpy as np
import torch

KEPT = 2


def _save(content: Any, path: Path) -> None:
    torch.save(content, path.with_suffix(".new"))
    os.rename(path.with_suffix(".new"), path)


def _random_state() -> dict[str, Any]:
    name, numbers, *place = np.random.get_state()
    state: dict[str, Any] = {"torch": torch.get_rng_state(), "python": random.getstate(), "numpy": [name, numbers.tolist(), *place]}
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state_all()
    return state


def save_random(folder: Path, epoch: int, rank: int) -> None:
    _save(_random_state(), folder / f"epoch-{epoch}.rank-{rank}.pt")


def save(folder: Path, epoch: int, parts: Iterable[Any], observed: dict[str, Any]) -> None:
    """Save the `state_dict` of all parts, and what the recorder must remember."""
    _save({"parts": [part.state_dict() for part in parts], "observed": observed}, folder / f"epoch-{epoch}.pt")
    for old in folder.glob(f"epoch-{epoch - KEPT}.*"):
        old.unlink(missing_ok=True)


def load(folder: Path, epoch: int, rank: int, parts: Iterable[Any]) -> dict[str, Any]:
    """Restore all parts and the random numbers. Returns what the recorder must remember. OSError if a file is missing."""
    saved = torch.load(folder / f"epoch-{epoch}.pt", map_location="cpu", weights_only=True)
    for part, state in zip(parts, saved["parts"], strict=True):
        part.load_state_dict(state)
    numbers = torch.load(folder / f"epoch-{epoch}.rank-{rank}.pt", weights_only=True)
    torch.set_rng_state(numbers["torch"])
    random.setstate(numbers["python"])
    np.random.set_state((numbers["numpy"][0], np.array(numbers["numpy"][1], np.uint32), *numbers["numpy"][2:]))
    if "cuda" in numbers:
        torch.cuda.set_rng_state_all(numbers["cuda"])
    return saved["observed"]
