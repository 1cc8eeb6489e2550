"""Handles that nobody closes leave nothing behind."""

import gc
import io
import resource
import unittest

import torch

import addend

ALLOWED_GROWTH = 8 << 20


def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def live():
    gc.collect()
    return addend._native.debug_live(addend._native.HANDLE_ANY)


class LeakTest(unittest.TestCase):
    def check(self, count, work, kept=0):
        before = live() + kept
        grown = 0
        start = None
        for k in range(count):
            work(k)
            if k % (count // 10) == 0:
                gc.collect()
                if k >= count // 5:
                    start = resident() if start is None else start
                    grown = max(grown, resident() - start)
        self.assertEqual(live(), before)
        self.assertLess(grown, ALLOWED_GROWTH, "bytes, after the first fifth")

    @classmethod
    def setUpClass(cls):
        torch.manual_seed(0)
        cls.layer = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
        file = io.BytesIO()
        torch.jit.save(torch.jit.script(cls.layer), file)
        cls.file = file.getvalue()
        cls.x = torch.randn(3)

    def test_nothing_was_left_before(self):
        self.assertEqual(live(), 0)

    def test_decompositions_of_a_file(self):
        model = addend.load_model(self.file)

        def work(k):
            results = model.decompose(addend.Input(self.x, 0), preset="faithful")
            # In a cycle: only the collector finds it.
            forgotten = [results, results[0], results[0].components, results.explain()]
            forgotten.append(forgotten)

        self.check(10_000, work)

    def test_decompositions_of_a_live_model(self):
        model = addend.compile(self.layer)

        def work(k):
            forgotten = [model(addend.Input(self.x, 0)), model]
            forgotten.append(forgotten)

        self.check(10_000, work, kept=4)  # the model's handles of its parameters

    def test_loads(self):
        self.check(300, lambda k: addend.load_model(self.file)(addend.Input(self.x, 0)))

    def test_errors(self):
        def work(k):
            with self.assertRaises(addend.NotFound):
                addend.call("aten::no_such", addend.Composition([1.0]))
            with self.assertRaises(ZeroDivisionError):
                addend.compile(lambda x: 1 / 0)(addend.Input(self.x, 0))

        self.check(1000, work)

    def test_views(self):
        def work(k):
            tensor = addend.Composition.diagonal(torch.ones(64), 0).components
            views = [tensor.numpy(), tensor.torch(), tensor.memoryview(), addend.as_tensor(tensor.numpy())]
            tensor.close()
            views.append(views)

        self.check(2000, work)
