"""Configuration of this process, for reports of problems."""

import io
import os
import re
import sys

from . import _native


def show_config() -> str:
    """Versions, files, LibTorch, threads and devices of this process, as lines for people: what reports of problems need.

    ``python -m addend`` prints the same, also where ``import addend`` fails because no LibTorch serves. The lines and their
    order may change from release to release.
    """
    # Names of files may hold bytes that are no UTF-8.
    library = _native.show_config().encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    lines = ["Python " + sys.version.replace("\n", " "), "  program: " + (sys.executable or "not known")]
    lines.append("  package: " + os.path.dirname(os.path.abspath(__file__)))
    lines += ["  %s: %s" % (name, _imported(name)) for name in ("torch", "numpy")]
    return "\n".join([library, *lines])


def _imported(name: str) -> str:
    module = sys.modules.get(name)
    if module is None:
        return "not imported"
    return "%s, %s" % (getattr(module, "__version__", "no version"), getattr(module, "__file__", "no file"))


def print_config() -> None:
    """Prints the configuration, for ``python -m addend``."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    print(show_config())


def is_program() -> bool:
    """Whether Python runs ``python -m addend``, which imports the package before it looks at `__main__`."""
    given = " ".join(getattr(sys, "orig_argv", []))
    return sys.argv[:1] == ["-m"] and re.search(r" -[A-Za-z]*m ?addend( |$)", given) is not None
