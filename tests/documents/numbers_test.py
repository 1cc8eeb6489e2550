"""Whether an explanation has the numbers of addend_number, by these names, in every language, and no others.

usage: numbers_test.py addend.h addend.hpp _explanation.py Explanation.java Explanation.cs
"""

import re
import sys
import unittest

PATHS = []


def words(name):
    """RECOVERY_ERROR -> ["recovery", "error"]"""
    return name.lower().split("_")


def snake(name):
    return "_".join(words(name))


def pascal(name):
    return "".join(word.capitalize() for word in words(name))


def camel(name):
    return pascal(name)[0].lower() + pascal(name)[1:]


def read(path):
    with open(path) as file:
        return file.read()


class NumbersTest(unittest.TestCase):
    def setUp(self):
        header, cpp, python, java, csharp = [read(path) for path in PATHS]
        self.names = re.findall(r"ADDEND_NUMBER_(\w+) = \d", header)
        cpp = cpp[cpp.index("class Explanation "):]
        self.cpp = re.findall(r"^  double (\w+)\(\) const", cpp[:cpp.index("\n};")], re.MULTILINE)
        self.python = re.findall(r"def (\w+)\(self\) -> float:", python)
        self.java = re.findall(r"public double (\w+)\(\)", java)
        # The record of explanations stands behind that of contributions.
        record = csharp[csharp.index("public sealed record Explanation("):]
        self.csharp = re.findall(r"^    double (\w+)[,)]", record[:record.index("{")], re.MULTILINE)

    def test_every_language_has_them(self):
        self.assertEqual(len(self.names), 7)
        self.assertEqual(self.cpp, [snake(name) for name in self.names])
        self.assertEqual(self.python, [snake(name) for name in self.names])
        self.assertEqual(self.java, [camel(name) for name in self.names])
        self.assertEqual(self.csharp, [pascal(name) for name in self.names])


if __name__ == "__main__":
    PATHS = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
