"""batches_test.py: run.batches() gives each number of ranks the same samples in each step."""
import unittest

import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, DistributedSampler, RandomSampler, TensorDataset, WeightedRandomSampler

from recording import Numbered, Recorded, Stream, X, Y, last_start, network, order_of, scratch_folder

import trainyard
from trainyard import batches


def steps_of(loaders):
    """The samples of each step by the loaders of all ranks."""
    return [sum((part.tolist() for part in parts), []) for parts in zip(*loaders, strict=True)]


def divided(world, seed=1, epoch=lambda: 0, **options):
    loaders = [DataLoader(Numbered(), 8, **{"shuffle": True, **options}) for _ in range(world)]
    for rank, loader in enumerate(loaders):
        batches.divide(loader, seed, rank, world, epoch)
    return loaders


class Division(unittest.TestCase):
    def test_each_number_of_ranks_has_the_same_steps_in_the_same_order(self):
        whole = steps_of(divided(1))
        self.assertEqual(sorted(sum(whole, [])), list(range(40)))
        for world in (2, 4, 8):
            self.assertEqual(steps_of(divided(world)), whole)
        self.assertEqual(steps_of(divided(2, num_workers=1, persistent_workers=True)), whole)
        self.assertEqual(steps_of(divided(2, shuffle=False)), [list(range(i, i + 8)) for i in range(0, 40, 8)])

    def test_seeds_epochs_and_passes_have_other_orders(self):
        epoch = [0]
        loaders = divided(2, epoch=lambda: epoch[0])
        orders = [steps_of(loaders), steps_of(loaders)]
        for epoch[0] in (1, 2):
            orders.append(steps_of(loaders))
        orders.append(steps_of(divided(2, seed=2)))
        self.assertEqual(len({str(order) for order in orders}), 5)
        epoch[0] = 1
        self.assertEqual(steps_of(divided(1, epoch=lambda: epoch[0])), orders[2])

    def test_an_incomplete_last_batch_is_left_out_and_named(self):
        loader = DataLoader(Numbered(), 12, shuffle=True)
        self.assertRegex(batches.divide(loader, 1, 0, 1, lambda: 0), "last batch: 4 of 40 samples")
        self.assertEqual((len(loader), len(list(loader))), (3, 3))
        self.assertEqual(batches.divide(DataLoader(Numbered(), 12, drop_last=True), 1, 0, 1, lambda: 0), "")

    def test_what_cannot_be_divided_has_one_clear_error(self):
        class NoLength(Dataset):
            def __getitem__(self, i):
                return i
        data = Numbered()
        for loader, world, text in (
                (DataLoader(Stream(), 8), 1, "no index or no length"),
                (DataLoader(NoLength(), 8, sampler=range(16)), 1, "no index or no length"),
                (DataLoader(data, batch_sampler=[[1, 2], [3, 4]]), 1, "a batch sampler of its own"),
                (DataLoader(data, batch_size=None), 1, "a batch sampler of its own, or none"),
                (DataLoader(data, 8, sampler=DistributedSampler(data, 2, 0)), 2, "has a DistributedSampler of its own"),
                (DataLoader(data, 8, sampler=WeightedRandomSampler([1.0] * 40, 40)), 1, "has a WeightedRandomSampler"),
                (DataLoader(data, 8, sampler=RandomSampler(data, num_samples=16)), 1, "has a RandomSampler of its own"),
                (DataLoader(data, 9), 2, "a batch of 9 samples has no equal parts for 2 ranks; use a multiple of 2"),
                (DataLoader(data, 64), 2, "40 samples are less than one batch")):
            with self.subTest(text), self.assertRaisesRegex(ValueError, text):
                batches.divide(loader, 1, 0, world, lambda: 0)
        with self.assertRaisesRegex(TypeError, "needs a DataLoader of torch, and got a list"):
            batches.divide([1, 2], 1, 0, 1, lambda: 0)


class Calls(Recorded):
    def trained(self, known, once):
        """The records of two epochs. known: start() gets the loader, once: it is divided before the epochs."""
        torch.manual_seed(7)
        loader, model = DataLoader(TensorDataset(X, Y), 8, shuffle=True), network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        run = trainyard.start(model, optimizer, loader=loader if known else None)
        divided = run.batches(loader) if once else None
        for _ in run.epochs(2):
            for x, y in divided or run.batches(loader):
                self.step(model, optimizer, x, y)
        run.finish()
        return self.records()

    def test_the_loader_can_be_divided_at_once_or_in_each_epoch(self):
        orders = []
        for known, once in ((False, False), (True, True)):
            with self.subTest(known=known), scratch_folder():
                records = self.trained(known, once)
                start = last_start(records)
                self.assertEqual((start["observed"]["missing"], start["global_batch"]), ({}, 8))
                self.assertRegex(start["observed"]["order"], r"^GlobalBatches with seed \d+ of batches_test\.py:\d+$")
                orders.append([record["batches"] for record in records if record["type"] == "epoch"])
                self.assertNotEqual(*orders[-1])
                self.assertEqual(start["data_fingerprint"], trainyard.samples.dataset_fingerprint(TensorDataset(X, Y))[0])

    def test_a_seed_of_the_run_gives_the_order(self):
        model = network()
        torch.manual_seed(5)
        run = trainyard.start(model, torch.optim.SGD(model.parameters(), lr=0.1))
        loader = run.batches(DataLoader(TensorDataset(torch.arange(40.0)[:, None]), 8, shuffle=True))
        order = [part[0].flatten().int().tolist() for part in loader]
        other = DataLoader(Numbered(), 8, shuffle=True)
        batches.divide(other, run.info["seed"], 0, 1, lambda: 0)
        self.assertEqual(order_of(order), order_of(steps_of([other])))
        with self.assertRaisesRegex(ValueError, "another DataLoader than"):
            run.batches(other)
        run.finish()

    def test_a_rest_is_a_message(self):
        model = network()
        run = trainyard.start(model, torch.optim.SGD(model.parameters(), lr=0.1))
        run.batches(DataLoader(TensorDataset(X, Y), 16))
        run.finish()
        self.assertIn("last batch: 8 of 40", [record for record in self.records() if record["type"] == "message"][0]["text"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
