"""One recorded run: the calls of the script, and the records that follow from what was observed."""
from __future__ import annotations

import atexit
import itertools
import json
import math
import os
import re
import sys
import time
from pathlib import Path
from typing import Any, Iterable, Iterator

import torch
from torch.utils.data import DataLoader

from . import batches, checkpoints, patches, probe, ranks, samples, terms
from .evidence import Evidence
from .loaders import Loader
from .records import Records
from .steps import COUNTED, Steps

_TAKEN = ("loss correct accuracy perplexity bleu psnr r2 rmse part1 part2 part3 target square deviation bleu_1 bleu_2 bleu_3 bleu_4 "
          "bleu_length seconds total_seconds processor_seconds energy").split()  # names that trainyard has
RATES = 100  # first epochs whose learning rates explain sees
_PEER_ENDED = ("Connection closed by peer", "Connection reset by peer", "Broken pipe")


def start(model: torch.nn.Module, optimizer: torch.optim.Optimizer | Iterable[torch.optim.Optimizer], *, loader: Any = None,
          scheduler: Any = None, data: str | Path | Iterable[str | Path] | None = None, state: Iterable[Any] = (),
          hash_contents: bool = True) -> Run:
    """Begin to record the training of `model`. Call it once, after the model, the optimizer and the ranks are set up.

    model: the module that the script calls, after torch.compile. optimizer: one or several; the last one ends a step.
    loader: of training. scheduler: of the learning rate, for checkpoints. data: files with the data, if it
    has no index. state: further objects with `state_dict` that a resumed run needs, as a GradScaler. hash_contents: name
    samples without index by a hash of their content.

    RuntimeError if it is called twice, or if several ranks have no rendezvous."""
    if patches.active is not None:
        raise RuntimeError("trainyard.start() was called before in this process: finish that run first with run.finish()")
    optimizers = [optimizer] if isinstance(optimizer, torch.optim.Optimizer) else list(optimizer)
    optimizers = [getattr(each, "optimizer", each) for each in optimizers]  # those of Accelerate and Lightning have no hooks
    if not optimizers:
        raise ValueError("trainyard.start() needs an optimizer")
    if next(model.parameters(), None) is None:
        raise ValueError("trainyard.start() got a model without parameters")
    return Run(model, optimizers, loader, scheduler, data, list(state), hash_contents)


