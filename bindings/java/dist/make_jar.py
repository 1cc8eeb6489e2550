"""Puts classes, native libraries and Maven's metadata into one jar. A program of the build."""

import argparse
import hashlib
import pathlib
import platform
import zipfile

# Archives are the same whenever they are built.
_DATE = (1980, 1, 1, 0, 0, 0)
_MANIFEST = """Manifest-Version: 1.0
Automatic-Module-Name: dev.addend
Implementation-Title: Addend
Implementation-Version: %s

"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--classes", required=True, help="a jar")
    parser.add_argument("--native", nargs="+", required=True, help="libraries")
    parser.add_argument("--license", required=True)
    parser.add_argument("--pom", required=True, help="with @VERSION@")
    parser.add_argument("--version", required=True)
    parser.add_argument("--jar", required=True, help="to write")
    parser.add_argument("--pom-out", required=True, help="to write")
    arguments = parser.parse_args()

    pom = read_text(arguments.pom).replace("@VERSION@", arguments.version)
    pathlib.Path(arguments.pom_out).write_text(pom, encoding="utf-8")

    # The manifest has to be the first entry.
    entries = {"META-INF/MANIFEST.MF": _MANIFEST % arguments.version}
    maven = "META-INF/maven/dev.addend/addend/"
    entries[maven + "pom.xml"] = pom
    entries[maven + "pom.properties"] = "groupId=dev.addend\nartifactId=addend\nversion=%s\n" % arguments.version
    entries["META-INF/LICENSE"] = read_text(arguments.license)
    with zipfile.ZipFile(arguments.classes) as classes:
        for name in sorted(classes.namelist()):
            if name.endswith(".class"):
                entries[name] = classes.read(name)
    entries.update(native_entries(arguments.native))
    write(arguments.jar, entries)


def native_entries(libraries):
    """The libraries, and the list that the loader reads: a line with hash and name of each."""
    folder = "native/linux-%s/" % platform.machine()
    entries, contents = {}, ""
    for library in map(pathlib.Path, libraries):
        data = library.read_bytes()
        contents += "%s  %s\n" % (hashlib.sha256(data).hexdigest(), library.name)
        entries[folder + library.name] = data
    entries[folder + "contents.txt"] = contents
    return entries


def write(path, entries):
    with zipfile.ZipFile(path, "w") as jar:
        for name, data in entries.items():
            info = zipfile.ZipInfo(name, _DATE)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            jar.writestr(info, data)


def read_text(path):
    return pathlib.Path(path).read_text(encoding="utf-8")


if __name__ == "__main__":
    main()
