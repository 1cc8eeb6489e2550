"""Adds the results of runs to the committed tables: `bazel test //tests/conformance:all`, then

    python3 tests/conformance/collect.py bazel-testlogs/tests/conformance tests/conformance/results

or a folder of result files in place of Bazel's logs, such as a GPU run writes. A table holds the runs of one LibTorch and
machine; a run replaces the one of its language and device. Runs in which something failed are left out.
"""

import glob
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import result_tables  # noqa: E402
import undeclared_outputs  # noqa: E402

_RUNS = ["cpp", "c", "python", "java", "csharp", "cpp_far", "python_far"]


def _texts(source):
    """Names and contents of result files: of Bazel's logs, or of a folder that holds them."""
    for path in sorted(glob.glob(os.path.join(source, "libtorch-*.json"))):
        with open(path, encoding="utf-8") as file:
            yield os.path.basename(path), file.read()
    for name in _RUNS:
        yield name, undeclared_outputs.text_of(os.path.join(source, name, "test.outputs"))


def main(source, out):
    tables = {}
    for name, text in _texts(source):
        if text is None:
            continue
        run = result_tables.Run(json.loads(text))
        if run.total[1]:
            print("%s: %d checks failed; left out" % (name, run.total[1]))
            continue
        path = os.path.join(out, result_tables.table_name(run))
        if path not in tables:
            tables[path] = result_tables.read_table(path) if os.path.exists(path) else []
        tables[path] = result_tables.with_run(tables[path], run)
        print("%s: %d checks" % (name, run.total[0]))
    for path, runs in tables.items():
        result_tables.write_table(path, runs)
    return 0 if tables else 1


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
