#!/bin/sh
# interface.sh HEADER_FOLDER SYMBOLS VERSION_SCRIPT OUTPUT: the interface that a header describes, as abidw records it.
#
# Every function of addend.h and addend_ext.h gets an empty body, so that what is recorded is the interface and nothing
# of what C++ puts behind it: a few thousand lines instead of a few hundred thousand. That the library has that
# interface is symbols_test's to check, and the compiler's, which warns of definitions that differ from the header (an
# error under --config=werror).
set -eu
headers=$1 symbols=$2 version_script=$3 output=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Declarations end with ";" behind ADDEND_NOEXCEPT.
sed 's/\(ADDEND_NOEXCEPT\);/\1 { __builtin_trap(); }/' "$headers/addend.h" >"$work/addend.h"
sed 's/\(ADDEND_NOEXCEPT\);/\1 { __builtin_trap(); }/' "$headers/addend_ext.h" >"$work/addend_ext.h"

# No function takes an enumeration, so that each gets a symbol of its own, by which its constants are recorded.
enums=$(sed -n 's/^enum \(addend_[a-z_]*\) {.*/\1/p' "$work/addend.h" "$work/addend_ext.h")
{
  echo '#include "addend_ext.h"'
  # Both words of each line are arguments.
  # shellcheck disable=SC2046,SC2183
  printf '__attribute__((visibility("default"))) enum %s %s_constants;\n' $(echo "$enums" | sed 's/.*/& &/')
} >"$work/interface.c"
{
  echo ADDEND_1
  echo "$enums" | sed 's/$/_constants/'
  sed '/^ADDEND_1$/d' "$symbols"
} | "$version_script" >"$work/addend.lds"
gcc -std=c11 -g -O0 -fPIC -shared -w -I"$work" "$work/interface.c" -o "$work/libaddend.so.1" \
  -Wl,--version-script="$work/addend.lds" -Wl,-soname,libaddend.so.1
abidw --exported-interfaces-only --no-show-locs --no-corpus-path --no-comp-dir-path \
  "$work/libaddend.so.1" >"$output"
