"""docs/from_captum.md: its programs run, its names exist, and its numbers are those of both sides."""

import os
import sys
import unittest

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import formulas  # noqa: E402
import page  # noqa: E402

TARGET = 1
# Half a unit in the last place of what the page shows, and float32.
SHOWN = 6e-5


def by_formula(name, network, x, baseline):
    """What Captum's class computes with its defaults: contributions, and their sum minus what it should be."""
    network = network.double()
    x, baseline = x.double(), baseline.double()
    start = baseline
    if name == "DeepLift":
        found = formulas.rescale(network, x, baseline, TARGET)
    elif name == "IntegratedGradients":
        found = formulas.integrated_gradients(network, x, baseline, TARGET, 50)
    elif name == "InputXGradient":
        found, start = formulas.input_times_gradient(network, x, TARGET), torch.zeros_like(x)
    elif name == "ShapleyValues":
        found = formulas.shapley(network, x, baseline, TARGET)
    else:
        assert name == "FeatureAblation", name
        found = formulas.ablation(network, x, baseline, TARGET)
    moved = formulas.output(network, x, TARGET) - formulas.output(network, start, TARGET)
    return found, found.sum() - moved[0]


class CaptumPageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.page = page.Page("docs/from_captum.md")

    def test_numbers(self):
        names = self.page.names
        rows = self.page.rows()
        self.assertEqual(len(rows), 5)
        for method, formula, formula_delta, ours, our_delta, call in rows:
            with self.subTest(method):
                found, delta = eval(call.strip("`"), names)
                network = torch.nn.Sequential(*names["network"])
                expected, expected_delta = by_formula(method.strip("`"), network, names["x"], names["baseline"])
                network.float()
                rows_of = {
                    "formula": (expected, formula), "formula's delta": ([expected_delta], formula_delta),
                    "Addend": (found[0], ours), "Addend's delta": (delta.reshape(-1), our_delta),
                }
                for what, (computed, shown) in rows_of.items():
                    self.assertEqual(len(page.numbers(shown)), len(computed), "%s: %s" % (what, page.told(computed)))
                    for one, two in zip(computed, page.numbers(shown)):
                        self.assertAlmostEqual(float(one), two, delta=SHOWN, msg="%s: %s" % (what, page.told(computed)))
                # Both are the same method.
                torch.testing.assert_close(found[0].double(), expected.double(), atol=1e-4, rtol=0)
                self.assertAlmostEqual(float(delta), float(expected_delta), delta=1e-4)

    def test_the_first_call_is_complete(self):
        self.assertLess(abs(float(self.page.names["delta"])), 1e-6)

    def test_names(self):
        snippets = self.page.snippets()
        self.assertGreater(len(snippets), 15)
        for snippet in snippets:
            self.assertEqual(page.unknown_names(snippet), [], snippet)
        self.assertEqual(page.unknown_names("addend.nothing(x, no_option=1)"), ["addend.nothing", "no_option="])


if __name__ == "__main__":
    unittest.main()
