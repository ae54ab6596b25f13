"""lightning_test.py: what the callback for Lightning records. Its sums are compared with those of the same training by hand."""
import copy
import importlib.util
import unittest
import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from recording import Recorded, X, Y, last_start, network, order_of

if importlib.util.find_spec("lightning") is None:
    print("skipped: lightning is not installed")
    raise SystemExit(0)

import logging

import lightning
import torchmetrics

from trainyard.lightning import Callback

warnings.filterwarnings("ignore", module="lightning")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers, self.hits = network(), torchmetrics.Accuracy("multiclass", num_classes=2)

    def training_step(self, batch, batch_idx):
        loss = nn.functional.cross_entropy(self.layers(batch[0]), batch[1])
        self.log("train/two", 2.0)
        return {"loss": loss}

    def validation_step(self, batch, batch_idx):
        output = self.layers(batch[0])
        self.hits(output, batch[1])
        self.log_dict({"val_loss": nn.functional.cross_entropy(output, batch[1]), "val_acc": self.hits})

    def on_validation_epoch_end(self):
        self.log("val_last", 5.0)
        copy.deepcopy(self)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


class Manual(Net):
    """Two optimizers, each with a backward pass."""

    def __init__(self):
        super().__init__()
        self.automatic_optimization = False

    def training_step(self, batch, batch_idx):
        for each in self.optimizers():
            loss = nn.functional.cross_entropy(self.layers(batch[0]), batch[1])
            each.zero_grad()
            self.manual_backward(loss)
            each.step()
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.layers[0].parameters(), lr=0.1), torch.optim.SGD(self.layers[2].parameters(), lr=0.1)


class Lightning(Recorded):
    def fit(self, module=None, callback=None, loader=None, epochs=2, **options):
        """Train and return the records."""
        trainer = lightning.Trainer(
            max_epochs=epochs, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
            enable_model_summary=False, callbacks=[callback or Callback()], **options)
        data = TensorDataset(X, Y)
        trainer.fit(module or Net(), loader or DataLoader(data, 8), DataLoader(data, 16))
        return self.records()

    def metrics(self, epoch):
        return {(each["phase"], each["name"]): (each["sum"], each["weight"]) for each in epoch["metrics"]}

    def by_hand(self, accumulated=1):
        """Sums of one epoch: loss of training, loss and hits of validation."""
        model = network()
        optimizer, total = torch.optim.SGD(model.parameters(), lr=0.1), 0.0
        for i, (x, y) in enumerate(zip(X.split(8), Y.split(8))):
            loss = nn.functional.cross_entropy(model(x), y)
            total += loss.item() * 8
            (loss / accumulated).backward()
            if (i + 1) % accumulated == 0 or i == 4:  # Lightning steps on the last batch
                optimizer.step()
                optimizer.zero_grad()
        with torch.no_grad():
            return total, nn.functional.cross_entropy(model(X), Y, reduction="sum").item(), (model(X).argmax(1) == Y).sum().item()

    def test_sums_are_those_of_a_training_by_hand(self):
        first, epoch, second, start, end = self.fit()
        found, (loss, validation, hits) = self.metrics(epoch), self.by_hand()
        self.assertEqual(set(found), {("train", "loss"), ("train", "two"), ("validation", "loss"), ("validation", "correct")})
        for key, total in ((("train", "loss"), loss), (("validation", "loss"), validation), (("validation", "correct"), hits),
                           (("train", "two"), 80.0)):
            self.assertAlmostEqual(found[key][0], total, delta=1e-4)
            self.assertEqual(found[key][1], 40)
        steps = [range(i, i + 8) for i in range(0, 40, 8)]
        self.assertEqual([epoch["batches"], second["batches"]], [order_of(steps)] * 2)
        self.assertEqual((start["observed"]["missing"], start["global_batch"], start["precision"], start["epochs"]), ({}, 8, "float32", 2))
        self.assertTrue(all(each["at_step"] > 0 for each in start["observed"]["gradient_norms"]))
        self.assertEqual((set(epoch["seconds"]), end["status"]), ({"data", "forward", "backward", "optimizer", "other"}, "finished"))

    def test_accumulation_does_not_scale_the_loss(self):
        records = self.fit(accumulate_grad_batches=2)
        self.assertAlmostEqual(self.metrics(records[1])["train", "loss"][0], self.by_hand(2)[0], delta=1e-4)
        start = last_start(records)
        self.assertEqual((start["global_batch"], start["observed"]["forward_passes_per_step"], start["observed"]["steps"]), (16, 2, 6))

    def test_the_last_validation_of_an_epoch_counts(self):
        records = self.fit(val_check_interval=2)
        found = self.metrics(records[1])
        self.assertEqual(found["validation", "loss"][1], 40)
        self.assertEqual(found["train", "loss"][1], 40)

    def test_two_optimizers_of_manual_optimization_are_recorded(self):
        records = self.fit(Manual())
        start = last_start(records)
        self.assertEqual((start["optimizer"], start["observed"]["steps"], start["observed"]["missing"]), ("sgd + sgd", 10, {}))
        self.assertEqual(self.metrics(records[1])["train", "loss"][1], 40)

    def test_mixed_precision_is_seen(self):
        start = last_start(self.fit(precision="bf16-mixed"))
        self.assertEqual((start["precision"], start["observed"]["missing"]), ("bfloat16", {}))

    def test_same_batches_are_those_of_run_batches(self):
        records = self.fit(callback=Callback(same_batches=True), loader=DataLoader(TensorDataset(X, Y), 8, shuffle=True))
        start = last_start(records)
        self.assertRegex(start["observed"]["order"], "^GlobalBatches with seed")
        self.assertNotEqual(records[1]["batches"], records[2]["batches"])
        self.assertEqual(start["observed"]["missing"], {})

    def test_same_batches_need_whole_batches(self):
        with self.assertRaisesRegex(ValueError, "give the loader drop_last=True"):
            self.fit(callback=Callback(same_batches=True), loader=DataLoader(TensorDataset(X, Y), 16))

    def test_clipping_is_stated(self):
        self.assertEqual(last_start(self.fit(gradient_clip_val=0.5))["clip_norm"], 0.5)


if __name__ == "__main__":
    unittest.main(verbosity=2)
