"""Ten steps of eager PyTorch beside a run of trainyard: same weights, data, order of samples, batches and optimizer.

    eager.py WRAPPERS NAME FILE.pt2 CASE DTYPE

CASE is the folder that bench_export wrote. Prints JSON: losses of training and validation, and seconds, of each epoch. In
float32 PyTorch is tuned: a fused optimizer, and channels_last for convolutions, unless the network cannot read it."""
import contextlib
import importlib.util
import json
import pathlib
import sys
import time
import warnings

import torch
from torch.nn import functional as F

BENCH = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(BENCH), str(BENCH.parent / "tools" / "trainyard")]
from export_model.reference import InDouble  # noqa: E402: reads a float32 that the network names as float64
from peer_model import stream  # noqa: E402
from pytorch_data import Pairs, Sequences, Texts, read_part  # noqa: E402


class Windows:
    """A window has a token more than the network reads."""
    def __init__(self, folder, part):
        self.texts = Sequences(folder, part)

    def __len__(self):
        return len(self.texts.lengths)

    def batch(self, indices):
        return (self.texts.padded(indices, last=1), ), self.texts.padded(indices, first=1)

    def order(self, batch, generator):
        return torch.randperm(len(self), generator=generator)


class Grouped(Texts):
    """Texts in batches of similar length."""
    def keys(self):
        return self.texts.lengths

    order, evaluation_order = Pairs.order, Pairs.evaluation_order


def read(folder, part, case):
    if case["task"] == "language-model":
        return Windows(folder, part)
    if case["task"] == "classification" and case["input"]["vocabulary"]:
        return Grouped(folder, part, case, channels_last=False)
    return read_part(folder, part, case, case["channels_last"])


def sum_and_weight(outputs, targets, case, own_loss):
    """The summed loss of a batch and what it is divided by."""
    if own_loss:
        return own_loss(outputs, targets).sum(), len(targets)
    if case["task"] == "reconstruction":
        return F.mse_loss(outputs, targets, reduction="sum"), targets.numel()
    if case["task"] == "classification":
        return F.cross_entropy(outputs, targets, reduction="sum"), len(targets)
    ignored = 0 if case["task"] == "translation" else -100
    return (F.cross_entropy(outputs.flatten(0, 1), targets.flatten(), ignore_index=ignored,
                            reduction="sum"), int((targets != ignored).sum()))


def read_wrapper(file, name):
    spec = importlib.util.spec_from_file_location("wrappers", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    values = getattr(module, name)(4)
    return values[0], next((value for value in values[2:] if callable(value)), None)


def trained(network, own_loss, folder, case):
    train, validation = read(folder, "train", case), read(folder, "validation", case)
    fused = case["dtype"] == torch.float32
    optimizer = torch.optim.SGD(network.parameters(), lr=case["optimizer"]["learning_rate"], fused=fused)
    batch, epochs = case["global_batch"], []
    for epoch in range(1, case["epochs"] + 1):
        order = train.order(batch, stream("order", case["seed"], epoch))
        network.train()
        total, weights, started = 0.0, 0, time.perf_counter()
        for indices in order.split(batch):
            loss, weight = sum_and_weight(*computed(network, train, indices, case), case, own_loss)
            optimizer.zero_grad()
            (loss / weight).backward()
            optimizer.step()
            total, weights = total + loss.detach(), weights + weight
        train_loss, seconds = float(total) / weights, time.perf_counter() - started
        network.eval()
        with torch.no_grad():
            places = getattr(validation, "evaluation_order", None)
            places = torch.arange(len(validation)) if places is None else places
            sums = [sum_and_weight(*computed(network, validation, part, case), case, own_loss) for part in places.split(batch)]
        epochs.append({
            "train_loss": train_loss,
            "seconds": seconds,
            "validation_loss": float(sum(loss for loss, _ in sums)) / sum(weight for _, weight in sums)
        })
    return epochs


def with_channels_last(network, folder, case):
    """The data and the network with channels last, if they compute with it."""
    data = read_part(folder, "train", case, channels_last=True)
    try:
        network.eval().to(memory_format=torch.channels_last)(*data.batch(torch.arange(2))[0])
        return True
    except RuntimeError:  # a view of an image
        network.to(memory_format=torch.contiguous_format)
        return False


def computed(network, data, indices, case):
    inputs, targets = data.batch(indices)
    if case["masked"]:
        inputs = (*inputs, (inputs[0] != 0).long())
    return network(*inputs), targets


def main():
    wrappers, name, file, folder, dtype = sys.argv[1:]
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    folder, dtype = pathlib.Path(folder), getattr(torch, dtype)
    case = json.loads((folder / "case.json").read_text()) | {"dtype": dtype}
    torch.manual_seed(0)
    network, own_loss = read_wrapper(wrappers, name)
    network.load_state_dict(torch.export.load(file).state_dict, strict=False)
    network = network.to(dtype)
    images = any(isinstance(module, torch.nn.Conv2d) for module in network.modules())
    case["channels_last"] = dtype == torch.float32 and images and with_channels_last(network, folder, case)
    with InDouble() if dtype == torch.float64 else contextlib.nullcontext():
        epochs = trained(network, own_loss, folder, case)
    print(json.dumps(epochs))


if __name__ == "__main__":
    main()
