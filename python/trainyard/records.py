"""The record file of this rank: reads run.json and appends one JSON object per line (docs/record-protocol.md).

A script that was not started by `trainyard run` gets a folder of its own below ./trainyard-runs/recorded, with run.json and
the records. `trainyard report` adds it to a yard."""
from __future__ import annotations

import fcntl
import hashlib
import itertools
import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any

from . import ranks

BEGAN = time.monotonic()  # of this rank
_numbers = itertools.count()  # of the runs of this process


def stamp(seconds: float) -> str:
    """UTC, "2026-11-20T09:30:12.345Z"."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1000):03d}Z"


def alone(seed: int) -> dict[str, Any]:
    """The members of run.json for a script on its own. Rank 0 hands its folder and its seed to the other ranks."""
    script = Path(sys.argv[0]).stem or "python"
    name = f"{script}-{time.strftime('%Y%m%d-%H%M%S')}-{time.monotonic_ns() % 10**9:09d}"
    yard = os.environ.get("TRAINYARD_HOME") or ("yard" if Path("yard").is_dir() else "trainyard-runs")
    home = Path(yard, "recorded", name)
    path, seed = json.loads(ranks.of_rank_0(f"alone/{next(_numbers)}", json.dumps([str(home.absolute()), seed])))
    folder, program = Path(path), Path(sys.argv[0])
    info = {"v": 1, "run": folder.name, "attempt": 1, "records": str(folder), "seed": seed, "axes": {}, "world_size": ranks.number(),
            "command": [sys.executable, *(sys.argv if sys.argv[0] else ["python"])], "folder": os.getcwd(), "pid": os.getpid(),
            "host": socket.gethostname(), "created": stamp(time.time()),
            "script_sha256": hashlib.sha256(program.read_bytes() if program.is_file() else b"").hexdigest()}
    folder.mkdir(parents=True, exist_ok=True)
    if ranks.own() == 0:
        Path(folder, "new.json").write_text(json.dumps(info, indent=1) + "\n")
        Path(folder, "new.json").rename(Path(folder, "run.json"))  # never read half
    return info


class Records:
    """Appends the records of this rank. `info` has the members of run.json."""

    def __init__(self, seed: int):
        path = os.environ.get("TRAINYARD_RUN")
        self.info: dict[str, Any] = json.loads(Path(path).read_text()) if path else alone(seed)
        self.rank, self.world, self._next = ranks.own(), ranks.number(), 0
        self.file = open(Path(self.info["records"], f"rank-{self.rank}.records.jsonl"), "ab", buffering=0)
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:  # some file systems have no locks
            if isinstance(error, BlockingIOError):
                raise RuntimeError(f"another process records rank {self.rank} of this run: give each process its own RANK") from None

    def now(self) -> dict[str, Any]:
        """The members `time` and `elapsed_seconds` of a record that is written now."""
        return {"time": stamp(time.time()), "elapsed_seconds": time.monotonic() - BEGAN}

    def write(self, type: str, **members: Any) -> None:
        """Append one record with one write, and sync it. Its time is now, if the members have no other."""
        record = {"v": 1, "run": self.info["run"], "attempt": self.info["attempt"], "rank": self.rank, "seq": self._next,
                  "type": type, **self.now(), **members}
        self.file.write(json.dumps(record).encode() + b"\n")
        os.fsync(self.file.fileno())
        self._next += 1
