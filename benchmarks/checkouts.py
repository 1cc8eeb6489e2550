"""Imports of other projects from checkouts: folders that are given, never part of this repository."""

import importlib
import re
import sys
import types
import unittest.mock
from pathlib import Path

# Modules that Captum and Inseq import for pictures, pages and bars of progress, none of which is drawn here.
_DRAWING = (
    "matplotlib",
    "matplotlib.axes",
    "matplotlib.collections",
    "matplotlib.colors",
    "matplotlib.figure",
    "matplotlib.image",
    "matplotlib.pyplot",
    "mpl_toolkits",
    "mpl_toolkits.axes_grid1",
)
_PROGRESS = ("tqdm", "tqdm.auto")
_PAGES = ("treescope", "treescope.figures", "treescope.rendering_parts")


def captum(folder):
    """The module `captum.attr` of a checkout."""
    _stand_in(_DRAWING)
    _stand_in(_PROGRESS)
    return _import("captum.attr", folder)


def pydec(folder):
    """The module `pydec` of a checkout."""
    return _import("pydec", folder)


def inseq(folder, captum_folder):
    """The module `inseq` of a checkout, which takes what it calls from one of Captum."""
    captum(captum_folder)
    _stand_in(_PAGES)
    if not _known("jaxtyping"):
        sys.modules.setdefault("jaxtyping", _annotations())
    return _import("inseq", folder)


def lxt(folder):
    """The module `lxt.efficient` of a checkout."""
    return _import("lxt.efficient", folder)


def version(folder):
    """The version that a checkout's files tell, else the name of its folder; None without a checkout."""
    if folder is None:
        return None
    for file in [*sorted(folder.glob("*/__init__.py")), folder / "pyproject.toml", folder / "setup.py"]:
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        found = re.search(r"""^\s*(?:__version__|VERSION|version)\s*=\s*["']([^"']+)["']""", text, re.MULTILINE)
        if found:
            return found.group(1)
    return folder.name


def _stand_in(names):
    """Lets modules be imported that are not there; whatever is asked of them does nothing."""
    if not _known(names[0]):
        for name in names:
            sys.modules.setdefault(name, unittest.mock.MagicMock())


def _annotations():
    """Returns a stand-in for jaxtyping, whose types only annotate: Float[Tensor, "shape"] is Tensor."""
    module = types.ModuleType("jaxtyping")
    for name in ("Float", "Float32", "Int", "Int64", "Num"):
        own = type(name, (), {"__class_getitem__": classmethod(lambda cls, item: item[0])})
        setattr(module, name, own)
    return module


def _known(name):
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True


def _import(name, folder):
    package = Path(folder) / name.partition(".")[0]
    if not package.is_dir():
        raise ImportError("%s is no checkout: it has no folder %s" % (folder, package.name))
    sys.path.insert(0, str(folder))
    return importlib.import_module(name)
