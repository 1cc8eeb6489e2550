"""Runs a file of unittest cases and writes what Bazel reads.

    unittest_runner.py FILE [CASE...]

A case is "TestClass" or "TestClass.test_method". With XML_OUTPUT_FILE set, JUnit's XML with one element per case goes
there.
"""

import importlib.util
import os
import sys
import time
import unittest
import xml.etree.ElementTree as ElementTree


class XmlResult(unittest.TextTestResult):
    """Also remembers each case as an element of JUnit's XML."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.suite = ElementTree.Element("testsuite", name="python")
        self._case = None
        self._start = 0.0

    def startTest(self, test):
        super().startTest(test)
        class_name, _, name = test.id().rpartition(".")
        self._case = ElementTree.SubElement(self.suite, "testcase", classname=class_name, name=name)
        self._start = time.monotonic()

    def stopTest(self, test):
        self._case.set("time", "%.3f" % (time.monotonic() - self._start))
        super().stopTest(test)

    def addError(self, test, error):
        super().addError(test, error)
        # Not that of a test: the set-up of a class or module failed.
        owner = self._case if isinstance(test, unittest.TestCase) else None
        if owner is None:
            owner = ElementTree.SubElement(self.suite, "testcase", classname="set-up", name=str(test))
        self._say(owner, "error", self._exc_info_to_string(error, test))

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self._say(self._case, "failure", self._exc_info_to_string(error, test))

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error is not None:
            self._say(self._case, "failure", "%s\n%s" % (subtest, self._exc_info_to_string(error, test)))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._say(self._case, "skipped", reason)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self._say(self._case, "failure", "unexpected success")

    @staticmethod
    def _say(case, tag, text):
        ElementTree.SubElement(case, tag, message=text.strip().splitlines()[-1]).text = text


def main():
    path, cases = sys.argv[1], sys.argv[2:]
    spec = importlib.util.spec_from_file_location("test", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["test"] = module
    loader = unittest.defaultTestLoader
    try:
        spec.loader.exec_module(module)
        suite = loader.loadTestsFromNames(cases, module) if cases else loader.loadTestsFromModule(module)
    except unittest.SkipTest as skipped:
        reason = str(skipped)

        def whole_file():
            raise unittest.SkipTest(reason)

        suite = unittest.TestSuite([unittest.FunctionTestCase(whole_file)])
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=XmlResult).run(suite)
    out = os.environ.get("XML_OUTPUT_FILE")
    if out:
        ElementTree.ElementTree(result.suite).write(out, encoding="utf-8", xml_declaration=True)
    return 0 if result.wasSuccessful() and result.testsRun > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
