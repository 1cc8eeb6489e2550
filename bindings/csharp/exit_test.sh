#!/usr/bin/env bash
# exit_test.sh PROGRAM SAMPLES: a process that ends while its threads compute ends with its own exit code, and soon.
set -euo pipefail
program=$1 model=$2/model.pt sample=$2/sample.safetensors

# ends TIMES HOW: the program ends in this way, as often as that, within twenty seconds.
ends() {
  for ((k = 1; k <= $1; k++)); do
    code=0
    said=$(timeout 20 "$program" "$2" "$model" "$sample" 2>&1) || code=$?
    if [[ $code != 3 || $said == *Unhandled* ]]; then
      echo "FAILED: $2, time $k of $1: exit code $code: $said" >&2
      exit 1
    fi
  done
}

ends 2 return
ends 2 exit
ends 2 cancelled
ends 2 listener
ends 2 operators
ends 1 long
ends 1 handler
[[ $said == *"the worker has ended"*"[0, 8]"* ]] || { echo "FAILED: handler: $said" >&2; exit 1; }
