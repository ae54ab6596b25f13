#!/usr/bin/env python3
"""How near two replicas come to what the machine can give: DDP beside two runs of half the work that nothing connects.

    bench/strong_scaling.py --trainyard build/release/trainyard [--models mlp cnn] [--rounds 5]

Both arms take the same steps on the same two cores: DDP with a batch of 64 over both replicas, and `independent`, two
single runs at once with a batch of 32 each. They take turns, model by model. Printed, medians over rounds of the median
over epochs after the first: the milliseconds of an epoch, the share of the limit that DDP reaches with its range, and
what part of DDP's epoch waits for gradients, or of that for the slower of both replicas, or updates parameters; and how
much longer than those of `independent` its forward and backward passes take.
"""

import argparse
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

from yard_rows import rows

EXPERIMENT = Path(__file__).resolve().parent.parent / "experiments" / "six-models.toml"
MODELS = ["vgg11", "nbow", "seq2seq", "conv-autoencoder", "cnn", "mlp"]
SAMPLES, BATCH = 2000, 64
ARMS = {"ddp": 1, "independent": 2}  # by how much of the batch and of the samples a run has the part

TIMES = """SELECT e.epoch, AVG(e.train_seconds) AS train, AVG(e.exposed_communication_seconds) AS exposed,
AVG(e.optimizer_seconds) AS optimizer, AVG(e.extra ->> '$.straggler_seconds') AS straggler,
AVG(e.forward_seconds + e.backward_seconds) AS compute FROM epoch e JOIN run_in_experiment r USING (run_key)
WHERE r.model = '{model}' AND r.strategy = '{arm}' AND e.epoch > 1 GROUP BY e.epoch"""


def run(options, yard, model, arm):
    part = ARMS[arm]
    command = [options.trainyard, "run", EXPERIMENT, "--yard", yard, "--no-report", "--where", f"model={model}",
               "--where", f"strategy={arm}", "--where", "seed=0", "--set", f"epochs={options.epochs}",
               "--set", f"batch={BATCH // part}", "--set", f"train_samples={SAMPLES // part}"]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode not in (0, 1):  # 1: so short a run misses what the file expects of it
        raise SystemExit(f"{model} {arm}: {result.stderr}")


def times(options, yard, model, arm):
    """Medians over epochs, in seconds, of the mean over ranks."""
    epochs = rows(options.trainyard, yard, TIMES.format(model=model, arm=arm))
    return {name: statistics.median(row[name] or 0 for row in epochs) for name in epochs[0]}  # single ranks wait for nobody


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trainyard", required=True, type=os.path.abspath)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=4, help="of each run; the first is not counted")
    options = parser.parse_args()
    print("| model | DDP ms | independent ms | of the limit % | exposed communication % | slower replica % | optimizer % | "
          "of independent % | compute ms | of independent ms |")
    print("|---|" + 9 * "---:|")
    for model in options.models:
        found = {arm: [] for arm in ARMS}
        with tempfile.TemporaryDirectory() as folder:
            for turn in range(options.rounds):
                yard = f"{folder}/{turn}"
                for arm in sorted(ARMS, reverse=turn % 2 == 1):
                    run(options, yard, model, arm)
                    found[arm].append(times(options, yard, model, arm))
        shares = [100 * limit["train"] / ddp["train"] for ddp, limit in zip(found["ddp"], found["independent"])]
        middle = {arm: 1e3 * statistics.median(each["train"] for each in found[arm]) for arm in ARMS}
        share = {(arm, part): 100 * statistics.median(each[part] / each["train"] for each in found[arm])
                 for arm, part in (("ddp", "exposed"), ("ddp", "straggler"), ("ddp", "optimizer"), ("independent", "optimizer"))}
        compute = {arm: 1e3 * statistics.median(each["compute"] for each in found[arm]) for arm in ARMS}
        print(f"| {model} | {middle['ddp']:.1f} | {middle['independent']:.1f} | {statistics.median(shares):.0f} "
              f"({min(shares):.0f} to {max(shares):.0f}) | {share['ddp', 'exposed']:.1f} | {share['ddp', 'straggler']:.1f} | "
              f"{share['ddp', 'optimizer']:.1f} | {share['independent', 'optimizer']:.1f} | {compute['ddp']:.1f} | "
              f"{compute['independent']:.1f} |", flush=True)


if __name__ == "__main__":
    main()
