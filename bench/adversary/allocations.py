"""A failing allocation at each distinct call stack of trainyard's own processes.

- The first pass lists the stacks. Then the command starts once for each of them, and this allocation fails once.
- The exit code must be 0, 1 or 2. If it is not 0, the message must say that memory ran out.
- After each failure in `run` the same command must finish the sweep with the same losses.
- Some libraries crash if memory runs out. These crashes are counted apart: see `LIBRARY_DEFECTS`.
"""

import random
import re
import shutil
import struct
import subprocess
import time
from collections import Counter
from pathlib import Path

from tiny_yard import OUTPUTS, TinyYard, sound

# The layout of the table in allocation_faults.cpp.
FRAMES, STACKS = 32, 1 << 15
HEADER, STACK = struct.Struct("<QQ"), struct.Struct(f"<{3 + FRAMES}Q40s")

# Crashes that trainyard cannot prevent: commands, the library that allocates, and a function of the stack.
LIBRARY_DEFECTS = (
    # GLib and Rust end the process. `report` only reads the database.
    (("report",), r"lib(rsvg|glib|gobject|gio|gmodule|pango|cairo|fontconfig|freetype|harfbuzz|fribidi|xml2|gdk|png|pixman)", ""),
    # OpenSSL 3.0 reads a null pointer in EVP_MD_fetch.
    ((), r"libcrypto", ""),
    # A std::variant of GCC 12 whose copy finds no memory destroys a value that was not constructed.
    ((), r"^$", r"trainyard::Parameter|std::variant|__variant|trainyard::experiments::resolve\("),
    # glibc reads a null pointer if its name service (getpwuid_r) finds no memory. Its own frames have no names here.
    ((), r"^$", r"^$|trainyard::orchestrator::user_name"),
    # An nlohmann::json that finds no memory for its object is destroyed as if it had one. Its destructor allocates too.
    ((), r"^$", r"^nlohmann::|^std::.*nlohmann::"),
)

CHECK, PLAN, RUN = ("check", "tiny.toml"), ("plan", "tiny.toml"), ("run", "tiny.toml", "--no-report")
REPORT, REBUILD = ("report",), ("db", "rebuild")
COMMANDS = (CHECK, PLAN, RUN, REPORT, REBUILD)


class Allocations:
    def __init__(self, folder: Path, programs: Path, library: Path, depth: int, lasting: bool):
        self.tiny = TinyYard(folder / "allocations", programs, seeds=1)
        self.library, self.depth, self.lasting, self.table = library, depth, lasting, folder / "stacks"
        self.problems = []
        self.counts = Counter()
        assert self.tiny.run().code == 0
        self.losses = self.tiny.losses()
        self.intact = self.tiny.outputs()
        self.finished = folder / "finished-yard"
        shutil.copytree(self.tiny.yard, self.finished)

    def prepare(self, command):
        """The yard that the command needs: none before `run`, otherwise a finished one."""
        self.tiny.forget()
        if command in (REPORT, REBUILD):
            shutil.copytree(self.finished, self.tiny.yard)
        self.table.unlink(missing_ok=True)
        with self.table.open("wb") as file:
            file.truncate(HEADER.size + STACKS * STACK.size)

    def environment(self, stack: int = 0) -> dict[str, str]:
        variables = {"LD_PRELOAD": str(self.library), "ALLOCATION_FAULTS_PROGRAM": "trainyard",
                     "ALLOCATION_FAULTS_TABLE": str(self.table), "ALLOCATION_FAULTS_DEPTH": str(self.depth)}
        if self.lasting:
            variables["ALLOCATION_FAULTS_LASTING"] = "1"
        return variables | ({"ALLOCATION_FAULTS_STACK": f"{stack:016x}"} if stack else {})

    def stacks(self, command) -> dict[int, tuple[int, ...]]:
        """The offsets of each distinct stack, by its hash."""
        self.prepare(command)
        ended = self.tiny.command(*command, environment=self.environment())
        assert ended.code == 0, ended
        content = self.table.read_bytes()
        assert HEADER.unpack_from(content)[1] == 0, "the table is too small"
        found = {}
        for hash, _, frames, *offsets, name in STACK.iter_unpack(content[HEADER.size:]):
            if hash:
                found[hash] = ([offset for offset in offsets[:frames] if offset], name.rstrip(b"\0").decode())
        return found

    def functions(self, offsets) -> str:
        """The functions of trainyard in a stack."""
        # A return address is after its call.
        addresses = [hex(offset - 1) for offset in offsets]
        names = subprocess.run(["addr2line", "-Cfe", self.tiny.programs / "trainyard", *addresses], capture_output=True, text=True)
        return " < ".join(name for name in names.stdout.splitlines()[::2] if name)

    def is_of_library(self, command, ended, offsets, library: str) -> bool:
        crashed = ended.code is None or ended.code < 0 or command == REPORT
        return crashed and any((not commands or command[0] in commands) and re.search(libraries, library) and
                               (not functions or re.search(functions, self.functions(offsets)))
                               for commands, libraries, functions in LIBRARY_DEFECTS)

    def try_one(self, command, stack: int, offsets, library: str):
        self.prepare(command)
        ended = self.tiny.command(*command, environment=self.environment(stack))
        if not HEADER.unpack(self.table.open("rb").read(HEADER.size))[0]:
            self.counts[command, "not reached"] += 1
            return
        self.counts[command, "tried"] += 1
        why = ended.wrong()
        if not why and ended.code != 0 and "memory" not in ended.err + ended.out:
            why = "the message does not say that memory ran out: " + (ended.err + ended.out).strip()[-300:]
        if why and self.is_of_library(command, ended, offsets, library):
            self.counts[command, "ended by a library"] += 1
            why = ""
            ended = None
        if ended:
            self.counts[command, "continued" if ended.code == 0 else "ended with a message"] += not why
        if not why and command == RUN:
            why = self.lost()
        elif not why and command in (REPORT, REBUILD):
            changed = [output.out for output in self.tiny.outputs()] != [output.out for output in self.intact]
            why = "afterwards the results are other ones" if changed else ""
        if why:
            where = f"{library}: " * bool(library) + self.functions(offsets)
            self.problems.append(f"{' '.join(command)}, stack {stack:016x}: {why} ({where})")
            print(self.problems[-1], flush=True)

    def lost(self) -> str:
        again = self.tiny.run()
        if again.code != 0:
            return "the next run ended with " + str(again.code) + ": " + (again.err + again.out).strip()[-300:]
        return "; ".join(sound(self.tiny, self.losses))


def allocations(folder: Path, programs: Path, library: Path, depth: int, lasting: bool, most: int, only: str,
                chance: random.Random, until: float) -> list[str]:
    """`lasting`: all allocations after the first one fail too. `most`: stacks of each command, drawn at random. 0: all. `only`: the first word of one command."""
    loop = Allocations(folder, programs, library, depth, lasting)
    for command in [each for each in COMMANDS if only in ("", each[0])]:
        stacks = loop.stacks(command)
        drawn = sorted(stacks)
        if most and most < len(drawn):
            drawn = chance.sample(drawn, most)
        for stack in drawn:
            if time.monotonic() < until:
                loop.try_one(command, stack, *stacks[stack])
        count = {name: loop.counts[command, name]
                 for name in ("tried", "continued", "ended with a message", "ended by a library", "not reached")}
        print(f"allocations: `{' '.join(command)}`: {len(stacks)} stacks, " +
              ", ".join(f"{number} {name}" for name, number in count.items()), flush=True)
    return loop.problems
