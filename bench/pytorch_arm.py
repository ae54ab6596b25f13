"""pytorch_arm.py --style STYLE --export bench_export: train a run as a PyTorch user would, as a foreign arm of an experiment.

Initial weights, order of samples, batches and loss are the same as in trainyard. Several ranks use DistributedDataParallel
over gloo. Epochs are timed as in trainyard: from a barrier before the first batch to the last optimizer step.

Styles
  loader   torch.utils.data.DataLoader, and loss.item() in every step, as in tutorials
  index    batches by index_select on tensors in memory, sums kept in tensors, otherwise defaults
  tuned    index, with the fused optimizer, channels_last, EmbeddingBag, gradients as bucket views, and a malloc that keeps
           freed memory
  compile  tuned, with torch.compile
  zero1    tuned, with ZeroRedundancyOptimizer
  fsdp2    tuned, with fully_shard for each layer, whose parameters stay whole until backward (ZeRO 2)
  fsdp     the same, but parameters are freed after each layer (ZeRO 3)
  tensor   tuned, with parallelize_module: columns and rows of the first two layers of an MLP
  servers  tuned, but a server, a process more, has the parameters and updates them (torch.distributed.rpc)
  graphs   tuned, with one CUDA graph of the whole step per shape of a batch; only with --device cuda. Sentences are padded
           to multiples of four and encoded unpacked, because a graph cannot have packed sequences

--device cuda trains on the GPU of this rank. Images are on the GPU. Texts are on the GPU for compile and graphs, which need
equal shapes. Ranks communicate over NCCL. Products are float32 as in trainyard. torch.compile uses max-autotune."""
import argparse
import contextlib
import ctypes
import hashlib
import json
import multiprocessing
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import torch
import torch.distributed as distributed
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import peer_model
import pytorch_data
import pytorch_servers
from pytorch_steps import CapturedStep, Step, Sums, loss_sum

RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
REPLICAS = RANKS  # that share a batch


class Records:
    def __init__(self, run):
        self.start = time.monotonic()
        self.common = {"v": 1, "run": run["run"], "attempt": run["attempt"], "rank": RANK, "seq": -1}
        self.records = open(f"{run['records']}/rank-{RANK}.records.jsonl", "ab", buffering=0)

    def write(self, type, **members):
        self.common["seq"] += 1
        now = {"time": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime()),
               "elapsed_seconds": time.monotonic() - self.start}
        self.records.write(json.dumps({**self.common, "type": type, **now, **members}).encode() + b"\n")


class MeanEmbedding(torch.nn.Embedding):
    """The mean of the words of a text without EmbeddingBag: gather, mask, divide."""

    def forward(self, tokens):
        words = tokens.ne(0).unsqueeze(2)
        return (super().forward(tokens) * words).sum(1) / words.sum(1)


def keep_memory():
    for option, value in ((-3, 1 << 30), (-1, 1 << 30), (-2, 1 << 26)):  # mmap threshold, trim threshold, top pad
        ctypes.CDLL(None).mallopt(option, value)


def build(run, case, tuned):
    model = run["work"]["model"]
    network = peer_model.module(model).build(case["hyperparameters"], case["input"])
    if model == "nbow" and not tuned:
        network[0] = MeanEmbedding(network[0].num_embeddings, network[0].embedding_dim, padding_idx=0)
    peer_model.initialise(network, run["seed"])
    return network.to(memory_format=torch.channels_last) if tuned else network


def hashes(network):
    return {name: hashlib.sha256(value.detach().cpu().contiguous().numpy().tobytes()).hexdigest()[:15]
            for name, value in network.named_parameters()}


def shares(order, batch):
    """The sample indices of each global batch, and the contiguous part of this rank. Sizes differ by at most one."""
    for indices in order.split(batch):
        each, larger = divmod(len(indices), REPLICAS)
        replica = RANK % REPLICAS
        start = replica * each + min(replica, larger)
        yield indices, indices[start:start + each + (replica < larger)]


