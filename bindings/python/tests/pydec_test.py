"""PyDec's names: the sample of variable tracing in its own spelling, and what docs/from_pydec.md says of Python."""

import re
import unittest

import torch

import addend
from addend import pydec

X = torch.tensor([0.6853, 0.1793, 0.2301, 0.4074])


class Model(torch.nn.Module):
    """The sample of variable tracing."""

    def __init__(self):
        super().__init__()
        self.linear1, self.linear2 = torch.nn.Linear(4, 5), torch.nn.Linear(5, 2)

    def forward(self, input):
        x1 = self.linear1(input)
        x2 = torch.nn.functional.relu(x1)
        out = self.linear2(x2)

        c_input = pydec.zeros(input.size(), c_num=input.size(-1))
        c_input = pydec.diagonal_init(c_input, input, dim=-1)

        c1 = self.linear1(c_input)
        c2 = torch.nn.functional.relu(c1)
        c_out = self.linear2(c2)

        self.traced = [(c_input, input), (c1, x1), (c2, x2), (c_out, out)]
        return out, c_out


class VariableTracingTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def test_compositions_correspond_to_tensors(self):
        model = Model()
        for input in (X, torch.rand(4)):
            out, c_out = model(input)
            for c, x in model.traced:
                self.assertEqual(c.numc, 4)
                self.assertTrue(torch.all((c.recovery - x).abs() < 1e-6))
                self.assertTrue(torch.equal(c.value.torch(), x), "what the operator computed, to the bit")
            self.assertTrue((model.traced[0][0].recovery == input).all())
            assert torch.all((c_out.recovery - out).abs() < 1e-6)

    def test_masked_fill(self):
        c = pydec.diagonal_init(pydec.zeros(X.size(), c_num=4), X, dim=-1)
        for number in (1.0, 0.0):  # the first fails in PyDec
            filled = pydec.masked_fill(c, c > 0.2, number)
            self.assertTrue((filled.recovery == X.masked_fill(X > 0.2, number)).all())

    def test_failures_are_absorbed(self):
        # A failure is what a policy that looks away lets pass: here a reference run that gave other numbers.
        c2 = pydec.diagonal_init(pydec.zeros(X.size(), c_num=4), X, dim=-1)
        ref = X + torch.tensor([0.0, 0.1, 0.0, -0.2])
        self.assertFalse(torch.all((c2.recovery - ref).abs() < 1e-6))

        c2.residual[:] += ref - c2.recovery

        self.assertTrue(torch.all((c2.recovery - ref).abs() < 1e-6))
        self.assertTrue(torch.equal(c2.components.torch(), torch.diag(X)))


class NamesTest(unittest.TestCase):
    def test_compositions_are_made(self):
        size = torch.Size((2, 3))
        for made in (pydec.Composition(size, 4), pydec.zeros(2, 3, c_num=4), pydec.zeros((2, 3), c_num=4)):
            self.assertEqual((pydec.size(made), pydec.numc(made), pydec.numel(made)), (size, 4, 6))
            self.assertEqual(pydec.c_size(made), (4, 2, 3))
            self.assertTrue(torch.equal(made.components.torch(), torch.zeros(4, 2, 3)))
        self.assertEqual(pydec.zeros(2, c_num=3, dtype=torch.float64).dtype, "float64")
        c = pydec.Composition(torch.diag(X), torch.ones(4))
        self.assertTrue(torch.equal(pydec.c_sum(c).torch(), X + 1))
        self.assertTrue(torch.equal(pydec.Composition(list(torch.diag(X))).recovery.torch(), X))
        for copy in (pydec.Composition(c), pydec.clone(c)):
            self.assertIsNot(copy, c)
            self.assertTrue(torch.equal(copy.components, c.components))
        self.assertEqual(pydec.zeros_like(c).numc, 4)
        self.assertFalse(pydec.zeros_like(c).recovery.torch().any())
        self.assertTrue(pydec.as_composition(torch.diag(X)).requires_grad)

    def test_diagonals(self):
        x = torch.arange(1.0, 7).view(2, 3)
        c = pydec.diagonal_init(pydec.Composition(x.size(), 5), x, dim=1, offset=-2)
        for component in range(5):
            expected = torch.zeros(2, 3)
            if component >= 2:
                expected[:, component - 2] = x[:, component - 2]
            self.assertTrue(torch.equal(c.component(component).torch(), expected))
        with self.assertRaisesRegex(ValueError, "narrow src along dim 1"):
            pydec.diagonal_init(c, x, dim=1, offset=1)
        with self.assertRaisesRegex(ValueError, r"src has shape \[3\], the composition \[2, 3\]"):
            pydec.diagonal_init(c, x[0])

    def test_components(self):
        c = pydec.Composition(torch.diag(X), torch.ones(4))
        d = pydec.c_cat([c, c])
        self.assertEqual(d.numc, 8)
        self.assertTrue(torch.equal(d.recovery.torch(), 2 * X + 2))
        self.assertTrue(torch.equal(pydec.c_cat([c, c], sum_residual=False).recovery.torch(), 2 * X))
        self.assertTrue(torch.equal(pydec.c_stack(torch.diag(X)).recovery.torch(), X))
        for applied in (pydec.c_apply(c, lambda rows: rows[:, :2] * 3), pydec.c_map(c, lambda part: part[:2] * 3)):
            self.assertEqual(applied.numc, 4)
            torch.testing.assert_close(applied.recovery.torch(), 3 * X[:2] + 3)

    def test_policies(self):
        c = pydec.Composition(torch.diag(X), torch.ones(4))
        with pydec.using_decomposition_func("abs_affine") as context:
            self.assertEqual(context.policy["nonlinearity"], "abs_affine")
            own = pydec.relu(c)
        self.assertTrue(torch.equal(own.components, c.relu(context=context).components))
        with pydec.using_bias_decomposition_func("hybrid_decomposition_threshold") as context:
            self.assertTrue(context.policy["bias"].startswith("hybrid_threshold"))
        with pydec.no_bias_decomposition() as context:
            self.assertEqual(context.policy["bias"], "residual")

    def test_other_names_are_pytorchs(self):
        self.assertIs(pydec.round, torch.round)
        self.assertIs(pydec.gelu, torch.nn.functional.gelu)
        with self.assertRaisesRegex(AttributeError, "'nothing'"):
            pydec.nothing

    def test_page(self):
        """Every name that the page has for Python exists, and takes the arguments that are shown."""
        with open("docs/from_pydec.md", encoding="utf-8") as file:
            text = file.read().partition("\n## In Python\n")[2]
        c = pydec.Composition(torch.diag(X), torch.ones(4))
        names = {
            "addend": addend, "pydec": pydec, "torch": torch, "c": c, "x": X, "d": c, "model": torch.nn.Linear(4, 2),
            "components": torch.diag(X), "residual": torch.ones(4), "function": lambda t: 2 * t, "mask": X > 0.2,
            "labels": torch.tensor([0, 0, 1, -1]), "error": torch.ones(4),
        }  # fmt: skip
        rows = [line for line in text.splitlines() if line.startswith("|`")]
        self.assertGreater(len(rows), 25)
        for row in rows:
            for code in re.findall(r"`([^`]*)`", row.strip("|").split("|")[1]):
                with self.subTest(code):
                    exec(code, dict(names, c=pydec.clone(c)))


if __name__ == "__main__":
    unittest.main()
