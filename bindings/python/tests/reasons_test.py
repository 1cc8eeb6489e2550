"""Reasons of decisions, against sums by hand."""

import pickle
import unittest

import torch
from torch import nn

import addend

DESCRIPTION = {
    "threshold": 0.25,
    "concepts": [
        {"name": "Housing", "components": ["housing_*"], "values": "one_hot", "text": "{concept}: {value}"},
        {"name": "Debt", "code": "R7", "components": ["debt"], "unit": "EUR", "scale": 1000, "text": "{value} {unit}"},
    ],
}
NAMES = ["age", "housing_own", "housing_rent", "debt"]


class ReasonsTest(unittest.TestCase):
    def setUp(self):
        network = nn.Linear(4, 1, bias=False).double()
        with torch.no_grad():
            network.weight.copy_(torch.tensor([[0.5, 2.0, -1.0, -0.25]]))
        self.model = addend.compile(network)
        self.rows = torch.tensor([[1.0, 0.0, 1.0, 2.0], [-3.0, 1.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.5]]).double()

    def explain(self, rows=None, **more):
        rows = self.rows if rows is None else rows
        return self.model.explain(addend.Input(rows, dims=1, baseline=0.0, names=NAMES), targets="0", **more)

    def test_sums_concepts_in_order_of_size(self):
        reasons = self.explain(each_example=True).reasons(addend.Concepts(DESCRIPTION))
        self.assertEqual(len(reasons), 3)
        first, second, third = reasons
        self.assertEqual([reason.concept for reason in first.reasons], ["Housing", "Debt"])
        self.assertEqual([reason.contribution for reason in first.reasons], [-1.0, -0.5])
        self.assertEqual([reason.text for reason in first.reasons], ["Housing: housing_rent", "2000 EUR"])
        self.assertEqual((first.others, first.leftover, first.reference, first.value), (0.5, 0, 0, -1.0))
        self.assertEqual((first.outcome, first.name, first.target), ("reasons", "output [0, 0]", "0,0"))
        self.assertEqual((first.reasons[1].code, first.reasons[1].unit, first.reasons[1].baseline), ("R7", "EUR", "0"))
        self.assertEqual([reason.text for reason in second.reasons], ["age"])
        self.assertEqual(second.reasons[0].contribution, -1.5)
        self.assertEqual(third.value, 1 - 0.125)
        self.assertIn("Housing: housing_rent", repr(reasons))
        self.assertEqual(reasons.to_dict()["decisions"][0]["reasons"][1]["text"], "2000 EUR")
        favourable = self.explain(each_example=True).reasons({**DESCRIPTION, "side": "favourable"})
        self.assertEqual([[reason.concept for reason in one.reasons] for one in favourable], [["age"], ["Housing"], ["age"]])

    def test_fills_nothing_up_below_the_threshold(self):
        below = self.explain(each_example=True).reasons(DESCRIPTION)[2]
        # 0.125 is below the threshold.
        self.assertEqual((below.outcome, below.reasons, below.passing), ("no_principal_reason", [], 0))
        self.assertIn("no principal reason", below.notes[0])

    def test_are_those_of_one_explanation(self):
        found = self.explain(each_example=True)
        with addend.Concepts(DESCRIPTION) as concepts:
            all_of_them = found.reasons(concepts)
            for row in range(3):
                self.assertEqual(found[row].reasons(concepts)[0], all_of_them[row])
        with self.assertRaisesRegex(ValueError, "closed"):
            found.reasons(concepts)
        without = {"concepts": [{"name": "Housing", "components": ["housing_*"]}]}
        stored = pickle.loads(pickle.dumps(found)).reasons(without)
        self.assertEqual(stored[1].reasons[0][:3], ("age", "", -1.5))
        self.assertEqual((stored[1].reasons[0].value, found.reasons(without)[1].reasons[0].value), (None, "-3"))
        self.assertEqual(pickle.loads(pickle.dumps(stored)), stored)

    def test_reasons_are_data_and_a_page(self):
        reasons = self.explain(self.rows[:1]).reasons(DESCRIPTION)
        self.assertIn("Housing: housing_rent", reasons.to_html())
        self.assertIn("<iframe", reasons._repr_html_())

    def test_refuses_descriptions_at_reading(self):
        for wrong, message in (
            ({"text": "{vlaue}"}, "placeholder {vlaue}"),
            ({"thresold": 1}, 'no "thresold"'),
            ({"concepts": [{"name": "A", "components": ["a"]}, {"name": "A", "components": ["b"]}]}, "two concepts A"),
        ):
            with self.assertRaisesRegex(addend.InvalidArgument, message):
                addend.Concepts(wrong)
        with self.assertRaisesRegex(addend.InvalidArgument, "is no JSON"):
            addend.Concepts("{")
        with self.assertRaisesRegex(addend.InvalidArgument, "which does not exist; there are age"):
            self.explain(self.rows[:1]).reasons({"concepts": [{"name": "A", "components": ["a"]}]})


if __name__ == "__main__":
    unittest.main()
