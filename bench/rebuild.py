#!/usr/bin/env python3
"""Time `trainyard db rebuild`, which makes the database from the journal and the record files.

    bench/rebuild.py --trainyard build/release/trainyard [--runs 20] [--epochs 5000]

Foreign runs of two ranks write the record files: one `epoch` record with four metrics per line. Prints the size of the
yard, the seconds of each rebuild, and the rows per second of the fastest one.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from yard_rows import rows

PROGRAM = r"""
import json, os, sys
launch = json.load(open(os.environ["TRAINYARD_RUN"]))
rank, sequence = int(os.environ["RANK"]), 0
with open(f"{launch['records']}/rank-{rank}.records.jsonl", "a") as records:
    def record(kind, **members):
        global sequence
        records.write(json.dumps({"v": 1, "run": launch["run"], "attempt": launch["attempt"], "rank": rank, "seq": sequence,
                                "type": kind, "time": "2026-11-20T09:30:12.345Z", "elapsed_seconds": sequence, **members},
                               separators=(",", ":")) + "\n")
        sequence += 1
    record("start", world_size=2, replica=rank, stage=0)
    for epoch in range(1, launch["epochs"] + 1):
        record("epoch", epoch=epoch, train_seconds=1.25e-6, validation_seconds=0.25e-6,
               seconds={"data": 0.25e-6, "forward": 0.25e-6, "backward": 0.5e-6, "optimizer": 0.25e-6},
               metrics=[{"phase": phase, "name": name, "sum": 999.5 / epoch, "weight": 1000}
                        for phase in ("train", "validation") for name in ("loss", "correct")])
    record("test", seconds=0, metrics=[{"phase": "test", "name": "loss", "sum": 1, "weight": 1000}])
    record("end", status="finished", setup_seconds=0.001, total_seconds=0.01)
"""

EXPERIMENT = """name = "rows"
[matrix]
model = ["mlp"]
strategy = ["rows"]
seed = {{ count = {runs} }}
[defaults]
dataset = "synthetic-digits"
epochs = {epochs}
[strategy.rows]
command = ["{python}", "rows.py"]
files = ["rows.py"]
replicas = 2
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trainyard", required=True, type=os.path.abspath)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--epochs", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "rows.py").write_text(PROGRAM)
        (folder / "rows.toml").write_text(
            EXPERIMENT.format(runs=options.runs, epochs=options.epochs, python=sys.executable))

        def trainyard(*arguments: str) -> None:
            subprocess.run([options.trainyard, *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL)

        trainyard("run", "rows.toml", "--no-report")
        def ask(statement: str) -> list[dict]:
            return rows(options.trainyard, folder / "yard", statement)

        tables = [row["name"] for row in ask("SELECT name FROM sqlite_master WHERE type = 'table'")]
        counts = {table: ask(f"SELECT COUNT(*) AS rows FROM {table}")[0]["rows"]
                  for table in tables if not table.startswith("sqlite_")}
        size = sum(file.stat().st_size for file in folder.glob("yard/runs/*/*/*.jsonl"))
        print(f"{counts['epoch']:,} epoch rows, {sum(counts.values()):,} rows in all, record files of {size / 1e6:.0f} MB")
        seconds = []
        for _ in range(options.rounds):
            begin = time.monotonic()
            trainyard("db", "rebuild")
            seconds.append(time.monotonic() - begin)
        print("seconds per rebuild:", ", ".join(f"{each:.2f}" for each in seconds))
        print(f"per second: {counts['epoch'] / min(seconds):,.0f} epoch rows, {sum(counts.values()) / min(seconds):,.0f} rows")


if __name__ == "__main__":
    main()
