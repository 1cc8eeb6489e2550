"""Makes tests of cases: one for each law that a case has to obey."""

import unittest
from typing import Dict, Tuple

import addend

import constructs
import laws
from case import Run

# Reasons why tests fail that do not work yet, by the name of a case and the law. Each of these tests has to fail, by
# what the law asserts or by an error of the library.
KNOWN: Dict[Tuple[str, str], str] = {
    ("rows that are masked as a whole, infinitely low, rows of NaN, filled, padded left", "adjoint"): (
        "attention weights of NaN meet a cotangent of zero on the way back; the run says that it failed"
    ),
}


def of(construct):
    """Marks a test as that of a construct."""

    def mark(method):
        method.construct = construct
        return method

    return mark


def table(area, cases, others):
    """A class of unittest with a test for each law of each case, and one that no construct of the area was forgotten.

    Args:
        area: one of those in `constructs`.
        cases: of it.
        others: further classes of unittest, with tests of constructs that `of` marks.
    """

    class Table(unittest.TestCase):
        maxDiff = None

        def test_every_construct_has_a_case(self):
            methods = [method for owner in others for method in vars(owner).values()]
            marked = {getattr(method, "construct", None) for method in methods} - {None}
            found = {case.construct for case in cases} | marked
            self.assertEqual(sorted(found), sorted(constructs.AREAS[area]))
            names = [case.name for case in cases]
            self.assertEqual(len(set(names)), len(names), "two cases have one name")

    def add(case, name, law):
        def test(self):
            if not case.available[0]:
                self.skipTest("needs " + case.available[1])
            reason = KNOWN.get((case.name, name))
            if reason is None:
                law(self, Run(case))
                return
            with self.assertRaises((AssertionError, addend.Error), msg="works now; take it out of KNOWN: " + reason):
                law(unittest.TestCase(), Run(case))

        title = "%s: %s" % (name, case.name)
        test.__doc__ = title
        setattr(Table, "test_" + "".join(c if c.isalnum() else "_" for c in title), test)

    for case in cases:
        for name, law in laws.laws_of(case).items():
            add(case, name, law)
    return Table
