"""pytorch_reference.py FOLDER: train the cases of FOLDER/cases.json in PyTorch, in float64 or with bfloat16 autocast.

Writes raw numbers to FOLDER/<name>.result: the losses of all steps, then all parameters. With replicas > 1 it uses
DistributedDataParallel over gloo, one process per rank. With tensor > 1 it splits the first layer by columns and the second
by rows, with torch.distributed.tensor.parallel."""
import json
import multiprocessing
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "bench"))
import torch  # noqa: E402
import torch.distributed  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module  # noqa: E402
import torch.nn.functional as functional  # noqa: E402

import peer_model  # noqa: E402


def numbers(file, shape):
    return torch.frombuffer(bytearray(file.read_bytes()), dtype=torch.float64).view(shape)


def whole(parameter):
    return parameter.full_tensor() if hasattr(parameter, "full_tensor") else parameter


def train(folder, case, rank):
    replicas, batch = case["replicas"], case["batch"]
    first = rank == 0
    mixed = case["precision"] == "bfloat16"
    dtype = torch.float32 if mixed else torch.float64
    network = peer_model.build(case["model"], case["shape"], case["classes"], case["hidden"], case["channels"]).to(dtype)
    peer_model.initialise(network, case["seed"])
    if case["tensor"] > 1:
        rank = 0  # every part has the whole batch
        parts = {"1": ColwiseParallel(), "3": RowwiseParallel()}
        network = parallelize_module(network, init_device_mesh("cpu", [case["tensor"]]), parts)
    optimizer = peer_model.optimizer(network.parameters(), **case["optimizer"])
    forward = torch.nn.parallel.DistributedDataParallel(network) if replicas > 1 else network
    images = numbers(folder / case["images"], [-1, *case["shape"]]).to(dtype)
    labels = torch.tensor(case["labels"])
    losses = []
    for step in range(case["steps"]):
        part = slice(step * batch + rank * batch // replicas, step * batch + (rank + 1) * batch // replicas)
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
            logits = forward(images[part])
        loss = functional.cross_entropy(logits.to(dtype), labels[part])
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        if replicas > 1:
            torch.distributed.all_reduce(mean)
        losses.append(mean / replicas)
    parameters = [whole(parameter.detach()).flatten() for parameter in network.parameters()]
    if first:
        values = torch.cat([torch.stack(losses)] + parameters)
        (folder / (case["name"] + ".result")).write_bytes(values.double().numpy().tobytes())


def train_rank(folder, cases, rank, ranks, kind):
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meet-{kind}", rank=rank, world_size=ranks)
    for case in cases:
        train(folder, case, rank)
    torch.distributed.destroy_process_group()


def main():
    folder = pathlib.Path(sys.argv[1])
    torch.set_num_threads(1)
    cases = json.loads((folder / "cases.json").read_text())
    fork = multiprocessing.get_context("fork")
    for kind in sorted({(case["replicas"], case["tensor"]) for case in cases}):
        chosen = [case for case in cases if (case["replicas"], case["tensor"]) == kind]
        count = max(kind)
        if count == 1:
            for case in chosen:
                train(folder, case, 0)
            continue
        arguments = [(folder, chosen, r, count, "-".join(map(str, kind))) for r in range(count)]
        ranks = [fork.Process(target=train_rank, args=each) for each in arguments]
        for process in ranks:
            process.start()
        for process in ranks:
            process.join()
            if process.exitcode:
                os._exit(1)


main()
