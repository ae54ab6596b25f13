"""recorded_test.py TRAINYARD: `trainyard run` trains trained.py with one rank and with two, and judges what was recorded."""
import csv
import importlib.util
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
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

    def test_a_probe_compares_gradients_of_the_same_samples(self):
        expected = {"plain": ["with the same samples and weights, r2 has the gradients of r1",
                              "in step 3, with parts of 8 + 4 samples: each rank takes the mean of its own part, and these means count alike, but r1 gives "
                              "them 66.7 % and 33.3 %"],
                    "doubled": ["the gradient is 2 times that of r1"]}
        for case, texts in expected.items():
            with self.subTest(case):
                done = self.run_cases([case], [1, 2], "--as", case)
                self.assertEqual(done.returncode, 0, done.stderr)
                probed = self.trainyard("explain", case, "--probe")
                self.assertEqual(probed.returncode, 0, probed.stderr)
                said = " ".join(probed.stdout.split())
                for text in texts:
                    self.assertIn(text, said)
        self.assertEqual(self.trainyard("status", "--format", "json").stdout.count("probe"), 0)  # the yard has no run more
        refused = self.trainyard("explain", "--probe", "--arm", "r1")
        self.assertEqual((refused.returncode, 'no arm of experiment "doubled" is a strategy' in refused.stderr), (2, True), refused.stderr)

    def test_a_script_has_its_own_strategies_and_arguments(self):
        self.write_page_script((HERE.parents[1] / "docs/python.md").read_text())
        added = len(re.findall(r"# [1-7]\b", (self.folder / "train.py").read_text()))
        self.assertEqual(added, 7)
        wrong = self.trainyard("run", "train.py", "--strategies", "pipeline")
        self.assertEqual((wrong.returncode, "a script cannot be trained as \"pipeline\"" in wrong.stderr), (2, True), wrong.stderr)
        wrong = self.trainyard("run", "train.py", "--dataset", "mnist")
        self.assertEqual((wrong.returncode, "--dataset is for a Python function" in wrong.stderr), (2, True), wrong.stderr)
        for wrong, text in ((("absent.py",), "there is no script absent.py"),
                            (("train.py", "--strategies", "ddp", "ddp"), "no experiment file can be made")):
            refused = self.trainyard("run", *wrong)
            self.assertEqual((refused.returncode, text in refused.stderr), (2, True), refused.stderr)
        self.assertEqual(list(self.folder.glob("*.toml")), [])
        (self.folder / "mlp.py").write_text("")
        self.assertEqual(self.trainyard("run", "mlp.py", "--dry-run").returncode, 0)
        plan = self.trainyard("run", "train.py", "--seeds", "1", "--epochs", "2", "--dry-run", "--", "--seed", "{seed}")
        self.assertEqual(plan.returncode, 0, plan.stdout + plan.stderr)
        self.assertRegex((self.folder / "train.toml").read_text(), r'command = \["python3","train.py","--seed","{seed}"\]')

    def write_page_script(self, page):
        (self.folder / "train.py").write_text(page.split("```python\n")[1].split("```")[0])
        path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
        self.environment |= {"PATH": path, "PYTHONPATH": PACKAGE}

    def alone(self, seed, *command, **options):
        return subprocess.Popen([sys.executable, *command, "train.py"], cwd=self.folder, stderr=subprocess.PIPE, text=True,
                                env={**os.environ, **self.environment, "SEED": str(seed)}, **options)

    def test_a_report_needs_no_experiment_file_for_runs_of_a_script_alone(self):
        self.write_page_script((HERE.parents[1] / "docs/python.md").read_text())
        self.environment["OMP_NUM_THREADS"] = "1"
        for seed in (0, 1):
            for command in ((), ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")):
                process = self.alone(seed, *command)
                said = process.communicate(timeout=120)[1]
                self.assertEqual(process.returncode, 0, said)
        killed = self.alone(2)
        for _ in range(1200):
            if list((self.folder / "trainyard-runs/recorded").glob("*/rank-0.records.jsonl"))[4:]:
                break
            time.sleep(0.05)
        killed.send_signal(signal.SIGSTOP)  # it must not finish
        running = self.trainyard("status")
        self.assertIn("1 run of ", running.stderr)
        self.assertIn("added 4 runs of ", running.stderr)
        killed.kill()
        killed.communicate()
        report = self.trainyard("report")
        self.assertEqual(report.returncode, 0, report.stderr)
        self.assertIn("added 1 run of ", report.stderr)
        rows = [row for row in self.compared() if "seconds" not in row["metric"]]
        self.assertEqual([(row["arm"], row["n"], row["verified"]) for row in rows], [("2-processes", "2", "true")] * 3)
        times = [row for row in self.compared() if row["metric"] == "train-seconds"]
        self.assertEqual({row["n"] for row in times} - {"0"}, set(), times)
        query = "SELECT strategy, seed, status FROM run_summary ORDER BY strategy, seed"
        statuses = self.rows(query)
        self.assertEqual([row["status"] for row in statuses], ["finished", "finished", "failed", "finished", "finished"])
        page = (self.folder / "trainyard-runs/reports/recorded/index.html").read_text()
        self.assertIn("the script ended without run.finish()", page)
        refused = self.trainyard("resume")
        self.assertEqual((refused.returncode, "recorded without trainyard run" in refused.stderr), (2, True), refused.stderr)
        self.assertEqual(self.trainyard("db", "check").returncode, 0)
        self.assertEqual(self.trainyard("db", "rebuild").returncode, 0)
        self.assertEqual(statuses, self.rows(query))
        self.odd_runs()

    def odd_runs(self):
        """Odd arguments, a diverged loss, another host, another script of that name, and folders without a run."""
        recorded = self.folder / "trainyard-runs/recorded"
        (first, *_) = [folder for folder in recorded.iterdir() if json.loads((folder / "run.json").read_text())["world_size"] == 1
                       and '"finished"' in (folder / "rank-0.records.jsonl").read_text()]

        def copy(name, change=lambda info: None, text=lambda records: records):
            (recorded / name).mkdir()
            info = json.loads((first / "run.json").read_text())
            change(info)
            (recorded / name / "run.json").write_text(json.dumps(info))
            (recorded / name / "rank-0.records.jsonl").write_text(text((first / "rank-0.records.jsonl").read_text()))

        copy("odd", lambda info: info["command"].extend(["--lr=0.1", "{x}", "y" * 300]),
             lambda records: re.sub(r'"sum": [0-9.]+', '"sum": NaN', records))
        copy("catalogue", lambda info: info["command"].__setitem__(1, "mlp.py"))
        copy("elsewhere", lambda info: info.update(host="node7"), lambda records: records[:records.index('{"v"', 10)])
        copy("other", lambda info: info.update(folder="/other"))
        copy("again", lambda info: info.update(created="2099-01-01T00:00:00.000Z"))
        copy("impossible", lambda info: info.update(world_size=0))
        (recorded / "half").mkdir()
        (recorded / "half/run.json").write_text("{")
        said = self.trainyard("status")
        self.assertEqual(said.returncode, 0, said.stderr)
        for text in ("added 4 runs of ", "note: 1 run of ", "impossible is left out", "half is left out", "1 recorded run replaced"):
            self.assertIn(text, said.stderr)
        rows = self.rows("SELECT s.model, s.strategy, s.epochs, s.status, f.train_loss IS NULL AS diverged FROM run_summary s "
                         "LEFT JOIN final_metrics f USING (run_key) ORDER BY s.model, s.strategy")
        found = [(row["model"], row["status"], row["epochs"], row["diverged"]) for row in rows if row["strategy"].startswith("1-process-")]
        self.assertEqual(found, [("train", "finished", "8", "1")])
        models = {row["model"] for row in rows}
        self.assertEqual({name[:6] for name in models}, {"train", "train-", "mlp-sc"})
        self.assertNotIn("added", self.trainyard("status").stderr)

    def test_an_arm_that_multiplies_its_loss_is_doubtful(self):
        self.assertEqual(self.run_cases(["plain", "doubled"], (1, 2)).returncode, 0)
        said = self.trainyard("compare").stdout
        self.assertRegex(said, r"DOUBTFUL: the first weights and samples are equal, but the norms of the gradient at step 1 are "
                               r"(\S+) against (\S+) \(seed 1\); one arm may multiply its loss.*\[Small network, case doubled")
        self.assertNotRegex(said, r"DOUBTFUL.*case plain")
        (row,) = [row for row in self.compared() if "samples" in row["metric"]]  # 8 + 16 of two ranks against 8 of one
        self.assertEqual((row["metric"], float(row["effect"])), ("train-samples-of-the-rank", 200.0))

    def test_one_and_two_ranks_are_verified(self):
        run = self.run_cases(["compiled", "divided", "shuffled", "scaled", "rest"], (1, 2))
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        compared = self.trainyard("compare")
        self.assertNotIn("NOT VERIFIED", compared.stdout)
        self.assertNotIn("warning", run.stdout + run.stderr)
        rows = [row for row in self.compared() if "seconds" not in row["metric"]]
        self.assertEqual(len(rows), 15, rows)
        for row in rows:
            with self.subTest(row["cell"], metric=row["metric"]):
                self.assertEqual(row["verified"], "true")
                shuffled = "shuffled" in row["cell"]
                self.assertEqual(row["verdict"], "NOT COMPARABLE" if shuffled else "INCONCLUSIVE")  # one seed decides nothing
                self.assertTrue(shuffled or abs(float(row["effect"])) < 0.2, row["effect"])
        self.assertRegex(compared.stdout, r"data order steps of epoch 1 [0-9a-f]{12}… \(DistributedSampler with seed 1 of trained\.py:\d+\) against "
                                          r"steps of epoch 1 [0-9a-f]{12}… \(RandomSampler of trained\.py:\d+\) \[Small network, case shuffled")
        skipped = self.rows("SELECT DISTINCT start_extra ->> '$.observed.skipped_steps' AS n FROM process JOIN run USING (run_key) "
                            "WHERE resolved LIKE '%scaled%'")
        self.assertEqual([row["n"] for row in skipped], ["2"])

    def test_a_run_that_does_not_end_as_it_began_has_failed(self):
        run = self.run_cases(["broken", "raised"], (2,))
        self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
        self.assertRegex(run.stdout, r"epoch 2: train loss has a weight of \d+, but in epoch 1 of \d+")
        self.assertRegex(run.stdout, r"case=raised … failed after .*: ValueError: a bad sample")

    def test_records_of_a_script_with_a_fault_are_not_repaired(self):
        run = self.run_cases(["short", "renamed", "nan"], (1,))
        self.assertEqual(run.returncode, 1)
        self.assertRegex(run.stdout, r"case=short … failed after .*: rank 0 finished, but its records lack epoch 2 of 2")
        losses = {row["name"]: row for row in self.rows(
            "SELECT value AS name, train_loss, validation_loss FROM run_epoch JOIN run_axis USING (run_key) WHERE name = 'case' AND epoch = 2")}
        for name in ("renamed", "nan"):
            self.assertEqual((losses[name]["train_loss"], losses[name]["validation_loss"] != ""), ("", True), name)

    def test_a_killed_run_resumes_with_the_same_bits(self):
        run = self.run_cases(["divided", "killed"], (1,), "--max-retries", "1", "--backoff", "0.1", more='checkpoint = "epoch"')
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertNotIn("was not observed", run.stdout)
        sums = self.rows("SELECT epoch, phase, name, COUNT(*) AS n, COUNT(DISTINCT sum) AS other FROM metric m JOIN attempt_status s "
                         "USING (run_key, attempt) WHERE epoch = 2 GROUP BY epoch, phase, name")
        self.assertEqual([(row["n"], row["other"]) for row in sums], [("2", "1")] * 3)
        weights = self.rows("SELECT COUNT(DISTINCT start_extra ->> '$.initial_weights') AS n, COUNT(*) AS runs FROM process "
                            "WHERE status = 'finished'")
        self.assertEqual((weights[0]["n"], weights[0]["runs"]), ("1", "2"))
        rates = self.rows("SELECT COUNT(DISTINCT start_extra ->> '$.learning_rate_schedule') AS n FROM process WHERE status = 'finished'")
        self.assertEqual(rates[0]["n"], "1")

    def trainer_is_recorded(self, script, *metrics):
        """One rank and two are comparable, verified and equal, and have these metrics."""
        run = self.run_cases(["plain"], (1, 2), script=script)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        rows = [row for row in self.compared() if "seconds" not in row["metric"]]
        self.assertEqual([row["metric"] for row in rows], list(metrics))
        for row in rows:
            with self.subTest(row["metric"]):
                self.assertEqual((row["verified"], row["verdict"]), ("true", "INCONCLUSIVE"))  # one seed decides nothing
                self.assertTrue("accuracy" in row["metric"] or abs(float(row["effect"])) < 0.2, row["effect"])

    @unittest.skipUnless(importlib.util.find_spec("transformers"), "skipped: transformers is not installed")
    def test_the_trainer_of_hugging_face_is_recorded(self):
        self.trainer_is_recorded("trainer.py", "train-accuracy", "validation-accuracy", "train-loss", "validation-loss")

    @unittest.skipUnless(importlib.util.find_spec("lightning"), "skipped: lightning is not installed")
    def test_the_trainer_of_lightning_is_recorded(self):
        self.trainer_is_recorded("lightning_trainer.py", "validation-accuracy", "train-loss", "validation-loss")

    @unittest.skipUnless(importlib.util.find_spec("accelerate"), "skipped: accelerate is not installed")
    def test_accelerate_is_recorded(self):
        self.trainer_is_recorded("accelerated.py", "train-loss")


if __name__ == "__main__":
    unittest.main(verbosity=2)
