#!/bin/sh
# Bazel gives the folder of another repository a name of its own making: addend, addend~, addend+.
for folder in "${RUNFILES_DIR:-$0.runfiles}"/addend*; do
  addend=$folder
done
PYTHONPATH=$addend/bindings/python/package exec "${ADDEND_PYTHON:-/usr/bin/python3}" "$addend/docs/examples/quickstart.py" "$@"
