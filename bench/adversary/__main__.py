"""Tries to lose or change results of a tiny sweep: kills, power cuts and corrupted files.

    python3 bench/adversary kills                   the long loop: 500 kills
    python3 bench/adversary corruptions             2,000 per kind
    python3 bench/adversary cuts                    each power cut of tests/faults
    python3 bench/adversary short --seed 1          a part of kills and corruptions, also a test

The programs are those of --programs. The yards are in memory (/dev/shm) if possible. Each problem is one line, and the exit
code is then 1. A seed repeats the same damage, but not the same moments of kills.
"""

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from corruptions import corruptions
from interruptions import kills, power_cuts


def memory_folder() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench/adversary", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("loop", choices=["kills", "cuts", "corruptions", "short"])
    parser.add_argument("--programs", type=lambda text: Path(text).absolute(), default=Path("build/release").absolute(),
                        help="folder of trainyard (default: build/release)")
    parser.add_argument("--count", type=int, help="kills, or corruptions of each kind")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end corruptions after this time")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    programs, chance, begin = options.programs, random.Random(options.seed), time.monotonic()
    until = begin + options.seconds
    short, count = options.loop == "short", options.count
    problems = []
    with tempfile.TemporaryDirectory(dir=memory_folder(), prefix="adversary-") as name:
        folder = Path(name)
        if options.loop == "kills" or short:
            problems += kills(folder, programs, 10 if short else count or 500, chance)
        if options.loop == "cuts":
            problems += power_cuts(programs / "tests/faults/tests_faults", count is None)
        if options.loop == "corruptions" or short:
            problems += corruptions(folder, programs, 12 if short else count or 2000, chance, until)
    print(f"adversary: {options.loop}, seed {options.seed}, {time.monotonic() - begin:.0f} s: "
          f"{'no problem' if not problems else f'{len(problems)} problems'}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
