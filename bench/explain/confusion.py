#!/usr/bin/env python3
"""How often `trainyard explain` names the right cause: inject each fault, train, and print a table of confusion.

    bench/explain/confusion.py                    the faults that change a result, 5 seeds, two networks
    bench/explain/confusion.py --speed            the faults that change the speed, 5 times, on an idle machine
    bench/explain/confusion.py --two              two faults that change a result: both must be named

It needs a Python with torch, and the data of the tests (TRAINYARD_DATA). The exit code is 1 if a required share is missed:
at least 95 % with the right cause first, at most 1 % with a wrong one first, and no cause for all pairs without a fault."""
import argparse
import collections
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from faulty import SPEED, Job
from networks import has_data

HERE = pathlib.Path(__file__).resolve().parent
HEALTHY = "healthy", "healthy_accum", "adam", "manual", "healthy_speed", "other_process"  # the last one is a fault of the host
FIRST = {  # the cause that `explain` should name first, by fault
    "batch": "batch", "batch_lr": "batch-and-rate", "lr_only": "learning-rate", "sched_n": "scheduler-steps", "sum": "summed-gradients",
    "div_twice": "divided-twice", "accum_undivided": "undivided-accumulation", "sum_accum": "summed-gradients",
    "uneven": "uneven-means", "local_bn": "batch-norm-samples", "pad": "padded-sampler", "val_twice": "validation-repeated",
    "no_set_epoch": "set-epoch", "same_data": "same-data", "same_aug": "same-augmentation", "drop_seed": "same-dropout",
    "metric_rank0": "metric-of-one-rank", "mean_of_means": "mean-of-means", "bf16": "lossy-exchange", "init": "weights",
    "fewer_steps": "discarded-steps", "multiplied": "multiplied-loss", "unsynced": "not-averaged", "half": "fewer-samples", "slow_loader": "input", "threads": "threads", "slow_link": "slow-exchange",
    **dict.fromkeys([fault for fault in SPEED if "straggler" in fault or "rank1" in fault], "straggler")}
RESULT = [*HEALTHY[:4], *(fault for fault in FIRST if fault not in SPEED)]
TWO = [f"local_bn+{fault}" for fault in ("sum", "div_twice", "bf16", "drop_seed", "val_twice")]


def expected(job):
    """The causes that must be named."""
    if job.model == "cnn" and job.fault == "healthy_accum":
        return ["batch-norm-samples"]  # each part has less samples
    more = ["undivided-accumulation"] if job.fault == "sum_accum" else []
    return [FIRST[fault] for fault in job.fault.split("+") if fault not in HEALTHY] + more


def jobs_of(args):
    """(jobs of one process, jobs of two)"""
    faults = SPEED if args.speed else TWO if args.two else RESULT
    faults = [fault for fault in faults if not args.faults or fault in args.faults.split(",")]
    models = ["cnn"] if args.speed or args.two else args.models.split(",")
    pairs = [Job(model, fault, int(seed), args.delay, 2) for model in models for seed in args.seeds.split(",") for fault in faults
             if model == "cnn" or fault not in ("local_bn", "same_aug")]
    singles = {job.name: Job(job.model, {"speed": "healthy_speed", "": "healthy"}.get(job.kind, job.kind), job.seed) for job in pairs}
    return list(singles.values()), pairs


def train(jobs, yard):
    """Train the jobs in one or two processes. RuntimeError if one fails or takes too long."""
    world, file, seconds = jobs[0].processes, yard / "jobs.json", 60 + 20 * len(jobs)
    fields = "model", "fault", "seed", "delay", "processes"
    file.write_text(json.dumps([{name: getattr(job, name) for name in fields} for job in jobs]))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    shared = {"TRAINYARD_HOME": yard, "OMP_NUM_THREADS": 1, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "GLOO_SOCKET_IFNAME": "lo",
              "WORLD_SIZE": world}
    environment = os.environ | {name: str(value) for name, value in shared.items()}
    environment.pop("TRAINYARD_RUN", "")
    running, end = [], time.monotonic() + seconds
    try:
        for rank in range(world):
            running.append(subprocess.Popen([sys.executable, HERE / "faulty.py", "--jobs", file], stdin=subprocess.DEVNULL,
                                            stdout=sys.stderr, env={**environment, "RANK": str(rank)}))
        while any(each.poll() is None for each in running) and not any(each.poll() for each in running) and time.monotonic() < end:
            time.sleep(0.2)
        if any(each.poll() != 0 for each in running):
            raise RuntimeError(f"a process of the training failed, or took longer than {seconds} s")
    finally:
        for each in running:
            each.kill()
            each.wait()


