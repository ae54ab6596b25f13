"""data_order_test.py: what the recorder observes of the data, and that it states no order that it did not see."""
import collections
import copy
import secrets
import time
import unittest

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler, TensorDataset

from recording import Recorded, Stream, X, Y, last_start, network, order_of, scratch_folder

import trainyard
from trainyard import samples


class Drawn(Dataset):
    """Adds noise to each sample: from torch, or from a source that has no seed."""

    def __init__(self, seeded):
        self.seeded = seeded

    def __len__(self):
        return len(X)

    def __getitem__(self, i):
        noise = torch.rand(()) if self.seeded else torch.tensor(secrets.randbelow(1000) / 1000)
        return X[i] + noise, Y[i]


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

    def test_a_sampler_that_repeats_samples_is_stated(self):
        data = TensorDataset(X, Y)
        for ranks, stated in ((3, "distributed"), (2, None)):
            with self.subTest(ranks=ranks), scratch_folder():
                loader = DataLoader(data, 4, sampler=DistributedSampler(data, ranks, 0))
                self.assertEqual(self.train(loader=loader).get("sampler"), stated)

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
        self.assertRegex(message["text"], r"^data_order_test\.py:\d+: set_epoch .* 0 of 3 epochs")

    def test_the_line_of_the_order_is_named(self):
        self.assertRegex(self.train(loader=DataLoader(TensorDataset(X, Y), 8, shuffle=True))["observed"]["order"],
                         r"^RandomSampler of data_order_test\.py:\d+$")


if __name__ == "__main__":
    unittest.main(verbosity=2)
