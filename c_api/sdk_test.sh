#!/bin/sh
# sdk_test.sh SDK: in an empty folder, with nothing but the package, the quick start is built and runs in C and C++.
set -eu
sdk=$PWD/$1
here=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
tar -xzf "$sdk"
PKG_CONFIG_PATH=$work/addend/lib/pkgconfig
export PKG_CONFIG_PATH
flags=$(pkg-config --cflags --libs addend)
case $(pkg-config --modversion addend) in
  [0-9]*) ;;
  *) echo "FAILED: the package has no version" >&2; exit 1 ;;
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
    echo "FAILED: $library of the package is not stripped" >&2
    exit 1
  fi
done
# A program that another LibTorch has been loaded into is told so.
LD_PRELOAD=$here/c_api/stub/foreign/libtorch_cpu.so ./in_c "$models/model.pt" "$models/sample.safetensors" >beside.txt 2>&1 &&
  { echo "FAILED: the program ran beside another LibTorch" >&2; exit 1; }
grep -q 'this process has loaded LibTorch 0\.99\.0 (.*/libtorch_cpu\.so), and Addend' beside.txt || { cat beside.txt >&2; exit 1; }
cat c.txt
