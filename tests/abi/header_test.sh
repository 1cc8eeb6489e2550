#!/bin/sh
# header_test.sh HEADER...: each compiles on its own as strict C11 and C++17 and is understood by SWIG, without a warning.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for header in "$@"; do
  printf '#include "%s"\nint main(void) { return 0; }\n' "$header" >"$work/program.c"
  cp "$work/program.c" "$work/program.cc"
  case $header in
    *.hpp) ;;
    *) gcc -std=c11 -Wall -Wextra -pedantic -Werror -I. -Ic_api -fsyntax-only "$work/program.c" ;;
  esac
  g++ -std=c++17 -Wall -Wextra -pedantic -Werror -I. -Ic_api -fsyntax-only "$work/program.cc"
  echo "ok: $header"
done

# preprocessed TEXT OPTION...: the last line of what becomes of the header and the text.
preprocessed() {
  text=$1
  shift
  printf '#include "c_api/addend.h"\n%s\n' "$text" | gcc -E -P -I. "$@" - | tail -1 | tr -d ' '
}

# expect WANTED GOT WHAT
expect() {
  if [ "$1" != "$2" ]; then
    echo "FAILED: $3 is $2 instead of $1" >&2
    exit 1
  fi
  echo "ok: $3 is $1"
}
version=$(cat VERSION)
expect "\"$version\"" "$(preprocessed ADDEND_VERSION)" "ADDEND_VERSION, as in the file VERSION,"
expect "$version" "$(preprocessed 'ADDEND_VERSION_MAJOR.ADDEND_VERSION_MINOR.ADDEND_VERSION_PATCH')" \
  "the version in numbers"
# Windows is not built; that its compilers would find what they need is looked at.
expect "__declspec(dllimport)" "$(preprocessed ADDEND_API -D_WIN32)" "ADDEND_API for programs on Windows"
expect "__declspec(dllexport)" "$(preprocessed ADDEND_API -D_WIN32 -DADDEND_BUILDING)" "ADDEND_API for the library there"
expect "__cdecl" "$(preprocessed ADDEND_CALL -D_WIN32)" "ADDEND_CALL there"
expect "" "$(preprocessed ADDEND_CALL)" "ADDEND_CALL elsewhere"

if ! command -v swig >/dev/null; then
  echo "skipped: swig is not installed (tools/setup installs it)"
  exit 0
fi
for language in python java csharp; do
  echo '%module addend' >"$work/addend.i"
  for header in "$@"; do
    case $header in *.hpp) continue ;; esac
    printf '%%include "%s"\n' "$header" >>"$work/addend.i"
  done
  swig -Wall -Werror -c++ -"$language" -I. -Ic_api -outdir "$work" -o "$work/wrap.cc" "$work/addend.i"
  echo "ok: all as input of SWIG for $language"
done