class Run:
    """The run of this process. `info` has the members of run.json, among them `seed`, `axes` and `work`. `steps` is for trainers."""

    def __init__(self, model: torch.nn.Module, optimizers: list[torch.optim.Optimizer], loader: Any, scheduler: Any, data: Any,
                 state: list[Any], hash_contents: bool):
        self._seed = torch.initial_seed()
        self._records = Records(self._seed)
        self.info, self.rank, self.world = self._records.info, self._records.rank, self._records.world
        self._start = time.monotonic()
        self._members = {"pid": os.getpid(), "world_size": self.world, "replica": self.rank, "stage": 0,
                         "versions": {"libtorch": torch.__version__}, **self._records.now()}
        self._records.write("start", **self._members)
        observed = isinstance(loader, DataLoader)  # samples of another loader are named by their content
        self.steps = Steps(model, optimizers, observed, hash_contents)
        self.steps.on_first = self._before_first_step
        if probe.FOLDER in os.environ:
            self.steps.probe, self.steps.on_probed = probe.Probe(self.steps, self.rank, self.world), self._end_probe
        self._scheduler, self._state = scheduler, state
        self._terms: dict[str, Any] = {}
        self._declared: dict[str, Any] = {}
        self._own: dict[str, dict[str, str]] = {}  # definitions of metrics of the script
        self._sums: dict[tuple[str, str], list[float]] = {}  # by phase and name
        self._rates: list[str] = []  # hash by epoch
        self._evidence = Evidence(self.steps)
        self._constant, self._epoch, self._ended, self._divided, self._averaged = True, 0, False, False, self.world == 1
        self._fingerprint(loader, data)
        self._loader: Loader | None = None
        if observed:
            self._observe(loader)
        patches.active = self.steps
        self.begin_epoch()
        atexit.register(self._at_exit)
        self._hook, sys.excepthook = sys.excepthook, self._on_exception

    # --- calls of the script

    def epochs(self, number: int | None = None) -> Iterator[int]:
        """The epochs from 0, as `range(number)`. The number of the experiment file takes precedence.

        With `checkpoint = "epoch"` in the file, a resumed run restores its state and continues after the last checkpoint."""
        wanted = self.info.get("epochs") or number
        if wanted is None:
            raise ValueError("run.epochs() needs the number of epochs, because no experiment file states it")
        if number is not None and number != wanted:
            self.steps.notes["epochs"] = f"the script asks for {number} epochs, and the experiment file for {wanted}"
        if self.steps.probe is not None:
            yield from itertools.count()  # until its last step
        folder = Path(self.info["checkpoints"]) if self.info.get("checkpoints") else None
        if self.info.get("resumes_after_epoch"):
            self._resume(Path(self.info["checkpoints"]), self.info["resumes_after_epoch"])
        for epoch in range(self._epoch, wanted):
            self.begin_epoch()
            yield epoch
            saves = folder is not None and self._can_save()
            if saves:
                checkpoints.save_random(folder, epoch + 1, self.rank)
            self.end_epoch(epoch + 1)
            if saves and self.rank == 0:
                checkpoints.save(folder, epoch + 1, self._parts(), self._remembered())
                self._records.write("checkpoint", epoch=epoch + 1)

    def batches(self, loader: DataLoader) -> DataLoader:
        """Return the loader of training, which then gives this rank its part of each batch: docs/python.md.

        Only the first call changes it. TypeError if it is not a DataLoader, ValueError if it is another one or cannot be divided."""
        if self._loader is not None and self._loader.loader is not loader:
            raise ValueError("run.batches() got another DataLoader than trainyard.start() or an earlier call: divide only that of training")
        if self._divided:
            return loader
        begin = time.perf_counter()
        if self._loader is not None:
            self._loader.close()
        message = batches.divide(loader, self.info["seed"], self.rank, self.world, lambda: self._epoch)
        if message and self.rank == 0:
            self._records.write("message", level="info", text=message)
        self._divided = self.steps.has_loader = True
        self._observe(loader)
        if self.steps.missing.pop("data_fingerprint", ""):
            self._fingerprint(loader, None)
        self.steps.outside += time.perf_counter() - begin
        return loader

    def add(self, name: str, sum: Any, count: float, phase: str = "train") -> None:
        """Add to a metric of this epoch: the sum over `count` samples of this rank, never a mean. "correct" counts hits."""
        entry = self._sums.setdefault((phase, name), [0.0, 0])
        if type(sum) is not float:
            sum = sum.detach().double() if getattr(sum, "is_cuda", False) else float(sum)  # do not wait for a GPU
        entry[0] = entry[0] + sum
        entry[1] += count
        if self.steps.chain is not None and name == "loss" and phase == "train":
            self.steps.chain.add(count)

    def validation(self, name: str, sum: Any, count: float) -> None:
        """The same for validation."""
        self.add(name, sum, count, "validation")

    def test(self, name: str, sum: Any, count: float) -> None:
        """The same for the test after training."""
        self.add(name, sum, count, "test")

    def metric(self, name: str, value: Any, *, better: str, unit: str = "", combine: str = "mean", phase: str = "train") -> None:
        """Record a metric of one's own in this epoch, or in the test. The mean of all calls in an epoch counts.

        name: a-z 0-9 _. better: "higher" or "lower". unit: "1/s", "s" … are judged as times. combine: of ranks, "mean" or "sum".
        ValueError if a metric of this name was recorded with another unit, direction or combination."""
        if better not in ("higher", "lower") or combine not in ("mean", "sum") or phase not in ("train", "validation", "test"):
            raise ValueError(f'run.metric("{name}") needs better="higher" or "lower", combine="mean" or "sum", and a phase')
        if not re.fullmatch("[a-z][a-z0-9_]{0,39}", name) or name in _TAKEN or (name not in self._own and (phase, name) in self._sums):
            raise ValueError(f'run.metric("{name}"): a name is a-z 0-9 _, at most 40, and none of trainyard or of run.add()')
        if phase == "test" and (unit.endswith("/s") or unit in ("s", "ms", "us", "min", "h")):
            raise ValueError(f'run.metric("{name}"): a metric in {unit} is judged as a time of epochs, so it has no phase "test"')
        definition = {"unit": unit, "better": better, "combine": combine}
        if self._own.setdefault(name, definition) != definition:
            raise ValueError(f'run.metric("{name}") was called before with {self._own[name]}, and now with {definition}')
        self.add(name, value, 1, phase)

    def declare(self, **declared: Any) -> None:
        """State terms that cannot be observed. An observed value takes precedence."""
        self._declared |= declared

    def end_epoch(self, number: int) -> None:
        """Record the epoch with this number, from 1. For scripts without `run.epochs()`: all ranks call it, in order."""
        steps = self.steps
        if steps.probe is not None and not steps.probe.ended:
            return
        if next(steps.inner.parameters()).is_cuda:
            torch.cuda.synchronize()
        now = time.perf_counter()
        validated = any(phase == "validation" for phase, _ in self._sums)
        if steps.evaluating_since is None and validated and not steps.validating:
            steps.evaluating_since = steps.trained  # by a module that is not observed
        steps.end_validation(now)
        train_seconds = max(now - steps.began - steps.validating - steps.outside, 0.0)
        if steps.forwards:
            steps.notes.setdefault("rest", f"{steps.forwards} forward passes after the last step of epoch {number}")
        rates = samples.sha(json.dumps(steps.rates).encode())
        self._constant = self._constant and all(each == steps.first_rates for each in steps.rates)
        self._rates.append(rates)
        extra: dict[str, Any] = {"steps": len(steps.rates), "skipped_steps": steps.epoch_skipped, "inputs": steps.inputs,
                                 "samples": sum(steps.sizes), "learning_rate_hash": rates}
        if steps.rates:
            extra["learning_rates"] = [steps.rates[0][0], steps.rates[-1][0]]
            self._evidence.found.setdefault("learning_rates", []).extend(extra["learning_rates"] if number <= RATES else [])
        if order := self._batches(number):
            extra["batches"] = order
        self._records.write("epoch", epoch=number, train_seconds=train_seconds, validation_seconds=steps.validating,
                            seconds=steps.seconds(train_seconds), metrics=self._metrics(test=False), **extra)
        self._epoch = number
        self.begin_epoch()

    def begin_epoch(self) -> None:
        """Begin an epoch later than the last one ended, so that the time between them is not counted."""
        if self.steps.probe is not None and self.steps.sizes:
            return
        if not self._rates:
            self._setup = time.monotonic() - self._start
        self._sums = {key: entry for key, entry in self._sums.items() if key[0] == "test"}
        self.steps.begin_epoch()

    def begin_validation(self) -> None:
        """Drop the sums of an earlier validation in this epoch, because the last one counts."""
        self._sums = {key: entry for key, entry in self._sums.items() if key[0] != "validation"}
        self.steps.evaluating_since = self.steps.evaluating_since or time.perf_counter()

    def check_epochs(self, number: float, where: str) -> None:
        """ValueError if the experiment file has another number of epochs than a trainer."""
        if self.steps.probe is None and self.info.get("epochs", number) != number:
            raise ValueError(f"{where}={number}, and the experiment file epochs = {self.info['epochs']}: make them equal")

    def finish(self) -> None:
        """End the run. Without it the run has not finished."""
        if self._ended:
            return
        if self.steps.probe is not None and not self.steps.probe.ended:
            raise ValueError(f"trainyard: the probe needs {probe.STEPS} steps of the optimizer, and the script ends before")
        self._records.write("start", **self._members, **self._final_terms(), observed=self._observed(),
                            **({"metrics": self._own} if self._own else {}))
        if late := sorted({name for phase, name in self._sums if name in self._own and phase != "test"}):
            text = f'run.metric() of {", ".join(late)} after the last epoch is not recorded: call it in the epoch, or with phase="test"'
            self._records.write("message", level="warning", text=text)
        advice = self._loader.advice(len(self._rates)) if self._loader is not None and self.rank == 0 else ""
        if advice:
            self._records.write("message", level="info", text=advice)
        lacking = {name: why for name, why in self.steps.missing.items() if name not in self._declared and name in terms.REQUIRED}
        if lacking and self.rank == 0:
            text = "; ".join(f"{name} was not observed: {why}" for name, why in lacking.items())
            self._records.write("message", level="warning", text=text)
        if tested := self._metrics(test=True):
            self._records.write("test", metrics=tested)
        self._end("finished")

    def _end_probe(self) -> None:
        self.end_epoch(1)
        self.finish()
        probe.leave()

    # --- the parts of an epoch

    def _metrics(self, test: bool) -> list[dict[str, Any]]:
        """Those of the test, or the others. Metrics of the script are means over calls."""
        return [{"phase": phase, "name": name, "sum": float(total) / (count if name in self._own else 1),
                 "weight": 1 if name in self._own else count}
                for (phase, name), (total, count) in self._sums.items() if (phase == "test") == test]

    def _observe(self, loader: DataLoader) -> None:
        self._loader = Loader(loader, self.steps.on_batch, self.steps.random)
        if self._loader.problem:
            self.steps.missing["batches"] = self._loader.problem

    def _batches(self, number: int) -> str | None:
        """The hash of the data order on rank 0, if all ranks have observed it. Also learns the global batch."""
        steps = self.steps
        if not steps.sizes:
            steps.missing.setdefault("batches", "no optimizer step was seen: is another model or optimizer trained than "
                                     "trainyard.start() got?")
        mine = {"sums": samples.step_sums(steps.taken), "sizes": steps.sizes, "norms": [each["at_step"] for each in steps.norms],
                "missing": {name: steps.missing[name] for name in ("batches", "global_batch") if name in steps.missing},
                "evidence": self._evidence.mine(number, data=self._terms.get("data_fingerprint"), rates=self._rates[-1])}
        try:
            texts = ranks.gathered(f"{self.info['run']}/{number}", json.dumps(mine))
        except (RuntimeError, OSError) as error:  # a peer has ended, or there is no rendezvous
            steps.missing.setdefault("batches", f"the samples of the other ranks did not arrive: {str(error).splitlines()[0]}")
            return None
        if texts is None:
            return None
        of_ranks = [json.loads(text) for text in texts]
        for each in reversed(of_ranks):
            steps.missing |= each["missing"]
        if len({len(each["sizes"]) for each in of_ranks}) > 1:
            steps.missing.setdefault("batches", "the ranks made different numbers of steps")
        if any(len(each["sums"]) < len(steps.sizes) for each in of_ranks):
            steps.missing.setdefault("batches", "a step without samples was seen")
        self._learn_global_batch(of_ranks)
        self._evidence.learn(number, [each["evidence"] for each in of_ranks], [each["sizes"] for each in of_ranks])
        return samples.order_hash(each["sums"] for each in of_ranks) if "batches" not in steps.missing else None

    def _learn_global_batch(self, of_ranks: list[dict[str, Any]]) -> None:
        """The largest step over all ranks. Ranks have one batch only if their gradients are averaged."""
        norms = [step for step in zip(*(each["norms"] for each in of_ranks)) if all(map(math.isfinite, step))]
        equal = all(max(step) - min(step) <= 1e-4 * max(step) for step in norms)
        self._averaged = self.world == 1 or terms.wrapper_of(self.steps)[0] == "fsdp" or bool(norms) and equal
        if not self._averaged:
            self.steps.missing["global_batch"] = "the gradients of the ranks differ at the step, so they are not averaged"
        sizes = [sum(step) for step in zip(*(each["sizes"] for each in of_ranks))]
        self.steps.largest_step = max([self.steps.largest_step, *sizes])

    # --- terms

    def _fingerprint(self, loader: Any, data: Any) -> None:
        found, why = (samples.files_fingerprint(data), "") if data is not None else samples.dataset_fingerprint(getattr(loader, "dataset", None))
        if found is None:
            self.steps.missing["data_fingerprint"] = why
        else:
            self._terms["data_fingerprint"] = found

    def _before_first_step(self) -> None:
        self.steps.wrapper = terms.wrapper_of(self.steps)
        if "initial_weights" not in self._terms and "initial_weights" not in self.steps.missing:
            hashes = terms.initial_weights(self.steps)
            if hashes and self.rank == 0:  # DDP copies the parameters of rank 0 to the others
                self._terms["initial_weights"] = hashes
        self._terms |= terms.optimizer_terms(self.steps.optimizers)

    def _final_terms(self) -> dict[str, Any]:
        steps, found = self.steps, dict(self._terms)
        if steps.steps + steps.skipped_steps:
            found |= {name: value for name, value in terms.terms_of_model(steps, self.rank).items() if name not in found}
        if self._epoch:
            found["epochs"] = self._epoch
        if steps.first_rates:
            found["learning_rate"] = terms.one_or_all(steps.first_rates)
            varying = f"varying {samples.sha(json.dumps(self._rates).encode())[:12]}"
            found["learning_rate_schedule"] = "constant" if self._constant else varying
        if self.rank == 0 and self._averaged and steps.largest_step:
            found["global_batch"] = steps.largest_step
        if self._loader is not None and self._loader.repeats():
            found["sampler"] = "distributed"  # weights of epochs can differ
        found = {name: value for name, value in found.items() if name not in steps.missing}
        for name in terms.REQUIRED:
            if name != "batches" and name not in found and (self.rank == 0 or name not in ("initial_weights", "global_batch")):
                steps.missing.setdefault(name, "no step of the model and the optimizers of trainyard.start() was seen")
        return {**{name: value for name, value in self._declared.items() if name not in found}, **found}

    def _observed(self) -> dict[str, Any]:
        steps = self.steps
        found: dict[str, Any] = {
            "torch": torch.__version__, "seed": self._seed, "cores": len(os.sched_getaffinity(0)), "steps": steps.steps,
            "skipped_steps": steps.skipped_steps, "backward_passes": steps.backwards, "forward_passes_per_step": steps.most_forwards,
            "gradient_norms": steps.norms, "batch_norms": len(terms.batch_norms(steps)), "missing": steps.missing,
            "notes": steps.notes, "declared": sorted(self._declared), **terms.wrapper_arguments(steps)}
        found |= steps.phases.medians() | (self._evidence.members(self.world) if self.rank == 0 else {})
        if self.steps.probe is not None:
            found["probe"] = self.steps.probe.found
        if self._loader is not None:
            found |= {"workers": self._loader.workers, "order": self._loader.order(), "data_set_samples": self._loader.samples}
        return found

    # --- checkpoints

    def _parts(self) -> list[Any]:
        return [self.steps.inner, *self.steps.optimizers, *([self._scheduler] if self._scheduler is not None else []), *self._state]

    def _can_save(self) -> bool:
        scaler, why = self.steps.scaler, ""
        if terms.wrapper_of(self.steps)[0] == "fsdp":
            why = "parameters are sharded (FSDP)"
        elif scaler is not None and all(each is not scaler for each in self._state):
            why = "trainyard.start(…, state=[scaler]) did not get the GradScaler"
        if why:
            self.steps.notes["checkpoints"] = f"there are none, because {why}"
        return not why

    def _remembered(self) -> dict[str, Any]:
        return {"terms": self._terms, "rates": self._rates, "constant": self._constant, "missing": self.steps.missing,
                "notes": self.steps.notes, "counted": {name: getattr(self.steps, name) for name in COUNTED}, "evidence": self._evidence.found}

    def _resume(self, folder: Path, epoch: int) -> None:
        seen, steps = checkpoints.load(folder, epoch, self.rank, self._parts()), self.steps
        fingerprint = {name: self._terms[name] for name in ("data_fingerprint",) if name in self._terms}
        self._terms = (seen["terms"] if self.rank == 0 else {}) | fingerprint
        self._rates, self._constant, self._epoch = seen["rates"], seen["constant"], epoch
        vars(steps).update(seen["counted"])
        self._evidence.found = seen.get("evidence", self._evidence.found)
        steps.missing, steps.notes = seen["missing"] | steps.missing, seen["notes"] | steps.notes

    # --- the end

    def _end(self, status: str, **members: Any) -> None:
        self._ended, patches.active, sys.excepthook = True, None, self._hook
        atexit.unregister(self._at_exit)
        self.steps.close()
        if self._loader is not None:
            self._loader.close()
        self._records.write("end", status=status, setup_seconds=self._setup, total_seconds=time.monotonic() - self._start, **members)
        self._records.file.close()

    def _on_exception(self, kind: type, error: BaseException, trace: Any) -> None:
        if not self._ended:
            text = f"{kind.__name__}: {error}"
            peer = any(part in text for part in _PEER_ENDED) or kind.__name__.startswith("Dist")
            self._end("failed", error=text[:2000], reason="peer_lost" if peer else "failed")
        self._hook(kind, error, trace)

    def _at_exit(self) -> None:
        if not self._ended:
            print("trainyard: the script ended without run.finish(), so the run has not finished", file=sys.stderr)
