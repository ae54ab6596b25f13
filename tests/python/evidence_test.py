"""evidence_test.py: the facts that `trainyard explain` needs, of one process and of two ranks with one fault each."""
import copy
import io
import json
import os
import pathlib
import subprocess
import sys
import unittest

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from recording import HERE, Recorded, X, Y, last_start, network, scratch_folder

import trainyard


def loss_of(model, x, y):
    return nn.functional.cross_entropy(model(x), y)


class OneProcess(Recorded):
    def observed(self, step=None, **options):
        start = self.train(step=step, **options)
        self.assertEqual(start["observed"]["notes"], {})
        return start["observed"]

    def test_a_plain_step_has_a_whole_chain(self):
        observed = self.observed(epochs=2)
        chain = observed["chain"]
        self.assertEqual([each["step"] for each in chain], [1, 2, 3])
        self.assertAlmostEqual(chain[0]["losses"][0], loss_of(network(), X[:8], Y[:8]).item(), delta=1e-6)
        for each in chain:
            self.assertEqual([each[name] for name in ("weights", "samples", "backwards", "kept")], [[8], [8], [1], [1]])
            self.assertAlmostEqual(each["reduction"], 1.0, delta=1e-6)
            self.assertLess(each["rest"], 1e-5)
        self.assertEqual((observed["epoch_samples"], observed["gradient_bytes"]), (40, 4 * (6 * 8 + 8 + 8 * 2 + 2)))
        for name in ("random", "overlap", "repeated", "uncleared", "scheduler_steps", "batch_norm_samples"):
            self.assertNotIn(name, observed)

    def test_weights_are_equal_bit_for_bit_with_and_without_a_record(self):
        def trained(recorded):
            torch.manual_seed(5)
            model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 2))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
            loader = DataLoader(TensorDataset(X, Y), 4, shuffle=True)
            if recorded:
                self.train(model, optimizer, loader, epochs=3)
            for x, y in (batch for _ in range(0 if recorded else 3) for batch in loader):
                self.step(model, optimizer, x, y)
            return [each.detach() for each in model.state_dict().values()]
        for mine, other in zip(trained(True), trained(False), strict=True):
            self.assertTrue(torch.equal(mine, other))

    def test_gradients_that_are_set_to_zero_between_backward_passes_are_not_kept(self):
        for to_none in (True, False):
            with self.subTest(to_none), scratch_folder():
                def step(model, optimizer, x, y):
                    for part in range(2):
                        optimizer.zero_grad(set_to_none=to_none)
                        loss_of(model, x[part::2], y[part::2]).backward()
                    optimizer.step()
                first = self.observed(step)["chain"][0]
                self.assertEqual((first["backwards"], first["kept"]), ([2], [1]))
                self.assertAlmostEqual(first["losses"][0], loss_of(network(), X[1:8:2], Y[1:8:2]).item(), delta=1e-6)
                self.assertLess(first["rest"], 1e-5)

    def test_losses_of_accumulated_backward_passes_are_added(self):
        def step(model, optimizer, x, y):
            for part in range(2):
                (loss_of(model, x[part::2], y[part::2]) / 2).backward()
            optimizer.step()
            optimizer.zero_grad()
        first = self.observed(step)["chain"][0]
        self.assertEqual((first["backwards"], first["kept"], first["weights"]), ([2], [2], [8]))
        self.assertAlmostEqual(first["losses"][0], loss_of(network(), X[:8], Y[:8]).item(), delta=1e-6)
        self.assertAlmostEqual(first["reduction"], 1.0, delta=1e-6)

    def test_gradients_that_nobody_clears_are_seen(self):
        def step(model, optimizer, x, y):
            loss_of(model, x, y).backward()
            optimizer.step()
        self.assertIs(self.observed(step)["uncleared"], True)

    def test_gradients_are_measured_before_they_are_clipped(self):
        def step(model, optimizer, x, y):
            optimizer.zero_grad()
            loss_of(model, x, y).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.01)
            optimizer.step()
        self.assertAlmostEqual(self.observed(step)["chain"][2]["reduction"], 1.0, delta=1e-6)

    def test_the_scale_of_a_scaler_is_divided_out(self):
        for fused, clipped in ((False, ""), (True, ""), (False, "unscaled"), (True, "unscaled"), (False, "scaled")):
            with self.subTest(fused=fused, clipped=clipped), scratch_folder():
                scaler, model = torch.amp.GradScaler("cpu", init_scale=1024.0), network()
                both = [torch.optim.SGD(model[0].parameters(), lr=0.1), torch.optim.AdamW(model[2].parameters(), fused=fused)]

                def step(model, optimizers, x, y):
                    model.zero_grad()
                    scaler.scale(loss_of(model, x, y)).backward()
                    for each in optimizers if clipped == "unscaled" else ():
                        scaler.unscale_(each)
                    if clipped:
                        nn.utils.clip_grad_norm_(model.parameters(), 0.01)
                    for each in optimizers:
                        scaler.step(each)
                    scaler.update()
                first = self.observed(step, model=model, optimizer=both)["chain"][0]
                self.assertLess(first["rest"], 1e-5)
                self.assertAlmostEqual(first["losses"][0], loss_of(network(), X[:8], Y[:8]).item(), delta=1e-6)
                self.assertAlmostEqual(first["reduction"], 1.0, delta=1e-6)

    def test_a_closure_and_sparse_gradients_have_no_reduction(self):
        def step(model, optimizer, x, y):
            def closure():
                optimizer.zero_grad()
                loss = loss_of(model, x, y)
                loss.backward()
                return loss
            optimizer.step(closure)

        class Sparse(nn.Module):
            def __init__(self):
                super().__init__()
                self.rows = nn.EmbeddingBag(4, 2, sparse=True)

            def forward(self, x):
                return self.rows((x > 0).long())
        for options in ({"step": step}, {"model": Sparse()}):
            with self.subTest(**options), scratch_folder():
                chain = self.observed(**options)["chain"]
                self.assertEqual(len(chain), 3)
                self.assertTrue(all("losses" in each and "reduction" not in each for each in chain))

    def test_an_odd_loss_is_not_observed_and_training_goes_on(self):
        def step(model, optimizer, x, y):
            optimizer.zero_grad()
            output = model(x)
            torch.autograd.backward(output, torch.ones_like(output))
            optimizer.step()
        self.assertNotIn("losses", self.observed(step)["chain"][0])

    def test_evidence_that_fails_does_not_end_the_run(self):
        def step(model, optimizer, x, y):
            trainyard.patches.active.chain._parameters = None
            self.step(model, optimizer, x, y)
        observed = self.train(step=step)["observed"]
        self.assertIn("not observed: TypeError", observed["notes"]["chain"])
        self.assertEqual((observed["steps"], "chain" in observed), (5, False))

    def test_steps_of_schedulers_are_counted_once(self):
        schedules = torch.optim.lr_scheduler

        class Own(schedules.LRScheduler):
            def step(self, epoch=None):
                self.last_epoch += 1
                self._last_lr = [0.1]

            def get_lr(self):
                return [0.1]
        model = network()
        optimizer, other = (torch.optim.SGD(model.parameters(), lr=0.1) for _ in range(2))
        unrelated = schedules.LambdaLR(other, lambda step: 1)
        other.step()
        for name in ("twice", "chained", "sequential", "own", "plateau"):
            with self.subTest(name), scratch_folder():
                parts, made = [schedules.StepLR(optimizer, 3), schedules.ExponentialLR(optimizer, 0.9)], []

                def step(model, optimizer, x, y):
                    self.step(model, optimizer, x, y)
                    unrelated.step()
                    if not made:  # after start(): its constructor calls step()
                        made.append({"chained": lambda: schedules.ChainedScheduler(parts), "own": lambda: Own(optimizer),
                                     "sequential": lambda: schedules.SequentialLR(optimizer, parts, [3]), "twice": lambda: parts[0],
                                     "plateau": lambda: schedules.ReduceLROnPlateau(optimizer)}[name]())
                    for _ in range(1 + (name == "twice")):
                        made[0].step(*([1.0] if name == "plateau" else []))
                self.assertEqual(self.observed(step, model=model, optimizer=optimizer)["scheduler_steps"], 10 if name == "twice" else 5)

    def test_rows_of_batch_norm_and_of_validation_are_counted(self):
        model = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
        run = trainyard.start(model, optimizer := torch.optim.SGD(model.parameters(), lr=0.1))
        for epoch in run.epochs(2):
            model.train()
            self.step(model, optimizer, X[:16], Y[:16])
            model.eval()
            with torch.no_grad():
                model(X[:30]), model(X[30:37 + epoch])
        run.finish()
        observed = last_start(self.records())["observed"]
        self.assertEqual(observed["batch_norm_samples"], 16)

    def test_a_resumed_run_keeps_what_the_first_attempt_saw(self):
        self.addCleanup(os.environ.pop, "TRAINYARD_RUN", None)
        found = []
        for attempt, after in ((1, {}), (2, {"resumes_after_epoch": 1})):
            model = network()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
            folder = pathlib.Path(f"attempt-{attempt}")
            folder.mkdir()
            info = {"run": "r", "attempt": attempt, "records": str(folder), "seed": 1, "axes": {}, "checkpoints": "."} | after
            pathlib.Path(folder, "run.json").write_text(json.dumps(info))
            os.environ["TRAINYARD_RUN"] = f"{folder}/run.json"
            loader = DataLoader(TensorDataset(X, Y), 8)
            run = trainyard.start(model, optimizer, loader=loader, scheduler=scheduler)
            for _ in run.epochs(2):
                for x, y in loader:
                    self.step(model, optimizer, x, y)
                    run.add("loss", 1.0, len(y))
                scheduler.step()
            run.finish()
            found.append(last_start([json.loads(line) for line in pathlib.Path(folder, "rank-0.records.jsonl").read_text().splitlines()])["observed"])
        names = ("chain", "epoch_samples", "scheduler_steps", "gradient_bytes", "steps")
        self.assertEqual(*([each[name] for name in names] for each in found))
        self.assertEqual((found[1]["phases"]["steps"], found[1]["notes"]), (3, {}))

    def test_phases_add_up_to_the_step(self):
        def step(model, optimizer, x, y):
            self.step(model, optimizer, x, y)
            copy.deepcopy(model)
            torch.save(model, io.BytesIO())
            timed.extend(trainyard.patches.active.phases._of_epoch[-1:])
        timed = []
        phases = self.observed(step, epochs=2)["phases"]
        self.assertEqual(phases["steps"], 6)  # steps 3 to 5 of each epoch
        self.assertEqual(len(timed), 8)
        for each in timed:
            parts = sum(each[name] for name in ("input", "buffers", "collectives", "forward", "between", "backward", "wait", "optimizer"))
            self.assertAlmostEqual(parts, each["step"], delta=1e-9)
            self.assertGreater(each["between"], 0)
        self.assertEqual((phases["buffers"], phases["collectives"]), (0, 0))
        for name in ("step", "own", "processor", "forward", "backward", "optimizer"):
            self.assertGreater(phases[name], 0, name)


