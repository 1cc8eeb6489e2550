"""docs/from_shap.md: its programs run, its names exist, and its numbers are those of both sides."""

import os
import re
import sys
import unittest

import numpy
import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import formulas  # noqa: E402
import page  # noqa: E402

TARGET = 1
# Half a unit in the last place of what the page shows, and float32.
SHOWN = 6e-5


def by_formula(name, network, x, background):
    """The limit of SHAP's class: the mean over the rows of the background."""
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

    def test_additivity(self):
        names = self.page.names
        rows = {row[0].strip("`"): row[1:] for row in self.page.rows("additivity")}
        self.assertEqual(list(rows), list(names["layers"]))
        for name, layer in names["layers"].items():
            with self.subTest(name):
                sequence = name in ("LSTM", "TransformerEncoderLayer")
                value, background = [names[key] for key in (("steps", "backgrounds") if sequence else ("x", "background"))]
                with torch.no_grad():
                    moved = layer(value)[0, 0] - layer(background)[:, 0].mean()
                # DeepExplainer takes the gradient on the rows of the background where it has no rule.
                slopes = background.clone().requires_grad_()
                (slopes,) = torch.autograd.grad(layer(slopes)[:, 0].sum(), slopes)
                missed = (slopes * (value - background)).mean(0).sum() - moved
                ours = page.addend.attribute(layer, value.expand_as(background), background, 0).mean(0).sum() - moved
                self.assertLess(abs(ours), 1e-5)
                told = [page.numbers(cell)[0] for cell in rows[name]]
                for computed, shown in zip((moved, missed, ours), told):
                    self.assertAlmostEqual(float(computed), shown, delta=SHOWN, msg=page.told((moved, missed, ours)))
                self.assertGreater(abs(told[1]), 100 * abs(ours))

    def test_shap_draws_these_numbers(self):
        """Values of each row and its base value are additive, as shap.Explanation has it."""
        network, x = self.page.names["network"], torch.rand(5, 3)
        values, delta = page.addend.attribute(network, x, self.page.names["background"][:1], 1, None, True)
        with torch.no_grad():
            base_values = network(x)[:, 1] - values.sum(1)
            torch.testing.assert_close(base_values, network(self.page.names["background"][:1])[:, 1].expand(5))
        self.assertLess(delta.abs().max(), 1e-6)

    def test_explain_func_of_quantus(self):
        network = self.page.names["network"]
        explain_func = self.page.names["explain_func"]
        x, y = numpy.random.default_rng(0).normal(size=(4, 3)).astype("float32"), numpy.array([1, 0, 1, 1])
        # Metrics of Quantus call it by name, with the device among the options only if asked for.
        found = explain_func(model=network, inputs=x, targets=y, baselines=0.0)
        self.assertIsInstance(found, numpy.ndarray)
        self.assertEqual((found.shape, found.dtype), (x.shape, x.dtype))
        rows = [formulas.rescale(network.double(), torch.tensor(row)[None].double(), torch.zeros(1, 3).double(), int(target))
                for row, target in zip(x, y)]
        network.float()
        numpy.testing.assert_allclose(found, torch.stack(rows).numpy(), atol=1e-5)

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
