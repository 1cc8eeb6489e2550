"""The wheel holds all that a program needs: it runs from an empty folder."""

import base64
import glob
import hashlib
import os
import subprocess
import sys
import sysconfig
import tempfile
import unittest
import zipfile

(WHEEL,) = glob.glob(os.path.join(os.path.abspath(os.environ["WHEEL"]), "*.whl"))
MODELS = os.path.abspath("docs/examples/models/digits")
PROGRAM = os.path.abspath("docs/examples/quickstart.py")


class WheelTest(unittest.TestCase):
    def test_the_quick_start_runs_from_an_empty_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            with zipfile.ZipFile(WHEEL) as wheel:
                wheel.extractall(folder)
            found = subprocess.run(
                [sys.executable, PROGRAM, MODELS + "/model.pt2", MODELS + "/sample.safetensors"],
                cwd=folder,
                env={"PYTHONPATH": folder, "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                universal_newlines=True,
            )
            self.assertTrue(found.stdout.startswith("output [0, 8] = "), found.stdout)
            located = subprocess.run(
                [sys.executable, "-c", "import addend; print(addend.__file__); print(addend.__version__)"],
                cwd="/",
                env={"PYTHONPATH": folder},
                stdout=subprocess.PIPE,
                universal_newlines=True,
            ).stdout.split()
            self.assertEqual(located[0], os.path.join(folder, "addend", "__init__.py"))
            self.assertIn("-%s-" % located[1], os.path.basename(WHEEL), "the version of the wheel is that of the library")

    def test_the_tags_are_those_of_interpreter_and_machine(self):
        name, _, interpreter, abi, platform = os.path.basename(WHEEL)[: -len(".whl")].split("-", 4)
        self.assertEqual(name, "addend")
        suffix = sysconfig.get_config_var("SOABI")
        if abi == "abi3":
            # The tag names the oldest version that it serves; its symbols are checked by
            # //tests/packages:programs_test.
            self.assertEqual(interpreter, "cp310")
            self.assertIn("\nRequires-Python: >=3.10\n", self.metadata())
        else:
            self.assertEqual("cpython-" + abi[len("cp") :], suffix.rsplit("-", 3)[0])
            self.assertEqual(interpreter, "cp%d%d" % sys.version_info[:2])
            self.assertIn("\nRequires-Python: ==%d.%d.*\n" % sys.version_info[:2], self.metadata())
        self.assertIn("\nClassifier: Programming Language :: Python :: %d.%d\n" % sys.version_info[:2], self.metadata())
        machine = sysconfig.get_platform().split("-")[1]
        self.assertRegex(platform, "^(linux|manylinux_[0-9]+_[0-9]+)_%s$" % machine)
        with zipfile.ZipFile(WHEEL) as wheel:
            (said,) = [name for name in wheel.namelist() if name.endswith(".dist-info/WHEEL")]
            self.assertIn("\nTag: %s-%s-%s\n" % (interpreter, abi, platform), wheel.read(said).decode())

    def metadata(self):
        with zipfile.ZipFile(WHEEL) as wheel:
            (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
            return wheel.read(name).decode()

    def test_record(self):
        with zipfile.ZipFile(WHEEL) as wheel:
            names = set(wheel.namelist())
            (record,) = [name for name in names if name.endswith(".dist-info/RECORD")]
            listed = set()
            for line in wheel.read(record).decode().splitlines():
                path, digest, size = line.rsplit(",", 2)
                listed.add(path)
                if path == record:
                    continue
                data = wheel.read(path)
                self.assertEqual(int(size), len(data))
                expected = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                self.assertEqual(digest, "sha256=" + expected)
        self.assertEqual(listed, names)
        self.assertIn("addend/py.typed", names)
        self.assertIn("addend/libaddend.so.1", names)
        self.assertEqual(len([name for name in names if name.startswith("addend/libaddend_torch")]), 1)
