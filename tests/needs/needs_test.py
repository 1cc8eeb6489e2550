"""needs_test.py [--installed-abseil] ALLOWED LIBTORCH LIBRARY...

Fails where a shared library of ours needs something that ALLOWED does not name, or a newer version of glibc or of GCC's
runtime than the LibTorch that it was built with, in the folder LIBTORCH, needs itself. Prints what it found.
"""

import fnmatch
import glob
import os
import sys

sys.path.insert(0, os.path.abspath("tools/package"))

import elf


def allowed(path, installed_abseil):
    """The globs of a list."""
    with open(path, encoding="utf-8") as file:
        lines = [line.split(None, 1) for line in file if line.strip() and not line.startswith("#")]
    return [pattern for pattern, who in lines if installed_abseil or who.strip() != "as installed"]


def newest_of(folder):
    """The newest version of each family that LibTorch's own libraries need."""
    result = {}
    for name in ("libtorch_cpu.so", "libc10.so"):
        for path in glob.glob(os.path.join(folder, name)):
            for family, version in elf.describe(path)[2].items():
                result[family] = max(result.get(family, ()), version)
    return result


def text_of(family, version):
    """The name of a version in readelf."""
    return "%s_%s" % (family, ".".join(map(str, version)))


def faults_of(library, patterns, limits):
    """The needs of a library that are too much, one sentence each."""
    _, needed, versions = elf.describe(library)
    print("%s needs %s; %s" % (
        os.path.basename(library),
        ", ".join(sorted(needed)),
        ", ".join(text_of(*pair) for pair in sorted(versions.items())),
    ))
    for name in needed:
        if not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
            yield "%s needs %s, which packages may not" % (library, name)
    for family, version in versions.items():
        if version > limits.get(family, ()):
            yield "%s needs %s, and LibTorch nothing newer than %s" % (
                library,
                text_of(family, version),
                text_of(family, limits[family]) if family in limits else "one without " + family,
            )


def main(arguments):
    """Exits with 1 where there is a fault."""
    installed_abseil = arguments[0] == "--installed-abseil"
    list_path, libtorch, *libraries = arguments[1:] if installed_abseil else arguments
    limits = newest_of(libtorch)
    if not limits or not libraries:
        sys.exit("nothing to compare: no libtorch_cpu.so in %s, or no library named" % libtorch)
    print("LibTorch needs " + ", ".join(text_of(*pair) for pair in sorted(limits.items())))
    patterns = allowed(list_path, installed_abseil)
    faults = [fault for library in libraries for fault in faults_of(library, patterns, limits)]
    for fault in faults:
        print("FAILED: " + fault)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
