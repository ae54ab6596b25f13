#!/usr/bin/env python3
"""Measure the cost of watching a sweep with `status --watch` in another terminal.

    bench/watching.py --trainyard build/release/trainyard [--windows 10] [--seconds 4] [--report]

One sweep trains two ranks on two cores, so that the watcher takes its processor time from them. Time windows with and
without the watcher take turns (A B, B A, A B …). With --report, each watched window also makes a report. Prints:
- the mean time of an epoch, watched / alone, for each pair of windows, and the mean ratio with its 95 % interval,
- the processor time of the watcher, in percent of the cores. It has less noise than the ratio.
Use an idle machine.
"""

import argparse
import os
import pty
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from student_t import half_width_95
from yard_rows import rows

SWEEP = """name = "watched"
[matrix]
model = ["mlp"]
strategy = ["ddp"]
seed = [0]
[defaults]
dataset = "synthetic-digits"
epochs = 100000
train_samples = 2000
[strategy.ddp]
replicas = 2
"""


class Watcher:
    """`status --watch` in a pseudo-terminal. Its output is read and ignored."""

    def __init__(self, trainyard: str, yard: Path) -> None:
        self.screen, terminal = pty.openpty()
        self.process = subprocess.Popen([trainyard, "status", "--watch", "--yard", yard], stdin=terminal, stdout=terminal,
                                        stderr=terminal, start_new_session=True)
        os.close(terminal)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self) -> None:
        try:
            while os.read(self.screen, 65536):
                pass
        except OSError:  # the watcher has ended
            pass

    def end(self) -> float:
        """Stop the watcher. Returns its processor seconds."""
        self.process.send_signal(signal.SIGINT)
        used = os.wait4(self.process.pid, 0)[2]
        self.reader.join()
        os.close(self.screen)
        return used.ru_utime + used.ru_stime


def epochs(trainyard: str, yard: Path) -> list[tuple[float, float]]:
    """The end of each epoch (seconds since 1970), and the training time of its slowest rank."""
    sql = "SELECT (julianday(MIN(time)) - 2440587.5) * 86400 AS ended, MAX(train_seconds) AS seconds FROM epoch GROUP BY epoch"
    return [(row["ended"], row["seconds"]) for row in rows(trainyard, yard, sql)]


def watched_window(options, yard: Path) -> float:
    """Watch for one window. Returns the processor seconds of watching."""
    watcher = Watcher(options.trainyard, yard)
    report = None
    if options.report:
        report = subprocess.Popen([options.trainyard, "report", "--yard", yard], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(options.seconds)
    used = os.wait4(report.pid, 0)[2] if report else None
    return watcher.end() + (used.ru_utime + used.ru_stime if used else 0)


def has_epochs(trainyard: str, yard: Path) -> bool:
    return (yard / "results.db").exists() and len(epochs(trainyard, yard)) > 2


def print_result(windows: list[tuple[bool, float, float]], times: list[tuple[float, float]]) -> None:
    means = []
    for watched, begin, end in windows:
        within = [seconds for ended, seconds in times if begin <= ended - seconds and ended <= end]
        if not within:
            sys.exit("a window has no complete epoch; use longer windows with --seconds")
        means.append((watched, sum(within) / len(within)))
    ratios = []
    for first, second in zip(means[::2], means[1::2]):
        pair = dict([first, second])
        ratios.append(pair[True] / pair[False])
    alone = [seconds for watched, seconds in means if not watched]
    print(f"{len(times)} epochs, {1000 * sum(alone) / len(alone):.1f} ms each without the watcher")
    print("watched / alone: " + " ".join(f"{ratio:.4f}" for ratio in ratios))
    if len(ratios) > 1:
        mean, half = sum(ratios) / len(ratios), half_width_95(ratios)
        print(f"mean {mean:.4f}, 95 % interval {mean - half:.4f} to {mean + half:.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trainyard", required=True, type=os.path.abspath)
    parser.add_argument("--windows", type=int, default=5, help="pairs of windows (default: 5)")
    parser.add_argument("--seconds", type=float, default=4, help="length of a window in seconds (default: 4)")
    parser.add_argument("--report", action="store_true", help="make a report in each watched window")
    options = parser.parse_args()
    windows, used, watched_seconds = [], 0.0, 0.0  # windows: (watched, begin, end)
    with tempfile.TemporaryDirectory() as name:
        folder, yard = Path(name), Path(name, "yard")
        (folder / "watched.toml").write_text(SWEEP)
        run = subprocess.Popen([options.trainyard, "run", "watched.toml", "--no-report", "--yard", yard], cwd=folder,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            while run.poll() is None and not has_epochs(options.trainyard, yard):
                time.sleep(0.5)
            for pair in range(options.windows):
                for watched in (False, True) if pair % 2 == 0 else (True, False):
                    begin = time.time()
                    if watched:
                        used += watched_window(options, yard)
                        watched_seconds += time.time() - begin
                    else:
                        time.sleep(options.seconds)
                    windows.append((watched, begin, time.time()))
            if run.poll() is not None:
                sys.exit("the sweep ended before the last window; use fewer or shorter windows")
        finally:
            run.send_signal(signal.SIGINT)
            run.wait()
        times = epochs(options.trainyard, yard)
    print_result(windows, times)
    cores = len(os.sched_getaffinity(0))
    print(f"watching took {1000 * used / watched_seconds:.1f} ms of processor time per second: "
          f"{100 * used / watched_seconds / cores:.2f} % of {cores} cores")


if __name__ == "__main__":
    main()
