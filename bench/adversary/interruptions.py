"""Kills of orchestrators and ranks at random times, and power cuts."""

import os
import random
import re
import signal
import subprocess
import time
from pathlib import Path

from tiny_yard import TinyYard, sound


def kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


class UnderFire:
    """Sweeps whose processes are killed, until there were enough kills and the last sweep has finished."""

    def __init__(self, yard: TinyYard, chance: random.Random, longest_seconds: float):
        self.yard, self.chance, self.longest = yard, chance, longest_seconds
        self.orchestrators = self.ranks = self.sweeps = 0
        self.problems = []

    def kills(self) -> int:
        return self.orchestrators + self.ranks

    def one_command(self) -> bool:
        """Run the sweep until it ends, or until its orchestrator is killed. Returns whether it ended."""
        process = self.yard.start("run", "tiny.toml", "--no-report", "--max-retries", "20", "--backoff", "0")
        while True:
            try:
                out, err = process.communicate(timeout=self.chance.uniform(0, self.longest))
                if process.returncode != 0:
                    self.problems.append(f"run ended with {process.returncode}: {(out + err).strip()[-500:]}")
                return True
            except subprocess.TimeoutExpired:
                pass
            if self.chance.random() < 0.6:
                process.kill()
                process.communicate()
                self.orchestrators += 1
                if left := self.yard.ranks_after_a_while():
                    self.problems.append(f"after a kill, without a further command, ranks are left: {left}")
                return False
            victims = self.yard.ranks()
            self.ranks += bool(victims) and kill(self.chance.choice(victims))


def kills(folder: Path, programs: Path, count: int, chance: random.Random) -> list[str]:
    """SIGKILL at random times, then the same command again."""
    yard = TinyYard(folder / "kills", programs, seeds=5, pause=0.03)
    begin = time.monotonic()
    yard.run()
    undisturbed_seconds = time.monotonic() - begin
    losses = yard.losses()
    problems = sound(yard, losses)
    fire = UnderFire(yard, chance, undisturbed_seconds / 2)
    while fire.kills() < count and not problems + fire.problems:
        yard.forget()
        while not fire.one_command():
            pass
        problems += sound(yard, losses)
        fire.sweeps += 1
    print(f"kills: {fire.orchestrators} orchestrators and {fire.ranks} ranks in {fire.sweeps} sweeps, "
          f"{losses.count(chr(10)) - 2} lines of losses compared after each; {len(problems + fire.problems)} problems")
    print(*problems, *fire.problems, sep="\n", end="\n" if problems + fire.problems else "")
    return problems + fire.problems


def power_cuts(program: Path, all_of_them: bool) -> list[str]:
    """Power cuts at each call of a small sweep: the fault layer of tests/faults."""
    environment = dict(os.environ) | ({"TRAINYARD_FAULTS": "all"} if all_of_them else {})
    ended = subprocess.run([program, "-tc=*power cut*"], env=environment, capture_output=True, text=True)
    tried = re.search(r"faults tried (\d+), survived (\d+)", ended.stdout)
    print(f"power cuts: {tried[1]} tried, {tried[2]} survived" if tried else "power cuts: the test did not end")
    if ended.returncode == 0 and tried and tried[1] == tried[2]:
        return []
    print((ended.stdout + ended.stderr)[-2000:])
    return ["power cuts"]
