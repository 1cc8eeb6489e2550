"""Needs of a shared library on the machine that runs it, as readelf tells them."""

import os
import re
import subprocess

_NEEDED = re.compile(r"\(NEEDED\).*\[(.+)\]")
_SONAME = re.compile(r"\(SONAME\).*\[(.+)\]")
_UNDEFINED = re.compile(r" UND (\S+)")
_VERSION = re.compile(r"Name: ([A-Z]+)_([0-9]+(?:\.[0-9]+)*)\s")


def describe(path):
    """The SONAME (None where there is none), the SONAMEs that are needed, and the symbol versions that are.

    The last is a dict such as {"GLIBC": (2, 33)}: the highest of each family.
    """
    text = subprocess.run(
        ["readelf", "--dynamic", "--version-info", "--wide", path],
        check=True,
        stdout=subprocess.PIPE,
        universal_newlines=True,
        env=dict(os.environ, LC_ALL="C"),
    ).stdout
    soname = _SONAME.search(text)
    versions = {}
    # The library's own versions stand in a section of their own.
    _, _, needs = text.partition("Version needs section")
    for family, number in _VERSION.findall(needs):
        parts = tuple(int(part) for part in number.split("."))
        versions[family] = max(versions.get(family, ()), parts)
    return soname.group(1) if soname else None, _NEEDED.findall(text), versions


def undefined_symbols(path):
    """The names that a shared library takes from others, without their versions."""
    text = subprocess.run(
        ["readelf", "--dyn-syms", "--wide", path],
        check=True,
        stdout=subprocess.PIPE,
        universal_newlines=True,
        env=dict(os.environ, LC_ALL="C"),
    ).stdout
    return {name.partition("@")[0] for name in _UNDEFINED.findall(text)}
