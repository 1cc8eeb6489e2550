#!/bin/sh
# kit_test.sh PYTHON KIT [all]: in an empty folder, the kit has all that its build reads, and what is quick to compile
# compiles; with "all", everything is built and a part of the suite runs, on the CPU.
set -eu
python=$1 kit=$PWD/$2 all=${3:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
tar -xzf "$kit"
cd kit
unset XML_OUTPUT_FILE TEST_UNDECLARED_OUTPUTS_DIR

# run ARGUMENT...: prints what run.py said if it failed.
run() {
  "$python" -B run.py --device cpu "$@" >../log 2>&1 || {
    cat ../log >&2
    exit 1
  }
}
if [ "$all" ]; then
  run --language cpp --language c --language python -- --cases arguments --cases lifecycle --cases memory --cases laws_activation
  cat ../log
  [ "$(grep -c ': [1-9][0-9]* passed, 0 failed, [0-9]* skipped$' ../log)" = 3 ]
  exit
fi
run --standard c++17 --plan-only
# Fails where a file is missing that no step makes.
ninja -n >../steps || { cat ../steps >&2; exit 1; }
for file in cpp_testee c_testee bindings/python/addend/_native.so bindings/python/addend/libaddend.so.1; do
  grep -q " $file\$" ../steps || { echo "FAILED: nothing builds $file" >&2; exit 1; }
done
ninja build/tests/conformance/testees/c/testee.c.o build/core/base/text.cc.o build/core/base/policy.cc.o
# A machine that lacks something is told what.
if "$python" -B run.py --device cuda:99 --plan-only >../log 2>&1; then
  echo "FAILED: there is no such device" >&2
  exit 1
fi
grep -q '^gpu: LibTorch cannot compute on cuda:99' ../log