class Batches(torch.utils.data.Sampler):
    """This rank's part of each global batch, in the order of trainyard. It replaces DistributedSampler."""

    def __init__(self, order, batch):
        self.parts = [part.tolist() for _, part in shares(order, batch)]

    def __iter__(self):
        return iter(self.parts)

    def __len__(self):
        return len(self.parts)


class Samples(torch.utils.data.Dataset):
    def __init__(self, data):
        self.data = data

    def __len__(self):
        return len(self.data)

    def __getitem__(self, place):
        return self.data.sample(place)


def batches(style, data, order, batch):
    """(inputs, target, divisor of the loss of the whole batch)"""
    if style != "loader":
        for indices, part in shares(order, batch):
            yield *data.batch(part), data.divisor(indices)
        return
    loader = torch.utils.data.DataLoader(Samples(data), batch_sampler=Batches(order, batch), collate_fn=data.collate)
    for (inputs, target), (indices, _) in zip(loader, shares(order, batch)):
        yield inputs, target, data.divisor(indices)


def on(device, tensors):
    return tuple(tensor.to(device, non_blocking=True) for tensor in tensors)


def train_epoch(style, device, task, step, parts):
    sums = Sums(task, per_step=style == "loader")
    for inputs, target, divisor in parts:
        *inputs, target = on(device, (*inputs, target))
        loss, output = step(inputs, target, REPLICAS / divisor)
        sums.add(loss, output, target)
    return sums


@torch.no_grad()
def evaluate(network, device, task, data, batch):
    order = data.evaluation_order
    sums, weight = Sums(task, per_step=False), 0
    network.eval()
    for _, part in shares(torch.arange(len(data)) if order is None else order, batch):
        if len(part) == 0:
            continue
        inputs, target = data.batch(part)
        *inputs, target = on(device, (*inputs, target))
        output = network(*inputs)
        sums.add(loss_sum(task, output, target), output, target)
        weight += data.divisor(part)
    network.train()
    return sums.metrics("validation", weight)


def choose(name):
    if name == "cpu":
        return torch.device("cpu")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)) % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device


# What is sharded by styles that shard.
SHARDING = {"zero1": "optimizer", "fsdp2": "gradients", "fsdp": "parameters"}


def parallel(network, style, tuned):
    if style == "compile":
        network = torch.compile(network, mode=None if next(network.parameters()).device.type == "cpu" else "max-autotune")
    if style == "tensor":
        parts = {"1": ColwiseParallel(), "3": RowwiseParallel()}
        return parallelize_module(network, init_device_mesh(next(network.parameters()).device.type, [RANKS]), parts)
    if REPLICAS == 1:
        return network
    return torch.nn.parallel.DistributedDataParallel(network, gradient_as_bucket_view=tuned, broadcast_buffers=not tuned)


def parameter_groups(network):
    """An optimizer cannot update split and whole parameters together."""
    groups = {}
    for parameter in network.parameters():
        groups.setdefault(isinstance(parameter, DTensor), []).append(parameter)
    return [{"params": group} for group in groups.values()]


class StepWithServers(Step):
    """A server adds the gradients of all replicas. There is no mean as in DistributedDataParallel."""

    def __init__(self, task, network, servers):
        super().__init__(task, network, None)
        self.servers = servers

    def __call__(self, inputs, target, factor):
        output = self.forward(*inputs)
        loss = loss_sum(self.task, output, target)
        gradients = torch.autograd.grad(loss * (factor / REPLICAS), list(self.forward.parameters()))
        self.servers.update(self.forward, gradients, loss.detach())
        return loss, output


def serve(folder, case, network):
    with pytorch_servers.connected(folder, case, REPLICAS, network):
        pass
    os._exit(0)


def connection_to_servers(run, network, settings):
    """The first rank starts the server."""
    case = {"name": "servers", "replicas": REPLICAS, "servers": 1, "optimizer": settings}
    if RANK == 0:
        multiprocessing.get_context("fork").Process(target=serve, args=(run["records"], case, network)).start()
    return pytorch_servers.connected(run["records"], case, RANK, network)


