"""pytorch_networks.py FOLDER: train the PyTorch models (models/NAME/NAME.py) of the cases in FOLDER/cases.json, in float64.

Reads the initial weights from FOLDER/CASE.weights.safetensors and the batches from FOLDER/CASE.batches.safetensors.
Writes FOLDER/CASE.result.safetensors:
  losses       of all steps
  output       of the first batch after training, in evaluation
  flops.PATH   operations that PyTorch counts for the layer PATH in one forward pass of the first batch
and all parameters and buffers."""
import importlib
import json
import pathlib
import struct
import sys

import torch
import torch.nn.functional as functional
from torch.utils.flop_counter import FlopCounterMode

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
    if task == "translation":
        return functional.cross_entropy(output.flatten(0, 1), target.flatten(), ignore_index=0)
    return functional.cross_entropy(output, target)


def counted_operations(network, inputs):
    counter = FlopCounterMode(display=False)
    with counter, torch.no_grad():
        network(*inputs)
    by_module = counter.get_flop_counts()
    return {"flops." + path: torch.tensor(float(sum(by_module.get(f"{type(network).__name__}.{path}", {}).values())))
            for path, _ in network.named_children()}


def train(folder, case):
    name = case["model"].replace("-", "_")
    sys.path.insert(0, str(pathlib.Path("models") / name))
    module = importlib.import_module(name)
    network = module.build(case["hyperparameters"], case["input"]).double()
    missing, unexpected = network.load_state_dict(read_safetensors(folder / f"{case['name']}.weights.safetensors"), strict=False)
    assert not unexpected and all(key.endswith("num_batches_tracked") for key in missing), (missing, unexpected)
    batches = read_safetensors(folder / f"{case['name']}.batches.safetensors")
    inputs = [batches[f"input.{i}"] for i in range(case["inputs"])]
    result = counted_operations(network.eval(), [x[0] for x in inputs])
    network.train()
    optimizer = torch.optim.SGD(network.parameters(), lr=case["learning_rate"])
    losses = []
    for step, target in enumerate(batches["target"]):
        optimizer.zero_grad()
        loss = loss_of(case["task"], network(*[x[step] for x in inputs]), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    result["losses"] = torch.stack(losses)
    with torch.no_grad():
        result["output"] = network.eval()(*[x[0] for x in inputs])
        if hasattr(module, "without_lengths"):  # as bench/pytorch_arm.py uses it in a CUDA graph
            module.without_lengths(network)
            torch.testing.assert_close(network(*[x[0] for x in inputs]), result["output"], rtol=0, atol=1e-12)
    result |= {name: value for name, value in network.state_dict().items() if not name.endswith("num_batches_tracked")}
    write_safetensors(folder / f"{case['name']}.result.safetensors", result)


def main():
    folder = pathlib.Path(sys.argv[1])
    torch.set_num_threads(1)
    for case in json.loads((folder / "cases.json").read_text()):
        train(folder, case)


if __name__ == "__main__":
    main()
