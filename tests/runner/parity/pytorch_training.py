"""pytorch_training.py PHASE FOLDER: train the networks of FOLDER/cases.json in eager PyTorch, in float64.

Batches are in FOLDER/CASE.batches.safetensors: input.I.STEP and target.STEP. A model of trainyard begins with
FOLDER/CASE.weights.safetensors.

PHASE export   writes FOLDER/CASE.pt2 without dropout and FOLDER/CASE.dropout.pt2 with it, trains without dropout, and
               lists the calls that drop values in FOLDER/calls.json: by case and step
PHASE dropout  trains with the factors factor.CALL.STEP of FOLDER/CASE.dropout.factors.safetensors

Training writes FOLDER/CASE.result.safetensors or FOLDER/CASE.dropout.result.safetensors:
  loss           of each step
  gradient.NAME  of each step
  value.NAME     of each parameter and buffer after training
  output         of the first batch after training, in evaluation
  evaluation     mean loss of all samples, input.I.all and target.all, after training
  flops.PATH     operations that PyTorch counts for the layer PATH in the forward pass of one sample"""
import copy
import importlib
import itertools
import json
import pathlib
import struct
import sys
from unittest import mock

import torch
import torch.nn.functional as functional
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = map(str, (ROOT / "models").iterdir())
import exported_networks  # noqa: E402

KEPT = {"dropout": functional.dropout, "scaled_dot_product_attention": functional.scaled_dot_product_attention}
TYPES = {"F64": torch.float64, "I64": torch.int64}


def read_safetensors(file):
    data = file.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header, values = json.loads(data[8:8 + length]), data[8 + length:]
    assert max((entry["data_offsets"][1] for entry in header.values()), default=0) == len(values)
    return {name: torch.frombuffer(bytearray(values[slice(*entry["data_offsets"])]), dtype=TYPES[entry["dtype"]])
            .reshape(entry["shape"]) for name, entry in header.items()}


def write_safetensors(file, tensors):
    header, values = {"__metadata__": {"format": "pt"}}, b""
    for name, tensor in tensors.items():
        data = tensor.detach().double().contiguous().numpy().tobytes()
        header[name] = {"dtype": "F64", "shape": list(tensor.shape), "data_offsets": [len(values), len(values) + len(data)]}
        values += data
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + values)


def loss_of(task, output, target):
    if task == "reconstruction":
        return functional.mse_loss(output, target)
    if task == "regression":
        return functional.mse_loss(output.squeeze(1), target)
    if task == "language-model":
        return functional.cross_entropy(output.flatten(0, 1), target.flatten())
    if task == "translation":
        return functional.cross_entropy(output.flatten(0, 1), target.flatten(), ignore_index=0)
    return functional.cross_entropy(output, target)


def build(folder, case, dropout):
    if case["model"].startswith("exported-"):
        return exported_networks.build(case["model"], dropout)
    module = importlib.import_module(case["model"].replace("-", "_"))
    values = case["hyperparameters"]
    network = module.build(values | {"dropout": dropout} if "dropout" in values else values, case["input"]).double()
    given = network.load_state_dict(read_safetensors(folder / f"{case['name']}.weights.safetensors"), strict=False)
    assert not given.unexpected_keys and all(key.endswith("num_batches_tracked") for key in given.missing_keys), given
    return network.train()


def export(file, case, network, inputs):
    """Write the network. A Seq2Seq encodes without packed sequences."""
    network = copy.deepcopy(network)
    module = sys.modules[type(network).__module__]
    if hasattr(module, "without_lengths"):
        module.without_lengths(network)
    exported_networks.write(file, network, inputs)


class Batches:
    def __init__(self, folder, case):
        self.tensors, self.steps = read_safetensors(folder / f"{case['name']}.batches.safetensors"), case["steps"]
        self.count = case["inputs"]

    def inputs(self, step):
        return tuple(self.tensors[f"input.{i}.{step}"] for i in range(self.count))

    def target(self, step):
        return self.tensors[f"target.{step}"]


def counted_operations(case, network):
    shape = case["input"]
    texts = [vocabulary for vocabulary in (shape["vocabulary"], shape["target_vocabulary"]) if vocabulary]
    inputs = [torch.full((1, length), 4) for length, _ in zip(case["counted_lengths"], texts)]
    inputs = inputs or [torch.zeros(1, shape["channels"], shape["height"], shape["width"], dtype=torch.float64)]
    attention = {torch.ops.aten._scaled_dot_product_flash_attention_for_cpu:
                 lambda q, k, v, *others, out_shape=None, **named: sdpa_flop_count(q, k, v)}
    counter = FlopCounterMode(display=False, custom_mapping=attention)
    with counter, torch.no_grad():
        network(*inputs)
    by_module = counter.get_flop_counts()
    return {"flops." + path: torch.tensor(float(sum(by_module.get(f"{type(network).__name__}.{path}", {}).values())))
            for path, _ in network.named_children()}


