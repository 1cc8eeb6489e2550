import re
import unittest
from pathlib import Path

import order
import page
from reasons import REASONS

HERE = Path(__file__).parent


def entry(time, error=1e-7, **more):
    times = {"ratio": {"median": time, "quartiles": [time, time], "runs": 5}, "ms": time, "plain_ms": 1.0}
    return {
        "versions": {"own": "1.0", "torch": "2.15.0"}, "date": "2026-11-30 20:00 UTC", "load": 1.5, "clock": times,
        "processor": times, "peak_mib": 2.0, "plain_peak_mib": 1.0, "explained": 40, "aim": "difference",
        "completeness_error": error, "completeness_error_worst": error, "value_error": 0.1, **more,
    }


def results(**methods):
    return {"digits": {"title": "a CNN", "parts": 64, "samples": 40, "methods": {
        "Addend faithful": entry(9.0, faithfulness=0.9), **methods,
    }}}


def sentences(found):
    said = {measure.title: page.sentences_by_reason(found, measure) for measure in page.MEASURES}
    return {title: [one for _, own in reasons for one in own] for title, reasons in said.items() if reasons}


class Page(unittest.TestCase):
    def test_a_faster_peer_is_ahead(self):
        said = sentences(results(Captum_fast=entry(3.0, faithfulness=0.9)))
        self.assertEqual(list(said), ["time"])
        self.assertIn(
            "**Captum_fast** is ahead on its model: on `digits` it takes 3.0 plain runs instead of 9.0 and misses "
            "1e-07 of the move.", said["time"][0]
        )

    def test_numbers_of_other_samples_say_so(self):
        said = sentences(results(SHAP=entry(90.0, faithfulness=0.95, explained=7)))
        self.assertIn("on `digits` (7 samples, Addend's is of 40) it reaches an F of 0.950", said["F"][0])

    def test_numbers_of_other_samples_stand_last_and_do_not_count(self):
        found = results(SHAP=entry(90.0, faithfulness=0.95, explained=7), Captum=entry(90.0, faithfulness=0.95))
        f = next(measure for measure in page.MEASURES if measure.title == "F")
        reasons = page.sentences_by_reason(found, f)
        self.assertEqual([why for why, _ in reasons], [None, page.OTHER_SAMPLES])
        self.assertEqual(page.in_short(found, f), "a peer on 1 of 1 model (Captum on 1).")

    def test_samples_of_quantus_are_its_own(self):
        judged = {"samples": 2, "monotonicity": 0.9}
        found = results(Captum=entry(90.0, quantus=judged))
        found["digits"]["methods"]["Addend faithful"]["quantus"] = {"samples": 2, "monotonicity": 0.5}
        self.assertIn("on `digits` (2 samples) it has a monotonicity of 0.900", sentences(found)["monotonicity"][0])

    def test_differences_of_rounding_and_within_margins_are_none(self):
        self.assertEqual(sentences(results(Captum=entry(8.9, 0.0, faithfulness=0.905))), {})

    def test_more_is_better_where_it_is(self):
        said = sentences(results(SHAP=entry(90.0, 0.5, faithfulness=0.95), Captum=entry(90.0, faithfulness=0.5)))
        self.assertEqual({title: len(own) for title, own in said.items()}, {"F": 1})

    def test_a_refusal_is_told_with_its_reason(self):
        text = "\n".join(page.page(results(LXT={**entry(1.0), "reason": "for `transformers`"})))
        self.assertIn("- LXT: `for 'transformers'`", text)
        self.assertNotIn("| LXT", text)

    def test_what_is_not_finite_is_no_result(self):
        found = results(**{"Captum DeepLift": entry(1.0, None, faithfulness=1.0)})
        self.assertEqual(sentences(found), {})
        self.assertIn("- Captum DeepLift: `gives NaN or infinity`", "\n".join(page.page(found)))

    def test_what_addend_has_no_number_of_is_not_compared(self):
        found = results(Captum=entry(90.0, quantus={"complexity": 1.0}))
        text = "\n".join(page.page(found))
        self.assertIn("- **complexity**: not compared", text)
        self.assertIn("- **time**: no peer, on 1 model.", text)

    def test_the_first_lines_say_where_a_peer_is_ahead(self):
        found = results(**{"Captum a": entry(3.0), "Captum b": entry(2.0)})
        found["gpt2"] = {**found["digits"], "methods": {"Addend faithful": entry(9.0), "Captum b": entry(2.0)}}
        lines = list(page.page(found))
        self.assertIn("ahead of `Addend faithful`", lines[2])
        self.assertEqual(lines[4], "- **time**: a peer on 2 of 2 models (Captum b on 2, Captum a on 1).")

    def test_the_first_lines_say_which_of_the_faster_ones_are_complete(self):
        text = "\n".join(page.page(results(**{"SHAP a": entry(3.0, 0.5), "zennit a": entry(3.0, 0.5, aim="value", value_error=1e-6)})))
        self.assertIn("Of those that are ahead in time, zennit a on `digits` miss less than 0.1 %", text)
        text = "\n".join(page.page(results(**{"SHAP a": entry(3.0, 0.5)})))
        self.assertIn("Of those that are ahead in time, none misses less than 0.1 %", text)

    def test_sentences_stand_by_their_reason_and_those_without_one_last(self):
        found = results(**{"SHAP other": entry(1.0), "zennit a": entry(1.0), "zennit b": entry(1.0)})
        reasons = page.sentences_by_reason(found, page.MEASURES[0])
        self.assertEqual([(why, len(own)) for why, own in reasons], [(REASONS["time"]["zennit"], 2), (None, 1)])

    def test_the_best_policy_that_is_ahead_too_is_told(self):
        found = results(
            Captum=entry(9.0, faithfulness=0.95), **{"Addend fast": entry(9.0, faithfulness=0.93),
                                                     "Addend faithful, attention by magnitude": entry(9.0, faithfulness=0.96)}
        )
        self.assertTrue(sentences(found)["F"][0].endswith(
            "an F of 0.950 instead of 0.900; `Addend faithful, attention by magnitude` has 0.960 there."
        ))

    def test_other_methods_of_addend_are_no_peers(self):
        self.assertEqual(sentences(results(**{"Addend fast": entry(1.0, faithfulness=2.0)})), {})


