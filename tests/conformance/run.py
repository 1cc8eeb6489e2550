#!/usr/bin/env python3
"""Runs the conformance suite: see `python3 run.py --help` and PROTOCOL.md."""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from runner.__main__ import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
