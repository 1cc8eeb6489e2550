"""docs/seeds.md: every test that it names exists, and every sample that is tested is on it."""

import ast
import os
import re
import unittest

FOLDERS = ("bindings/python/tests", "tests/constructs")


def tests_in(path):
    """The names of all tests in a file, as "Class.test_method"."""
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    return {
        "%s.%s" % (one.name, method.name)
        for one in tree.body if isinstance(one, ast.ClassDef)
        for method in one.body if isinstance(method, ast.FunctionDef) and method.name.startswith("test")
    }  # fmt: skip


def tests_of(module):
    paths = [os.path.join(folder, module + ".py") for folder in FOLDERS]
    return set().union(*(tests_in(path) for path in paths if os.path.exists(path)))


class SeedsPageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open("docs/seeds.md", encoding="utf-8") as file:
            text = file.read()
        cls.sections = text.split("\n## ")[1:]
        lines = [line for line in text.splitlines() if line.startswith("|") and not line.startswith("|---")]
        cls.rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]

    def test_rows_name_tests_that_exist(self):
        known = {}
        named = 0
        for row in self.rows:
            if row[2] == "test":  # the head of a table
                continue
            self.assertEqual(len(row), 3, row)
            self.assertTrue(all(row), row)
            tests = re.findall(r"`([^`]*)`", row[2])
            self.assertEqual(", ".join("`%s`" % test for test in tests), row[2])
            for test in tests:
                module, _, name = test.partition(".")
                if module not in known:
                    known[module] = tests_of(module)
                self.assertIn(name, known[module], "%s, which is named for: %s" % (test, row[0]))
                named += 1
        self.assertGreater(named, 100)

    def test_every_document_has_both_tables(self):
        documents = [section for section in self.sections if "| what it says |" in section]
        self.assertEqual(len(documents), 5)
        for section in documents:
            self.assertEqual(section.count("| what it says |") + section.count("| not kept |"), 2, section[:40])

    def test_every_sample_is_named(self):
        shown = " ".join(row[2] for row in self.rows)
        for name in tests_of("seeds_test"):
            self.assertIn("`seeds_test.%s`" % name, shown)


if __name__ == "__main__":
    unittest.main()