class JoinedSamples(unittest.TestCase):
    def test_samples_of_ranks_are_joined_and_divided(self):
        probe, x, y = trainyard.probe, torch.arange(6.0).reshape(3, 2), torch.arange(3)
        mask = torch.ones(7, 7)  # not of samples
        whole = probe.joined([(x, {"y": y, "mask": mask}), (x[:1] + 9, {"y": y[:1], "mask": mask})])
        self.assertEqual(whole[0].tolist(), [[0, 1], [2, 3], [4, 5], [9, 10]])
        self.assertEqual((whole[1]["y"].tolist(), whole[1]["mask"].shape), ([0, 1, 2, 0], (7, 7)))
        part = probe.part(whole, 1, 3)
        self.assertEqual((part[0].tolist(), part[1]["y"].tolist(), part[1]["mask"].shape), ([[2, 3], [4, 5]], [1, 2], (7, 7)))

    def test_named_samples_are_padded_and_others_refused(self):
        longer, shorter = torch.ones(1, 3, dtype=torch.long), torch.ones(2, 2, dtype=torch.long)
        whole = trainyard.probe.joined([{"ids": longer, "labels": longer}, {"ids": shorter, "labels": shorter}])
        self.assertEqual((whole["ids"][1].tolist(), whole["labels"][2].tolist()), ([1, 1, 0], [1, 1, -100]))
        with self.assertRaisesRegex(ValueError, "pad them to one length"):
            trainyard.probe.joined([[longer], [shorter]])


