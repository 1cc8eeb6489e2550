#!/bin/sh
# symbols_test.sh LIBRARY: the library exports what symbols.txt lists, and nothing else.
set -eu
library=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Each symbol with its version, and the versions themselves.
awk '/^#/ || /^$/ { next } /^[A-Z0-9_]+$/ { node = $0; print node "@@" node; next } { print $0 "@@" node }' \
  c_api/symbols.txt | sort >"$work/expected"
nm -D --defined-only "$library" | awk '{ print $3 }' | sed 's/^\([A-Z0-9_]*\)$/\1@@\1/' | sort >"$work/exported"
if ! diff -u "$work/expected" "$work/exported"; then
  echo "FAILED: the library does not export what c_api/symbols.txt lists" >&2
  exit 1
fi
echo "ok: $(wc -l <"$work/exported") symbols"

# Both lists name everything that the headers declare.
grep -ho 'addend_[a-z0-9_]*(' c_api/addend.h c_api/addend_ext.h | tr -d '(' | sort -u >"$work/declared"
grep '^addend_' c_api/symbols.txt | sort >"$work/listed"
if ! diff -u "$work/listed" "$work/declared"; then
  echo "FAILED: c_api/symbols.txt does not list what the headers declare" >&2
  exit 1
fi
soname=$(readelf -d "$library" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
[ "$soname" = libaddend.so.1 ] || { echo "FAILED: the soname is $soname" >&2; exit 1; }
