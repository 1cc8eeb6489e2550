"""Pages say what their own JSON says: every note of the table, and each sentence for all that it depends on."""

import copy
import math
import os
import re
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import torch  # noqa: E402

import addend  # noqa: E402
import browser  # noqa: E402
import doors  # noqa: E402
import language  # noqa: E402
import live_models  # noqa: E402
import models  # noqa: E402
from noted import ATTRIBUTION, DECOMPOSITION, INTERACTIONS  # noqa: E402

MUCH_LEFT_OVER = "much is left over"  # a page says this of the target that it shows
STATUSES = ("yes", "no", "unknown")


def as_sentence(note):
    return note[0].upper() + note[1:] + "."


def found_in(sentence, text):
    """Whether a text has a sentence, or what a regular expression says, wherever its lines end."""
    whole = spaced(text)
    return spaced(sentence) in whole if isinstance(sentence, str) else sentence.search(whole) is not None


def spaced(text):
    return " ".join(text.split())


class PagesTest(unittest.TestCase):
    def setUp(self):
        if browser.find() is None:
            print("\nskipped: no page was looked at, since there is no browser", flush=True)
            self.skipTest("there is no chromium")

    def judge(self, pages, judge):
        """pages: (name, page). judge: is called with the data of each and with what is shown."""
        for (name, page), shown in zip(pages, browser.shown([page for _, page in pages])):
            with self.subTest(name):
                judge(browser.data_of(page), shown)

    def says(self, text, sentence, holds):
        """A text has a sentence exactly where it holds."""
        if found_in(sentence, text) != bool(holds):
            self.fail("%s: %s\n\nThe page says:\n%s" % ("missing" if holds else "wrong", sentence, text))

    # ---- explanations

    def explanation(self, data, shown):
        """The rules of page.html."""
        report, target = data["report"], data["targets"][0]
        several = target.get("baselines") is not None
        baseline = "the baselines" if several else "the baseline"
        status = report["reference_is_model_on_baseline"]
        known = status == "yes"
        whole = shown.open + "\n" + shown.closed
        # The reference.
        self.says(shown.top, "The same model gives %s a" % baseline, known)
        self.says(shown.top, "The same model gives", known)
        self.says(shown.top, "a mean score ", known and several)
        self.says(shown.top, "that is not a number. ", known and target["reference"] is None)
        self.says(shown.top, "The reference that stands for %s is " % baseline, not known)
        self.says(whole, "which is not what the model gives there", status == "no")
        self.says(whole, "which may not be what the model gives there", status == "unknown")
        self.says(whole, "what the model gives for " + baseline, known)
        self.says(whole, "score of " + baseline, known)
        self.says(whole, re.compile(r"stands for the baseline\b"), not known and not several)
        self.says(whole, re.compile(r"stands for the baselines\b"), not known and several)
        if report["reference_reason"]:
            self.says(shown.top, "what the model gives there (%s)" % report["reference_reason"], not known)
        # Notes of weight stand above all figures, the others in the auditor's section.
        for note in report["notes"]:
            self.says(shown.closed, note, True)
            weighs = note in report.get("warnings", ()) and not note.startswith(MUCH_LEFT_OVER)
            self.says(shown.top, as_sentence(note), weighs)
        numbers = [target["value"], target["reference"], target["leftover"], *target["contributions"]]
        if None not in numbers:
            self.numbers(data, target, shown)
        else:
            self.says(shown.open, "The parts add up", False)
            self.says(shown.open, "Numbers are missing or not finite. Do not rely", True)
        # The page shows what was asked for.
        self.says(shown.top, "As a probability: ", target["probability"] is not None)
        self.says(shown.top, "the inner result", data["at"] is not None)
        self.says(shown.open, "The numbers are means over", several)
        if several:
            self.says(shown.open, "The numbers are means over %d baselines" % target["baselines"]["count"], True)
        for given in data["inputs"]:
            assumed = not given["baseline_given"] and given["split"] != "parts"
            self.says(shown.top, "%s, since none was given" % given["baseline"], assumed)
            self.says(shown.top, "; contributions are measured from it", not assumed)
        self.says(shown.closed, "preset used %s" % data["preset"], True)
        self.says(shown.closed, "Some inner quantities are held constant", data["preset"] == "fast")
        self.says(shown.closed, "Every step is followed from baseline to input", data["preset"] == "faithful")
        dtype = data["policy"]["compute_dtype"]
        self.says(whole, "unmodified model, computed in " + dtype, dtype != "model")
        self.says(whole, "own output, computed in " + dtype, dtype != "model")
        self.says(shown.closed, "model not from a file", data["model"]["path"] is None)
        # Steps.
        for key, sentence in (
            ("failures", "At %d step%s inside the model the parts did not add up."),
            ("absorbed", "There is no rule for %d step%s inside the model"),
        ):
            count = report[key]
            self.says(shown.open, sentence % (count, "" if count == 1 else "s"), count > 0)
        moved = report["absorbed_failures"]
        self.says(shown.open, "What was missing was moved into the leftover at %d of these." % moved, moved > 0)

    def numbers(self, data, target, shown):
        """Sentences on numbers that are there."""
        value, reference, leftover = (target[key] for key in ("value", "reference", "leftover"))
        contributions = target["contributions"]
        error = max(abs(reference + math.fsum(contributions) + leftover - value), abs(target["recovery_error"]))
        adds = error <= target["tolerance"]
        self.says(shown.open, "\u2713 The parts add up to the model", adds)
        self.says(shown.open, "\u26a0 The parts do not add up", not adds)
        gap, mass = abs(value - reference), math.fsum(map(abs, contributions)) + abs(leftover)
        self.says(shown.top, "These contributions explain little", mass > 0 and mass >= 1000 * gap)
        self.says(shown.top, re.compile("% of the change is leftover"), gap > 0 and abs(leftover) > gap / 5)
        self.says(shown.open, "None: every contribution is zero.", not any(contributions))
        largest = max([gap, *map(abs, contributions)])
        self.says(shown.open, "The leftover is not small", largest > 0 and abs(leftover) / largest >= 0.01)

    def pages_of_table(self, door):
        with tempfile.TemporaryDirectory() as folder:
            for case in models.TABLE:
                if case.door != door:
                    continue
                found = doors.ask(case, doors.model_of(case, doors.FILE, folder))
                yield case, found

    def test_every_note_is_on_the_page_of_its_explanation(self):
        pages = [(case.name, found[0].to_html()) for case, found in self.pages_of_table(ATTRIBUTION)]
        pages += [(case.name, found.to_html()) for case, found in self.pages_of_table(ATTRIBUTION)]
        for case, found in self.pages_of_table(DECOMPOSITION):
            pages.append((case.name, found.explain(case.targets[0]).to_html()))
        for case in live_models.TABLE:
            found = case.ask()
            if isinstance(found, addend.Attribution):
                pages.append((case.name, found[0].to_html()))
        cases = {case.name: case for case in (*models.TABLE, *live_models.TABLE)}
        for name, page in pages:
            self.assertTrue(cases[name].is_in(browser.data_of(page)["report"]["notes"]), name)
        self.judge(pages, self.explanation)

    def test_every_note_is_on_the_page_of_a_composition(self):
        pages = []
        for case, found in self.pages_of_table(DECOMPOSITION):
            page = found[0].explain(case.targets[0]).to_html()
            self.assertTrue(case.is_in(browser.data_of(page)["report"]["notes"]), case.name)
            pages.append((case.name, page))
        self.judge(pages, self.explanation)

    def test_each_sentence_of_an_explanation_follows_what_it_depends_on(self):
        source = addend.Input([[0.7, 1.2, 2.2]], 1, baseline=0.0, names=["age", "income", "debt"])
        page = addend.compile(lambda x: (2 * x).sum(1)).explain(source, targets=["0"]).to_html()
        data = browser.data_of(page)
        spread = {"count": 2, "standard_errors": [0.1] * 3, "same_sign": [1.0] * 3, "reference_standard_error": 0.1,
                  "worst_leftover": 0.0}
        changes = [("as it is", {})]
        for status in STATUSES:
            for reason in ("", "some conditions are others"):
                for reference in (0.0, None):
                    for baselines in (None, spread):
                        changes.append(
                            ("reference %s, %s, %s, %s" % (status, reason, reference, baselines is not None),
                             {"report.reference_is_model_on_baseline": status, "report.reference_reason": reason,
                              "targets.0.reference": reference, "targets.0.baselines": baselines})
                        )
        warning, much = "the examples influence each other: by far", "much is left over: 40 % of it"
        remark = "preset auto: faithful, because a baseline was given"
        told = (([], []), ([remark], []), ([remark, warning], [warning]), ([warning, much], [warning, much]))
        for notes, warnings in told:
            changes.append((str(notes), {"report.notes": notes, "report.warnings": warnings}))
        one_by_one = {
            "targets.0.probability": (0.25, 0.00001, 1.0),
            "at": ("logits", None),
            "preset": ("fast", "faithful"),
            "policy.compute_dtype": ("model", "float32", "float64"),
            "model.path": (None, "models/credit.pt"),
            "inputs.0.baseline_given": (True, False),
            "inputs.0.baseline": ("0", "tensor", "mean:rows.csv"),
            "report.failures": (0, 1, 2),
            "report.absorbed": (0, 1, 3),
            "targets.0.recovery_error": (0.0, 1e-9, 0.5),
            "targets.0.contributions": ([0.0] * 3, [1e4, -1e4, 8.2], [8.2, 0.0, 0.0], [None, 1.0, 1.0]),
            "targets.0.value": (None, 8.2, 0.0),
            "targets.0.leftover": (0.0, 0.05, 0.2, 3.0, None),
        }
        for key, values in one_by_one.items():
            changes += [("%s %s" % (key, value), {key: value}) for value in values]
        for moved in (1, 2):
            changes.append(("moved %d" % moved, {"report.failures": 2, "report.absorbed_failures": moved}))
        rest = "what the parts leave over"
        parts = {"inputs.0.split": "parts", "inputs.0.baseline_given": False, "inputs.0.baseline": rest}
        changes.append(("parts", parts))
        pages = [(name, browser.page_with(page, changed(data, change))) for name, change in changes]
        self.judge(pages, self.explanation)

    def test_older_documents_show_what_spoils_numbers(self):
        found = addend.compile(lambda x: x.sum(1)).explain(addend.Input([[1.0, 2.0]], 1, baseline=0.0), targets=["0"])
        page = found.to_html()
        data = browser.data_of(page)
        del data["report"]["warnings"]
        data["report"]["notes"] = notes = ["recovery is off: by much", "preset auto: fast"]
        (shown,) = browser.shown([browser.page_with(page, data)])
        self.says(shown.top, as_sentence(notes[0]), True)
        self.says(shown.top, as_sentence(notes[1]), False)

    def test_a_later_baseline_with_other_conditions_is_told(self):
        baselines = [[0.7, 1.1, 2.0], [0.0, 0.0, 0.0]]
        source = addend.Input(models.X, 1, baselines=baselines)
        model = models.modules.Where()
        found = addend.compile(model).explain(source, targets=["0"])
        mean = sum(float(model(torch.tensor([row]))) for row in baselines) / 2
        self.assertNotAlmostEqual(found[0].reference, mean, places=2)
        self.assertEqual(found.report["reference_is_model_on_baseline"], "no")
        self.assertTrue([note for note in found.warnings if "on the baseline some are others" in note])

    # ---- reasons

    def reasons(self, data, shown):
        """The rules of reasons.html, of the first decision."""
        decision = data["decisions"][0]
        warnings, outcome = data.get("warnings", []), decision["outcome"]
        for note in data["notes"]:
            self.says(shown.top, as_sentence(note), note in warnings)
            self.says(shown.open, as_sentence(note)[:-1] if note in warnings else note, True)
        for note in decision["notes"]:
            self.says(shown.open, note, True)
        finite = outcome != "not_finite"
        known = data["reference_is_model_on_baseline"] == "yes"
        self.says(shown.open, "reference, what the model gives for the baseline", finite and known)
        self.says(shown.open, "reference, which stands for the baseline", finite and not known)
        self.says(shown.top, "No reason can be told", not finite)
        self.says(shown.top, "No principal reason", outcome == "no_principal_reason")
        against = data["side"] == "adverse"
        many = len(decision["reasons"]) > 1
        for side, holds in (("against", against), ("for", not against)):
            self.says(shown.top, "The reason that spoke %s it" % side, outcome == "reasons" and holds and not many)
            self.says(shown.top, "The reasons that spoke %s it" % side, outcome == "reasons" and holds and many)
        down = (data["adverse"] == "negative") == against
        self.says(shown.top, "moved it down from the reference", finite and down)
        self.says(shown.top, "moved it up from the reference", finite and not down)
        self.says(shown.closed, "model not from a file", data["model"]["path"] is None)

    def test_every_note_is_on_the_page_of_reasons(self):
        description = {"adverse": "negative", "concepts": [{"name": "all", "components": ["*"]}]}
        pages = []
        for case, found in self.pages_of_table(ATTRIBUTION):
            page = found[0].reasons(description).to_html()
            self.assertTrue(case.is_in(browser.data_of(page)["notes"]), case.name)
            pages.append((case.name, page))
        self.judge(pages, self.reasons)

    def test_each_sentence_of_reasons_follows_what_it_depends_on(self):
        source = addend.Input([[0.7, -1.2, 2.2]], 1, baseline=0.0, names=["age", "income", "debt"])
        found = addend.compile(lambda x: (2 * x).sum(1)).explain(source, targets=["0"])
        pages = []
        for adverse in ("negative", "positive"):
            for side in ("adverse", "favourable"):
                for at_most in (1, 4):
                    for threshold in (0.0, 100.0):
                        concepts = [{"name": name, "components": [name]} for name in ("age", "income", "debt")]
                        description = {"adverse": adverse, "side": side, "at_most": at_most, "threshold": threshold}
                        page = found.reasons({**description, "concepts": concepts}).to_html()
                        pages.append((str(description), page))
        page = pages[0][1]
        data = browser.data_of(page)
        for status in STATUSES:
            pages.append((status, browser.page_with(page, changed(data, {"reference_is_model_on_baseline": status}))))
        nothing = {"decisions.0.outcome": "not_finite", "decisions.0.reasons": [], "decisions.0.value": None,
                   "decisions.0.notes": ["numbers of this decision are not finite, so that no reason can be told"]}
        pages.append(("not finite", browser.page_with(page, changed(data, nothing))))
        warned = {"notes": ["one", "another"], "warnings": ["another"]}
        pages.append(("warnings", browser.page_with(page, changed(data, warned))))
        self.judge(pages, self.reasons)

    # ---- interactions

    def test_every_note_is_on_the_page_of_interactions(self):
        pages = []
        for case, found in self.pages_of_table(INTERACTIONS):
            page = found.to_html()
            self.assertTrue(case.is_in(browser.data_of(page)["notes"]), case.name)
            pages.append((case.name, page))

        def judge(data, shown):
            for note in data["notes"]:
                weighs = note in data["warnings"]
                self.says(shown.top, as_sentence(note), weighs)
                self.says(shown.open, as_sentence(note) if weighs else note, True)

        self.judge(pages, judge)

    # ---- language models

    def language(self, data, shown):
        """The rules of the page of `lm`, of its first row."""
        status = data["reference_is_model_on_baseline"]
        known = status == "yes"
        self.says(shown.top, "The reference is what the same model gives on the baseline: ", known)
        self.says(shown.top, "The reference stands for the baseline: ", not known)
        self.says(shown.top, "It is not what the model gives there", status == "no")
        self.says(shown.top, "It may not be what the model gives there", status == "unknown")
        if data["reference_reason"]:
            self.says(shown.top, "there (%s)." % data["reference_reason"], not known)
        self.says(shown.open, "reference, on the baseline", known)
        self.says(shown.open, "reference, which stands for the baseline", not known)
        self.says(shown.top, "The source of ", data["source_length"] > 0)
        self.says(shown.top, "The prompt of ", data["source_length"] == 0)
        self.says(shown.open, "without their signs these parts come to"[1:], bool(data["cancelling"][0]))
        self.says(shown.open, ", which answers another question, the same number has the parts", data["compared"] is not None)
        if data["compared"] is not None:
            share = "%.0f %% of the contributions goes to other tokens" % (100 * data["compared"]["disagreements"][0])
            self.says(shown.open, share, True)
        chances = data["target"] == "log-probability"
        finite = data["values"][0] is not None
        self.says(shown.top, "As a probability: ", chances and finite)
        referred = chances and finite and data["references"][0] is not None
        self.says(shown.top, "%; on the baseline ", referred and known)
        self.says(shown.top, "%; of the reference ", referred and not known)
        self.says(shown.top, " but the underlined ones.", bool(data["kept"]))
        for note in data["notes"]:
            self.says(shown.closed, note, True)
            self.says(shown.top, as_sentence(note), note in data["warnings"])

    def test_every_note_is_on_the_page_of_a_language_model(self):
        pages = []
        for case in language.TABLE:
            found = case.ask()
            self.assertTrue(case.is_in(found.notes), (case.name, found.notes))
            self.assertEqual(case.is_in(found.warnings), case.warning, (case.name, found.warnings))
            said = " ".join(str(found).split())
            self.assertEqual(("WARNING: " + case.note[0]) in said, case.warning, said)
            pages.append((case.name, found.to_html()))
        self.judge(pages, self.language)

    def test_each_sentence_of_a_language_model_follows_what_it_depends_on(self):
        page = language.explained().to_html()
        data = browser.data_of(page)
        pages = []
        for status in STATUSES:
            for reason in ("", "some conditions are others"):
                for reference in (data["references"][0], None):
                    change = {"reference_is_model_on_baseline": status, "reference_reason": reason,
                              "references.0": reference}
                    pages.append((str(change), browser.page_with(page, changed(data, change))))
        one_by_one = {
            "kept": ([], [0]),
            "source_length": (0, 2),
            "cancelling.0": ("", "without their signs these parts come to 2e+03 times the difference"),
            "target": ("log-probability", "entropy"),
            "values.0": (data["values"][0], None),
        }
        for key, values in one_by_one.items():
            pages += [(key, browser.page_with(page, changed(data, {key: value}))) for value in values]
        self.judge(pages, self.language)


def changed(data, change):
    """A copy with other values: {"targets.0.value": 3}."""
    whole = copy.deepcopy(data)
    for path, value in change.items():
        at = whole
        *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
        for step in steps:
            at = at[step]
        at[last] = value
    return whole


if __name__ == "__main__":
    unittest.main()
