#!/bin/sh
# kit_test.sh PYTHON KIT [all]: in an empty folder, on the CPU, the kit runs a part of the suite in each of its languages;
# with "all", the whole suite.
set -eu
python=$1 kit=$PWD/$2 all=${3:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
tar -xzf "$kit"
cd kit
unset TEST_UNDECLARED_OUTPUTS_DIR TEST_SHARD_STATUS_FILE
size=$(stat -L -c %s "$kit")
[ "$size" -le $((64 << 20)) ] || { echo "FAILED: the kit has $size bytes, and 64 MiB may travel" >&2; exit 1; }

# run ARGUMENT...: prints what run.py said if it failed.
run() {
  "$python" -B run.py --device cpu "$@" >../log 2>&1 || {
    cat ../log >&2
    exit 1
  }
}
# passed LANGUAGE...: the summary of each is that of a run without failures.
passed() {
  cat ../log
  for language; do
    grep -q "^gpu: $language: [1-9][0-9]* passed, 0 failed, [0-9]* skipped\$" ../log ||
      { echo "FAILED: $language" >&2; exit 1; }
  done
}
if [ "$all" ]; then
  run --jobs 2
  passed cpp python c
  ls results/libtorch-*-cpu-cpp.json results/libtorch-*-cpu-python.json results/libtorch-*-cpu-c.json
  exit
fi
run --jobs 1 -- --cases arguments --cases lifecycle --cases memory --cases 'laws_activation'
passed cpp python c
# Failed cases are remembered, and run first.
sed -i 's/"error": "NOT_FOUND"/"error": "OUT_OF_RANGE"/' conformance-1/cases/refused.json
if "$python" -B run.py --device cpu --jobs 1 --language cpp -- --cases refused >../log 2>&1; then
  echo "FAILED: a wrong case passes" >&2
  exit 1
fi
grep -q refused results/libtorch-*-cpu-cpp.failed
if "$python" -B run.py --device cpu --jobs 1 --limit 60 --language cpp -- --cases refused >../log 2>&1; then exit 1; fi
grep -m 1 'passed' ../log | grep -q '^gpu: cpp-again: '
# A machine that lacks something is told what.
if "$python" -B run.py --device cuda:99 >../log 2>&1; then
  echo "FAILED: there is no such device" >&2
  exit 1
fi
grep -q '^gpu: torch cannot compute on cuda:99' ../log
