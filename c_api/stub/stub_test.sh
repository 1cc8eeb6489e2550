#!/bin/sh
# stub_test.sh STUB FUNCTIONS_H: which implementation the stub opens beside which LibTorch, and what it says where none fits. LibTorch
# and the implementations are made here, each of a few functions.
set -eu
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
unset LD_LIBRARY_PATH ADDEND_LIBTORCH_PATH ADDEND_ALLOW_OTHER_LIBTORCH

# libtorch FOLDER SONAME [VERSION [OPTION]]: a libtorch_cpu, which tells its version as LibTorch does, if it has one, and
# ends the process where it is asked for the description that asks CUDA for devices.
libtorch() {
  mkdir -p "$work/$1"
  {
    echo '#include <cstdlib>'
    echo '#include <map>'
    echo '#include <string>'
    echo 'extern "C" int addend_test_libtorch() { return 0; }'
    echo 'namespace at { std::string show_config() { std::abort(); } }'
    [ -z "${3:-}" ] || cat <<END
namespace caffe2 {
const std::map<std::string, std::string>& GetBuildOptions() {
  static const std::map<std::string, std::string> options = {
      {"A", "first"}, {"BLAS_INFO", "mkl"}, {"BUILD_TYPE", "Release"}, {"CXX_FLAGS", std::string(500, '-')},
      {"LAPACK_INFO", "mkl"}, {"PERF_WITH_AVX512", "1"}, {"TORCH_VERSION", "$3"}, {"TORCH_VERSIONS", "other"},
      {"USE_CUDA", "OFF"}, {"USE_XPU", "OFF"}, {"Z", "last"}};
  return options;
}
}
END
  } >"$work/libtorch.cc"
  # shellcheck disable=SC2086
  c++ -shared -fPIC ${4:-} -Wl,-soname,"$2" "$work/libtorch.cc" -o "$work/$1/$2"
}

# implementation FILE VERSION LIBTORCH [OPTION]: needs the library LIBTORCH, if one is named; - for none.
implementation() {
  mkdir -p "$(dirname "$work/$1")"
  needs=
  [ "$3" = - ] || needs="-DNEEDS_LIBTORCH $work/$3 -Wl,-rpath,\$ORIGIN"
  # shellcheck disable=SC2086
  cc -shared -fPIC -fvisibility=hidden -I"$root" -I"$include" "-DVERSION=\"$2\"" ${4:-} "$root/c_api/stub/fake.c" $needs -o "$work/$1"
}

# package FOLDER VERSION...: the stub and implementations.
package() {
  folder=$1
  shift
  mkdir -p "$work/$folder"
  cp -L "$root/$stub" "$work/$folder/libaddend.so.1"
  for version; do cp "$work/implementations/libaddend_torch$version.so" "$work/$folder"; done
}

# says WHAT EXPECTED... -- ARGUMENT...: the caller succeeds and prints each of EXPECTED.
says() {
  what=$1
  shift
  : >"$work/expected"
  while [ "$1" != -- ]; do
    printf '%s\n' "$1" >>"$work/expected"
    shift
  done
  shift
  if ! "$work/caller" "$@" >"$work/printed" 2>&1; then
    echo "FAILED: $what: the process ended with $?:" >&2
    cat "$work/printed" >&2
    failed=1
    return
  fi
  while IFS= read -r line; do
    if ! grep -qF -- "$line" "$work/printed"; then
      echo "FAILED: $what: \"$line\" is not in:" >&2
      cat "$work/printed" >&2
      failed=1
      return
    fi
  done <"$work/expected"
  echo "ok: $what"
}

# says_not TEXT: what was printed last does not hold it.
says_not() {
  if grep -qF -- "$1" "$work/printed"; then
    echo "FAILED: $what: \"$1\" is in:" >&2
    cat "$work/printed" >&2
    failed=1
  fi
}

