"""frames_test.py TRAINYARD: results as frames, and their way through Parquet, TensorBoard and W&B without a lost digit."""
import importlib.util
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "python"))
TRAINYARD = sys.argv.pop(1)

import trainyard

EXPERIMENT = """name = "frames"
[matrix]
model = ["mlp"]
strategy = ["one", "two"]
learning_rate = [0.1, 0.3333333333333333]
seed = { count = 3 }
[defaults]
dataset = "synthetic-digits"
epochs = 2
[compare]
axis = "strategy"
baseline = "one"
pair = ["seed"]
[strategy.one]
command = ["PYTHON", "program.py", "{learning_rate}"]
files = ["program.py"]
[strategy.two]
command = ["PYTHON", "program.py", "{learning_rate}", "two"]
files = ["program.py"]
[machine]
devices = 2
exclusive = "devices"
"""
PROGRAM = (HERE.parents[1] / "docs/your-own-program.md").read_text().split("```python\n")[1].split("```")[0]


def needs(*names):
    lacking = [name for name in names if importlib.util.find_spec(name) is None]
    return unittest.skipIf(lacking, f"skipped: {', '.join(lacking)} is not installed")


def rows_of(frame):
    """The rows of a frame of pandas or polars, without missing values."""
    rows = frame.to_dicts() if hasattr(frame, "to_dicts") else frame.to_dict("records")
    return [{name: value for name, value in row.items() if value is not None and value == value} for row in rows]


