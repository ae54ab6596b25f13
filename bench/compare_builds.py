#!/usr/bin/env python3
"""Compare two builds of trainyard: processor time of training of one rank, and of `db rebuild`; step times of several ranks.

    bench/compare_builds.py OLD NEW [--rounds 6] [--models cnn mlp]
    bench/compare_builds.py OLD NEW --rounds 12 --models cnn --strategies ddp mp pipeline

OLD and NEW are folders with the programs. Both builds do the same work at once on ONE core, so the scheduler gives them turns of
milliseconds, and load of others meets both alike. On each further core of --cores another pair runs, with the order swapped. Prints the
geometric mean of new / old with its 95 % t interval.

Each process begins with blocks of memory of random sizes. Without them, every process of a build places its tensors alike, and that
alone made a difference of 2 % between builds that compute the same.

With --strategies, each round has a run of each build, one after the other, in an order that changes. The machine must be idle. The time
is that of all epochs after the first.
"""

import argparse
import math
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import rebuild
from student_t import ratio_95

WORK = {  # data set, training samples, epochs, more settings of the model
    "cnn": ("synthetic-digits", 800, 12, ""),
    "mlp": ("synthetic-digits", 4000, 30, ""),
    "conv-autoencoder": ("cifar10", 1000, 8, "channels = [8, 16, 32]"),
    "vgg11": ("cifar10", 1000, 4, "width = 8"),
    "nbow": ("imdb", 2000, 20, "embedding = 64"),
    "seq2seq": ("multi30k", 600, 4, "embedding = 64\nhidden = 128\ndropout = 0.1"),
}

SWEEP = """name = "builds"
[data]
cifar10 = "synthetic"
imdb = "synthetic"
multi30k = "synthetic"
[matrix]
model = ["{model}"]
strategy = ["{strategy}"]
seed = [0]
[defaults]
dataset = "{dataset}"
train_samples = {samples}
epochs = {epochs}
batch = 64
[model.{model}]
{settings}
"""

RANDOM_PLACEMENT = """
#include <stdlib.h>
#include <sys/random.h>
__attribute__((constructor)) static void displace(void) {
  unsigned short sizes[8];
  if (getrandom(sizes, sizeof sizes, 0) != sizeof sizes) abort();
  for (int i = 0; i < 8; ++i) *(volatile char*)malloc(1 + sizes[i] % 4096) = 1;
}
"""


def random_placement(folder: Path) -> Path:
    """A library that a process loads first. The blocks that it allocates are never released."""
    library = folder / "placement.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-x", "c", "-", "-o", library], input=RANDOM_PLACEMENT, text=True, check=True)
    return library


def surroundings(folder: Path, **more: str) -> dict[str, str]:
    return dict(os.environ, TRAINYARD_HOST_LOCK=str(folder / "lock"), TRAINYARD_OTHERS_LIMIT="1000", **more)


def sweep_text(model: str, strategy: str = "single", network: str = "") -> str:
    dataset, samples, epochs, settings = WORK[model]
    if strategy != "single":
        epochs *= 5  # so that beginnings and ends of epochs count little
    return SWEEP.format(model="network" if network else model, strategy=strategy, dataset=dataset, epochs=epochs, samples=samples,
                        settings=network or settings)


