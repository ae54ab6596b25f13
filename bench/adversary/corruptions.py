"""Damage to one file of a finished yard: the journal, a run.json, a record log or the database.

- `trainyard db check` must notice it, or `compare` and `export` must print the same bytes as before.
- After `trainyard db rebuild` they must print the same bytes as before, whatever was damaged.
- No command may crash, hang or print an internal error.
"""

import random
import shutil
import time
from collections import Counter
from pathlib import Path

from tiny_yard import TinyYard

BLOCK = 512
OTHER_COMMANDS = (("status", "--all"), ("show", "last"), ("logs", "last"), ("logs",), ("report", "--format", "csv"),
                  ("sql", "SELECT * FROM run_summary"), ("rm", "last", "--dry-run"), ("compare",))


def blocks(content: bytes) -> list[bytes]:
    """The lines of a text, or the blocks of a database."""
    if content.startswith(b"SQLite"):
        return [content[i:i + BLOCK] for i in range(0, len(content), BLOCK)]
    return content.splitlines(keepends=True)


def flipped(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    changed[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def truncated(content: bytes, chance: random.Random) -> bytes:
    return content[:chance.randrange(len(content))]


def zeroed(content: bytes, chance: random.Random) -> bytes:
    size = chance.choice((1, 8, 64, BLOCK, 4096))
    place = chance.randrange(len(content)) // size * size
    return content[:place] + bytes(min(size, len(content) - place)) + content[place + size:]


def swapped(content: bytes, chance: random.Random) -> bytes:
    parts = blocks(content)
    if len(parts) < 2:
        return flipped(content, chance)
    one, other = chance.sample(range(len(parts)), 2)
    parts[one], parts[other] = parts[other], parts[one]
    return b"".join(parts)


def repeated(content: bytes, chance: random.Random) -> bytes:
    parts = blocks(content)
    parts.insert(chance.randrange(len(parts) + 1), chance.choice(parts))
    return b"".join(parts)


KINDS = {"bit flips": flipped, "truncations": truncated, "zeroed blocks": zeroed, "swapped lines or blocks": swapped,
         "repeated lines or blocks": repeated}


class Corruptions:
    def __init__(self, folder: Path, programs: Path, chance: random.Random):
        self.tiny, self.chance = TinyYard(folder / "corruptions", programs), chance
        for arguments in (("run", "tiny.toml", "--no-report", "--where", "seed=0"), ("run", "tiny.toml", "--no-report"),
                          ("rm", "last"), ("run", "tiny.toml", "--no-report")):
            ended = self.tiny.command(*arguments)
            assert ended.code == 0, ended
        for leftover in ("results.db-wal", "results.db-shm"):
            assert not (self.tiny.yard / leftover).exists(), leftover
        self.intact = self.tiny.outputs()
        assert all(output.code == 0 for output in self.intact), self.intact
        assert self.tiny.command("db", "check").code == 0
        self.original = folder / "intact-yard"
        shutil.copytree(self.tiny.yard, self.original)
        self.files = {
            "journal": ["journal.jsonl"],
            "run.json": self.names("runs/*/attempt-*/run.json"),
            "records": self.names("runs/*/attempt-*/*.records.jsonl"),
            "database": ["results.db"],
        }
        self.problems = []
        self.counts = Counter()

    def names(self, pattern: str) -> list[str]:
        found = sorted(str(path.relative_to(self.original)) for path in self.original.glob(pattern))
        assert found, pattern
        return found

    def problem(self, what: str, why: str):
        self.problems.append(f"{what}: {why}")
        print(self.problems[-1], flush=True)

    def checked(self, what: str, *arguments: str):
        ended = self.tiny.command(*arguments)
        if why := ended.wrong():
            self.problem(what, f"{' '.join(arguments)}: {why}")
        return ended

    def is_changed(self, outputs) -> bool:
        return [output.out for output in outputs] != [output.out for output in self.intact]

    def try_one(self, kind: str, place: str):
        name = self.chance.choice(self.files[place])
        content = (self.original / name).read_bytes()
        damaged = KINDS[kind](content, self.chance)
        if damaged == content:
            self.counts[kind, place, "same bytes"] += 1
            return
        self.tiny.forget()
        shutil.copytree(self.original, self.tiny.yard)
        (self.tiny.yard / name).write_bytes(damaged)
        difference = next((i for i, (new, old) in enumerate(zip(damaged, content)) if new != old), len(damaged))
        what = f"{kind} in {name}, number {self.counts[kind, place, 'tried']}, first other byte {difference}"
        self.counts[kind, place, "tried"] += 1
        if self.counts[kind, place, "tried"] % 4 == 0:
            self.checked(what, *self.chance.choice(OTHER_COMMANDS))
        check = self.checked(what, "db", "check")
        if check.code == 0 and self.is_changed(self.tiny.outputs()):
            self.problem(what, "db check noticed nothing, and the results are other ones")
        self.counts[kind, place, "noticed" if check.code else "harmless"] += 1
        rebuilt = self.checked(what, "db", "rebuild")
        if rebuilt.code != 0 or self.is_changed(self.tiny.outputs()):
            self.problem(what, f"the rebuild lost or changed results: {(rebuilt.out + rebuilt.err).strip()}")

    def print_counts(self):
        print("| corruptions | file | tried | `db check` noticed | harmless |\n|---|---|---:|---:|---:|")
        for kind in KINDS:
            for place in self.files:
                of = [self.counts[kind, place, name] for name in ("tried", "noticed", "harmless")]
                print(f"| {kind} | {place} | " + " | ".join(map(str, of)) + " |", flush=True)


def corruptions(folder: Path, programs: Path, per_kind: int, chance: random.Random, until: float) -> list[str]:
    loop = Corruptions(folder, programs, chance)
    for number in range(per_kind):
        for kind in KINDS:
            if time.monotonic() < until:
                loop.try_one(kind, list(loop.files)[number % len(loop.files)])
    loop.print_counts()
    print(f"corruptions: {sum(loop.counts[key] for key in loop.counts if key[2] == 'tried')} tried, "
          f"{len(loop.problems)} problems")
    return loop.problems
