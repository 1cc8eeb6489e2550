#!/usr/bin/env bash
# package_test.sh DIST PROGRAM REFERENCE SAMPLES: builds PROGRAM in an empty folder from the package in the folder DIST
# and nothing else, and compares what it prints with what REFERENCE prints.
set -euo pipefail

dist=$PWD/$1 program=$PWD/$2 reference=$PWD/$3 model=$PWD/$4/model.pt2 sample=$PWD/$4/sample.safetensors
project=$PWD/bindings/csharp/Consumer/Consumer.csproj
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cp -L "$project" "$program" "$folder"
cd "$folder"
export HOME=$folder/home DOTNET_CLI_HOME=$folder/home NUGET_PACKAGES=$folder/packages
export DOTNET_CLI_TELEMETRY_OPTOUT=1 DOTNET_NOLOGO=1 MSBUILDDISABLENODEREUSE=1 DOTNET_CLI_USE_MSBUILD_SERVER=0
unset ADDEND_LIBRARY_PATH
# Set where the loader does not know the LibTorch of the build; then what follows shows that it is obeyed.
libtorch=${ADDEND_LIBTORCH_PATH:-}

if ! "$DOTNET" build --source "$dist" --output out >log 2>&1; then
  cat log >&2
  exit 1
fi

export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
for file in "${model%.pt2}.onnx" "$model"; do
  "$reference" "$file" "$sample" >expected
  "$DOTNET" exec out/Consumer.dll "$file" "$sample" >printed
  diff expected printed
  [[ -s printed ]]
done
[[ -f out/runtimes/linux-x64/native/libaddend.so.1 || "$(uname -m)" != x86_64 ]]
[[ -n $(find out/runtimes -name 'libaddend_torch*.so') ]]

# The LibTorch that ADDEND_LIBTORCH_PATH names is the one that is loaded. One library of it is a file of its own, which tells
# which folder was used; the others are large.
loaded() {
  LD_DEBUG=files "$DOTNET" exec out/Consumer.dll "$model" "$sample" 2>&1 >/dev/null |
    sed -n 's/.*calling init: //p' | grep -E '/(libc10|libtorch_cpu|libtorch)\.so[^/]*$' | sort -u
}
loaded >before
if [[ -n "$libtorch" ]]; then
  grep -q "^$libtorch/libc10" before || { cat before >&2; exit 1; }
else
  # A LibTorch that the loader knows needs nothing of its folder but itself.
  mkdir torch
  while read -r library; do
    case "$library" in
      */libc10*) cp -L "$library" torch/ ;;
      *) ln -s "$library" torch/ ;;
    esac
  done <before
  export ADDEND_LIBTORCH_PATH=$folder/torch
  loaded >after
  grep -q "^$folder/torch/libc10" after || { cat before after >&2; exit 1; }
  [[ "$(grep -c libc10 after)" == 1 ]]
fi

# fails_with TEXT: a LibTorch that is not where it should be is told.
fails_with() {
  if "$DOTNET" exec out/Consumer.dll "$model" "$sample" >printed 2>&1 || ! grep -qF "$1" printed; then
    echo "FAILED: \"$1\" is not in:" >&2
    cat printed >&2
    exit 1
  fi
}
export ADDEND_LIBTORCH_PATH=$folder/nowhere
fails_with "LibTorch cannot be loaded ($folder/nowhere: there is no libtorch_cpu.so); install LibTorch"
unset ADDEND_LIBTORCH_PATH
sed -i "s|\"configProperties\": {|&\"Addend.LibTorchPath\": \"$folder/elsewhere\",|" out/Consumer.runtimeconfig.json
fails_with "Addend.LibTorchPath = $folder/elsewhere: LibTorch cannot be loaded ($folder/elsewhere: "
