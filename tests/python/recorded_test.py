"""recorded_test.py TRAINYARD: `trainyard run` trains trained.py with one rank and with two, and judges what was recorded."""
import csv
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
TRAINYARD = sys.argv.pop(1)
PACKAGE = ":".join([str(HERE.parents[1] / "python"), *filter(None, [os.environ.get("PYTHONPATH")])])
EXPERIMENT = """name = "recorded"
[matrix]
model = ["net"]
strategy = [{strategies}]
case = [{cases}]
seed = [1]
[defaults]
dataset = "images"
epochs = 2
{more}
[model.net]
title = "Small network"
task = "classification"
parameters = {{ case = "plain" }}
[dataset.images]
title = "Random images"
[machine]
devices = 2
exclusive = "devices"
"""
STRATEGY = """[strategy.{name}]
command = ["{python}", "{here}/{script}", "{{case}}", "{{seed}}"]
files = ["{here}/{script}"]
env = {{ PYTHONPATH = "{package}" }}
replicas = {replicas}
"""


def quoted(names):
    return ", ".join(f'"{name}"' for name in names)


class Recorded(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder, self.environment = pathlib.Path(scratch.name), {}

    def run_cases(self, cases, replicas, *options, more="", script="trained.py"):
        """Train each case with each number of ranks. The strategies are r1 and r2."""
        text = EXPERIMENT.format(strategies=quoted(f"r{n}" for n in replicas), cases=quoted(cases), more=more)
        if len(replicas) > 1:
            text += '[compare]\naxis = "strategy"\nbaseline = "r1"\n'
        for n in replicas:
            text += STRATEGY.format(name=f"r{n}", python=sys.executable, here=HERE, script=script, package=PACKAGE, replicas=n)
        (self.folder / "recorded.toml").write_text(text)
        return self.trainyard("run", "recorded.toml", "--no-report", *options)

    def trainyard(self, *arguments):
        return subprocess.run([TRAINYARD, *arguments], cwd=self.folder, env={**os.environ, **self.environment}, capture_output=True,
                              text=True, timeout=250)

    def compared(self):
        return list(csv.DictReader(self.trainyard("compare", "--format", "csv").stdout.splitlines()))

    def rows(self, query):
        return list(csv.DictReader(self.trainyard("sql", query, "--format", "csv").stdout.splitlines()))

    def test_the_page_is_typed(self):
        page = (HERE.parents[1] / "docs/python.md").read_text()
        for language, name in (("python", "train.py"), ("toml", "squares.toml")):
            (self.folder / name).write_text(page.split(f"```{language}\n")[1].split("```")[0])
        path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
        self.environment |= {"PATH": path, "PYTHONPATH": PACKAGE}
        run = self.trainyard("run", "squares.toml", "--no-report", "--where", "seed=0")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        rows = [row for row in self.compared() if "seconds" not in row["metric"]]
        self.assertEqual([row["metric"] for row in rows], ["validation-accuracy", "train-loss", "validation-loss"])
        self.assertEqual({row["verified"] for row in rows}, {"true"})
        added = len(re.findall(r"# [1-7]\b", (self.folder / "train.py").read_text()))
        self.assertEqual(added, 7)

    def test_one_and_two_ranks_are_verified(self):
        run = self.run_cases(["compiled", "shuffled", "scaled", "rest"], (1, 2))
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        compared = self.trainyard("compare")
        self.assertNotIn("NOT VERIFIED", compared.stdout)
        self.assertNotIn("warning", run.stdout + run.stderr)
        rows = [row for row in self.compared() if "seconds" not in row["metric"]]
        self.assertEqual(len(rows), 12, rows)
        for row in rows:
            with self.subTest(row["cell"], metric=row["metric"]):
                self.assertEqual(row["verified"], "true")
                shuffled = "shuffled" in row["cell"]
                self.assertEqual(row["verdict"], "NOT COMPARABLE" if shuffled else "INCONCLUSIVE")  # one seed decides nothing
                self.assertTrue(shuffled or abs(float(row["effect"])) < 0.2, row["effect"])
        self.assertRegex(compared.stdout, r"data order epoch 1 [0-9a-f]{64} \(DistributedSampler with seed 1 of trained\.py:\d+\) against "
                                          r"epoch 1 [0-9a-f]{64} \(RandomSampler of trained\.py:\d+\) \[Small network, case shuffled")
        skipped = self.rows("SELECT DISTINCT start_extra ->> '$.observed.skipped_steps' AS n FROM process JOIN run USING (run_key) "
                            "WHERE resolved LIKE '%scaled%'")
        self.assertEqual([row["n"] for row in skipped], ["2"])

    def test_a_run_that_does_not_end_as_it_began_has_failed(self):
        run = self.run_cases(["broken", "raised"], (2,))
        self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
        self.assertRegex(run.stdout, r"epoch 2: train loss has a weight of \d+, but in epoch 1 of \d+")
        self.assertRegex(run.stdout, r"case=raised … failed after .*: ValueError: a bad sample")

    def test_a_killed_run_resumes_with_the_same_bits(self):
        run = self.run_cases(["plain", "killed"], (1,), "--max-retries", "1", "--backoff", "0.1", more='checkpoint = "epoch"')
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        sums = self.rows("SELECT epoch, phase, name, COUNT(*) AS n, COUNT(DISTINCT sum) AS other FROM metric m JOIN attempt_status s "
                         "USING (run_key, attempt) WHERE epoch = 2 GROUP BY epoch, phase, name")
        self.assertEqual([(row["n"], row["other"]) for row in sums], [("2", "1")] * 3)
        weights = self.rows("SELECT COUNT(DISTINCT start_extra ->> '$.initial_weights') AS n, COUNT(*) AS runs FROM process "
                            "WHERE status = 'finished'")
        self.assertEqual((weights[0]["n"], weights[0]["runs"]), ("1", "2"))
        rates = self.rows("SELECT COUNT(DISTINCT start_extra ->> '$.learning_rate_schedule') AS n FROM process WHERE status = 'finished'")
        self.assertEqual(rates[0]["n"], "1")

    @unittest.skipUnless(importlib.util.find_spec("transformers"), "skipped: transformers is not installed")
    def test_the_trainer_of_hugging_face_is_recorded(self):
        run = self.run_cases(["plain"], (1, 2), script="trainer.py")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        rows = [row for row in self.compared() if "seconds" not in row["metric"]]
        self.assertEqual({row["verified"] for row in rows}, {"true"})
        losses = [abs(float(row["effect"])) for row in rows if row["metric"].endswith("loss")]
        self.assertTrue(len(losses) == 2 and max(losses) < 0.2, losses)


if __name__ == "__main__":
    unittest.main(verbosity=2)
