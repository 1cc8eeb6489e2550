"""Compositions: how they are made, asked and computed with, and how they end."""

import copy
import gc
import pickle
import threading
import unittest

import numpy as np
import torch

import addend
from addend import ops

X = torch.tensor([0.6853, 0.1793, 0.2301, 0.4074])


def live():
    gc.collect()
    return addend._native.debug_live(0)


class MakeTest(unittest.TestCase):
    def test_diagonal(self):
        composition = addend.Composition.diagonal(X, 0, baseline=torch.ones(4), offset=1, numc=6)
        expected = np.zeros((6, 4), np.float32)
        expected[1:5] = np.diag((X - 1).numpy())
        np.testing.assert_array_equal(composition.components, expected)
        np.testing.assert_array_equal(composition.reference, np.ones(4))
        self.assertEqual((composition.numc, composition.shape, composition.ndim), (6, (4,), 1))
        self.assertEqual((composition.dtype, composition.device), ("float32", "cpu"))

    def test_nobody_knows_what_a_program_gives_on_the_baseline(self):
        """The mask is that of the value, and the function has another one at zero: its reference there would be -1."""
        x = addend.Composition.diagonal(torch.tensor([0.25, 2.0]), 0)
        explanation = torch.where(x > 0.5, 3 * x, x - 1).explain("1")
        self.assertEqual(explanation.reference, 0)
        report = explanation.to_dict()["report"]
        self.assertEqual(report["reference_is_model_on_baseline"], "unknown")
        self.assertIn("one by one", report["reference_reason"])

    def test_diagonal_splits_along_dimensions(self):
        value = torch.randn(2, 3, 2)
        composition = addend.Composition.diagonal(value, (0, -1))
        self.assertEqual(composition.numc, 4)
        one = torch.zeros_like(value)
        one[1, :, 0] = value[1, :, 0]
        np.testing.assert_array_equal(composition.component(2), one)
        self.assertEqual(addend.Composition.diagonal(value).numc, 1)

    def test_labels_group_elements(self):
        composition = addend.Composition.from_labels(X, [1, 0, -1, 1], baseline=torch.full((4,), 0.5))
        np.testing.assert_allclose(composition.components, [[0, -0.3207, 0, 0], [0.1853, 0, 0, -0.0926]], atol=1e-6)
        np.testing.assert_allclose(composition.recovery, X)

    def test_parts_are_taken_as_given(self):
        composition = addend.Composition(np.float32([[1, 2], [3, 4]]), [10.0, 20.0], leftover=[0.5, 0.25])
        np.testing.assert_array_equal(composition.residual, [10.5, 20.25])
        np.testing.assert_array_equal(composition.recovery, [14.5, 26.25])
        np.testing.assert_array_equal(composition.value, composition.recovery)
        np.testing.assert_array_equal(composition.leftover, [0.5, 0.25])

    def test_components(self):
        composition = addend.Composition.diagonal(X, 0)
        np.testing.assert_array_equal(composition.component(-1), composition.component(3))
        for index in (4, -5):
            with self.assertRaisesRegex(IndexError, "of 4"):
                composition.component(index)
        some = composition.select_components([2, -1], with_residual=False)
        np.testing.assert_array_equal(some.components, composition.components.numpy()[[2, 3]])


class PrintTest(unittest.TestCase):
    def test_as_pydec_prints_it(self):
        self.assertEqual(
            repr(addend.Composition.diagonal(X, 0)),
            "composition 0:\n"
            "tensor([0.6853, 0.0000, 0.0000, 0.0000])\n"
            "composition 1:\n"
            "tensor([0.0000, 0.1793, 0.0000, 0.0000])\n"
            "composition 2:\n"
            "tensor([0.0000, 0.0000, 0.2301, 0.0000])\n"
            "composition 3:\n"
            "tensor([0.0000, 0.0000, 0.0000, 0.4074])\n"
            "residual:\n"
            "tensor([0., 0., 0., 0.])",
        )

    def test_notebooks(self):
        html = addend.Composition.diagonal(X, 0)._repr_html_()
        self.assertEqual(html.count("<tr>"), 7)
        self.assertIn("tensor([0.0000, 0.1793, 0.0000, 0.0000])", html)
        large = addend.Composition.diagonal(torch.zeros(100, 100), 0)._repr_html_()
        self.assertEqual(large, "<p>composition of 100 components, float32[100, 100]</p>")
        page = addend.Composition.diagonal(X, 0).explain()._repr_html_()
        self.assertTrue(page.startswith("<iframe srcdoc="))
        self.assertNotIn("<script", page, "the page has to be quoted")


