"""Observes the steps of a training: forward, backward, optimizer, the samples of each step, and seconds.

Hooks of torch call the methods here. Nothing is computed in a step that can wait until the end of the epoch."""
from __future__ import annotations

import collections
import weakref
from typing import Any, Callable

import numpy as np
import torch

from . import patches, samples
from .loaders import clock

WATCHED = 3  # steps with gradient norms, and batches per epoch with a hash of their inputs
COUNTED = ("first_rates", "largest_step", "norms", "steps", "skipped_steps")  # what a resumed run continues


def unwrapped(model: torch.nn.Module) -> torch.nn.Module:
    """The module inside of torch.compile, DistributedDataParallel, DataParallel and FullyShardedDataParallel."""
    wrappers = ("DistributedDataParallel", "DataParallel", "FullyShardedDataParallel")
    while True:
        if isinstance(getattr(model, "_orig_mod", None), torch.nn.Module):
            model = model._orig_mod
        elif type(model).__name__ in wrappers:
            model = model.module
        else:
            return model


def is_compiled(module: torch.nn.Module) -> bool:
    return hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None


def eager_leaves(module: torch.nn.Module) -> list[torch.nn.Module]:
    """The modules without children, except those inside of a compiled module."""
    if is_compiled(module):
        return []
    return [leaf for child in module.children() for leaf in eager_leaves(child)] or [module]


def compiled_dtypes(output: Any) -> set[torch.dtype]:
    """The dtypes of what compiled functions have saved for the backward pass of this output."""
    tensor = output if isinstance(output, torch.Tensor) else samples.first_tensor(output)
    waiting, seen, found = [tensor.grad_fn] if tensor is not None else [], set(), set()
    while waiting and len(seen) < 10_000:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if "CompiledFunction" in type(node).__name__:
            found |= {saved.dtype for saved in node.saved_tensors if saved is not None and saved.is_floating_point()}
        waiting += [before for before, _ in node.next_functions]
    return found


