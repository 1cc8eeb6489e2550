#!/bin/sh
# dist_test.sh PYTHON TARBALL SDK [FOLDER]: in an empty folder, with nothing but the tarball and what users install, a part
# of the suite runs against the installed library, in C and, where FOLDER holds a wheel, in Python against C.
set -eu
python=$1 tarball=$PWD/$2 sdk=$PWD/$3
wheel=
[ -z "${4:-}" ] || wheel=$(echo "$PWD/$4"/*.whl)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
tar -xzf "$tarball"
tar -xzf "$sdk"
export PKG_CONFIG_PATH="$work/addend/lib/pkgconfig"
unset XML_OUTPUT_FILE
# The commands of README.md.
# shellcheck disable=SC2046
cc -DADDEND_INSTALLED conformance-1/testees/c/testee.c $(pkg-config --cflags --libs addend) -lpthread \
  "-Wl,-rpath,$work/addend/lib" -o testee
# shellcheck disable=SC2046
c++ -std=c++17 -DADDEND_INSTALLED conformance-1/testees/cpp/testee.cc $(pkg-config --cflags --libs addend) -lpthread \
  "-Wl,-rpath,$work/addend/lib" -o cpp_testee
cd conformance-1
for path in SPEC.md PROTOCOL.md README.md case.schema.json laws models/examples/digits/model.pt runner/reference; do
  [ -e "$path" ] || { echo "FAILED: the tarball has no $path" >&2; exit 1; }
done

# passes ARGUMENT...: a run succeeds and checked something.
passes() {
  "$python" -B run.py "$@" >../out.txt || { cat ../out.txt >&2; exit 1; }
  tail -n 1 ../out.txt
  tail -n 1 ../out.txt | grep -q '^[1-9][0-9]* passed, 0 failed, [0-9]* skipped$'
}
part="--cases arguments --cases lifecycle --cases memory --cases files --cases refused --cases models_digits"
# shellcheck disable=SC2086
passes --testee ../cpp_testee $part
# shellcheck disable=SC2086
passes --testee ../testee --against ../cpp_testee $part --cases 'laws_activation'
if [ -n "$wheel" ]; then
  mkdir ../python
  (cd ../python && "$python" -m zipfile -e "$wheel" .)
  # shellcheck disable=SC2086
  passes --testee "env PYTHONPATH=$work/python $python -B testees/python/testee.py" --against ../testee $part
else
  echo "skipped: there is no wheel of the Python binding"
fi
# A wrong answer is one here too.
sed -i 's/"error": "NOT_FOUND"/"error": "OUT_OF_RANGE"/' cases/refused.json
status=0
"$python" -B run.py --testee ../testee --cases refused >../out.txt 2>&1 || status=$?
[ "$status" = 1 ] || { echo "FAILED: a wrong case ends a run with $status" >&2; exit 1; }
