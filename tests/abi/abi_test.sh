#!/bin/sh
# abi_test.sh: the interface is that of the committed baseline, and the gate that says so sees what it should.
set -eu
if ! command -v abidiff >/dev/null || ! command -v gcc >/dev/null; then
  echo "skipped: abidiff or gcc is not installed (tools/setup installs them)"
  exit 0
fi
script=tools/bazel/version_script
baseline=tests/abi/baseline.xml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# interface NAME: describes $work/NAME/*.h with $work/NAME/symbols.txt.
interface() {
  tests/abi/interface.sh "$work/$1" "$work/$1/symbols.txt" "$script" "$work/$1.xml"
}
fresh() {
  mkdir "$work/$1"
  cp c_api/addend.h c_api/addend_ext.h c_api/symbols.txt "$work/$1"
}
gate() { abidiff --no-added-syms "$baseline" "$work/$1.xml" >"$work/$1.txt"; }

fresh same
interface same
if gate same; then
  echo "ok: the interface is that of the baseline"
else
  echo "FAILED: the interface differs from tests/abi/baseline.xml. Old programs would break:" >&2
  cat "$work/same.txt" >&2
  echo "Where it only grew, renew the baseline:" \
    "tests/abi/interface.sh c_api c_api/symbols.txt tools/bazel/version_script tests/abi/baseline.xml" >&2
  failed=1
fi

# Functions that the baseline lacks could be removed again without a word.
# Names are words.
# shellcheck disable=SC2013
for symbol in $(grep '^addend_' c_api/symbols.txt); do
  if ! grep -q "name='$symbol'" "$baseline"; then
    echo "FAILED: tests/abi/baseline.xml lacks $symbol; renew it:" \
      "tests/abi/interface.sh c_api c_api/symbols.txt tools/bazel/version_script tests/abi/baseline.xml" >&2
    failed=1
  fi
done

# shellcheck disable=SC2013
for constant in $(sed -n 's/.*enumerator name=.\([A-Z0-9_]*\). value=.\(-*[0-9]*\).*/\1=\2/p' "$work/same.xml"); do
  if ! grep -q "enumerator name='${constant%=*}' value='${constant#*=}'" "$baseline"; then
    echo "FAILED: tests/abi/baseline.xml lacks $constant; renew it:" \
      "tests/abi/interface.sh c_api c_api/symbols.txt tools/bazel/version_script tests/abi/baseline.xml" >&2
    failed=1
  fi
done

# trips NAME WHAT: the gate must not let the changed interface pass.
trips() {
  interface "$1"
  if cmp -s "$work/same.xml" "$work/$1.xml"; then
    echo "FAILED: the change of \"$2\" did not change the interface: this test is out of date" >&2
    failed=1
  elif gate "$1"; then
    echo "FAILED: the gate lets pass: $2" >&2
    failed=1
  else
    echo "ok: the gate trips on: $2"
  fi
}

fresh removed
sed -i '/^addend_tensor_size$/d' "$work/removed/symbols.txt"
trips removed "a removed symbol"

fresh parameter
sed -i 's/addend_debug_live(int32_t kind)/addend_debug_live(int64_t kind)/' "$work/parameter/addend.h"
trips parameter "a changed parameter type"

fresh handle
sed -i 's/addend_composition_numc(const addend_composition\*/addend_composition_numc(const addend_tensor*/' \
  "$work/handle/addend.h"
trips handle "a parameter that takes another handle"

fresh result
sed -i 's/int32_t addend_results_kind(/int64_t addend_results_kind(/' "$work/result/addend.h"
trips result "a changed type of a result"

fresh table
sed -i 's/  void\* payload;/  int32_t extra; void* payload;/' "$work/table/addend_ext.h"
trips table "a table of callbacks with another layout"

fresh renumbered
sed -i 's/ADDEND_FLOAT32 = 0x2002/ADDEND_FLOAT32 = 0x2003/' "$work/renumbered/addend.h"
trips renumbered "a constant with another number"

fresh exchanged
sed -i 's/ADDEND_NUMBER_REFERENCE = 1/ADDEND_NUMBER_REFERENCE = 2/; s/ADDEND_NUMBER_LEFTOVER = 2/ADDEND_NUMBER_LEFTOVER = 1/' \
  "$work/exchanged/addend.h"
trips exchanged "two constants that changed places"

fresh dropped
sed -i '/ADDEND_NUMBER_LEFTOVER = /d' "$work/dropped/addend.h"
trips dropped "a removed constant"

fresh answers
sed -i 's/ADDEND_CALLBACK_DECLINE = -30/ADDEND_CALLBACK_DECLINE = -31/' "$work/answers/addend_ext.h"
trips answers "a constant of addend_ext.h with another number"

fresh enumeration
sed -i 's/^enum addend_log_level {.*/enum addend_other_level { ADDEND_LOG_INFO = 1, ADDEND_LOG_WARNING = 2 };/' \
  "$work/enumeration/addend.h"
trips enumeration "a removed enumeration"

# passes NAME WHAT: the gate has to let the changed interface pass.
passes() {
  interface "$1"
  if cmp -s "$work/same.xml" "$work/$1.xml"; then
    echo "FAILED: the change of \"$2\" did not change the interface: this test is out of date" >&2
    failed=1
  elif gate "$1"; then
    echo "ok: the gate lets pass: $2"
  else
    echo "FAILED: the gate does not let pass: $2" >&2
    cat "$work/$1.txt" >&2
    failed=1
  fi
}

# Changes that are allowed: new constants, and new functions under a new version.
fresh appended
sed -i 's/ADDEND_BOOL = 0x0806/&,\n  ADDEND_NEW = 0x7777/; s/^enum addend_code {/enum addend_new { ADDEND_NEWER = 1 };\n&/' \
  "$work/appended/addend.h"
passes appended "an appended constant and a new enumeration"

fresh added
printf 'ADDEND_2\naddend_new\n' >>"$work/added/symbols.txt"
sed -i 's/^ADDEND_API size_t addend_op_count(void) ADDEND_NOEXCEPT;/&\nADDEND_API int32_t addend_new(void) ADDEND_NOEXCEPT;/' \
  "$work/added/addend.h"
passes added "a new function"
exit $failed
