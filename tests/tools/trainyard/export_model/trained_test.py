"""trained_test.py TRAINYARD: the networks of trained_networks.py train the same under single, ddp, pipeline and mp-ddp.

Losses of training, validation and test agree to 1e-5: each network has another cause for a difference, or for a refusal."""
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

from export_here import TRAINYARD, export_here

HERE = pathlib.Path(__file__).resolve().parent
EXPORTED = tempfile.TemporaryDirectory()
EXPERIMENT = """name = "net"
matrix = {{ model = ["net"], strategy = ["single", "ddp-3", "pipeline", "mp-ddp"], seed = [0] }}
[data]
folder = "arrays"
[defaults]
dataset = "{dataset}"
epochs = 2
batch = 12
train_samples = 48
learning_rate = 0.003
{keys}
[strategy.ddp-3]
kind = "ddp"
replicas = 3
[model.net]
export = "net.pt2"
task = "{task}"
"""

# network: task, data set, further keys
NETWORKS = {
    "last_state": ("classification", "synthetic-reviews", ""),
    "fixed_texts": ("classification", "synthetic-reviews", ""),
    "short_texts": ("classification", "synthetic-reviews", ""),
    "masked_texts": ("classification", "synthetic-reviews", ""),
    "named_types_and_mask": ("classification", "synthetic-reviews", ""),
    "large_vocabularies": ("translation", "synthetic-phrases", ""),
    "larger_images": ("classification", "synthetic-color-digits", "image_size = 40"),
    "grey_images": ("classification", "synthetic-digits", "image_size = 16"),
    "arrays_of_any_shape": ("classification", "folder", ""),
    "smoothed": ("classification", "synthetic-digits", ""),
    "mean_of_samples": ("classification", "synthetic-reviews", ""),
    "auxiliary_head": ("classification", "synthetic-color-digits", ""),
    "variational": ("reconstruction", "synthetic-digits", ""),
    "named_parts": ("reconstruction", "synthetic-digits", ""),
    "class_weights": ("classification", "folder", ""),
    "counted_tokens": ("language-model", "synthetic-prose", "window_length = 8"),
    "smoothed_tokens": ("language-model", "synthetic-prose", "window_length = 8"),
    "without_autocast": ("classification", "synthetic-digits", ""),
    "grouped": ("classification", "synthetic-digits", 'optimizer = "adamw"\nweight_decay = 0.1'),
}


IMAGES, LABELS = bytes(i * i % 251 for i in range(3600)), bytes(i % 3 for i in range(60))


