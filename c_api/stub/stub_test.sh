#!/bin/sh
# stub_test.sh STUB FUNCTIONS_H: which implementation the stub opens beside which LibTorch, and what it says where none fits. LibTorch
# and the implementations are made here, each of a few functions.
set -eu
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
unset LD_LIBRARY_PATH ADDEND_LIBTORCH_PATH

# libtorch FOLDER SONAME [VERSION]: a libtorch_cpu, which tells its version as LibTorch does, if it has one.
libtorch() {
  mkdir -p "$work/$1"
  {
    echo '#include <string>'
    echo 'extern "C" int addend_test_libtorch() { return 0; }'
    [ -z "${3:-}" ] || echo "namespace at { std::string show_config() { return \"PyTorch built with: TORCH_VERSION=$3, \"; } }"
  } >"$work/libtorch.cc"
  c++ -shared -fPIC -Wl,-soname,"$2" "$work/libtorch.cc" -o "$work/$1/$2"
}

# implementation FILE VERSION LIBTORCH [OPTION]: needs the library LIBTORCH, if one is named; - for none.
implementation() {
  mkdir -p "$(dirname "$work/$1")"
  needs=
  [ "$3" = - ] || needs="-DNEEDS_LIBTORCH $work/$3 -Wl,-rpath,\$ORIGIN"
  # shellcheck disable=SC2086
  cc -shared -fPIC -fvisibility=hidden -I"$root" -I"$include" "-DVERSION=\"$2\"" ${4:-} "$root/c_api/stub/fake.c" $needs -o "$work/$1"
}

# package FOLDER VERSION...: the stub and implementations.
package() {
  folder=$1
  shift
  mkdir -p "$work/$folder"
  cp -L "$root/$stub" "$work/$folder/libaddend.so.1"
  for version; do cp "$work/implementations/libaddend_torch$version.so" "$work/$folder"; done
}

# says WHAT EXPECTED... -- ARGUMENT...: the caller succeeds and prints each of EXPECTED.
says() {
  what=$1
  shift
  : >"$work/expected"
  while [ "$1" != -- ]; do
    printf '%s\n' "$1" >>"$work/expected"
    shift
  done
  shift
  if ! "$work/caller" "$@" >"$work/printed" 2>&1; then
    echo "FAILED: $what: the process ended with $?:" >&2
    cat "$work/printed" >&2
    failed=1
    return
  fi
  while IFS= read -r line; do
    if ! grep -qF -- "$line" "$work/printed"; then
      echo "FAILED: $what: \"$line\" is not in:" >&2
      cat "$work/printed" >&2
      failed=1
      return
    fi
  done <"$work/expected"
  echo "ok: $what"
}

stub=$1 include=$(dirname "$(dirname "$(dirname "$2")")")
cc -Wall -I"$root" "$root/c_api/stub/caller.c" -o "$work/caller" -lpthread -ldl
libtorch debian libtorch_cpu.so.0.0 1.13.1
libtorch official libtorch_cpu.so 2.10.0
libtorch official1.13 libtorch_cpu.so 1.13.1
libtorch silent libtorch_cpu.so
libtorch newest libtorch_cpu.so 2.14.1
implementation implementations/libaddend_torch1.13.so 1.13 debian/libtorch_cpu.so.0.0
implementation implementations/libaddend_torch2.10.so 2.10 official/libtorch_cpu.so
implementation implementations/libaddend_torch2.9.so 2.9 official/libtorch_cpu.so
package old 1.13
package all 1.13 2.9 2.10
package alone 1.13
cp "$work/debian/libtorch_cpu.so.0.0" "$work/alone"
package none
package mixed
implementation mixed/libaddend_torch1.13.so 1.13 - '-DDIGEST="other"'
package later

says "LibTorch that lies beside it is loaded" '0 [1.13]' -- stub "$work/alone/libaddend.so.1" check
says "LibTorch that is loaded already is taken" '0 [1.13]' -- \
  load "$work/debian/libtorch_cpu.so.0.0" stub "$work/old/libaddend.so.1" check
