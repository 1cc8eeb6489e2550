"""docs/from_shap.md: its programs run, its names exist, and its numbers are those of both sides."""

import os
import re
import sys
import unittest

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import formulas  # noqa: E402
import page  # noqa: E402

TARGET = 1
# Half a unit in the last place of what the page shows, and float32.
SHOWN = 6e-5


def by_formula(name, network, x, background):
    """What SHAP's class converges to: the mean over the rows of the background."""
    rows = [row[None] for row in background]
    if name == "DeepExplainer":  # Lundberg, Lee 2017: DeepLIFT, averaged
        found = [formulas.rescale(network, x, row, TARGET) for row in rows]
    elif name == "GradientExplainer":  # expected gradients (Erion et al. 2021), without their sampling
        found = [formulas.integrated_gradients(network, x, row, TARGET, 200) for row in rows]
    else:  # the Shapley values of the mean over the background are the mean of those of its rows
        assert name == "ExactExplainer", name
        found = [formulas.shapley(network, x, row, TARGET) for row in rows]
    return torch.stack(found).mean(0)


class ShapPageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.page = page.Page("docs/from_shap.md")

    def test_numbers(self):
        names = self.page.names
        rows = self.page.rows()
        self.assertEqual(len(rows), 3)
        network = torch.nn.Sequential(*names["network"])
        for explainer, formula, ours, call in rows:
            with self.subTest(explainer):
                found = eval(call.strip("`"), names)
                network.double()
                x, background = names["x"].double(), names["background"].double()
                expected = by_formula(explainer.split("`")[1], network, x, background)
                moved = formulas.output(network, x, TARGET) - formulas.output(network, background, TARGET).mean()
                network.float()
                self.assertAlmostEqual(float(expected.sum()), float(moved), places=7)
                for what, computed, shown in (("formula", expected, formula), ("Addend", found, ours)):
                    self.assertEqual(len(page.numbers(shown)), len(computed), "%s: %s" % (what, page.told(computed)))
                    for one, two in zip(computed, page.numbers(shown)):
                        self.assertAlmostEqual(float(one), two, delta=SHOWN, msg="%s: %s" % (what, page.told(computed)))
                torch.testing.assert_close(found.double(), expected, atol=1e-4, rtol=0)

    def test_calls_of_explainers(self):
        names = dict(self.page.names, target=TARGET)
        x, background = names["x"], names["background"]
        table = self.page.text.split("## Explainers")[1].split("##")[0]
        calls = dict(re.findall(r"^\| `(\w+Explainer)`.*? \| `([^`]*background[^`]*)` \|", table, re.MULTILINE))
        self.assertEqual(
            sorted(calls), ["DeepExplainer", "GradientExplainer", "KernelExplainer", "LinearExplainer"])
        for name in ("DeepExplainer", "GradientExplainer"):
            with self.subTest(name):
                found = eval(calls[name], dict(names, model=names["network"]))
                network = torch.nn.Sequential(*names["network"]).double()
                expected = by_formula(name, network, x.double(), background.double())
                names["network"].float()
                torch.testing.assert_close(found.double(), expected, atol=1e-3, rtol=0)
        linear = torch.nn.Linear(3, 1)
        formula = (linear.weight * (x - background.mean(0))).detach()
        torch.testing.assert_close(eval(calls["LinearExplainer"], dict(names, model=linear)), formula)
        found = eval(calls["KernelExplainer"], dict(names, model=linear, target=0))
        torch.testing.assert_close(found, formula[0])

    def test_names(self):
        snippets = self.page.snippets()
        self.assertGreater(len(snippets), 10)
        for snippet in snippets:
            self.assertEqual(page.unknown_names(snippet), [], snippet)


if __name__ == "__main__":
    unittest.main()
