"""The schemas, their examples, and whether what is wrong with a document is found."""

import copy
import glob
import os
import unittest

import schema

FOLDER = "docs/schemas"


def examples():
    """(name, document) of each example."""
    for path in sorted(glob.glob(FOLDER + "/examples/*.json")):
        with open(path) as file:
            yield os.path.basename(path), schema.read(file.read())


def objects(value, place=()):
    """The place of every object in a document."""
    if isinstance(value, dict):
        yield place
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from objects(item, place + (key,))


def at(value, place):
    for key in place:
        value = value[key]
    return value


class SchemaTest(unittest.TestCase):
    def setUp(self):
        self.schemas = schema.Schemas(FOLDER)

    def test_every_document_has_an_example_that_its_schema_accepts(self):
        found = set()
        for name, document in examples():
            with self.subTest(name):
                self.assertEqual(self.schemas.problems(document), [])
                found.add(self.schemas.named_by(document))
        self.assertEqual(found, set(self.schemas.names()) - {"common.schema.json"})

    def test_an_unknown_key_is_found_wherever_it_is(self):
        # Objects that map names to things, which may be any.
        named = {"operators_by_kind", "words", "mapping"}
        # Values of arguments and guards are whatever operators take.
        for name, document in examples():
            for place in objects(document):
                if place and (place[-1] in named or "value" in place or name == "program.json" and "arguments" in place):
                    continue
                changed = copy.deepcopy(document)
                at(changed, place)["surprise"] = 1
                with self.subTest(name, place=place):
                    self.assertTrue(any("surprise" in problem for problem in self.schemas.problems(changed)))

    def test_a_missing_key_is_found(self):
        optional = {
            *(("concepts.schema.json", key) for key in (
                "adverse", "side", "at_most", "threshold", "threshold_share", "text", "concepts")),
            ("explanation.schema.json", "operators"),
            ("graph.schema.json", "title"),
            ("program.schema.json", "libtorch"),
            ("decision.schema.json", "context"),
            ("decision.schema.json", "reasons"),
            ("decision.schema.json", "set_aside"),
            # Documents of before have none.
            ("report.schema.json", "warnings"),
            *((own + ".schema.json", "warning_kinds") for own in ("interactions", "reasons", "report")),
            ("reasons.schema.json", "reference_is_model_on_baseline"),
        }
        for name, document in examples():
            for key in document:
                changed = {other: value for other, value in document.items() if other != key}
                own = self.schemas.named_by(document)
                expected = [] if (own, key) in optional else [": %s is missing" % key]
                with self.subTest(name, key=key):
                    self.assertEqual(self.schemas.problems(changed, own), expected)

    def test_a_value_of_another_type_is_found(self):
        document = dict(examples())["explanation.json"]
        for change, problem in (
            (("version",), ".version"),
            (("targets", 0, "value"), ".targets[0].value"),
            (("targets", 0, "contributions", 1), ".targets[0].contributions[1]"),
            (("components", 0, "name"), ".components[0].name"),
            (("inputs", 0, "inside"), ".inputs[0].inside"),
            (("kind",), ".kind"),
            (("policy", "bias"), ".policy.bias"),
        ):
            changed = copy.deepcopy(document)
            at(changed, change[:-1])[change[-1]] = {"an": "object"}
            with self.subTest(problem):
                self.assertTrue(any(p.startswith(problem + ":") for p in self.schemas.problems(changed)))
        self.assertTrue(self.schemas.problems(dict(document, targets=[])))
        # A number that is not finite is null, and a bool is no number.
        changed = copy.deepcopy(document)
        changed["targets"][0]["conditioning"] = None
        self.assertEqual(self.schemas.problems(changed), [])
        changed["targets"][0]["conditioning"] = True
        self.assertTrue(self.schemas.problems(changed))
        with self.assertRaisesRegex(ValueError, "NaN"):
            schema.read('{"x": NaN}')

    def test_a_policy_has_its_fields_and_overrides(self):
        document = dict(examples())["explanation.json"]
        document["policy"]["nonlinearity@aten::relu"] = "scaling"
        self.assertEqual(self.schemas.problems(document), [])
        document["policy"]["nonlinearities"] = "scaling"
        self.assertEqual(len(self.schemas.problems(document)), 1)


if __name__ == "__main__":
    unittest.main()
