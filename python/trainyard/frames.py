"""Results of a yard as frames, and verdicts of results from elsewhere. The program trainyard computes all of them."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Iterable, Iterator

from . import files

INFINITE = {"infinite": float("inf"), "-infinite": -float("inf")}  # in report.json


def _answer(*arguments: str, text: str | None = None) -> str:
    """What the program prints: that of TRAINYARD_PROGRAM, else beside the package or its Python, else in PATH.

    RuntimeError with its message if it refuses, and if it is not found."""
    package = Path(__file__).resolve().parent
    places = [str(package / "bin"), str(Path(sys.executable).parent), str(package.parents[1] / "build/release"), os.environ.get("PATH", "")]
    program = shutil.which(name := os.environ.get("TRAINYARD_PROGRAM") or "trainyard", path=os.pathsep.join(places))
    if program is None:
        raise RuntimeError(f"the program {name} was not found: build it, or set TRAINYARD_PROGRAM to its path")
    done = subprocess.run([program, *arguments], input=text, capture_output=True, encoding="utf-8")
    if done.returncode:
        raise RuntimeError(done.stderr.strip().removeprefix("trainyard: ") or f"{program} {arguments[0]} ended with {done.returncode}")
    return done.stdout


def _verdicts(comparisons: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """One row per verdict of report.json: names of the cell, and members. An interval is two columns."""
    for comparison, cell, verdict in ((one, cell, verdict) for one in comparisons for cell in one["cells"] for verdict in cell["verdicts"]):
        intervals = {f"{name}_{end}": value for name in ("margin", "ci90", "ci95")
                     for end, value in zip(("low", "high"), verdict[name] or (None, None))}
        row = {"axis": comparison["compare"]["axis"], "baseline": cell["baseline"]["value"], "cell": cell["label"],
               "model": cell["model"], **dict(cell["further"]), **verdict, "reason": verdict["reason"]["text"],
               "caveats": ", ".join(["NOT VERIFIED"] * (not verdict["verified"]) + [each["mark"] for each in verdict["caveats"]]), **intervals}
        yield {name: INFINITE.get(value, value) for name, value in row.items()
               if name not in ("later", "decision") and not isinstance(value, (dict, list))}


class Yard:
    """The results of an experiment, by default the one that was run last, in a yard, by default $TRAINYARD_HOME or ./yard.

    runs: a frame with one row per run, all axes, and the final metrics if it has finished. epochs: one row per run and epoch.
    verdicts: one row per arm and metric. report: the document report.json. polars: frames of polars in place of pandas.
    RuntimeError if the program does not find them."""

    def __init__(self, yard: str | Path | None = None, experiment: str | None = None, polars: bool = False):
        place = ["--yard", str(yard)] if yard is not None else []

        def rows(view: str) -> list[dict[str, Any]]:
            lines = _answer("export", view, "--format", "jsonl", *(["--experiment", experiment] if experiment else []), *place).splitlines()
            return [json.loads(line) for line in lines]
        runs, final, self._epochs = rows("runs"), {row["run_key"]: row for row in rows("final")}, rows("epochs")
        with tempfile.TemporaryDirectory() as folder:
            _answer("report", *([experiment] if experiment else []), "--format", "json", "--out", folder, *place)
            self.report: dict[str, Any] = json.loads(Path(folder, "report.json").read_text("utf-8"))
        self.runs = files.frame_of([row | final.get(row["run_key"], {}) for row in runs], polars)
        self.epochs = files.frame_of(self._epochs, polars)
        self.verdicts = files.frame_of(_verdicts(self.report["comparisons"]), polars)

    def _repr_html_(self) -> str:
        return (self.verdicts if len(self.verdicts) else self.runs)._repr_html_()

    def to_parquet(self, folder: str | Path) -> None:
        """Write runs.parquet, epochs.parquet and verdicts.parquet."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        for name, frame in (("runs", self.runs), ("epochs", self.epochs), ("verdicts", self.verdicts)):
            (frame.write_parquet if hasattr(frame, "write_parquet") else frame.to_parquet)(Path(folder, f"{name}.parquet"))

    def to_tensorboard(self, folder: str | Path) -> None:
        """Write an event file per run, folder/KEY: float64 metrics by epoch, final metrics, and settings for the page HParams."""
        from torch.utils.tensorboard import SummaryWriter
        from torch.utils.tensorboard.summary import hparams
        for run in self.report["runs"]:
            settings = {name: value if isinstance(value, (int, float, str)) else json.dumps(value)
                        for name, value in run["settings"].items() if value is not None}
            rows = [row for row in self._epochs if row["run_key"] == run["key"]] + [{"epoch": run["epochs_done"], **run["values"]}]
            points = [(name, value, row["epoch"]) for row in rows for name, value in row.items()
                      if isinstance(value, (int, float)) and name != "epoch" and name not in settings]
            with SummaryWriter(str(Path(folder, run["key"]))) as writer:
                for name, value, epoch in points:
                    writer.add_scalar(name, value, epoch, new_style=True, double_precision=True)
                for summary in hparams(settings, dict.fromkeys(name for name, _, _ in points)):
                    writer.file_writer.add_summary(summary)


def compare(frame: Any, *, arm: str, baseline: Any, metric: str | list[str], **options: str | float | list[Any]) -> Any:
    """Verdicts of the runs in a frame, which has one row per run: a frame with one row per arm and metric.

    arm: the column that is compared, baseline: its value of the baseline, metric: columns of results. options: those of
    `trainyard compare --from`, as pair, by, kind and margin. RuntimeError if the program refuses them."""
    named = {"arm": arm, "baseline": baseline, "metric": metric, **options}
    arguments = [f"--{name.replace('_', '-')}={value}" for name, values in named.items() for value in (values if isinstance(values, list) else [values])]
    polars = hasattr(frame, "write_csv")
    answer = _answer("compare", "--from", "-", "--format", "json", *arguments, text=frame.write_csv() if polars else frame.to_csv(index=False))
    return files.frame_of(_verdicts(json.loads(answer)["comparisons"]), polars)
