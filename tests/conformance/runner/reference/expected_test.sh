#!/bin/sh
# expected_test.sh PYTHON: recomputes every pinned number of the cases.
set -eu
export PYTHONDONTWRITEBYTECODE=1
exec "$1" tests/conformance/runner/reference/write_expected.py --check tests/conformance/cases/*.json
