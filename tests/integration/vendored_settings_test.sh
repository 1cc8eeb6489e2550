#!/bin/bash
# vendored_settings_test.sh WORKSPACE CHECKER: what a workspace that vendors this one may choose, and what it may not break.
# Nothing but one file is compiled.
set -euo pipefail
folder=$(dirname "$(readlink -f "$1")")
checker=$(readlink -f "$2")
addend=$(readlink -f "$folder/../../..")
work=$(mktemp -d)
bazel=("${BAZEL:-bazel}" "--output_user_root=${ADDEND_VENDORED_CACHE:-/tmp/addend-vendored-$(id -u)}" "--host_jvm_args=-Xmx600m")
stop() {
  (cd "$folder" && "${bazel[@]}" shutdown)
  (cd "$work/own" 2>/dev/null && "${bazel[@]}" shutdown)
  rm -rf "$work"
}
trap stop EXIT
quiet=(--noshow_progress --nosandbox_debug)

# refused TEXT COMMAND...: Bazel fails, and says TEXT.
refused() {
  if "${bazel[@]}" "${@:2}" >"$work/output" 2>&1; then
    echo "FAILED: no error of ${*:2}"
    exit 1
  fi
  if ! tr -s ' \n' '  ' <"$work/output" | grep -qF -- "$1"; then
    printf 'FAILED: expected "%s":\n' "$1"
    cat "$work/output"
    exit 1
  fi
}

cd "$folder"
echo "== options of the command line that mean something else"
"${bazel[@]}" aquery "${quiet[@]}" -c dbg --cxxopt=-std=c++14 --copt=-UNDEBUG --copt=-ffp-contract=fast \
  --output=text 'mnemonic("CppCompile", deps(@addend//c_api:libraries))' >"$work/actions"
"$checker" <"$work/actions"

echo "== headers and libraries of LibTorch in different places, beside an Abseil that is not ours"
libtorch=$(readlink -f "$(/sbin/ldconfig -p | sed -n 's/.*libtorch_cpu\.so.* => //p' | head -n 1)")
mkdir -p "$work/include/absl/functional" "$work/lib"
for name in ATen c10 caffe2 torch; do
  ln -s "/usr/include/$name" "$work/include/$name"
done
for name in torch torch_cpu c10; do
  ln -s "$(dirname "$libtorch")/lib$name.so" "$work/lib/lib$name.so"
done
echo '#error "this Abseil belongs to the prefix, not to Addend"' >"$work/include/absl/functional/function_ref.h"
split=("--repo_env=LIBTORCH_INCLUDE=$work/include" "--repo_env=LIBTORCH_LIB=$work/lib")
"${bazel[@]}" build "${quiet[@]}" --symlink_prefix=/ "${split[@]}" @addend//core/base:in_parallel
"${bazel[@]}" aquery "${quiet[@]}" "${split[@]}" 'mnemonic("CppLink", deps(@addend//c_api:libraries))' >"$work/actions"
grep -qF -- "-L$work/lib" "$work/actions" || { echo "FAILED: not linked to $work/lib"; exit 1; }
refused 'LIBTORCH_INCLUDE and LIBTORCH_LIB belong together' \
  build --nobuild "--repo_env=LIBTORCH_INCLUDE=$work/include" @addend//core/base:in_parallel

echo "== the LibTorch of another machine's system"
root=$work/root
mkdir -p "$root/usr/include"/{ATen,torch/csrc/api/include/torch} "$root/usr/lib/other-linux-gnu" "$root/var/lib/dpkg"
touch "$root/usr/include/ATen/ATen.h" "$root/usr/lib/other-linux-gnu"/lib{c10,torch_cpu}.so
# Debian's header and Debian's package may tell different versions: the package is right.
printf '#define TORCH_VERSION_%s\n' 'MAJOR 9' 'MINOR 8' 'PATCH 6' >"$root/usr/include/torch/csrc/api/include/torch/version.h"
printf '%s\n' 'Package: libtorch-dev' 'Status: install ok installed' 'Architecture: all' 'Version: 9.8.7-1' \
  'Maintainer: nobody' 'Description: nothing' >"$root/var/lib/dpkg/status"
