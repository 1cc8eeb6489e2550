"""Comparisons, tolerances, lists of expected failures, the schema's checker and case files."""

import json
import math
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from runner import cases, compare, failures, schema, tolerances  # noqa: E402
from runner.tensor import Tensor  # noqa: E402

NAN = math.nan
INF = math.inf
TABLE = {
    "base": {"f64": {"rtol": 1e-6, "atol": 1e-9}, "f32": {"rtol": 1e-3, "atol": 1e-6}},
    "quadrature": {"f64": 1e-3},
    "kernel": {"f64": 1e-4},
    "entries": [
        {"op": "aten::exp*", "dtype": "f64", "factor": 10, "reason": "a test", "date": "2025-01-01"},
    ],
}


def f64(*numbers):
    return Tensor("f64", (len(numbers),), numbers)


def allowance(table, **changes):
    wanted = dict(dict(dtype="f64", op="aten::relu", law="recovery", kind="", policy="fast"), **changes)
    return table.of(**wanted)


class CloseTest(unittest.TestCase):
    def close(self, got, expected, sizes=1.0, **changes):
        return compare.close("x", got, expected, allowance(tolerances.Tolerances(TABLE), **changes), sizes)

    def test_around_the_tolerance(self):
        self.assertIsNone(self.close(f64(1.0), f64(1.0 + 0.99e-6)))
        self.assertIsNotNone(self.close(f64(1.0), f64(1.0 + 1.02e-6)))
        self.assertIsNone(self.close(f64(0.0), f64(0.99e-9), 0.0))
        self.assertIsNotNone(self.close(f64(0.0), f64(1.02e-9), 0.0))

    def test_size_counts(self):
        self.assertIsNone(self.close(f64(1.0), f64(1.0 + 9e-6), 10.0))
        self.assertIsNone(self.close(f64(0.0, 1.0), f64(0.0, 1.0 + 9e-6), [0.0, 10.0]))
        self.assertIsNotNone(self.close(f64(0.0, 1.0), f64(9e-6, 1.0), [0.0, 10.0]))

    def test_not_finite(self):
        for same in (NAN, INF, -INF):
            self.assertIsNone(self.close(f64(same), f64(same)))
        for a, b in ((NAN, 1.0), (1.0, NAN), (INF, 1.0), (1.0, INF), (INF, -INF), (NAN, INF)):
            self.assertIsNotNone(self.close(f64(a), f64(b), 1e300), (a, b))

    def test_shape_and_kind(self):
        self.assertIn("shape", self.close(f64(1.0), Tensor("f64", (1, 1), [1.0])))
        self.assertIn("c128", self.close(Tensor("c128", (1,), [1.0, 0.0]), f64(1.0)))

    def test_the_worst_is_told(self):
        got, expected = Tensor("f64", (2, 2), [1.0, 2.0, 3.0, 4.0]), Tensor("f64", (2, 2), [1.0, 2.1, 3.5, 4.1])
        text = self.close(got, expected, 0.0)
        self.assertIn("at [1, 0]", text)
        self.assertIn("0x1.8000000000000p+1", text)
        self.assertIn("off by 0.5", text)

    def test_factors(self):
        self.assertIsNone(self.close(f64(1.0), f64(1.0 + 9e-6), op="aten::expm1"))
        self.assertIsNotNone(self.close(f64(1.0), f64(1.0 + 1.1e-5), op="aten::expm1"))
        self.assertIsNone(self.close(f64(1.0), f64(1.0 + 9e-4), kind="path"))
        self.assertIsNone(self.close(f64(1.0), f64(1.0 + 9e-4), dtype="f32"))

    def test_what_a_kernel_is_off_is_allowed(self):
        self.assertIsNone(self.close(f64(1.0), f64(1.0 + 9e-5), kernel=1e-4))
        self.assertIsNotNone(self.close(f64(1.0), f64(1.0 + 1.1e-4), kernel=1e-4))

    def test_remarks(self):
        table = tolerances.Tolerances(TABLE)
        (remark,) = table.remarks()
        self.assertIn("nothing asked", remark)
        for ratio, says in ((0.01, "not needed"), (0.2, "could shrink to 2"), (0.9, None)):
            allowance(table, op="aten::exp").met(ratio)
            remarks = list(table.remarks())
            self.assertEqual(len(remarks), 1 if says else 0)
            if says:
                self.assertIn(says, remarks[0])
        other = tolerances.Tolerances(TABLE)
        other.merge(table.usage())
        self.assertEqual(list(other.remarks()), [])

    def test_entries_need_reasons(self):
        entry = TABLE["entries"][0]
        for lacking in ("reason", "date", "factor"):
            with self.assertRaises(ValueError):
                less = {key: text for key, text in entry.items() if key != lacking}
                tolerances.Tolerances(dict(TABLE, entries=[less]))
        for change in ({"factor": 1}, {"operator": "x"}, {"device": "cuda"}):
            with self.assertRaises(ValueError):
                tolerances.Tolerances(dict(TABLE, entries=[dict(entry, **change)]))

    def test_the_table_of_the_suite(self):
        table = tolerances.load(os.path.join(cases.ROOT, "tolerances.json"))
        self.assertEqual(set(table.base), {"f64", "f32", "f16", "bf16"})
        for entry in table.entries:
            self.assertRegex(entry.fields["date"], r"^\d{4}-\d\d-\d\d$")