class TwoRanks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(HERE / "evidence_ranks.py")]
        cls.runs = {}
        with scratch_folder():
            environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1] / "python")}
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
            if done.returncode:
                raise RuntimeError(done.stderr)
            for folder in pathlib.Path("trainyard-runs/recorded").iterdir():
                ranks = [[json.loads(line) for line in (folder / f"rank-{rank}.records.jsonl").read_text().splitlines()] for rank in (0, 1)]
                fault = next(each["name"] for each in ranks[0][1]["metrics"] if each["name"] != "loss")
                cls.runs[fault] = [last_start(each)["observed"] for each in ranks]

    def chain(self, fault, steps=3):
        found = self.runs[fault][0]["chain"]
        self.assertEqual(len(found), steps)
        self.assertNotIn("chain", self.runs[fault][1])
        return found

    def test_healthy_replicas_reduce_to_the_mean(self):
        for fault in ("healthy", "late", "unsynced", "manual", "half", "same"):
            for each in self.chain(fault):
                with self.subTest(fault, step=each["step"]):
                    self.assertAlmostEqual(each["reduction"], 1, delta=1e-5)
                    self.assertLess(each["rest"], 1e-5)
                    self.assertEqual((each["samples"], each["weights"]), ([8, 8], [8, 8]))
                    self.assertEqual(each["kept"], [2, 2] if fault == "unsynced" else [1, 1])
                    self.assertEqual(each["exchanges"], [0, 0] if fault == "manual" else [1, 1])

    def test_faults_of_the_reduction_are_seen(self):
        for each in self.chain("sum"):
            self.assertAlmostEqual(each["reduction"], 2, delta=1e-5)
        for each in self.chain("rounded"):
            self.assertAlmostEqual(each["reduction"], 1, delta=0.01)
            self.assertTrue(3e-4 < each["rest"] < 0.05, each["rest"])
        for each in self.chain("alone"):
            self.assertGreater(each["rest"], 0.05)

    def test_a_divided_loss_is_seen(self):
        for half, whole in zip(self.chain("half")[0]["losses"], self.chain("healthy")[0]["losses"]):
            self.assertAlmostEqual(half / whole, 0.5, delta=1e-5)

    def test_later_steps_with_different_weights_are_in_the_chain(self):
        found = self.chain("uneven", 5)
        self.assertEqual([(each["step"], each["weights"], "reduction" in each) for each in found[3:]],
                         [(6, [6, 2], False), (12, [6, 2], False)])

    def test_equal_samples_and_random_numbers_are_seen(self):
        same, healthy = self.runs["same"][0], self.runs["healthy"][0]
        self.assertEqual((same["overlap"], same["random"]), (1, {"fetch": ["python"], "forward": ["torch"]}))
        self.assertEqual((healthy["overlap"], healthy["random"]), (0, {"fetch": [], "forward": []}))
        self.assertEqual((same["epoch_samples"], healthy["epoch_samples"]), (160, 80))
        for fault, equal in (("healthy", True), ("sum", True), ("manual", True), ("alone", False)):
            self.assertEqual([self.runs[fault][0][f"equal_{name}"] for name in ("weights", "data", "rates")], [equal, True, True], fault)
        self.assertEqual(("repeated" in same, "repeated" in healthy), (False, False))

    def test_rows_of_all_ranks_are_added(self):
        for rank, counted in ((0, 8), (1, None)):
            self.assertEqual(self.runs["healthy"][rank].get("batch_norm_samples"), counted)

    def test_the_rank_that_the_others_wait_for_is_seen(self):
        for fault, waiting in (("asleep", "wait"), ("hidden", "collectives")):
            with self.subTest(fault):
                fast, slow = (each["phases"] for each in self.runs[fault])
                self.assertGreater(slow["own"], 0.04)
                self.assertGreater(slow["own"] - fast["own"], 0.03)
                self.assertGreater(fast[waiting] - slow[waiting], 0.03)
                self.assertGreater(slow["between"], 0.04)
        self.assertGreater(self.runs["manual"][0]["phases"]["wait"], 0)
        self.assertEqual([bool(self.runs[fault][0]["phases"]["buffers"]) for fault in ("healthy", "late", "alone")], [True, True, False])

    def test_nothing_failed(self):
        for fault, ranks in self.runs.items():
            self.assertEqual([each["notes"] for each in ranks], [{}, {}], fault)


if __name__ == "__main__":
    unittest.main(verbosity=2)
