#!/usr/bin/env python3
"""Kill a rank of a run at a random moment, again and again, and check what is promised each time.

    bench/kills.py --trainyard build/release/trainyard                 100 kills, shared among the strategies
    bench/kills.py --trainyard build/release/trainyard --kills 10 --seed 3 --strategy async

Each attempt must fail with the cause, leave no process, and the next `run` must resume after the last whole epoch. At the end
losses are those of a run that nobody killed, or the run can be replayed. Otherwise the exit code is 1."""
import argparse
import itertools
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from foreign_sweep import ranks_below, trainyard

EPOCHS = 60
EXPERIMENT = """name = "kills"
matrix = {{ model = ["mlp"], strategy = ["{strategy}"], seed = [0] }}
[defaults]
dataset = "synthetic-digits"
train_samples = 600
epochs = {epochs}
batch = 30
checkpoint = "epoch"
[strategy.sync]
kind = "parameter-server"
servers = 2
[strategy.async]
kind = "parameter-server"
servers = 2
mode = "async"
[strategy.replicas]
kind = "ddp"
[strategy.stages]
kind = "pipeline"
[strategy.parts]
kind = "tensor"
[strategy.mesh]
kind = "tensor"
replicas = 2
stages = 2
[strategy.slices]
kind = "zero"
[machine]
exclusive = "devices"
{machine}"""
STRATEGIES = ("sync", "async", "replicas", "stages", "parts", "mesh", "slices")


def experiment_of(strategy):
    machine = 'communicator = "gloo"\n' if strategy == "slices" else ""  # through shared memory, it does what replicas do
    return EXPERIMENT.format(strategy=strategy, epochs=EPOCHS, machine=machine)


def losses(folder):
    with sqlite3.connect(f"file:{folder}/yard/results.db?mode=ro", uri=True) as database:
        return database.execute("SELECT epoch, train_loss FROM epoch_average ORDER BY epoch").fetchall()


def problems_of_kill(program, folder, chance):
    """Start or resume the run and kill one rank. Returns (whether a rank was killed, problems)."""
    process = trainyard(program, folder, "run", "kills.toml", "--no-report", "--max-retries", "0")
    deadline = time.monotonic() + chance.uniform(0.05, 2.5)
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    victims = ranks_below(folder)
    if process.poll() is not None or not victims:
        process.communicate()
        return False, [] if process.returncode == 0 else [f"the run ended with {process.returncode} without a kill"]
    try:
        os.kill(chance.choice(victims), signal.SIGKILL)
    except ProcessLookupError:
        pass
    out, err = process.communicate(timeout=120)
    if process.returncode == 0:
        return False, []  # the rank had done its work
    found = []
    text = f"{out}{err}"
    if "killed by signal 9" not in text:
        found.append(f"the cause is not named: {text[-500:]}")
    if left := ranks_below(folder):
        found.append(f"processes are left: {left}")
    return True, found


def under_fire(program, strategy, kills, chance):
    """Kill until the run is finished; then begin with a new run. Returns (kills, problems)."""
    found, done = [], 0
    with tempfile.TemporaryDirectory() as name:
        whole = Path(name) / "whole"
        whole.mkdir()
        (whole / "kills.toml").write_text(experiment_of(strategy))
        subprocess.run([program, "run", "kills.toml", "--no-report"], cwd=whole, check=True, capture_output=True)
        for run in itertools.count():
            if done == kills or found:
                break
            folder = Path(name) / f"run-{run}"
            folder.mkdir()
            (folder / "kills.toml").write_text(experiment_of(strategy))
            for _ in range(8):
                killed, problems = problems_of_kill(program, folder, chance)
                done, found = done + killed, found + problems
                if done == kills or found:
                    break
            last = subprocess.run([program, "run", "kills.toml", "--no-report"], cwd=folder, capture_output=True, text=True)
            if last.returncode != 0:
                found.append(f"the run does not finish: {last.stderr[-500:]}")
            elif strategy == "async":
                replay = subprocess.run([program, "replay", "last"], cwd=folder, capture_output=True, text=True)
                if replay.returncode != 0:
                    found.append(f"the replay differs: {replay.stdout}{replay.stderr}")
            elif losses(folder) != losses(whole):
                found.append("the losses are not those of a run that nobody killed")
    return done, found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trainyard", required=True, type=os.path.abspath)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--strategy", choices=STRATEGIES, help="only this one")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    chosen = [options.strategy] if options.strategy else STRATEGIES
    failed = False
    for i, strategy in enumerate(chosen):
        share = options.kills // len(chosen) + (i < options.kills % len(chosen))
        kills, found = under_fire(options.trainyard, strategy, share, chance)
        failed = failed or bool(found)
        print(f"{strategy}: {kills} kills; {found or 'each named, nothing left, every run finished as if nobody had killed it'}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