stub=$1 include=$(dirname "$(dirname "$(dirname "$2")")")
cc -Wall -I"$root" "$root/c_api/stub/caller.c" -o "$work/caller" -lpthread -ldl
libtorch debian libtorch_cpu.so.0.0 1.13.1
libtorch official libtorch_cpu.so 2.10.0
libtorch official1.13 libtorch_cpu.so 1.13.1
libtorch silent libtorch_cpu.so
libtorch newest libtorch_cpu.so 2.14.1
libtorch new2.6 libtorch_cpu.so 2.6.0
libtorch old2.6 libtorch_cpu.so 2.6.0 -D_GLIBCXX_USE_CXX11_ABI=0
implementation implementations/libaddend_torch1.13.so 1.13 debian/libtorch_cpu.so.0.0
implementation implementations/libaddend_torch2.10.so 2.10 official/libtorch_cpu.so
implementation implementations/libaddend_torch2.9.so 2.9 official/libtorch_cpu.so
package old 1.13
package all 1.13 2.9 2.10
package alone 1.13
cp "$work/debian/libtorch_cpu.so.0.0" "$work/alone"
package none
package mixed
implementation mixed/libaddend_torch1.13.so 1.13 - '-DDIGEST="other"'
package later
package last
package refusing
implementation refusing/libaddend_torch1.13.so 1.13 debian/libtorch_cpu.so.0.0 -DREFUSES
calls_new="-DBUILD_OPTIONS=_ZN6caffe215GetBuildOptionsB5cxx11Ev" calls_old="-DBUILD_OPTIONS=_ZN6caffe215GetBuildOptionsEv"
package of_new
implementation of_new/libaddend_torch2.6.so 2.6 new2.6/libtorch_cpu.so "$calls_new"
package of_old
implementation of_old/libaddend_torch2.6.so 2.6 old2.6/libtorch_cpu.so "$calls_old"

says "LibTorch that lies beside it is loaded" '0 [1.13]' -- stub "$work/alone/libaddend.so.1" check
says "LibTorch that is loaded already is taken" '0 [1.13]' -- \
  load "$work/debian/libtorch_cpu.so.0.0" stub "$work/old/libaddend.so.1" check
says "the implementation for the loaded LibTorch is opened" '0 [2.10]' -- \
  load "$work/official/libtorch_cpu.so" stub "$work/all/libaddend.so.1" check
says "the same, loaded after the stub" '0 [2.10]' -- \
  stub "$work/all/libaddend.so.1" load "$work/official/libtorch_cpu.so" check
says "another LibTorch is refused" \
  "9 this process has loaded LibTorch 2.10.0 ($work/official/libtorch_cpu.so), and Addend " \
  " in $work/old serves LibTorch 1.13; install the Addend for the loaded LibTorch, or let the process load LibTorch 1.13, or set ADDEND_ALLOW_OTHER_LIBTORCH=1 to try the implementation for 1.13, which is not tested here[]" -- \
  load "$work/official/libtorch_cpu.so" stub "$work/old/libaddend.so.1" check check
says "the same, loaded after the stub" "9 this process has loaded LibTorch 2.10.0 (" -- \
  stub "$work/old/libaddend.so.1" load "$work/official/libtorch_cpu.so" check
says "all versions that would serve are named" "2.14.1 (" "serves LibTorch 2.10, 2.9 and 1.13;" -- \
  load "$work/newest/libtorch_cpu.so" stub "$work/all/libaddend.so.1" check
libtorch between libtorch_cpu.so 2.9.9
libtorch older libtorch_cpu.so 2.8.0
package official 2.9 2.10
says "which implementation was tried is told" "  ADDEND_ALLOW_OTHER_LIBTORCH: 1" "/libaddend_torch2.10.so, for LibTorch 2.10" -- \
  allow load "$work/newest/libtorch_cpu.so" stub "$work/official/libaddend.so.1" config
says "what an implementation is not for is tried where the user allows it" '0 [2.10]' -- \
  allow load "$work/newest/libtorch_cpu.so" stub "$work/official/libaddend.so.1" check
says "the one for an older LibTorch is preferred" "to try the implementation for 2.10," -- \
  load "$work/newest/libtorch_cpu.so" stub "$work/official/libaddend.so.1" check
says "else the oldest is tried" '0 [2.9]' -- \
  allow load "$work/older/libtorch_cpu.so" stub "$work/official/libaddend.so.1" check
says "where one fits, nothing else is tried" '0 [2.9]' -- \
  allow load "$work/between/libtorch_cpu.so" stub "$work/official/libaddend.so.1" check
