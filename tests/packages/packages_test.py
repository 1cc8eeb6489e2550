"""Each package names the one version, has its licence, its notices and its SPDX list, and the metadata that its users need."""

import glob
import hashlib
import io
import json
import os
import re
import sys
import tarfile
import unittest
import xml.etree.ElementTree as ElementTree
import zipfile

sys.path.insert(0, os.path.abspath("tools/package"))

import strip


def text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


VERSION = text("VERSION").strip()
LICENSE = text("LICENSE")
POM = "{http://maven.apache.org/POM/4.0.0}"
# A file with a licence text that a package has to repeat, and a line of it.
JSON_LICENSE = "/usr/share/doc/nlohmann-json3-dev/copyright"
JSON_LINE = "Permission is hereby granted, free of charge"


def packaged(variable):
    """The files of a target, of which a folder stands for what is in it."""
    if variable not in os.environ:
        raise unittest.SkipTest("no package of this kind is built here: its BUILD file says what is missing")
    files = []
    for path in os.environ[variable].split():
        files += sorted(glob.glob(path + "/*")) if os.path.isdir(path) else [path]
    return files


def entries(path):
    """The files of an archive by their names."""
    if path.endswith(".tar.gz"):
        with tarfile.open(path) as archive:
            return {
                member.name: archive.extractfile(member).read() for member in archive.getmembers() if member.isfile()
            }
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}


