#!/bin/bash
# vendored_test.sh WORKSPACE: builds a workspace that vendors this one, and compares what its programs print.
set -euo pipefail
folder=$(dirname "$(readlink -f "$1")")
models=$(readlink -f "$folder/../../../docs/examples/models/digits")
cd "$folder"
# Kept between runs: the second build takes seconds.
bazel=("${BAZEL:-bazel}" "--output_user_root=${ADDEND_VENDORED_CACHE:-/tmp/addend-vendored-$(id -u)}" "--host_jvm_args=-Xmx600m")
trap '"${bazel[@]}" shutdown' EXIT
# A debug build with none of our options. Without debug information it is the same, and half as long.
"${bazel[@]}" build -c dbg --copt=-g0 --noshow_progress --nosandbox_debug --symlink_prefix=/ //...
bin=$("${bazel[@]}" info --noshow_progress bazel-bin)
first=
for program in c cc python python_library java csharp; do
  if [[ ! -e $bin/$program && ! -e $bin/$program.sh ]]; then
    echo "no $program: skipped"
    continue
  fi
  run=$bin/$program
  [[ -e $run ]] || run=$bin/$program.sh
  # Bazel's launcher for programs of Python is not everywhere.
  command=("$run")
  [[ $program != python_library ]] || command=(/usr/bin/python3 "$run")
  # The folder in which `bazel run` starts programs: the main repository's, which has its own name only in a WORKSPACE.
  main=$run.runfiles/vendored
  [[ -e $main ]] || main=$run.runfiles/_main
  output=$(cd "$main" && "${command[@]}" "$models/model.pt" "$models/sample.safetensors")
  if [[ -z $first ]]; then
    first=$output
    echo "$output"
  elif [[ $output != "$first" ]]; then
    printf 'FAILED: %s prints something else:\n%s\n' "$program" "$output"
    exit 1
  fi
done
