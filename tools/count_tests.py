#!/usr/bin/python3
"""Counts test cases of `bazel test` runs.

Reads the files that --build_event_json_file wrote, one per run. They name the
tests of that run and their test.xml, whereas bazel-testlogs also holds results
of runs long ago. Only the standard library is used.

What counts:
  - each case of a GoogleTest program, or one for a test that writes no cases;
  - a target that did not build, or a test without readable results: one failure;
  - a test that failed although all its cases passed (a leak found at exit, a
    crash after main): one failure;
  - a disabled case, or one that skipped itself: skipped. So is a shell test that says
    "skipped: ..." in a line of its own.
"""

import argparse
import collections
import json
import pathlib
import re
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree


class Counts(collections.namedtuple("Counts", "passed failed skipped")):
    def __add__(self, other):
        return Counts(*(a + b for a, b in zip(self, other)))

    def __str__(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


NONE = Counts(0, 0, 0)
ONE_FAILURE = Counts(0, 1, 0)


def cases_of(xml_path):
    """Counts of one test.xml; raises OSError or ParseError if it is unreadable."""
    passed = failed = skipped = 0
    root = ElementTree.parse(xml_path)
    # Bazel writes the output of a shell test beside its only case.
    says_so = any(
        re.search("^skipped: ", output.text or "", re.MULTILINE) for output in root.iter("system-out")
    )
    for case in root.iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif (
            case.find("skipped") is not None
            or case.get("status") == "notrun"
            or case.get("result") in ("skipped", "suppressed")
            or says_so
        ):
            skipped += 1
        else:
            passed += 1
    return Counts(passed, failed, skipped)


def counts_of_result(result):
    """Counts of one run of one shard of a test target."""
    ok = result.get("status") in ("PASSED", "FLAKY")
    for output in result.get("testActionOutput", []):
        if output.get("name") != "test.xml":
            continue
        path = urllib.parse.unquote(urllib.parse.urlparse(output.get("uri", "")).path)
        try:
            counts = cases_of(path)
        except (OSError, ElementTree.ParseError):
            return ONE_FAILURE
        if not ok and counts.failed == 0:
            counts += ONE_FAILURE
        return counts
    return ONE_FAILURE


def counts_by_target(event_file):
    """Maps each target that ran, or that did not build, to its Counts."""
    results = {}  # (label, run, shard) -> (attempt, result)
    tests, broken = set(), set()
    with open(event_file, encoding="utf-8") as lines:
        for line in lines:
            try:
                event = json.loads(line)
            except ValueError:  # The last line of an interrupted run.
                continue
            kinds = event.get("id", {})
            if "testResult" in kinds:
                key = kinds["testResult"]
                place = (key["label"], key.get("run", 1), key.get("shard", 1))
                attempt = key.get("attempt", 1)
                if "testResult" in event and attempt >= results.get(place, (0,))[0]:
                    results[place] = (attempt, event["testResult"])
            elif "testSummary" in kinds:
                tests.add(kinds["testSummary"]["label"])
            elif "targetCompleted" in kinds:
                if not event.get("completed", {}).get("success", False):
                    broken.add(kinds["targetCompleted"]["label"])

    totals = {}
    for (label, _, _), (_, result) in results.items():
        totals[label] = totals.get(label, NONE) + counts_of_result(result)
    for label in (tests | broken) - totals.keys():
        totals[label] = ONE_FAILURE
    return totals


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("events", nargs="*", type=pathlib.Path)
    parser.add_argument(
        "--bazel-exit",
        type=int,
        default=0,
        metavar="CODE",
        help="Bazel's exit code: one that says 'the build broke' is a failure by itself",
    )
    parser.add_argument(
        "--under",
        action="append",
        default=[],
        metavar="PREFIX",
        help="count only targets whose label starts so (may be repeated)",
    )
    parser.add_argument(
        "--not-under",
        action="append",
        default=[],
        metavar="PREFIX",
        help="do not count targets whose label starts so (may be repeated)",
    )
    options = parser.parse_args()

    total = NONE
    for event_file in options.events:
        if not event_file.is_file():
            continue  # Bazel stopped before it opened the file.
        for label, counts in counts_by_target(event_file).items():
            if options.under and not label.startswith(tuple(options.under)):
                continue
            if label.startswith(tuple(options.not_under)):
                continue
            total += counts
    # 0: fine, 3: some tests failed, 4: no tests were found.
    if options.bazel_exit not in (0, 3, 4) and total.failed == 0:
        total += ONE_FAILURE
    print(total)
    return 0


if __name__ == "__main__":
    sys.exit(main())
