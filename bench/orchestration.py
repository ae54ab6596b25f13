#!/usr/bin/env python3
"""Measure the cost of orchestration: trivial foreign runs, compared with `xargs -P`.

    bench/orchestration.py --trainyard build/release/trainyard [--runs 1000]

Both run the same shell script for every run, two at a time. Prints the seconds of both, and the difference in
milliseconds per run. Use an idle machine.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from foreign_sweep import trainyard, write_sweep

DEVICES = 2


def by_xargs(folder: Path, runs: int) -> float:
    """The same program with the same folders, started by xargs."""
    lines = []
    for run in range(runs):
        attempt = folder / "xargs" / f"run-{run}" / "attempt-1"
        attempt.mkdir(parents=True)
        lines.append(f"{attempt}/run.json")
    command = ["xargs", "-P", str(DEVICES), "-I", "{}", "env", "RANK=0", "TRAINYARD_RUN={}", "/bin/sh", "program.sh", "0"]
    begin = time.monotonic()
    subprocess.run(command, cwd=folder, input="\n".join(lines), text=True, check=True)
    return time.monotonic() - begin


def by_trainyard(program: str, folder: Path, *arguments: str) -> float:
    begin = time.monotonic()
    process = trainyard(program, folder, *arguments)
    output = process.communicate()[0]
    if process.returncode != 0:
        sys.exit(output)
    return time.monotonic() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trainyard", required=True, type=os.path.abspath)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--folder", help="folder for the yards (default: the temporary folder)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        write_sweep(folder, options.runs, 0)
        plan = by_trainyard(options.trainyard, folder, "plan", "foreign.toml")
        bare = by_xargs(folder, options.runs)
        orchestrated = by_trainyard(options.trainyard, folder, "run", "foreign.toml", "--no-report")
        print(f"{options.runs} runs, {DEVICES} at once: planned in {plan:.2f} s, xargs {bare:.2f} s, trainyard {orchestrated:.2f} s")
        print(f"orchestration costs {1000 * (orchestrated - bare) / options.runs:.2f} ms per run")


if __name__ == "__main__":
    main()