def explained(program, yard):
    """What `trainyard explain` names: a list of causes by model and arm. Prints which runs its records fail."""
    def answer(*arguments):
        done = subprocess.run([program, *arguments, "--yard", yard], capture_output=True, encoding="utf-8", timeout=600)
        if done.returncode or not done.stdout:
            sys.exit(f"confusion: {program} {arguments[0]} ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout
    with tempfile.TemporaryDirectory() as folder:
        answer("report", "recorded", "--format", "json", "--out", folder)
        report = json.loads((pathlib.Path(folder) / "report.json").read_text())
    cells = [cell for comparison in report["comparisons"] for cell in comparison["cells"]]
    for run in map(json.loads, answer("export", "runs", "--experiment", "recorded", "--format", "jsonl").splitlines()):
        if run["status"] != "finished":
            print(f"confusion: {run['model']} {run['strategy']} is {run['status']}: {run['failure']}", file=sys.stderr)
    return {(cell["model"], arm["value"]): arm["causes"] for cell in cells for arm in cell["arms"] if arm["causes"] is not None}


def grade(needed, named):
    """needed, named: names of causes, the strongest named first."""
    if not set(needed) & set(named[:1]):
        return ("wrong" if named else "missed") if needed or named else "right"
    return "right" if set(needed) <= set(named) else "missed"


def print_table(pairs):
    """pairs: (job, expected causes, named causes). Returns whether the required shares are reached."""
    print(f"{'network':8}{'fault':23}{'expected':41}{'right':>8}{'wrong':>8}{'missed':>8}  named, but not expected")
    rows, total, silent = collections.defaultdict(list), collections.Counter(), []
    for job, needed, named in pairs:
        rows[job.model, job.fault].append((needed, named))
        silent += [] if needed else [not named]
    for (model, fault), found in rows.items():
        grades, needed = collections.Counter(grade(*each) for each in found), found[0][0]
        total += grades
        others = collections.Counter(name for _, named in found for name in named if name not in needed)
        print(f"{model:8}{fault:23}{' + '.join(needed) or '(none)':41}{grades['right']:>8}{grades['wrong']:>8}{grades['missed']:>8}  "
              + ", ".join(f"{name} {number} of {len(found)}" for name, number in others.most_common()))
    right, wrong = (total[word] / len(pairs) for word in ("right", "wrong"))
    print(f"\n{len(pairs)} pairs: {right:.1%} right first, {wrong:.1%} wrong first; no cause for {sum(silent)} of {len(silent)} pairs "
          "without a fault")
    return right >= 0.95 and wrong <= 0.01 and all(silent)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="1,2,3,4,5")
    parser.add_argument("--models", default="cnn,gpt")
    parser.add_argument("--faults", help="only these, with commas")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--two", action="store_true")
    parser.add_argument("--delay", type=float, default=0.03, help="seconds that a fault of speed adds to a step")
    parser.add_argument("--data", help="folder with mnist and tiny-shakespeare")
    parser.add_argument("--program", default=os.environ.get("TRAINYARD_PROGRAM") or HERE.parents[1] / "build/release/trainyard")
    parser.add_argument("--yard", type=pathlib.Path, help="keep the runs in this folder, and do not train if it has some")
    parser.add_argument("--json", type=pathlib.Path, help="write the causes of each pair to this file")
    args = parser.parse_args()
    if args.data:
        os.environ["TRAINYARD_DATA"] = args.data
    if shutil.which(args.program) is None:
        parser.error(f"there is no program {args.program}: build it, or name it with --program")
    if not (args.yard and (args.yard / "recorded").exists()) and not has_data():
        print("confusion: skipped, because there is no data: set TRAINYARD_DATA")
        sys.exit(4)
    singles, jobs = jobs_of(args)
    with tempfile.TemporaryDirectory() as folder:
        yard = args.yard or pathlib.Path(folder)
        if not (yard / "recorded").exists():
            yard.mkdir(parents=True, exist_ok=True)
            train(singles, yard)
            train(jobs, yard)
        causes = explained(args.program, yard)
    arms = [(job.name, "-".join(["2-processes", *job.arguments])) for job in jobs]
    if lacking := set(arms) - set(causes):
        sys.exit(f"confusion: explain has no answer for {sorted(lacking)}")
    found = [(job, expected(job), causes[arm]) for job, arm in zip(jobs, arms)]
    if args.json:
        args.json.write_text(json.dumps([{"model": job.name, "fault": job.fault, "expected": needed, "causes": named}
                                         for job, needed, named in found], indent=1) + "\n")
    named = [(job, needed, [cause["name"] for cause in all_named if cause["of_times"] == args.speed])
             for job, needed, all_named in found]
    is_reached = print_table(named)
    if not args.speed:  # small steps on a machine that is not idle: these do not count
        others = collections.Counter((job.fault, cause["name"]) for job, _, all_named in found for cause in all_named
                                     if cause["of_times"])
        print("causes of slow steps, which do not count here:", ", ".join(f"{name} of {fault} {number}" for (fault, name), number
                                                                       in others.most_common()) or "none")
    sys.exit(0 if is_reached else 1)


if __name__ == "__main__":
    main()
