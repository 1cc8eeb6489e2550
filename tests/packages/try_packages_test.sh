#!/usr/bin/env bash
# try_packages_test.sh FOREIGN TOOL PACKAGE...: all packages run, and print the same; beside another LibTorch all are refused.
set -euo pipefail
foreign=$1 tool=$2
shift 2
"$tool" "$@" | tee ran
languages=$(grep -c ': ran: recovery error: ' ran)
[[ "$languages" -ge 2 ]]
"$tool" "$@" --beside "$foreign" | tee refused
[[ "$(grep -c ': refused: this process has loaded LibTorch 0.99.0' refused)" == "$languages" ]]
if "$tool" /dev/null >said 2>&1; then
  echo "FAILED: no package is no error" >&2
  exit 1
fi
grep -q 'nothing was tried' said