class BitsTest(unittest.TestCase):
    def test_bits(self):
        self.assertIsNone(compare.same_bits("x", f64(0.1, INF, -0.0), f64(0.1, INF, -0.0)))
        self.assertIn("[1]", compare.same_bits("x", f64(1.0, 0.0), f64(1.0, -0.0)))
        self.assertIn("[0]", compare.same_bits("x", f64(0.1), f64(0.1 + 2e-17)))
        self.assertIn("f32", compare.same_bits("x", f64(1.0), Tensor("f32", (1,), [1.0])))
        self.assertIn("shape", compare.same_bits("x", f64(1.0), Tensor("f64", (1, 1), [1.0])))

    def test_any_nan_is_nan(self):
        other = Tensor("f64", (1,), raw=bytes.fromhex("010000000000f8ff"))
        self.assertIsNone(compare.same_bits("x", f64(NAN), other))
        self.assertIsNotNone(compare.same_bits("x", f64(1.0), other))

    def test_zero(self):
        self.assertIsNone(compare.zero("x", f64(0.0, -0.0)))
        self.assertIn("[1]", compare.zero("x", f64(0.0, 5e-324)))
        self.assertIsNotNone(compare.zero("x", f64(NAN)))
        self.assertIsNone(compare.zero("x", f64(NAN, 0.0), [True, False]))

    def test_ulps(self):
        self.assertEqual(compare.ulps(1.0, 1.0 + 2.0**-52, "f64"), "1 ulp")
        self.assertEqual(compare.ulps(0.0, -5e-324, "f64"), "1 ulp")
        self.assertEqual(compare.ulps(1.0, 1.0 + 2.0**-22, "f32"), "2 ulp")
        self.assertEqual(compare.ulps(1.0, INF, "f64"), "no ulps")


class FailureListTest(unittest.TestCase):
    def expects(self, line, name):
        return failures.FailureList("list", line + "   # number: words").expects(name)

    def test_patterns(self):
        name = "required.activation.relu.fast.f32.recovery"
        for line in (name, "required.activation.*.fast.f32.recovery", "required.*", "required.*.re*.fast.*.recovery"):
            self.assertEqual(self.expects(line, name), {"number"}, line)
        for line in ("required", "required.*.fast.f32.recovery", "*.f64.*", "required.activation.relu.fast.f32.reco"):
            self.assertEqual(self.expects(line, name), set(), line)

    def test_lines(self):
        known = failures.FailureList("list", "# words\n\na.b # bits\na.c # error: more\n")
        self.assertEqual(known.expects("a.b"), {"bits"})
        self.assertEqual(known.unmatched(), [(4, "a.c")])
        with self.assertRaises(ValueError):
            failures.FailureList("list", "a.b\n")

    def test_our_own_are_empty(self):
        folder = os.path.join(cases.ROOT, "expected_failures")
        names = sorted(os.listdir(folder))
        self.assertEqual(names, ["c.txt", "cpp.txt", "csharp.txt", "java.txt", "python.txt"])
        for name in names:
            self.assertEqual(failures.load(os.path.join(folder, name)).lines, [], name)


