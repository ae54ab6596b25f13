"""observed_test.py: what the recorder observes of one process and of two ranks, and that it states nothing else."""
import collections
import contextlib
import copy
import hashlib
import io
import json
import os
import pathlib
import secrets
import struct
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "python"))

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler, IterableDataset, TensorDataset

import trainyard
from trainyard import patches, samples, terms

torch.set_num_threads(1)
X = torch.randn(40, 6, generator=torch.Generator().manual_seed(0))
Y = (X.sum(1) > 0).long()


@contextlib.contextmanager
def scratch_folder():
    """Runs its block in a temporary folder."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def network():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))


def mixed(number):
    """SplitMix64 in plain Python."""
    mask = 2**64 - 1
    z = ((number + 1) & mask) * 0x9E3779B97F4A7C15 & mask
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
    z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
    return z ^ z >> 31


def order_of(steps):
    """The documented hash of the data order."""
    return hashlib.sha256(b"".join(struct.pack("<Q", sum(map(mixed, step)) % 2**64) for step in steps)).hexdigest()


def last_start(records):
    return [record for record in records if record["type"] == "start"][-1]


class Stream(IterableDataset):
    def __iter__(self):
        yield from zip(X, Y)


class Drawn(Dataset):
    """Adds noise to each sample: from torch, or from a source that has no seed."""

    def __init__(self, seeded):
        self.seeded = seeded

    def __len__(self):
        return len(X)

    def __getitem__(self, i):
        noise = torch.rand(()) if self.seeded else torch.tensor(secrets.randbelow(1000) / 1000)
        return X[i] + noise, Y[i]


class Inside(nn.Module):
    """Autocast begins inside of forward."""

    def __init__(self):
        super().__init__()
        self.layers = network()

    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            return self.layers(x).float()


class Recorded(unittest.TestCase):
    def setUp(self):
        stack = contextlib.ExitStack()
        stack.enter_context(scratch_folder())
        self.addCleanup(stack.close)
        self.addCleanup(setattr, patches, "active", None)

    def records(self):
        (file,) = pathlib.Path("trainyard-runs/runs").glob("*/attempt-1/rank-0.records.jsonl")
        return [json.loads(line) for line in file.read_text().splitlines()]

    def train(self, model=None, optimizer=None, loader=None, epochs=1, step=None, stated=True, **options):
        """Train and return the last `start` record, or all records. step(model, x, y) trains on one batch."""
        model = network() if model is None else model
        optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(X, Y), 8) if loader is None else loader
        run = trainyard.start(model, optimizer, loader=loader, **options)
        for _ in run.epochs(epochs):
            for x, y in loader:
                (step or self.step)(model, optimizer, x, y)
                run.add("loss", len(y), len(y))
        run.finish()
        records = self.records()
        return last_start(records) if stated else records

    def step(self, model, optimizer, x, y):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    def lacks(self, start, *names):
        for name in names:
            self.assertNotIn(name, start)
            self.assertIn(name, start["observed"]["missing"])


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

    def test_gradient_norms_are_those_of_the_first_three_steps(self):
        model = network()
        nn.functional.cross_entropy(model(X[:8]), Y[:8]).backward()
        norm = torch.nn.utils.get_total_norm([parameter.grad for parameter in model.parameters()])
        model.zero_grad()
        norms = self.train(model)["observed"]["gradient_norms"]
        self.assertEqual([each["step"] for each in norms], [1, 2, 3])
        self.assertAlmostEqual(norms[0]["at_step"], norm.item(), delta=1e-6)
        self.assertAlmostEqual(norms[0]["local"], norm.item(), delta=1e-6)

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


class Data(Recorded):
    def batches(self, loader, **options):
        records = self.train(loader=loader, stated=False, **options)
        return [record.get("batches") for record in records if record["type"] == "epoch"], last_start(records)

    def test_the_hash_of_a_step_does_not_depend_on_its_division(self):
        whole = samples.step_sums([[np.array([4, 2, 9, 7])], [np.array([1, 3]), np.array([8, 0])]])
        parts = [samples.step_sums([[np.array([9, 2])], [np.array([8]), np.array([3])]]),
                 samples.step_sums([[np.array([4, 7])], [np.array([0, 1])]])]
        self.assertEqual(samples.order_hash([whole]), samples.order_hash(parts))
        self.assertEqual(samples.order_hash([whole]), order_of([[4, 2, 9, 7], [1, 3, 8, 0]]))
        self.assertNotEqual(samples.order_hash([whole]), order_of([[4, 2, 9, 1], [7, 3, 8, 0]]))

    def test_samples_without_index_are_named_by_their_content(self):
        found, start = self.batches(DataLoader(Stream(), 8), data=__file__, epochs=2)
        self.assertEqual(start["observed"]["missing"], {})
        ids = samples.content_ids(X).tolist()
        self.assertEqual(len(set(ids)), 40)
        self.assertEqual(found, [order_of([[i % 2**64 for i in ids[k:k + 8]] for k in range(0, 40, 8)])] * 2)

    def test_without_files_or_hashes_a_stream_has_no_fingerprint_and_no_order(self):
        found, start = self.batches(DataLoader(Stream(), 8), hash_contents=False)
        self.assertEqual(found, [None])
        self.lacks(start, "data_fingerprint", "batches")

    def test_samples_with_noise_of_torch_have_a_fingerprint_and_keep_the_random_numbers(self):
        torch.manual_seed(5)
        expected = torch.rand(())
        torch.manual_seed(5)
        found, why = samples.dataset_fingerprint(Drawn(seeded=True))
        self.assertRegex(found, r"^40 of 40 samples: [0-9a-f]{64}$")
        self.assertEqual(torch.rand(()), expected)

    def test_samples_that_differ_each_time_have_no_fingerprint(self):
        self.lacks(self.train(loader=DataLoader(Drawn(seeded=False), 8)), "data_fingerprint")

    def test_what_an_abandoned_iterator_had_prefetched_is_not_counted(self):
        loader = DataLoader(TensorDataset(X, Y), 8, num_workers=2, persistent_workers=True)
        run = trainyard.start(model := network(), optimizer := torch.optim.SGD(model.parameters(), lr=0.1), loader=loader)
        for epoch in run.epochs(2):
            for i, (x, y) in enumerate(loader):
                if epoch == 0 and i == 2:
                    break
                self.step(model, optimizer, x, y)
        run.finish()
        found = [record["batches"] for record in self.records() if record["type"] == "epoch"]
        steps = [range(i, i + 8) for i in range(0, 40, 8)]
        self.assertEqual(found, [order_of(steps[:2]), order_of(steps)])

    def test_an_evaluation_of_the_training_data_is_not_training(self):
        loader = DataLoader(TensorDataset(X, Y), 8)
        run = trainyard.start(model := network(), optimizer := torch.optim.SGD(model.parameters(), lr=0.1), loader=loader)
        for _ in run.epochs(2):
            model.train()
            for x, y in loader:
                self.step(model, optimizer, x, y)
            model.eval()
            with torch.no_grad():
                for x, y in loader:
                    model(x)
                time.sleep(0.2)
        run.finish()
        epochs = [record for record in self.records() if record["type"] == "epoch"]
        self.assertEqual([epoch["batches"] for epoch in epochs], [order_of([range(i, i + 8) for i in range(0, 40, 8)])] * 2)
        self.assertGreater(epochs[1]["validation_seconds"], 0.2)
        self.assertLess(epochs[1]["train_seconds"], 0.2)

    def test_an_evaluation_inside_of_an_epoch_changes_nothing(self):
        for ahead in (0, 1):
            with self.subTest(ahead=ahead), scratch_folder():
                loader = DataLoader(TensorDataset(X, Y), 8, num_workers=2)
                run = trainyard.start(model := network(), optimizer := torch.optim.SGD(model.parameters(), lr=0.1), loader=loader)
                for epoch in run.epochs(2):
                    waiting = collections.deque()
                    for i, batch in enumerate(loader):
                        waiting.append(batch)
                        if len(waiting) > ahead:
                            self.step(model, optimizer, *waiting.popleft())
                        if i == 2:
                            with torch.no_grad():
                                for x, _ in loader:
                                    model(x)
                    while waiting:
                        self.step(model, optimizer, *waiting.popleft())
                run.finish()
                found = [record["batches"] for record in self.records() if record["type"] == "epoch"]
                self.assertEqual(found, [order_of([range(i, i + 8) for i in range(0, 40, 8)])] * 2)

    def test_a_part_of_the_training_can_end_within_a_pass(self):
        loader = DataLoader(TensorDataset(X, Y), 4)
        run = trainyard.start(model := network(), optimizer := torch.optim.SGD(model.parameters(), lr=0.1), loader=loader)
        waiting = collections.deque()
        for i, batch in enumerate(loader):
            waiting.append(batch)
            if i > 0:
                self.step(model, optimizer, *waiting.popleft())
            if i == 4:
                run.end_epoch(1)
        self.step(model, optimizer, *waiting.popleft())
        run.end_epoch(2)
        run.finish()
        found = [record["batches"] for record in self.records() if record["type"] == "epoch"]
        steps = [range(i, i + 4) for i in range(0, 40, 4)]
        self.assertEqual(found, [order_of(steps[:4]), order_of(steps[4:])])

    def test_a_script_that_reads_ahead_has_the_same_order(self):
        loader = DataLoader(TensorDataset(X, Y), 8)
        run = trainyard.start(model := network(), optimizer := torch.optim.SGD(model.parameters(), lr=0.1), loader=loader)
        for _ in run.epochs(1):
            waiting = collections.deque()
            for batch in loader:
                waiting.append(batch)
                if len(waiting) == 3:
                    self.step(model, optimizer, *waiting.popleft())
            while waiting:
                self.step(model, optimizer, *waiting.popleft())
        run.finish()
        self.assertEqual(self.records()[1]["batches"], order_of([range(i, i + 8) for i in range(0, 40, 8)]))

    def test_a_batch_that_the_script_leaves_out_makes_the_order_unknown(self):
        count = [0]

        def step(model, optimizer, x, y):
            count[0] += 1
            if count[0] != 3:
                self.step(model, optimizer, x, y)
        self.lacks(self.train(step=step), "batches")

    def test_samples_from_elsewhere_make_the_order_unknown(self):
        def step(model, optimizer, x, y):
            self.step(model, optimizer, torch.cat([x, x + 1]), torch.cat([y, y]))
        self.lacks(self.train(step=step), "batches", "global_batch")

    def test_several_passes_of_one_batch_are_one_step(self):
        def step(model, optimizer, x, y):
            model(x)
            self.step(model, optimizer, x, y)
        start = self.train(step=step)
        self.assertEqual((start["global_batch"], start["observed"]["missing"]), (8, {}))

    def test_parts_of_a_batch_are_one_step(self):
        def step(model, optimizer, x, y):
            optimizer.zero_grad()
            for part in range(4):
                nn.functional.cross_entropy(model(x[part::4]), y[part::4]).backward()
            optimizer.step()
        start = self.train(step=step)
        self.assertEqual((start["global_batch"], start["observed"]["forward_passes_per_step"], start["observed"]["missing"]), (8, 4, {}))

    def test_batches_in_any_order_have_no_data_order(self):
        found, start = self.batches(DataLoader(TensorDataset(X, Y), 8, num_workers=2, in_order=False))
        self.assertEqual(found, [None])
        self.lacks(start, "batches")

    def test_other_loaders_are_named_by_content(self):
        class Own:
            def __iter__(self):
                yield from zip(X.split(8), Y.split(8))
        ids = samples.content_ids(X).tolist()
        found, start = self.batches(Own(), data=__file__)
        self.assertEqual(found, [order_of([[i % 2**64 for i in ids[k:k + 8]] for k in range(0, 40, 8)])])
        self.assertEqual(start["observed"]["missing"], {})

    def test_a_loader_gets_its_class_back(self):
        class Mine(DataLoader):
            pass
        loader, model = Mine(TensorDataset(X, Y), 8), network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        run = trainyard.start(model, optimizer, loader=loader)
        self.assertIsInstance(loader, Mine)
        self.assertEqual(len(list(copy.copy(loader))), 5)
        run.finish()
        self.step(model, optimizer, X, Y)
        self.assertFalse(model._forward_hooks or model._forward_pre_hooks or optimizer._optimizer_step_pre_hooks)
        self.assertIs(type(loader), Mine)
        self.assertEqual(len(list(copy.copy(loader))), 5)

    def test_a_forgotten_set_epoch_is_named(self):
        data = TensorDataset(X, Y)
        loader = DataLoader(data, 8, sampler=DistributedSampler(data, 1, 0))
        records = self.train(loader=loader, epochs=3, stated=False)
        (message,) = [record for record in records if record["type"] == "message"]
        self.assertRegex(message["text"], r"^observed_test\.py:\d+: set_epoch .* 0 of 3 epochs")

    def test_the_line_of_the_order_is_named(self):
        self.assertRegex(self.train(loader=DataLoader(TensorDataset(X, Y), 8, shuffle=True))["observed"]["order"],
                         r"^RandomSampler of observed_test\.py:\d+$")


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
        for fused in (False, True):
            with self.subTest(fused=fused), scratch_folder():
                first, epoch, start, end = self.scaled(fused)
                self.assertEqual((epoch["steps"], epoch["skipped_steps"]), (4, 1))
                self.assertEqual(epoch["batches"], order_of([range(i, i + 8) for i in range(0, 40, 8)]))
                self.assertEqual((start["precision"], start["observed"]["missing"]), ("bfloat16", {}))
                norm = start["observed"]["gradient_norms"][0]
                self.assertAlmostEqual(norm["local"] / norm["scaled_by"] / norm["at_step"], 1, delta=1e-3)

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
        epoch = self.train(step=step, stated=False)[1]
        self.assertEqual(epoch["steps"], 5)

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

    def test_a_loss_that_is_not_a_number_is_recorded(self):
        model = network()
        run = trainyard.start(model, torch.optim.SGD(model.parameters(), lr=0.1))
        run.add("loss", float("nan"), 8)
        run.end_epoch(1)
        run.finish()
        self.assertNotEqual(self.records()[1]["metrics"][0]["sum"], 0)


class TwoRanks(Recorded):
    def test_kinds_of_replicas_under_torchrun(self):
        environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1] / "python")}
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(HERE / "replicas.py")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        self.assertIn("ValueError: a bad sample", done.stderr)
        runs = {}
        for folder in pathlib.Path("trainyard-runs/runs").iterdir():
            ranks = [[json.loads(line) for line in (folder / f"attempt-1/rank-{rank}.records.jsonl").read_text().splitlines()]
                     for rank in (0, 1)]
            runs[ranks[0][1]["metrics"][0]["name"]] = ranks
        self.assertEqual(set(runs), {"alone", "ddp", "late", "fsdp1", "fsdp2", "unlike", "raised"}, done.stderr)
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
        self.lacks(last_start(runs["unlike"][0]), "batches")
        ends = [runs["raised"][rank][-1] for rank in (0, 1)]
        self.assertEqual([end["status"] for end in ends], ["failed", "failed"])
        self.assertEqual([end["reason"] for end in ends], ["peer_lost", "failed"])
        self.assertEqual(ends[1]["error"], "ValueError: a bad sample")


if __name__ == "__main__":
    unittest.main(verbosity=2)
