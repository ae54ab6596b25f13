"""A callback for Hugging Face's Trainer: Trainer(…, callbacks=[Callback()]).

Losses are the cross-entropy of the logits and labels of each forward pass. Those in Trainer's log, and those that the model
returns, can have another scale: it depends on the accumulation and on the number of processes. Other losses are recorded if
Trainer does not scale them (num_items_in_batch)."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from transformers import TrainerCallback

from . import samples
from .run import Run, start


def _sums(model: torch.nn.Module, inputs: dict[str, Any], output: Any, training: bool) -> dict[str, tuple[torch.Tensor, int]]:
    """(sum, count) of "loss" and, for classes of whole samples, of "correct". Tokens count only in evaluation, because their
    cross-entropy is computed once more."""
    logits, labels, loss = output.get("logits"), inputs.get("labels"), output.get("loss")
    if not isinstance(labels, torch.Tensor) or labels.is_floating_point() or not isinstance(logits, torch.Tensor):
        labels = None
    if labels is not None and labels.dim() == 1 and logits.dim() == 2 and logits.shape[1] > 1:
        logits = logits.detach().float()
        total = torch.nn.functional.cross_entropy(logits, labels, reduction="sum")
        return {"loss": (total, len(labels)), "correct": ((logits.argmax(1) == labels).sum(), len(labels))}
    kind = type(model).__name__
    if labels is not None and not training and labels.dim() == 2 and logits.dim() == 3 and kind.endswith(("CausalLM", "MaskedLM")):
        if kind.endswith("CausalLM"):
            logits, labels = logits[:, :-1], labels[:, 1:]
        total = torch.nn.functional.cross_entropy(logits.detach().float().flatten(0, 1), labels.flatten(), reduction="sum")
        return {"loss": (total, int((labels != -100).sum()))}
    if isinstance(loss, torch.Tensor) and loss.numel() == 1 and inputs.get("num_items_in_batch") is None:
        tensor = samples.first_tensor(inputs)
        count = len(tensor) if tensor is not None else 0
        return {"loss": (loss.detach().double() * count, count)}
    return {}


class Callback(TrainerCallback):
    """Records a training. `options` are those of trainyard.start(): data, state, hash_contents."""

    def __init__(self, **options: Any):
        self._options = options
        self._run: Run | None = None
        self._sums: dict[str, dict[str, list[Any]]] = {}  # of the epoch, by phase and metric: sum, count
        self._validation: dict[str, list[Any]] = {}  # of the last evaluation of the epoch
        self._epochs = 0

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, optimizer: Any = None,
                       lr_scheduler: Any = None, train_dataloader: Any = None, **_: Any) -> None:
        self._model, self._epochs = model, 0
        inner = getattr(optimizer, "optimizer", optimizer)  # accelerate's has no hooks
        self._run = start(model, inner, loader=train_dataloader, scheduler=lr_scheduler, **self._options)
        self._run.observe_outputs(self._take)
        wanted, epochs = self._run.info.get("epochs"), args.num_train_epochs
        if wanted and wanted != epochs:
            raise ValueError(f"TrainingArguments has num_train_epochs={epochs}, and the experiment file epochs = {wanted}: make them equal")

    def on_epoch_begin(self, *_: Any, **__: Any) -> None:
        self._close()
        self._epochs += 1
        self._run.begin_epoch()

    def on_evaluate(self, *_: Any, **__: Any) -> None:
        self._validation = self._sums.pop("validation", {})

    def on_train_end(self, *_: Any, **__: Any) -> None:
        self._close()
        self._run.finish()

    def _take(self, inputs: dict[str, Any], output: Any, training: bool) -> None:
        sums = _sums(self._model, inputs, output, training) if isinstance(output, Mapping) else {}
        of_phase = self._sums.setdefault("train" if training else "validation", {})
        for name, (total, count) in sums.items():
            entry = of_phase.setdefault(name, [0.0, 0])
            entry[0] = entry[0] + total  # stays on the device
            entry[1] += count

    def _close(self) -> None:
        """End the epoch, after its evaluation."""
        if not self._epochs:
            return
        for phase, sums in (("train", self._sums.get("train", {})), ("validation", self._validation)):
            for name, (total, count) in sums.items():
                self._run.add(name, total, count, phase)
        self._sums, self._validation = {}, {}
        self._run.end_epoch(self._epochs)
