"""The programs that write what packages say of themselves."""

import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, os.path.abspath("tools/package"))

import documents
import elf
import platform_tag
import provenance
import strip
import wheel

COMPONENTS = "tools/package/components.json"


def needs(soname, *names):
    return {"name": soname, "sha256": "0" * 64, "needs": list(names)}


class PlatformTagTest(unittest.TestCase):
    def test_what_only_one_distribution_has_is_linux(self):
        for library in ("libtorch_cpu.so.1.13", "libabsl_hash.so.20220623", "libcrypto.so.3", "libgomp.so.1"):
            found = platform_tag.tag_of("linux-x86_64", {"libc.so.6", library}, {"GLIBC": (2, 17)})
            self.assertEqual(found, ("linux_x86_64", False), library)

    def test_the_level_is_the_first_that_has_all_symbols(self):
        needed = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1"}
        for versions, level in [
            ({"GLIBC": (2, 14), "GLIBCXX": (3, 4, 19)}, "2_17"),
            ({"GLIBC": (2, 14), "GLIBCXX": (3, 4, 20)}, "2_28"),
            ({"GLIBC": (2, 28), "GLIBCXX": (3, 4, 21)}, "2_28"),
            ({"GLIBC": (2, 33), "GLIBCXX": (3, 4, 29)}, "2_34"),
            ({"GLIBC": (2, 17), "GLIBCXX": (3, 4, 32)}, "2_39"),
        ]:
            found = platform_tag.tag_of("linux-aarch64", needed, versions)
            self.assertEqual(found, ("manylinux_%s_aarch64" % level, False), versions)
        self.assertEqual(platform_tag.tag_of("linux-x86_64", needed, {"GLIBC": (2, 99)}), ("linux_x86_64", False))

    def test_the_libraries_of_the_wheel_of_pytorch_are_required(self):
        found = platform_tag.tag_of("linux-x86_64", {"libtorch_cpu.so", "libc10.so", "libc.so.6"}, {"GLIBC": (2, 28)})
        self.assertEqual(found, ("manylinux_2_28_x86_64", True))

    def test_one_of_several_implementations_is_enough(self):
        libraries = {
            "stub": ("libaddend.so.1", ["libc.so.6"], {"GLIBC": (2, 14)}),
            "old": ("libaddend_torch1.13.so", ["libtorch_cpu.so", "libc.so.6"], {"GLIBC": (2, 28)}),
            "new": ("libaddend_torch2.14.so", ["libtorch_cpu.so", "libc.so.6"], {"GLIBC": (2, 39)}),
        }
        with unittest.mock.patch.object(elf, "describe", libraries.get):
            found = [platform_tag.platform_tag("linux-x86_64", names) for names in (["stub", "old", "new"], ["stub", "new"])]
        self.assertEqual(found, [("manylinux_2_28_x86_64", True), ("manylinux_2_39_x86_64", True)])

    def test_other_systems_have_their_own(self):
        self.assertEqual(platform_tag.tag_of("macosx-11.0-arm64", set(), {}), ("macosx_11_0_arm64", False))

    def test_readelf_is_understood(self):
        soname, needed, versions = elf.describe(os.path.realpath("/proc/self/exe"))
        self.assertIsNone(soname)
        self.assertTrue(any(name.startswith("libc.so") for name in needed), needed)
        self.assertGreater(versions["GLIBC"], (2,))


