#!/bin/sh
# models_test.sh PYTHON: recomputes every pinned number of whole models.
set -eu
export PYTHONDONTWRITEBYTECODE=1
exec "$1" tests/conformance/runner/reference/models.py --check tests/conformance/cases/models_*.json
