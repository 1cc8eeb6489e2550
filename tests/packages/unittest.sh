#!/bin/sh
# unittest.sh PYTHON RUNNER FILE NAME=VALUE...: runs a file of unittest cases, with these variables in its environment.
set -eu
python=$1 runner=$2 file=$3
shift 3
for variable in "$@"; do
  # Each is a name with a value, not a name.
  # shellcheck disable=SC2163
  export "$variable"
done
exec "$python" -B "$runner" "$file"
