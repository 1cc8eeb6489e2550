"""Writes a shared library as it is packaged.

    strip.py LIBRARY OUT

Without debug information, and without the folders of this machine in which it looked for other libraries: those that are
named relative to the library itself ($ORIGIN) stay.
"""

import os
import struct
import subprocess
import sys

_LOAD, _DYNAMIC = 1, 2
_STRTAB, _RPATH, _RUNPATH = 5, 15, 29


def main(library, out):
    subprocess.run(["strip", "-o", out, library], check=True)
    os.chmod(out, 0o755)
    with open(out, "rb") as file:
        data = bytearray(file.read())
    before = _described(out)
    for start, end in list(folders(data)):
        kept = [folder for folder in data[start:end].split(b":") if folder.startswith(b"$ORIGIN")]
        data[start:end] = b":".join(kept).ljust(end - start, b"\0")
    with open(out, "wb") as file:
        file.write(data)
    # A linker may let a name begin inside another text.
    if _described(out) != before:
        sys.exit("%s: a name shares its text with the folders that it was linked with" % library)


def folders(data):
    """The places of the lists of folders in a library's bytes, as (start, end)."""
    if data[:6] != b"\x7fELF\x02\x01":
        sys.exit("not an ELF file of 64 bits, lowest byte first")
    (table,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    loads, dynamic = [], []
    for k in range(count):
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", data, table + k * size)
        if kind == _LOAD:
            loads.append((address, offset, length))
        elif kind == _DYNAMIC:
            dynamic = [struct.unpack_from("<qQ", data, offset + at) for at in range(0, length, 16)]
    texts = [value for tag, value in dynamic if tag == _STRTAB]
    for tag, value in dynamic:
        if tag in (_RPATH, _RUNPATH):
            (start,) = [offset + texts[0] - address for address, offset, length in loads if address <= texts[0] < address + length]
            yield start + value, data.index(b"\0", start + value)


def _described(path):
    """All that readelf tells of it but those folders."""
    text = subprocess.run(
        ["readelf", "--dynamic", "--dyn-syms", "--version-info", "--wide", path],
        check=True,
        stdout=subprocess.PIPE,
        universal_newlines=True,
        env=dict(os.environ, LC_ALL="C"),
    ).stdout
    return [line for line in text.splitlines() if "(RUNPATH)" not in line and "(RPATH)" not in line]


if __name__ == "__main__":
    main(*sys.argv[1:])