class ExplainTest(unittest.TestCase):
    def test_explanations_are_sums(self):
        composition = addend.Composition([[1.0, -4.0], [2.0, 0.5]], [10.0, 1.0], [0.25, 0.0])
        explanation = composition.explain(0)
        self.assertEqual(explanation.target, "[0]")
        self.assertEqual(explanation.contributions, [1, 2])
        self.assertEqual((explanation.reference, explanation.leftover, explanation.value), (10, 0.25, 13.25))
        self.assertEqual((explanation.recovery, explanation.recovery_error), (13.25, 0))
        self.assertEqual(explanation.mass, 13.25)
        self.assertEqual(composition.explain().target, "[0]")
        difference = composition.explain("1-0")
        self.assertEqual(difference.contributions, [-5, -1.5])
        self.assertEqual([c.component for c in difference.top()], [0, 1])
        self.assertEqual([c.value for c in composition.explain((0,)).top(1)], [2])
        (target,) = difference.to_dict()["targets"]
        self.assertEqual((target["value"], target["contributions"]), (difference.value, difference.contributions))

    def test_repr_adds_up(self):
        explanation = addend.Composition(np.arange(1.0, 12.0, dtype=np.float32)[:, None], [100.0]).explain()
        lines = repr(explanation).splitlines()
        self.assertEqual(lines[0], "[0] = 166")
        self.assertAlmostEqual(sum(float(line.split()[0]) for line in lines[1:]), 166, places=4)
        self.assertIn("3 more", lines[9])

    def test_repr_warns_of_parts_that_cancel(self):
        def shown(parts, reference):
            return repr(addend.Composition(np.array(parts, np.float32)[:, None], [reference]).explain())

        self.assertIn("WARNING: without their signs these parts come to 2e+04 times", shown([10000, -9999], 0.0))
        self.assertIn("infinitely many times", shown([1, -1], 5.0))
        # A large reference takes nothing from the parts beside it.
        self.assertNotIn("WARNING", shown([1, 2], 1e6))
        self.assertNotIn("WARNING", shown([0, 0], 1e6))


