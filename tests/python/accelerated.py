"""accelerated.py CASE SEED: a small network with Accelerate. `trainyard run` starts it with one rank and with two."""
import os
import sys

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration, set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import trainyard

seed, world = int(sys.argv[2]), int(os.environ["WORLD_SIZE"])
torch.set_num_threads(1)
x = torch.randn(96, 6, generator=torch.Generator().manual_seed(0))
set_seed(seed)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2, dataloader_config=DataLoaderConfiguration(use_seedable_sampler=True))
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
loader = DataLoader(TensorDataset(x, (x.sum(1) > 0).long()), 8 // world, shuffle=True)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
run = trainyard.start(model, optimizer, loader=loader)
for epoch in run.epochs(2):
    for inputs, labels in loader:
        with accelerator.accumulate(model):
            loss = nn.functional.cross_entropy(model(inputs), labels)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        run.add("loss", loss.item() * len(labels), len(labels))
run.finish()
