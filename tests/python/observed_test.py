"""observed_test.py: what the recorder observes of one process and of two ranks, and that it states nothing else."""
import copy
import hashlib
import io
import json
import os
import pathlib
import subprocess
import sys
import time
import unittest

import torch
from torch import nn
from torch.utils.data import DataLoader

from recording import HERE, Numbered, Recorded, Stream, X, Y, last_start, network, order_of, scratch_folder

import trainyard
from trainyard import batches, samples, terms


class Inside(nn.Module):
    """Autocast begins inside of forward."""

    def __init__(self):
        super().__init__()
        self.layers = network()

    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            return self.layers(x).float()


class Terms(Recorded):
    def test_a_plain_script_states_all_required_terms(self):
        model = network()
        weights = {name: hashlib.sha256(value.detach().numpy().tobytes()).hexdigest()[:15] for name, value in model.named_parameters()}
        records = self.train(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True), stated=False)
        first, epoch, last, end = records
        self.assertEqual([record["seq"] for record in records], [0, 1, 2, 3])
        self.assertEqual([record["type"] for record in records], ["start", "epoch", "start", "end"])
        self.assertEqual(first["elapsed_seconds"], last["elapsed_seconds"])
        self.assertEqual(set(terms.REQUIRED) - set(last), {"batches"})
        self.assertEqual(last["initial_weights"], weights)
        self.assertEqual((last["optimizer"], last["learning_rate"], last["learning_rate_schedule"], last["precision"], last["batch_norm"]),
                         ("sgd momentum 0.9 nesterov", 0.1, "constant", "float32", "local"))
        self.assertEqual((last["global_batch"], last["epochs"], last["weight_decay"]), (8, 1, 0))
        self.assertEqual(last["data_fingerprint"], hashlib.sha256(X.numpy().tobytes() + Y.numpy().tobytes()).hexdigest())
        self.assertEqual(epoch["batches"], order_of([range(i, i + 8) for i in range(0, 40, 8)]))
        self.assertEqual(epoch["inputs"][0], hashlib.sha256(X[:8].numpy().tobytes()).hexdigest()[:16])
        self.assertEqual((epoch["steps"], epoch["samples"], epoch["learning_rates"]), (5, 40, [0.1, 0.1]))
        self.assertEqual(set(epoch["seconds"]), {"data", "forward", "backward", "optimizer", "other"})
        self.assertAlmostEqual(sum(epoch["seconds"].values()), epoch["train_seconds"], delta=1e-6)
        self.assertEqual(last["observed"]["missing"], {})
        self.assertEqual(end["status"], "finished")

    def test_a_metric_of_the_script_is_defined_and_is_the_mean_of_its_calls(self):
        model = network()
        run = trainyard.start(model, torch.optim.SGD(model.parameters(), lr=0.1))
        for _ in run.epochs(2):
            for value in (1, 2, 6):
                run.metric("reward", torch.tensor(value), better="higher")
            run.metric("tokens_per_second", 50.0, unit="1/s", better="higher", combine="sum", phase="validation")
        run.metric("reward", 7, better="higher", phase="test")
        for text, *wrong in (("was called before with .*'unit': ''", "reward", 1, "higher", "m"), ("better=", "reward", 1, "more"),
                             ("a name is a-z", "Reward", 1, "lower"), ("a name is a-z", "perplexity", 1, "lower"),
                             ("no phase", "latency", 1, "lower", "ms", "mean", "test"),
                             ("a phase", "reward", 1, "higher", "", "mean", "training")):
            with self.assertRaisesRegex(ValueError, text):
                run.metric(wrong[0], wrong[1], **dict(zip(("better", "unit", "combine", "phase"), wrong[2:])))
        run.metric("late", 1, better="lower")
        run.finish()
        records = self.records()
        self.assertIn("run.metric() of late after the last epoch is not recorded", [each["text"] for each in records if each["type"] == "message"][0])
        values = [(each["phase"], each["name"], each["sum"], each["weight"]) for record in records for each in record.get("metrics", [])
                  if record["type"] in ("epoch", "test")]
        self.assertEqual(values, 2 * [("train", "reward", 3.0, 1), ("validation", "tokens_per_second", 50.0, 1)] + [("test", "reward", 7.0, 1)])
        last_start(records)["metrics"].pop("late")
        self.assertEqual(last_start(records)["metrics"], {"reward": {"unit": "", "better": "higher", "combine": "mean"},
                                                          "tokens_per_second": {"unit": "1/s", "better": "higher", "combine": "sum"}})

    def test_gradient_norms_are_those_of_the_first_three_steps(self):
        model = network()
        nn.functional.cross_entropy(model(X[:8]), Y[:8]).backward()
        norm = torch.nn.utils.get_total_norm([parameter.grad for parameter in model.parameters()])
        model.zero_grad()
        norms = self.train(model)["observed"]["gradient_norms"]
        self.assertEqual([each["step"] for each in norms], [1, 2, 3])
        self.assertAlmostEqual(norms[0]["at_step"], norm.item(), delta=1e-6)

    def test_a_rate_that_the_script_sets_is_not_constant(self):
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)

        def warm_up(model, optimizer, x, y):
            self.step(model, optimizer, x, y)
            optimizer.param_groups[0]["lr"] += 0.01
        start = self.train(model, optimizer, step=warm_up)
        self.assertEqual(start["learning_rate"], 0.0)
        self.assertRegex(start["learning_rate_schedule"], r"^varying [0-9a-f]{12}$")

    def test_several_optimizers_are_a_list_of_rates(self):
        model = network()
        both = [torch.optim.SGD(model[0].parameters(), lr=0.1), torch.optim.Adam(model[2].parameters(), lr=0.001)]

        def step(model, optimizers, x, y):
            nn.functional.cross_entropy(model(x), y).backward()
            for each in optimizers:
                each.step()
                each.zero_grad()
        start = self.train(model, both, step=step)
        self.assertEqual((start["learning_rate"], start["optimizer"]), ("[0.1, 0.001]", "sgd + adam"))
        self.assertEqual(start["observed"]["steps"], 5)

    def test_clipping_is_stated_only_if_it_was_seen(self):
        def step(model, optimizer, x, y):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
        self.assertEqual(self.train(step=step)["clip_norm"], 0.5)

    def test_without_clipping_nothing_is_said_about_it(self):
        self.assertNotIn("clip_norm", self.train())

    def test_a_declared_term_fills_a_gap_only(self):
        model = network()
        run = trainyard.start(model, torch.optim.SGD(model.parameters(), lr=0.1), loader=DataLoader(Stream(), 8))
        run.declare(data_fingerprint="the file of Monday", epochs=99)
        for _ in run.epochs(2):
            pass
        run.finish()
        start = last_start(self.records())
        self.assertEqual((start["data_fingerprint"], start["epochs"]), ("the file of Monday", 2))
        self.assertEqual(start["observed"]["declared"], ["data_fingerprint", "epochs"])


