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
