"""A sweep of trivial foreign runs, for soak.py and orchestration.py.

Each run is a shell script that writes two records and ends, so that all the time is that of orchestration.
"""

import os
import subprocess
from pathlib import Path

PROGRAM = r"""dir=${TRAINYARD_RUN%/*}; attempt=${dir##*-}; run=${dir%/*}; run=${run##*/}
sleep "$1"
printf '{"v":1,"run":"%s","attempt":%s,"rank":%s,"seq":0,"type":"epoch","time":"2026-11-20T09:30:12.345Z","elapsed_seconds":0,"epoch":1}\n' \
  "$run" "$attempt" "$RANK" >> "$dir/rank-$RANK.records.jsonl"
printf '{"v":1,"run":"%s","attempt":%s,"rank":%s,"seq":1,"type":"end","time":"2026-11-20T09:30:12.345Z","elapsed_seconds":0,"status":"finished"}\n' \
  "$run" "$attempt" "$RANK" >> "$dir/rank-$RANK.records.jsonl"
"""


def write_sweep(folder: Path, runs: int, seconds: float, replicas: int = 1, exclusive: str = "devices") -> Path:
    """Write an experiment file with `runs` runs. Each run sleeps for `seconds`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "program.sh").write_text(PROGRAM)
    file = folder / "foreign.toml"
    file.write_text(
        f"""name = "foreign"
[matrix]
model = ["mlp"]
strategy = ["trivial"]
seed = {{ count = {runs} }}
[defaults]
dataset = "synthetic-digits"
epochs = 1
[strategy.trivial]
command = ["/bin/sh", "program.sh", "{seconds}"]
files = ["program.sh"]
replicas = {replicas}
[machine]
exclusive = "{exclusive}"
"""
    )
    return file


def trainyard(program: str, folder: Path, *arguments: str) -> subprocess.Popen:
    return subprocess.Popen(
        [program, *arguments, "--yard", str(folder / "yard")],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def ranks_below(folder: Path) -> list[int]:
    """The processes with a run file in this folder."""
    wanted = f"TRAINYARD_RUN={folder}".encode()
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            environment = Path("/proc", entry, "environ").read_bytes()
        except OSError:
            continue
        if any(variable.startswith(wanted) for variable in environment.split(b"\0")):
            found.append(int(entry))
    return found
