#!/usr/bin/env python3
"""Measure the fixed cost of a run: its start-up, and the time of an epoch that no phase accounts for.

    bench/fixed_cost.py --trainyard build/release/trainyard [--rounds 10]

1. Start-up of an MLP on generated digits, as `single` and as two replicas, in one sweep:
   - milliseconds from the launch (run.json is written) to the first step of the slowest rank,
   - milliseconds of it after the start of the rank's program.
   The first seed is not counted, because its runs begin with the parity check.
2. Before and after the sweep: milliseconds to load LibTorch (`trainyard-runner --version`) and PyTorch (`import torch`).
3. `other_seconds` in percent of the epochs, for the six models of experiments/six-models.toml.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from yard_rows import rows

ROOT = Path(__file__).resolve().parent.parent
STRATEGIES = ["single", "ddp"]

SWEEP = """name = "fixed cost"
[matrix]
model = ["mlp"]
strategy = ["single", "ddp"]
seed = {{ count = {seeds} }}
[defaults]
dataset = "synthetic-digits"
train_samples = 2000
epochs = 1
[strategy.ddp]
replicas = 2
"""

STARTS = """SELECT a.run_key, r.strategy, r.seed,
1000 * MAX((julianday(e.time) - julianday(a.created)) * 86400 - e.train_seconds - e.validation_seconds) AS launch,
1000 * MAX(e.elapsed_seconds - e.train_seconds - e.validation_seconds) AS begun
FROM epoch e JOIN attempt a USING (run_key, attempt) JOIN run_in_experiment r USING (run_key)
WHERE e.epoch = 1 GROUP BY a.run_key ORDER BY r.seed"""

PARTS = """SELECT r.model, r.strategy, 100 * SUM(e.other_seconds) / SUM(e.train_seconds) AS other
FROM epoch e JOIN run_in_experiment r USING (run_key) WHERE e.epoch > 1 GROUP BY r.model, r.strategy ORDER BY r.model"""


def seconds_of(*command: object) -> float:
    begin = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begin


def train(trainyard: str, yard: Path, file: Path, *words: str) -> None:
    done = subprocess.run([trainyard, "run", file, "--yard", yard, "--no-report", *words], capture_output=True, text=True)
    if done.returncode not in (0, 1):  # 1: a run this short misses the targets of the file
        sys.exit(done.stderr)


def spread(milliseconds: list[float]) -> str:
    return f"{statistics.median(milliseconds):.0f} ({min(milliseconds):.0f} to {max(milliseconds):.0f})"


def starts(options: argparse.Namespace, folder: Path) -> None:
    file, yard = folder / "fixed.toml", folder / "fixed"
    file.write_text(SWEEP.format(seeds=options.rounds + 1))
    loads, imports = [], []

    def load() -> None:
        for _ in range((options.rounds + 1) // 2):
            loads.append(1e3 * seconds_of(Path(options.trainyard).parent / "trainyard-runner", "--version"))
            imports.append(1e3 * seconds_of(options.python, "-c", "import torch"))

    load()
    train(options.trainyard, yard, file)
    load()
    found = rows(options.trainyard, yard, STARTS)
    print("| strategy | launch to first step ms | program start to first step ms |\n|---|---:|---:|")
    for strategy in STRATEGIES:
        of = [row for row in found if row["strategy"] == strategy and row["seed"] > 0]
        print(f"| {strategy} | {spread([row['launch'] for row in of])} | {spread([row['begun'] for row in of])} |")
    print(f"\nloading LibTorch {spread(loads)} ms, PyTorch {spread(imports)} ms\n", flush=True)


def others(options: argparse.Namespace, folder: Path) -> None:
    yard = folder / "parts"
    train(options.trainyard, yard, ROOT / "experiments" / "six-models.toml", "--where", "strategy=single",
          "--where", "strategy=ddp", "--where", "seed=0", "--set", "epochs=4")
    print("| model | " + " | ".join(f"{strategy}: other %" for strategy in STRATEGIES) + " |\n|---|---:|---:|")
    found = {(row["model"], row["strategy"]): row["other"] for row in rows(options.trainyard, yard, PARTS)}
    for model in sorted({model for model, _ in found}):
        print(f"| {model} | " + " | ".join(f"{found[model, strategy]:.2f}" for strategy in STRATEGIES) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trainyard", required=True, type=os.path.abspath)
    parser.add_argument("--python", default="python3", help="a Python with torch")
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        starts(options, Path(name))
        others(options, Path(name))


if __name__ == "__main__":
    main()