@needs("pandas")
class Frames(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        (cls.folder / "program.py").write_text(PROGRAM)
        (cls.folder / "frames.toml").write_text(EXPERIMENT.replace("PYTHON", sys.executable))
        os.environ["TRAINYARD_PROGRAM"] = TRAINYARD
        done = subprocess.run([TRAINYARD, "run", "frames.toml", "--no-report"], cwd=cls.folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        cls.loaded = trainyard.load(cls.folder / "yard")

    def answer(self, *arguments):
        done = subprocess.run([TRAINYARD, *arguments, "--yard", str(self.folder / "yard")], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_runs_and_epochs_have_all_axes_and_digits(self):
        runs, epochs = self.loaded.runs, self.loaded.epochs
        self.assertEqual((len(runs), len(epochs)), (12, 24))
        self.assertEqual(set(runs["learning_rate"]), {0.1, 0.3333333333333333})
        self.assertEqual(set(zip(runs["strategy"], runs["seed"])), {(name, seed) for name in ("one", "two") for seed in range(3)})
        self.assertEqual(set(runs["status"]), {"finished"})
        for row in rows_of(runs):
            self.assertEqual(row["train_loss"], 100 * (2.0 * row["learning_rate"] / 2) / 100)
        for row in rows_of(epochs):
            self.assertEqual(row["train_loss"], 100 * (2.0 * row["learning_rate"] / row["epoch"]) / 100)

    def test_verdicts_are_those_of_the_program(self):
        cells = json.loads(self.answer("compare", "--format", "json"))["comparisons"][0]["cells"]
        expected = [(cell["label"], verdict["metric"], verdict["verdict"], verdict["effect"]) for cell in cells for verdict in cell["verdicts"]]
        frame = self.loaded.verdicts
        found = [tuple(row.get(name) for name in ("cell", "metric", "verdict", "effect")) for row in rows_of(frame)]
        self.assertEqual(found, expected)
        self.assertEqual((set(frame["arm"]), set(frame["baseline"])), ({"two"}, {"one"}))
        self.assertEqual(set(map(str, frame["learning_rate"])), {str(dict(cell["further"])["learning_rate"]) for cell in cells})
        self.assertEqual(self.loaded.report["name"], "frames")
        self.assertIn("<table", self.loaded._repr_html_())

    def test_the_notebook_of_the_docs_runs_from_top_to_bottom(self):
        cells = json.loads((HERE.parents[1] / "docs/results.ipynb").read_text("utf-8"))["cells"]
        names, path = {}, f"{pathlib.Path(TRAINYARD).parent}{os.pathsep}{os.environ['PATH']}"
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(os.environ, PATH=path):
            os.chdir(folder)
            try:
                for cell in cells:
                    if cell["cell_type"] == "code":
                        exec("".join(cell["source"]), names)
            finally:
                os.chdir(before)
        self.assertEqual(set(names["results"].runs["status"]), {"finished"})
        self.assertEqual(names["curves"].shape, (3, 2))
        self.assertIn("validation-loss", set(names["results"].verdicts["metric"]))
        (word,) = rows_of(names["judged"])
        self.assertEqual((word["verdict"], word["caveats"]), ("IMPROVES", "NOT VERIFIED"))

    def test_one_sentence_says_what_is_wrong(self):
        with self.assertRaisesRegex(RuntimeError, "^no results in .*nothing; name the folder"):
            trainyard.load(self.folder / "nothing")
        with self.assertRaisesRegex(RuntimeError, "other"):
            trainyard.load(self.folder / "yard", "other")
        with self.assertRaisesRegex(FileNotFoundError, "neither Parquet files, nor"):
            trainyard.read(self.folder / "nothing")
        os.environ["TRAINYARD_PROGRAM"] = "/no/trainyard"
        try:
            with self.assertRaisesRegex(RuntimeError, "^the program /no/trainyard was not found"):
                trainyard.load(self.folder / "yard")
        finally:
            os.environ["TRAINYARD_PROGRAM"] = TRAINYARD

    def test_a_column_of_numbers_and_texts_has_texts(self):
        frame = trainyard.files.frame_of([{"batch": 64, "rate": 1}, {"batch": "64 per replica", "rate": 0.5}, {"rate": None}], False)
        self.assertEqual(rows_of(frame), [{"batch": "64", "rate": 1.0}, {"batch": "64 per replica", "rate": 0.5}, {}])

    def test_runs_from_elsewhere_are_compared(self):
        import pandas
        if "--from" not in self.answer("compare", "--help"):
            self.skipTest("skipped: this program has no compare --from")
        noise = random.Random(1)
        frame = pandas.DataFrame([
            {"optimizer": name, "batch": batch, "seed": seed, "val_loss": 1.0 + seed / 100 + shift + noise.gauss(0, 0.002)}
            for name, shift in (("sgd", 0.0), ("adam", 0.2), ("muon", -0.2)) for batch in (32, 64) for seed in range(6)])
        found = trainyard.compare(frame, arm="optimizer", baseline="sgd", metric="val_loss", pair="seed", by=["batch"])
        rows = [tuple(row[name] for name in ("batch", "arm", "metric", "verdict", "n")) for row in rows_of(found)]
        self.assertEqual(sorted(rows), [(batch, arm, "val_loss", verdict, 6) for batch in ("32", "64")
                                        for arm, verdict in (("adam", "DETERIORATES"), ("muon", "IMPROVES"))])
        with self.assertRaisesRegex(RuntimeError, "there is no column \"optimiser\""):
            trainyard.compare(frame, arm="optimiser", baseline="sgd", metric="val_loss", pair="seed")
        if importlib.util.find_spec("polars"):
            import polars
            other = trainyard.compare(polars.DataFrame(frame.to_dict("list")), arm="optimizer", baseline="sgd", metric="val_loss",
                                      pair="seed", by="batch")
            self.assertEqual(rows_of(other), rows_of(found))

    @needs("polars")
    def test_polars_has_the_same(self):
        other = trainyard.load(self.folder / "yard", polars=True)
        for name in ("runs", "epochs", "verdicts"):
            self.assertEqual(rows_of(getattr(other, name)), rows_of(getattr(self.loaded, name)))
        self.assertIn("<table", other._repr_html_())

    @needs("pyarrow", "polars")
    def test_parquet_keeps_everything(self):
        import pandas, polars, pyarrow.parquet
        for number, loaded in enumerate((self.loaded, trainyard.load(self.folder / "yard", polars=True))):
            folder = self.folder / f"parquet-{number}"
            loaded.to_parquet(folder)
            for name in ("runs", "epochs", "verdicts"):
                expected, path = rows_of(getattr(loaded, name)), folder / f"{name}.parquet"
                for frame in (pandas.read_parquet(path), polars.read_parquet(path), trainyard.read(path), trainyard.read(path, polars=True),
                              pyarrow.parquet.read_table(path).to_pandas()):
                    self.assertEqual(rows_of(frame), expected)

    @needs("tensorboard")
    def test_tensorboard_keeps_everything(self):
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        from tensorboard.util import tensor_util
        folder = self.folder / "tensorboard"
        self.loaded.to_tensorboard(folder)
        found = {row["run"]: row for row in rows_of(trainyard.read(folder))}
        self.assertEqual(set(found), set(self.loaded.runs["run_key"]))
        for run in self.loaded.report["runs"]:
            events = EventAccumulator(str(folder / run["key"]))
            events.Reload()
            curve = {event.step: tensor_util.make_ndarray(event.tensor_proto).item() for event in events.Tensors("train_loss")}
            epochs = self.loaded.epochs[self.loaded.epochs["run_key"] == run["key"]]
            self.assertEqual(curve, dict(zip(epochs["epoch"], epochs["train_loss"])))
            row, settings = found[run["key"]], run["settings"]
            for name, value in [*settings.items(), *run["values"].items()]:
                if value is not None:
                    self.assertEqual(row[name], value if isinstance(value, (int, float, str)) else json.dumps(value), name)

    @needs("tensorboard")
    def test_event_files_of_scripts_are_read(self):
        from torch.utils.tensorboard import SummaryWriter
        for seed in (0, 1):
            with SummaryWriter(str(self.folder / f"scripts/run-{seed}")) as writer:
                for step in range(50):
                    writer.add_scalar("loss/val", 1 / (step + 1) + seed, step)
        self.assertEqual(rows_of(trainyard.read(self.folder / "scripts")),
                         [{"run": f"run-{seed}", "loss/val": as_written(1 / 50 + seed)} for seed in (0, 1)])

    @needs("wandb")
    def test_offline_runs_of_wandb_keep_everything(self):
        import wandb
        folder, rows = self.folder / "wandb-runs", rows_of(self.loaded.runs)[:3]
        folder.mkdir()
        for row in rows:
            with wandb.init(mode="offline", project="frames", dir=str(folder), config=row, id=row["run_key"],
                            settings=wandb.Settings(silent=True, x_disable_stats=True, disable_git=True, console="off")) as run:
                for step in range(500, 0, -1):
                    run.log({"val_loss": row["train_loss"] * step, "diverged": math.nan, "text": "x" * step})
        wandb.teardown()
        found = {row["run"]: row for row in rows_of(trainyard.read(folder))}
        for row in rows:
            self.assertEqual({name: found[row["run_key"]][name] for name in row}, row)
            self.assertEqual(found[row["run_key"]]["val_loss"], row["train_loss"])


def as_written(value):
    """The float32 that add_scalar writes."""
    import numpy
    return float(numpy.float32(value))


if __name__ == "__main__":
    unittest.main(verbosity=2)
