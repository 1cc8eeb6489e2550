"""Every note is told at every door: by `notes`, by `print`, as a warning of `attribute`, and by plans."""

import glob
import math
import os
import re
import sys
import tempfile
import unittest
import warnings
from xml.etree import ElementTree

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import addend  # noqa: E402
import doors  # noqa: E402
import live_models  # noqa: E402
import models  # noqa: E402
import sentences  # noqa: E402
from noted import ATTRIBUTION, DECOMPOSITION, INTERACTIONS  # noqa: E402

# Sentences that no run of the table has, and why.
EXCUSED = {
    "components that were found backward did not come to what their sum became": (
        "a map that is no transpose of itself, which no rule has: core/explain/direction_test.cc brings one"
    ),
    ", so they were sent forward": "of the same note",
    "the leftover comes": "how a recovery is off depends on rounding: core/explain/outcome_test.cc",
    "much more than ": "how a recovery is off depends on rounding: core/explain/outcome_test.cc",
    " computes, and this library is for LibTorch ": "of a LibTorch that no implementation is for: core/explain/notes_test.cc",
    ": what the two make together was not tested": "of the same note",
    "the model multiplies in TF32: ": "only a GPU does: core/explain/precision_test.cc",
    "parts agree to 1e-3 ": "of the same note",
    'column "': "of numbers in CSV files: tools/addend/input_file_test.py",
    ", of which ": "of the same note",
    "no component reaches ": "the beginning of an error",
    "the model computes it without the split inputs, or outside": "of that error",
    "they end where the model makes conditions, indices or other integers of them": "of that error",
    "; see docs/concepts.md": "of that error",
}


