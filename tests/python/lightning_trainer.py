"""lightning_trainer.py CASE SEED: a small network with Lightning's Trainer. `trainyard run` starts it with one rank and two."""
import os
import sys

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

from trainyard.lightning import Callback

seed, world = int(sys.argv[2]), int(os.environ["WORLD_SIZE"])
torch.set_num_threads(1)
x = torch.randn(96, 6, generator=torch.Generator().manual_seed(0))
train, valid = TensorDataset(x[:64], (x[:64].sum(1) > 0).long()), TensorDataset(x[64:], (x[64:].sum(1) > 0).long())
torch.manual_seed(seed)


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))

    def training_step(self, batch, batch_idx):
        return nn.functional.cross_entropy(self.layers(batch[0]), batch[1])

    def validation_step(self, batch, batch_idx):
        output = self.layers(batch[0])
        self.log("val_loss", nn.functional.cross_entropy(output, batch[1]), sync_dist=True)
        self.log("val_acc", (output.argmax(1) == batch[1]).float().mean(), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=0.01)


trainer = lightning.Trainer(
    max_epochs=2, accelerator="cpu", devices=world, strategy="ddp" if world > 1 else "auto", use_distributed_sampler=False,
    accumulate_grad_batches=2, logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    callbacks=[Callback(same_batches=True)])
part = Subset(valid, range(int(os.environ["RANK"]), len(valid), world))
trainer.fit(Net(), DataLoader(train, 8, shuffle=True), DataLoader(part, 8))
