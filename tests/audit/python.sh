#!/bin/sh
exec /usr/bin/python3 -B "$@"
