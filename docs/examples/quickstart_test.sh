#!/bin/sh
# quickstart_test.sh PROGRAM...: each prints the same numbers, of the TorchScript file, of the exported program and of the ONNX
# model, and those of docs/first_program.md. That they are right is c_api/model_test's to say.
set -eu
models=docs/examples/models/digits
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for program in "$@"; do
  for file in model.pt model.pt2 model.onnx; do
    "$program" $models/$file $models/sample.safetensors >"$work/output"
    if [ ! -e "$work/$file" ]; then
      cp "$work/output" "$work/$file"
      cat "$work/output"
    elif ! cmp "$work/output" "$work/$file"; then
      echo "FAILED: $program prints something else of $file" >&2
      exit 1
    fi
  done
  if "$program" /nowhere $models/sample.safetensors 2>/dev/null; then
    echo "FAILED: $program does not fail without a model" >&2
    exit 1
  fi
done
# The last lines are about rounding, which another order of operators changes.
for file in model.pt model.pt2 model.onnx; do
  grep '^output\|^pixel' "$work/$file" >"$work/$file.numbers"
done
# The page says that all of them print these lines.
sed -n '/^output \[0, 8\]/,/^```/p' docs/first_program.md | grep '^output\|^pixel' >"$work/page.numbers"
if ! cmp "$work/page.numbers" "$work/model.pt2.numbers"; then
  echo "FAILED: docs/first_program.md shows other lines" >&2
  exit 1
fi
for file in model.pt2 model.onnx; do
  if ! [ -s "$work/model.pt.numbers" ] || ! cmp "$work/model.pt.numbers" "$work/$file.numbers"; then
    echo "FAILED: $file is explained in another way than the TorchScript file" >&2
    exit 1
  fi
done
