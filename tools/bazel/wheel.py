"""Writes a wheel.

    wheel.py OUT FILE...

OUT is <name>-<version>-<tags>.whl. Of each file, what follows the folder "package/" is its place in the wheel. The same
files give the same bytes.
"""

import base64
import hashlib
import os
import sys
import zipfile

_METADATA = """Metadata-Version: 2.1
Name: {name}
Version: {version}
Summary: Explains neural networks by arithmetic that can be checked
License: Apache-2.0
Requires-Python: >=3.9
"""

_WHEEL = """Wheel-Version: 1.0
Generator: {name}
Root-Is-Purelib: false
Tag: {tag}
"""


def main():
    out, files = sys.argv[1], sys.argv[2:]
    name, version, tag = os.path.basename(out)[: -len(".whl")].split("-", 2)
    info = "%s-%s.dist-info/" % (name, version)
    contents = {}
    for file in files:
        with open(file, "rb") as source:
            contents[file.split("/package/", 1)[1]] = source.read()
    contents[info + "METADATA"] = _METADATA.format(name=name, version=version).encode()
    contents[info + "WHEEL"] = _WHEEL.format(name=name, tag=tag).encode()
    record = "".join("%s,%s,%d\n" % (path, digest(data), len(data)) for path, data in sorted(contents.items()))
    contents[info + "RECORD"] = (record + info + "RECORD,,\n").encode()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in sorted(contents.items()):
            entry = zipfile.ZipInfo(path, date_time=(1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)


def digest(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    main()