says "the same version under another name is refused" \
  "9 this process has loaded LibTorch 1.13.1 ($work/official1.13/libtorch_cpu.so), which is not the libtorch_cpu.so.0.0 that $work/old/libaddend_torch1.13.so needs" -- \
  load "$work/official1.13/libtorch_cpu.so" stub "$work/old/libaddend.so.1" check
says "LibTorch without a version is refused" "of a version that it does not tell ($work/silent/libtorch_cpu.so)" -- \
  load "$work/silent/libtorch_cpu.so" stub "$work/old/libaddend.so.1" check

# The strings of LibTorch up to 2.6 as pip installs it, which no program of today has by itself.
says "LibTorch with the old C++ ABI tells its version" "9 this process has loaded LibTorch 2.6.0 (" -- \
  load "$work/old2.6/libtorch_cpu.so" stub "$work/old/libaddend.so.1" check check
says "LibTorch with the new one does too" "9 this process has loaded LibTorch 2.6.0 (" -- \
  load "$work/new2.6/libtorch_cpu.so" stub "$work/old/libaddend.so.1" check check
for kind in old new; do
  says "an implementation for the $kind C++ ABI is opened beside it" '0 [2.6]' -- \
    load "$work/${kind}2.6/libtorch_cpu.so" stub "$work/of_$kind/libaddend.so.1" check
done
old="the old C++ ABI (_GLIBCXX_USE_CXX11_ABI=0)" new="the new C++ ABI (_GLIBCXX_USE_CXX11_ABI=1)"
says "an implementation for the new C++ ABI is refused beside the old one" \
  "9 this process has loaded LibTorch 2.6.0 ($work/old2.6/libtorch_cpu.so) with $old, and $work/of_new/libaddend_torch2.6.so was built for one with $new; let" -- \
  load "$work/old2.6/libtorch_cpu.so" stub "$work/of_new/libaddend.so.1" check
says "an implementation for the old C++ ABI is refused beside the new one" \
  "9 this process has loaded LibTorch 2.6.0 ($work/new2.6/libtorch_cpu.so) with $new, and $work/of_old/libaddend_torch2.6.so was built for one with $old; let" -- \
  load "$work/new2.6/libtorch_cpu.so" stub "$work/of_old/libaddend.so.1" check
for kind in old new; do
  case $kind in
    old) other=new built=$old found=$new ;;
    new) other=old built=$new found=$old ;;
  esac
  cp "$work/${other}2.6/libtorch_cpu.so" "$work/of_$kind/"
  says "so is one for the $kind C++ ABI beside the LibTorch that the loader finds" \
    "undefined symbol: " ": it was built for a LibTorch with $built, and the one that was found is of another version or has $found)" -- \
    stub "$work/of_$kind/libaddend.so.1" check
  rm "$work/of_$kind/libtorch_cpu.so"
done
says "two LibTorchs are refused" \
  "9 this process has loaded LibTorch more than once (" "$work/debian/libtorch_cpu.so.0.0" "$work/official/libtorch_cpu.so" -- \
  load "$work/debian/libtorch_cpu.so.0.0" load "$work/official/libtorch_cpu.so" stub "$work/all/libaddend.so.1" check
says "LibTorch that is missing is named" \
  "9 LibTorch cannot be loaded ($work/old/libaddend_torch1.13.so: libtorch_cpu.so.0.0: cannot open shared object file" \
  "install LibTorch 1.13, or set ADDEND_LIBTORCH_PATH" -- stub "$work/old/libaddend.so.1" check
cc -shared -fPIC -x c /dev/null -Wl,-soname,libother.so.7 -o "$work/libother.so.7"
implementation needy/libaddend_torch1.13.so 1.13 debian/libtorch_cpu.so.0.0 "-Wl,--no-as-needed $work/libother.so.7"
package needy
says "another library that is missing is named" \
  "9 Addend cannot be loaded ($work/needy/libaddend_torch1.13.so: libother.so.7: cannot open shared object file" \
  "); install libother.so.7, which this machine lacks, and LibTorch 1.13" -- stub "$work/needy/libaddend.so.1" check
