"""Loads the native library, on top of the LibTorch that this process uses.

A process must hold one LibTorch. Where PyTorch is installed it brings its own, so it is imported first, and the native
library binds to what is loaded already; without PyTorch the system's LibTorch is loaded.
"""

import importlib.util

if importlib.util.find_spec("torch") is not None:
    import torch  # noqa: F401

from . import _native
from ._errors import Error

try:
    _native.check_libtorch()
except Error as error:
    raise ImportError(error.message) from error