says "the implementation for the loaded LibTorch is opened" '0 [2.10]' -- \
  load "$work/official/libtorch_cpu.so" stub "$work/all/libaddend.so.1" check
says "the same, loaded after the stub" '0 [2.10]' -- \
  stub "$work/all/libaddend.so.1" load "$work/official/libtorch_cpu.so" check
says "another LibTorch is refused" \
  "9 this process has loaded LibTorch 2.10.0 ($work/official/libtorch_cpu.so), and Addend " \
  " in $work/old serves LibTorch 1.13; install the Addend for the loaded LibTorch, or let the process load LibTorch 1.13[]" -- \
  load "$work/official/libtorch_cpu.so" stub "$work/old/libaddend.so.1" check check
says "the same, loaded after the stub" "9 this process has loaded LibTorch 2.10.0 (" -- \
  stub "$work/old/libaddend.so.1" load "$work/official/libtorch_cpu.so" check
says "all versions that would serve are named" "2.14.1 (" "serves LibTorch 2.10, 2.9 and 1.13;" -- \
  load "$work/newest/libtorch_cpu.so" stub "$work/all/libaddend.so.1" check
says "the same version under another name is refused" \
  "9 this process has loaded LibTorch 1.13.1 ($work/official1.13/libtorch_cpu.so), which is not the libtorch_cpu.so.0.0 that $work/old/libaddend_torch1.13.so needs" -- \
  load "$work/official1.13/libtorch_cpu.so" stub "$work/old/libaddend.so.1" check
says "LibTorch without a version is refused" "of a version that it does not tell ($work/silent/libtorch_cpu.so)" -- \
  load "$work/silent/libtorch_cpu.so" stub "$work/old/libaddend.so.1" check
says "two LibTorchs are refused" \
  "9 this process has loaded LibTorch more than once (" "$work/debian/libtorch_cpu.so.0.0" "$work/official/libtorch_cpu.so" -- \
  load "$work/debian/libtorch_cpu.so.0.0" load "$work/official/libtorch_cpu.so" stub "$work/all/libaddend.so.1" check
says "LibTorch that is missing is named" \
  "9 LibTorch cannot be loaded ($work/old/libaddend_torch1.13.so: libtorch_cpu.so.0.0: cannot open shared object file" \
  "install LibTorch 1.13, or set ADDEND_LIBTORCH_PATH" -- stub "$work/old/libaddend.so.1" check
cc -shared -fPIC -x c /dev/null -Wl,-soname,libother.so.7 -o "$work/libother.so.7"
implementation needy/libaddend_torch1.13.so 1.13 debian/libtorch_cpu.so.0.0 "-Wl,--no-as-needed $work/libother.so.7"
package needy
says "another library that is missing is named" \
  "9 Addend cannot be loaded ($work/needy/libaddend_torch1.13.so: libother.so.7: cannot open shared object file" \
  "); install libother.so.7, which this machine lacks, and LibTorch 1.13" -- stub "$work/needy/libaddend.so.1" check
# foreign FILE: makes it one for PowerPC, which is no machine that runs this test.
foreign() { printf '\025\000' | dd of="$1" bs=1 seek=18 conv=notrunc status=none; }
package foreign 1.13
foreign "$work/foreign/libaddend_torch1.13.so"
says "an implementation for another processor is named" \
  "libaddend_torch1.13.so: it is for another processor; install the one for this machine" -- \
  load "$work/debian/libtorch_cpu.so.0.0" stub "$work/foreign/libaddend.so.1" check
mkdir "$work/elsewhere"
cp "$work/official/libtorch_cpu.so" "$work/elsewhere"
foreign "$work/elsewhere/libtorch_cpu.so"
says "a LibTorch for another processor is named" "$work/elsewhere/libtorch_cpu.so: it is for another processor;" -- \
  stub "$work/all/libaddend.so.1" from "$work/elsewhere"
