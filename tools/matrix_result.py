#!/usr/bin/python3
"""Writes the result of a run of tools/matrix as JSON: what it ran with, how many cases passed, and which did not.

It reads the records that tools/test left in $ADDEND_TEST_EVENTS, and runs where the tests ran.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True

import count_tests  # noqa: E402, after the line above: the repository may be read only

# A longer name stands before those that it begins with.
FOLDERS = [
    "core",
    "c_api",
    "bindings/python",
    "bindings/java",
    "bindings/csharp",
    "tests/conformance:cpp",
    "tests/conformance:c",
    "tests/conformance:python",
    "tests/conformance:java",
    "tests/conformance:csharp",
    "tests/conformance",
    "tests/constructs",
    "tests/exported",
    "tests/opdb",
    "tests/transformers",
    "tests",
    "tools",
]


def first_number(*command):
    """The first version number that a program prints, or None where there is no such program."""
    try:
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    found = re.search(r"\d+(\.\d+)+", run.stdout)
    return found.group() if found else None


def package(name, root=""):
    return first_number("dpkg-query", "--admindir=%s/var/lib/dpkg" % root, "-W", "-f", "${Version}", name)


def versions(torch):
    """The versions of what a run used, by name. `torch`: that of PyTorch from PyPI, or empty."""
    root = os.environ.get("ADDEND_SYSROOT", "")
    swig = os.path.join(os.environ["SWIG_HOME"], "bin", "swig") if os.environ.get("SWIG_HOME") else "swig"
    return {
        "libtorch": torch or package("libtorch-dev", root),
        "gcc": first_number("g++", "-dumpfullversion"),
        "bazel": package("bazel-bootstrap"),
        "python": first_number(os.environ.get("ADDEND_PYTHON") or "/usr/bin/python3", "--version"),
        "java": first_number("javac", "-version"),
        "dotnet": first_number("dotnet", "--version"),
        "swig": first_number(swig, "-version"),
        **({"qemu": first_number("qemu-aarch64-static", "--version")} if root else {}),
    }


def counts_as_json(counts):
    return dict(counts._asdict())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--release", required=True)
    parser.add_argument("--mode", required=True)
    parser.add_argument("--torch", default="", help="the version of PyTorch from PyPI; without it, the one of Debian")
    parser.add_argument("--commit", required=True)
    parser.add_argument("--seconds", type=int, required=True)
    options = parser.parse_args()

    targets = {}
    for event_file in sorted(pathlib.Path(os.environ["ADDEND_TEST_EVENTS"]).glob("*.json")):
        for label, counts in count_tests.counts_by_target(event_file).items():
            label = label.lstrip("@")
            targets[label] = targets.get(label, count_tests.NONE) + counts
    folders = {}
    for label, counts in targets.items():
        folder = next((f for f in FOLDERS if label == f"//{f}" or label.startswith((f"//{f}/", f"//{f}:"))), "other")
        folders[folder] = folders.get(folder, count_tests.NONE) + counts
    result = {
        "release": options.release,
        "mode": options.mode,
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "commit": options.commit,
        "seconds": options.seconds,
        "versions": versions(options.torch),
        **counts_as_json(sum(targets.values(), count_tests.NONE)),
        "folders": {name: counts_as_json(counts) for name, counts in sorted(folders.items())},
        "failed_targets": {label: counts_as_json(c) for label, c in sorted(targets.items()) if c.failed},
    }
    json.dump(result, sys.stdout, indent=2)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
