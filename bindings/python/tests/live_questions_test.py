"""Questions that take several runs, asked of live models: interactions, Shapley values, several baselines. What is
expected is computed by plain PyTorch: second differences, all subsets, one baseline after the other."""

import os
import sys
import unittest

import numpy as np
import torch
from torch import nn

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import addend  # noqa: E402
import formulas  # noqa: E402


class Bilinear(nn.Module):
    """x, and what each of its columns has with each: of such a function every second difference is an interaction."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Parameter(torch.randn(4, 4, dtype=torch.double))
        self.head = nn.Linear(4, 1).double()

    def forward(self, x):
        return self.head(x)[:, 0] + ((x @ self.mix.triu(1)) * x).sum(1)


class Named(nn.Module):
    """Arguments and results in dicts, a state, and an integer result in front."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(3, 2).double()
        self.drop = nn.Dropout(0.5)
        self.register_buffer("calls", torch.zeros((), dtype=torch.double))

    def forward(self, inputs, scale=1.0):
        self.calls += 1
        mixed = torch.tanh(inputs["left"]) * inputs["right"]
        return {"best": mixed.argmax(1), "logits": self.calls * scale * self.head(self.drop(mixed)), "mixed": mixed}


def branches(x):
    return x.sum(1) * 2 if x.sum() > 0 else x.sum(1)


def network():
    layers = nn.Linear(3, 5), nn.LayerNorm(5), nn.GELU(), nn.Linear(5, 2)
    return nn.Sequential(*layers).double().eval()


def as_array(values):
    return np.asarray(values.detach() if isinstance(values, torch.Tensor) else values)


class LiveQuestionsTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(3)
        self.x = torch.randn(1, 3, dtype=torch.double)
        self.rows = torch.randn(4, 3, dtype=torch.double)

    def expect(self, actual, expected, atol=1e-12):
        np.testing.assert_allclose(as_array(actual), as_array(expected), atol=atol, rtol=0)

    def test_interactions_are_second_differences(self):
        model = Bilinear().eval()
        x, baseline = torch.randn(1, 4, dtype=torch.double), torch.randn(1, 4, dtype=torch.double)

        def value(*gone):
            row = x.clone()
            row[0, list(gone)] = baseline[0, list(gone)]
            with torch.no_grad():
                return model(row).item()

        given = addend.Input(x, dims=1, baseline=baseline, names="abcd")
        found = addend.compile(model).interactions(given, target=0)
        self.assertEqual(found.names, list("abcd"))
        for i in range(4):
            for j in range(4):
                if i != j:  # each of two factors owes the other one a half of what both have together
                    both = value() - value(i) - value(j) + value(i, j)
                    self.assertAlmostEqual(found.matrix[i][j], both / 2, 12)
            self.assertAlmostEqual(sum(found.matrix[i]), found.contributions[i], 12)
        self.assertAlmostEqual(found.asymmetry, 0, 12)
        with torch.no_grad():
            self.assertAlmostEqual(sum(found.contributions), (model(x) - model(baseline)).item(), 12)
        without = [group["value_without"] for group in found.to_dict()["groups"]]
        self.expect(without, [value(j) for j in range(4)])
        self.assertEqual(found.to_dict()["notes"], ["preset auto: faithful, because a baseline was given"])
        # Groups, and the choices of a policy.
        concepts = {"concepts": [{"name": "first", "components": ["a", "b"]}]}
        cut = addend.compile(model, segments=2)
        grouped = cut.interactions(given, target=0, concepts=concepts)
        self.assertEqual(grouped.names, ["first", "c", "d"])
        self.assertEqual(grouped.to_dict()["policy"]["segments"], "2")
        both = value() - value(0, 1) - value(2) + value(0, 1, 2)
        self.assertAlmostEqual(grouped.matrix[0][1], both / 2, 12)

    def test_shapley_values(self):
        model, baseline = network(), self.rows[:1]
        given = addend.Input(self.x, dims=1, baseline=baseline)
        found = addend.compile(model).shapley(given)
        for target in range(2):
            self.expect(found.components.torch()[:, 0, target], formulas.shapley(model, self.x, baseline, target))
        with torch.no_grad():
            self.expect(found.residual.torch(), model(baseline))
            self.expect(found.recovery.torch(), model(self.x))
        # The part of a composition that has no component belongs to all subsets.
        parts = addend.Composition(self.x[None] - baseline[None], baseline)
        whole = addend.compile(model).shapley(parts)
        with torch.no_grad():
            self.expect(whole.components.torch()[0], model(self.x) - model(baseline))

    def test_shapley_values_of_ids(self):
        model = nn.Sequential(nn.Embedding(7, 3), nn.Flatten(), nn.Linear(9, 4), nn.Tanh(), nn.Linear(4, 2)).double()
        ids, baseline = torch.tensor([[1, 2, 6]]), torch.tensor([[0, 5, 3]])

        def of_ids(rows):
            return model(rows.long())

        live = addend.compile(model)
        given = addend.Input(ids, dims=1, baseline=baseline)
        for found in (live.shapley(given), live.record(ids).model().shapley(given)):
            for target in range(2):
                self.expect(found.components.torch()[:, 0, target], formulas.shapley(of_ids, ids, baseline, target))
            with torch.no_grad():
                self.expect(found.reference.torch(), model(baseline))
                self.expect(found.recovery.torch(), model(ids))
        # A baseline that nobody gave is token 0.
        zero = live.shapley(addend.Input(ids, dims=1))
        self.expect(zero.components.torch()[:, 0, 1], formulas.shapley(of_ids, ids, torch.zeros_like(ids), 1))

    def test_several_baselines(self):
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
        live = addend.compile(model)
        given = addend.Input(self.x, dims=1, baselines=self.rows)
        found = live.explain(given, targets=["0,1", "0,0"])
        for explanation, target in zip(found, (1, 0)):
            singles = torch.stack([formulas.rescale(model, self.x, row[None], target) for row in self.rows])
            self.expect(explanation.contributions, singles.mean(0))
            self.expect(explanation.standard_errors, singles.std(0) / 2)
            self.expect(explanation.same_sign, (singles.sign() == singles.mean(0).sign()).double().mean(0))
            self.assertEqual(explanation.num_baselines, 4)
            with torch.no_grad():
                self.assertAlmostEqual(explanation.reference, model(self.rows)[:, target].mean().item(), 12)
                self.assertAlmostEqual(explanation.value, model(self.x)[0, target].item(), 12)
        self.expect(found.inputs[0][0].torch()[0], found[0].contributions)
        with torch.no_grad():
            self.expect(found.output, model(self.x))
        self.assertTrue(any("means over 4 baselines" in note for note in found.notes))
        self.assertFalse(any("does not take several examples" in note for note in found.notes))
        given, delta = live.attribute(given, target=1, return_convergence_delta=True)
        self.expect(given[0], found[0].contributions)
        self.expect(delta, [0])
        # Questions other than the attribution of a number still refuse several baselines.
        several = addend.Input(self.x, dims=1, baselines=self.rows)
        for ask in (live.decompose, live.plan, live.interactions):
            with self.assertRaisesRegex(addend.InvalidArgument, "several baselines"):
                ask(several)

    def test_each_example(self):
        model = network()
        x = torch.randn(3, 3, dtype=torch.double)
        live = addend.compile(model)
        found = live.explain(
            addend.Input(x, dims=1, baselines=self.rows), targets=["0", "1", "0"], each_example=True
        )
        self.assertEqual(len(found), 3)
        for row, target in enumerate((0, 1, 0)):
            singles = [
                live.explain(addend.Input(x[row:row + 1], dims=1, baseline=one[None]), targets=(0, target))[0]
                for one in self.rows
            ]
            self.expect(found[row].contributions, np.mean([one.contributions for one in singles], 0))
            with torch.no_grad():
                moved = model(x)[row, target] - model(self.rows)[:, target].mean()
            self.assertAlmostEqual(sum(found[row].contributions), moved.item(), 12)
        with self.assertRaisesRegex(addend.FailedPrecondition, "all examples of the batch together"):
            addend.compile(branches).explain(
                addend.Input(x, dims=1, baselines=self.rows), targets=(), each_example=True
            )

    def test_arguments_results_and_state_are_those_of_the_model(self):
        left, right, rows = torch.randn(2, 3).double(), torch.randn(2, 3).double(), torch.randn(3, 3).double()
        model = Named()

        def ask(live, baseline):
            inputs = {"left": addend.Input(left, dims=1, **baseline), "right": right}
            return live.explain(inputs, targets="1,0", at="output.logits", scale=2.0)

        # In training mode: every run draws what the first one draws, and begins at the same number of calls.
        before = torch.get_rng_state()
        found = ask(addend.compile(model), {"baselines": rows})
        drawn = torch.rand(1)
        self.assertEqual(model.calls.item(), 1)
        singles = []
        for row in rows:
            model.calls.zero_()
            torch.set_rng_state(before)
            one = ask(addend.compile(model), {"baseline": row})
            singles.append(one[0].contributions)
            self.expect(found.output["logits"], one.output["logits"])
            self.assertEqual(torch.rand(1), drawn)
        self.expect(found[0].contributions, np.mean(singles, 0))
        self.assertTrue(any("random numbers are drawn" in note for note in found.notes))
        self.assertEqual(list(found.output), ["best", "logits", "mixed"])
        self.assertEqual([one is None for one in found.inputs], [False, True])
        with self.assertRaisesRegex(ValueError, "no output.nothing that holds numbers; it has output.logits"):
            ask(addend.compile(model, outputs="output.nothing"), {"baselines": rows})
        # The first floating-point output is the one that is meant, as ever.
        inputs = {"left": addend.Input(left, dims=1, baseline=0), "right": right}
        model.eval().calls.zero_()
        shares = addend.compile(model).shapley(inputs)
        self.assertEqual(model.calls.item(), 1)
        with torch.no_grad():
            model.calls.zero_()
            self.expect(shares.recovery.torch(), model({"left": left, "right": right})["logits"])

    def test_one_way(self):
        given = addend.Input(torch.tensor([[3.0, -1.0, 0.5]]), dims=1, baseline=-1)
        live = addend.compile(branches)
        for ask in (live.interactions, live.shapley):
            with self.assertRaisesRegex(addend.FailedPrecondition, "live_questions_test.*goes another way"):
                ask(given)
        # This input takes one way with each group at its baseline; a note says that there are others.
        near = addend.Input(torch.tensor([[3.0, 1.0, 0.5]]), dims=1, baseline=0)
        found = live.interactions(near, target=0)
        self.assertEqual(found.contributions, [6.0, 2.0, 1.0])
        self.assertTrue(any("may branch on them" in note for note in found.to_dict()["notes"]))
        # Several baselines run on one input, and take its way.
        several = addend.Input(near.value, dims=1, baselines=-torch.rand(2, 3))
        self.assertTrue(any("may branch on them" in note for note in live.explain(several, targets=0).notes))
        # Numbers that Python reads of a tensor must not change with a group at its baseline, or the call is refused.
        reads = addend.compile(lambda x: (x * float(x.numpy()[0, 0])).sum(1))
        with self.assertRaisesRegex(addend.FailedPrecondition, "goes another way"):
            reads.interactions(near, target=0)

    def test_a_model_without_batches(self):
        live = addend.compile(lambda x: torch.tanh(x.reshape(3)).sum())
        found = live.explain(addend.Input(self.x, dims=1, baselines=self.rows), targets=())[0]
        singles = torch.tanh(self.x) - torch.tanh(self.rows)
        self.expect(found.contributions, singles.mean(0))

    def test_says_what_does_not_fit(self):
        live = addend.compile(network())
        for ask in (live.interactions, live.shapley):
            with self.assertRaisesRegex(ValueError, "nothing to attribute to"):
                ask(self.x)
        with self.assertRaisesRegex(ValueError, "of the first output"):
            live.shapley(addend.Input(self.x, dims=1), outputs="output")
        with self.assertRaisesRegex(ValueError, "not of a split inside"):
            live.shapley(self.x, inside=addend.Inside("0", 0))
        with self.assertRaisesRegex(addend.InvalidArgument, "one target of one example"):
            live.interactions(addend.Input(self.x, dims=1), target=["0,0", "0,1"])
        with self.assertRaisesRegex(addend.FailedPrecondition, "influence each other"):
            normal = nn.Sequential(nn.BatchNorm1d(3), nn.Tanh()).double().train()
            addend.compile(normal).explain(
                addend.Input(self.rows, dims=1, baselines=self.rows), targets=0, each_example=True
            )


if __name__ == "__main__":
    unittest.main()
