"""The probe of `trainyard explain --probe`: three steps in which an arm and one process compute the gradient of the same samples.

The arm keeps its first weights, the samples of its steps, and sketches of its gradients in a folder. The process then gets
these weights and samples. In both, dropout is off, batch normalisation is in evaluation mode, and the learning rate is 0. In the
third step the last rank has half of its samples. After it the process ends."""
from __future__ import annotations

import base64
import collections.abc
import math
import os
import sys
from pathlib import Path
from typing import Any, Callable

import numpy as np
import torch

from . import chain, samples

STEPS = 3
PADDING = -100  # of labels: torch's cross_entropy ignores it
FOLDER, SAMPLES = "RECORDER_PROBE", "RECORDER_PROBE_SAMPLES"  # variables; the second one is that of the process, per step
_DROPOUTS = "dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout".split()


def rows_of(batch: Any) -> int:
    tensor = samples.first_tensor(batch)
    return tensor.size(0) if tensor is not None else 0


def mapped(function: Callable[[list[torch.Tensor], Any], torch.Tensor], batches: list[Any], name: Any = None) -> Any:
    """The first batch, with function(the tensors of all batches, their name) in place of each tensor with a dimension."""
    first = batches[0]
    if isinstance(first, torch.Tensor):
        return function(batches, name) if first.dim() else first
    if isinstance(first, collections.abc.Mapping):
        return type(first)({key: mapped(function, [each[key] for each in batches], key) for key in first})
    if isinstance(first, (list, tuple)):
        found = [mapped(function, list(each)) for each in zip(*batches)]
        return type(first)(*found) if hasattr(first, "_fields") else type(first)(found)
    return first


def joined(batches: list[Any]) -> Any:
    """One batch with the samples of all. Named tensors are padded to one length. ValueError if others have other shapes."""
    rows = [rows_of(each) for each in batches]

    def join(tensors: list[torch.Tensor], name: Any) -> torch.Tensor:
        if [each.size(0) for each in tensors] != rows:
            return tensors[0]  # not of samples
        if len({each.shape[1:] for each in tensors}) > 1:
            if name is None or len({each.shape[2:] for each in tensors}) > 1:
                raise ValueError("trainyard: the ranks have samples of other shapes, which the probe cannot join: pad them to one length")
            length, value = max(each.size(1) for each in tensors), PADDING if name == "labels" else 0
            lacks = [(each.size(0), length - each.size(1), *each.shape[2:]) for each in tensors]
            tensors = [torch.cat([each, each.new_full(shape, value)], 1) for each, shape in zip(tensors, lacks)]
        return torch.cat(tensors)
    return mapped(join, batches)


def part(batch: Any, begin: int, end: int) -> Any:
    """The samples from `begin` to `end`."""
    rows = rows_of(batch)
    return mapped(lambda tensors, _: tensors[0][begin:end] if tensors[0].size(0) == rows else tensors[0], [batch])