class Models(Recorded):
    def test_bfloat16_inside_of_forward_is_seen(self):
        self.assertEqual(self.train(Inside())["precision"], "bfloat16")

    def test_bfloat16_inside_of_a_compiled_forward_is_seen(self):
        self.assertEqual(self.train(torch.compile(Inside(), backend="aot_eager"))["precision"], "bfloat16")

    def test_a_compiled_model_is_observed(self):
        start = self.train(torch.compile(network(), backend="aot_eager"))
        self.assertEqual((start["precision"], start["observed"]["missing"]), ("float32", {}))
        self.assertIn("0.weight", start["initial_weights"])

    def test_a_model_that_compiles_itself_is_observed(self):
        for inside, precision in ((False, "float32"), (True, "bfloat16")):
            with self.subTest(precision), scratch_folder():
                model = Inside() if inside else network()

                def step(model, optimizer, x, y):
                    if not hasattr(model, "was_compiled"):  # after start, before the first step
                        model.was_compiled = True
                        model.compile(backend="aot_eager")
                    self.step(model, optimizer, x, y)
                start = self.train(model, step=step)
                self.assertEqual((start["precision"], start["observed"]["missing"], start["global_batch"]), (precision, {}, 8))

    def test_parameters_in_bfloat16_are_named(self):
        def step(model, optimizer, x, y):
            self.step(model, optimizer, x.bfloat16(), y)
        self.assertEqual(self.train(network().bfloat16(), step=step)["precision"], "bfloat16 parameters")

    def test_a_model_that_is_compiled_after_start_states_no_data_order(self):
        model = network()
        compiled = torch.compile(model, backend="aot_eager")

        def step(_, optimizer, x, y):
            self.step(compiled, optimizer, x, y)
        self.lacks(self.train(model, step=step), "batches", "precision", "global_batch")

    def test_training_a_copy_states_nothing_of_it(self):
        model = network()
        twin = copy.deepcopy(model)
        other = torch.optim.SGD(twin.parameters(), lr=0.1)

        def step(model, optimizer, x, y):
            self.step(twin, other, x, y)
        start = self.train(model, step=step)
        self.lacks(start, "batches", "global_batch", "optimizer", "learning_rate", "learning_rate_schedule", "precision", "initial_weights",
                   "batch_norm")
        self.assertIn("no optimizer step was seen", start["observed"]["missing"]["batches"])

    def test_copies_and_saved_models_work_and_are_not_counted(self):
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        averaged = []

        def step(model, optimizer, x, y):
            averaged[:] = averaged or [torch.optim.swa_utils.AveragedModel(model)]
            self.step(model, optimizer, x, y)
            averaged[0].update_parameters(model)
            averaged[0](x)
            file = io.BytesIO()
            torch.save(model, file)
            file.seek(0)
            torch.load(file, weights_only=False)(x)
            copy.deepcopy(optimizer)
        start = self.train(model, optimizer, step=step)
        self.assertEqual((start["global_batch"], start["observed"]["forward_passes_per_step"], start["observed"]["notes"]), (8, 1, {}))

    def test_batch_norm_modules_are_counted(self):
        start = self.train(nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)))
        self.assertEqual((start["batch_norm"], start["observed"]["batch_norms"]), ("local", 1))


