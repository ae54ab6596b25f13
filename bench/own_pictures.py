#!/usr/bin/env python3
"""What own images cost: the time of `plan` and of a rank's set-up, and the memory of ranks that share a data set.

    bench/own_pictures.py TRAINYARD FOLDER pictures --count 60000     small pictures in class folders
    bench/own_pictures.py TRAINYARD FOLDER arrays --gib 1 2           arrays of this size, on 1 and on 4 ranks

The memory is the proportional one (PSS), summed over the ranks: that of the mapped images, and what no file backs.
docs/data.md has the results.
"""

import argparse
import os
import sqlite3
import struct
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path

FILE = """name = "pictures-{replicas}"
[data]
folder = "images"
[matrix]
model = ["mlp"]
strategy = ["{strategy}"]
seed = [0]
[defaults]
dataset = "folder"
image_size = {size}
epochs = 1
batch = 256
train_samples = {samples}
[strategy.ddp]
replicas = {replicas}
"""


def experiment(size: int, samples: int, ranks: int) -> str:
    strategy = "ddp" if ranks > 1 else "single"
    return FILE.format(size=size, samples=samples, strategy=strategy, replicas=max(ranks, 2))


def png(shade: int, size: int) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    rows = b"".join(b"\0" + bytes([(shade * (y + 1)) % 256]) * (3 * size) for y in range(size))
    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def npy(shape: str) -> bytes:
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({shape}), }}"
    return b"\x93NUMPY\x01\x00\x76\x00" + header.ljust(117).encode() + b"\n"


def write_pictures(folder: Path, count: int, size: int) -> None:
    for label in range(10):
        (folder / f"class-{label}").mkdir(parents=True)
    for i in range(count):
        (folder / f"class-{i % 10}" / f"{i}.png").write_bytes(png(i % 251 + 1, size))


def write_arrays(folder: Path, count: int, size: int) -> None:
    folder.mkdir(parents=True)
    with open(folder / "train-images.npy", "wb") as images:
        images.write(npy(f"{count}, 3, {size}, {size}"))
        for _ in range(0, count, 1024):
            images.write(os.urandom(1024 * 3 * size * size))
    with open(folder / "train-labels.npy", "wb") as labels:
        labels.write(npy(f"{count},") + bytes(i % 10 for i in range(count)))


def timed(command: list[str], folder: Path) -> float:
    begin = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return time.perf_counter() - begin


def memory_of(process: int) -> tuple[int, int]:
    """Bytes of the mapped images, and of memory that no file backs."""
    images, inside = 0, False
    for line in Path(f"/proc/{process}/smaps").read_text().splitlines():
        first = line.split()[0]
        if not first.endswith(":"):
            inside = line.endswith(".images")
        elif inside and first == "Pss:":
            images += int(line.split()[1]) * 1024
    whole = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()[1:]
    values = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in whole}
    return images, values["Pss"] - values["Pss_File"]


class Watcher(threading.Thread):
    """The largest sums over all ranks."""

    def __init__(self) -> None:
        super().__init__()
        self.images, self.own, self.stop = 0, 0, threading.Event()

    def run(self) -> None:
        while not self.stop.wait(0.1):
            found = []
            for name in os.listdir("/proc"):
                try:
                    if name.isdigit() and "/trainyard-r" in os.readlink(f"/proc/{name}/exe"):
                        found.append(memory_of(int(name)))
                except OSError:
                    pass
            self.images = max(self.images, sum(images for images, own in found))
            self.own = max(self.own, sum(own for images, own in found))


def pictures(args: argparse.Namespace) -> None:
    write_pictures(args.folder / "images", args.count, 32)
    time.sleep(4)
    (args.folder / "e.toml").write_text(experiment(size=32, samples=1000, ranks=1))
    for call in ("first", "second"):
        print(f"{call} plan: {timed([args.trainyard, 'plan', 'e.toml', '--yard', 'yard'], args.folder):.2f} s")
    timed([args.trainyard, "run", "e.toml", "--yard", "yard", "--no-report"], args.folder)
    setup = sqlite3.connect(args.folder / "yard/results.db").execute("SELECT max(setup_seconds) FROM process").fetchone()
    print(f"set-up of a rank, data included: {setup[0]:.2f} s")


def arrays(args: argparse.Namespace) -> None:
    for gib in args.gib:
        folder = args.folder / f"{gib}-gib"
        count = int(gib * 2**30) // (3 * 64 * 64) // 1024 * 1024
        write_arrays(folder / "images", count, 64)
        time.sleep(4)
        for ranks in (1, 4):
            (folder / "e.toml").write_text(experiment(size=64, samples=count // 2, ranks=ranks))
            watcher = Watcher()
            watcher.start()
            timed([args.trainyard, "run", "e.toml", "--yard", "yard", "--no-report"], folder)
            watcher.stop.set()
            watcher.join()
            print(f"{gib} GiB, ranks: {ranks}, images: {watcher.images / 2**20:.0f} MiB, own: {watcher.own / 2**20:.0f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trainyard", type=lambda text: str(Path(text).absolute()))
    parser.add_argument("folder", type=Path)
    commands = parser.add_subparsers(required=True)
    few = commands.add_parser("pictures")
    few.add_argument("--count", type=int, default=60000)
    few.set_defaults(action=pictures)
    many = commands.add_parser("arrays")
    many.add_argument("--gib", type=float, nargs="+", default=[1, 2])
    many.set_defaults(action=arrays)
    args = parser.parse_args()
    args.action(args)


if __name__ == "__main__":
    sys.exit(main())
