#!/usr/bin/env python3
"""Does a time verdict hold while another process takes one core at random half of the time?

    bench/disturbance.py sweeps TRAINYARD FOLDER --core 0 --sweeps 20    real sweeps
    bench/disturbance.py simulate FOLDER --sweeps 500                    with the shares that these recorded

A real sweep has ten pairs of runs of a program that does fixed work in each epoch. In half of the sweeps the arm has
10 % more work, in the others the same. The other process is on for a random time, off for a random time, and so on.
These times are exponential. A simulated run has the recorded shares of a real one: an epoch with the share s takes
1 / (1 - s) times as long as alone. docs/other-processes.md has the results.
"""

import argparse
import csv
import math
import os
import random
import sqlite3
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from student_t import T_95

# Each step waits for the last one. So the time hardly depends on the other hyper-thread of the core.
CHAIN = r"""unsigned long chain(unsigned long steps) {
  unsigned long x = 1;
  while (steps-- > 0) x = x * 6364136223846793005UL + 1442695040888963407UL;
  return x;
}
"""

WORK = r'''import ctypes, json, os, sys, time
chain = ctypes.CDLL("./chain.so").chain
chain.argtypes, chain.restype = [ctypes.c_ulong], ctypes.c_ulong
work, epochs, launch = int(sys.argv[1]), int(sys.argv[2]), os.environ["TRAINYARD_RUN"]
run = json.load(open(launch))
log = open(os.path.join(os.path.dirname(launch), "rank-0.records.jsonl"), "a", buffering=1)
begin, number = time.perf_counter(), 0
def record(kind, **body):
    global number
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
    log.write(json.dumps({"v": 1, "run": run["run"], "attempt": run["attempt"], "rank": 0, "seq": number, "type": kind,
                          "time": stamp, "elapsed_seconds": time.perf_counter() - begin, **body}) + "\n")
    number += 1
record("start", device="cpu:0")
for epoch in range(1, epochs + 1):
    wall, processor = time.perf_counter(), time.process_time()
    chain(work)
    record("epoch", epoch=epoch, train_seconds=time.perf_counter() - wall,
           processor_seconds=time.process_time() - processor)
record("end", status="finished")
'''

EPOCHS, PAIRS = 12, 10
RUN_NOISE, EPOCH_NOISE = 0.01, 0.02  # standard deviations of the logarithm of an undisturbed time
# One-sided 95 % quantiles for 1, 2, … degrees of freedom.
T_90 = [6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833]


def disturb(core: int, mean_seconds: float, seed: int) -> None:
    """Take the core at random half of the time, until the parent ends."""
    os.sched_setaffinity(0, {core})
    parent, draw = os.getppid(), random.Random(seed)
    while os.getppid() == parent:
        time.sleep(draw.expovariate(1 / mean_seconds))
        until = time.perf_counter() + draw.expovariate(1 / mean_seconds)
        while time.perf_counter() < until:
            pass


def write_experiment(folder: Path, work: int, more: float) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "work.py").write_text(WORK)
    (folder / "chain.c").write_text(CHAIN)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", "chain.so", "chain.c"], cwd=folder, check=True)
    strategies = "".join(
        f'[strategy.{name}]\ncommand = ["{sys.executable}", "work.py", "{int(each)}", "{EPOCHS}", "{name}"]\nfiles = ["work.py", "chain.so"]\n'
        for name, each in (("base", work), ("arm", work * (1 + more)))
    )
    file = folder / "disturbed.toml"
    file.write_text(
        f"""name = "disturbed"
[matrix]
model = ["mlp"]
strategy = ["base", "arm"]
seed = {{ count = {PAIRS} }}
[defaults]
dataset = "synthetic-digits"
epochs = {EPOCHS}
{strategies}[compare]
axis = "strategy"
baseline = "base"
"""
    )
    return file


def time_word(program: str, folder: Path) -> dict:
    text = subprocess.run(
        [program, "compare", "--yard", "yard", "--format", "csv"], cwd=folder, capture_output=True, text=True
    ).stdout
    return next(row for row in csv.DictReader(text.splitlines()) if row["metric"] == "train-seconds")


def run_sweeps(args: argparse.Namespace) -> None:
    os.sched_setaffinity(0, {args.core})
    environment = {**os.environ, "TRAINYARD_HOST_LOCK": str(args.folder / "locks")}
    (args.folder / "locks").mkdir(parents=True, exist_ok=True)
    for sweep in range(args.first, args.first + args.sweeps):
        for more in (0.1, 0.0):
            folder = args.folder / f"{'longer' if more else 'equal'}-{sweep}"
            file = write_experiment(folder, int(args.steps), more)
            disturb_it = [sys.executable, __file__, "disturb", str(args.core), str(args.burst), str(sweep)]
            other = subprocess.Popen(disturb_it if args.burst else ["true"])
            try:
                subprocess.run([args.trainyard, "run", file.name, "--yard", "yard", "--no-report"], cwd=folder,
                               env=environment, capture_output=True, check=True)
            finally:
                other.kill()
                other.wait()
            row = time_word(args.trainyard, folder)
            print(folder.name, row["verdict"], row["n"], flush=True)


