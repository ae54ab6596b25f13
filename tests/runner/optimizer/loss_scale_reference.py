"""loss_scale_reference.py FOLDER: train the cases of FOLDER/cases.json in PyTorch with float16 autocast and GradScaler.

Writes raw numbers to FOLDER/<name>.result: the scaler's four settings, then loss, scale and skipped steps after each
step, then all parameters. Replicas are parts of a batch whose gradients are added."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "bench"))
import torch  # noqa: E402
import torch.nn.functional as functional  # noqa: E402

import peer_model  # noqa: E402


def train(folder, case):
    replicas, batch, clip = case["replicas"], case["batch"], case["clip_norm"]
    network = peer_model.build(case["model"], case["shape"], case["classes"], case["hidden"], case["channels"])
    peer_model.initialise(network, case["seed"])
    optimizer = peer_model.optimizer(network.parameters(), **case["optimizer"])
    interval = {} if case["growth_interval"] is None else {"growth_interval": case["growth_interval"]}
    scaler = torch.amp.GradScaler("cpu", **interval)
    images = torch.frombuffer(bytearray((folder / case["images"]).read_bytes()), dtype=torch.float64)
    images = images.view([-1, *case["shape"]]).float()
    labels = torch.tensor(case["labels"])
    numbers = [scaler.get_scale(), scaler.get_growth_factor(), scaler.get_backoff_factor(),
               scaler.get_growth_interval()]
    skipped = 0
    for step in range(case["steps"]):
        optimizer.zero_grad()
        mean = 0.0
        for rank in range(replicas):
            part = slice(step * batch + rank * batch // replicas, step * batch + (rank + 1) * batch // replicas)
            with torch.autocast("cpu", torch.float16):
                logits = network(images[part])
            loss = functional.cross_entropy(logits.float(), labels[part], reduction="sum") / batch
            scaler.scale(loss).backward()
            mean += loss.item()
        if clip > 0:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(network.parameters(), clip)
        scaler.step(optimizer)
        before = scaler.get_scale()
        scaler.update()
        skipped += scaler.get_scale() < before
        numbers += [mean, scaler.get_scale(), skipped]
    values = torch.cat([torch.tensor(numbers, dtype=torch.float64)] +
                       [p.detach().double().flatten() for p in network.parameters()])
    (folder / (case["name"] + ".result")).write_bytes(values.numpy().tobytes())


torch.set_num_threads(1)
target = pathlib.Path(sys.argv[1])
for each in json.loads((target / "cases.json").read_text()):
    train(target, each)