def planned_run(program: Path, folder: Path, model: str, network: str = "") -> Path:
    """run.json of a run of this build. The sweep that wrote it is stopped. `network` replaces the lines of [model.NAME]."""
    folder.mkdir()
    (folder / "sweep.toml").write_text(sweep_text(model, network=network))
    sweep = subprocess.Popen([program, "run", "sweep.toml", "--no-report"], cwd=folder, env=surroundings(folder),
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while not list(folder.glob("yard/runs/*/attempt-1/rank-0.records.jsonl")):
        if sweep.poll() is not None:
            sys.exit(f"{program} run ended with {sweep.returncode}: {sweep.stderr.read()}")
        time.sleep(0.05)
    sweep.terminate()
    sweep.communicate()
    return next(folder.glob("yard/runs/*/attempt-1/run.json"))


def yard_of_rows(program: Path, folder: Path) -> None:
    folder.mkdir()
    (folder / "rows.py").write_text(rebuild.PROGRAM)
    (folder / "rows.toml").write_text(rebuild.EXPERIMENT.format(runs=6, epochs=5000, python=sys.executable))
    subprocess.run([program, "run", "rows.toml", "--no-report"], cwd=folder, env=surroundings(folder), check=True,
                   stdout=subprocess.DEVNULL)


def on_core(core: int, command: list, **arguments) -> subprocess.Popen:
    return subprocess.Popen(["taskset", "-c", str(core), *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **arguments)


def training(runs: dict[str, Path], runners: dict[str, Path], folder: Path, placement: str):
    """A function for `ratios`: it starts rank 0 of runs[build] with the program runners[build]."""
    def train(build: str, core: int, number: int) -> subprocess.Popen:
        records = Path(tempfile.mkdtemp(dir=folder))
        return on_core(core, [runners[build], "--records", records],
                       env=surroundings(folder, TRAINYARD_RUN=str(runs[build]), LD_PRELOAD=placement))
    return train


def ratios(start, rounds: int, cores: list[int]) -> list[float]:
    """Logarithms of new / old in processor time. `start(build, core, round)` starts one process on a core."""
    logs = []
    for number in range(rounds):
        processes = [(build, core, start(build, core, number)) for core in cores
                     for build in (("old", "new") if (number + core) % 2 else ("new", "old"))]
        seconds = {}
        for build, core, process in processes:
            _, status, use = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode != 0:
                sys.exit(f"the {build} build ended with {process.returncode}")
            seconds[build, core] = use.ru_utime + use.ru_stime
        logs += [math.log(seconds["new", core] / seconds["old", core]) for core in cores]
    return logs


def seconds_of_sweep(program: Path, folder: Path, text: str) -> float:
    """Training seconds of the slowest rank, of all epochs but the first."""
    folder.mkdir()
    (folder / "sweep.toml").write_text(text)
    subprocess.run([program, "run", "sweep.toml", "--no-report"], cwd=folder, env=surroundings(folder), check=True,
                   stdout=subprocess.DEVNULL)
    with sqlite3.connect(f"file:{folder}/yard/results.db?mode=ro", uri=True) as database:
        (seconds,) = database.execute(
            "SELECT SUM(s) FROM (SELECT MAX(train_seconds) AS s FROM epoch WHERE epoch > 1 GROUP BY epoch)").fetchone()
    shutil.rmtree(folder)
    return seconds


def step_ratios(builds: dict[str, Path], folder: Path, text: str, rounds: int) -> list[float]:
    """Logarithms of new / old in training time of several ranks, one pair a round."""
    logs = []
    for number in range(rounds):
        seconds = {build: seconds_of_sweep(builds[build] / "trainyard", folder / f"{number}-{build}", text)
                   for build in (("old", "new") if number % 2 else ("new", "old"))}
        logs.append(math.log(seconds["new"] / seconds["old"]))
    return logs


def report(what: str, logs: list[float], ratio: str = "new / old") -> None:
    low, middle, high = ratio_95(logs)
    print(f"{what}: {ratio} {middle:.4f} ({low:.4f} to {high:.4f}), {len(logs)} pairs", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=lambda path: Path(path).resolve())
    parser.add_argument("new", type=lambda path: Path(path).resolve())
    parser.add_argument("--rounds", type=int, default=6, help="each has one pair on each core")
    parser.add_argument("--cores", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--no-rebuild", action="store_true", help="only training")
    parser.add_argument("--strategies", nargs="+", help="only the step times of these, with two ranks each")
    parser.add_argument("--models", nargs="*", default=sorted(WORK), choices=sorted(WORK))
    options = parser.parse_args()
    builds = {"old": options.old, "new": options.new}

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.strategies:
            for model in options.models:
                for strategy in options.strategies:
                    report(f"{model} {strategy}", step_ratios(builds, folder, sweep_text(model, strategy), options.rounds))
            return

        placement = str(random_placement(folder))
        runners = {build: path / "trainyard-runner" for build, path in builds.items()}
        for model in options.models:
            runs = {build: planned_run(path / "trainyard", folder / f"{model}-{build}", model) for build, path in builds.items()}
            report(f"training of {model}", ratios(training(runs, runners, folder, placement), options.rounds, options.cores))
        if options.no_rebuild:
            return
        for build, path in builds.items():
            for core in options.cores:
                yard_of_rows(path / "trainyard", folder / f"rows-{build}-{core}")
        report("db rebuild", ratios(
            lambda build, core, _: on_core(core, [builds[build] / "trainyard", "db", "rebuild"],
                                           cwd=folder / f"rows-{build}-{core}", env=surroundings(folder, LD_PRELOAD=placement)),
            options.rounds, options.cores))


if __name__ == "__main__":
    main()
