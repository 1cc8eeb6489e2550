"""Writes a wheel.

    wheel.py --out DIR --version-file VERSION --readme MD [--stable-abi SYMBOLS] --provenance JSON --documents FILE...
        --libraries FILE... --files FILE...

DIR gets addend-<version>-<tags>.whl, with tags that are true for this interpreter, this machine, and what the libraries
need. With --stable-abi the module of Python is compiled for CPython's stable ABI: the wheel is for every CPython from 3.10
on, and SYMBOLS lists what the module may take from the interpreter. Of each of the FILES, what follows the folder "package/" is its place in the wheel; of the libraries (as they are
packaged) each takes the place of the file of its name. The same files give the same bytes.
"""

import argparse
import base64
import hashlib
import json
import os
import re
import sys
import sysconfig
import zipfile

import elf
from platform_tag import platform_tag

_METADATA = """Metadata-Version: 2.4
Name: addend
Version: {version}
Summary: Explains neural networks by arithmetic that can be checked
Author: The Addend authors
License-Expression: Apache-2.0
License-File: LICENSE
License-File: THIRD_PARTY_NOTICES
Keywords: attribution,explainability,interpretability,libtorch,pytorch
Classifier: Intended Audience :: Science/Research
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C++
Classifier: Programming Language :: Python :: 3
{pythons}Classifier: Topic :: Scientific/Engineering :: Artificial Intelligence
Classifier: Typing :: Typed
{urls}Requires-Python: {requires_python}
{requires}Description-Content-Type: text/markdown

{readme}"""

# The versions of CPython that the stable ABI serves and that the wheel was tried with; the first is the oldest.
_STABLE_PYTHONS = ["3.10", "3.11", "3.12", "3.13", "3.14"]

_WHEEL = """Wheel-Version: 1.0
Generator: addend
Root-Is-Purelib: false
Tag: {tag}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True)
    parser.add_argument("--version-file", required=True)
    parser.add_argument("--readme", required=True)
    parser.add_argument("--stable-abi", help="the list of what a module for the stable ABI may take from the interpreter")
    parser.add_argument("--provenance", required=True)
    parser.add_argument("--documents", nargs="+", required=True)
    parser.add_argument("--libraries", nargs="+", required=True)
    parser.add_argument("--files", nargs="+", required=True)
    arguments = parser.parse_args()

    version = read(arguments.version_file).decode().strip()
    platform, requires_torch = platform_tag(sysconfig.get_platform(), arguments.libraries)
    pythons, requires_python, interpreter = served_pythons(arguments.stable_abi, arguments.libraries)
    tag = "%s-%s" % (interpreter, platform)
    info = "addend-%s.dist-info/" % version
    contents = package(arguments.files, arguments.libraries)
    for document in arguments.documents:
        folder = "sboms/" if document.endswith(".json") else "licenses/"
        contents[info + folder + os.path.basename(document)] = read(document)
    metadata = _METADATA.format(
        version=version,
        pythons="".join("Classifier: Programming Language :: Python :: %s\n" % python for python in pythons),
        requires_python=requires_python,
        urls=urls(json.loads(read(arguments.provenance).decode())),
        requires=requires(served_torches(arguments.libraries), requires_torch),
        readme=read(arguments.readme).decode(),
    )
    contents[info + "METADATA"] = metadata.encode()
    contents[info + "WHEEL"] = _WHEEL.format(tag=tag).encode()
    record = "".join("%s,%s,%d\n" % (path, digest(data), len(data)) for path, data in sorted(contents.items()))
    contents[info + "RECORD"] = (record + info + "RECORD,,\n").encode()
    write(os.path.join(arguments.out, "addend-%s-%s.whl" % (version, tag)), contents)


def served_pythons(stable_abi, libraries):
    """(versions, what Requires-Python says, the tag of interpreter and ABI)."""
    if not stable_abi:
        own = "%d.%d" % sys.version_info[:2]
        return [own], "==%s.*" % own, interpreter_tag()
    allowed = {line for line in read(stable_abi).decode().splitlines() if not line.startswith("#")}
    for library in libraries:
        taken = {name for name in elf.undefined_symbols(library) if re.match("_?Py", name)}
        if taken - allowed:
            sys.exit(
                "%s takes %s from Python, which %s does not name: without it on each CPython from %s on, the wheel is none of "
                "the stable ABI" % (library, ", ".join(sorted(taken - allowed)), stable_abi, _STABLE_PYTHONS[0])
            )
    return _STABLE_PYTHONS, ">=" + _STABLE_PYTHONS[0], "cp%s-abi3" % _STABLE_PYTHONS[0].replace(".", "")


def served_torches(libraries):
    """The minor versions of PyTorch that the libraries serve, as pairs of numbers, oldest first."""
    found = re.findall(r"libaddend_torch([0-9]+)\.([0-9]+)\.so", " ".join(map(os.path.basename, libraries)))
    return sorted((int(major), int(minor)) for major, minor in found)


def interpreter_tag():
    """ "cp311-cp311": the implementation, then its ABI, "cp313t" where it has no global lock."""
    if sys.implementation.name != "cpython":
        sys.exit("wheels are made for CPython; this is " + sys.implementation.name)
    number = "%d%d" % sys.version_info[:2]
    flags = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    return "cp%s-cp%s%s" % (number, number, flags)


def package(files, libraries):
    """The package's files by their places."""
    stripped = {os.path.basename(library): library for library in libraries}
    placed = {}
    for file in files:
        placed[file.split("/package/", 1)[1]] = read(stripped.pop(os.path.basename(file), file))
    if stripped:
        sys.exit("the package has no place for " + ", ".join(sorted(stripped)))
    return placed


def urls(provenance):
    repository = provenance.get("repository")
    return "Project-URL: Source, %s\n" % repository if repository else ""


def requires(torches, required):
    """PyTorch, for live models or, where its libraries are those that the wheel needs, always; NumPy for arrays; matplotlib
    for figures."""
    (oldest, newest) = torches[0], torches[-1]
    between = ["!=%d.%d.*" % (oldest[0], minor) for minor in range(oldest[1], newest[1]) if (oldest[0], minor) not in torches]
    release = ",".join(["torch>=%d.%d" % oldest] + between + ["<%d.%d" % (newest[0], newest[1] + 1)])
    lines = ["Provides-Extra: live", 'Requires-Dist: %s; extra == "live"' % release]
    if required:
        lines = ["Requires-Dist: " + release]
    for extra, needed in (("arrays", "numpy"), ("plots", "matplotlib>=3.6")):
        lines += ["Provides-Extra: " + extra, 'Requires-Dist: %s; extra == "%s"' % (needed, extra)]
    return "\n".join([*lines, ""])


def write(out, contents):
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in sorted(contents.items()):
            entry = zipfile.ZipInfo(path, date_time=(1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)


def digest(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def read(path):
    with open(path, "rb") as file:
        return file.read()


if __name__ == "__main__":
    main()