"${bazel[@]}" query --noshow_progress "--repo_env=ADDEND_SYSROOT=$root" --output=build \
  'deps(@addend//third_party/torch, 1)' >"$work/targets"
# The cross compiler looks there by itself.
grep -qF -- '-ltorch_cpu' "$work/targets"
if grep -F -- '"-L' "$work/targets"; then echo "FAILED: told where to look"; exit 1; fi
info=$(echo "$("${bazel[@]}" info --noshow_progress output_base)"/external/*libtorch/info.bzl)
for expected in 9.8.7 "$root/usr/lib/other-linux-gnu"; do
  grep -qF "\"$expected\"" "$info" || { echo "FAILED: expected $expected:"; cat "$info"; exit 1; }
done

echo "== a LibTorch with the old C++ ABI"
rm "$work/lib/libc10.so"
echo 'int nothing;' | gcc -x c -shared -o "$work/lib/libc10.so" -
refused 'LibTorch has the old C++ ABI (_GLIBCXX_USE_CXX11_ABI=0), and Abseil' \
  build --nobuild "${split[@]}" @addend//core/base:in_parallel

# has OPTION PATTERN TARGET [0]: a package has a target; or has not.
has() {
  local yes=1
  "${bazel[@]}" query --noshow_progress "$1" "$2" 2>/dev/null | grep -qxF "$3" || yes=0
  [[ $yes == "${4:-1}" ]] || { echo "FAILED: with $1, is there $3: $yes"; exit 1; }
}
packages=${ADDEND_NUGET_CACHE:-${XDG_CACHE_HOME:-${HOME:-}/.cache}/addend/nuget}
if [[ -d $packages/microsoft.netcore.app.ref ]]; then
  echo "== C# without the packages of its tests"
  mkdir "$work/nuget"
  ln -s "$packages/microsoft.netcore.app.ref" "$work/nuget/"
  without_tests="--repo_env=ADDEND_NUGET_CACHE=$work/nuget"
  has "$without_tests" @addend//bindings/csharp:all @addend//bindings/csharp:addend
  has "$without_tests" @addend//bindings/csharp:all @addend//bindings/csharp:addend_test 0
fi
echo "== no Python: what it helps to write is left out"
for binding in csharp:addend java:java python:package; do
  has "--repo_env=ADDEND_PYTHON=$work/none" "@addend//bindings/${binding%:*}:all" "@addend//bindings/$binding" 0
done
has "--repo_env=ADDEND_PYTHON=$work/none" @addend//c_api:all @addend//c_api:addend

echo "== Abseil of the workspace"
mkdir -p "$work/own/absl/absl/strings"
cat >"$work/own/WORKSPACE" <<END
workspace(name = "own")
local_repository(name = "addend", path = "$addend")
local_repository(name = "com_google_absl", path = "absl")
load("@addend//third_party:workspace.bzl", "addend_workspace")
addend_workspace(absl_repository = "@com_google_absl")
END
touch "$work/own/BUILD" "$work/own/absl/WORKSPACE"
echo 'cc_library(name = "strings", visibility = ["//visibility:public"])' >"$work/own/absl/absl/strings/BUILD"
cd "$work/own"
"${bazel[@]}" cquery "${quiet[@]}" 'deps(@addend//third_party/absl:strings)' >"$work/output"
grep -qF '@com_google_absl//absl/strings:strings' "$work/output" || { cat "$work/output"; exit 1; }
refused 'set ABSL_SOURCE to the folder' build --nobuild --@addend//third_party/absl:from_source \
  "--repo_env=ABSL_SOURCE=$work" @addend//third_party/absl:strings
echo "all as it should be"
