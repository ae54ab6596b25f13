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
from typing import Any

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


class Hook:
    """A hook of modules that calls this method of the active Steps.

    It refers to nothing, so `copy.deepcopy(model)` and `torch.save(model)` work. It does nothing in copies, and in code that
    torch.compile traces."""

    def __init__(self, name: str):
        self.name = name

    def __call__(self, module: torch.nn.Module, *args: Any) -> None:
        if torch.compiler.is_compiling() or active is None:
            return
        if module is active.model or module in active.leaves:
            getattr(active, self.name)(module, *args)


def _wrap_ddp_and_loader() -> None:
    from torch.nn.parallel import DistributedDataParallel as DDP
    make_ddp, make_loader = DDP.__init__, DataLoader.__init__

    @functools.wraps(make_ddp)
    def ddp(self: Any, module: torch.nn.Module, *args: Any, **named: Any) -> None:
        make_ddp(self, module, *args, **named)
        ddp_of[module] = weakref.ref(self)

    @functools.wraps(make_loader)
    def loader(self: Any, *args: Any, **named: Any) -> None:
        make_loader(self, *args, **named)
        self._trainyard_place = loaders.place_of_caller()
    DDP.__init__, DataLoader.__init__ = ddp, loader


def _wrap_fsdp() -> None:
    FSDP = sys.modules["torch.distributed.fsdp"].FullyShardedDataParallel
    make_fsdp, inside = FSDP.__init__, [False]  # of the constructor of an outer one

    @functools.wraps(make_fsdp)
    def fsdp(self: Any, module: torch.nn.Module, *args: Any, **named: Any) -> None:
        nested = inside[0] or any(isinstance(each, FSDP) for each in module.modules())
        whole = not nested and all(parameter.device.type != "meta" for parameter in module.parameters())
        hashes = weight_hashes(module) if whole else {}
        outer, inside[0] = inside[0], True
        try:
            make_fsdp(self, module, *args, **named)
        finally:
            inside[0] = outer
        if hashes:
            hashes_before_sharding[self] = hashes
    FSDP.__init__ = fsdp


def _wrap_functions() -> None:
    backward, scaled_step = torch.autograd.backward, torch.amp.GradScaler.step
    clip, enter = torch.nn.utils.clip_grad.clip_grad_norm_, torch.amp.autocast_mode.autocast.__enter__

    @functools.wraps(backward)
    def timed_backward(*args: Any, **named: Any) -> Any:
        if active is None:
            return backward(*args, **named)
        begin = loaders.clock()
        try:
            return backward(*args, **named)
        finally:
            active.after_backward(begin)

    @functools.wraps(scaled_step)
    def step(self: Any, optimizer: Any, *args: Any, **named: Any) -> Any:
        if active is None or not self.is_enabled() or all(each is not optimizer for each in active.optimizers):
            return scaled_step(self, optimizer, *args, **named)
        active.scaler = self
        stepped = active.stepped
        result = scaled_step(self, optimizer, *args, **named)
        if active.stepped == stepped:  # optimizer.step() was not called at all
            active.skipped(optimizer)
        return result

    @functools.wraps(clip)
    def clip_grad_norm(parameters: Any, max_norm: Any, *args: Any, **named: Any) -> Any:
        if active is not None:
            active.clip_norms.add(float(max_norm))
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


_wrap_ddp_and_loader()
_wrap_functions()
if "torch.distributed.fsdp" in sys.modules:  # its import takes half a second
    _wrap_fsdp()
