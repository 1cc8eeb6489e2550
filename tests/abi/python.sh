#!/bin/sh
PYTHONPATH=tests/documents exec /usr/bin/python3 -B "$@"