class Probe:
    """The part of this rank. found: what the process learned, by step. ValueError if the arm left nothing in the folder."""

    def __init__(self, steps: Any, rank: int, world: int):
        self.steps, self.rank, self.world, self.found = steps, rank, world, []
        self.folder, self.samples = Path(os.environ[FOLDER]), int(os.environ.get(SAMPLES, 0))
        self._batches: list[Any] = []    # that the script got
        self._numbers: list[int] = []    # of batches by step
        self._waiting: list[Any] = []    # of the process
        self._parts: list[int] = []      # that the process gets, by step
        self._arm = [torch.load(each, weights_only=False) for each in sorted(self.folder.glob("rank-*.pt"))] if self.samples else []
        if self.samples and not self._arm:
            raise ValueError(f"trainyard: the probe finds no samples of the arm in {self.folder}")
        self.ended = False

    def file(self, name: str) -> Path:
        return self.folder / name

    def begin(self) -> None:
        """Before the first step: the weights of the arm, and no dropout."""
        model = self.steps.inner
        if self.samples:
            model.load_state_dict(torch.load(self.file("weights.pt"), weights_only=False))
        elif self.rank == 0:
            torch.save(model.state_dict(), self.file("weights.pt"))
        functions, attention = torch.nn.functional, torch.nn.functional.scaled_dot_product_attention
        for name in _DROPOUTS:
            setattr(functions, name, lambda input, *args, **named: input)
        functions.scaled_dot_product_attention = lambda *args, **named: attention(*args[:4], **{**named, "dropout_p": 0.0})
        self.steps.model.apply(self._without_chance)

    @staticmethod
    def _without_chance(module: torch.nn.Module) -> None:
        if isinstance(module, torch.nn.modules.dropout._DropoutNd):
            module.p = 0.0
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            module.train = lambda mode=True: module  # the script's model.train() calls it
            module.training = False

    def batch(self, given: Any) -> Any:
        """What the script gets in place of a batch of its loader, or of the inputs of its model."""
        if self.samples:
            return self._of_arm(given)
        is_third = self._numbers and len(self._batches) >= 2 * self._numbers[0]
        if is_third and self.world > 1 and self.rank == self.world - 1:
            given = part(given, 0, math.ceil(rows_of(given) / 2))
        self._batches.append(mapped(lambda tensors, _: tensors[0].detach().cpu().clone(), [given]))
        return given

    def _of_arm(self, given: Any) -> Any:
        """The next part of a step of the arm. A step has as many parts as that of the process has batches."""
        if not self._waiting and self._arm[0]["batches"]:
            step = joined([batch for rank in self._arm for batch in rank["batches"].pop(0)])
            rows, number = rows_of(step), max(1, round(self.samples / rows_of(given)))
            self._parts.append(number)
            ends = [rows * i // number for i in range(number + 1)]
            self._waiting = [part(step, begin, end) for begin, end in zip(ends, ends[1:])]
        device = samples.first_tensor(given).device
        return mapped(lambda tensors, _: tensors[0].to(device), [self._waiting.pop(0)]) if self._waiting else given

    def hold(self, optimizer: torch.optim.Optimizer) -> None:
        """Before a step: the weights stay."""
        for group in optimizer.param_groups:
            group["lr"] = torch.zeros_like(group["lr"]) if isinstance(group["lr"], torch.Tensor) else 0.0

    def end_step(self, batches: int) -> bool:
        """Whether that was the last step. `batches`: of this step."""
        if not batches:
            how = "is in eval() mode" if self.steps.eval_steps else "that trainyard.start() got is not called"
            raise ValueError(f"trainyard: the model {how} in a step, so the probe has no samples")
        self._numbers.append(batches)
        step = len(self._numbers)
        parts = sum(self._parts[step - 1:step])  # the script can have read ahead
        if self.samples and parts != batches:
            raise ValueError(f"trainyard: step {step} of the process takes {batches} batches, but the probe has {parts}")
        if step < STEPS:
            return False
        self.ended, seen = True, self.steps.chain
        sketches = [seen._sketches.get(step) for step in range(1, STEPS + 1)]
        if seen.problem or not all(sketches):
            raise ValueError(f"trainyard: the gradients of the probe were not observed: {seen.problem or 'a step has none'}")
        if self.samples:
            self.found = [self._compared(number, sketch) for number, sketch in enumerate(sketches)]
            return True
        ends = np.cumsum([0, *self._numbers])
        steps = [self._batches[begin:end] for begin, end in zip(ends, ends[1:])]
        torch.save({"parameters": list(self._trained()), "weights": chain.hash_of(list(self._trained().values())), "batches": steps,
                    "sketches": sketches, "rows": [sum(map(rows_of, each)) for each in steps]}, self.file(f"rank-{self.rank}.pt"))
        return True

    def _trained(self) -> dict[str, torch.nn.Parameter]:
        return {name: each for name, each in self.steps.inner.named_parameters() if each.requires_grad}

    def _compared(self, step: int, sketch: list[str]) -> dict[str, Any]:
        """The gradient of the arm against that of the process, which is also fitted by those of the arm's ranks."""
        def numbers(text: str) -> np.ndarray:
            return np.frombuffer(base64.b64decode(text), np.float32).astype(np.float64)
        own, arm = numbers(sketch[1]), numbers(self._arm[0]["sketches"][step][1])
        trained = self._trained()
        if others := set(trained) ^ set(self._arm[0]["parameters"]):
            raise ValueError(f"trainyard: only the arm or only the process trains {', '.join(sorted(others)[:3])}")
        if not own @ own > 0:
            raise ValueError("trainyard: the gradient of the process is 0")
        ranks = np.stack([numbers(each["sketches"][step][0]) for each in self._arm], 1)
        fit = chain.fit([each["sketches"][step] for each in self._arm])  # of the arm alone
        shares = np.linalg.lstsq(ranks, own, rcond=None)[0]
        norm, off = np.linalg.norm(own), arm - own
        factor = float(arm @ own / (own @ own))
        ends = np.cumsum([chain.sketch(each, len(trained)).numel() for each in trained.values()])
        differences = dict(zip(trained, (np.linalg.norm(each) for each in np.split(off, ends[:-1]))))
        return {"samples": [each["rows"][step] for each in self._arm], "distance": float(np.linalg.norm(off) / norm), "factor": factor,
                "rest": float(np.linalg.norm(arm - factor * own) / norm), "shares": shares.tolist(),
                "unexplained": float(np.linalg.norm(own - ranks @ shares) / norm), "parameter": max(differences, key=differences.get),
                "inside": {name: fit[name] for name in ("rest", "own") if name in fit},
                "equal_weights": len({each["weights"] for each in self._arm}) == 1}


def leave() -> None:
    """End this process at once, because the script would go on to train."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
