"""export_model_test.py TRAINYARD: `trainyard export FILE.py:FUNCTION` writes networks.py and refuses refused.py.

Most cases run the Python part in this process, because torch is slow to import."""
import hashlib
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile

import torch

import networks
from export_here import GIVEN, TRAINYARD, export, export_here

RUNNER = pathlib.Path(TRAINYARD).with_name("trainyard-runner")
HERE = pathlib.Path(__file__).resolve().parent

# what the message of a refused network says: place, cause and way out
REFUSED = {
    "control_flow": r"refused\.py:\d+: the control flow in 1 \(Deciding\) .*torch\.where",
    "packed": r"refused\.py:\d+: packed sequences in lstm \(LSTM\)",
    "custom_operator": r"node twice in .*custom operator authors::twice",
    "lost_backward": r"autograd\.Function Sign: the gradient of a\.weight is .*detach",
    "unknown_operator": r"node digamma in .* aten\.digamma\.default",
    "region": r"region of torch\.no_grad.*x\.detach\(\)",
    "condition": r"region of torch\.cond.*torch\.where",
    "vmapped": r"torch\.vmap.*einsum",
    "fixed_batch": r"only with a batch of 4; use x\.size\(0\)",
    "many_samples": r"depends on the number of samples: .*batch <= 5",
    "numpy_inside": r"refused\.py:\d+: NumPy.*compute with torch",
    "two_outputs": r"gives tuple with 2 values; wrap the network in a module",
    "no_task": r"task is not clear: its output is \[4, 1, 10\].*--task",
    "wrong_task": r"does not fit the task reconstruction",
    "shorter_logits": r"does not fit the task language-model: its output is \[4, 6, 8\] for inputs of \[4, 12\]",
    "unknown_task": r'the task "sorting"; the tasks are classification',
    "folder_in_names": r"would name your folder /",
    "wrong_inputs": r"fails with its example inputs",
    "not_tensors": r"refused\.py:not_tensors are not tensors",
    "no_pair": r"returns Linear; return \(module, example_inputs\)",
    "needs_more": r"requires 2 arguments",
    "half": r"torch\.float16",
    "raises": r"refused\.py:\d+: refused\.py:raises failed: RuntimeError: .*--verbose",
    "absent": r"has no function absent",
    "hook": r"the parameter a\.weight has a hook.*; remove it",
    "hook_after_accumulation": r"the parameter b\.bias has a hook.*; remove it",
    "view_of_parameter": r"the parameter a\.weight has a gradient in PyTorch, but none in the graph; read it in forward",
    "made_from_parameter": r"the second training step of the network fails: RuntimeError: .*; compute in forward",
    "counter": r"with 4 samples in the second step: the output is .*counters",
    "numbers_of_python": r"random numbers of Python or NumPy in forward.*; draw them with torch",
    "same_net": r"refused\.py:same_net returns the same parameters in each call; make the network inside the function",
    "merging": r"eval\(\) changes a\.weight; .*self\.training",
    "buffer_in_evaluation": r"the network changes the buffer mean in evaluation; .*self\.training",
    "weighted_mean": r'neither a mean nor a sum over the samples.*reduction="none"',
    "four_parts": r"the loss gives 'loss', 'a', 'b', 'c', 'd'; name the value that is minimised \"loss\", and at most 3 others",
    "weighted_part": r'the part "a" of the loss gives tuple; return one value per sample',
    "loss_of_two": r"the loss gives tuple; return one value per sample",
    "failing_loss": r"refused\.py:\d+: the loss of refused\.py:failing_loss fails: AttributeError",
    "other_optimizer": r"the optimizer is RMSprop; use SGD, Adam or AdamW",
    "optimizer_of_another": r"has parameters that the network does not have; make both in the same call",
    "nesterov": r"the optimizer uses nesterov; leave it out",
    "shorter_in_evaluation": r"the output has sizes \[4, 1, 30\] in evaluation, but \[4, 9, 30\] in training",
}

# the same for networks that are exported with --seeds
REFUSED_WITH_SEEDS = {
    "own_seed": r"makes the same weights under each seed; remove torch\.manual_seed",
    "own_generator": r"makes other values of head\.weight if it is called again under the same seed; draw with",
    "constant": r"with the weights of seed 1 the graph does not compute what seeds\.py:constant computes: the evaluation is",
    "temporary_buffer": r"with the weights of seed 1 .*; keep numbers that are drawn in parameters and persistent buffers",
    "other_sizes": r"returns another network in each call; make parameters and buffers with the same names and sizes",
}

