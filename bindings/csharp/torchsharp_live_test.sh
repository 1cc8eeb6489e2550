#!/usr/bin/env bash
# torchsharp_live_test.sh PROGRAM NATIVE PYTHON_PACKAGE: the tests of Addend.TorchSharp in a process with TorchSharp itself and
# LibTorch 2.10. What it needs beside the program is not everywhere:
#
#   an implementation for LibTorch 2.10 in NATIVE: tools/matrix pip-2.10.0 --libraries DIR builds it, ADDEND_IMPLEMENTATIONS=DIR
#   gathers it;
#   that LibTorch: ADDEND_TORCHSHARP_LIBTORCH names its folder, tools/matrix pip-2.10.0 installs it otherwise;
#   the C++ library of GCC 13 or newer, which TorchSharp's native library needs: that of this system, or else that of a
#   folder of a newer one, ADDEND_TORCHSHARP_SYSTEM, or what tools/matrix debian13 makes.
#
# With "measure" as a fourth argument it measures start and memory instead, five runs of each kind.
set -euo pipefail

program=$PWD/$1/Addend.TorchSharp.Tests.dll native=$PWD/$2 package=$PWD/$3 mode=${4:-test}
matrix=$(dirname "$NUGET_CACHE")/matrix

skip() {
  echo "skipped: $*"
  exit 0
}

libtorch=${ADDEND_TORCHSHARP_LIBTORCH:-}
if [[ -z "$libtorch" ]]; then
  libtorch=$(echo "$matrix"/pip-2.10.0/environment/lib/python3*/site-packages/torch/lib)
fi
[[ -e "$libtorch/libtorch_cpu.so" ]] ||
  skip "there is no LibTorch 2.10 here (ADDEND_TORCHSHARP_LIBTORCH; tools/matrix pip-2.10.0 installs one)"
[[ -e "$native/libaddend_torch2.10.so" ]] ||
  skip "this build has no implementation for LibTorch 2.10 (tools/matrix pip-2.10.0 --libraries DIR, and ADDEND_IMPLEMENTATIONS=DIR)"

# Command that starts programs which need TorchSharp's native library; empty if this system's libraries suffice.
run=()
folder=/usr/lib/x86_64-linux-gnu
if ! grep -qa 'GLIBCXX_3\.4\.32' "$folder/libstdc++.so.6"; then
  newer=${ADDEND_TORCHSHARP_SYSTEM:-$matrix/debian13/root}$folder
  grep -qsa 'GLIBCXX_3\.4\.32' "$newer/libstdc++.so.6" ||
    skip "TorchSharp 0.107 needs GLIBCXX_3.4.32 (GCC 13), which this system has not (ADDEND_TORCHSHARP_SYSTEM names the folder of one that has)"
  # Its libraries in place of those of this system, for what runs below and nothing else.
  # shellcheck disable=SC2016
  run=(unshare --mount sh -c 'mount --bind "$0" "$1" && shift && exec "$@"' "$newer" "$folder")
  "${run[@]}" true || skip "the libraries in $newer cannot be put in place of those of this system, which needs root"
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# One thread: how many share a sum decides the order of its terms, hence its last bits.
export OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
export DOTNET_CLI_HOME=$scratch DOTNET_CLI_TELEMETRY_OPTOUT=1 DOTNET_NOLOGO=1 DOTNET_EnableDiagnostics=0
# A folder of a newer system need not have ICU.
export DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1
export ADDEND_LIBRARY_PATH=$native ADDEND_TEST_FILES=$PWD

if [[ "$mode" == measure ]]; then
  export ADDEND_TORCHSHARP_LIBTORCH=$libtorch
  for kind in torchsharp opened addend; do
    for _ in 1 2 3 4 5; do
      "${run[@]+"${run[@]}"}" "$DOTNET" exec "$program" measure "$kind"
    done
  done
  exit
fi

# Addend first, which loads LibTorch. TorchSharp takes what is loaded.
said=$(ADDEND_LIBTORCH_PATH=$libtorch "${run[@]+"${run[@]}"}" "$DOTNET" exec "$program" first)
[[ "$said" == ok ]] || { echo "FAILED: Addend first: $said" >&2; exit 1; }

# Python of the same LibTorch says what it computes, if it is there.
python=${libtorch%/lib/python3*}/bin/python
if [[ -x "$python" ]] && PYTHONPATH=$package "$python" -c 'import addend, safetensors' 2>"$scratch/log"; then
  export ADDEND_TORCHSHARP_EXPECTED=$scratch/expected.safetensors
  PYTHONPATH=$package "$python" bindings/csharp/Addend.TorchSharp.Tests/expected.py . "$ADDEND_TORCHSHARP_EXPECTED"
else
  echo "not compared with Python: $(tail -n 1 "$scratch/log" 2>/dev/null || echo "no $python")"
fi

# TorchSharp is given LibTorch by ADDEND_TORCHSHARP_LIBTORCH, which the program loads before anything else.
export ADDEND_TORCHSHARP_LIBTORCH=$libtorch
"${run[@]+"${run[@]}"}" "$DOTNET" exec "$program" -noLogo -noColor -parallel none \
  ${XML_OUTPUT_FILE:+-jUnit "$XML_OUTPUT_FILE"} -showLiveOutput
