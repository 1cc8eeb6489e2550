#!/bin/sh
# A program that was built against the header of version 1 runs on the library of today.
exec tests/abi/client docs/examples/models/digits/model.pt docs/examples/models/digits/sample.safetensors