def recorded_pairs(folder: Path) -> list[list[list[float]]]:
    """The shares of others of all pairs of runs, per epoch."""
    pairs = []
    for yard in sorted(folder.rglob("yard/results.db")):
        runs: dict[tuple[int, str], list[float]] = {}
        for seed, arm, share in sqlite3.connect(yard).execute(
            "SELECT seed, strategy, other_share FROM epoch_average ORDER BY run_key, epoch"
        ):
            runs.setdefault((seed, arm), []).append(share)
        both = [[runs.get((seed, arm)) for arm in ("base", "arm")] for seed in range(PAIRS)]
        pairs += [pair for pair in both if all(pair)]
    return pairs


def run_of(shares: list[float], work: float, draw: random.Random) -> list[tuple[float, float]]:
    """A run with these shares: (seconds, share) of each epoch."""
    work *= math.exp(draw.gauss(0, RUN_NOISE))
    return [(work * math.exp(draw.gauss(0, EPOCH_NOISE)) / (1 - share), share) for share in shares]


def time_of(run: list[tuple[float, float]], limit: float, least: float) -> float | None:
    """Median over the undisturbed epochs without the first. None if they are fewer than `least` of all."""
    counting = [seconds for seconds, share in run[1:] if share <= limit]
    return statistics.median(counting) if counting and len(counting) >= least * (len(run) - 1) else None


def word(differences: list[float]) -> str:
    """The three-sided test of one cell with α = 0.05 and a margin of 5 %."""
    n = len(differences)
    if n < 3:
        return "none"
    mean, error = statistics.mean(differences), statistics.stdev(differences) / math.sqrt(n)
    margin = math.log(1.05)
    if abs(mean) - margin > T_95[n - 2] * error:
        return "shift"
    return "no change" if margin - abs(mean) > T_90[n - 2] * error else "inconclusive"


def simulate(args: argparse.Namespace) -> None:
    pairs = recorded_pairs(args.folder)
    print(f"{len(pairs)} recorded pairs of runs; others took a mean share of "
          f"{100 * statistics.mean(share for pair in pairs for run in pair for share in run):.0f} %")
    print("| epochs | limit | undisturbed epochs, at least | pairs with times | wrong word | NO CHANGE | DETERIORATES |")
    print("|---:|---:|---|---:|---:|---:|---:|")
    for runs in (1, 2):
        for limit in (0.01, 0.02, 0.05, 0.1, 0.2, 1.0):
            for least, name in ((0, "one"), (0.25, "a quarter"), (0.5, "half")):
                row = simulated_row(pairs, runs, args.sweeps, limit, least)
                print(f"| {runs * EPOCHS} | {100 * limit:g} % | {name} | {row} |")


def simulated_row(pairs: list[list[list[float]]], runs: int, sweeps: int, limit: float, least: float) -> str:
    """Mean number of pairs with times, and rates of words: two without a difference, one with 10 % more work."""
    # A longer run has the shares of several recorded runs, one after the other.
    draw, used = random.Random(1), 0
    joined = [
        [sum((pairs[(i + k) % len(pairs)][arm] for k in range(runs)), []) for arm in (0, 1)] for i in range(len(pairs))
    ]
    words: dict[float, Counter[str]] = {0.0: Counter(), 0.1: Counter()}
    for more in words:
        for _ in range(sweeps):
            drawn = [draw.choice(joined) for _ in range(PAIRS)]
            times = [
                [time_of(run_of(run, work, draw), limit, least) for run, work in zip(pair, (1, 1 + more))]
                for pair in drawn
            ]
            differences = [math.log(a / b) for a, b in times if a and b]
            used += len(differences)
            words[more][word(differences)] += 1
    rates = " | ".join(
        f"{100 * words[more][each] / sweeps:.1f} %" for more, each in ((0.0, "shift"), (0.0, "no change"), (0.1, "shift"))
    )
    return f"{used / (2 * sweeps):.1f} | {rates}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    sweeps = commands.add_parser("sweeps")
    sweeps.add_argument("trainyard")
    sweeps.add_argument("folder", type=Path)
    sweeps.add_argument("--core", type=int, default=0)
    sweeps.add_argument("--sweeps", type=int, default=20)
    sweeps.add_argument("--first", type=int, default=0, help="number of the first one, to continue")
    sweeps.add_argument("--steps", type=float, default=4.5e8, help="of an epoch of the baseline")
    sweeps.add_argument("--burst", type=float, default=2.0, help="mean seconds on, and off; 0: none")
    sweeps.set_defaults(run=run_sweeps)
    other = commands.add_parser("disturb")
    other.add_argument("core", type=int)
    other.add_argument("seconds", type=float)
    other.add_argument("seed", type=int)
    other.set_defaults(run=lambda args: disturb(args.core, args.seconds, args.seed))
    simulation = commands.add_parser("simulate")
    simulation.add_argument("folder", type=Path)
    simulation.add_argument("--sweeps", type=int, default=500)
    simulation.set_defaults(run=simulate)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
