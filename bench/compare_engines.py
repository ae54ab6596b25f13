#!/usr/bin/env python3
"""Compare the two engines: a model of trainyard, which runs by layers, and its PyTorch twin as an exported graph of operators.

    bench/compare_engines.py BUILD --python PYTHON [--rounds 8] [--models cnn mlp]

BUILD is a folder with the programs, PYTHON a Python that has torch. Both forms train one rank on the same data, with the pairs of
compare_builds.py: two processes at once on one core. Prints the processor time of operators / layers with its 95 % t interval.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

from compare_builds import WORK, planned_run, random_placement, ratios, report, training

TWIN = """import importlib, sys
import torch

sys.path.insert(0, {folder!r})
module = importlib.import_module({module!r})
values, shape, task = {values!r}, {shape!r}, {task!r}


def build(batch):
    network = module.build(values, shape)
    if hasattr(module, "without_lengths"):
        module.without_lengths(network)
    texts = [(shape["vocabulary"], shape["source_length"]), (shape["target_vocabulary"], shape["target_length"])]
    inputs = tuple(torch.randint(1, rows, (batch, length)) for rows, length in texts if rows)
    return network, inputs or torch.randn(batch, shape["channels"], shape["height"], shape["width"]), task
"""
TASKS = {"conv-autoencoder": "reconstruction", "seq2seq": "translation"}


def task_of(model: str) -> str:
    return TASKS.get(model, "classification")


def exported(build: Path, python: str, folder: Path, model: str, run: Path) -> Path:
    """The twin of the model of this run.json, as a file."""
    work, name = json.loads(run.read_text())["work"], model.replace("-", "_")
    models = Path(__file__).resolve().parents[1] / "models"
    source, network = folder / f"{name}_twin.py", folder / f"{name}.pt2"
    source.write_text(TWIN.format(folder=str(models / name), module=name, values=work["hyperparameters"],
                                  shape=work["data"]["input"], task=task_of(model)))
    subprocess.run([build / "trainyard", "export", f"{source}:build", "--python", python, "-o", network], check=True,
                   stdout=subprocess.DEVNULL)
    return network


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=lambda path: Path(path).resolve())
    parser.add_argument("--python", required=True)
    parser.add_argument("--rounds", type=int, default=8, help="each has one pair on each core")
    parser.add_argument("--cores", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--models", nargs="*", default=sorted(WORK), choices=sorted(WORK))
    options = parser.parse_args()
    program, runner = options.build / "trainyard", options.build / "trainyard-runner"

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        placement = str(random_placement(folder))
        for model in options.models:
            layers = planned_run(program, folder / f"{model}-layers", model)
            network = exported(options.build, options.python, folder, model, layers)
            operators = planned_run(program, folder / f"{model}-operators", model,
                                    f'export = "{network}"\ntask = "{task_of(model)}"\ninitial = "seed"')
            start = training({"old": layers, "new": operators}, {"old": runner, "new": runner}, folder, placement)
            report(f"training of {model}", ratios(start, options.rounds, options.cores), "operators / layers")


if __name__ == "__main__":
    main()
