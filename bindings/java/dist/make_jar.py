"""Writes what Maven publishes: the jar, its sources, its Javadoc, and the POM. A program of the build."""

import argparse
import hashlib
import json
import pathlib
import platform
import re
import subprocess
import tempfile
import zipfile
from xml.sax.saxutils import escape

# Archives are the same whenever they are built.
_DATE = (1980, 1, 1, 0, 0, 0)
_MANIFEST = """Manifest-Version: 1.0
Automatic-Module-Name: %s
Implementation-Title: Addend
Implementation-Version: %s
Bundle-License: Apache-2.0

"""
_PLAIN_MANIFEST = """Manifest-Version: 1.0
Implementation-Title: Addend
Implementation-Version: %s

"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--classes", required=True, help="a jar")
    parser.add_argument("--class-path", nargs="*", default=[], help="archives that the classes are compiled against")
    parser.add_argument("--native", nargs="*", default=[], help="libraries")
    parser.add_argument("--services", nargs="*", default=[], help="files of META-INF/services")
    parser.add_argument("--sources", nargs="+", required=True, help="of one package")
    parser.add_argument("--javadoc-tool", required=True)
    parser.add_argument("--release", required=True, help="of Java, for Javadoc")
    parser.add_argument("--documents", nargs="+", required=True, help="licence, notices and SPDX list")
    parser.add_argument("--provenance", nargs="+", required=True, help="provenance.json, and files that are not read")
    parser.add_argument("--pom", required=True, help="with @VERSION@ and @SCM@")
    parser.add_argument("--version-file", required=True)
    parser.add_argument("--out", required=True, help="the jar to write; the others are named after it")
    arguments = parser.parse_args()

    version = read_text(arguments.version_file).strip()
    (provenance,) = [path for path in arguments.provenance if path.endswith("provenance.json")]
    pom = make_pom(read_text(arguments.pom), version, json.loads(read_text(provenance)))
    documents = document_entries(arguments.documents)
    sources = sorted(map(pathlib.Path, arguments.sources), key=lambda path: path.name)
    package = package_of(sources)
    stem = arguments.out[: -len(".jar")]
    artifact = pathlib.Path(stem).name
    pathlib.Path(stem + ".pom").write_text(pom, encoding="utf-8")

    # The manifest has to be the first entry.
    entries = {"META-INF/MANIFEST.MF": _MANIFEST % (package, version)}
    maven = "META-INF/maven/dev.addend/%s/" % artifact
    entries[maven + "pom.xml"] = pom
    entries[maven + "pom.properties"] = "groupId=dev.addend\nartifactId=%s\nversion=%s\n" % (artifact, version)
    entries.update(documents)
    entries.update({"META-INF/services/" + pathlib.Path(path).name: read_text(path) for path in arguments.services})
    entries.update(class_entries(arguments.classes))
    if arguments.native:
        entries.update(native_entries(arguments.native))
    write(arguments.out, entries)

    plain = dict({"META-INF/MANIFEST.MF": _PLAIN_MANIFEST % version}, **documents)
    folder = package.replace(".", "/") + "/"
    write(stem + "-sources.jar", dict(plain, **{folder + path.name: path.read_bytes() for path in sources}))
    write(stem + "-javadoc.jar", dict(plain, **javadoc_entries(arguments, version, sources)))


def package_of(sources):
    """The package that all sources are of, which is also the name of the module."""
    (package,) = {re.search(r"^package (.*);$", read_text(path), re.MULTILINE).group(1) for path in sources}
    return package


def make_pom(template, version, provenance):
    """The POM; the address of the repository only where it is known."""
    scm = ""
    if "repository" in provenance:
        address = escape(provenance["repository"])
        tag = "    <tag>%s</tag>\n" % escape(provenance["commit"]) if "commit" in provenance else ""
        scm = "  <url>%s</url>\n  <scm>\n    <connection>scm:git:%s.git</connection>\n    <url>%s</url>\n%s  </scm>\n" % (
            address,
            address,
            address,
            tag,
        )
    return template.replace("@VERSION@", version).replace("@SCM@\n", scm)


def document_entries(paths):
    entries = {}
    for path in sorted(map(pathlib.Path, paths), key=lambda path: path.name):
        folder = "META-INF/sbom/" if path.suffix == ".json" else "META-INF/"
        entries[folder + path.name] = path.read_text(encoding="utf-8")
    return entries


def class_entries(archive):
    with zipfile.ZipFile(archive) as classes:
        return {name: classes.read(name) for name in sorted(classes.namelist()) if name.endswith(".class")}


def javadoc_entries(arguments, version, sources):
    """The pages, without the time at which they were made."""
    with tempfile.TemporaryDirectory() as folder:
        command = [arguments.javadoc_tool, "--release", arguments.release, "-quiet", "-notimestamp"]
        command += ["-Xdoclint:all,-missing", "-encoding", "UTF-8"]
        command += ["-charset", "UTF-8", "-docencoding", "UTF-8", "-d", folder]
        command += ["-classpath", ":".join(arguments.class_path)] if arguments.class_path else []
        command += ["-windowtitle", "Addend " + version, "-doctitle", "Addend " + version]
        subprocess.run(command + [str(path) for path in sources], check=True)
        pages = sorted(path for path in pathlib.Path(folder).rglob("*") if path.is_file())
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in pages}


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