class WheelTest(unittest.TestCase):
    SYMBOLS = "tools/package/python_symbols.txt"

    def test_which_versions_of_pytorch_are_required(self):
        for libraries, expected in [
            (["a/libaddend.so.1", "a/libaddend_torch1.13.so"], "torch>=1.13,<1.14"),
            (["libaddend_torch2.10.so", "libaddend_torch2.9.so", "_native.so"], "torch>=2.9,<2.11"),
            (["libaddend_torch2.6.so", "libaddend_torch2.9.so", "libaddend_torch2.8.so"], "torch>=2.6,!=2.7.*,<2.10"),
        ]:
            torches = wheel.served_torches(libraries)
            self.assertEqual(wheel.requires(torches, True).splitlines()[0], "Requires-Dist: " + expected)
            self.assertIn('Requires-Dist: %s; extra == "live"' % expected, wheel.requires(torches, False).splitlines())

    def test_a_wheel_of_the_stable_abi_serves_what_follows(self):
        with unittest.mock.patch.object(elf, "undefined_symbols", lambda path: {"PyLong_FromLong", "_Py_NoneStruct", "memcpy"}):
            pythons, required, tag = wheel.served_pythons(self.SYMBOLS, ["_native.so"])
        self.assertEqual((pythons[0], required, tag), ("3.10", ">=3.10", "cp310-abi3"))

    def test_what_the_oldest_python_lacks_ends_the_build(self):
        # Both are of 3.13.
        with unittest.mock.patch.object(elf, "undefined_symbols", lambda path: {"PyList_GetItemRef", "PyLong_AsInt", "PyList_New"}):
            with self.assertRaisesRegex(SystemExit, "^_native.so takes PyList_GetItemRef, PyLong_AsInt from Python, which"):
                wheel.served_pythons(self.SYMBOLS, ["_native.so"])

    def test_symbols_are_read(self):
        found = elf.undefined_symbols(os.path.realpath("/proc/self/exe"))
        self.assertTrue({"memcpy", "strlen"} & found, sorted(found)[:20])

    def test_the_list_holds_what_this_python_has(self):
        with open(self.SYMBOLS, encoding="utf-8") as file:
            names = [line.strip() for line in file if not line.startswith("#")]
        self.assertEqual(names, sorted(set(names)))
        missing = [name for name in names if not hasattr(ctypes.pythonapi, name)]
        self.assertEqual(missing, [])