# foreign FILE: makes it one for PowerPC, which is no machine that runs this test.
foreign() { printf '\025\000' | dd of="$1" bs=1 seek=18 conv=notrunc status=none; }
package foreign 1.13
foreign "$work/foreign/libaddend_torch1.13.so"
says "an implementation for another processor is named" \
  "libaddend_torch1.13.so: it is for another processor; install the one for this machine" -- \
  load "$work/debian/libtorch_cpu.so.0.0" stub "$work/foreign/libaddend.so.1" check
mkdir "$work/elsewhere"
cp "$work/official/libtorch_cpu.so" "$work/elsewhere"
foreign "$work/elsewhere/libtorch_cpu.so"
says "a LibTorch for another processor is named" "$work/elsewhere/libtorch_cpu.so: it is for another processor;" -- \
  stub "$work/all/libaddend.so.1" from "$work/elsewhere"
says "an implementation that is missing is named" "9 there is no libaddend_torch<version>.so in $work/none" -- \
  load "$work/debian/libtorch_cpu.so.0.0" stub "$work/none/libaddend.so.1" check
says "files of two builds are told apart" "libaddend_torch1.13.so: it is of another build of Addend" -- \
  stub "$work/mixed/libaddend.so.1" check
says "a refusal is no end: the next call looks again" "9 there is no" "0 [1.13]" -- \
  load "$work/debian/libtorch_cpu.so.0.0" stub "$work/later/libaddend.so.1" check \
  copy "$work/implementations/libaddend_torch1.13.so" "$work/later/libaddend_torch1.13.so" check
ln -s old/libaddend.so.1 "$work/link.so"
says "a link leads to the package" "0 [1.13]" -- load "$work/debian/libtorch_cpu.so.0.0" stub "$work/link.so" check
says "functions without an implementation" "9 there is no" "0 operators, release " -- stub "$work/none/libaddend.so.1" others
says "statuses of the implementation" "5 of the implementation" "4 operators, release " -- \
  stub "$work/alone/libaddend.so.1" others
says "sixteen threads at once" "0 of 16 threads failed" -- stub "$work/alone/libaddend.so.1" threads 16
says "sixteen refused threads" "16 of 16 threads failed" -- stub "$work/none/libaddend.so.1" threads 16
says "a child opens what its parent has not" "0 [1.13]" -- stub "$work/alone/libaddend.so.1" fork
says "a child has what its parent has opened" "0 [1.13]" -- stub "$work/alone/libaddend.so.1" threads 8 fork
says "a child of a refused parent" "9 there is no" -- stub "$work/none/libaddend.so.1" check fork

says "the folder that a program names is taken" 'loaded: 0' '0 [2.10]' 'loaded: 1' -- \
  stub "$work/all/libaddend.so.1" loaded from "$work/official" loaded
says "the same folder once more" '0 [2.10]' -- stub "$work/all/libaddend.so.1" from "$work/official" from "$work/official"
says "LibTorch that is loaded comes before it" 'loaded: 1' '0 [1.13]' -- \
  load "$work/debian/libtorch_cpu.so.0.0" stub "$work/all/libaddend.so.1" loaded from "$work/official"
says "a folder that is not there is named, and another may be named then" \
  "9 LibTorch cannot be loaded ($work/nowhere: there is no libtorch_cpu.so)" '0 [2.10]' -- \
  stub "$work/all/libaddend.so.1" from "$work/nowhere" from "$work/official"

mkdir "$work/versions"
cp "$work/debian/libtorch_cpu.so.0.0" "$work/versions/libtorch_cpu.so.0.0.1"
says "a file with more of the version in its name is taken" '0 [1.13]' -- \
  stub "$work/all/libaddend.so.1" from "$work/versions"

ADDEND_LIBTORCH_PATH=$work/official
export ADDEND_LIBTORCH_PATH
says "the folder that a user names is taken" "0 [2.10]" -- stub "$work/all/libaddend.so.1" check
says "LibTorch that is loaded comes before it" "0 [1.13]" -- \
  load "$work/debian/libtorch_cpu.so.0.0" stub "$work/all/libaddend.so.1" check
says "the folder of a program comes before that of the environment" '0 [1.13]' -- \
  stub "$work/all/libaddend.so.1" from "$work/debian"
ADDEND_LIBTORCH_PATH=$work/none
says "a folder without LibTorch is named" "9 LibTorch cannot be loaded ($work/none: there is no libtorch_cpu.so)" -- \
  stub "$work/all/libaddend.so.1" check
