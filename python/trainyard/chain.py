"""The chain of a gradient within one step: loss given to backward(), gradients of the ranks, and the gradient that they share.

A sketch of a gradient is an evenly spaced sample of it. It is linear, so sketches of the same step tell the factor c of
G = c · (sum over the ranks of their gradients). Only steps 1 to 3 wait for a value on a GPU."""
from __future__ import annotations

import base64
import functools
import math
from typing import Any, Callable

import numpy as np
import torch

from . import samples

WATCHED, UNEVEN = 3, 8  # first steps, with sketches, and later ones in which the ranks have different weights
EVEN = 0.02  # sum of the spreads of nearly equal weights
SKETCH, LONGEST = 4096, 20_000  # numbers of a sketch, but at least 8 of each parameter; steps of an epoch


def forgiving(method: Callable) -> Callable:
    """Let the run continue after an exception. Then `problem` of the object and a note say why, and it observes nothing more."""
    @functools.wraps(method)
    def call(self: Any, *args: Any, **named: Any) -> Any:
        try:
            return method(self, *args, **named) if not self.problem else None
        except Exception as error:  # of any kind, because scripts are
            self.problem = self.steps.notes[type(self).__name__.lower()] = f"not observed: {type(error).__name__}: {error}"[:500]
    return call


def hooked(parameter: torch.nn.Parameter, hook: Callable) -> Callable[[], Any]:
    """Hook the gradient, and return what ends this. An empty dict of hooks would cost 1 µs per backward pass."""
    handle = parameter.register_hook(hook)
    return lambda: (handle.remove(), parameter._backward_hooks or setattr(parameter, "_backward_hooks", None))