def train(file, case, network, batches):
    optimizer = torch.optim.SGD(network.parameters(), lr=case["learning_rate"], momentum=case["momentum"],
                                weight_decay=case["weight_decay"])
    losses, gradients = [], {name: [] for name, _ in network.named_parameters()}
    for step in range(batches.steps):
        optimizer.zero_grad()
        loss = loss_of(case["task"], network(*batches.inputs(step)), batches.target(step))
        loss.backward()
        losses.append(loss.detach())
        for name, parameter in network.named_parameters():
            gradients[name].append(parameter.grad.clone())
        optimizer.step()
    result = {"loss": torch.stack(losses)} | {f"gradient.{name}": torch.stack(each) for name, each in gradients.items()}
    result |= {f"value.{name}": x for name, x in [*network.named_parameters(), *network.named_buffers()]}
    with torch.no_grad():
        result["output"] = network.eval()(*batches.inputs(0))
        result["evaluation"] = loss_of(case["task"], network(*batches.inputs("all")), batches.target("all"))
    if not case["model"].startswith("exported-"):
        result |= counted_operations(case, network)
    write_safetensors(file, result)


def with_dropout(network, inputs, drop):
    """Call the network. `drop(shape, p, attention)` gives the factors of each call that drops values."""
    def dropout(x, p=0.5, training=True, inplace=False):
        return x * drop(x.shape, p, False) if training and p > 0 else x

    def attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False):
        if dropout_p == 0:
            return KEPT["scaled_dot_product_attention"](q, k, v, attn_mask, 0.0, is_causal)
        kept = drop((*q.shape[:-1], k.size(-2)), dropout_p, True) != 0
        if attn_mask is not None and attn_mask.dtype == torch.bool:
            attn_mask = torch.zeros_like(attn_mask, dtype=q.dtype).masked_fill(~attn_mask, -torch.inf)
        return torch._scaled_dot_product_attention_math(q, k, v, attn_mask, dropout_p, is_causal, kept)[0]

    with mock.patch.multiple(functional, dropout=dropout, scaled_dot_product_attention=attention):
        return network(*inputs)


def calls_of(network, batches):
    """What each step calls: {"shape", "p", "attention"} of each call, in their order."""
    steps = []
    for step in range(batches.steps):
        calls = []

        def drop(shape, p, attention):
            calls.append({"shape": list(shape), "p": p, "attention": attention})
            return torch.ones(shape, dtype=torch.float64)

        with_dropout(copy.deepcopy(network), batches.inputs(step), drop)
        steps.append(calls)
    return steps


class Dropping:
    """A network whose calls drop values with given factors."""

    def __init__(self, network, factors):
        self.network, self.factors, self.steps = network, factors, itertools.count()

    def __getattr__(self, name):
        return getattr(self.network, name)

    def __call__(self, *inputs):
        step, calls = next(self.steps), itertools.count()

        def drop(shape, p, attention):
            factors = self.factors.pop(f"factor.{next(calls)}.{step}")
            assert factors.shape == shape, (factors.shape, shape)
            return factors

        return with_dropout(self.network, inputs, drop)


def main():
    phase, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    torch.set_num_threads(1)
    calls = {}
    for case in json.loads((folder / "cases.json").read_text()):
        name, batches = case["name"], Batches(folder, case)
        dropping = build(folder, case, case["dropout"])
        if phase == "export":
            network = build(folder, case, 0.0)
            export(folder / f"{name}.pt2", case, network, batches.inputs(0))
            train(folder / f"{name}.result.safetensors", case, network, batches)
            if case["dropout"] > 0:
                export(folder / f"{name}.dropout.pt2", case, dropping, batches.inputs(0))
                calls[name] = calls_of(dropping, batches)
        elif case["dropout"] > 0:
            factors = read_safetensors(folder / f"{name}.dropout.factors.safetensors")
            train(folder / f"{name}.dropout.result.safetensors", case, Dropping(dropping, factors), batches)
            assert not factors, "PyTorch made fewer calls"
    if phase == "export":
        (folder / "calls.json").write_text(json.dumps(calls))


if __name__ == "__main__":
    main()