# network: text of its warnings. The others have none.
WARNED = {
    "norm_of_one": ["cannot train on a batch of one sample"],
    "mixing": ["the output of a sample depends on the other samples of its batch: ddp, pipeline and mp-ddp split a batch"],
    "drawing": ["input 1 has a fixed length of 12"],
    "fixed_length": ["input 1 has a fixed length of 12"],
    "unused": ["no node reads the parameter b.weight", "no node reads the parameter b.bias"],
    "switching": ["no node reads the parameter temperature", "cannot train on a batch of one sample"],
}
NETWORKS = ["mlp", "own_values", "recurrent", "residual_cnn", "gpt_tied", "transformer_encoder", "attention", "closure", "named_types", "lstm", "noisy", "sample_minor", *WARNED,
            *(f"trainyard_{name}" for name in ("mlp", "cnn", "vgg11", "nbow", "seq2seq", "conv_autoencoder"))]




class Exported:
    """The parts of a .pt2 file."""

    def __init__(self, file):
        with zipfile.ZipFile(file) as archive:
            self.entries = {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}
        self.about = json.loads(self.entries["extra/trainyard.json"])
        data = self.entries["trainyard/reference.safetensors"]
        length = int.from_bytes(data[:8], "little")
        self.header = json.loads(data[8:8 + length])
        self.values = data[8 + length:]

    def tensor(self, name):
        entry = self.header[name]
        dtype = {"F32": torch.float32, "F64": torch.float64, "I64": torch.int64}[entry["dtype"]]
        data = bytearray(self.values[slice(*entry["data_offsets"])])
        return torch.frombuffer(data, dtype=dtype).reshape(entry["shape"])