class Steps(Recorded):
    def scaled(self, fused):
        model, i = network(), [0]
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

        def step(model, optimizer, x, y):
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16):
                loss = nn.functional.cross_entropy(model(x), y)
            i[0] += 1
            scaler.scale(loss * float("inf") if i[0] == 4 else loss).backward()
            scaler.step(optimizer)
            scaler.update()
        return self.train(model, torch.optim.AdamW(model.parameters(), lr=0.01, fused=fused), step=step, stated=False)

    def test_steps_that_a_scaler_skips_are_counted_once(self):
        norms = []  # fused optimizers get scaled gradients
        for fused in (False, True):
            with self.subTest(fused=fused), scratch_folder():
                first, epoch, start, end = self.scaled(fused)
                self.assertEqual((epoch["steps"], epoch["skipped_steps"]), (4, 1))
                self.assertEqual(epoch["batches"], order_of([range(i, i + 8) for i in range(0, 40, 8)]))
                self.assertEqual((start["precision"], start["observed"]["missing"]), ("bfloat16", {}))
                norms.append(start["observed"]["gradient_norms"][0]["at_step"])
        self.assertAlmostEqual(norms[0] / norms[1], 1, delta=1e-6)

    def test_a_rest_of_accumulated_batches_is_noted(self):
        count = [0]

        def step(model, optimizer, x, y):
            count[0] += 1
            nn.functional.cross_entropy(model(x), y).backward()
            if count[0] % 2 == 0:
                optimizer.step()
                optimizer.zero_grad()
        start = self.train(step=step)
        self.assertEqual((start["global_batch"], start["observed"]["forward_passes_per_step"]), (16, 2))
        self.assertEqual(start["observed"]["notes"]["rest"], "1 forward passes after the last step of epoch 1")

    def test_a_backward_pass_that_is_not_seen_has_no_time(self):
        def step(model, optimizer, x, y):
            loss = nn.functional.cross_entropy(model(x), y)
            parameters = list(model.parameters())
            for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters)):
                parameter.grad = gradient
            optimizer.step()
        self.assertEqual(set(self.train(step=step, stated=False)[1]["seconds"]), {"data"})

    def test_a_closure_is_no_time_of_the_optimizer(self):
        def step(model, optimizer, x, y):
            def closure():
                time.sleep(0.02)
                loss = nn.functional.cross_entropy(model(x), y)
                loss.backward()
                return loss
            optimizer.step(closure)
        _, epoch, start, _ = self.train(step=step, stated=False)
        self.assertEqual(epoch["steps"], 5)
        self.assertEqual([each["at_step"] > 0 for each in start["observed"]["gradient_norms"]], [True] * 3)

    def test_a_script_without_epochs_and_loader(self):
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        pathlib.Path("train.bin").write_bytes(b"data")
        run = trainyard.start(model, optimizer, data=["train.bin"])
        for step in range(1, 7):
            self.step(model, optimizer, X[step:step + 4], Y[step:step + 4])
            run.add("loss", 1.0, 4)
            if step % 3 == 0:
                run.validation("loss", 2.0, 4)
                run.end_epoch(step // 3)
        run.finish()
        records = self.records()
        start = last_start(records)
        ids = samples.content_ids(X).tolist()
        self.assertEqual(records[1]["batches"], order_of([[i % 2**64 for i in ids[k:k + 4]] for k in (1, 2, 3)]))
        self.assertEqual((start["epochs"], start["global_batch"], start["observed"]["missing"]), (2, 4, {}))
        self.assertNotIn("data", records[1]["seconds"])


class WrongUse(Recorded):
    def test_wrong_calls_have_one_clear_error(self):
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with self.assertRaisesRegex(ValueError, "needs an optimizer"):
            trainyard.start(model, [])
        with self.assertRaisesRegex(ValueError, "without parameters"):
            trainyard.start(nn.ReLU(), optimizer)
        run = trainyard.start(model, optimizer)
        with self.assertRaisesRegex(RuntimeError, "finish that run first"):
            trainyard.start(model, optimizer)
        with self.assertRaisesRegex(ValueError, "number of epochs"):
            next(run.epochs())
        run.finish()

    def test_a_second_process_cannot_record_the_same_rank(self):
        run = trainyard.start(model := network(), torch.optim.SGD(model.parameters(), lr=0.1))
        os.environ["TRAINYARD_RUN"] = f"{run.info['records']}/run.json"
        self.addCleanup(os.environ.pop, "TRAINYARD_RUN")
        other = "import trainyard.records; trainyard.records.Records(0)"
        environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1] / "python")}
        done = subprocess.run([sys.executable, "-c", other], env=environment, capture_output=True, text=True, timeout=60)
        self.assertIn("RuntimeError: another process records rank 0 of this run: give each process its own RANK", done.stderr)
        run.finish()
        self.assertEqual([record["seq"] for record in self.records()], [0, 1, 2, 3])

    def test_a_loss_that_is_not_a_number_is_recorded(self):
        model = network()
        run = trainyard.start(model, torch.optim.SGD(model.parameters(), lr=0.1))
        run.add("loss", float("nan"), 8)
        run.end_epoch(1)
        run.finish()
        self.assertNotEqual(self.records()[1]["metrics"][0]["sum"], 0)

    def test_a_metric_with_another_name_in_the_next_epoch_is_another_metric(self):
        model = network()
        run = trainyard.start(model, torch.optim.SGD(model.parameters(), lr=0.1))
        for epoch, name in enumerate(("loss", "cost"), 1):
            run.add(name, epoch, 8)
            run.end_epoch(epoch)
        run.finish()
        self.assertEqual([record["metrics"] for record in self.records() if record["type"] == "epoch"],
                         [[{"phase": "train", "name": name, "sum": total, "weight": 8}] for name, total in (("loss", 1.0), ("cost", 2.0))])


