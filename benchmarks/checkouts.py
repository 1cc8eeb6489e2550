"""Imports of other projects from checkouts: folders that are given, never part of this repository."""

import importlib
import sys
import unittest.mock
from pathlib import Path

# What Captum imports for its pictures, none of which is drawn here.
_DRAWING = (
    "matplotlib",
    "matplotlib.collections",
    "matplotlib.colors",
    "matplotlib.figure",
    "matplotlib.pyplot",
    "mpl_toolkits",
    "mpl_toolkits.axes_grid1",
)


def captum(folder):
    """The module `captum.attr` of a checkout."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        for name in _DRAWING:
            sys.modules.setdefault(name, unittest.mock.MagicMock())
    return _import("captum.attr", folder)


def pydec(folder):
    """The module `pydec` of a checkout."""
    return _import("pydec", folder)


def _import(name, folder):
    package = Path(folder) / name.partition(".")[0]
    if not package.is_dir():
        raise ImportError("%s is no checkout: it has no folder %s" % (folder, package.name))
    sys.path.insert(0, str(folder))
    return importlib.import_module(name)
