"""pack.py OUT PLAN FILES HEADERS...: writes a kit (kit.bzl).

FILES has a line for each file, its path and its place. HEADERS are folders or files below the compiler's own include
folders, which travel together with the libraries that the plan names: the machine that builds has neither.
"""

import gzip
import io
import json
import os
import re
import subprocess
import sys
import tarfile

# What the other machine has: its own LibTorch, and parts of the C library.
_THEIRS = re.compile(r"-l(torch|torch_cpu|torch_cuda|c10|c10_cuda|dl|m|pthread|rt)$")


def main(out, plan_path, files_path, *header_folders):
    with open(plan_path, encoding="utf-8") as file:
        plan = json.load(file)
    content = {}
    with open(files_path, encoding="utf-8") as file:
        for line in file:
            path, place = line.rstrip("\n").split("\t")
            content[place] = path
    libraries = []
    for option in plan["libraries"]:
        if not option.startswith("-l") or _THEIRS.match(option) or option in libraries:
            continue
        path = _library(option[2:], plan["libraries"])
        soname = _soname(path)
        content["lib/" + soname] = path
        libraries.append(soname)
    plan["libraries"] = libraries
    searched = _include_folders()
    for folder in header_folders:
        for place, path in _headers(folder, searched):
            content["include/" + place] = path
    with open(out, "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="") as packed:
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for place in sorted(content):
                with open(content[place], "rb") as file:
                    _add(archive, place, file.read(), os.access(content[place], os.X_OK))
            _add(archive, "kit.json", json.dumps(plan, indent=1).encode(), False)


def _add(archive, place, data, executable):
    member = tarfile.TarInfo("kit/" + place)
    member.size = len(data)
    member.mode = 0o755 if executable else 0o644
    archive.addfile(member, io.BytesIO(data))


def _library(name, options):
    """The file of "z", libz.so, or of ":libz.a", which is an archive."""
    file = name[1:] if name.startswith(":") else "lib%s.so" % name
    for option in options:
        path = os.path.join(option[2:], file)
        if option.startswith("-L") and os.path.exists(path):
            return os.path.realpath(path)
    found = _say("c++", "-print-file-name=" + file).strip()
    if not os.path.isabs(found):
        sys.exit("pack.py: the library %s is not where the compiler looks" % file)
    return os.path.realpath(found)


def _soname(path):
    if path.endswith(".a"):
        return os.path.basename(path)
    found = re.search(r"SONAME.*\[(.*)\]", _say("readelf", "-d", path))
    return found.group(1) if found else os.path.basename(path)


def _include_folders():
    told = subprocess.run(["c++", "-xc++", "-E", "-v", os.devnull], capture_output=True, text=True, check=True).stderr
    return re.findall(r"^ (/\S+)$", told.split("#include <...>")[1], re.MULTILINE)


def _headers(folder, searched):
    """Of all include folders: parts that depend on the machine lie apart from the others."""
    found = False
    for top in searched:
        if os.path.isfile(os.path.join(top, folder)):
            found = True
            yield folder, os.path.join(top, folder)
        for parent, _, names in os.walk(os.path.join(top, folder)):
            for name in names:
                found = True
                path = os.path.join(parent, name)
                yield os.path.relpath(path, top), path
    if not found:
        sys.exit("pack.py: no folder %s in %s" % (folder, ", ".join(searched)))


def _say(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    main(*sys.argv[1:])
