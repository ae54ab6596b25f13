"""Seconds of the phases of a step on this rank: medians of up to 20 steps per epoch, from its third step on.

Hooks, clocks and wrappers exist only in these steps, so other steps are not slower. A GPU has no phases."""
from __future__ import annotations

import os
import threading
import time
from contextlib import ExitStack
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from .chain import forgiving, hooked
from .loaders import clock

FIRST, LAST = 1, 22  # steps of an epoch after which the observation begins and ends
COLLECTIVES = ("all_reduce", "all_gather", "all_gather_into_tensor", "all_gather_object", "broadcast", "reduce_scatter_tensor", "barrier")


class Phases:
    """Times steps while `on`. problem: why no more step is timed."""

    def __init__(self, steps: Any):
        self.steps, self.problem, self.on, self.first, self.buffers, self._within = steps, "", False, 0.0, [], False
        self._timed, self._of_epoch, self._hooks = [], [], ExitStack()  # steps of the run and of this epoch: seconds by phase

    @forgiving
    def end_step(self, skipped: bool) -> None:
        if self.on:
            self._measure(skipped)
        if len(self.steps.sizes) == FIRST:
            self._begin()
        elif len(self.steps.sizes) == LAST:
            self.end()

    def begin_epoch(self) -> None:
        self.end()
        self._timed, self._of_epoch = self._timed + (self._of_epoch[1:] or self._of_epoch), []  # the second step only if it is the last

    def end(self) -> None:
        self.on = False
        self._hooks.close()

    def _begin(self) -> None:
        parameters = [each for each in self.steps.inner.parameters() if each.requires_grad]
        if self.steps.wrapper[0] == "fsdp" or not parameters or parameters[0].device.type != "cpu":
            return
        file = os.open(f"/proc/self/task/{threading.get_native_id()}/schedstat", os.O_RDONLY)
        self._hooks.callback(os.close, file)
        self._delay = lambda: int(os.pread(file, 64, 0).split()[1]) / 1e9
        for each in parameters:
            self._hooks.callback(hooked(each, self._on_gradient))
        for owner, name in [*((dist, name) for name in COLLECTIVES), (dist.Work, "wait")] if self.steps.random is not None else ():
            own = vars(owner)[name]
            setattr(owner, name, lambda *args, own=own, **named: self.timed(self._collectives, own, *args, **named))
            self._hooks.callback(setattr, owner, name, own)
        self.on = True
        self._reset(self._read())

    def _reset(self, begin: tuple) -> None:
        self.first = self._ended = self._backward = self._wait = self._idle = 0.0  # first forward pass, end of the last backward()
        self._begun, self._last, self._within = begin, (0.0, 0.0), False  # last gradient
        self.buffers, self._collectives = [], []  # of each call: begin, seconds, those with a core, the pass around it

    def _read(self) -> tuple:
        times = (getattr(self.steps, name) for name in ("data", "forward", "optimizing", "outside"))
        return clock(), *times, self._delay(), time.process_time()

    def _now(self) -> tuple[float, float]:
        """Seconds, and seconds without those in which this thread was ready to run but had no core."""
        now = clock()
        return now, now - self._delay()

    def timed(self, calls: list, function: Any, *args: Any, **named: Any) -> Any:
        """Append the times of this call, if it is not inside of another one."""
        if self._within or not self.on:
            return function(*args, **named)
        self._within, begin = True, self._now()
        result = function(*args, **named)
        self._within, end = False, self._now()
        where = "backward" if self.steps.in_backward else "forward" if self.steps.depth else ""
        calls.append((begin[0], end[0] - begin[0], end[1] - begin[1], where))
        return result

    def _on_gradient(self, gradient: torch.Tensor) -> None:
        self._last = self._now()

    def after_backward(self, begin: float, end: float) -> None:
        self._ended, last = end, end
        if self._last[0] > begin:
            last = self._last[0]
            self._idle += end - self._delay() - self._last[1]
        self._backward += last - begin
        self._wait += end - last

    def _measure(self, skipped: bool) -> None:
        steps, now, buffers = self.steps, self._read(), self.buffers
        step, data, forward, optimizer, outside, delay, processor = (after - before for before, after in zip(self._begun, now))
        seen = self._last[0] and forward and (buffers or steps.wrapper[0] != "ddp")  # a compiled wrapper hides them
        if seen and not skipped and not outside:
            late = [each for each in self._collectives if each[0] >= self._ended]
            early = [each for each in self._collectives if each[0] < self._last[0]]
            first = min([self.first, *(each[0] for each in buffers[:1])])
            inside = {where: sum(each[1] for each in early if each[3] == where) for where in ("forward", "backward")}
            before = first - self._begun[0] - sum(each[1] for each in early if each[0] < first)
            found = {"input" if steps.has_loader else "before": data if steps.has_loader else before,
                     "buffers": sum(each[1] for each in buffers), "collectives": sum(each[1] for each in early),
                     "forward": forward - sum(each[1] for each in buffers if each[3] == "forward") - inside["forward"],
                     "backward": self._backward - inside["backward"], "wait": self._wait + sum(each[1] for each in late),
                     "optimizer": optimizer - sum(each[1] for each in late if each[0] >= steps.step_began)}
            idle = self._idle + sum(each[2] for each in buffers + early + late)
            found |= {"between": step - sum(found.values()), "step": step}
            self._of_epoch.append(found | {"queue_delay": delay, "processor": processor, "own": step - delay - idle})
        self._reset(now)

    def medians(self) -> dict[str, dict[str, float]]:
        """The member "phases", if a step was timed."""
        found = {name: [each[name] for each in self._timed] for name in (self._timed or [{}])[0]}
        medians = {name: float(np.median(values)) for name, values in found.items()}
        return {"phases": {"steps": len(self._timed), **medians, "shortest_wait": float(np.quantile(found["wait"], 0.25))}} if found else {}
