"""A tiny sweep of foreign runs with sealed records, and what its commands print. Used by all loops of the adversary."""

import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

# A rank. The loss depends on strategy, seed and epoch, so that a wrong value is seen.
RANK = r'''import json, os, sys, time
def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return "%08x" % (crc ^ 0xFFFFFFFF)
run = json.load(open(os.environ["TRAINYARD_RUN"]))
rank, offset, pause, number = int(os.environ["RANK"]), float(sys.argv[1]), float(sys.argv[2]), 0
log = open("%s/rank-%d.records.jsonl" % (run["records"], rank), "ab", buffering=0)
def record(type, **members):
    global number
    line = json.dumps({"v": 1, "run": run["run"], "attempt": run["attempt"], "rank": rank, "seq": number, "type": type,
                       "time": "2026-11-20T09:30:12.345Z", "elapsed_seconds": 0, **members}, separators=(",", ":"))
    body = line[:-1].encode()
    log.write(body + b',"crc":"' + crc32c(body).encode() + b'"}\n')
    number += 1
record("start", pid=os.getpid(), world_size=1)
for epoch in range(1, run["epochs"] + 1):
    time.sleep(pause)
    total = 100 * (offset + run["seed"] * 0.01 + 1 / epoch)
    record("epoch", epoch=epoch, train_seconds=0.002, validation_seconds=0.001,
           metrics=[{"phase": phase, "name": name, "sum": total, "weight": 200}
                    for phase in ("train", "validation") for name in ("loss", "correct")])
record("test", seconds=0.001, metrics=[{"phase": "test", "name": "loss", "sum": total, "weight": 200}])
record("end", status="finished", setup_seconds=0, total_seconds=0.01)
'''

FILE = """name = "tiny"
[matrix]
model = ["mlp"]
strategy = ["one", "two"]
seed = {{ count = {seeds} }}
[compare]
axis = "strategy"
baseline = "one"
pair = ["seed"]
[defaults]
dataset = "synthetic-digits"
epochs = 2
[strategy.one]
command = ["python3", "-SE", "rank.py", "0.5", "{pause}"]
files = ["rank.py"]
[strategy.two]
command = ["python3", "-SE", "rank.py", "0.75", "{pause}"]
files = ["rank.py"]
[machine]
exclusive = "devices"
"""

# In place of trainyard-runner, which takes half a second to load LibTorch.
RUNNER = """#!/bin/sh
echo '{"trainyard":"0.1.0","build_type":"Release","libtorch":"none","nccl":"","cuda":"","gpus":[]}'
"""

# What a reader of the results sees.
OUTPUTS = (("compare", "--format", "json"), ("export",))
TEST_LOSSES = "SELECT run_key, test_loss FROM final_metrics ORDER BY run_key"
HANG_SECONDS = 60


@dataclass
class Ended:
    """How a command ended."""

    code: int  # negative: killed by this signal; None: it did not end in HANG_SECONDS
    out: str
    err: str

    def wrong(self, allowed=(0, 1, 2)) -> str:
        """Why no command may end like this. Empty if it may."""
        if self.code is None:
            return f"no end after {HANG_SECONDS} s"
        if self.code < 0:
            return f"killed by {signal.Signals(-self.code).name}"
        if "internal error" in self.err + self.out:
            return "internal error: " + self.err.strip().splitlines()[-1][:200]
        if self.code not in allowed:
            return f"exit code {self.code}"
        if self.code != 0 and not (self.err + self.out).strip():
            return f"exit code {self.code} without a message"
        return ""


class TinyYard:
    """A folder with copies of the programs, an experiment file and a yard."""

    def __init__(self, folder: Path, programs: Path, seeds: int = 2, pause: float = 0):
        self.folder, self.yard = folder, folder / "yard"
        self.programs = folder / "programs"
        self.programs.mkdir(parents=True)
        for program in programs.glob("trainyard*"):
            if program.is_file() and os.access(program, os.X_OK) and program.name != "trainyard-runner":
                shutil.copy(program, self.programs / program.name)
        runner = self.programs / "trainyard-runner"
        runner.write_text(RUNNER)
        runner.chmod(0o755)
        (folder / "rank.py").write_text(RANK)
        (folder / "tiny.toml").write_text(FILE.format(seeds=seeds, pause=pause))
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("TRAINYARD_")}
        self.environment |= {"TRAINYARD_HOST_LOCK": str(folder / "host-lock"), "TRAINYARD_OTHERS_LIMIT": "1000"}

    def start(self, *arguments: str, environment=None, yard: Path = None) -> subprocess.Popen:
        command = [self.programs / "trainyard", *arguments]
        if arguments[0] not in ("check", "plan"):
            command += ["--yard", yard or self.yard]
        return subprocess.Popen(command, cwd=self.folder, env=self.environment | (environment or {}), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                                start_new_session=True)

    def command(self, *arguments: str, environment=None, yard: Path = None) -> Ended:
        process = self.start(*arguments, environment=environment, yard=yard)
        try:
            out, err = process.communicate(timeout=HANG_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            return Ended(None, *process.communicate())
        return Ended(process.returncode, out, err)

    def run(self, environment=None) -> Ended:
        return self.command("run", "tiny.toml", "--no-report", environment=environment)

    def losses(self) -> str:
        """The losses of all epochs and tests, with the times that the ranks state."""
        return self.command("export").out + self.command("sql", TEST_LOSSES).out

    def outputs(self) -> list[Ended]:
        return [self.command(*arguments) for arguments in OUTPUTS]

    def ranks(self) -> list[int]:
        """The processes with a run file in this folder."""
        return processes_with(f"TRAINYARD_RUN={self.folder}")

    def ranks_after_a_while(self, seconds: float = 10) -> list[int]:
        """The processes that are still there after some seconds."""
        end = time.monotonic() + seconds
        while (left := self.ranks()) and time.monotonic() < end:
            time.sleep(0.02)
        return left

    def forget(self):
        shutil.rmtree(self.yard, ignore_errors=True)


def processes_with(variable: str) -> list[int]:
    """The processes that have an environment variable with this beginning."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and any(each.startswith(variable.encode())
                                       for each in Path("/proc", entry, "environ").read_bytes().split(b"\0")):
                found.append(int(entry))
        except OSError:
            continue
    return found


def sound(yard: TinyYard, losses: str) -> list[str]:
    """The problems of a yard whose sweep has ended."""
    found = []
    if left := yard.ranks_after_a_while():
        found.append(f"processes are left: {left}")
    check = yard.command("db", "check")
    if check.code != 0:
        found.append("db check: " + (check.out + check.err).strip())
    if yard.losses() != losses:
        found.append("other losses than those of an undisturbed sweep")
    return found