class PackagesTest(unittest.TestCase):
    def check_documents(self, files, package, licenses, sbom):
        """Licence, notices and list; `licenses` and `sbom` are folders of the package."""
        self.assertEqual(files[licenses + "LICENSE"].decode(), LICENSE)
        notices = files[licenses + "THIRD_PARTY_NOTICES"].decode()
        self.assertIn("The package %s %s is licensed" % (package, VERSION), notices)
        for name in ("LibTorch", "Abseil", "JSON for Modern C++"):
            self.assertRegex(notices, "(?m)^%s( [0-9.]+)?$" % re.escape(name))
        if os.path.exists(JSON_LICENSE):
            self.assertIn(JSON_LINE, notices)
        self.check_spdx(json.loads(files[sbom + "addend.spdx.json"].decode()), files, package)

    def check_spdx(self, document, files, package):
        self.assertEqual(document["spdxVersion"], "SPDX-2.3")
        self.assertEqual(document["dataLicense"], "CC0-1.0")
        self.assertEqual(document["name"], "addend-%s-%s" % (VERSION, package))
        self.assertRegex(document["documentNamespace"], "^urn:uuid:[0-9a-f-]{36}$")
        self.assertRegex(document["creationInfo"]["created"], "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z$")
        ids = {entry["SPDXID"]: entry for entry in document["packages"]}
        self.assertEqual(len(ids), len(document["packages"]))
        for entry in document["packages"]:
            self.assertRegex(entry["SPDXID"], "^SPDXRef-[a-zA-Z0-9.-]+$")
            for key in ("name", "downloadLocation", "licenseConcluded", "licenseDeclared", "copyrightText"):
                self.assertTrue(entry[key])
        for relation in document["relationships"]:
            self.assertIn(relation["relatedSpdxElement"], ids)
            self.assertIn(relation["spdxElementId"], list(ids) + ["SPDXRef-DOCUMENT"])
        self.assertEqual(ids["SPDXRef-addend"]["versionInfo"], VERSION)
        # Every native library of the package is listed, as it is.
        listed = {e["packageFileName"]: e["checksums"][0]["checksumValue"] for e in ids.values() if "packageFileName" in e}
        native = {os.path.basename(name): data for name, data in files.items() if data[:4] == b"\x7fELF"}
        self.assertEqual(listed, {name: hashlib.sha256(data).hexdigest() for name, data in native.items()})
        for name, data in native.items():
            self.assertFalse(b".debug_info" in data, name + " is not stripped")
            for start, end in strip.folders(data):
                for folder in data[start:end].split(b":"):
                    self.assertTrue(folder.startswith(b"$ORIGIN"), "%s looks for libraries in %r" % (name, folder))

    def test_wheel(self):
        (wheel,) = packaged("WHEEL")
        files = entries(wheel)
        info = "addend-%s.dist-info/" % VERSION
        self.assertTrue(os.path.basename(wheel).startswith("addend-%s-cp" % VERSION))
        metadata = files[info + "METADATA"].decode()
        head, _, description = metadata.partition("\n\n")
        for line in ("Name: addend", "Version: " + VERSION, "License-Expression: Apache-2.0", "License-File: LICENSE"):
            self.assertIn(line, head.splitlines())
        self.assertIn("Description-Content-Type: text/markdown", head)
        self.assertRegex(head, "Requires-Dist: torch>=[0-9]+\\.[0-9]+(,!=[0-9.]+\\*)*,<[0-9]+\\.[0-9]+")
        self.assertTrue(description.startswith("# "))
        self.check_documents(files, "wheel", info + "licenses/", info + "sboms/")

    def test_sdk(self):
        (sdk,) = packaged("SDK")
        files = entries(sdk)
        self.assertEqual(files["addend/VERSION"].decode().strip(), VERSION)
        for name in ("addend.h", "addend_ext.h", "addend.hpp"):
            self.assertIn("addend/include/addend/" + name, files)
        self.assertIn("\nVersion: %s\n" % VERSION, files["addend/lib/pkgconfig/addend.pc"].decode())
        cmake = files["addend/lib/cmake/addend/addend-config-version.cmake"].decode()
        self.assertIn('set(PACKAGE_VERSION "%s")' % VERSION, cmake)
        self.assertNotIn("@", files["addend/lib/cmake/addend/addend-config.cmake"].decode())
        self.check_documents(files, "sdk", "addend/", "addend/")

    def test_jar(self):
        jars = {os.path.basename(path): path for path in packaged("MAVEN")}
        files = entries(jars["addend.jar"])
        manifest = files["META-INF/MANIFEST.MF"].decode()
        self.assertIn("Automatic-Module-Name: dev.addend\n", manifest)
        self.assertIn("Implementation-Version: %s\n" % VERSION, manifest)
        self.assertIn("version=%s\n" % VERSION, files["META-INF/maven/dev.addend/addend/pom.properties"].decode())
        self.check_documents(files, "jar", "META-INF/", "META-INF/sbom/")
        sources, javadoc = entries(jars["addend-sources.jar"]), entries(jars["addend-javadoc.jar"])
        for each in (sources, javadoc):
            self.assertIn("Implementation-Version: %s\n" % VERSION, each["META-INF/MANIFEST.MF"].decode())
            self.assertEqual(each["META-INF/LICENSE"].decode(), LICENSE)
        # Every class has its source, and every public one its page.
        for name in files:
            if name.endswith(".class") and "$" not in name:
                self.assertIn(name[: -len("class")] + "java", sources)
        self.assertIn("<title>Tensor (Addend %s)</title>" % VERSION, javadoc["dev/addend/Tensor.html"].decode())

    def test_pom(self):
        (pom,) = [path for path in packaged("MAVEN") if path.endswith(".pom")]
        root = ElementTree.parse(pom).getroot()
        self.assertEqual(root.findtext(POM + "version"), VERSION)
        self.assertEqual(root.findtext(POM + "groupId"), "dev.addend")
        self.assertEqual(root.findtext("%slicenses/%slicense/%sname" % (POM, POM, POM)), "Apache-2.0")
        self.assertTrue(root.findtext("%sdevelopers/%sdeveloper/%sname" % (POM, POM, POM)))
        for name in ("name", "description", "packaging"):
            self.assertTrue(root.findtext(POM + name))
        self.assertNotIn("@", text(pom))
        # An address that the build was told, or none.
        if root.find(POM + "scm") is not None:
            self.assertEqual(root.findtext("%sscm/%surl" % (POM, POM)), root.findtext(POM + "url"))

    def test_nupkg(self):
        (nupkg,) = [path for path in packaged("NUGET") if path.endswith(".nupkg")]
        self.assertEqual(os.path.basename(nupkg), "Addend.%s.nupkg" % VERSION)
        files = entries(nupkg)
        spec = ElementTree.parse(io.BytesIO(files["Addend.nuspec"])).getroot()
        spec = {re.sub("{.*}", "", element.tag): element for element in spec[0]}
        self.assertEqual(spec["version"].text, VERSION)
        self.assertEqual((spec["license"].get("type"), spec["license"].text), ("expression", "Apache-2.0"))
        self.assertIn(spec["readme"].text, files)
        for name in ("authors", "description", "tags"):
            self.assertTrue(spec[name].text)
        # An address that the build was told, or none.
        self.assertTrue("repository" not in spec or spec["repository"].get("url"), files["Addend.nuspec"])
        self.assertIn("lib/net8.0/Addend.xml", files)
        assembly = files["lib/net8.0/Addend.dll"]
        # The mark of an embedded portable PDB; then what trimming and ahead-of-time compilation ask for.
        for mark in (b"MPDB", b"IsTrimmable", b"IsAotCompatible"):
            self.assertTrue(mark in assembly, "the assembly lacks %s" % mark.decode())
        self.check_documents(files, "nupkg", "", "")


class SourcesTest(unittest.TestCase):
    """Files that cannot read VERSION repeat it."""

    def test_module(self):
        self.assertIn('\n    version = "%s",\n' % VERSION, text("MODULE.bazel"))

    def test_headers(self):
        self.assertIn('"%s"' % VERSION, text("core/base/release.h"))
        for said in re.findall(r'#define ADDEND_VERSION(?:_STRING)? "([^"]*)"', text("c_api/addend.h")):
            self.assertEqual(said, VERSION)


if __name__ == "__main__":
    unittest.main()
