"""pytorch_peer.py FOLDER --style STYLE: trains FOLDER/case.json as a PyTorch user would; one process, or a rank under
torchrun with DistributedDataParallel over gloo. Rank 0 prints one line of JSON: seconds of each epoch (the slowest
rank's) and the losses. Times are taken as the runner takes them: from a barrier before the first batch to the last
optimizer step, without evaluation.

Styles
  loader   torch.utils.data.DataLoader over a TensorDataset, loss.item() in every step: what tutorials show
  index    batches by index_select on resident tensors, sums kept in tensors: careful, otherwise defaults
  tuned    index, and the fused optimizer, channels_last, gradients as bucket views"""
import argparse
import json
import os
import pathlib
import time

import torch
import torch.distributed as distributed
import torch.nn.functional as functional

import peer_model

RANK, REPLICAS = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


def read_part(folder, case, name, mean=None, deviation=None):
    """Images standardised by channel, and labels; the training part gives mean and deviation."""
    raw = torch.frombuffer(bytearray((folder / f"{name}.images").read_bytes()), dtype=torch.uint8)
    images = raw.view(-1, *case["shape"]).double()
    if mean is None:
        mean = images.mean((0, 2, 3), keepdim=True)
        deviation = images.std((0, 2, 3), correction=0, keepdim=True)
    labels = torch.frombuffer(bytearray((folder / f"{name}.labels").read_bytes()), dtype=torch.uint8).long()
    return ((images - mean) / deviation).float(), labels, mean, deviation


def part_of(begin, end):
    """This rank's contiguous part of a run of samples; sizes differ by at most one."""
    each, larger = divmod(end - begin, REPLICAS)
    start = begin + RANK * each + min(RANK, larger)
    return start, start + each + (RANK < larger)


def indexed_batches(images, labels, order, batch, tuned):
    for begin in range(0, len(order), batch):
        start, stop = part_of(begin, min(begin + batch, len(order)))
        places = order[start:stop]
        x = images.index_select(0, places)
        if tuned and x.dim() == 4 and x.shape[1] > 0:
            x = x.contiguous(memory_format=torch.channels_last)
        yield x, labels.index_select(0, places)


class EpochOrder(torch.utils.data.Sampler):
    """This rank's samples of each global batch, in order: what DistributedSampler is for, with trainyard's order."""

    def __init__(self, order, batch):
        places = []
        for begin in range(0, len(order), batch):
            start, stop = part_of(begin, min(begin + batch, len(order)))
            places += order[start:stop].tolist()
        self.places = places

    def __iter__(self):
        return iter(self.places)

    def __len__(self):
        return len(self.places)


def batches(style, images, labels, order, batch):
    if style != "loader":
        return indexed_batches(images, labels, order, batch, style == "tuned")
    dataset = torch.utils.data.TensorDataset(images, labels)
    return torch.utils.data.DataLoader(dataset, batch_size=batch // REPLICAS, sampler=EpochOrder(order, batch))


def train_epoch(style, forward, optimizer, part_batches):
    """Σ loss and Σ correct over this rank's samples; the first step's loss."""
    loss_sum, correct, first = 0.0, 0, None
    if style != "loader":
        loss_sum, correct = torch.zeros((), dtype=torch.float64), torch.zeros((), dtype=torch.int64)
    for x, y in part_batches:
        optimizer.zero_grad()
        logits = forward(x)
        loss = functional.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        if style == "loader":
            loss_sum += loss.item() * len(y)
            correct += (logits.argmax(1) == y).sum().item()
        else:
            loss_sum += loss.detach() * len(y)
            correct += (logits.argmax(1) == y).sum()
        first = loss.item() if first is None else first
    return float(loss_sum), int(correct), first


@torch.no_grad()
def evaluate(forward, images, labels, batch):
    loss_sum, correct = torch.zeros((), dtype=torch.float64), torch.zeros((), dtype=torch.int64)
    for begin in range(0, len(labels), batch):
        start, stop = part_of(begin, min(begin + batch, len(labels)))
        logits = forward(images[start:stop])
        loss_sum += functional.cross_entropy(logits, labels[start:stop], reduction="sum")
        correct += (logits.argmax(1) == labels[start:stop]).sum()
    return float(loss_sum)


def over_ranks(value, operation=distributed.ReduceOp.SUM):
    if REPLICAS == 1:
        return value
    tensor = torch.tensor(value, dtype=torch.float64)
    distributed.all_reduce(tensor, operation)
    return float(tensor)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("folder", type=pathlib.Path)
    options.add_argument("--style", choices=["loader", "index", "tuned"], default="index")
    options = options.parse_args()
    torch.set_num_threads(1)
    if REPLICAS > 1:
        distributed.init_process_group("gloo")
    case = json.loads((options.folder / "case.json").read_text())
    tuned = options.style == "tuned"
    network = peer_model.build(case["model"], case["shape"], case["classes"], case["hidden"], case["channels"])
    peer_model.initialise(network, case["seed"])
    if tuned and case["model"] == "cnn":
        network = network.to(memory_format=torch.channels_last)
    optimizer = peer_model.optimizer(network.parameters(), **case["optimizer"], fused=True if tuned else None)
    forward = network
    if REPLICAS > 1:
        forward = torch.nn.parallel.DistributedDataParallel(network, gradient_as_bucket_view=tuned)
    images, labels, mean, deviation = read_part(options.folder, case, "train")
    validation_images, validation_labels, _, _ = read_part(options.folder, case, "validation", mean, deviation)

    result = {"seconds": [], "losses": [], "validation_losses": []}
    for epoch in range(1, case["epochs"] + 1):
        if REPLICAS > 1:
            distributed.barrier()
        start = time.perf_counter()
        order = peer_model.epoch_order(len(labels), case["seed"], epoch)
        loss_sum, _, first = train_epoch(options.style, forward, optimizer,
                                         batches(options.style, images, labels, order, case["batch"]))
        seconds = time.perf_counter() - start
        validation = evaluate(network, validation_images, validation_labels, case["batch"])
        result["seconds"].append(over_ranks(seconds, distributed.ReduceOp.MAX))
        result["losses"].append(over_ranks(loss_sum) / len(labels))
        result["validation_losses"].append(over_ranks(validation) / len(validation_labels))
        if epoch == 1:
            result["first_loss"] = over_ranks(first) / REPLICAS
    if RANK == 0:
        print(json.dumps(result), flush=True)
    if REPLICAS > 1:
        distributed.barrier()
        os._exit(0)  # now and then gloo's threads make the interpreter's own end an abort


main()
