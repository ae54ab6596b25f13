"""Wrappers of functions and classes of torch, made once when trainyard is imported. Without an active run they only pass on.

- DistributedDataParallel can wrap the model after trainyard.start().
- FullyShardedDataParallel replaces the parameters, so their first values are hashed before, if it is imported before trainyard.
- torch.autograd.backward is timed, and GradScaler.step can skip a step.
- Norms for clipping and autocast regions are seen if they are called through torch."""
from __future__ import annotations

import functools
import math
import sys
import weakref
from typing import Any, Callable

import torch
import torch.nn.utils.clip_grad
from torch.utils.data import DataLoader

from . import loaders, samples

active: Any = None  # the Steps of the run of this process
ddp_of: "weakref.WeakKeyDictionary[torch.nn.Module, weakref.ref]" = weakref.WeakKeyDictionary()  # by the wrapped module
hashes_before_sharding: "weakref.WeakKeyDictionary[torch.nn.Module, dict[str, str]]" = weakref.WeakKeyDictionary()


def weight_hashes(model: torch.nn.Module) -> dict[str, str]:
    """The first 15 digits of the SHA-256 of each parameter by name. A collective operation if parameters are sharded."""
    return {name: samples.sha(samples.raw(parameter))[:15] for name, parameter in model.named_parameters()}


def observe_leaf(module: torch.nn.Module, args: tuple, output: Any) -> None:
    """A hook of layers: remembers the dtype of what they return in the first forward pass.

    It refers to nothing, so `copy.deepcopy(model)` and `torch.save(model)` work. It does nothing in copies, and in code that
    torch.compile traces."""
    if torch.compiler.is_compiling() or active is None or not active.depth or module not in active.leaves:
        return
    if isinstance(output, torch.Tensor) and module.training and torch.is_grad_enabled():
        active.dtypes.add(output.dtype)


def observe_calls(model: torch.nn.Module) -> Callable[[], None]:
    """Let the active Steps see each call of this model, by a subclass of its class, and return what ends this.

    Copies and files have the class itself. Hooks of torch would cost 8 µs more per step."""
    own = type(model)

    def call(self: Any, *args: Any, **named: Any) -> Any:
        if torch.compiler.is_compiling() or active is None or self is not active.model:
            return own.__call__(self, *args, **named)
        steps, output = active, None
        args, named = steps.before_forward(args, named)
        try:
            output = own.__call__(self, *args, **named)
            return output
        finally:
            steps.after_forward(output)

    def reduced(self: Any, protocol: Any) -> Any:
        make, args, *rest = own.__reduce_ex__(self, protocol)
        return make, tuple(own if each is observed else each for each in args), *rest
    observed = type(own)(own.__name__, (own,), {"__call__": call, "__reduce_ex__": reduced, "__module__": own.__module__,
                                                "__class__": property(lambda self: own, loaders.set_class)})
    loaders.set_class(model, observed)
    return lambda: loaders.set_class(model, own) if type(model) is observed else None


def _wrap_ddp_and_loader() -> None:
    from torch.nn.parallel import DistributedDataParallel as DDP
    make_ddp, before_forward, make_loader = DDP.__init__, getattr(DDP, "_pre_forward", None), DataLoader.__init__

    @functools.wraps(make_ddp)
    def ddp(self: Any, module: torch.nn.Module, *args: Any, **named: Any) -> None:
        make_ddp(self, module, *args, **named)
        ddp_of[module] = weakref.ref(self)

    @functools.wraps(before_forward)
    def broadcast(self: Any, *args: Any, **named: Any) -> Any:
        if active is None or torch.compiler.is_compiling():
            return before_forward(self, *args, **named)
        return active.phases.timed(active.phases.buffers, before_forward, self, *args, **named)

    @functools.wraps(make_loader)
    def loader(self: Any, *args: Any, **named: Any) -> None:
        make_loader(self, *args, **named)
        self._trainyard_place = loaders.place_of_caller()
    DDP.__init__, DDP._pre_forward, DataLoader.__init__ = ddp, broadcast, loader