class OperatorsTest(unittest.TestCase):
    """Operators on a composition recover what PyTorch computes on its recovery."""

    def setUp(self):
        torch.manual_seed(3)
        self.value = torch.rand(3, 4)
        self.x = addend.Composition.diagonal(self.value, -1)

    def check(self, composition, expected):
        np.testing.assert_allclose(composition.recovery, expected, rtol=1e-5, atol=1e-5)

    def test_arithmetic(self):
        x, v, t = self.x, self.value, torch.rand(3, 4)
        self.check(x + 1, v + 1)
        self.check(1 + x, v + 1)
        self.check(x + t, v + t)
        self.check(t.numpy() + x, v + t)
        self.check(x - t, v - t)
        self.check(2 - x, 2 - v)
        self.check(t.numpy() - x, t - v)
        self.check(x * x, v * v)
        self.check(3 * x, 3 * v)
        self.check(x / 4, v / 4)
        self.check(2 / (x + 1), 2 / (v + 1))
        self.check(x @ t.t(), v @ t.t())
        self.check(t.t().numpy() @ x, t.t() @ v)
        self.check(x**2, v**2)
        self.check(-x, -v)
        self.check(abs(-x), v)
        self.check(+x, v)

    def test_methods_and_functions(self):
        x, v = self.x, self.value
        self.check(x.softmax(-1), v.softmax(-1))
        self.check(x.layer_norm([4]), torch.layer_norm(v, [4]))
        self.check(x.sum(), v.sum())
        self.check(x.mean(1, keepdim=True), v.mean(1, keepdim=True))
        self.check(x.sum([0, 1]), v.sum([0, 1]))
        self.check(x.reshape([2, 6]), v.reshape(2, 6))
        self.check(x.to("float64"), v.double())
        self.check(x.to(torch.float64), v.double())
        self.check(x.add(v, alpha=2), v + 2 * v)
        self.check(ops.cat([x, v], 1), torch.cat([v, v], 1))
        self.check(ops.einsum("ij,kj->ik", [x, v]), v @ v.t())
        self.check(ops.where(v > 0.5, x, 0.0), torch.where(v > 0.5, v, torch.zeros(())))
        self.check(addend.call("aten::leaky_relu", x - 0.5, negative_slope=0.2),
                   torch.nn.functional.leaky_relu(v - 0.5, 0.2))
        values, indices = x.max(1)
        self.check(values, v.max(1).values)
        np.testing.assert_array_equal(indices, v.max(1).indices)
        self.assertIsInstance(x.argmax(), addend.Tensor)
        chunks = x.chunk(1)
        self.assertEqual(len(chunks), 1)
        self.check(chunks[0], v)

    def test_components_are_what_arithmetic_says(self):
        weight, bias = torch.randn(2, 4), torch.randn(2)
        y = self.x.linear(weight, bias)
        for k in range(4):
            own = torch.zeros_like(self.value)
            own[:, k] = self.value[:, k]
            np.testing.assert_allclose(y.component(k), own @ weight.t(), atol=1e-6)
        np.testing.assert_allclose(y.reference, bias.expand(3, 2), atol=1e-6)

    def test_every_everyday_operator_has_its_method(self):
        # The list as the core has it, by way of the schemas: not what the generator of this face made of it.
        with open("core/composition/everyday_operators.txt", encoding="utf-8") as lines:
            names = [(line.split("(")[0].split("::")[1].split(".")[0], line) for line in lines if line.startswith("aten::")]
        self.assertGreater(len(names), 150)
        for name, line in names:
            with self.subTest(line=line):
                if "(Tensor " in line and "(Tensor condition" not in line:
                    self.assertTrue(callable(getattr(addend.Composition, name)))
                if not name.endswith("_"):
                    self.assertTrue(callable(getattr(ops, name)))
                    self.assertIn(name, ops.__all__)

    def test_indices(self):
        x, v = self.x, self.value
        mask = v > 0.5
        for key in [0, -1, (slice(None), 1), (slice(0, 3, 2),), (..., 0), (None, 1), (0, ..., None), mask,
                    torch.tensor([2, 0]), [2, 0], (slice(1, None), [0, 3]), ([0, 2], [1, 3]), (..., [1]), (0, mask[0])]:
            with self.subTest(key=key):
                self.check(x[key], v[key])
                np.testing.assert_allclose(addend.as_tensor(v)[key], v[key])
        for key, error in [(3, IndexError), ((0, 0, 0), IndexError), ((..., ...), IndexError), (True, TypeError),
                           ("text", TypeError)]:
            with self.subTest(key=key), self.assertRaises(error):
                x[key]
        self.assertEqual(len(x), 3)
        rows = list(x)
        self.assertEqual(len(rows), 3)
        for row, expected in zip(rows, v):
            self.check(row, expected)

    def test_comparisons_read_values(self):
        np.testing.assert_array_equal(self.x > 0.5, self.value > 0.5)
        np.testing.assert_array_equal(0.5 >= self.x, 0.5 >= self.value)
        np.testing.assert_array_equal(self.x == self.value, np.ones((3, 4), bool))
        self.assertFalse(self.x == "text")
        self.assertEqual(len({self.x, self.x}), 1)

    def test_in_place(self):
        x = addend.Composition.diagonal(X, 0)
        same, parts = x, x.components
        self.assertIs(x.add_(1), x)
        self.assertIs(same, x)
        np.testing.assert_allclose(x.recovery, X + 1)
        np.testing.assert_array_equal(parts, np.diag(X))

    def test_operators_follow_their_context(self):
        x = addend.Composition.diagonal(torch.tensor([1.0, -3.0]), 0)
        context = addend.Context(nonlinearity="gradient")
        y = x.tanh(context=context)
        np.testing.assert_allclose(np.diag(y.components), [1 / np.cosh(1) ** 2, -3 / np.cosh(3) ** 2], rtol=1e-4)
        self.assertEqual(context.policy["nonlinearity"], "gradient")

    def test_shapley_of_a_product(self):
        a, b = addend.Composition([[2.0], [0.0]]), addend.Composition([[0.0], [5.0]])
        np.testing.assert_allclose(addend.shapley("aten::mul", a, b).components, [[5], [5]])

    def test_wrong_calls_are_explained(self):
        for call, kind, text in [
            (lambda: addend.call("aten::no_such_operator", self.x), addend.NotFound, "no_such_operator"),
            (lambda: addend.call("aten::softmax", self.x, "text"), addend.InvalidArgument, "softmax"),
            (lambda: addend.call("aten::add", self.x, self.x, alpha=self), TypeError, "OperatorsTest"),
            (lambda: self.x + torch.rand(7), addend.InvalidArgument, "7|size"),
            (lambda: self.x + addend.Composition.diagonal(self.value, 0), addend.InvalidArgument, "components"),
            (lambda: addend.Composition(self.value.size(), 4), TypeError, r"addend.pydec.zeros\(size, c_num=4\)"),
        ]:
            with self.subTest(text=text), self.assertRaisesRegex(kind, text):
                call()

    def test_registered_operators_are_listed(self):
        found = {operator.name: operator for operator in addend.operators()}
        self.assertGreater(len(found), 100)
        self.assertEqual(found["aten::softmax"].kind.lower(), "path")
        self.assertTrue(all(schema.startswith("aten::softmax") for schema in found["aten::softmax"].schemas))


