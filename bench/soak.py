#!/usr/bin/env python3
"""Soak test: a sweep of foreign runs, while ranks and the orchestrator are killed at random.

    bench/soak.py --trainyard build/release/trainyard                    2,000 runs, about 10 minutes
    bench/soak.py --trainyard build/release/trainyard --runs 30 --seed 1 the short version, also a test

At the end every run must have finished exactly once, the database must match the files, and no process may be left.
Otherwise the exit code is 1.
"""

import argparse
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from foreign_sweep import ranks_below, trainyard, write_sweep


def kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def under_fire(program: str, folder: Path, chance: random.Random, mean_seconds: float) -> tuple[bool, int, int]:
    """Run `trainyard` until it ends or is killed. Returns whether it ended, and the number of killed ranks and orchestrators."""
    process = trainyard(program, folder, "run", "foreign.toml", "--no-report", "--max-retries", "20", "--backoff", "0")
    ranks = 0
    while True:
        try:
            process.communicate(timeout=chance.expovariate(1 / mean_seconds))
            return process.returncode == 0, ranks, 0
        except subprocess.TimeoutExpired:
            pass
        if chance.random() < 0.4:
            process.kill()
            process.communicate()
            return False, ranks, 1
        victims = ranks_below(folder)
        ranks += bool(victims) and kill(chance.choice(victims))


def wrong(program: str, folder: Path, runs: int) -> list[str]:
    """The problems at the end."""
    found = []
    if left := ranks_below(folder):
        found.append(f"processes are left: {left}")
    with sqlite3.connect(f"file:{folder}/yard/results.db?mode=ro", uri=True) as database:
        finished = database.execute("SELECT COUNT(*) FROM run_summary WHERE status = 'finished'").fetchone()[0]
        twice = database.execute(
            "SELECT COUNT(*) FROM (SELECT 1 FROM attempt_status WHERE status = 'finished' GROUP BY run_key HAVING COUNT(*) > 1)"
        ).fetchone()[0]
    if finished != runs:
        found.append(f"{finished} of {runs} runs are finished")
    if twice:
        found.append(f"{twice} runs were trained twice")
    check = subprocess.run([program, "db", "check", "--yard", str(folder / "yard")], capture_output=True, text=True)
    if check.returncode != 0:
        found.append(check.stdout + check.stderr)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trainyard", required=True, type=os.path.abspath)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--run-seconds", type=float, default=0.3, help="length of a run")
    parser.add_argument("--mean-seconds", type=float, default=2.0, help="between two kills")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_sweep(folder, options.runs, options.run_seconds)
        begin, ranks, orchestrators, done = time.monotonic(), 0, 0, False
        while not done:
            done, killed_ranks, killed_orchestrators = under_fire(options.trainyard, folder, chance, options.mean_seconds)
            ranks += killed_ranks
            orchestrators += killed_orchestrators
        found = wrong(options.trainyard, folder, options.runs)
        print(
            f"soak: {options.runs} runs in {time.monotonic() - begin:.0f} s, seed {options.seed}: killed {ranks} ranks "
            f"and {orchestrators} orchestrators; {'survived' if not found else found}"
        )
        return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
