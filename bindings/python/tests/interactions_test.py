"""Interactions of groups and several baselines, against attributions that are asked for one by one."""

import io
import pickle
import unittest

import numpy as np
import torch

import addend

TABLE = "docs/examples/models/breast_cancer/"
GROUPS = {"concepts": [{"name": "Tens", "components": ["column 1*"]}, {"name": "Rest", "components": ["column 2*"]}]}


class InteractionsTest(unittest.TestCase):
    def setUp(self):
        self.model = addend.load_model(TABLE + "model.pt", dtype="float64")
        self.rows = np.asarray(addend.read_tensors(TABLE + "heldout.safetensors")["input"], dtype=np.float64)

    def contributions(self, row, **baseline):
        found = self.model.explain(addend.Input(row, dims=1, **baseline), targets="1")
        return np.array(found[0].contributions)

    def test_rows_add_up_and_entries_are_differences(self):
        row = self.rows[:1]
        found = self.model.interactions(addend.Input(row, dims=1, baseline=0), target="1", concepts=GROUPS)
        self.assertEqual(found.names[:2], ["Tens", "Rest"])
        self.assertEqual(len(found.names), 2 + 30 - 11 - 11)
        tens, rest = [1, *range(10, 20)], [2, *range(20, 30)]
        without = row.copy()
        without[0, tens] = 0
        owed = (self.contributions(row, baseline=0) - self.contributions(without, baseline=0))[rest].sum()
        self.assertAlmostEqual(found.matrix[1][0], owed, 9)
        for contribution, parts in zip(found.contributions, found.matrix):
            self.assertAlmostEqual(contribution, sum(parts), 12)
        self.assertTrue(0 <= found.asymmetry <= 1)
        self.assertEqual(found.to_dict()["format"], "addend.interactions")
        self.assertIn("addend.interactions", found.to_html())
        self.assertIn("<iframe", found._repr_html_())
        self.assertEqual(pickle.loads(pickle.dumps(found)).matrix, found.matrix)
        alone = self.model.interactions(addend.Input(row, dims=1, baseline=0), target="1")
        self.assertEqual(len(alone.names), 30)

    def test_memory_and_the_reference_are_looked_at(self):
        row = addend.Input(self.rows[:1], dims=1, baseline=0)
        whole = self.model.interactions(row, target="1", concepts=GROUPS)
        limited = self.model.interactions(row, target="1", concepts=GROUPS, memory=1)
        np.testing.assert_allclose(limited.matrix, whole.matrix, atol=1e-9)

        class Branches(torch.nn.Module):
            def forward(self, x):
                if bool((x > 0).all()):
                    return x.tanh() + 5
                return x * 0

        file = io.BytesIO()
        torch.jit.save(torch.jit.script(Branches()), file)
        branches = addend.load_model(file.getvalue())
        for model in (self.model, branches, addend.compile(torch.tanh)):
            with self.assertRaisesRegex(addend.InvalidArgument, "the option memory is"):
                model.interactions(addend.Input([[1.0, 2.0]], dims=1), target=0, memory=-1)
        # Found by hand: the plain model gives 0 on the baseline, and the branch that is followed gives 5.
        given, said = addend.Input([[1.0, 2.0]], dims=1, baseline=0), "the reference is not what the model gives"
        silent, told = (branches.interactions(given, target=0, verify_reference=asks) for asks in (False, True))
        self.assertFalse([note for note in silent.notes if said in note])
        self.assertTrue([note for note in told.notes if said in note and "apart by 5 " in note])

    def test_several_baselines_give_means(self):
        row, others = self.rows[:1], self.rows[1:4]
        singles = np.array([self.contributions(row, baseline=other[None]) for other in others])
        mean = self.model.explain(addend.Input(row, dims=1, baselines=others), targets="1")[0]
        self.assertEqual(mean.num_baselines, 3)
        np.testing.assert_allclose(mean.contributions, singles.mean(0), atol=1e-9)
        np.testing.assert_allclose(mean.standard_errors, singles.std(0, ddof=1) / np.sqrt(3), atol=1e-9)
        same = (np.sign(singles) == np.sign(singles.mean(0))).mean(0)
        np.testing.assert_allclose(mean.same_sign, same, atol=1e-15)
        one = self.model.explain(addend.Input(row, dims=1, baseline=0), targets="1")[0]
        self.assertEqual(one.num_baselines, 1)
        self.assertTrue(np.isnan(one.standard_errors).all())
        # The nearest rows of a file, for each row of a batch, are found by hand.
        path = TABLE + "heldout.safetensors"
        near = self.model.explain(addend.Input(self.rows[5:7], dims=1, baseline="nearest:2:" + path), targets="1",
                                  each_example=True)
        for number in (5, 6):
            apart = (((self.rows - self.rows[number]) / self.rows.std(0, ddof=1)) ** 2).sum(1)
            order = np.argsort(apart, kind="stable")[:2]
            by_hand = np.mean([self.contributions(self.rows[number:number + 1], baseline=self.rows[k:k + 1]) for k in order], 0)
            np.testing.assert_allclose(near[number - 5].contributions, by_hand, atol=1e-9)

    def test_says_what_does_not_fit(self):
        row = addend.Input(self.rows[:1], dims=1, baselines=self.rows[1:3])
        with self.assertRaisesRegex(addend.InvalidArgument, "several baselines"):
            self.model.decompose(row)
        with self.assertRaisesRegex(addend.InvalidArgument, "several baselines"):
            self.model.interactions(row, target="1")
        with self.assertRaisesRegex(TypeError, "not both"):
            addend.Input(self.rows[:1], dims=1, baseline=0, baselines=self.rows)
        with self.assertRaisesRegex(addend.InvalidArgument, "baselines of shape"):
            self.model.explain(addend.Input(self.rows[:1], dims=1, baselines=self.rows[:3, :7]), targets="1")
        with self.assertRaisesRegex(addend.InvalidArgument, "several baselines"):
            addend.compile(torch.nn.Linear(30, 2).double()).plan(
                addend.Input(torch.tensor(self.rows[:1]), dims=1, baselines=torch.tensor(self.rows[1:3])), targets="1")


if __name__ == "__main__":
    unittest.main()
