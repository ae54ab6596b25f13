"""newcomer_test.py: the wheel of tools/wheel in an empty environment trains the example of docs/python.md and compares it."""
import csv
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WHEELS = sorted((ROOT / "build/wheel").glob("trainyard_lab-*.whl"))
RUNNERS = sorted((ROOT / "build/wheel").glob("trainyard_runner_*.whl"))
SKIPPED = 4  # for CTest


class Newcomer(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        subprocess.run([sys.executable, "-m", "venv", "venv"], cwd=self.folder, check=True)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        self.environment = kept | {"PATH": f"{self.folder}/venv/bin:/usr/bin:/bin"}
        self.checked("pip", "install", "--quiet", "--no-index", str(WHEELS[-1]))
        # the torch of this Python
        found = next((self.folder / "venv").glob("lib/python*/site-packages"))
        (found / "torch.pth").write_text(f"{pathlib.Path(importlib.util.find_spec('torch').origin).parents[1]}\n")

    def checked(self, *command):
        done = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=170)
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}{done.stderr}")
        return done.stdout

    def test_a_script_of_ones_own_is_compared(self):
        self.checked("trainyard", "new", "first.toml")
        page = (ROOT / "docs/python.md").read_text()
        (self.folder / "train.py").write_text(page.split("```python\n")[1].split("```")[0])
        self.checked("trainyard", "run", "train.py", "--seeds", "5", "--epochs", "8")
        self.assertTrue((self.folder / "yard/reports/train/index.html").exists())
        self.assertIn("train.toml: ok, 10 runs", self.checked("trainyard", "check", "train.toml"))
        self.checked("trainyard", "plan", "train.toml")
        self.assertNotIn("NOT VERIFIED", self.checked("trainyard", "compare"))
        rows = list(csv.DictReader(self.checked("trainyard", "compare", "--format", "csv").splitlines()))
        losses = [row for row in rows if row["metric"].endswith("loss")]
        self.assertEqual([(row["verified"], row["verdict"]) for row in losses], [("true", "NO CHANGE")] * 2)

    @unittest.skipUnless(RUNNERS, "skipped: there is no wheel of a runner; tools/wheel --runner builds it")
    def test_the_wheel_of_the_runner_trains_the_models_of_trainyard(self):
        for wheel in RUNNERS:
            self.checked("pip", "install", "--quiet", "--no-index", "--no-deps", str(wheel))
        libraries = pathlib.Path(importlib.util.find_spec("torch").origin).parent
        next((self.folder / "venv").glob("lib/python*/site-packages")).joinpath("torch").symlink_to(libraries)
        self.checked("trainyard", "new", "first.toml")
        self.checked("trainyard", "run", "first.toml", "--set", "epochs=1", "--max-seeds", "3")
        self.assertIn("train loss", self.checked("trainyard", "compare"))


if __name__ == "__main__":
    if not WHEELS:
        print("skipped: there is no wheel; tools/wheel builds it")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
