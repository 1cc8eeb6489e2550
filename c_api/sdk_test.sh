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
cc -std=c11 -Wall -Wextra -Werror "$here/docs/examples/quickstart.c" -o in_c $flags
# shellcheck disable=SC2086
c++ -std=c++17 -Wall -Wextra -Werror "$here/docs/examples/quickstart.cc" -o in_cc $flags
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

# compiles ABI OPTION...: the header in a file with that C++ ABI.
compiles() {
  abi=$1
  shift
  echo '#include <addend/addend.hpp>' | c++ -std=c++17 -fsyntax-only -D_GLIBCXX_USE_CXX11_ABI="$abi" -x c++ -Iaddend/include "$@" - \
    >compiled.txt 2>&1
}
for abi in 0 1; do
  compiles "$abi" || { cat compiled.txt >&2; fail "the header asks for a C++ ABI"; }
  compiles "$abi" "-DADDEND_LIBTORCH_CXX11_ABI=$abi" || { cat compiled.txt >&2; fail "the header refuses the ABI of LibTorch"; }
  other=$((1 - abi))
  compiles "$abi" "-DADDEND_LIBTORCH_CXX11_ABI=$other" && fail "a file with another C++ ABI than LibTorch is compiled"
  grep -q "LibTorch was built with _GLIBCXX_USE_CXX11_ABI=$other, and this file is compiled with _GLIBCXX_USE_CXX11_ABI=$abi" \
    compiled.txt || { cat compiled.txt >&2; fail "the compiler does not name both ABIs"; }
done

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
# torch FOLDER ABI: what find_package(Torch) finds, of one function.
torch() {
  mkdir -p "$1"
  echo '#include <string>
    namespace c10::detail { void torchCheckFail(const char*, const char*, unsigned, const std::string&) {} }' |
    c++ -std=c++17 -shared -fPIC -D_GLIBCXX_USE_CXX11_ABI="$2" -x c++ - -o "$1/libc10.so"
  echo "add_library(c10 SHARED IMPORTED)
    set_target_properties(c10 PROPERTIES IMPORTED_LOCATION $PWD/$1/libc10.so)" >"$1/TorchConfig.cmake"
  echo 'set(PACKAGE_VERSION 9.9.0)' >"$1/TorchConfigVersion.cmake"
}
# with_torch FOLDER FIRST THEN: the project with both packages, in that order.
with_torch() {
  mkdir -p "$1.project"
  printf 'cmake_minimum_required(VERSION 3.19)\nproject(addend_user CXX)\n%s\n%s\nadd_executable(in_cc %s)\n%s\n' \
    "find_package($2 CONFIG REQUIRED)" "find_package($3 CONFIG REQUIRED)" "$here/docs/examples/quickstart.cc" \
    'target_link_libraries(in_cc PRIVATE Addend::addend_cpp)' >"$1.project/CMakeLists.txt"
  cmake -S "$1.project" -B "$1.$2" -DCMAKE_PREFIX_PATH="$work/addend" -DTorch_DIR="$PWD/$1" 2>&1 | tr -s ' \n' ' ' >"$1.log"
  grep -q 'Generating done' "$1.log"
}
case $(readelf -W --dyn-syms addend/lib/libaddend_torch*.so) in
  *_ZN6caffe215GetBuildOptionsB5cxx11Ev*) ours=1 ;;
  *) ours=0 ;;
esac
other=$((1 - ours))
torch same $ours
torch different $other
for order in "Torch Addend" "Addend Torch" "Torch addend"; do
  # shellcheck disable=SC2086
  with_torch same $order || { cat same.log >&2; fail "CMake refuses a LibTorch of the same C++ ABI ($order)"; }
  grep -rq "ADDEND_LIBTORCH_CXX11_ABI=$ours" "same.${order% *}"/CMakeFiles/in_cc.dir/flags.make ||
    fail "the compiler is not told the C++ ABI of LibTorch ($order)"
  # shellcheck disable=SC2086
  with_torch different $order && fail "CMake takes a LibTorch of another C++ ABI ($order)"
  grep -q "LibTorch 9.9.0 ($PWD/different/libc10.so) was built with _GLIBCXX_USE_CXX11_ABI=$other, and what Addend has for LibTorch (libaddend_torch.* in $work/addend/lib) with _GLIBCXX_USE_CXX11_ABI=$ours:" \
    different.log || { cat different.log >&2; fail "CMake does not name both C++ ABIs ($order)"; }
done
# Wherever the folder lies.
mv addend elsewhere
cmake -S project -B moved -DAddend_DIR="$work/elsewhere/lib/cmake/addend" >moved.log 2>&1 || fail "a moved package is not found"
echo "CMake: built and ran in C and C++"
