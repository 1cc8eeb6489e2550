"""The runner as a program, against processes that are honest, wrong, dying, hanging or babbling."""

import contextlib
import io
import json
import os
import platform
import shlex
import sys
import tempfile
import unittest
import unittest.mock as mock
import xml.etree.ElementTree as ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))

from runner import __main__ as program  # noqa: E402
from runner import cases, engine, failures, report, testee, tolerances  # noqa: E402

TOY = "%s %s" % (shlex.quote(sys.executable), shlex.quote(os.path.join(HERE, "toy.py")))
DIAGONAL = {"composition": {"value": [1.5, -2.0], "baseline": [0.5, 0.0], "split": {"dims": [0]}}}
CASES = [
    {"name": "affine", "op": "toy::affine", "args": [DIAGONAL], "laws": ["recovery", "reference"]},
    {"name": "square", "op": "toy::square", "args": [DIAGONAL], "laws": ["recovery"]},
    {"name": "unknown", "op": "toy::nothing", "args": [DIAGONAL], "error": "NOT_FOUND"},
    {
        "name": "half",
        "level": "recommended",
        "op": "toy::affine",
        "dtypes": ["bf16"],
        "args": [DIAGONAL],
        "laws": ["recovery"],
    },
]
# Four checks of two dtypes each, and that nothing stays alive; the toy has no bfloat16.
ALL_PASSED = "9 passed, 0 failed, 1 skipped"
BAZEL = ("XML_OUTPUT_FILE", "TEST_UNDECLARED_OUTPUTS_DIR", "TEST_SHARD_INDEX", "TEST_TOTAL_SHARDS", "TEST_SHARD_STATUS_FILE")


class RunTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.write_cases(CASES)
        # This test runs under Bazel itself.
        outer = {name: os.environ.pop(name) for name in BAZEL if name in os.environ}
        self.addCleanup(os.environ.update, outer)
        self.addCleanup(lambda: [os.environ.pop(name, None) for name in BAZEL])

    def path(self, name):
        return os.path.join(self.folder, name)

    def write_cases(self, content):
        with open(self.path("toy_cases.json"), "w", encoding="utf-8") as file:
            json.dump({"suite": 1, "family": "toy", "cases": content}, file)

    def main(self, *arguments):
        """The exit code, the lines of output, those of errors."""
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            code = program.main(list(arguments))
        return code, out.getvalue().splitlines(), errors.getvalue().splitlines()

    def run_suite(self, *arguments, doctor=None, code=0):
        """The lines that a run prints."""
        command = TOY + (" --doctor " + doctor if doctor else "")
        options = ["--testee", command, "--cases", "toy_*", "--cases-dir", self.folder]
        status, lines, errors = self.main(*options, *arguments)
        self.assertEqual(status, code, "\n".join(lines + errors))
        return lines

    def failed(self, lines):
        return [line.split()[1] for line in lines if line.startswith("FAILED ")]

    def failed_cases(self, lines):
        return {name.split(".")[2] for name in self.failed(lines)}

    def test_success(self):
        lines = self.run_suite()
        self.assertEqual(lines[-1], ALL_PASSED)
        self.assertIn("skipped 1: toy does not announce bfloat16", lines)
        self.assertIn("language   toy", lines)

    def test_failure(self):
        lines = self.run_suite(doctor="component_off", code=1)
        self.assertEqual(lines[-1], "5 passed, 4 failed, 1 skipped")
        expected = ["required.toy.%s.default.%s.recovery" % (name, dtype)
                    for name in ("affine", "square") for dtype in ("f32", "f64")]
        self.assertEqual(self.failed(lines), expected)

    def test_death_fails_its_case_only(self):
        for doctor, kind in (("dies", "crash"), ("babbles", "protocol"), ("answers_another", "protocol")):
            with self.subTest(doctor=doctor):
                lines = self.run_suite(doctor=doctor, code=1)
                self.assertEqual(lines[-1], "7 passed, 2 failed, 1 skipped")
                self.assertEqual(self.failed_cases(lines), {"square"})
                self.assertTrue(any(line.strip().startswith(kind + ": ") for line in lines), lines)
                if doctor == "dies":
                    self.assertTrue(any("exit code 3" in line and "the toy broke" in line for line in lines), lines)

    def test_a_lost_context_fails_its_case_only(self):
        lines = self.run_suite(doctor="loses_context", code=1)
        self.assertEqual(lines[-1], "7 passed, 2 failed, 1 skipped")
        self.assertEqual(self.failed_cases(lines), {"square"})
        words = "crash: LOST_CONTEXT: lost the context of its device: CUDA error: device-side assert triggered"
        self.assertEqual([line.strip() for line in lines if "CUDA" in line], [words] * 2)

    def test_a_context_that_nobody_loses_alone_is_told(self):
        # The request that was refused first is all that is known.
        lines = self.run_suite(doctor="loses_context_in_a_crowd", code=1)
        self.assertEqual(lines[-1], "8 passed, 1 failed, 1 skipped")
        self.assertTrue(any("none does so alone" in line for line in lines))

    def test_losing_the_context_is_how_a_gpu_refuses_arguments(self):
        refused = {"name": "square", "op": "toy::square", "args": [DIAGONAL]}
        self.write_cases([dict(refused, error="INVALID_ARGUMENT"), CASES[0]])
        self.assertEqual(self.run_suite(doctor="loses_context")[-1], "7 passed, 0 failed, 0 skipped")
        self.write_cases([dict(refused, error="NOT_FOUND"), CASES[0]])
        self.assertEqual(self.failed_cases(self.run_suite(doctor="loses_context", code=1)), {"square"})

    def test_hanging_fails_its_case_only(self):
        lines = self.run_suite("--timeout", "3", doctor="hangs", code=1)
        self.assertEqual(lines[-1], "7 passed, 2 failed, 1 skipped")
        self.assertEqual(self.failed_cases(lines), {"square"})
        self.assertTrue(any("timeout: TIMEOUT" in line for line in lines))

    def test_the_end_counts(self):
        lines = self.run_suite(doctor="ends_badly", code=1)
        self.assertEqual(self.failed(lines), ["runner.the_testee_ends_well.0"])
        lines = self.run_suite("--timeout", "3", doctor="stays", code=1)
        self.assertEqual(self.failed(lines), ["runner.the_testee_ends_well.0"])

    def test_what_stays_alive_counts(self):
        self.assertEqual(self.failed(self.run_suite(doctor="leaks", code=1)), ["runner.nothing_stays_alive"])

    def test_a_testee_that_cannot_start(self):
        for command, says in (("/no/such/program", "cannot start"), ("true", "does not say hello")):
            code, _, errors = self.main("--testee", command, "--cases", "toy_*", "--cases-dir", self.folder)
            self.assertEqual(code, 2)
            self.assertIn(says, errors[0])

    def test_nothing_checked_is_a_failure(self):
        self.assertEqual(self.run_suite("--only", "*.nothing", code=1)[-1], "0 passed, 1 failed, 0 skipped")
        code, _, errors = self.main("--testee", TOY, "--cases", "no_such_file")
        self.assertEqual(code, 2)
        self.assertIn("no case file", errors[0])

    def test_comparing_two(self):
        self.assertEqual(self.run_suite("--against", TOY)[-1], ALL_PASSED)
        lines = self.run_suite("--against", TOY, doctor="component_one_bit_off", code=1)
        self.assertEqual(self.failed_cases(lines), {"affine", "square"})
        self.assertTrue(any("bits: call: components differs in its bits" in line for line in lines))
        # Which of the two is wrong does not matter.
        lines = self.run_suite("--against", TOY + " --doctor component_one_bit_off", code=1)
        self.assertEqual(self.failed_cases(lines), {"affine", "square"})
        lines = self.run_suite("--against", TOY, doctor="other_error", code=1)
        self.assertEqual(self.failed_cases(lines), {"unknown"})

    def test_operators_that_draw_are_compared_by_form(self):
        self.write_cases([dict(case, repeatable=False) for case in CASES])
        self.assertEqual(self.run_suite("--against", TOY, doctor="component_one_bit_off")[-1], ALL_PASSED)
        self.assertTrue(self.failed(self.run_suite("--against", TOY, doctor="other_shape", code=1)))

    def test_comparing_devices(self):
        self.assertEqual(self.run_suite("--compare-devices")[-1], ALL_PASSED)

    def test_devices_are_compared_by_tolerances(self):
        table = tolerances.load(os.path.join(cases.ROOT, "tolerances.json"))
        variants = engine.choose(cases.load(["toy_*"], [self.folder]), "all")
        for doctor, number in (("component_one_bit_off", 0), ("component_off", 6)):
            own, other = testee.Testee(TOY + " --doctor " + doctor), testee.Testee(TOY)
            outcomes = list(engine.Engine(own, other, table, bits=False).run(variants))
            own.close()
            other.close()
            self.assertEqual(sum(outcome.failed for outcome in outcomes), number, doctor)

    def test_levels_and_choices(self):
        self.assertEqual(self.run_suite("--level", "required")[-1], "9 passed, 0 failed, 0 skipped")
        self.assertEqual(self.run_suite("--only", "*.square.*")[-1], "2 passed, 0 failed, 0 skipped")
        self.assertEqual(self.run_suite("--jobs", "2")[-1], ALL_PASSED)
        self.assertEqual(len(self.run_suite("--list")), 9)

    def test_shards_share_everything(self):
        total = 0
        for index in range(3):
            status = self.path("status%d" % index)
            os.environ.update(TEST_SHARD_INDEX=str(index), TEST_TOTAL_SHARDS="3", TEST_SHARD_STATUS_FILE=status)
            words = self.run_suite()[-1].split()
            self.assertTrue(os.path.exists(status))
            total += int(words[0]) + int(words[4])
        self.assertEqual(total, 10)

    def test_expected_failures(self):
        path = self.path("list.txt")

        def listed(text, doctor, code):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            return self.run_suite("--failure-list", path, doctor=doctor, code=code)

        lines = listed("required.toy.*.default.*.recovery  # number\n", "component_off", 0)
        self.assertIn("4 failures were expected", lines)
        lines = listed("required.toy.*.default.*.recovery  # error\n", "component_off", 1)
        self.assertTrue(any("expects another class" in line for line in lines))
        lines = listed("required.toy.affine.*  # number\n", None, 1)
        self.assertTrue(any("unexpected success" in line for line in lines))

    def test_lines_of_the_list_that_match_nothing(self):
        # Only a run of everything can tell; so this one is asked of the function itself.
        outcomes = []
        program._expect(outcomes, failures.FailureList("list", "no.such.case # bits\n"), partial=False)
        self.assertEqual([outcome.name for outcome in outcomes if outcome.failed], ["runner.unmatched_line.1"])

    def test_fix_writes_the_list(self):
        path = self.path("list.txt")
        self.run_suite("--failure-list", path, "--fix", doctor="component_off", code=1)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(len(file.readlines()), 4)
        self.assertEqual(self.run_suite("--failure-list", path, doctor="component_off")[-1], ALL_PASSED)

    def test_reports(self):
        files = [self.path("x.xml"), self.path("x.jsonl"), self.path("x.json")]
        options = ["--junit", files[0], "--json", files[1], "--result", files[2]]
        self.run_suite(*options, doctor="component_off", code=1)
        suite = ElementTree.parse(files[0]).getroot()
        self.assertEqual((suite.get("tests"), suite.get("failures"), suite.get("skipped")), ("10", "4", "1"))
        self.assertEqual(len(suite.findall("testcase")), 10)
        self.assertEqual(len(suite.findall("testcase/failure")), 4)
        with open(files[1], encoding="utf-8") as file:
            first, *others = [json.loads(line) for line in file]
        self.assertEqual(first["head"]["language"], "toy")
        self.assertEqual(sum(line["status"] == "failed" for line in others), 4)
        with open(files[2], encoding="utf-8") as file:
            result = json.load(file)
        self.assertEqual(result["total"], [5, 4, 1])
        self.assertEqual(result["subjects"]["toy::affine"], [2, 2, 1])

    def test_the_head_names_a_gpu_and_its_driver(self):
        program_path = self.path("smi")
        with open(program_path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\ncase $* in *--id=1) echo 'Some GPU, 580.1' ;; *) exit 6 ;; esac\n")
        os.chmod(program_path, 0o755)
        self.assertEqual(report.gpu("cuda:1", program_path), ["Some GPU", "580.1"])
        self.assertEqual(report.gpu("cuda", program_path), ["unknown", "unknown"])
        self.assertEqual(report.gpu("cuda", self.path("nothing")), ["unknown", "unknown"])
        self.assertEqual(report.gpu("cpu", program_path), [])

    def test_the_head_names_the_machine_of_an_emulator(self):
        with mock.patch.dict(os.environ, {"CONFORMANCE_EMULATED": "aarch64 neoverse-n1, emulated"}):
            told = dict(report.head({}, "1", 1))
        self.assertEqual((told["machine"], told["processor"]), ("aarch64", "neoverse-n1, emulated"))
        with mock.patch.dict(os.environ, {"CONFORMANCE_EMULATED": ""}):
            told = dict(report.head({}, "1", 1))
        self.assertEqual(told["machine"], platform.machine())

    def test_bazel_says_where_xml_goes(self):
        os.environ["XML_OUTPUT_FILE"] = self.path("y.xml")
        self.run_suite()
        self.assertTrue(os.path.exists(self.path("y.xml")))

    def test_bazel_keeps_the_result(self):
        os.environ["TEST_UNDECLARED_OUTPUTS_DIR"] = self.folder
        self.run_suite("--only", "*.recovery")
        self.assertFalse(os.path.exists(self.path("result.json")))
        self.run_suite()
        self.assertTrue(os.path.exists(self.path("result.json")))

    def test_a_wrong_case_is_a_failure_of_its_own(self):
        self.write_cases(CASES + [{"name": "wrong", "op": "toy::affine", "args": [{"tensor": "@nothing"}]}])
        self.assertEqual(self.failed_cases(self.run_suite(code=1)), {"wrong"})

    def test_every_operator_needs_a_case(self):
        table = tolerances.load(os.path.join(cases.ROOT, "tolerances.json"))
        for doctor, ops, fails in [
            (None, {"toy::affine", "toy::square_", "toy::flip.overload"}, False),
            (None, {"toy::affine", "toy::square"}, True),
            ("knows_more_operators", {"toy::affine", "toy::square", "toy::flip"}, True),
        ]:
            own = testee.Testee(TOY + (" --doctor " + doctor if doctor else ""))
            outcomes = list(engine.Engine(own, None, table).beyond_cases(ops))
            own.close()
            self.assertEqual([outcome.failed for outcome in outcomes], [False, fails])

    def test_help_fits_a_terminal(self):
        os.environ["COLUMNS"] = "80"
        self.addCleanup(os.environ.pop, "COLUMNS", None)
        self.assertLessEqual(max(map(len, program.parser().format_help().splitlines())), 80)


if __name__ == "__main__":
    unittest.main()
