#!/bin/sh
# cmake_test.sh SDK LIBRARIES: the project is configured with the packaged archive and the CMake files of the LibTorch whose
# libraries lie in that folder, builds, and explains what torch::jit computes: the numbers of docs/first_program.md.
set -eu
sdk=$PWD/$1 libraries=$2
here=$PWD/docs/examples
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "FAILED: $1" >&2
  exit 1
}

if ! command -v cmake >/dev/null; then
  echo "skipped: there is no cmake here"
  exit 0
fi
# In PyTorch's packages and archives, and in those of distributions.
torch=
for folder in "$libraries/../share/cmake/Torch" "$libraries/cmake/Torch"; do
  [ ! -e "$folder/TorchConfig.cmake" ] || torch=$folder
done
if [ -z "$torch" ]; then
  echo "skipped: LibTorch in $libraries has no files for CMake"
  exit 0
fi

cd "$work"
tar -xzf "$sdk"
mkdir project
cp -L "$here/cmake/CMakeLists.txt" "$here/cmake/explain.cc" project/
# configure FOLDER OPTION...
configure() {
  folder=$1
  shift
  # Not Torch_DIR, and LibTorch's own folder first: its files look for further ones of LibTorch, also where the system's are.
  cmake -S project -B "$folder" -DCMAKE_PREFIX_PATH="$libraries/..;$torch/..;$work/addend" -DCMAKE_BUILD_TYPE=Release "$@" \
    >"$folder.log" 2>&1
}
without=OFF
if [ -e "$libraries/libtorch_cuda.so" ] && ! command -v nvcc >/dev/null; then
  without=ON
  if configure toolkit; then fail "LibTorch no longer asks for the CUDA toolkit: docs/building.md says that it does"; fi
  grep -q 'uses CUDA but I cannot find the CUDA' toolkit.log || { cat toolkit.log >&2; fail "another error than expected"; }
fi
configure build -DWITHOUT_CUDA_TOOLKIT=$without || { cat build.log >&2; fail "the project cannot be configured"; }
for each in TORCH_LIBRARY:libtorch.so c10_LIBRARY:libc10.so; do
  taken=$(sed -n "s/^${each%:*}:FILEPATH=//p" build/CMakeCache.txt)
  [ "$(realpath "$taken")" = "$(realpath "$libraries/${each#*:}")" ] || fail "the project takes $taken, too"
done
cmake --build build >build.log 2>&1 || { cat build.log >&2; fail "the project does not build"; }

models=$here/models/digits
build/explain "$models/model.pt" "$models/sample.safetensors" >printed.txt || { cat printed.txt >&2; fail "the program failed"; }
cat printed.txt
grep '^output\|^pixel' printed.txt >numbers.txt
sed -n '/^output \[0, 8\]/,/^```/p' "$here/../first_program.md" | grep '^output\|^pixel' | cmp - numbers.txt ||
  fail "the numbers are not those of docs/first_program.md"
grep -q '^LibTorch .*recovery error of all 10 outputs: ' printed.txt || fail "the program does not compare"
if build/explain /nowhere "$models/sample.safetensors" >none.txt 2>&1; then fail "the program does not fail without a model"; fi