class GradientTest(unittest.TestCase):
    def test_gradients_are_those_of_finite_differences(self):
        torch.manual_seed(1)
        components = torch.randn(3, 4, dtype=torch.float64)
        reference = torch.randn(4, dtype=torch.float64)
        weight = torch.randn(2, 4, dtype=torch.float64)
        cotangent = torch.randn(3, 2, dtype=torch.float64)

        def loss(components):
            y = addend.Composition(components, reference).linear(weight).tanh()
            return float((y.components.torch() * cotangent).sum())

        x = addend.Composition(components, reference, in_graph=True)
        y = x.linear(weight).tanh()
        gradient = y.grad(x, addend.Composition(cotangent, torch.zeros(2, dtype=torch.float64)))
        self.assertEqual(gradient.shape, x.shape)
        for index in [(0, 0), (1, 3), (2, 2)]:
            step = torch.zeros_like(components)
            step[index] = 1e-6
            expected = (loss(components + step) - loss(components - step)) / 2e-6
            self.assertAlmostEqual(gradient.components[index].item(), expected, places=6)

    def test_gradients_need_a_graph(self):
        x = addend.Composition.diagonal(X, 0)
        with self.assertRaises(addend.FailedPrecondition):
            x.exp().grad(x, x)


class LifetimeTest(unittest.TestCase):
    def test_closed_compositions_say_so(self):
        before = live()
        with addend.Composition.diagonal(X, 0) as composition:
            components = composition.components
        self.assertTrue(composition.closed)
        composition.close()
        with self.assertRaisesRegex(ValueError, "Composition is closed"):
            composition.numc
        with self.assertRaisesRegex(ValueError, "Composition is closed"):
            composition.exp()
        self.assertEqual(repr(composition), "Composition(closed)")
        np.testing.assert_array_equal(components, np.diag(X))
        del composition, components
        self.assertEqual(live(), before)

    def test_kept_objects_belong_to_the_outer_scope(self):
        before = live()
        with addend.scope() as scope:
            x = addend.Composition.diagonal(X, 0)
            with addend.scope():
                inner = x.exp()
            self.assertTrue(inner.closed)
            y = scope.keep(x.exp())
            self.assertFalse(x.closed)
        self.assertTrue(x.closed)
        np.testing.assert_allclose(y.recovery, X.exp())
        y.close()
        self.assertEqual(live(), before)
        self.assertFalse(addend.Composition.diagonal(X, 0).closed)

    def test_a_scope_holds_on_its_thread_only(self):
        made = []
        with addend.scope():
            thread = threading.Thread(target=lambda: made.append(addend.Composition.diagonal(X, 0)))
            thread.start()
            thread.join()
        self.assertFalse(made[0].closed)

    def test_closing_while_others_compute_ends_no_run_in_the_middle(self):
        value = torch.rand(64, 64)
        for _ in range(20):
            x = addend.Composition.diagonal(value, 0)
            outcome = []

            def work(x=x, outcome=outcome):
                try:
                    for _ in range(20):
                        x.matmul(value)
                except ValueError as error:
                    outcome.append(str(error))

            thread = threading.Thread(target=work)
            thread.start()
            x.close()
            thread.join()
            self.assertIn(outcome, ([], ["this Composition is closed"]))

    def test_copies(self):
        x = addend.Composition.diagonal(X, 0)
        y = copy.copy(x)
        x.add_(1)
        np.testing.assert_allclose(y.recovery, X)
        with self.assertRaises(TypeError):
            pickle.dumps(x)