class ExportModel(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.out = self.folder / "net.pt2"

    def written(self, name, *more):
        result = export_here(f"{HERE}/networks.py:{name}", self.out, *more)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(os.listdir(self.folder), ["net.pt2"])
        self.assertIn("checked against PyTorch", result.stdout)
        return Exported(self.out), result.stderr.splitlines()

    def test_the_program_writes_the_same_as_its_python_part(self):
        here = self.written("gpt_tied")[0]
        self.out.unlink()
        result = export(f"{HERE}/networks.py:gpt_tied", self.out)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("checked against PyTorch with batches of 4, 1, 5", result.stdout)
        self.assertEqual(Exported(self.out).about, here.about)

    def test_networks_are_written_with_their_warnings(self):
        for name in NETWORKS:
            with self.subTest(name):
                file, warnings = self.written(name)
                self.assertEqual(len(warnings), len(WARNED.get(name, [])), warnings)
                for expected, line in zip(WARNED.get(name, []), warnings):
                    self.assertIn(expected, line)
                self.assertNotIn(b"stack_trace\": \"", file.entries["models/model.json"])
                self.assertNotIn(b"File ", file.entries["models/model.json"])
                compared = subprocess.run([RUNNER, f"--check-network={self.out}"], capture_output=True, text=True, timeout=250)
                self.assertEqual(compared.returncode, 0, compared.stderr)
                self.assertIn("computes what PyTorch computed", compared.stdout)

    def test_an_mlp_gives_the_reference_by_its_formula(self):
        file, _ = self.written("mlp", "--batch", "3", "--double")
        self.assertEqual(file.about["dtype"], "float64")
        self.assertEqual(file.about["inputs"], [{"name": "input", "role": "input", "dtype": "float64", "sizes": ["batch", 16]}])
        program = torch.export.load(str(self.out))
        w0, b0, w2, b2 = (program.state_dict[name] for name in ("0.weight", "0.bias", "2.weight", "2.bias"))
        for label, samples in (("batch", 3), ("one", 1)):
            x = file.tensor(f"{label}/input/0")
            self.assertEqual(x.shape, (samples, 16))
            hidden = (x @ w0.T + b0).clamp(min=0)
            output = hidden @ w2.T + b2
            weights = torch.cos(torch.arange(samples * 10, dtype=torch.float64)).view(samples, 10)
            torch.testing.assert_close(file.tensor(f"{label}/output"), output.detach())
            torch.testing.assert_close(file.tensor(f"{label}/loss"), (output * weights).sum().detach())
            if label == "batch":
                torch.testing.assert_close(file.tensor("batch/gradient/2.weight"), (weights.T @ hidden).detach())
                back = (weights @ w2) * (hidden > 0)
                torch.testing.assert_close(file.tensor("batch/gradient/0.bias"), back.sum(0).detach())

    def test_initial_values_are_rules_only_where_the_values_agree(self):
        own = self.written("own_values")[0].about["initial"]
        self.assertEqual(own, {"0.weight": None, "0.bias": {"uniform": 0.125}, "2.weight": {"uniform": 0.125},
                               "2.bias": {"uniform": 0.125}})
        lstm = self.written("lstm")[0].about["initial"]
        self.assertEqual(lstm["embed.weight"], {"normal": 1.0, "mean": 0.0, "zero_row": 0})
        self.assertEqual(lstm["lstm.weight_hh_l1"], {"uniform": 20 ** -0.5})
        attention = self.written("attention")[0].about["initial"]
        self.assertEqual(attention["attend.in_proj_weight"], {"uniform": (6 / 64) ** 0.5})
        self.assertEqual(attention["attend.in_proj_bias"], {"constant": 0.0})
        cnn = self.written("residual_cnn")[0].about["initial"]
        self.assertEqual(cnn["1.weight"], {"constant": 1.0})
        self.assertEqual(cnn["0.weight"], {"uniform": 27 ** -0.5})

    def test_tied_parameters_and_lengths_of_tokens_are_described(self):
        about = self.written("gpt_tied")[0].about
        self.assertEqual(about["task"], "translation")
        self.assertEqual(about["tied"], [["tokens.weight", "head.weight"]])
        self.assertNotIn("head.weight", about["initial"])
        self.assertEqual([x["sizes"] for x in about["inputs"]], [["batch", "length"], ["batch", "steps"]])
        self.assertEqual([x["values_below"] for x in about["inputs"]], [50, 50])
        self.assertEqual(about["outputs"][0]["sizes"], ["batch", "steps", 50])
        self.assertEqual(self.written("fixed_length")[0].about["inputs"][0]["sizes"], ["batch", 12])

    def test_a_language_model_is_known_by_its_sizes(self):
        file, warnings = self.written("masked_gpt")
        about = file.about
        self.assertEqual(about["task"], "language-model")
        self.assertEqual([x["sizes"] for x in about["inputs"]], [["batch", 12]])
        self.assertEqual((about["outputs"][0]["role"], about["outputs"][0]["sizes"]), ("logits", ["batch", 12, 50]))
        self.assertIn("fixed length of 12: set window_length = 12", warnings[-1])

    def test_recurrent_layers_accept_any_length(self):
        self.assertEqual(self.written("recurrent")[0].about["inputs"][0]["sizes"], ["batch", "length"])
        nodes = {str(node.target) for node in torch.export.load(str(self.out)).graph.nodes}
        self.assertLessEqual({f"aten.{name}.input" for name in ("lstm", "gru", "rnn_tanh", "rnn_relu")}, nodes)

    def test_layers_that_a_function_of_the_network_calls_are_trained(self):
        file = self.written("closure")[0]
        for name in ("mlp.first.weight", "mlp.first.bias", "mlp.second.weight", "mlp.second.bias"):
            self.assertGreater(file.tensor(f"batch/gradient/{name}").abs().max(), 0, name)
        program = torch.export.load(str(self.out))
        torch.manual_seed(0)
        x, network = torch.randn(6, 16), networks.Closure()
        network.load_state_dict(program.state_dict)
        graph = program.module()
        for net in (network, graph):  # ten steps
            descent = torch.optim.SGD(net.parameters(), lr=0.1)
            for _ in range(10):
                descent.zero_grad()
                net(x).square().sum().backward()
                descent.step()
        torch.testing.assert_close(graph(x), network(x), rtol=0, atol=0)

    def test_the_evaluation_graph_is_eval_with_the_weights_of_the_file(self):
        file = self.written("switching")[0]
        weights = torch.export.load(str(self.out)).state_dict
        network = networks.Switching()
        network.load_state_dict(weights)
        x = file.tensor("batch/input/0")
        network.norm.running_mean.copy_(file.tensor("batch/buffer/norm.running_mean"))
        network.norm.running_var.copy_(file.tensor("batch/buffer/norm.running_var"))
        with torch.no_grad():
            torch.testing.assert_close(file.tensor("batch/evaluation"), network.double().eval()(x), rtol=1e-6, atol=1e-6)
        folder = "trainyard/evaluation/"
        own = {name.removeprefix(folder) for name in file.entries if name.startswith(folder)}
        self.assertEqual(own, {"model.json", "constants/model_constants_config.json", "constants/tensor_0"})
        self.assertEqual(list(torch.frombuffer(bytearray(file.entries[folder + "constants/tensor_0"]), dtype=torch.float32)),
                         [0.5] * 10)

    def test_batch_norm_over_one_value_has_no_reference_of_one_sample(self):
        file, _ = self.written("norm_of_one")
        self.assertEqual(file.about["reference"]["batches"], ["batch"])
        self.assertIn("batch/buffer/1.running_mean", file.header)
        self.assertFalse([name for name in file.header if name.startswith("one/")])

    def test_networks_are_refused_with_place_and_way_out(self):
        for name, expected in REFUSED.items():
            with self.subTest(name):
                result = export_here(f"{HERE}/refused.py:{name}", self.out)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
                self.assertRegex(result.stderr, f"^trainyard: .*{expected}")
                self.assertEqual(os.listdir(self.folder), [])

    def weights_of_seed(self, seed):
        data = (self.folder / f"net.seed-{seed}.safetensors").read_bytes()
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8:8 + length])
        about = header.pop("__metadata__")
        return about, {name: torch.frombuffer(bytearray(data[8 + length:][slice(*entry["data_offsets"])]), dtype=getattr(
            torch, {"F32": "float32", "I64": "int64"}[entry["dtype"]])).reshape(entry["shape"]) for name, entry in header.items()}

    def test_weights_per_seed_are_those_of_the_function_under_the_seed(self):
        import seeds
        said = export(f"{HERE}/seeds.py:own", self.out, "--seeds", "3")
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn("  weights per seed: net.seed-0.safetensors … net.seed-2.safetensors\n", said.stdout)
        self.assertIn('initial = "program"\n', said.stdout)
        self.assertEqual(sorted(os.listdir(self.folder)), ["net.pt2", *(f"net.seed-{i}.safetensors" for i in range(3))])
        digest = hashlib.sha256(self.out.read_bytes()).hexdigest()
        for seed in range(3):
            about, found = self.weights_of_seed(seed)
            self.assertEqual(about, {"format": "pt", "network": digest})
            torch.manual_seed(seed)
            expected = seeds.Own().state_dict()
            del expected["second.weight"]  # tied to that of the first layer
            self.assertEqual(sorted(found), sorted(expected))
            for name, x in found.items():
                self.assertTrue(torch.equal(x, expected[name]), name)
        program = torch.export.load(str(self.out)).state_dict
        self.assertTrue(torch.equal(program["first.weight"], self.weights_of_seed(0)[1]["first.weight"]))

    def test_the_same_network_gives_the_same_bytes(self):
        written = set()
        for seconds in (0, 2.1):  # zip files have times of two seconds
            time.sleep(seconds)
            self.assertEqual(export(f"{HERE}/networks.py:switching", self.out).returncode, 0)
            written.add(hashlib.sha256(self.out.read_bytes()).hexdigest())
        self.assertEqual(len(written), 1)

    def test_functions_without_weights_per_seed_are_refused(self):
        for name, expected in REFUSED_WITH_SEEDS.items():
            with self.subTest(name):
                result = export_here(f"{HERE}/seeds.py:{name}", self.out, "--seeds=2")
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertRegex(result.stderr, f"^trainyard: .*{expected}")
                self.assertEqual(os.listdir(self.folder), [])
        self.assertEqual(export_here(f"{HERE}/seeds.py:own_seed", self.out, "--seeds=1").returncode, 2)
        same = export_here(f"{HERE}/seeds.py:partly_the_same", self.out, "--seeds=1")
        self.assertEqual(same.stderr, "trainyard: warning: the same first values under each seed: 0.weight\n")
        self.assertEqual(sorted(os.listdir(self.folder)), ["net.pt2", "net.seed-0.safetensors"])

    def test_runs_begin_with_the_weights_of_their_seed(self):
        function = self.folder / "digits.py"
        function.write_text("import torch\nfrom torch import nn\ndef build(batch):\n"
                            "    net = nn.Sequential(nn.Flatten(), nn.Linear(784, 16), nn.BatchNorm1d(16), nn.Linear(16, 10))\n"
                            "    nn.init.trunc_normal_(net[1].weight, std=0.02)\n"
                            "    return net, torch.randn(batch, 1, 28, 28), 'classification'\n")
        experiment = self.folder / "net.toml"
        text = ('name = "net"\nmatrix = { model = ["net"], strategy = ["single", "ddp", "pipeline"], seed = [0, 1] }\n'
                '[defaults]\ndataset = "synthetic-digits"\nepochs = 1\nbatch = 16\ntrain_samples = 64\n'
                '[model.net]\nexport = "net.pt2"\ntask = "classification"\n')
        experiment.write_text(text + 'initial = "program"\n')
        shared = "Seeds of net: all begin with the same weights, so the verdicts hold only for these."

        def at(*arguments):
            done = subprocess.run([TRAINYARD, *arguments], cwd=self.folder, capture_output=True, text=True, timeout=250)
            return done.returncode, " ".join((done.stdout + done.stderr).split())

        self.assertEqual(export(f"{function}:build", self.out, "--seeds", "1").returncode, 0)
        code, said = at("check", "net.toml")
        self.assertEqual(code, 2)
        self.assertIn("net.seed-1.safetensors: no weights for seed 1; export again with `trainyard export … --seeds 2`", said)
        self.assertEqual(export(f"{function}:build", self.out, "--seeds", "2").returncode, 0)
        code, said = at("run", "net.toml", "--no-report", "--yard", "yard")
        self.assertEqual(code, 0, said)
        self.assertIn("6 runs finished", said)
        self.assertNotIn(shared, at("compare", "--yard", "yard")[1])
        own = {seed: {name: hashlib.sha256(x.numpy().tobytes()).hexdigest()[:15] for name, x in self.weights_of_seed(seed)[1].items()}
               for seed in (0, 1)}
        self.assertNotEqual(own[0]["1.weight"], own[1]["1.weight"])
        for attempt in (self.folder / "yard/runs").glob("*/attempt-1"):
            seed = json.loads((attempt / "run.json").read_text())["axes"]["seed"]
            begun = {}
            for records in attempt.glob("rank-*.records.jsonl"):
                start = json.loads(records.read_text().splitlines()[0])
                begun |= start["initial_weights"]
            self.assertEqual(begun, {name: own[seed][name] for name in begun})
            self.assertEqual(len(begun), 6)
        experiment.write_text(text)
        code, said = at("run", "net.toml", "--yard", "shared")
        self.assertEqual(code, 0, said)
        self.assertIn(f"warning: {shared} `trainyard export … --seeds` writes weights for each seed.", said)

    def test_a_file_is_replaced_only_by_a_whole_one(self):
        self.out.write_text("old")
        self.assertEqual(export(f"{HERE}/refused.py:lost_backward", self.out).returncode, 2)
        self.assertEqual(self.out.read_text(), "old")
        self.written("mlp")

    def test_errors_of_the_user_have_a_place(self):
        broken = self.folder / "broken.py"
        for text, place in (("import torch\ndef f(:\n", ":2: "), ("x = 1\nimport absent_package\n", ":2: .*absent_package"),
                            ("x = [\n1 / 0]\n", ":2: .*ZeroDivisionError"), ("import sys\nsys.exit('no')\n", ":2: .*SystemExit: no")):
            broken.write_text(text)
            result = export_here(f"{broken}:f", self.out)
            self.assertEqual(result.returncode, 2)
            self.assertRegex(result.stderr, f"^trainyard: .*broken\\.py{place}")
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertIn("Traceback", export(f"{broken}:f", self.out, "--verbose").stderr)

    def check(self, name):
        """`trainyard check` of an experiment with the written network."""
        file = self.folder / "net.toml"
        file.write_text('name = "net"\nmatrix = { model = ["net"], strategy = ["single"], seed = [0] }\n'
                        'defaults = { dataset = "synthetic-digits", epochs = 1, batch = 8 }\n'
                        f'[model.net]\nexport = "{name}"\ntask = "classification"\n')
        return subprocess.run([TRAINYARD, "check", str(file)], cwd=self.folder, capture_output=True, text=True, timeout=250)

    def rewrite(self, change):
        """Writes the file to changed.pt2 with the entry {end of its name: function of its content}."""
        with zipfile.ZipFile(self.out) as old, zipfile.ZipFile(self.folder / "changed.pt2", "w") as new:
            for name in old.namelist():
                content = old.read(name)
                for end, function in change.items():
                    content = function(content) if name.endswith(end) else content
                new.writestr(name, content)

    def test_check_compares_the_reference_batch(self):
        self.written("digits", "--double")
        in_double = self.check("net.pt2")
        self.assertEqual(in_double.returncode, 2, in_double.stdout)
        self.assertRegex(in_double.stderr, r"net\.toml:\d+:\d+: error: \S+ of \S*net\.pt2 is not in float32; export it without "
                                           r'--double; precision = "float64" trains it in float64\n$')
        (self.folder / "net.toml").unlink()
        self.out.unlink()
        written, _ = self.written("digits")
        agrees = self.check("net.pt2")
        self.assertEqual(agrees.returncode, 0, agrees.stderr)
        self.assertRegex(agrees.stdout, r"^model net: computes what PyTorch computed: \d+ tensors compared\n")
        (self.folder / "net.toml").unlink()
        weight = next(name for name in written.entries if name.endswith("weights/weight_0"))
        for change, error in (
                ({weight: lambda data: data[8:] + data[:8]}, r"reference batch: it does not compute what PyTorch computed: the "),
                ({"evaluation/model.json": lambda data: data.replace(b"aten.relu.default", b"aten.tanh.default")},
                 r"it does not compute what PyTorch computed: the evaluation is "),
                ({"reference.safetensors": lambda data: data[:-8]}, r"is not a complete safetensors file"),
                ({"reference.safetensors": lambda data: data.replace(b"batch/input/0", b"batch/input/7")}, r"has no input 0"),
                ({"reference.safetensors": lambda data: data.replace(b"batch/", b"other/").replace(b"one/", b"two/")},
                 "is empty")):
            self.rewrite(change)
            differs = self.check("changed.pt2")
            self.assertEqual(differs.returncode, 2, differs.stdout)
            self.assertRegex(differs.stderr, r"^trainyard: [^\n]*changed\.pt2[^\n]*" + error + r"[^\n]*; [^\n]*\n$")
        self.rewrite({"extra/trainyard.json": lambda data: json.dumps(
            {key: value for key, value in json.loads(data).items() if key != "reference"}).encode()})
        unknown = self.check("changed.pt2")
        self.assertEqual(unknown.returncode, 0, unknown.stderr)
        self.assertIn("model net: was not compared with PyTorch: it has no reference batch", unknown.stdout)

    def test_random_nodes_have_a_rule_by_sample(self):
        for name, rules, in_evaluation in (
                ("drawing", [[0, 0], [0, 0], [1, 0], [1, 0]], [[0, 0], [1, 0]]), ("sample_minor", [[0, 1]], []),
                ("noisy", [[0, 0]], [[0, 0]]), ("lstm", [[0, 0]], []), ("mixing", [], [])):
            with self.subTest(name):
                file, _ = self.written(name)
                self.assertEqual(sorted(file.about["by_sample"].values()), rules)
                self.assertEqual(sorted(file.about["by_sample_in_evaluation"].values()), in_evaluation)
                self.assertEqual(file.about["random"], [])

    def test_random_numbers_are_the_same_under_every_strategy(self):
        self.written("drawing_digits")
        (self.folder / "net.toml").write_text(
            'name = "net"\nmatrix = { model = ["net"], strategy = ["single", "ddp", "pipeline"], seed = [0] }\n'
            '[defaults]\ndataset = "synthetic-digits"\nepochs = 2\nbatch = 16\ntrain_samples = 64\noptimizer = "adam"\n'
            'learning_rate = 0.003\nlearning_rate_schedule = "cosine-by-step"\nwarmup_steps = 3\nlearning_rate_min = 0.0003\n[model.net]\nexport = "net.pt2"\ntask = "classification"\n')
        run = [TRAINYARD, "run", "net.toml", "--no-report", "--yard", "yard"]
        trained = subprocess.run(run, cwd=self.folder, capture_output=True, text=True, timeout=250)
        self.assertEqual(trained.returncode, 0, trained.stdout + trained.stderr)
        ask = [TRAINYARD, "sql", "SELECT strategy, train_loss, validation_loss FROM final_metrics ORDER BY strategy", "--format", "json",
               "--yard", "yard"]
        rows = json.loads(subprocess.run(ask, cwd=self.folder, capture_output=True, text=True, timeout=250, check=True).stdout)
        self.assertEqual([row["strategy"] for row in rows], ["ddp", "pipeline", "single"])
        for row in rows[:2]:
            self.assertAlmostEqual(row["train_loss"], rows[2]["train_loss"], delta=1e-5)
            self.assertAlmostEqual(row["validation_loss"], rows[2]["validation_loss"], delta=1e-5)
        ask[2] = "SELECT DISTINCT epoch, extra ->> '$.learning_rates' AS rates FROM epoch ORDER BY epoch"
        found = json.loads(subprocess.run(ask, cwd=self.folder, capture_output=True, text=True, timeout=250, check=True).stdout)
        self.assertEqual([row["epoch"] for row in found], [1, 2])  # the same on all ranks
        part = lambda step: 0.0003 + 0.0027 * (1 + math.cos(math.pi * step / 5)) / 2  # four steps an epoch, five after the warm-up
        for row, expected in zip(found, ([0.001, 0.003], [part(1), part(4)])):
            for rate, one in zip(json.loads(row["rates"]), expected):
                self.assertAlmostEqual(rate, one, delta=1e-12)

    def test_the_reference_is_that_of_float64(self):
        file, _ = self.written("named_types")
        torch.manual_seed(0)
        module = networks.NamedTypes()
        module.load_state_dict(torch.export.load(str(self.out)).state_dict)
        x, first, second = file.tensor("batch/input/0"), module.first.double(), module.second.double()
        self.assertEqual(x.dtype, torch.float64)
        x = first(x) * module.scale.double() + torch.tensor(0.1).double()
        x = x * torch.rsqrt(x.pow(2).mean(1, keepdim=True) + 1e-6)
        x = x + torch.arange(16, dtype=torch.float64).div(7).sin()
        output = second(torch.tanh(x))
        torch.testing.assert_close(file.tensor("batch/output"), output.detach(), rtol=1e-13, atol=1e-13)
        self.assertNotIn("one/gradient/first.weight", file.header)

    def test_a_small_difference_is_found(self):
        """1.01e-5 in place of 1e-5 in a norm, which float32 hides."""
        written, _ = self.written("digits")
        self.assertIn(b"1e-05", written.entries["models/model.json"])
        self.rewrite({"models/model.json": lambda data: data.replace(b"1e-05", b"1.01e-05")})
        found = subprocess.run([RUNNER, f"--check-network={self.folder / 'changed.pt2'}"], capture_output=True, text=True, timeout=250)
        self.assertNotEqual(found.returncode, 0, found.stdout)
        self.assertIn("it does not compute what PyTorch computed", found.stderr)

    def test_a_python_without_torch_is_named(self):
        blocked = self.folder / "python"
        blocked.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -I "$@"\n')
        blocked.chmod(0o755)
        result = export(f"{HERE}/networks.py:mlp", self.out, python=str(blocked))
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertRegex(result.stderr, r"^trainyard: .* has no PyTorch; .*--python.*\n$")
        result = export(f"{HERE}/networks.py:mlp", self.out, python="/absent/python")
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, r"^trainyard: cannot start /absent/python: .*--python")

    def test_options_of_the_other_form_are_refused(self):
        for arguments, expected in (
                (["net.py:f", "--format", "csv"], "--format is for results"), (["net.py:f", "--yard", "x"], "--yard is for results"),
                (["net.py:f", "--experiment", "x"], "--experiment is for results"), (["final", "--batch", "4"], "--batch is for networks"),
                (["--double"], "--double is for networks"), (["runs", "--verbose"], "--verbose is for networks"),
                (["net.py"], "names no function"), (["net.py:f"], "no file to write"), (["nothing"], "not FILE.py:FUNCTION")):
            result = subprocess.run([TRAINYARD, "export", *arguments], capture_output=True, text=True)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertIn(expected, result.stderr)

    def test_listed_operators_exist_in_this_pytorch(self):
        listed = GIVEN["operators"].splitlines()
        for name in listed:
            if match := re.fullmatch(r"aten\.(\w+)\.(\w+)", name):
                self.assertTrue(hasattr(getattr(torch.ops.aten, match[1]), match[2]), name)


if __name__ == "__main__":
    unittest.main()
