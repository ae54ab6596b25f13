"""Observes the steps of a training: forward, backward, optimizer, the samples of each step, and seconds.

Hooks of torch call the methods here. Nothing is computed in a step that can wait until the end of the epoch."""
from __future__ import annotations

import weakref
from typing import Any, Callable

import numpy as np
import torch

from . import patches, ranks, samples
from .chain import Chain
from .phases import LAST, Phases
from .loaders import clock

WATCHED = 3  # steps with gradient norms, and batches per epoch with a hash of their inputs
COUNTED = ("first_rates largest_step norms steps skipped_steps scheduler_steps first_rows gradient_bytes without_gradient "
           "train_mode_passes eval_steps uncleared").split()  # in a resumed run


def unwrapped(model: torch.nn.Module) -> torch.nn.Module:
    """The module inside of torch.compile, DistributedDataParallel, DataParallel and FullyShardedDataParallel."""
    wraps = type(model).__name__ in ("DistributedDataParallel", "DataParallel", "FullyShardedDataParallel")
    inner = model.module if wraps else getattr(model, "_orig_mod", None)
    return unwrapped(inner) if isinstance(inner, torch.nn.Module) else model


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
        self.on_probed: Callable[[], None] = lambda: None  # called after the last step of the probe
        self.probe: Any = None
        self.depth = self.stepped = self.steps = self.skipped_steps = self.backwards = 0
        self.largest_step = self.most_forwards = self.scheduler_steps = self.first_rows = self.gradient_bytes = 0
        self.chain: Chain | None = Chain(self)  # of the first epochs
        self.random: dict[str, list] | None = {} if ranks.number() > 1 else None  # states of random numbers before and after
        self._graded, self.eval_steps = False, 0  # of forward passes in eval() mode that keep gradients
        self.train_mode_passes = 0  # without gradients
        self.without_gradient: list[str] = []  # parameters at step 1
        self.uncleared = False  # whether a step added its gradients to those of the step before it
        self.wrapper: tuple[str, Any] = ("", None)  # of the gradients: terms.wrapper_of
        self.phases = Phases(self)
        self.scaler: Any = None
        self.clip_norms: set[float] = set()
        self.clipped_from: float | None = None  # norm of the gradient before it was clipped
        self.dtypes: set[torch.dtype] = set()  # inside of forward
        self.dtypes_known = False
        self.norms: list[dict[str, float]] = []
        self.first_rates = self._rates = []
        self.on_output: Callable[[dict[str, Any], Any, bool], None] | None = None  # named inputs, output, training
        self.on_log: Callable[[str, Any, Any], None] = lambda *_: None  # of a trainer: name, value, samples or None
        self._inputs: dict[str, Any] = {}
        self._began = self._trains = self._skips = self._closure = self.in_backward = False
        self.pending: list[tuple] = []  # (rows, samples, ids) of batches before their step
        self.rows = 0                   # of forward passes since the last step
        self._source: Any = None        # iterator of the loader
        self._paused: weakref.WeakKeyDictionary[Any, list[tuple]] = weakref.WeakKeyDictionary()  # what others have read ahead
        self.begin_epoch()
        self.leaves = set(eager_leaves(model))
        self._of_leaves = [each.register_forward_hook(patches.observe_leaf) for each in self.leaves]
        self._end_calls, self._hooks = patches.observe_calls(model), []
        for optimizer in optimizers:
            self._hooks += [optimizer.register_step_pre_hook(self._before_step), optimizer.register_step_post_hook(self._after_step)]

    def close(self) -> None:
        """Remove all hooks."""
        self._end_calls()
        for each in (self.phases, self.chain):
            each and each.end()
        for hook in self._hooks + self._of_leaves:
            hook.remove()

    def begin_epoch(self) -> None:
        self.pending = self._in_use()[1]
        if self.chain is not None:
            self.chain.begin_epoch()
        self.phases.begin_epoch()
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

    def on_batch(self, source: Any, batch: Any, indices: np.ndarray | None, seconds: float) -> Any:
        """The script waited so long for a batch of the iterator `source`. Returns what it gets."""
        if self.random is not None and len(self.random.get("fetch", "")) == 1:
            self.random["fetch"].append(samples.random_states())
        if source is not self._source:  # another pass over the data, perhaps inside of one that continues later
            in_use, unused = self._in_use()
            if self._source is not None:
                self._paused[self._source] = unused
            self.pending = in_use + self._paused.pop(source, [])
            self._source, self._ahead = source, None
        if self.evaluating_since is not None:
            self.end_validation(clock() - seconds)
        self.data += seconds
        if self.probe is not None:
            batch, indices = self.probe.batch(batch), None
        self._add(samples.first_tensor(batch), indices)
        return batch

    def _add(self, tensor: torch.Tensor | None, indices: np.ndarray | None) -> None:
        rows = tensor.size(0) if tensor is not None else 0
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
        rows = number = 0
        while number < len(self.pending) and rows < self.rows:
            rows += self.pending[number][0]
            number += 1
        return self.pending[:number], self.pending[number:]

    # --- hooks of the model

    def before_forward(self, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        """Returns what the model gets."""
        self.depth += 1
        if self.depth > 1:
            return args, kwargs
        self._forward_began = now = clock()
        if self.on_output is not None:
            self._inputs = kwargs
        self._trains = self.model.training and torch.is_grad_enabled()
        if not self._trains:
            self._graded = self._graded or torch.is_grad_enabled()
            self.train_mode_passes += self.model.training
            if self.evaluating_since is None:
                self.evaluating_since = self.trained
            return args, kwargs
        self.end_validation(now)
        if not self._began:
            self._begin()
            self._forward_began = clock()
        if self.probe is not None and not self.has_loader:
            args, kwargs = self.probe.batch((args, kwargs))
        tensor = samples.first_tensor((args, kwargs))
        self.rows += tensor.size(0) if tensor is not None else 0
        self.forwards += 1
        if not self.has_loader:
            self.phases.first = self.phases.first or self._forward_began
            self._add(tensor, None)
        return args, kwargs

    def after_forward(self, output: Any) -> None:
        if not self.depth:
            return
        self.depth -= 1
        if self.depth:
            return
        if self._trains:
            self.forward += clock() - self._forward_began
            if not self.dtypes_known and output is not None:
                self._end_of_first(output)
        if self.on_output is not None and output is not None:
            self.on_output(self._inputs, output, self._trains)
            self._inputs = {}

    def _begin(self) -> None:
        self._began, begin = True, clock()
        self.dtypes.clear()
        kind = next(self.inner.parameters()).device.type
        if torch.is_autocast_enabled(kind):
            self.dtypes.add(torch.get_autocast_dtype(kind))
        self.on_first()
        if self.probe is not None:
            self.probe.begin()
        if self.chain is not None:
            self.chain.begin()
        if self.random is not None:
            self.random["forward"] = [samples.random_states(next(self.inner.parameters()).device)]
        self.outside += clock() - begin

    def _end_of_first(self, output: Any) -> None:
        """After the first forward pass: which dtypes it used."""
        if self.random is not None and self.forwards == 1 and not self.stepped:
            self.random["forward"].append(samples.random_states(next(self.inner.parameters()).device))
        self.first_rows = self.first_rows or self.rows
        compiled = [module for module in self.model.modules() if is_compiled(module)]
        saved = compiled_dtypes(output) if compiled else set()
        self.dtypes |= saved
        self.dtypes_known = bool(saved) if compiled else any(dtype.is_floating_point for dtype in self.dtypes)
        if not self.dtypes_known:
            why = "torch.compile hides" if compiled else "no layer shows"
            self.missing.setdefault("precision", f"{why} which number format the layers use")
        self.dtypes_known, self.leaves = True, set()
        for hook in self._of_leaves:
            hook.remove()

    # --- backward and optimizer

    def after_backward(self, begin: float) -> None:
        self.trained = now = clock()
        self.in_backward = False
        self.backward += now - begin
        self.backwards += 1
        if self.phases.on:
            self.phases.after_backward(begin, now)

    def _before_step(self, optimizer: torch.optim.Optimizer, args: tuple, kwargs: dict[str, Any]) -> None:
        if not self._began:
            self._begin()
        self.step_began, self._parts = clock(), self.forward + self.backward  # a closure runs both again
        self._note_rates(optimizer)
        if self.probe is not None:
            self.probe.hold(optimizer)
        self._closure = (args[1] if len(args) > 1 else kwargs.get("closure")) is not None  # makes the gradients in step()
        if self.chain is not None and self.chain.hooks and not self._closure:
            self.chain.take(optimizer)
        if optimizer is self.optimizers[-1]:
            found = getattr(optimizer, "found_inf", None) if self.scaler is not None else None  # fused ones skip by themselves
            self._skips = found is not None and bool(found)
            if self.watches() and not self._closure:
                self._watch_gradients(optimizer)

    def _note_rates(self, optimizer: torch.optim.Optimizer) -> None:
        before = [] if optimizer is self.optimizers[0] else self._rates
        self._rates = before + [float(group["lr"]) for group in optimizer.param_groups]

    def _watch_gradients(self, optimizer: torch.optim.Optimizer) -> None:
        gradients = [each.grad.detach() for each in self.inner.parameters() if each.grad is not None]
        gradients = [each.to_local() if hasattr(each, "to_local") else each for each in gradients]
        gradients = [each.coalesce().values() if each.is_sparse else each for each in gradients]
        if not self.steps and self.wrapper[0] != "fsdp":
            self.without_gradient = [name for name, each in self.inner.named_parameters() if each.grad is None]
            self.gradient_bytes = sum(each.numel() * each.element_size() for each in gradients)
        scale = getattr(optimizer, "grad_scale", None)  # fused optimizers get scaled gradients
        norm = float(torch.stack([each.norm().float().cpu() for each in gradients]).norm()) if gradients else 0.0
        found = {"step": self.steps + 1, "at_step": norm / float(scale) if scale is not None else norm}
        if self.clipped_from is not None:
            found["before_clipping"], self.clipped_from = self.clipped_from, None
        self.norms.append(found)

    def watches(self) -> bool:
        """Whether the gradients of this step are measured."""
        return len(self.norms) < WATCHED

    def _after_step(self, optimizer: torch.optim.Optimizer, args: tuple, kwargs: dict[str, Any]) -> None:
        self.trained = now = clock()
        self.optimizing += now - self.step_began - (self.forward + self.backward - self._parts)
        self.stepped += 1
        if optimizer is self.optimizers[-1]:
            if self.watches() and self._closure:
                self._watch_gradients(optimizer)
            self._close(self._skips)

    def skipped(self, optimizer: torch.optim.Optimizer) -> None:
        """A GradScaler has not called the optimizer, because a gradient is not finite."""
        self._note_rates(optimizer)
        if optimizer is self.optimizers[-1]:
            self._close(True)

    def _close(self, skipped: bool) -> None:
        """The step ends: the batches of its forward passes belong to it. A loader that runs ahead keeps the others."""
        batches, self.pending = self._in_use()
        rows = size = 0
        for batch in batches:
            rows += batch[0]
            size += batch[1]
        if not self.rows and self._graded:
            self.eval_steps += 1
            self.missing.setdefault("batches", "the model is in eval() mode in a step: call model.train() before each epoch")
            self.pending = []
        elif not self.rows:
            self.missing.setdefault("batches", "no forward pass of the model was seen: give trainyard.start() the model that the "
                                    "script calls, after torch.compile and copies")
            self.pending = []
        elif rows != self.rows:
            self._explain(len(batches), rows)
        if self._ahead is not None and len(self.pending) > self._ahead:
            self.missing.setdefault("batches", "the script left out a batch of the loader")
        self._ahead = len(self.pending)
        self.taken.append([batch[2] for batch in batches])
        self.sizes.append(size)
        self.most_forwards = max(self.most_forwards, self.forwards)
        self.rows = self.forwards = 0
        self._graded = False
        if skipped:
            self.skipped_steps += 1
            self.epoch_skipped += 1
        else:
            self.steps += 1
            self.rates.append(self._rates)
            self.first_rates = self.first_rates or self._rates
        if self.chain is not None:
            self.chain.close(skipped)
        if len(self.sizes) <= LAST:
            self.phases.end_step(skipped)
        if self.probe is not None and self.probe.end_step(len(batches)):
            self.on_probed()

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
        if next(self.inner.parameters()).device.type != "cpu":
            return {}
        parts = {"data": self.data} if self.has_loader else {}
        if self.forward and self.backward and self.optimizing:
            parts |= {"forward": self.forward, "backward": self.backward, "optimizer": self.optimizing}
            parts["other"] = max(train_seconds - sum(parts.values()), 0.0)
        return parts