def write_arrays(folder, part="train"):
    """train-images.npy, uint8 [60, 6, 10], and labels of three classes."""
    folder.mkdir(exist_ok=True)
    for name, shape, values in (("images", (60, 6, 10), IMAGES), ("labels", (60,), LABELS)):
        header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".encode()
        header += b" " * (117 - len(header)) + b"\n"
        (folder / f"{part}-{name}.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + values)


class Trained(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def trainyard(self, *arguments):
        return subprocess.run([TRAINYARD, *arguments], cwd=self.folder, capture_output=True, text=True, timeout=250)

    def done(self, *arguments):
        result = self.trainyard(*arguments)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def experiment(self, name, **others):
        task, dataset, keys = NETWORKS[name]
        file = pathlib.Path(EXPORTED.name) / f"{name}.pt2"
        if not file.exists():  # several tests train the same network
            exported = export_here(f"{HERE}/trained_networks.py:{name}", file)
            self.assertEqual(exported.returncode, 0, exported.stderr)
        shutil.copy(file, self.folder / "net.pt2")
        keys = keys if "optimizer" in keys else f'optimizer = "adam"\n{keys}'
        (self.folder / "net.toml").write_text(EXPERIMENT.format(**{"task": task, "dataset": dataset, "keys": keys} | others))

    def test_every_strategy_trains_the_same(self):
        write_arrays(self.folder / "arrays")
        for name in NETWORKS:
            with self.subTest(name):
                self.experiment(name)
                self.done("run", "net.toml", "--no-report", "--yard", name)
                question = "SELECT strategy, train_loss, validation_loss, test_loss FROM final_metrics ORDER BY strategy = 'single'"
                rows = json.loads(self.done("sql", question, "--format", "json", "--yard", name))
                self.assertEqual(len(rows), 4)
                for row in rows[:3]:
                    for loss in ("train_loss", "validation_loss", "test_loss"):
                        self.assertAlmostEqual(row[loss], rows[3][loss], delta=1e-5 * rows[3][loss], msg=row["strategy"])

    def test_class_weights_train_as_in_pytorch(self):
        import torch

        import trained_networks
        for part in ("train", "validation", "test"):
            write_arrays(self.folder / "arrays", part)
        self.experiment("class_weights", keys='precision = "float64"\noptimizer = "sgd"\nmomentum = 0\nbatch = 60')
        text = (self.folder / "net.toml").read_text()
        (self.folder / "net.toml").write_text(text.replace("train_samples = 48\n", "").replace("batch = 12\n", "").replace("0.003", "0.5"))
        self.done("run", "net.toml", "--no-report")
        torch.manual_seed(0)
        net, _, loss = trained_networks.class_weights(4)
        images, labels = (torch.tensor(list(values)) for values in (IMAGES, LABELS))
        images = images.double().view(60, 1, 6, 10)
        images, net, loss = (images - images.mean()) / images.std(correction=0), net.double(), loss.double()
        expected = []
        for _ in range(2):
            value = loss(net(images), labels)
            net.zero_grad()
            value.backward()
            with torch.no_grad():
                for p in net.parameters():
                    p -= 0.5 * p.grad
                expected.append((value.item(), loss(net(images), labels).item()))
        for strategy in ("single", "ddp-3", "pipeline", "mp-ddp"):
            rows = json.loads(self.done("sql", "SELECT train_loss, validation_loss FROM epoch_average "
                                        f"WHERE strategy = '{strategy}' ORDER BY epoch", "--format", "json"))
            for row, (train, validation) in zip(rows, expected, strict=True):
                self.assertAlmostEqual(row["train_loss"], train, delta=1e-12, msg=strategy)
                self.assertAlmostEqual(row["validation_loss"], validation, delta=1e-12, msg=strategy)
        refused = self.trainyard("check", "net.toml", "--set", "sampler=distributed")
        self.assertEqual(refused.returncode, 2)
        self.assertIn('the loss of model "net" has weights', refused.stderr)

    def test_parts_of_a_loss_are_metrics(self):
        self.experiment("named_parts")
        self.done("run", "net.toml", "--yard", "yard")
        rows = json.loads(self.done("sql", "SELECT run_key, strategy, validation_loss, validation_part1, validation_part2, validation_part3 "
                                    "FROM task_final_metrics ORDER BY strategy = 'single'", "--format", "json", "--yard", "yard"))
        for row in rows:
            self.assertAlmostEqual(row["validation_part1"] + row["validation_part2"], row["validation_loss"], delta=1e-6)
            self.assertAlmostEqual(row["validation_part1"], rows[-1]["validation_part1"], delta=1e-5 * abs(rows[-1]["validation_part1"]))
            self.assertIsNone(row["validation_part3"])
        self.assertRegex(self.done("show", rows[0]["run_key"], "--yard", "yard"), r"validation kl +validation error")
        report = (self.folder / "yard" / "reports" / "net" / "index.html").read_text()
        self.assertIn("net: 1 kl, 2 error", report)
        self.assertIn("Validation loss part 2", report)

    def test_in_float64_only_rounding_is_left(self):
        write_arrays(self.folder / "arrays")
        for name in ("arrays_of_any_shape", "masked_texts", "smoothed"):
            with self.subTest(name):
                self.experiment(name, keys='precision = "float64"')
                self.done("run", "net.toml", "--no-report", "--yard", name)
                rows = json.loads(self.done("sql", "SELECT train_loss, validation_loss FROM final_metrics", "--format", "json", "--yard", name))
                self.assertEqual(len(rows), 4)
                for loss in ("train_loss", "validation_loss"):
                    values = [row[loss] for row in rows]
                    self.assertLess(max(values) - min(values), 1e-12 * max(values), values)

    def test_one_command_exports_writes_and_runs(self):
        arguments = ["run", f"{HERE}/trained_networks.py:grouped", "--strategies", "single", "ddp", "--seeds", "2", "--dataset",
                     "synthetic-digits", "--python", sys.executable, "--set", "epochs=1", "--set", "train_samples=64"]
        first = self.done(*arguments)
        self.assertIn("wrote trained_networks.toml", first)
        self.assertIn("4 runs finished, 0 were finished before, 0 failed", first)
        text = (self.folder / "trained_networks.toml").read_text()
        for line in ('name = "trained_networks"', 'dataset = "synthetic-digits"', 'optimizer = "adamw"', "learning_rate = 0.002", "beta2 = 0.95",
                     "weight_decay = 0.1", 'task = "classification"', 'initial = "program"'):
            self.assertIn(line + "\n", text)
        self.assertIn("0 runs finished, 4 were finished before, 0 failed", self.done(*arguments))  # the same file again
        (self.folder / "trained_networks.toml").write_text(text + "# mine\n")
        refused = self.trainyard(*arguments)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("trained_networks.toml exists, and is another experiment; run it with", refused.stderr)
        refused = self.trainyard("run", "trained_networks.toml", "--seeds", "2")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--seeds is for a Python function", refused.stderr)

    def test_first_weights_are_chosen_on_the_command_line(self):
        self.experiment("grey_images")
        for choice, said in (("half", "initial must be"), ("program", "no weights for seed 0")):
            refused = self.trainyard("check", "net.toml", "--set", f"initial={choice}")
            self.assertEqual(refused.returncode, 2)
            self.assertIn(said, refused.stderr)
        for choice in ("exported", "seed"):
            self.done("run", "net.toml", "--no-report", "--set", f"initial={choice}", "--set", "epochs=1", "--where", "strategy=single")
        rows = json.loads(self.done("sql", "SELECT train_loss FROM final_metrics", "--format", "json"))
        self.assertEqual(len({row["train_loss"] for row in rows}), 2)

    def test_images_of_another_size_are_refused_with_the_way_out(self):
        self.experiment("larger_images", keys="")
        refused = self.trainyard("check", "net.toml")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("it reads images [3, 40, 40], but the images of the data are [3, 32, 32]; image_size = 40 scales them", refused.stderr)
        self.assertNotIn("model must be one of", refused.stderr)

    def test_a_refused_network_is_one_error(self):
        self.experiment("masked_texts", task="language-model")
        refused = self.trainyard("check", "net.toml")
        self.assertEqual(refused.returncode, 2)
        self.assertEqual(refused.stderr.count("error: "), 1, refused.stderr)
        self.assertIn("a language-model has one input, but the network has 2", refused.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