says "an implementation that is missing is named" "9 there is no libaddend_torch<version>.so in $work/none" -- \
  load "$work/debian/libtorch_cpu.so.0.0" stub "$work/none/libaddend.so.1" check
says "files of two builds are told apart" "libaddend_torch1.13.so: it is of another build of Addend" -- \
  stub "$work/mixed/libaddend.so.1" check
says "a refusal is no end: the next call looks again" "9 there is no" "0 [1.13]" -- \
  load "$work/debian/libtorch_cpu.so.0.0" stub "$work/later/libaddend.so.1" check \
  copy "$work/implementations/libaddend_torch1.13.so" "$work/later/libaddend_torch1.13.so" check
ln -s old/libaddend.so.1 "$work/link.so"
says "a link leads to the package" "0 [1.13]" -- load "$work/debian/libtorch_cpu.so.0.0" stub "$work/link.so" check
says "functions without an implementation" "9 there is no" "0 operators, release " -- stub "$work/none/libaddend.so.1" others
says "statuses of the implementation" "5 of the implementation" "4 operators, release " -- \
  stub "$work/alone/libaddend.so.1" others
says "sixteen threads at once" "0 of 16 threads failed" -- stub "$work/alone/libaddend.so.1" threads 16
says "sixteen refused threads" "16 of 16 threads failed" -- stub "$work/none/libaddend.so.1" threads 16
says "a child opens what its parent has not" "0 [1.13]" -- stub "$work/alone/libaddend.so.1" fork
says "a child has what its parent has opened" "0 [1.13]" -- stub "$work/alone/libaddend.so.1" threads 8 fork
says "a child of a refused parent" "9 there is no" -- stub "$work/none/libaddend.so.1" check fork

says "the folder that a program names is taken" 'loaded: 0' '0 [2.10]' 'loaded: 1' -- \
  stub "$work/all/libaddend.so.1" loaded from "$work/official" loaded
says "the same folder once more" '0 [2.10]' -- stub "$work/all/libaddend.so.1" from "$work/official" from "$work/official"
says "LibTorch that is loaded comes before it" 'loaded: 1' '0 [1.13]' -- \
  load "$work/debian/libtorch_cpu.so.0.0" stub "$work/all/libaddend.so.1" loaded from "$work/official"
says "a folder that is not there is named, and another may be named then" \
  "9 LibTorch cannot be loaded ($work/nowhere: there is no libtorch_cpu.so)" '0 [2.10]' -- \
  stub "$work/all/libaddend.so.1" from "$work/nowhere" from "$work/official"

mkdir "$work/versions"
cp "$work/debian/libtorch_cpu.so.0.0" "$work/versions/libtorch_cpu.so.0.0.1"
says "a file with more of the version in its name is taken" '0 [1.13]' -- \
  stub "$work/all/libaddend.so.1" from "$work/versions"

ADDEND_LIBTORCH_PATH=$work/official
export ADDEND_LIBTORCH_PATH
says "the folder that a user names is taken" "0 [2.10]" -- stub "$work/all/libaddend.so.1" check
says "LibTorch that is loaded comes before it" "0 [1.13]" -- \
  load "$work/debian/libtorch_cpu.so.0.0" stub "$work/all/libaddend.so.1" check
says "the folder of a program comes before that of the environment" '0 [1.13]' -- \
  stub "$work/all/libaddend.so.1" from "$work/debian"
ADDEND_LIBTORCH_PATH=$work/none
says "a folder without LibTorch is named" "9 LibTorch cannot be loaded ($work/none: there is no libtorch_cpu.so)" -- \
  stub "$work/all/libaddend.so.1" check
unset ADDEND_LIBTORCH_PATH

# The stub itself needs the C library, and nothing else.
needs=$(readelf -d "$stub" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -v '^libc\.so\|^ld-linux\|^libdl\.so' || true)
if [ "$needs" ]; then
  echo "FAILED: the stub needs $needs" >&2
  failed=1
else
  echo "ok: the stub needs the C library alone"
fi
exit $failed