class Told(unittest.TestCase):
    """The base of the doors' tests."""

    def told(self, case, found):
        """A result has the note, and says whether it is a warning."""
        self.assertTrue(case.is_in(found.notes), found.notes)
        self.assertEqual(case.is_in(found.warnings), case.warning, found.warnings)

    def known(self, case, record):
        """A report names the kind of the note where it warns."""
        self.assertEqual(len(record["warning_kinds"]), len(record["warnings"]))
        for note, kind in zip(record["warnings"], record["warning_kinds"]):
            if case.is_said(note):
                self.assertNotEqual(kind, "other", note)

    def printed(self, case, found):
        """Warnings are printed, and remarks are not."""
        lines = str(found).splitlines()
        said = [line[len("WARNING: ") :] for line in lines if line.startswith("WARNING: ")]
        self.assertEqual(case.is_in(said), case.warning, lines)

    def drawn(self, case, explanation):
        """The picture has the note too. Numbers that are not finite have none."""
        numbers = (explanation.value, explanation.reference, explanation.leftover, *explanation.contributions)
        if not all(map(math.isfinite, numbers)):
            with self.assertRaises(addend.FailedPrecondition):
                explanation.to_svg()
            return
        root = ElementTree.fromstring(explanation.to_svg())
        said = "".join("".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text"))
        found = [note for note in explanation.notes if case.is_said(note)]
        self.assertTrue(found)
        for note in found:
            kind = "Warning: " if case.warning else "Note: "
            self.assertIn((kind + note).replace(" ", ""), said.replace(" ", ""))


class Doors(Told):
    """The table, as models from files and as live ones."""

    def tell(self, case, kind):
        with tempfile.TemporaryDirectory() as folder:
            model = doors.model_of(case, kind, folder)
            found = doors.ask(case, model)
            self.told(case, found)
            self.printed(case, found)
            if kind == doors.FILE and case.door == ATTRIBUTION:
                self.job(case)
            self.known(case, found.to_dict() if case.door == INTERACTIONS else found.report)
            if case.door == ATTRIBUTION:
                self.explain(case, found[0])
                self.warn(case, model)
                self.plan(case, model)
            elif case.door == DECOMPOSITION:
                self.explain(case, found.explain(case.targets[0]))
                composition = next(result for result in found if isinstance(result, addend.Composition))
                self.told(case, composition)
                self.explain(case, composition.explain(case.targets[0]))

    def explain(self, case, explanation):
        for one in (explanation, explanation.reasons({"adverse": "negative", "concepts": [_ALL]})):
            self.told(case, one)
            self.printed(case, one)
        self.drawn(case, explanation)

    def warn(self, case, model):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            doors.attribute(case, model)
        said = [str(one.message) for one in caught if issubclass(one.category, addend.AddendWarning)]
        self.assertEqual(case.is_in(said), case.warning, said)

    def job(self, case):
        notes = doors.job(case)
        self.assertEqual(notes is None, bool(case.no_job))
        if notes is None:
            return
        self.assertTrue(case.is_in([own["note"] for own in notes]), notes)
        self.assertEqual(case.is_in([own["note"] for own in notes if own["warning"]]), case.warning, notes)

    def plan(self, case, model):
        planned = doors.plan(case, model)
        if case.no_plan:
            self.assertFalse(planned is not None and case.is_in(planned.notes), "a plan has it; say no more why not")
            return
        self.told(case, planned)
        self.printed(case, planned)


_ALL = {"name": "all", "components": ["*"]}


def _add(case, kind):
    def test(self):
        self.tell(case, kind)

    test.__doc__ = "%s, %s" % (case.name, kind)
    setattr(Doors, "test_%s_%s" % (case.name, kind), test)


for _case in models.TABLE:
    _add(_case, doors.FILE)
    if _case.live:
        _add(_case, doors.LIVE)


class LiveRuns(Told):
    def test_notes_of_runs_of_python(self):
        for case in live_models.TABLE:
            with self.subTest(case.name):
                found = case.ask()
                self.told(case, found)
                self.printed(case, found)
                for explanation in found if isinstance(found, addend.Attribution) else ():
                    self.told(case, explanation)
                    self.printed(case, explanation)
                    self.drawn(case, explanation)


class Complete(unittest.TestCase):
    """Who writes a new note adds it to a table, or says here why not."""

    def test_every_sentence_of_the_sources_is_one_that_a_run_of_the_table_says(self):
        with tempfile.TemporaryDirectory() as folder:
            said = [note for case in models.TABLE for note in doors.ask(case, _first(case, folder)).notes]
        said += [note for case in live_models.TABLE for note in case.ask().notes]
        found = 0
        for path, text in sentences.sentences():
            with self.subTest(path, text=text):
                found += 1
                excused = any(text.startswith(beginning) for beginning in EXCUSED)
                self.assertTrue(excused or any(text in note for note in said), "no run of the table says this")
        self.assertGreater(found, 80)
        for beginning in EXCUSED:
            self.assertFalse([note for note in said if note.startswith(beginning)], "it is said; excuse it no more")

    def test_no_other_source_makes_notes(self):
        known = {*sentences.ABOUT_NOTES, *sentences.WITH_NOTES, *sentences.ELSEWHERE}
        paths = glob.glob(os.path.join(sentences.ROOT, "core", "*", "*.cc"))
        for path in paths:
            name = os.path.relpath(path, sentences.ROOT)
            if name.endswith(("_test.cc", "_testing.cc")) or name in known:
                continue
            with open(path, encoding="utf-8") as file:
                self.assertFalse(sentences.adds_notes(file.read()), name)

    def test_names_are_those_of_one_case(self):
        names = [case.name for case in (*models.TABLE, *live_models.TABLE)]
        self.assertEqual(len(set(names)), len(names))
        for case in models.TABLE:
            self.assertRegex(case.name, "^[a-z0-9_]+$")
            self.assertIn(case.door, (ATTRIBUTION, DECOMPOSITION, INTERACTIONS))


def _first(case, folder):
    return doors.model_of(case, doors.FILE, folder)


if __name__ == "__main__":
    unittest.main()