def _wrap_fsdp() -> None:
    FSDP = sys.modules["torch.distributed.fsdp"].FullyShardedDataParallel
    make_fsdp = FSDP.__init__

    @functools.wraps(make_fsdp)
    def fsdp(self: Any, module: torch.nn.Module, *args: Any, **named: Any) -> None:
        whole = not any(isinstance(each, FSDP) for each in module.modules())
        hashes = weight_hashes(module) if whole and all(each.device.type != "meta" for each in module.parameters()) else {}
        make_fsdp(self, module, *args, **named)
        if hashes:
            hashes_before_sharding[self] = hashes
    FSDP.__init__ = fsdp


def _wrap_functions() -> None:
    backward, scaled_step = torch.autograd.backward, torch.amp.GradScaler.step
    clip, enter = torch.nn.utils.clip_grad.clip_grad_norm_, torch.amp.autocast_mode.autocast.__enter__

    @functools.wraps(backward)
    def timed_backward(*args: Any, **named: Any) -> Any:
        steps = active
        if steps is None or steps.in_backward:  # checkpoints of activations call it inside of a backward pass
            return backward(*args, **named)
        if steps.chain is not None:
            steps.chain.before_backward(args, named)
        steps.in_backward, begin = True, loaders.clock()
        try:
            return backward(*args, **named)
        finally:
            steps.after_backward(begin)

    @functools.wraps(scaled_step)
    def step(self: Any, optimizer: Any, *args: Any, **named: Any) -> Any:
        if active is None or not self.is_enabled() or all(each is not optimizer for each in active.optimizers):
            return scaled_step(self, optimizer, *args, **named)
        active.scaler = self
        if active.chain is not None and self._per_optimizer_states[id(optimizer)]["stage"].name == "UNSCALED":
            active.chain.scaled = False
        stepped = active.stepped
        result = scaled_step(self, optimizer, *args, **named)
        if active.stepped == stepped:  # optimizer.step() was not called at all
            active.skipped(optimizer)
        return result

    @functools.wraps(clip)
    def clip_grad_norm(parameters: Any, max_norm: Any, *args: Any, **named: Any) -> Any:
        if active is not None:
            active.clip_norms.add(float(max_norm))
            if active.chain is not None and active.chain.hooks:
                active.chain.take()
        norm = clip(parameters, max_norm, *args, **named)
        if active is not None and active.watches() and type(norm) is torch.Tensor:  # not sharded
            active.clipped_from = float(norm) if active.clipped_from is None else math.nan  # several parts: not known
        return norm

    @functools.wraps(enter)
    def enter_autocast(self: Any) -> Any:
        if active is not None and active.depth and self._enabled:
            active.dtypes.add(self.fast_dtype)
        return enter(self)
    torch.autograd.backward, torch.amp.GradScaler.step = timed_backward, step
    torch.nn.utils.clip_grad_norm_ = torch.nn.utils.clip_grad.clip_grad_norm_ = clip_grad_norm
    torch.amp.autocast_mode.autocast.__enter__ = enter_autocast


def _wrap_schedulers(kind: type) -> None:
    """Count step() of this class and its subclasses. That of a scheduler inside of another one does not count."""
    for each in kind.__subclasses__():
        _wrap_schedulers(each)
    if (own := vars(kind).get("step")) is None:
        return

    @functools.wraps(own)
    def step(self: Any, *args: Any, **named: Any) -> Any:
        steps, optimizer, initial = active, getattr(self, "optimizer", None), getattr(self, "_is_initial", False)  # by its constructor
        if steps is None or initial or all(each is not getattr(optimizer, "optimizer", optimizer) for each in steps.optimizers):
            return own(self, *args, **named)
        before, result = steps.scheduler_steps, own(self, *args, **named)
        steps.scheduler_steps = before + 1
        return result
    kind.step = step


_wrap_ddp_and_loader()
_wrap_functions()
_wrap_schedulers(torch.optim.lr_scheduler.LRScheduler)
torch.optim.lr_scheduler.LRScheduler.__init_subclass__ = classmethod(_wrap_schedulers)  # of later ones
if "torch.distributed.fsdp" in sys.modules:  # its import takes half a second
    _wrap_fsdp()
