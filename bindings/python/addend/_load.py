"""Loads the native library, on top of the LibTorch that this process uses.

A process must hold one LibTorch: a second one ends it. What the process has loaded is taken. Where it has loaded none
and PyTorch is installed, PyTorch brings its own and is imported first; without PyTorch the system's LibTorch is loaded.
"""

import importlib.util
import sys

from . import _native
from ._config import is_program, print_config
from ._errors import Error

if not _native.libtorch_is_loaded() and importlib.util.find_spec("torch") is not None:
    import torch  # noqa: F401

try:
    _native.check_libtorch()
except Error as error:
    if is_program():
        print_config()
        sys.exit(1)
    raise ImportError(error.message) from error