unset ADDEND_LIBTORCH_PATH

# The configuration for reports of issues is told whatever is there.
says "the files that were found and opened" "Addend $(sed -n 's/#define ADDEND_VERSION "\(.*\)"/\1/p' c_api/addend.h)" \
  "  built from: " "  system: Linux " "  library: $work/all/libaddend.so.1" \
  "  implementations: libaddend_torch2.10.so, libaddend_torch2.9.so, libaddend_torch1.13.so in $work/all" \
  "  opened: $work/all/libaddend_torch2.10.so, for LibTorch 2.10" "LibTorch 2.10.9" "  devices: those of the implementation" -- \
  load "$work/official/libtorch_cpu.so" stub "$work/all/libaddend.so.1" config
says "the same after a call" "  opened: $work/all/libaddend_torch2.10.so, for LibTorch 2.10" -- \
  load "$work/official/libtorch_cpu.so" stub "$work/all/libaddend.so.1" check config
says "no implementation, and no LibTorch" "  implementations: none in $work/none" "  opened: none" \
  "  refused: there is no libaddend_torch<version>.so in $work/none" "LibTorch is not loaded" -- \
  stub "$work/none/libaddend.so.1" config
says "LibTorch that is missing" "  refused: LibTorch cannot be loaded ($work/old/libaddend_torch1.13.so: " \
  "LibTorch is not loaded" -- stub "$work/old/libaddend.so.1" config
says "LibTorch that nothing serves" "  opened: none" \
  "  refused: this process has loaded LibTorch 2.14.1 ($work/newest/libtorch_cpu.so), and Addend " "LibTorch 2.14.1" \
  "  library: $work/newest/libtorch_cpu.so" "  C++ ABI: _GLIBCXX_USE_CXX11_ABI=1" -- \
  load "$work/newest/libtorch_cpu.so" stub "$work/all/libaddend.so.1" config
says "LibTorch with the old strings" "  opened: none" "LibTorch 2.6.0" \
  "  library: $work/old2.6/libtorch_cpu.so" "  C++ ABI: _GLIBCXX_USE_CXX11_ABI=0" -- \
  load "$work/old2.6/libtorch_cpu.so" stub "$work/old/libaddend.so.1" config
says "LibTorch without a version has no ABI either" "  opened: none" "LibTorch of a version that it does not tell" -- \
  load "$work/silent/libtorch_cpu.so" stub "$work/old/libaddend.so.1" config
says_not "  C++ ABI: "
says "two LibTorchs" "  opened: none" "  refused: this process has loaded LibTorch more than once (" "LibTorch 1.13.1" \
  "  library: $work/debian/libtorch_cpu.so.0.0" "LibTorch 2.10.0" "  library: $work/official/libtorch_cpu.so" -- \
  load "$work/debian/libtorch_cpu.so.0.0" load "$work/official/libtorch_cpu.so" stub "$work/all/libaddend.so.1" config
says "a refusal of the implementation" "  opened: $work/refusing/libaddend_torch1.13.so, for LibTorch 1.13" \
  "  refused: of the implementation" "LibTorch 1.13.9" -- \
  load "$work/debian/libtorch_cpu.so.0.0" stub "$work/refusing/libaddend.so.1" config
says "a refusal is no end here either" "  opened: none" "  opened: $work/last/libaddend_torch1.13.so" -- \
  load "$work/debian/libtorch_cpu.so.0.0" stub "$work/last/libaddend.so.1" config \
  copy "$work/implementations/libaddend_torch1.13.so" "$work/last/libaddend_torch1.13.so" config
ADDEND_LIBTORCH_PATH=$work/none
export ADDEND_LIBTORCH_PATH
says "the folder that a user names is told" "  ADDEND_LIBTORCH_PATH: $work/none" -- stub "$work/all/libaddend.so.1" config
unset ADDEND_LIBTORCH_PATH

# The stub itself needs the C library, and nothing else.
needs=$(readelf -d "$stub" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -v '^libc\.so\|^ld-linux\|^libdl\.so' || true)
if [ "$needs" ]; then
  echo "FAILED: the stub needs $needs" >&2
  failed=1
else
  echo "ok: the stub needs the C library alone"
fi
exit $failed
