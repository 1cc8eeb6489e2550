"""Copies the result files of tests that Bazel ran: `bazel test //tests/conformance:all`, then

    python3 tests/conformance/collect.py bazel-testlogs/tests/conformance tests/conformance/results

Each is named after its LibTorch, device and language, and after its machine where that is not x86-64. Runs in which
something failed are not copied.
"""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import undeclared_outputs  # noqa: E402

_RUNS = ["cpp", "c", "python", "java", "csharp", "cpp_far", "python_far"]


def main(logs, out):
    copied = 0
    for run in _RUNS:
        text = undeclared_outputs.text_of(os.path.join(logs, run, "test.outputs"))
        if text is None:
            print("%s has not run" % run)
            continue
        content = json.loads(text)
        if content["total"][1]:
            print("%s: %d checks failed; not copied" % (run, content["total"][1]))
            continue
        head = content["head"]
        version = head["LibTorch"] + ("" if head["machine"] == "x86_64" else "-" + head["machine"])
        name = "libtorch-%s-%s-%s.json" % (version, head["device"].split(":")[0], head["language"])
        with open(os.path.join(out, name), "w", encoding="utf-8") as file:
            file.write(text)
        print("%s: %d checks" % (name, content["total"][0]))
        copied += 1
    return 0 if copied else 1


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
