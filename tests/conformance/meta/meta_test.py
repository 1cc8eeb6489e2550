"""The suite notices what is broken on purpose, and where it is.

Each test breaks one thing in a copy, or around the real thing, and runs the suite as everybody does. What is broken has
to fail, what is beside it has to pass.
"""

import ctypes
import json
import math
import os
import shlex
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.abspath("tests/conformance")
PYTHON = os.environ["PYTHON"]
CPP_TESTEE = os.path.abspath(os.environ["CPP_TESTEE"])


class Broken(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def run_suite(self, testee, *arguments, root=ROOT):
        """Whether the run succeeded, and the checks of it."""
        out = self.path("out.json")
        command = [PYTHON, "-B", os.path.join(root, "run.py"), "--testee", testee, "--json", out]
        environment = {name: text for name, text in os.environ.items() if name != "XML_OUTPUT_FILE"}
        done = subprocess.run(command + list(arguments), env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertIn(done.returncode, (0, 1), done.stdout.decode("utf-8", "replace"))
        with open(out, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        return done.returncode == 0, [line for line in lines if "status" in line]

    def copy(self, source, *names):
        """A copy of a folder with all that its links point to."""
        target = self.path(*names)
        shutil.copytree(source, target, symlinks=False)
        for place, _, files in os.walk(target):
            os.chmod(place, 0o755)
            for file in files:
                os.chmod(os.path.join(place, file), 0o644 | (os.stat(os.path.join(place, file)).st_mode & 0o111))
        return target


def failed(checks):
    return [check for check in checks if check["status"] == "failed"]


def names(checks):
    return {check["name"].rpartition(".")[2] for check in checks}


class BrokenRuleTest(Broken):
    """aten::tanh gets a wrong rule in every context; everything else of the library is as it is."""

    def broken(self, how):
        library = os.path.abspath(os.environ["BREAK_RULE_LIBRARY"])
        testee = "env BREAK_RULE=%s LD_PRELOAD=%s %s" % (how, shlex.quote(library), shlex.quote(CPP_TESTEE))
        return self.run_suite(testee, "--cases", "activation", "--cases", "softmax")

    def test_nothing_broken(self):
        good, checks = self.broken("nothing")
        self.assertTrue(good, failed(checks)[:3])

    def test_a_rule_that_leaves_all_over(self):
        # Recovery holds: only numbers of the independent reference can tell.
        good, checks = self.broken("opaque")
        self.assertFalse(good)
        self.assertEqual({check["subject"] for check in failed(checks)}, {"aten::tanh"})
        self.assertIn("expect", names(failed(checks)))
        recoveries = [check for check in checks if check["name"].endswith("recovery") and check["subject"] == "aten::tanh"]
        self.assertEqual({check["status"] for check in recoveries}, {"passed"})

    def test_a_rule_with_another_slope(self):
        # The library itself refuses what does not add up, and that is a failure of every check of the operator.
        good, checks = self.broken("slope")
        self.assertFalse(good)
        self.assertEqual({check["subject"] for check in failed(checks)}, {"aten::tanh"})
        self.assertIn("recovery", names(failed(checks)))


class BrokenToleranceTest(Broken):
    """A tolerance of a copy of the runner is another one."""

    def runner(self, change):
        """A copy of the suite whose tolerances.json is changed."""
        root = os.path.join(self.copy(os.path.abspath("tests"), "tests"), "conformance")
        with open(os.path.join(root, "tolerances.json"), encoding="utf-8") as file:
            table = json.load(file)
        change(table)
        with open(os.path.join(root, "tolerances.json"), "w", encoding="utf-8") as file:
            json.dump(table, file)
        return root

    def test_one_that_is_too_small(self):
        def change(table):
            table["base"]["f32"] = {"rtol": 1e-12, "atol": 1e-12}

        good, checks = self.run_suite(CPP_TESTEE, "--cases", "activation", root=self.runner(change))
        self.assertFalse(good)
        self.assertEqual({check["name"].split(".")[-2] for check in failed(checks)}, {"f32"})
        doubles = {check["status"] for check in checks if ".f64." in check["name"]}
        self.assertEqual(doubles, {"passed"})

    def test_one_that_allows_everything(self):
        """No run can notice that, so the runner's own tests have to: they meet the comparison, not the table."""
        root = self.runner(lambda table: None)
        place = os.path.join(root, "runner", "tolerances.py")
        with open(place, encoding="utf-8") as file:
            text = file.read()
        right = "return self.factor * (self.atol + (self.rtol + self.quadrature) * size)"
        self.assertIn(right, text)
        with open(place, "w", encoding="utf-8") as file:
            file.write(text.replace(right, "return 1e300"))
        for test, fails in (("checks_test.py", True), ("compare_test.py", True), ("wire_test.py", False)):
            file = os.path.join(root, "tests", test)
            done = subprocess.run([PYTHON, "-B", file], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertEqual(done.returncode != 0, fails, "%s: %s" % (test, done.stdout.decode()[-2000:]))

    def test_the_table_allows_no_more_than_it_says(self):
        """A looser table would let pass what is wrong by more than rounding: the numbers are pinned here."""
        with open(os.path.join(ROOT, "tolerances.json"), encoding="utf-8") as file:
            table = json.load(file)
        self.assertLessEqual(table["base"]["f64"]["rtol"], 1e-11)
        self.assertLessEqual(table["base"]["f32"]["rtol"], 5e-6)
        for dtype in ("f64", "f32"):
            self.assertLessEqual(table["kernel"][dtype], 1e-4)
        for entry in table["entries"]:
            self.assertLessEqual(entry["factor"], 1000, entry)


class BrokenTypemapTest(Broken):
    """Numbers that are arguments of operators pass as float32; all else of the binding is as it is."""

    def command(self, library):
        """The command of the language's testee with this wrapper, or its own one (None)."""
        language = os.environ["LANGUAGE"]
        if language == "python":
            package = self.copy("bindings/python/package", "package" + ("_broken" if library else ""))
            if library:
                shutil.copy(library, os.path.join(package, "addend", "_native.so"))
            program = os.path.abspath("tests/conformance/testees/python/testee.py")
            return "env PYTHONPATH=%s %s -B %s" % (package, PYTHON, program)
        native = "bindings/%s/native" % language
        folder = self.copy(native, "native" + ("_broken" if library else ""))
        if library:
            shutil.copy(library, folder)
        with open("tests/conformance/testees/%s/testee.sh" % language, encoding="utf-8") as file:
            script = file.read()
        for place in ("$PWD/" + native, native):
            if place in script:
                script = script.replace(place, folder)
                break
        else:
            self.fail("the testee does not name %s" % native)
        path = self.path("testee%s.sh" % ("_broken" if library else ""))
        with open(path, "w", encoding="utf-8") as file:
            file.write(script)
        os.chmod(path, 0o755)
        return "env RUNFILES_DIR=%s %s" % (os.path.dirname(os.getcwd()), path)

    def run_against(self, library):
        return self.run_suite(self.command(library), "--against", CPP_TESTEE, "--cases", "arguments", "--cases", "shape")

    def test_it_is_noticed(self):
        good, checks = self.run_against(None)
        self.assertTrue(good, failed(checks)[:3])
        good, checks = self.run_against(os.path.abspath(os.environ["BROKEN"]))
        self.assertFalse(good)
        self.assertEqual({failure["class"] for check in failed(checks) for failure in check["failures"]}, {"bits"})
        # Operators with a number that float32 does not hold, and no others.
        with open(os.path.join(ROOT, "cases", "arguments.json"), encoding="utf-8") as file:
            cases = json.load(file)["cases"]
        affected = {"required.arguments." + case["name"] for case in cases if _loses_bits(case)}
        found = {".".join(check["name"].split(".")[:3]) for check in failed(checks)}
        self.assertEqual(found, affected)
        self.assertGreater(len(found), 2)


def _loses_bits(case):
    """Whether an argument of a case is a number that float32 does not hold, of an operator that computes with it."""
    for argument in case["args"]:
        if isinstance(argument, dict):
            argument = argument.get("value", argument.get("f64"))
        if isinstance(argument, str) and argument.startswith("0x"):
            argument = float.fromhex(argument)
        if isinstance(argument, float):
            single = ctypes.c_float(argument).value
            # Arguments that become infinite change nothing: no number of the case lies in between.
            if single != argument and not math.isinf(single):
                return True
    return False


if __name__ == "__main__":
    unittest.main()
