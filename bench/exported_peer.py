"""exported_peer.py NAME FOLDER contiguous|channels_last|plain: train a network of exported_networks.py in PyTorch, on request.

It is the counterpart of bench_exported_steps, which has written the batch to FOLDER. One thread, sums in tensors. The optimizer
is fused, except with `plain`. Standard input has a number of steps per line. The answer is their wall-clock seconds, processor seconds and loss."""
import pathlib
import sys
import time

import numpy
import torch

import exported_networks
import peer_model
from pytorch_steps import Step, Sums


def read(file, dtype, shape):
    return torch.from_numpy(numpy.fromfile(file, dtype=dtype)).view(shape)


def batch_of(settings, task, folder):
    size = settings["batch"]
    if "image" in settings:
        inputs = [read(folder / "inputs-0", numpy.float32, [size, *settings["image"]])]
    else:
        inputs = [read(folder / f"inputs-{i}", numpy.int64, [size, -1]) for i in range(2 if task == "translation" else 1)]
    return inputs, read(folder / "targets", numpy.int64, [size, -1] if task == "translation" else [size])


def main():
    name, folder, order = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    torch.set_num_threads(1)
    task, _, settings, _ = exported_networks.NETWORKS[name]
    inputs, target = batch_of(settings, task, folder)
    network = exported_networks.build(name)
    if order == "channels_last":
        network = network.to(memory_format=torch.channels_last)
        inputs = [x.contiguous(memory_format=torch.channels_last) for x in inputs]
    optimizer = peer_model.optimizer(network.parameters(), settings["optimizer"], settings["learning_rate"],
                                     settings["momentum"], settings["weight_decay"], fused=True if order != "plain" else None)
    step, indices = Step(task, network, optimizer), torch.arange(settings["batch"])
    print("ready", flush=True)
    for line in sys.stdin:
        processor, begin, sums = time.process_time(), time.perf_counter(), Sums(task, per_step=False)
        for _ in range(int(line)):
            *some, answers = (x.index_select(0, indices) for x in (*inputs, target))
            loss, output = step(some, answers, 1 / answers.numel())
            sums.add(loss, output, answers)
        loss = float(sums.loss)
        print(time.perf_counter() - begin, time.process_time() - processor, loss, flush=True)


main()