class Committed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.results = page.read(HERE / "results")

    def test_page_is_that_of_the_results(self):
        text = (HERE / "results" / "peers.md").read_text(encoding="utf-8")
        self.assertEqual("\n".join(page.page(self.results)) + "\n", text)

    def test_each_package_explains_a_model(self):
        explaining = {
            method.split()[0] for result in self.results.values() for method, entry in result["methods"].items()
            if page.ran(entry)
        }
        self.assertEqual(explaining, set(order.PACKAGES))

    def test_versions_are_those_that_are_required(self):
        required = {}
        for file in ("requirements.txt", "requirements_older.txt"):
            for name, version in re.findall(r"(?m)^([\w-]+)==(\S+)$", (HERE / file).read_text(encoding="utf-8")):
                required.setdefault(name, set()).add(version)
        names = {"DLBacktrace": "dl-backtrace", "TransformerLens": "transformer-lens"}
        theirs = {
            model: {**result, "methods": {k: one for k, one in result["methods"].items() if not k.startswith("Addend")}}
            for model, result in self.results.items()
        }
        for name, found in page.versions(theirs).items():
            with self.subTest(name):
                self.assertLessEqual(found, required[names.get(name, name.lower())])

    def test_reasons_are_of_measures_and_methods(self):
        titles = {measure.title for measure in page.MEASURES}
        methods = {method for result in self.results.values() for method in result["methods"]}
        for title, known in REASONS.items():
            self.assertIn(title, titles)
            for start in known:
                self.assertTrue(any(method.startswith(start) for method in methods), start)

    def test_peers_have_one_pytorch_and_another_one_of_addend_is_told(self):
        own, others = (page.pytorchs(self.results, own) for own in (True, False))
        self.assertEqual(len(others), 1)
        self.assertEqual(own != others, "Addend ran with PyTorch" in "\n".join(page.page(self.results)))


if __name__ == "__main__":
    unittest.main()