class TwoRanks(Recorded):
    def test_kinds_of_replicas_under_torchrun(self):
        environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1] / "python")}
        # torchrun ends rank 0 at its next look after rank 1 has failed: rank 0 notices the loss by itself in less than 3 s
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--monitor-interval", "3", "--nproc-per-node", "2",
                   str(HERE / "replicas.py")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        self.assertIn("ValueError: a bad sample", done.stderr)
        runs = {}
        for folder in pathlib.Path("trainyard-runs/recorded").iterdir():
            ranks = [[json.loads(line) for line in (folder / f"rank-{rank}.records.jsonl").read_text().splitlines()]
                     for rank in (0, 1)]
            runs[ranks[0][1]["metrics"][0]["name"]] = ranks
        self.assertEqual(set(runs), {"alone", "closure", "ddp", "late", "divided", "fsdp1", "fsdp2", "unlike", "raised"}, done.stderr)
        whole = order_of([range(i, i + 8) for i in range(0, 40, 8)])
        for name in ("ddp", "late", "fsdp1", "fsdp2"):
            with self.subTest(name):
                self.assertEqual(runs[name][0][1]["batches"], whole)
                self.assertNotIn("batches", runs[name][1][1])
                start = last_start(runs[name][0])
                self.assertEqual((start["global_batch"], start["observed"]["missing"]), (8, {}))
                self.assertEqual(start["initial_weights"], last_start(runs["ddp"][0])["initial_weights"])
                self.assertNotIn("initial_weights", last_start(runs[name][1]))
        self.assertEqual(last_start(runs["ddp"][0])["observed"]["ddp"]["find_unused_parameters"], True)
        self.assertEqual(last_start(runs["ddp"][0])["observed"]["ddp"]["bucket_mb"], 3)
        self.assertEqual(last_start(runs["late"][0])["observed"]["ddp"]["find_unused_parameters"], False)
        self.assertEqual([last_start(runs[f"fsdp{n}"][0])["observed"]["fsdp"]["version"] for n in (1, 2)], [1, 2])
        self.lacks(last_start(runs["alone"][0]), "global_batch")
        self.lacks(last_start(runs["closure"][0]), "global_batch")
        whole = DataLoader(Numbered(), 8, shuffle=True)
        batches.divide(whole, 0, 0, 1, lambda: 0)  # the ranks have the seeds 0 and 1, and that of rank 0 counts
        self.assertEqual(runs["divided"][0][1]["batches"], order_of([step.tolist() for step in whole]))
        self.assertEqual((last_start(runs["divided"][0])["global_batch"], last_start(runs["divided"][0])["observed"]["missing"]), (8, {}))
        self.lacks(last_start(runs["unlike"][0]), "batches")
        ends = [runs["raised"][rank][-1] for rank in (0, 1)]
        self.assertEqual([end["status"] for end in ends], ["failed", "failed"])
        self.assertEqual([end["reason"] for end in ends], ["peer_lost", "failed"])
        self.assertEqual(ends[1]["error"], "ValueError: a bad sample")


if __name__ == "__main__":
    unittest.main(verbosity=2)