def sketch(tensor: torch.Tensor, tensors: int) -> torch.Tensor:
    """Some numbers of one of so many tensors: float32 [n]."""
    taken = max(8, SKETCH // tensors)
    stride = max(1, tensor.numel() // taken - 1 | 1)  # odd, so it seldom divides the width of a layer
    return tensor.detach().reshape(-1)[::stride][:taken].to(torch.float32, copy=True)


def hash_of(parameters: list[torch.Tensor]) -> str:
    """A hash of sketches, which is faster than one of all numbers."""
    return samples.sha(samples.raw(torch.cat([sketch(each, len(parameters)).cpu() for each in parameters])))


class Chain:
    """What was observed of the steps of this rank in the first epochs. problem: why nothing was observed."""

    def __init__(self, steps: Any):
        self.steps, self.problem = steps, ""
        self.hooks: list[Callable] = []  # only until step 3, and only if there can be sketches
        self._parameters: list[torch.nn.Parameter] = []
        self._asked = self._parameters  # whose gradients say whether earlier ones are kept
        self._sketches, self._weights = {}, {}  # texts by step, numbers by step of the epoch
        self._rows, self._losses = [], []  # by step of the epoch, None if it was skipped; of kept backward passes
        self._local, self._gradient = {}, {}  # sketches by parameter
        self._backwards, self._exchanges, self._whole = 0, 0, True  # whole: no backward pass came after _gradient was taken
        self.scaled = False  # whether _gradient was taken before a GradScaler divided it

    def end(self) -> None:
        while self.hooks:
            self.hooks.pop()()
        self._local = {}

    @forgiving
    def begin(self) -> None:
        self._parameters = self._asked = [each for each in self.steps.inner.parameters() if each.requires_grad]
        if self.steps.steps < WATCHED and self.steps.wrapper[0] != "fsdp":
            self.hooks = [hooked(each, functools.partial(self._on_gradient, i)) for i, each in enumerate(self._parameters)]

    def begin_epoch(self) -> None:
        """What came after the last step belongs to the first one of this epoch."""
        rest = self._weights.get(len(self._rows))
        self._rows, self._sketches, self._weights = [], {}, {} if rest is None else {0: rest}

    @forgiving
    def before_backward(self, args: tuple, named: dict[str, Any]) -> None:
        for each in self._asked:
            if (gradient := each.grad) is not None and (not self.hooks or gradient.is_sparse or gradient.any()):  # zeros count as none
                self.steps.uncleared |= bool(self.hooks) and not self._backwards
                break
        else:  # what came before is discarded
            self._losses, self._local = [], {}
        self._whole = not self._gradient
        self._backwards += 1
        self._exchanges += getattr(self.steps.wrapper[1], "require_backward_grad_sync", False)
        loss, weights = args[0] if args else named["tensors"], args[1] if len(args) > 1 else named.get("grad_tensors")
        self._losses.append(loss.detach() if weights is None and isinstance(loss, torch.Tensor) else None)

    def _sketch(self, gradient: torch.Tensor) -> torch.Tensor:
        return sketch(gradient, len(self._parameters))

    @forgiving
    def _on_gradient(self, i: int, gradient: torch.Tensor) -> None:
        if gradient.is_sparse:
            return self.end()
        sketch = self._sketch(gradient)
        self._local[i] = self._local[i] + sketch if i in self._local else sketch

    @forgiving
    def take(self, optimizer: Any = None) -> None:
        """The gradients of this optimizer are complete, or all of them before they are clipped."""
        self.scaled, scale = self.scaled or optimizer is None, getattr(optimizer, "grad_scale", None)  # of a fused one
        mine = {id(each) for group in optimizer.param_groups for each in group["params"]} if optimizer is not None else None
        for i, each in enumerate(self._parameters):
            if each.grad is not None and i not in self._gradient and (mine is None or id(each) in mine):
                self._gradient[i] = self._sketch(each.grad) / (1.0 if scale is None else scale)

    def add(self, count: float | torch.Tensor) -> None:
        """Weight of the latest forward pass, perhaps after its step."""
        step = len(self._rows) - (not self.steps.forwards)
        self._weights[step] = self._weights.get(step, 0) + count

    @forgiving
    def close(self, skipped: bool) -> None:
        """The step ends. Its number is that of the steps that were not skipped."""
        scale, step = self.steps.scaler._scale.clone() if self.steps.scaler is not None else 1.0, self.steps.steps
        is_row = not skipped and len(self._rows) < LONGEST
        self._rows.append([step, self._losses, scale, self._backwards, self._exchanges] if is_row else None)
        if self._gradient and self._whole and not skipped:
            self._sketches[step] = [self._text(self._local, scale), self._text(self._gradient, scale if self.scaled else 1.0)]
        self._losses, self._gradient, self._backwards, self._exchanges, self._whole, self.scaled = [], {}, 0, 0, True, False
        if step >= WATCHED and self.hooks:
            self.end()
            self._asked = [each for each in self._parameters if each.grad is not None][:1]  # reading all gradients takes 20 µs

    def _text(self, sketches: dict[int, torch.Tensor], scale: Any) -> str:
        """Base64 of the float32 numbers of all parameters. Those without a gradient have zeros."""
        whole = torch.cat([sketches.get(i, torch.zeros_like(self._sketch(each))).cpu() for i, each in enumerate(self._parameters)])
        return base64.b64encode((whole / float(scale)).numpy()).decode()

    @forgiving
    def message(self) -> dict[str, Any]:
        """What rank 0 needs of this rank at the end of an epoch."""
        rows, known = [], [each for row in self._rows if row for each in row[1] if each is not None]
        values = iter(torch.stack([each.reshape(()).float() for each in known]).tolist() if known else [])  # one copy from a GPU
        for i, (step, losses, scale, backwards, exchanges) in ((i, row) for i, row in enumerate(self._rows) if row):
            numbers = [each if each is None else next(values) for each in losses]
            loss = None if None in losses else sum(numbers) / float(scale)
            weight = self._weights.get(i)
            rows.append([step, loss, weight if weight is None else float(weight), self.steps.sizes[i], backwards, len(losses), exchanges])
        return {"rows": rows, "sketches": self._sketches}


def extend(chain: list[dict[str, Any]], of_ranks: list[dict[str, Any]], later: bool) -> None:
    """Append the watched steps of an epoch and, if `later`, uneven ones after three steps with nearly equal weights."""
    for rows in zip(*(each["rows"] for each in of_ranks)):
        (step, *others), *columns = map(list, zip(*rows))
        if others != [step] * len(others):
            return
        entry = {"step": step, **dict(zip(("losses", "weights", "samples", "backwards", "kept", "exchanges"), columns))}
        if step > WATCHED and not (later and WATCHED <= len(chain) < WATCHED + UNEVEN and 0 < _spread(entry["weights"]) < math.inf
                                   and sum(_spread(each["weights"]) for each in chain[:WATCHED]) < EVEN):
            continue
        if not all(loss is not None and math.isfinite(loss) for loss in entry["losses"]):
            del entry["losses"]
        sketches = [each["sketches"].get(str(step)) for each in of_ranks]
        chain.append(entry | (fit(sketches) if all(sketches) else {}))


def _spread(weights: list[float | None]) -> float:
    """Squared differences of the logarithms from their mean. Infinite if a weight is not known."""
    if not all(weights):
        return math.inf
    logs = [math.log(each) for each in weights]
    mean = sum(logs) / len(logs)
    return sum((each - mean) ** 2 for each in logs)


def fit(sketches: list[list[str]]) -> dict[str, float]:
    """The gradient of rank 0 as a factor of the sum of all local gradients, what this leaves, and the distance to its local one."""
    local, gradient = ([np.frombuffer(base64.b64decode(each[i]), np.float32).astype(np.float64) for each in sketches] for i in (0, 1))
    total, whole = sum(local), gradient[0]
    if not 0 < total @ total < math.inf or not 0 < whole @ whole < math.inf:
        return {}
    factor = float(whole @ total / (total @ total))
    norm = np.linalg.norm(whole)
    return {"reduction": factor * len(sketches), "rest": float(np.linalg.norm(whole - factor * total) / norm),
            "own": float(np.linalg.norm(whole - local[0]) / norm)}
