#!/bin/sh
# quickstart_test.sh PROGRAM...: each prints the same numbers. That they are right is c_api/model_test's to say.
set -eu
models=docs/examples/models/digits
first=
for program in "$@"; do
  output=$("$program" $models/model.pt $models/sample.safetensors)
  if [ -z "$first" ]; then
    first=$output
    echo "$output"
  elif [ "$output" != "$first" ]; then
    echo "FAILED: $program prints something else:" >&2
    echo "$output" >&2
    exit 1
  fi
  if "$program" /nowhere $models/sample.safetensors 2>/dev/null; then
    echo "FAILED: $program does not fail without a model" >&2
    exit 1
  fi
done