class SchemaTest(unittest.TestCase):
    def test_keywords(self):
        for rules, good, wrong in [
            ({"type": "integer"}, 3, 3.5),
            ({"type": "integer"}, 3, True),
            ({"type": "number"}, 3.5, "3"),
            ({"type": "boolean"}, False, 0),
            ({"type": "null"}, None, 0),
            ({"const": 1}, 1, 2),
            ({"enum": ["a", 1]}, 1, True),
            ({"minimum": 0}, 0, -1),
            ({"pattern": "^a+$"}, "aa", "ab"),
            ({"items": {"type": "integer"}}, [1, 2], [1, "2"]),
            ({"minItems": 1}, [1], []),
            ({"minProperties": 1}, {"a": 1}, {}),
            ({"required": ["a"]}, {"a": 1}, {"b": 1}),
            ({"properties": {"a": {"type": "string"}}}, {"a": "x"}, {"a": 1}),
            ({"properties": {"a": {}}, "additionalProperties": False}, {"a": 1}, {"b": 1}),
            ({"additionalProperties": {"type": "string"}}, {"a": "x"}, {"a": 1}),
            ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, 1, 1.5),
            ({"oneOf": [{"type": "number"}, {"type": "integer"}]}, 1.5, 1),
        ]:
            self.assertEqual(schema.problems(good, rules), [], rules)
            self.assertEqual(len(schema.problems(wrong, rules)), 1, rules)

    def test_references(self):
        rules = {
            "definitions": {"list": {"type": "array", "items": {"$ref": "#/definitions/list"}}},
            "$ref": "#/definitions/list",
        }
        self.assertEqual(schema.problems([[], [[]]], rules), [])
        (problem,) = schema.problems([[], [3]], rules)
        self.assertTrue(problem.startswith("[1][0]:"), problem)

    def test_what_is_not_known_is_refused(self):
        for rules in ({"maxItems": 3}, {"$ref": "other.json"}, {"items": {"format": "date"}}):
            with self.assertRaises(ValueError):
                schema.problems([1], rules)

    def test_case_files(self):
        with open(os.path.join(cases.ROOT, "case.schema.json"), encoding="utf-8") as file:
            rules = json.load(file)
        case = {"name": "a", "op": "aten::relu", "args": [{"tensor": [1.0, "NaN"]}]}
        good = {"suite": 1, "family": "f", "cases": [case]}
        self.assertEqual(schema.problems(good, rules), [])
        for change in (
            {"suite": 2},
            {"family": "a.b"},
            {"cases": []},
            {"colour": "red"},
            {"cases": [{"op": "aten::relu"}]},
            {"cases": [{"name": "a", "laws": ["no_such_law"]}]},
            {"cases": [{"name": "a", "error": "WRONG"}]},
            {"cases": [{"name": "a", "args": [{"tensor": ["abc"]}]}]},
            {"cases": [{"name": "a", "args": [{"composition": {"value": [1.0]}}]}]},
            {"cases": [{"name": "a", "policies": ["slow"]}]},
            {"cases": [{"name": "a", "dtypes": []}]},
            {"cases": [{"name": "a", "level": "optional"}]},
        ):
            self.assertTrue(schema.problems(dict(good, **change), rules), change)


class CaseTest(unittest.TestCase):
    def family(self, *content):
        return cases.Family("/nowhere/x.json", {"family": "f", "cases": list(content)})

    def test_variants(self):
        family = self.family({"name": "a", "policies": ["fast", {}, {"bias": "abs", "preset": "faithful"}], "op": "f"})
        policies = ("fast", "default", "bias=abs+preset=faithful")
        self.assertEqual(
            [variant.name for variant in family.variants()],
            ["required.f.a.%s.%s" % (policy, dtype) for policy in policies for dtype in ("f64", "f32")],
        )
        self.assertEqual(list(self.family({"name": "a", "superseded_by": "b"}).variants()), [])

    def test_tensors(self):
        family = self.family()
        tensor = family.tensor([[1, 2.5], ["-Infinity", "0x1p-2"]], "f32")
        self.assertEqual((tensor.dtype, tensor.shape, list(tensor.numbers)), ("f32", (2, 2), [1, 2.5, -INF, 0.25]))
        self.assertEqual(family.tensor([True, False], "f64").dtype, "bool")
        self.assertEqual(family.tensor({"dtype": "i64", "data": [1, 2]}, "f64").dtype, "i64")
        self.assertEqual(family.tensor({"shape": [2, 0], "data": []}, "f64").shape, (2, 0))
        self.assertEqual(family.tensor({"dtype": "c128", "shape": [2], "data": [1, 2, 3, 4]}, "f64").shape, (2,))
        self.assertEqual(family.tensor({"dtype": "c128", "data": [[1, 2], [3, 4]]}, "f64").shape, (2,))
        self.assertEqual(family.tensor(3.5, "f64").shape, ())
        for wrong in ([[1, 2], [3]], {"shape": [3], "data": [1, 2]}, "@nothing"):
            with self.assertRaises(cases.CaseError):
                family.tensor(wrong, "f64")

    def test_levels(self):
        recommended, optional = {"name": "b", "level": "recommended"}, {"name": "c", "level": "optional:x"}
        variants = list(self.family({"name": "a"}, recommended, optional).variants())
        for level, count in (("required", 2), ("recommended", 4), ("all", 6)):
            self.assertEqual(sum(cases.selected(variant, level) for variant in variants), count)

    def test_wrong_files_are_named(self):
        good = '{"suite": 1, "family": "f", "cases": [{"name": "a", "op": "x"}]}'
        with tempfile.TemporaryDirectory() as folder:

            def write(name, text):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(text)

            write("a.json", good)
            self.assertEqual(len(cases.load(["*"], [folder])), 1)
            write("b.json", good)
            with self.assertRaisesRegex(cases.CaseError, "f.a is in .*a.json and in .*b.json"):
                cases.load(["*"], [folder])
            self.assertEqual(len(cases.load(["b"], [folder])), 1)
            write("b.json", "{")
            with self.assertRaisesRegex(cases.CaseError, "b.json is no JSON"):
                cases.load(["*"], [folder])
            write("b.json", good.replace('"suite": 1', '"suite": 9'))
            with self.assertRaisesRegex(cases.CaseError, "suite: 9 is not 1"):
                cases.load(["*"], [folder])


if __name__ == "__main__":
    unittest.main()
