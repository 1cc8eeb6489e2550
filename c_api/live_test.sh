#!/bin/sh
# Runs live_test.py where the Python that the workspace is configured for has PyTorch.
set -eu
python=$1
if [ -z "$python" ] || ! "$python" -c 'import torch' 2>/dev/null; then
  echo "skipped: there is no Python with PyTorch here (tools/setup --train installs one)"
  exit 0
fi
exec "$python" -X faulthandler c_api/live_test.py c_api/libaddend.so.1
