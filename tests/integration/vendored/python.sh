#!/bin/sh
addend=${RUNFILES_DIR:-$0.runfiles}/addend
PYTHONPATH=$addend/bindings/python/package exec /usr/bin/python3 "$addend/docs/examples/quickstart.py" "$@"
