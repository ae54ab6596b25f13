"""A sweep of trivial foreign runs: what the soak and the bench of orchestration have in common.

Each run is a shell that writes two records and ends: all that takes time is starting it and looking after it.
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
    """An experiment file of so many runs, each of which sleeps for so long."""
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
    """Processes whose run file lies below the folder."""
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
