#!/bin/sh
# sdk_test.sh SDK: in an empty folder, with nothing but the package, the quick start is built and runs in C and C++, with
# the flags of pkg-config, and with CMake where that is installed.
set -eu
sdk=$PWD/$1
here=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
tar -xzf "$sdk"

fail() {
  echo "FAILED: $1" >&2
  exit 1
}

PKG_CONFIG_PATH=$work/addend/lib/pkgconfig
export PKG_CONFIG_PATH
flags=$(pkg-config --cflags --libs addend)
version=$(pkg-config --modversion addend)
[ "$version" = "$(cat addend/VERSION)" ] || fail "pkg-config says version '$version'"
case $(pkg-config --variable=libtorch_version addend) in
  [0-9]*.[0-9]*) ;;
  *) fail "pkg-config does not say the version of LibTorch" ;;
esac
# shellcheck disable=SC2086
cc -std=c11 -Wall -Wextra -Werror "$here/docs/examples/quickstart.c" -o in_c $flags "-Wl,-rpath,$work/addend/lib"
# shellcheck disable=SC2086
c++ -std=c++17 -Wall -Wextra -Werror "$here/docs/examples/quickstart.cc" -o in_cc $flags "-Wl,-rpath,$work/addend/lib"
models=$here/docs/examples/models/digits
./in_c "$models/model.pt" "$models/sample.safetensors" >c.txt
./in_cc "$models/model.pt" "$models/sample.safetensors" >cc.txt
cmp c.txt cc.txt
grep -q '^recovery error: ' c.txt
# Debug information is for tests/abi only.
for library in addend/lib/libaddend*.so*; do
  if readelf -S "$library" | grep -q '\.debug_info'; then
    fail "$library of the package is not stripped"
  fi
done
# A program that another LibTorch has been loaded into is told so.
LD_PRELOAD=$here/c_api/stub/foreign/libtorch_cpu.so ./in_c "$models/model.pt" "$models/sample.safetensors" >beside.txt 2>&1 &&
  fail "the program ran beside another LibTorch"
grep -q 'this process has loaded LibTorch 0\.99\.0 (.*/libtorch_cpu\.so), and Addend' beside.txt ||
  { cat beside.txt >&2; fail "the program does not say what it is beside"; }
cat c.txt

if ! command -v cmake >/dev/null; then
  echo "skipped: there is no cmake here, so find_package(Addend) was not tried"
  exit 0
fi
mkdir project
cp -L "$here/c_api/sdk/CMakeLists.txt" "$here/docs/examples/quickstart.c" "$here/docs/examples/quickstart.cc" project/
# configure FOLDER WANTED: the project where Addend of version WANTED is asked for.
configure() {
  cmake -S project -B "$1" -DCMAKE_PREFIX_PATH="$work/addend" -DWANTED="$2" >"$1.log" 2>&1
}
configure build "$version" || { cat build.log >&2; fail "CMake does not find the package"; }
grep -q "Addend $version for LibTorch" build.log || fail "CMake does not say the version"
cmake --build build >build.log 2>&1 || { cat build.log >&2; fail "the CMake project does not build"; }
build/in_c "$models/model.pt" "$models/sample.safetensors" | cmp - c.txt
build/in_cc "$models/model.pt" "$models/sample.safetensors" | cmp - c.txt
# The series that is asked for counts, and nothing newer than the package is promised.
configure series "${version%.*}" || fail "CMake refuses the series of the package"
if configure newer "${version%.*}.999"; then fail "CMake takes $version where a newer one is asked for"; fi
if configure other 999.0; then fail "CMake takes $version for another series"; fi
mv addend/include/addend/addend.hpp kept
if configure damaged "$version"; then fail "CMake takes a package that lacks a header"; fi
grep -q 'addend.hpp is missing' damaged.log || { cat damaged.log >&2; fail "CMake does not say what is missing"; }
mv kept addend/include/addend/addend.hpp
# Wherever the folder lies.
mv addend elsewhere
cmake -S project -B moved -DAddend_DIR="$work/elsewhere/lib/cmake/Addend" >moved.log 2>&1 || fail "a moved package is not found"
echo "CMake: built and ran in C and C++"
