"""Every check passes on the answers of an honest testee and fails on doctored ones. A runner that cannot fail says
nothing."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import toy  # noqa: E402
from runner import cases, checks, protocol, safetensors, subjects, tolerances  # noqa: E402
from runner.tensor import Tensor  # noqa: E402

VALUE = [1.5, -2.0, 0.25]
BASELINE = [0.5, 0.0, -0.5]
DIAGONAL = {"composition": {"value": VALUE, "baseline": BASELINE, "split": {"dims": [0]}}}
PARTS = {
    "composition": {
        "components": [[1.0, 2.0], [0.5, -1.0], [-2.0, 0.25]],
        "reference": [0.5, 1.0],
        "leftover": [0.0, 0.0],
    }
}
TABLE = {
    "base": {"f64": {"rtol": 1e-12, "atol": 1e-14}, "f32": {"rtol": 2e-6, "atol": 1e-7}},
    "quadrature": {"f64": 4e-12, "f32": 4e-6},
    "kernel": {"f64": 1e-4, "f32": 1e-4},
    "entries": [],
}
MODEL = {"model": "toy.pt", "inputs": [{"value": VALUE, "baseline": BASELINE, "split": {"dims": [0]}}]}

# A law, the class of its failures, and the doctors whose answers it has to refuse.
LAWS = [
    ("recovery", "number", ["component_off", "value_off"]),
    ("reference", "number", ["reference_off"]),
    ("reference_exact", "bits", ["reference_off", "reference_one_bit_off"]),
    ("no_leftover", "number", ["leftover_instead"]),
    ("component_permutation", "number", ["by_position", "component_off"]),
    ("component_merge", "number", ["by_count", "by_position"]),
    ("zero_component", "number", ["never_zero", "by_count"]),
    ("identity", "number", ["never_zero", "component_off", "reference_off"]),
    ("row_by_row", "number", ["component_off", "leftover_instead"]),
    ("dtype_preserved", "text", ["other_dtype"]),
    ("shape_preserved", "text", ["other_shape"]),
    ("parts", "number", ["residual_off", "recovery_off", "value_off"]),
    ("deterministic", "bits", ["drifting"]),
    ("context_isolated", "bits", ["remembers_policy", "drifting"]),
    ("thread", "bits", ["one_thread_off"]),
    ("adjoint", "number", ["swept_off", "second_target_off"]),
    ("distribution", "number", ["swept_off", "second_target_off"]),
    ("direction", "number", ["backward_off", "backward_leftover_off"]),
    ("memory_limit", "bits", ["limit_off"]),
    ("program", "bits", ["program_off", "drifting"]),
]
# Those that are about operators only.
OF_CALLS = ("row_by_row",)
OF_MODELS = ("adjoint", "direction", "distribution", "memory_limit", "program")


def call(op="toy::affine", argument=DIAGONAL, **fields):
    return dict({"op": op, "args": [argument]}, **fields)


def variant_of(case):
    family = cases.Family("/nowhere/toy.json", {"family": "toy", "cases": [dict(case, name="case")]})
    (variant,) = [variant for variant in family.variants() if variant.dtype == "f64"]
    return variant


def verdict(case, check, doctor=None, muted=False):
    """The classes of the failures of one check."""
    variant = variant_of(case)
    judge = checks.Judge(variant, check, tolerances.Tolerances(TABLE), muted)
    person = toy.Toy(doctor)
    generator = checks.of(variant)[check](subjects.of(variant), judge)
    answers, known = None, {}
    while True:
        try:
            requests = next(generator) if answers is None else generator.send(answers)
        except StopIteration:
            return [kind for kind, _ in judge.failures]
        for request in requests:
            if request.key not in known:
                known[request.key] = protocol.Answer(person.respond(request.encode(0)[4:]))
        answers = [known[request.key] for request in requests]


class LawTest(unittest.TestCase):
    def test_every_law_is_tested(self):
        self.assertEqual({law for law, _, _ in LAWS} | {"view_bit_exact", "alias"}, set(checks.LAWS))

    def judge_law(self, law, kind, doctors, case):
        self.assertEqual(verdict(case, law), [])
        for doctor in doctors:
            with self.subTest(doctor=doctor):
                self.assertEqual(set(verdict(case, law, doctor)), {kind})

    def test_laws_of_calls(self):
        for law, kind, doctors in LAWS:
            for argument in (DIAGONAL, PARTS) if law not in OF_MODELS else ():
                with self.subTest(law=law, argument=argument):
                    self.judge_law(law, kind, doctors, call(argument=argument, laws=[law]))

    def test_laws_of_models(self):
        for law, kind, doctors in LAWS:
            if law not in OF_CALLS:
                with self.subTest(law=law):
                    self.judge_law(law, kind, doctors, dict(MODEL, laws=[law]))

    def test_programs_that_round_by_addresses_are_held_to_tolerances(self):
        case = dict(MODEL, laws=["program"], repeatable=False)
        self.assertEqual(verdict(case, "program", "program_off"), [])
        self.judge_law("program", "number", ["program_far_off"], case)

    def test_secants_obey_the_laws_too(self):
        for law, _, _ in LAWS:
            if law != "row_by_row" and law not in OF_MODELS:
                with self.subTest(law=law):
                    self.assertEqual(verdict(call("toy::square", laws=[law]), law), [])
        self.assertEqual(set(verdict(call("toy::square", laws=["row_by_row"]), "row_by_row")), {"number"})

    def test_merging_sees_shares_by_size(self):
        for argument in (DIAGONAL, PARTS):
            case = call(argument=argument, laws=["component_merge"])
            self.assertEqual(set(verdict(case, "component_merge", "by_size")), {"number"})

    def test_views(self):
        for argument in (DIAGONAL, PARTS):
            case = call("toy::flip", argument, laws=["view_bit_exact"])
            self.judge_law("view_bit_exact", "bits", ["component_one_bit_off", "reference_one_bit_off"], case)
        self.assertEqual(set(verdict(call(laws=["view_bit_exact"]), "view_bit_exact")), {"bits"})

    def test_arguments_stay(self):
        for argument in (DIAGONAL, PARTS):
            self.judge_law("alias", "bits", ["writes_arguments"], call(argument=argument, laws=["alias"]))

    def test_laws_want_something_to_judge(self):
        one = {"composition": {"components": [[1.0, 2.0]]}}
        for law in ("component_permutation", "component_merge", "zero_component"):
            self.assertEqual(verdict(call(argument=one, laws=[law]), law), ["case"])
        self.assertEqual(verdict(call(argument={"tensor": VALUE}, laws=["recovery"]), "recovery"), ["case"])

    def test_a_missing_result_is_seen(self):
        for law, _, _ in LAWS:
            if law not in ("deterministic", "context_isolated", "thread"):
                case = dict(MODEL, laws=[law]) if law in OF_MODELS else call(laws=[law])
                self.assertTrue(verdict(case, law, "forgets_a_result"), law)

    def test_errors_fail_every_law(self):
        for law, _, _ in LAWS:
            if law not in OF_MODELS:
                self.assertIn("error", verdict(call("toy::nothing", laws=[law]), law), law)

    def test_comparing_asks_no_form_twice(self):
        laws = ["recovery", "component_permutation", "component_merge", "deterministic"]
        variant = variant_of(dict(call(), laws=laws))
        self.assertEqual(list(checks.of(variant)), laws)
        self.assertEqual(list(checks.of(variant, comparing=True)), laws[:2])
        # A case is never left without a check.
        self.assertEqual(list(checks.of(variant_of(dict(call(), laws=["identity"])), comparing=True)), ["ok"])

    def test_muted_judges_look_at_codes_only(self):
        self.assertEqual(verdict(call(laws=["recovery"]), "recovery", "component_off", muted=True), [])
        self.assertEqual(verdict(call("toy::nothing", laws=["recovery"]), "recovery", muted=True), ["error"])
        steps = {"verb": "lifecycle", "steps": [["read", "x"]], "codes": ["INVALID_ARGUMENT"], "dtypes": ["f64"]}
        self.assertEqual(verdict(steps, "lifecycle", "wrong_code_of_a_step", muted=True), ["text"])


class StatementTest(unittest.TestCase):
    """Statements of a case itself."""

    def test_numbers(self):
        exact = {
            "components": [[2.0, 0, 0], [0, -4.0, 0], [0, 0, 1.5]],
            "reference": [2.0, 1.0, 0.0],
            "leftover": [0.0, 0.0, 0.0],
            "value": [4.0, -3.0, 1.5],
        }
        case = call(expect={"outputs": [exact]})
        self.assertEqual(verdict(case, "expect"), [])
        for doctor in ("component_off", "reference_off", "leftover_instead", "value_off"):
            self.assertIn("number", verdict(case, "expect", doctor), doctor)
        self.assertEqual(verdict(case, "expect", "forgets_a_result"), ["text"])
        for part in exact:
            wrong = dict(exact)
            wrong[part] = [[9.0] * 3] * 3 if part == "components" else [9.0] * 3
            self.assertEqual(verdict(call(expect={"outputs": [wrong]}), "expect"), ["number"], part)
        self.assertEqual(verdict(call(expect={"outputs": [{"tensor": VALUE}]}), "expect"), ["text"])

    def test_numbers_of_plain_results(self):
        plain = call(argument={"tensor": VALUE}, expect={"outputs": [{"tensor": [4.0, -3.0, 1.5]}]})
        self.assertEqual(verdict(plain, "expect"), [])
        plain["expect"]["outputs"][0]["tensor"][1] = -3.001
        self.assertEqual(verdict(plain, "expect"), ["number"])

    def test_errors(self):
        case = call("toy::nothing", error="NOT_FOUND")
        self.assertEqual(verdict(case, "error"), [])
        self.assertEqual(verdict(case, "error", "forgives"), ["error"])
        self.assertEqual(verdict(case, "error", "other_error"), ["error"])
        self.assertEqual(verdict(call(error="NOT_FOUND"), "error"), ["error"])
        named = call("toy::nothing", error="NOT_FOUND", payload={"op": "toy::nothing"})
        self.assertEqual(verdict(named, "error"), ["text"])

    def test_success(self):
        self.assertEqual(verdict(call(), "ok"), [])
        self.assertEqual(verdict(call("toy::nothing"), "ok"), ["error"])

    def test_report(self):
        case = dict(MODEL, report={"failures": 0})
        self.assertEqual(verdict(case, "report"), [])
        self.assertEqual(verdict(case, "report", "reports_failures"), ["number"])
        self.assertEqual(verdict(dict(MODEL, report={"nothing": 0}), "report"), ["number"])

    def test_explanation(self):
        case = dict(MODEL, explain=[{"target": "1"}])
        self.assertEqual(verdict(case, "explanation"), [])
        self.assertIn("number", verdict(case, "explanation", "wrong_contribution"))
        self.assertIn("text", verdict(case, "explanation", "wrong_ranks"))

    def test_lifecycle(self):
        case = {
            "verb": "lifecycle",
            "dtypes": ["f64"],
            "compositions": {"x": DIAGONAL["composition"]},
            "steps": [["make", "x"], ["release", "x"], ["read", "x"], ["live"]],
            "codes": ["OK", "OK", "INVALID_ARGUMENT", "0"],
        }
        self.assertEqual(verdict(case, "lifecycle"), [])
        self.assertEqual(verdict(case, "lifecycle", "wrong_code_of_a_step"), ["text"])
        self.assertEqual(verdict(case, "lifecycle", "leaks"), ["text"])
        self.assertEqual(verdict(dict(case, codes=["OK"]), "lifecycle"), ["text"])

    def test_memory(self):
        case = {"verb": "memory", "dtypes": ["f64"], "tensors": {"data": VALUE, "after": BASELINE}}
        self.assertEqual(verdict(case, "memory"), [])
        self.assertEqual(verdict(case, "memory", "does_not_share"), ["bits"])
        self.assertEqual(verdict(case, "memory", "shares_copies"), ["bits"])

    def test_read(self):
        file = list(safetensors.encode({"a": Tensor("f64", (1,), [1.0])}, {}))
        case = {"verb": "read", "dtypes": ["f64"], "tensors": {"file": {"dtype": "u8", "data": file}}}
        self.assertEqual(verdict(case, "read"), [])
        self.assertEqual(verdict(case, "read", "reads_other_bits"), ["bits"])
        cut = {"file": {"dtype": "u8", "data": file[:-1]}}
        self.assertEqual(verdict(dict(case, tensors=cut, error="INVALID_ARGUMENT"), "error"), [])
        self.assertEqual(verdict(dict(case, error="INVALID_ARGUMENT"), "error"), ["error"])


class DifferenceTest(unittest.TestCase):
    """Two testees' answers to one request."""

    def answer(self, case, doctor=None):
        subject = subjects.of(variant_of(case))
        return protocol.Answer(toy.Toy(doctor).respond(subject.base(echo="op" in case).encode(0)[4:]))

    def test_equal_ones(self):
        for case in (call(), MODEL, dict(MODEL, explain=[{"target": "1"}]), call("toy::nothing")):
            self.assertEqual(checks.differences(self.answer(case), self.answer(case), named=True), [])

    def test_every_bit_counts(self):
        explained = dict(MODEL, explain=[{"target": "1"}])
        of_calls = "component_one_bit_off reference_one_bit_off value_off other_dtype other_shape forgets_a_result "
        for case, doctors in [
            (call(), of_calls + "writes_arguments leftover_instead"),
            (explained, "component_one_bit_off reports_failures wrong_contribution wrong_ranks"),
            (call("toy::nothing"), "other_error"),
        ]:
            for doctor in doctors.split():
                with self.subTest(doctor=doctor):
                    honest, doctored = self.answer(case), self.answer(case, doctor)
                    self.assertTrue(checks.differences(doctored, honest))
                    self.assertTrue(checks.differences(honest, doctored))

    def test_names_count_where_asked(self):
        a, b = self.answer(MODEL), self.answer(MODEL)
        b.entries["results"] = b.entries["results"].replace("output", "other")
        self.assertTrue(checks.differences(b, a, named=True))
        self.assertEqual(checks.differences(b, a), [])

    def test_numbers_do_not_count_where_none_are_repeatable(self):
        honest = self.answer(call())
        for doctor, seen in [("component_one_bit_off", 0), ("other_dtype", 1), ("other_shape", 1), ("other_error", 0)]:
            with self.subTest(doctor=doctor):
                found = checks.differences(self.answer(call(), doctor), honest, numbers=False)
                self.assertEqual(bool(found), bool(seen))

    def test_texts_of_errors_do_not_count(self):
        a, b = self.answer(call("toy::nothing")), self.answer(call("toy::nothing"))
        b.entries["message"] = "other words"
        self.assertEqual(checks.differences(b, a), [])


if __name__ == "__main__":
    unittest.main()
