"""A callback for Lightning's Trainer: Trainer(…, callbacks=[Callback()]).

Sums are made here, from what the steps return and log for each batch. The means that Lightning logs are not used, because
they depend on accumulation, on the number of processes and on `sync_dist`."""
from __future__ import annotations

import re
from typing import Any

import torch

try:
    from lightning.pytorch import Callback as Base, LightningModule
except ModuleNotFoundError:
    from pytorch_lightning import Callback as Base, LightningModule

from . import patches, samples
from .run import start

PHASE = re.compile("(train|training|val|valid|validation)[_/](?=.)")  # as in "val_loss" and "train/loss"
_log = LightningModule.log


def _observed_log(self: Any, name: str, value: Any, *args: Any, **named: Any) -> None:
    if patches.active is not None and patches.active.model is self:
        patches.active.on_log(name, value, named.get("batch_size"))
    _log(self, name, value, *args, **named)


LightningModule.log = _observed_log


class Callback(Base):
    """Records a training.

    same_batches: divide the batches of the training loader as run.batches() does. `options` are those of trainyard.start():
    data, state, hash_contents. ValueError if the experiment file has another number of epochs."""

    def __init__(self, same_batches: bool = False, **options: Any):
        self._same_batches, self._options = same_batches, options
        self._values: dict[str, tuple[Any, Any]] = {}  # of this batch: mean, number of samples or None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._run = start(pl_module, trainer.optimizers, loader=trainer.train_dataloader, **self._options)
        self._run.check_epochs(trainer.max_epochs, "Trainer has max_epochs")
        if self._same_batches and len(self._run.batches(trainer.train_dataloader)) < trainer.num_training_batches:
            raise ValueError("same_batches=True leaves out an incomplete last batch, so give the loader drop_last=True")
        iter(trainer.fit_loop._data_fetcher)  # in place of its first iterator, which began before the observation
        self._steps = self._run.steps
        self._steps.on_log = self._logged

    def on_train_epoch_start(self, *_: Any) -> None:
        self._run.begin_epoch()

    def on_train_epoch_end(self, trainer: Any, *_: Any) -> None:
        self._run.end_epoch(trainer.current_epoch + 1)

    def on_train_end(self, *_: Any) -> None:
        self._run.finish()

    # --- batches. training_step need not call the module, so the whole step counts as one forward pass

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, *_: Any) -> None:
        self._values = {}  # without what was logged between batches
        self._steps.before_forward((batch,), {})

    def on_before_backward(self, trainer: Any, pl_module: Any, loss: torch.Tensor) -> None:
        self._steps.after_forward(loss)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, *_: Any) -> None:
        self._steps.after_forward(None)  # if there was no backward pass
        scale = trainer.accumulate_grad_batches if pl_module.automatic_optimization else 1  # what the loss was divided by
        self._end_batch("train", outputs, batch, scale)

    def on_validation_start(self, *_: Any) -> None:
        if patches.active is not None:  # else before or after the training
            self._values = {}
            self._run.begin_validation()

    def on_validation_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, *_: Any) -> None:
        if patches.active is not None:
            self._end_batch("validation", outputs, batch)

    def _logged(self, name: str, value: Any, size: int | None) -> None:
        name, value = PHASE.sub("", name, 1), getattr(value, "_forward_cache", value)  # of a torchmetrics.Metric
        if isinstance(value, (int, float)) or isinstance(value, torch.Tensor) and value.numel() == 1:
            self._values["correct" if name in ("acc", "accuracy") else name] = (value, size)

    def _end_batch(self, phase: str, outputs: Any, batch: Any, scale: int = 1) -> None:
        tensor, loss = samples.first_tensor(batch), outputs.get("loss") if isinstance(outputs, dict) else outputs
        if isinstance(loss, torch.Tensor) and loss.numel() == 1:
            self._values["loss"] = (loss * scale, None)
        for name, (mean, size) in self._values.items():
            count = size or (len(tensor) if tensor is not None else 0)
            self._run.add(name, mean * count, count, phase)
        self._values = {}
