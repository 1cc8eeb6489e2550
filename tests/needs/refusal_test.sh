#!/bin/bash
# refusal_test.sh PYTHON NEEDS_TEST ALLOWED LIBTORCH: needs_test.py sees what it is there for.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

library() {  # NAME OPTION...: a shared library that uses a function of another, and of glibc
  echo 'int other(void); double exp(double); int own(double x) { return other() + (int)exp(x); }' >"$work/own.c"
  gcc -shared -fPIC -o "$work/$1" "$work/own.c" "${@:2}" -lm
}
expect() {  # STATUS TEXT ARGUMENT...
  local status=0
  "$python" -B "$test" "${@:3}" >"$work/output" 2>&1 || status=$?
  if [[ $status != "$1" ]] || ! grep -qF -- "$2" "$work/output"; then
    printf 'expected %s and "%s" of %s, got %s:\n' "$1" "$2" "${*:3}" "$status"
    cat "$work/output"
    exit 1
  fi
}
python=$1 test=$2 allowed=$3 libtorch=$4

echo 'int other(void) { return 1; }' >"$work/other.c"
gcc -shared -fPIC -o "$work/libgomp.so.1" "$work/other.c" -Wl,-soname,libgomp.so.1
gcc -shared -fPIC -o "$work/libabsl_strings.so.1" "$work/other.c" -Wl,-soname,libabsl_strings.so.1
gcc -shared -fPIC -o "$work/libc10.so.9" "$work/other.c" -Wl,-soname,libc10.so.9
library foreign.so "$work/libgomp.so.1"
library abseil.so "$work/libabsl_strings.so.1"
library good.so "$work/libc10.so.9"

expect 0 "good.so needs libc10.so.9, libm.so.6" "$allowed" "$libtorch" "$work/good.so"
expect 1 "needs libgomp.so.1, which packages may not" "$allowed" "$libtorch" "$work/good.so" "$work/foreign.so"
expect 1 "needs libabsl_strings.so.1, which packages may not" "$allowed" "$libtorch" "$work/abseil.so"
expect 0 "abseil.so needs" --installed-abseil "$allowed" "$libtorch" "$work/abseil.so"

# A LibTorch that needs next to nothing: what needs more is refused.
mkdir "$work/libtorch"
echo 'int getpid(void); int nothing(void) { return getpid(); }' >"$work/nothing.c"
gcc -shared -fPIC -o "$work/libtorch/libtorch_cpu.so" "$work/nothing.c" -lc
expect 1 "nothing newer than GLIBC_2.2.5" "$allowed" "$work/libtorch" "$work/good.so"
expect 1 "nothing to compare" "$allowed" "$work" "$work/good.so"
