"""Explanations, attributions and tensors are values: they are compared, copied, and sent to other processes."""

import builtins
import concurrent.futures
import copy
import multiprocessing
import os
import pickle
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import torch
from torch import nn

import addend


def network():
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


NETWORK = network()
ROWS = torch.rand(6, 3)


def source(row):
    return addend.Input(ROWS[row : row + 1], dims=1, baseline=0, names=["red", "green", "blue"])


def explain(row):
    """Explains a row, in a worker of a pool."""
    return addend.compile(NETWORK).explain(source(row), targets="1-0")


# A program that explains in a process of its own, and sends back what it has found.
PROGRAM = """
import pickle, sys
import torch
import addend

given = pickle.load(open(sys.argv[1], "rb"))
found = addend.compile(given["model"]).explain(addend.Input(given["row"], dims=1, baseline=0), targets=[0, 1])
pickle.dump({"found": found, "same": given["found"], "tensor": given["tensor"]}, open(sys.argv[2], "wb"))
"""


class ValuesTest(unittest.TestCase):
    def test_pages_are_written_and_framed(self):
        found = explain(0)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "page.html")
            for one in (found, found[0]):
                page = one.to_html(path)
                with open(path, encoding="utf-8", newline="") as file:
                    self.assertEqual(file.read(), page)
                # The page draws its figures by a script.
                self.assertIn('sandbox="allow-scripts"', one._repr_html_())

    def roads(self, value):
        yield "pickle", pickle.loads(pickle.dumps(value))
        yield "pickle twice", pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(value, protocol=2))))
        yield "copy", copy.copy(value)
        yield "deepcopy", copy.deepcopy(value)

    def test_explanations(self):
        explanation, other = explain(0)[0], explain(1)[0]
        self.assertNotEqual(explanation, other)
        self.assertNotEqual(explanation, "text")
        self.assertEqual(explanation, explain(0)[0])
        self.assertEqual(len({explanation, other, explain(0)[0]}), 2)
        for road, same in self.roads(explanation):
            with self.subTest(road):
                self.assertEqual(same, explanation)
                self.assertEqual(same.to_html(), explanation.to_html())
                self.assertEqual(same.to_svg(), explanation.to_svg())
                same.close()
                self.assertNotEqual(same, explanation)
        self.assertFalse(explanation.closed)

    def test_numbers_that_are_none_are_equal_to_themselves(self):
        broken = addend.Composition(torch.tensor([[float("nan")], [1.0]])).explain(0)
        self.assertEqual(broken, pickle.loads(pickle.dumps(broken)))

    def test_attributions(self):
        model = addend.compile(NETWORK)
        asked = {
            "targets": {"targets": [(0, 0), "0,1-0,0"]},
            "examples": {"targets": [0, 1, 1, 0, 1, 0], "each_example": True},
            "operators": {"targets": "0,1", "operators": True},
            "inside": {"targets": "0,1", "inside": addend.Inside("0", dims=1)},
        }
        for name, options in asked.items():
            given = ROWS if "inside" in options else addend.Input(ROWS, dims=1, baseline=0)
            found = model.explain(given, verify_reference="inside" not in options, **options)
            other = model.explain(addend.Input(ROWS, dims=1, baseline=0), targets=(1, 1))
            self.assertNotEqual(found, other)
            for road, same in self.roads(found):
                with self.subTest(name, road=road):
                    self.assertEqual(same, found)
                    self.assertEqual(hash(same), hash(found))
                    self.assertEqual(list(same), list(found))
                    self.assertEqual(same[-1], found[-1])
                    self.assertEqual([one.to_dict() for one in same], [one.to_dict() for one in found])
                    self.assertEqual([one.to_html() for one in same], [one.to_html() for one in found])
                    self.assertEqual(same.to_dict(), found.to_dict())
                    self.assertEqual(same.to_html(), found.to_html())
                    self.assertEqual(same.leftovers, found.leftovers)
                    self.assertEqual(same.operators, found.operators)
                    self.assertEqual(same.report, found.report)
                    self.assertEqual(same.notes, found.notes)
                    for key in ("operators", "backward", "reference_error", "worst_bracket", "nothing"):
                        np.testing.assert_equal(same.number(key), found.number(key))
                    np.testing.assert_array_equal(same.value, found.value)
                    for one, two in zip(same.inputs + same.inside, found.inputs + found.inside):
                        np.testing.assert_array_equal(one, two) if one is not None else self.assertIsNone(two)
                    self.assertEqual(repr(same), repr(found))
                    self.assertIn("</html>", same.to_html())
                    with self.assertRaises(IndexError):
                        same[len(same)]
                    same.close()
            self.assertFalse(found.closed)
            self.assertEqual(found.value.shape, (6, 2))  # closing a copy closed nothing of it

    def test_of_plain_inputs(self):
        found = addend.compile(lambda x, y: x * y).explain(addend.Input(ROWS, 1), ROWS, targets=(0, 0))
        same = pickle.loads(pickle.dumps(found))
        self.assertEqual(same, found)
        self.assertIsNone(same.inputs[1])

    def test_tensors(self):
        tensors = [
            torch.rand(2, 3), torch.rand(3, 2).t(), torch.rand(0, 3), torch.tensor(2.5), torch.rand(2).bfloat16(),
            torch.rand(2).half(), torch.arange(3), torch.tensor([True, False]), torch.rand(2, dtype=torch.complex64),
        ]
        for tensor in tensors:
            before = addend.as_tensor(tensor)
            for road, same in self.roads(before):
                with self.subTest(road, dtype=str(tensor.dtype), shape=tuple(tensor.shape)):
                    self.assertEqual((same.dtype, same.shape), (before.dtype, before.shape))
                    self.assertTrue(torch.equal(same.torch(), tensor))

    def test_what_stays_in_its_process_says_what_to_send(self):
        results = addend.compile(NETWORK).decompose(source(0))
        program = addend.compile(NETWORK).record(ROWS)
        for value, way in (
            (results, "a Results belongs to its process and is not pickled: send an explanation"),
            (results[0], "a Composition .*: send an explanation of it, or its parts as arrays"),
            (program, r"a Program .*: save\(\) it, and load it"),
            (program.model(), "a Model .*: load it where it is used; threads may share one"),
            (addend.Context(preset="fast"), "a Context .*: make it where it is used"),
        ):
            with self.assertRaisesRegex(TypeError, way):
                pickle.dumps(value)
            twin = copy.deepcopy(value)  # which shares what never changes
            self.assertIs(type(twin), type(value))
            self.assertFalse(twin.closed)
        np.testing.assert_array_equal(copy.deepcopy(results[0]).components, results[0].components)
        self.assertEqual(copy.copy(results).notes, results.notes)

    def test_copies_close_by_themselves(self):
        tensor = addend.as_tensor(ROWS)
        with addend.scope():
            twin = copy.copy(tensor)
        self.assertTrue(twin.closed)
        self.assertEqual(tensor.shape, (6, 3))

    def test_traced_models_travel(self):
        model = addend.compile(NETWORK, preset="fast")
        expected = model.explain(source(0), targets=1)
        for road, same in self.roads(model):
            with self.subTest(road):
                self.assertEqual(same.explain(source(0), targets=1), expected)

    def test_a_pool_returns_them(self):
        expected = [explain(row) for row in range(4)]
        # Children of a fork find this file and its models as they are.
        with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
            self.assertEqual(list(pool.map(explain, range(4), timeout=120)), expected)

    def test_another_process_returns_them(self):
        found = addend.compile(NETWORK).explain(source(2), targets=[0, 1])
        with tempfile.TemporaryDirectory() as folder:
            given, taken = os.path.join(folder, "given"), os.path.join(folder, "taken")
            with open(given, "wb") as file:
                tensor = addend.as_tensor(ROWS)
                pickle.dump({"model": NETWORK, "row": ROWS[2:3], "found": found, "tensor": tensor}, file)
            subprocess.run([sys.executable, "-c", PROGRAM, given, taken], check=True, timeout=120)
            with open(taken, "rb") as file:
                back = pickle.load(file)
        self.assertEqual(back["same"], found)
        np.testing.assert_array_equal(back["tensor"], ROWS)
        for one, two in zip(back["found"], found):
            self.assertEqual(one.value, two.value)
            self.assertEqual(one.contributions, two.contributions)


class NamesTest(unittest.TestCase):
    def test_a_star_leaves_python_its_own_names(self):
        names = {"__builtins__": builtins}
        exec("from addend import *", names)
        self.assertEqual([name for name in names if name in vars(builtins)], [])
        self.assertIn("Input", names)
        self.assertNotIn("compile", names)
        self.assertTrue(callable(addend.compile))


if __name__ == "__main__":
    unittest.main()