class StripTest(unittest.TestCase):
    def linked(self, folder, *options, name="function"):
        library = os.path.join(folder, "library.so")
        subprocess.run(
            ["cc", "-shared", "-g", "-x", "c", "-", "-o", library] + list(options),
            input=b"int NAME(void); int NAME(void) { return 1; }".replace(b"NAME", name.encode()),
            check=True,
        )
        out = os.path.join(folder, "out.so")
        strip.main(library, out)
        with open(out, "rb") as file:
            return file.read()

    def test_folders_of_this_machine_are_left_out(self):
        with tempfile.TemporaryDirectory() as folder:
            for option in ("--enable-new-dtags", "--disable-new-dtags"):
                data = self.linked(folder, "-Wl,%s,-rpath,$ORIGIN:/some/folder:$ORIGIN/../lib" % option)
                self.assertEqual([data[start:end] for start, end in strip.folders(data)], [b"$ORIGIN:$ORIGIN/../lib"])
                self.assertNotIn(b"/some/folder", data)
                self.assertNotIn(b".debug_info", data)

    def test_a_name_that_lies_in_the_text_of_the_folders_is_not_lost(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(SystemExit, "shares its text"):
                self.linked(folder, "-Wl,-rpath,/some/folder:$ORIGIN/../lib", name="lib")

    def test_a_library_without_folders_stays(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(list(strip.folders(self.linked(folder))), [])

    def test_what_is_no_library_is_refused(self):
        with self.assertRaisesRegex(SystemExit, "not an ELF file"):
            list(strip.folders(b"#!/bin/sh"))


class DocumentsTest(unittest.TestCase):
    def components(self, *libraries):
        with open(COMPONENTS, encoding="utf-8") as file:
            return documents._components(json.load(file)["components"], list(libraries), "1.13.1")

    def test_what_is_needed_and_what_is_inside(self):
        found = {c["name"]: c for c in self.components(needs("libaddend.so.1", "libabsl_hash.so.20220623", "libc.so.6"))}
        self.assertEqual(found["Abseil"]["version"], "20220623")
        self.assertEqual(found["LibTorch"]["inside"], ["libaddend.so.1"])
        self.assertEqual(found["GNU C library"]["needed_by"], ["libaddend.so.1"])
        self.assertNotIn("OpenSSL", found)

    def test_where_a_library_opens_others_they_hold_the_code(self):
        found = self.components(needs("libaddend.so.1", "libc.so.6"), needs("libaddend_torch1.13.so", "libc10.so.1.13"))
        self.assertEqual(found[0]["inside"], ["libaddend_torch1.13.so"])

    def test_a_library_that_nobody_listed_ends_the_build(self):
        with self.assertRaises(SystemExit) as ended:
            self.components(needs("libaddend.so.1", "libleft_pad.so.7"))
        self.assertIn("libaddend.so.1 needs libleft_pad.so.7, which tools/package/components.json", str(ended.exception))

    def test_libraries_of_the_package_are_no_component(self):
        self.assertEqual(self.components(needs("_native.so", "libaddend.so.1"), needs("libaddend.so.1"))[0]["needed_by"], [])

    def test_the_list_is_the_same_each_time(self):
        library = needs("libaddend.so.1", "libc.so.6")
        lists = [documents.spdx("wheel", "1.0", [library], self.components(library), {}) for _ in range(2)]
        self.assertEqual(lists[0], lists[1])
        other = documents.spdx("jar", "1.0", [library], self.components(library), {})
        self.assertNotEqual(lists[0]["documentNamespace"], other["documentNamespace"])

    def test_a_licence_that_is_not_there_is_said(self):
        found = self.components(needs("libaddend.so.1"))
        for component in found:
            component["texts"] = ["$ABSL_HOME/LICENSE", "/nowhere/LICENSE"]
        said = documents.notices("wheel", "1.0", found, {})
        self.assertIn("The text of its licence was not on the machine", said)


class ProvenanceTest(unittest.TestCase):
    FACTS = "STABLE_ADDEND_REPOSITORY https://github.com/o/r\nSTABLE_ADDEND_COMMIT 0123\nSTABLE_ADDEND_DATE 2026-01-02T03:04:05Z\n"

    def read(self, text):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("BUILD_HOST a\n" + text)
            file.flush()
            return provenance.read(file.name)

    def test_nothing_is_said_that_is_not_known(self):
        self.assertEqual(provenance.read(None), {})
        self.assertEqual(self.read(""), {})
        self.assertEqual(provenance.properties(self.read("STABLE_ADDEND_COMMIT 0123\n")), [])
        self.assertIsNone(provenance.source_link(self.read(self.FACTS.replace("github.com", "elsewhere.example"))))

    def test_what_is_known(self):
        facts = self.read(self.FACTS)
        self.assertEqual(facts["download"], "git+https://github.com/o/r@0123")
        self.assertIn(("RepositoryCommit", "0123"), provenance.properties(facts))
        link = provenance.source_link(facts)["documents"]["/addend/*"]
        self.assertEqual(link, "https://raw.githubusercontent.com/o/r/0123/bindings/csharp/*")

    def told(self, *arguments):
        """The text of a library that is built with the source of provenance.awk."""
        command = ["awk", "-f", "tools/package/provenance.awk", *arguments]
        source = subprocess.run(command, check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout
        return re.search(r'\nconst char\* addend_provenance\(void\) { return "([^"\\\n]*)"; }\n$', source).group(1)

    def test_libraries_know_it_too(self):
        self.assertEqual(self.told("/dev/null"), "not stamped")
        self.assertEqual(self.told("stamped=1", "/dev/null"), "no commit, or none that git knew")
        with tempfile.TemporaryDirectory() as folder:
            status = os.path.join(folder, "status")
            for text, expected in [
                (self.FACTS, "commit 0123 of 2026-01-02T03:04:05Z, https://github.com/o/r"),
                ("BUILD_HOST a\nSTABLE_ADDEND_COMMIT 0123\n", "commit 0123"),
                ('STABLE_ADDEND_REPOSITORY https://o.example/"\\r\n', "no commit, or none that git knew, https://o.example/r"),
            ]:
                with open(status, "w", encoding="utf-8") as file:
                    file.write(text)
                self.assertEqual(self.told("stamped=1", status), expected)

    def test_the_status_of_a_checkout(self):
        status = os.path.abspath("tools/package/status")
        with tempfile.TemporaryDirectory() as folder:
            # No configuration of this user or this machine.
            clean = {"PATH": os.environ["PATH"], "HOME": folder, "GIT_CONFIG_NOSYSTEM": "1"}

            def git(*arguments):
                identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
                subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, env=clean, stdout=subprocess.DEVNULL)

            def say():
                return subprocess.run([status], cwd=folder, check=True, env=clean, stdout=subprocess.PIPE).stdout.decode()

            self.assertEqual(say(), "")
            git("init", "--quiet")
            with open(folder + "/file", "w", encoding="utf-8") as file:
                file.write("1")
            git("add", "file")
            git("commit", "--quiet", "-m", "a")
            self.assertRegex(say(), "^STABLE_ADDEND_COMMIT [0-9a-f]{40}\nSTABLE_ADDEND_DATE 20[0-9T:-]*Z\n$")
            git("remote", "add", "origin", "https://name:word@github.com/o/r.git")
            self.assertNotIn("REPOSITORY", say())
            git("remote", "set-url", "origin", folder)
            self.assertNotIn("REPOSITORY", say())
            git("remote", "set-url", "origin", "https://github.com/o/r.git")
            self.assertIn("STABLE_ADDEND_REPOSITORY https://github.com/o/r\n", say())
            with open(folder + "/file", "w", encoding="utf-8") as file:
                file.write("2")
            self.assertNotIn("COMMIT", say())


if __name__ == "__main__":
    unittest.main()