class Steps:
    """What was observed of the steps of this rank.

    missing: why a term was not observed, by its name. notes: what a reader should know. Members of an epoch are reset by
    `begin_epoch`."""

    def __init__(self, model: torch.nn.Module, optimizers: list[torch.optim.Optimizer], has_loader: bool, hash_contents: bool):
        self.model, self.inner, self.optimizers = model, unwrapped(model), optimizers
        self.has_loader, self.hash_contents = has_loader, hash_contents
        self.missing: dict[str, str] = {}
        self.notes: dict[str, str] = {}
        self.on_first: Callable[[], None] = lambda: None  # called before the first training step
        self.depth = self.stepped = self.steps = self.skipped_steps = self.backwards = self.unsynchronised = 0
        self.largest_step = self.most_forwards = 0
        self.scaler: Any = None
        self.clip_norms: set[float] = set()
        self.clipped_from: float | None = None  # norm of the gradient before it was clipped
        self.dtypes: set[torch.dtype] = set()  # inside of forward
        self.dtypes_known = False
        self.norms: list[dict[str, float]] = []
        self.first_rates: list[float] = []
        self.on_output: Callable[[dict[str, Any], Any, bool], None] | None = None  # named inputs, output, training
        self.on_log: Callable[[str, Any, Any], None] = lambda *_: None  # of a trainer: name, value, samples or None
        self._inputs: dict[str, Any] = {}
        self.ddp: Any = None  # the DistributedDataParallel, from the first step on
        self._local_norms: dict[torch.nn.Parameter, torch.Tensor] = {}
        self._began, self._skips, self._closure, self._rates = False, False, False, []
        self._forward_began = self._step_began = 0.0
        self.pending: collections.deque = collections.deque()  # (rows, samples, ids) of batches before their step
        self.rows = 0                                           # of forward passes since the last step
        self._source: Any = None                                # iterator of the loader
        self._paused: weakref.WeakKeyDictionary[Any, list[tuple]] = weakref.WeakKeyDictionary()  # what others have read ahead
        self.begin_epoch()
        self.leaves = set(eager_leaves(model))
        self._watching = [each.register_forward_hook(patches.Hook("after_leaf")) for each in self.leaves]
        self._watching += [parameter.register_post_accumulate_grad_hook(self._after_gradient)
                           for parameter in self.inner.parameters() if parameter.requires_grad]
        self._hooks = [model.register_forward_pre_hook(patches.Hook("before_forward"), with_kwargs=True, prepend=True),
                       model.register_forward_hook(patches.Hook("after_forward"), always_call=True)]
        for optimizer in optimizers:
            self._hooks += [optimizer.register_step_pre_hook(self._before_step), optimizer.register_step_post_hook(self._after_step)]

    def close(self) -> None:
        """Remove all hooks."""
        self.unwatch()
        for hook in self._hooks:
            hook.remove()

    def begin_epoch(self) -> None:
        self.pending = collections.deque(self._in_use()[1])
        self._ahead: int | None = None  # batches that the script had read ahead at the last step
        self.taken: list[list[np.ndarray]] = []  # ids by step
        self.sizes: list[int] = []               # samples by step
        self.rates: list[list[float]] = []       # by step that was not skipped
        self.inputs: list[str] = []
        self.rows = self.forwards = self.epoch_skipped = 0
        self.data = self.forward = self.backward = self.optimizing = self.validating = self.outside = 0.0
        self.evaluating_since: float | None = None
        self.began = self.trained = clock()

    # --- batches

    def on_batch(self, source: Any, batch: Any, indices: np.ndarray | None, seconds: float) -> None:
        """The script has a batch of the iterator `source`, for which it waited so long."""
        if source is not self._source:  # another pass over the data, perhaps inside of one that continues later
            in_use, unused = self._in_use()
            if self._source is not None:
                self._paused[self._source] = unused
            self.pending = collections.deque(in_use + self._paused.pop(source, []))
            self._source, self._ahead = source, None
        if self.evaluating_since is not None:
            self.end_validation(clock() - seconds)
        self.data += seconds
        self._add(samples.first_tensor(batch), indices)

    def _add(self, tensor: torch.Tensor | None, indices: np.ndarray | None) -> None:
        rows = tensor.shape[0] if tensor is not None else 0
        size = len(indices) if indices is not None else rows
        if size != rows and indices is not None and tensor is not None and size not in tensor.shape[:2]:
            text = f"a batch has {size} indices and {rows} samples"
            self.missing = {"batches": text, "global_batch": text} | self.missing
        if indices is None and tensor is not None and self.hash_contents:
            indices = samples.content_ids(tensor)
        if indices is None:
            self.missing.setdefault("batches", "samples have no index, and hash_contents=False")
            indices = np.zeros(0, np.int64)
        if tensor is not None and len(self.inputs) < WATCHED:
            self.inputs.append(samples.sha(samples.raw(tensor))[:16])
        self.pending.append((rows, size, indices))

    def _in_use(self) -> tuple[list[tuple], list[tuple]]:
        """Batches of forward passes since the last step, and batches that the script has read ahead."""
        batches, rows, number = list(self.pending), 0, 0
        while number < len(batches) and rows < self.rows:
            rows += batches[number][0]
            number += 1
        return batches[:number], batches[number:]

    # --- hooks of the model

    def before_forward(self, module: torch.nn.Module, args: tuple, kwargs: dict[str, Any]) -> None:
        if module is not self.model:
            return
        self.depth += 1
        if self.depth > 1:
            return
        self._forward_began = now = clock()
        if self.on_output is not None:
            self._inputs = kwargs
        if not (module.training and torch.is_grad_enabled()):
            if self.evaluating_since is None:
                self.evaluating_since = self.trained
            return
        self.end_validation(now)
        if not self._began:
            self._begin()
            self._forward_began = clock()
        tensor = samples.first_tensor(args)
        tensor = samples.first_tensor(kwargs) if tensor is None else tensor
        self.rows += tensor.shape[0] if tensor is not None else 0
        self.forwards += 1
        if self.ddp is not None and not self.ddp.require_backward_grad_sync:
            self.unsynchronised += 1
        if not self.has_loader:
            self._add(tensor, None)

    def after_forward(self, module: torch.nn.Module, args: tuple, output: Any) -> None:
        if module is not self.model or not self.depth:
            return
        self.depth -= 1
        if self.depth:
            return
        training = module.training and torch.is_grad_enabled()
        if training:
            self.forward += clock() - self._forward_began
            if not self.dtypes_known and output is not None:
                self._end_of_first(output)
        if self.on_output is not None and output is not None:
            self.on_output(self._inputs, output, training)
            self._inputs = {}

    def after_leaf(self, module: torch.nn.Module, args: tuple, output: Any) -> None:
        if self.depth and isinstance(output, torch.Tensor) and module.training and torch.is_grad_enabled():
            self.dtypes.add(output.dtype)

    def _begin(self) -> None:
        self._began, begin = True, clock()
        self.dtypes.clear()
        kind = next((parameter.device.type for parameter in self.inner.parameters()), "cpu")
        if torch.is_autocast_enabled(kind):
            self.dtypes.add(torch.get_autocast_dtype(kind))
        self.on_first()
        self.outside += clock() - begin

    def _end_of_first(self, output: Any) -> None:
        """After the first forward pass: which dtypes it used."""
        compiled = [module for module in self.model.modules() if is_compiled(module)]
        saved = compiled_dtypes(output) if compiled else set()
        self.dtypes |= saved
        self.dtypes_known = bool(saved) if compiled else any(dtype.is_floating_point for dtype in self.dtypes)
        if not self.dtypes_known:
            why = "torch.compile hides" if compiled else "no layer shows"
            self.missing.setdefault("precision", f"{why} which number format the layers use")
        self.dtypes_known, self.leaves = True, set()

    # --- backward and optimizer

    def after_backward(self, begin: float) -> None:
        self.trained = now = clock()
        self.backward += now - begin
        self.backwards += 1

    def _after_gradient(self, parameter: torch.nn.Parameter) -> None:
        gradient = parameter.grad.detach()
        gradient = gradient.to_local() if hasattr(gradient, "to_local") else gradient
        self._local_norms[parameter] = gradient.norm() if not gradient.is_sparse else gradient.coalesce().values().norm()

    def _before_step(self, optimizer: torch.optim.Optimizer, args: tuple, kwargs: dict[str, Any]) -> None:
        if not self._began:
            self._begin()
        self._step_began = (clock(), self.forward + self.backward)  # a closure runs both again
        self._note_rates(optimizer)
        if optimizer is self.optimizers[-1]:
            found = getattr(optimizer, "found_inf", None)  # fused optimizers skip by themselves
            self._skips = found is not None and bool(found)
            self._closure = (args[1] if len(args) > 1 else kwargs.get("closure")) is not None  # makes the gradients in step()
            if self._watching and not self._closure:
                self._watch_gradients(optimizer)

    def _note_rates(self, optimizer: torch.optim.Optimizer) -> None:
        if optimizer is self.optimizers[0]:
            self._rates = []
        self._rates += [float(group["lr"]) for group in optimizer.param_groups]

    def _watch_gradients(self, optimizer: torch.optim.Optimizer) -> None:
        gradients = [each.grad.detach() for each in self.inner.parameters() if each.grad is not None]
        gradients = [each.to_local() if hasattr(each, "to_local") else each for each in gradients]
        gradients = [each.coalesce().values() if each.is_sparse else each for each in gradients]
        scale = getattr(optimizer, "grad_scale", None)  # fused optimizers get scaled gradients
        norm = float(torch.stack([each.norm().float().cpu() for each in gradients]).norm()) if gradients else 0.0
        local = [each.float().cpu() for each in self._local_norms.values()]
        found = {"step": self.steps + 1, "at_step": norm / float(scale) if scale is not None else norm}
        if self.clipped_from is not None:
            found["before_clipping"], self.clipped_from = self.clipped_from, None
        if local:
            found["local"] = float(torch.stack(local).norm())
        if self.scaler is not None:
            found["scaled_by"] = float(self.scaler.get_scale())
        self.norms.append(found)
        self._local_norms = {}
        if len(self.norms) >= WATCHED:  # more if the run is resumed, so that its number formats are seen
            self.unwatch()

    def watches(self) -> bool:
        return bool(self._watching)

    def unwatch(self) -> None:
        for handle in self._watching:
            handle.remove()
        self._watching = []

    def _after_step(self, optimizer: torch.optim.Optimizer, args: tuple, kwargs: dict[str, Any]) -> None:
        begin, parts = self._step_began
        self.trained = now = clock()
        self.optimizing += now - begin - (self.forward + self.backward - parts)
        self.stepped += 1
        if optimizer is self.optimizers[-1]:
            if self._watching and self._closure:
                self._watch_gradients(optimizer)
            self._close(self._skips)

    def skipped(self, optimizer: torch.optim.Optimizer) -> None:
        """A GradScaler has not called the optimizer, because a gradient is not finite."""
        self._note_rates(optimizer)
        if optimizer is self.optimizers[-1]:
            self._close(True)

    def _close(self, skipped: bool) -> None:
        """The step ends: the batches of its forward passes belong to it. A loader that runs ahead keeps the others."""
        taken, rows, size = [], 0, 0
        while self.pending and rows < self.rows:
            batch = self.pending.popleft()
            taken.append(batch[2])
            rows += batch[0]
            size += batch[1]
        if not self.rows:
            self.missing.setdefault("batches", "no forward pass of the model was seen: give trainyard.start() the model that the "
                                    "script calls, after torch.compile and copies")
            self.pending.clear()
        elif rows != self.rows:
            self._explain(len(taken), rows)
        if self._ahead is not None and len(self.pending) > self._ahead:
            self.missing.setdefault("batches", "the script left out a batch of the loader")
        self._ahead = len(self.pending)
        self.taken.append(taken)
        self.sizes.append(size)
        if self.forwards > self.most_forwards:
            self.most_forwards = self.forwards
        self.rows = self.forwards = 0
        if skipped:
            self.skipped_steps += 1
            self.epoch_skipped += 1
        else:
            self.steps += 1
            self.rates.append(self._rates)
            self.first_rates = self.first_rates or self._rates

    def _explain(self, batches: int, rows: int) -> None:
        """The forward passes of a step got another number of samples than its batches have."""
        text = f"step {self.steps + self.skipped_steps + 1} took {rows} samples from the loader, but forward got {self.rows}"
        if batches == 1 and rows * self.forwards == self.rows:
            self.notes.setdefault("samples", text)  # several passes of one batch
        else:
            self.missing = {"batches": text, "global_batch": text} | self.missing

    # --- times

    def end_validation(self, now: float) -> None:
        if self.evaluating_since is not None:
            self.validating += now - self.evaluating_since
            self.evaluating_since = None

    def seconds(self, train_seconds: float) -> dict[str, float]:
        """The parts of the training time that were observed. On a GPU forward and backward return early, so none is known."""
        if next((parameter.device.type for parameter in self.inner.parameters()), "cpu") != "cpu":
            return {}
        parts = {"data": self.data} if self.has_loader else {}
        if self.forward and self.backward and self.optimizing:
            parts |= {"forward": self.forward, "backward": self.backward, "optimizer": self.optimizing}
            parts["other"] = max(train_seconds - sum(parts.values()), 0.0)
        return parts