def terms(run, case, network):
    settings = case["optimizer"]
    momentum = f" momentum {settings['momentum']:g}" if settings["kind"] == "sgd" else ""
    return {"global_batch": case["global_batch"], "epochs": run["epochs"], "optimizer": settings["kind"] + momentum,
            "learning_rate": settings["learning_rate"], "learning_rate_schedule": "constant", "precision": "float32",
            "data_fingerprint": case["data_fingerprint"], "batch_norm": "local", "initial_weights": hashes(network)}


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--style", choices=["loader", "index", "tuned", "compile", "graphs", "tensor", "servers", *SHARDING], required=True)
    options.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    options.add_argument("--export", required=True)
    options = options.parse_args()
    global REPLICAS
    if options.style == "tensor":
        REPLICAS = 1  # all parts have the whole batch
    tuned = options.style not in ("loader", "index")
    device = choose(options.device)
    if tuned:
        keep_memory()
    run = json.loads(pathlib.Path(os.environ["TRAINYARD_RUN"]).read_text())
    records, seed = Records(run), run["seed"]
    threads = int(os.environ.get("OMP_NUM_THREADS", 1))
    torch.set_num_threads(threads)
    if RANKS > 1:
        distributed.init_process_group("gloo" if device.type == "cpu" else "nccl")
    with tempfile.TemporaryDirectory(prefix="trainyard-arm-") as folder:
        folder = pathlib.Path(folder)
        subprocess.run([options.export, os.environ["TRAINYARD_RUN"], folder], check=True)
        case = json.loads((folder / "case.json").read_text())
        train, validation = (pytorch_data.read_part(folder, part, case, tuned) for part in ("train", "validation"))
    static = device.type == "cuda" and options.style in ("compile", "graphs")
    for data in (train, validation):
        data.move_to(device, static)
    task, batch = case["task"], case["global_batch"]
    network = build(run, case, tuned).to(device)
    records.write("start", world_size=RANKS, replica=RANK, stage=0, pid=os.getpid(), device=str(device), threads=threads,
                  **terms(run, case, network))
    settings = {**case["optimizer"], "fused": True if tuned else None}
    if options.style in SHARDING:
        forward, optimizer = peer_model.sharded(network, SHARDING[options.style], settings, device.type)
    else:
        forward = network if options.style == "servers" else parallel(network, options.style, tuned)
        optimizer = peer_model.optimizer(parameter_groups(network), **settings)
    step = Step(task, forward, optimizer)
    servers = contextlib.ExitStack()
    if options.style == "servers":
        step = StepWithServers(task, network, servers.enter_context(connection_to_servers(run, network, settings)))
    if options.style == "graphs":
        if task == "translation":
            train.repeat_shapes()
            sys.modules["seq2seq"].without_lengths(network)
        for group in optimizer.param_groups:
            group["capturable"] = True  # required by Adam
        step = CapturedStep(step)
    for epoch in range(1, run["epochs"] + 1):
        if RANKS > 1:
            distributed.barrier()
        processor, begin = time.process_time(), time.perf_counter()
        order = train.order(batch, peer_model.stream("order", seed, epoch))
        sums = train_epoch(options.style, device, task, step, batches(options.style, train, order, batch))
        if device.type == "cuda":
            torch.cuda.synchronize()
        seconds, processor = time.perf_counter() - begin, time.process_time() - processor
        begin = time.perf_counter()
        weight = sum(train.divisor(part) for _, part in shares(order, batch))
        if REPLICAS > 1 and tuned:
            for buffer in network.buffers():
                distributed.broadcast(buffer, 0)
        metrics = sums.metrics("train", weight) + evaluate(network, device, task, validation, batch)
        if RANK >= REPLICAS:
            metrics = []  # all parts have the same
        records.write("epoch", epoch=epoch, train_seconds=seconds, processor_seconds=processor,
                      validation_seconds=time.perf_counter() - begin, metrics=metrics)
    if RANKS > 1:
        distributed.barrier()
    servers.close()
    records.write("end", status="finished", setup_seconds=0, total_seconds=time.monotonic() - records.start)
    os._exit(0)  # gloo's threads sometimes abort the normal end of the interpreter


main()
