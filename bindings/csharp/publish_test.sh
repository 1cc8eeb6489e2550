#!/usr/bin/env bash
# publish_test.sh KIND DIST PROGRAM REFERENCE SAMPLES: publishes PROGRAM in an empty folder from the package in the folder
# DIST, as KIND ("aot": compiled ahead of time; "single_file") and without a warning, and compares what the executable prints
# with what REFERENCE prints.
set -euo pipefail

kind=$1 dist=$PWD/$2 program=$PWD/$3 reference=$PWD/$4 model=$PWD/$5/model.pt2 sample=$PWD/$5/sample.safetensors
project=$PWD/bindings/csharp/Publish/Publish.csproj
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

version=$("$DOTNET" --version)
if [[ ! -e "$NUGET_CACHE/publish-$version" ]]; then
  echo "skipped: the packages for $kind programs are not restored (tools/setup does it, where NuGet can be reached)"
  exit 0
fi
options=("-p:Kind=$kind" -p:WithAddend=true)
if [[ "$kind" == aot ]] && ! command -v clang >/dev/null; then
  # Linked by whichever compiler there is.
  options+=(-p:CppCompilerAndLinker=gcc)
fi

cp -L "$project" "$program" "$folder"
cd "$folder"
export HOME=$folder/home DOTNET_CLI_HOME=$folder/home NUGET_PACKAGES=$folder/packages
export DOTNET_CLI_TELEMETRY_OPTOUT=1 DOTNET_NOLOGO=1 MSBUILDDISABLENODEREUSE=1 DOTNET_CLI_USE_MSBUILD_SERVER=0
# Whether certificates of packages were revoked cannot be asked without a network.
export NUGET_CERT_REVOCATION_MODE=offline
unset ADDEND_LIBRARY_PATH

if ! "$DOTNET" publish --source "$dist" --source "$NUGET_CACHE" --output out "${options[@]}" >log 2>&1; then
  cat log >&2
  exit 1
fi
if grep -E 'warning (IL|CS|NETSDK)[0-9]+' log; then
  echo "FAILED: publishing warns" >&2
  exit 1
fi
# Single-file and ahead-of-time publishing leave no assemblies beside the executable; only native libraries.
if compgen -G 'out/*.dll' >/dev/null; then
  echo "FAILED: there are assemblies beside the executable" >&2
  exit 1
fi
ls -l out

export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
"$reference" "$model" "$sample" >expected
# "dotnet" may be a script that calls the real one, so ask it for its root.
DOTNET_ROOT=$("$DOTNET" --list-runtimes | sed -n 's:.* \[\(.*\)/shared/.*:\1:p' | head -n 1)
export DOTNET_ROOT
out/Publish "$model" "$sample" >printed
diff expected printed
[[ -s printed ]]
