#!/bin/sh
# conformance_test.sh PYTHON ARGUMENT...: runs the suite. Results go where Bazel wants them.
set -eu
python=$1
shift
exec "$python" tests/conformance/run.py "$@"
