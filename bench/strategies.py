#!/usr/bin/env python3
"""Compare step times of strategies, and of the same in PyTorch, with two replicas or two parts over messages.

    bench/strategies.py --build build/release --rounds 8

All arms of a round (a seed) take turns. A ratio is an arm / ddp within the round, from the median time of the epochs after the first.
Prints the geometric mean over rounds with its 95 % t interval, as Markdown. Arms that compute the same as ddp must have its loss
in the first epoch, to 1e-3; others are marked."""
import argparse
import json
import math
import pathlib
import sqlite3
import statistics
import subprocess
import sys
import tempfile

from student_t import ratio_95

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
ZERO, SERVERS, TENSOR = ("optimizer", "gradients", "parameters", "zero1", "fsdp2", "fsdp"), ("servers", "async"), ("tensor",)
MODELS = {  # batch, training samples, settings, arms that are left out: PyTorch has no tensor parts of convolutions
    "mlp": (128, 4000, "hidden = [128, 64]", ()),
    "wide": (64, 4000, "hidden = [2048, 2048]", ZERO + SERVERS),
    "cnn": (128, 1536, "", TENSOR),
}
OWN = {
    "ddp": "",
    "optimizer": 'kind = "zero"\nsharding = "optimizer"',
    "gradients": 'kind = "zero"\nsharding = "gradients"',
    "parameters": 'kind = "zero"',
    "servers": 'kind = "parameter-server"',
    "async": 'kind = "parameter-server"\nmode = "async"',
    "tensor": "",
}
PEERS = ("tuned", "zero1", "fsdp2", "fsdp", "servers", "tensor")  # styles of pytorch_arm.py
FILES = ("pytorch_arm.py", "pytorch_data.py", "pytorch_steps.py", "pytorch_servers.py", "peer_model.py")
ANOTHER = ("async",)  # another algorithm


def experiment(options, model):
    batch, samples, settings, left_out = MODELS[model]
    network = "mlp" if model == "wide" else model
    peers = [style for style in PEERS if style not in left_out]
    own = [name for name in OWN if name not in left_out]
    arms = [*own, *(f"pytorch-{style}" for style in peers)]
    text = f"""name = "strategies-{model}"
[matrix]
model = ["{network}"]
strategy = {json.dumps(arms)}
seed = {{ count = {options.rounds} }}
[defaults]
dataset = "synthetic-digits"
train_samples = {samples}
batch = {batch}
epochs = {options.epochs}
optimizer = "adam"
learning_rate = 0.0005
[model.{network}]
{settings}
[machine]
communicator = "gloo"
[compare]
axis = "strategy"
baseline = "ddp"
differs = ["versions"]
"""
    for name in own:
        text += f"[strategy.{name}]\n{OWN[name]}\n"
    for style in peers:
        command = [options.python, str(HERE / "pytorch_arm.py"), "--style", style, "--export", str(options.build / "bench" / "bench_export")]
        files = [str(HERE / file) for file in FILES] + [str(ROOT / "models" / network / f"{network}.py")]
        text += f"[strategy.pytorch-{style}]\nreplicas = 2\ncommand = {json.dumps(command)}\nfiles = {json.dumps(files)}\n"
    return text, arms


def results(database, arm):
    """By seed: (median seconds of an epoch of the slowest rank, without the first; loss of the first epoch)."""
    seconds = {}
    for seed, epoch, slowest in database.execute(
            "SELECT seed, epoch, MAX(train_seconds) FROM epoch JOIN run USING (run_key) WHERE strategy = ? AND epoch > 1 "
            "GROUP BY run_key, epoch HAVING MAX(train_seconds) IS NOT NULL", (arm,)):
        seconds.setdefault(seed, []).append(slowest)
    losses = dict(database.execute("SELECT seed, train_loss FROM epoch_average WHERE strategy = ? AND epoch = 1", (arm,)))
    return {seed: (statistics.median(all_), losses[seed]) for seed, all_ in seconds.items()}


def row(arm, found, base, steps):
    shared = sorted(found.keys() & base.keys())
    if not shared:
        return f"| `{arm}` | no result |"
    logs = [math.log(found[seed][0] / base[seed][0]) for seed in shared]
    off = max(abs(found[seed][1] / base[seed][1] - 1) for seed in shared)
    low, middle, high = ratio_95(logs)
    note = "" if arm in ANOTHER or off <= 1e-3 else f" **losses differ by {100 * off:.1f} %**"
    milliseconds = 1e3 * statistics.mean(found[seed][0] for seed in shared) / steps
    return f"| `{arm}` | {milliseconds:.2f} ms | {middle:.2f} ({low:.2f} to {high:.2f}) | {len(shared)} rounds |{note}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--python", default=str(ROOT / "build" / "venv" / "bin" / "python3"), help="a Python with torch")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=5, help="the first is not counted")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    options = parser.parse_args()
    options.build = options.build.resolve()
    with tempfile.TemporaryDirectory(prefix="trainyard-strategies-") as folder:
        for model in options.models:
            text, arms = experiment(options, model)
            yard = pathlib.Path(folder, model)
            yard.mkdir()
            (yard / "sweep.toml").write_text(text)
            done = subprocess.run([options.build / "trainyard", "run", "sweep.toml", "--no-report"], cwd=yard, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if done.returncode not in (0, 1):
                sys.exit(done.stdout)
            print(f"\n{model}: {MODELS[model][2]}\n\n| arm | a step | against `ddp` | |\n|---|---:|---:|---|")
            with sqlite3.connect(f"file:{yard}/yard/results.db?mode=ro", uri=True) as database:
                base = results(database, "ddp")
                steps = math.ceil(MODELS[model][1] / MODELS[model][0])
                for arm in arms:
                    print(row(arm, results(database, arm), base, steps), flush=True)


if __name__ == "__main__":
    main()
