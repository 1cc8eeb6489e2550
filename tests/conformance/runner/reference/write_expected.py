#!/usr/bin/env python3
"""Writes what the reference expects into case files: write_expected.py cases/x.json... With --check nothing is
written: it fails where a file holds other numbers, or is not formatted as it would be written."""

import argparse
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import case_format  # noqa: E402
import evaluate  # noqa: E402


def close(a, b):
    """True if numbers are equal up to the rounding of another machine's mathematical library."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(close(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(close(x, y) for x, y in zip(a, b))
    if isinstance(a, float) and isinstance(b, (int, float)) or isinstance(b, float) and isinstance(a, (int, float)):
        return abs(a - b) <= 1e-11 * max(1.0, abs(a), abs(b))
    return a == b


def renew(path, check):
    given = path.read_text(encoding="utf-8")
    file = json.loads(given)
    wrong = []
    pinned = 0
    for case in file["cases"]:
        # Numbers of another source, or none, stay as they are. A new case says that it wants numbers from here by
        # "expect": {"reference": "", "outputs": []}.
        if "reference" not in case.get("expect", {}) or "model" in case:
            continue
        new = evaluate.expected(case)
        pinned += 1
        if check and not close(case.get("expect"), new):
            wrong.append(f"{path.name}: {case['name']}: other numbers than the reference gives: {new}")
        if not close(case.get("expect"), new):
            case["expect"] = new
    if pinned == 0:
        return []  # of models, lifecycles and the like
    text = case_format.text(file)
    if not check:
        path.write_text(text, encoding="utf-8")
    elif not wrong and text != given:
        wrong.append(f"{path.name} is not as write_expected.py would write it")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    wrong = [line for path in options.files for line in renew(path, options.check)]
    for line in wrong:
        print(line, file=sys.stderr)
    if options.check:
        print(f"{len(options.files)} case files recomputed, {len(wrong)} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
