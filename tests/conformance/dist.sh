#!/bin/sh
# dist.sh OUT FILE...: the suite as a folder that can be copied away, conformance-1.tar.gz. Of each file, what follows
# the last "tests/conformance/" is its place; the models of docs/examples go to models/examples.
set -eu
out=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/conformance-1
for file in "$@"; do
  case $file in
    *docs/examples/models/*) place=models/examples/${file##*docs/examples/models/} ;;
    *tests/conformance/*) place=${file##*tests/conformance/} ;;
    *) echo "dist.sh: $file has no place in the tarball" >&2; exit 1 ;;
  esac
  mkdir -p "$root/$(dirname "$place")"
  cp -L "$file" "$root/$place"
done
find "$root" -type f -exec chmod 644 {} +
chmod 755 "$root/run.py"
sed -i 's|\.\./\.\./\.\./docs/examples/models|../models/examples|' "$root"/cases/*.json
tar -C "$work" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf - conformance-1 | gzip -n >"$out"
