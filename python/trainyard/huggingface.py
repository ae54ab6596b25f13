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
from .run import start


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
    causal = kind.endswith("CausalLM") or kind in ("GPT2LMHeadModel", "OpenAIGPTLMHeadModel", "BertLMHeadModel")
    if labels is not None and not training and labels.dim() == 2 and logits.dim() == 3 and (causal or kind.endswith("MaskedLM")):
        if causal:
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
        self._options, self._epochs, self._evaluated, self._recorded = options, 0, False, False

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, optimizer: Any = None,
                       lr_scheduler: Any = None, train_dataloader: Any = None, **_: Any) -> None:
        self._model, self._epochs = model, 0
        self._run = start(model, optimizer, loader=train_dataloader, scheduler=lr_scheduler, **self._options)
        self._run.steps.on_output = self._take
        self._run.check_epochs(args.num_train_epochs, "TrainingArguments has num_train_epochs")

    def on_epoch_begin(self, *_: Any, **__: Any) -> None:
        self._close()
        self._epochs += 1
        self._run.begin_epoch()

    def on_evaluate(self, *_: Any, **__: Any) -> None:
        self._evaluated = True

    def on_train_end(self, *_: Any, **__: Any) -> None:
        self._close()
        if not self._recorded:
            self._run.steps.missing["loss"] = f"trainyard knows no loss of {type(self._model).__name__}: call run.add()"
        self._run.finish()

    def _take(self, inputs: dict[str, Any], output: Any, training: bool) -> None:
        if self._evaluated and not training:
            self._run.begin_validation()
            self._evaluated = False
        sums = _sums(self._model, inputs, output, training) if isinstance(output, Mapping) else {}
        self._recorded = self._recorded or bool(sums)
        for name, (total, count) in sums.items():
            self._run.add(name, total, count, "train" if training else "validation")
        chain, labels = self._run.steps.chain, inputs.get("labels")
        if training and chain is not None and isinstance(labels, torch.Tensor) and labels.dim() == 2:  # a rank counts by its tokens
            chain.add((labels != -100).sum() - sums.get("loss", (0, 0))[1])

    def _close(self) -> None:
        """End the epoch, after its evaluation."""
        if self._epochs:
            self._run.end_epoch(self._epochs)
