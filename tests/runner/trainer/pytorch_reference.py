"""pytorch_reference.py FOLDER: train the cases of FOLDER/cases.json in PyTorch, in float64 or with bfloat16 autocast.

Writes raw numbers to FOLDER/<name>.result: the losses of all steps, then all parameters. With replicas > 1 it uses
DistributedDataParallel over gloo, one process per rank, or with a sharding ZeroRedundancyOptimizer or FSDP2. With servers,
further processes have parameters in turn, and replicas call them over torch.distributed.rpc. With tensor > 1 the first layer
is split by columns and the second by rows, with torch.distributed.tensor.parallel."""
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
import pytorch_servers  # noqa: E402


def numbers(file, shape):
    return torch.frombuffer(bytearray(file.read_bytes()), dtype=torch.float64).view(shape)


def network_of(case, dtype):
    network = peer_model.build(case["model"], case["shape"], case["classes"], case["hidden"], case["channels"]).to(dtype)
    peer_model.initialise(network, case["seed"])
    return network


# Collective over tensor parts. Rank 0 writes.
def write_result(folder, case, losses, network, rank=0):
    values = torch.cat([torch.stack(losses)] + [peer_model.whole(p.detach()).flatten() for p in network.parameters()])
    if rank == 0:
        (folder / (case["name"] + ".result")).write_bytes(values.double().numpy().tobytes())


def data_of(folder, case, dtype):
    return numbers(folder / case["images"], [-1, *case["shape"]]).to(dtype), torch.tensor(case["labels"])


def part_of(case, step, rank):
    batch, replicas = case["batch"], case["replicas"]
    return slice(step * batch + rank * batch // replicas, step * batch + (rank + 1) * batch // replicas)


def train(folder, case, rank):
    replicas = case["replicas"]
    mixed = case["precision"] == "bfloat16"
    dtype = torch.float32 if mixed else torch.float64
    network = network_of(case, dtype)
    if case["tensor"] > 1:
        parts = {"1": ColwiseParallel(), "3": RowwiseParallel()}
        network = parallelize_module(network, init_device_mesh("cpu", [case["tensor"]]), parts)
    if case["sharding"]:
        forward, optimizer = peer_model.sharded(network, case["sharding"], case["optimizer"])
    else:
        optimizer = peer_model.optimizer(network.parameters(), **case["optimizer"])
        forward = torch.nn.parallel.DistributedDataParallel(network) if replicas > 1 else network
    images, labels = data_of(folder, case, dtype)
    losses = []
    for step in range(case["steps"]):
        part = part_of(case, step, rank if replicas > 1 else 0)  # tensor parts have the whole batch
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
    write_result(folder, case, losses, network, rank)


# Replicas push the gradients of their part of the mean over the batch.
def train_with_servers(folder, case, rank):
    network = network_of(case, torch.float64)
    with pytorch_servers.connected(folder, case, rank, network) as servers:
        if servers is None:
            return
        images, labels = data_of(folder, case, torch.float64)
        losses = []
        for step in range(case["steps"]):
            part = part_of(case, step, rank)
            loss = functional.cross_entropy(network(images[part]), labels[part], reduction="sum") / case["batch"]
            gradients = torch.autograd.grad(loss, list(network.parameters()))
            losses.append(servers.update(network, gradients, loss.detach()))
        if rank == 0:
            write_result(folder, case, losses, network)


def train_rank(folder, cases, rank, ranks, kind):
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meet-{kind}", rank=rank, world_size=ranks)
    for case in cases:
        train(folder, case, rank)
    torch.distributed.destroy_process_group()


def run(processes):
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        if process.exitcode:
            os._exit(1)


def main():
    folder = pathlib.Path(sys.argv[1])
    torch.set_num_threads(1)
    cases = json.loads((folder / "cases.json").read_text())
    fork = multiprocessing.get_context("fork")
    for case in filter(lambda case: case["servers"], cases):
        run([fork.Process(target=train_with_servers, args=(folder, case, rank))
             for rank in range(case["replicas"] + case["servers"])])
    cases = [case for case in cases if not case["servers"]]
    for kind in sorted({(case["replicas"], case["tensor"]) for case in cases}):
        chosen = [case for case in cases if (case["replicas"], case["tensor"]) == kind]
        ranks = max(kind)
        if ranks == 1:
            for case in chosen:
                train(folder, case, 0)
            continue
        name = "-".join(map(str, kind))
        run([fork.Process(target=train_rank, args=(folder, chosen, rank, ranks, name)) for rank in range(ranks)])


main()
