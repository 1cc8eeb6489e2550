#!/bin/sh
# execute.sh PROGRAM ARGUMENT...: a test that is a program of the machine.
exec "$@"
