"""pytorch_residual.py FOLDER: train the residual network of skip_connections_test.cpp in PyTorch, in float64.

Reads the initial weights from FOLDER/weights.safetensors and the batches from FOLDER/batches.safetensors. Writes the losses
of all steps and the trained parameters to FOLDER/result.safetensors."""
import pathlib
import sys

import torch
import torch.nn.functional as functional
from torch import nn

from pytorch_networks import read_safetensors, write_safetensors


class Residual(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1),
                         nn.Linear(4 * 6 * 6, 4))

    def forward(self, x):
        x = self[0](x)
        x = x + self[2](torch.relu(self[1](torch.relu(x))))
        return self[3](torch.relu(x).flatten(1))


def main():
    folder = pathlib.Path(sys.argv[1])
    torch.set_num_threads(1)
    network = Residual().double()
    network.load_state_dict(read_safetensors(folder / "weights.safetensors"))
    batches = read_safetensors(folder / "batches.safetensors")
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    losses = []
    for inputs, labels in zip(batches["inputs"], batches["labels"]):
        optimizer.zero_grad()
        loss = functional.cross_entropy(network(inputs), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    write_safetensors(folder / "result.safetensors", {"losses": torch.stack(losses), **network.state_dict()})


main()
