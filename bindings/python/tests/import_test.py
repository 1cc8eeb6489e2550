"""One LibTorch in a process, whatever is imported first, none needed beside it, and no other one taken."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

MAPPED = """
import os
files = {os.path.realpath(line.split()[-1]) for line in open("/proc/self/maps") if "/libtorch_cpu.so" in line}
print(len(files))
"""


def run(program):
    """Runs a program in a fresh interpreter, and returns what it prints."""
    return subprocess.run(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True
    ).stdout.strip()


def run_module(**environment):
    """Runs `python -m addend`, and returns what it prints."""
    return subprocess.run(
        [sys.executable, "-m", "addend"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True,
        env=dict(os.environ, **environment),
    ).stdout.strip()


class ImportTest(unittest.TestCase):
    def test_either_order(self):
        for order in ("import addend, torch", "import torch, addend", "import addend"):
            with self.subTest(order=order):
                self.assertEqual(run(order + MAPPED), "1")

    def test_another_libtorch_is_an_import_error(self):
        foreign = os.path.abspath(os.environ["FOREIGN"])
        program = """
import ctypes
ctypes.CDLL(%r)
try:
    import addend
except ImportError as error:
    print(error)
""" % foreign
        said = run(program)
        self.assertIn("this process has loaded LibTorch 0.99.0 (%s)" % os.path.realpath(foreign), said)
        self.assertRegex(said, r"Addend [0-9.]+ in .*/addend serves LibTorch [0-9]+\.[0-9]+; install the Addend for")

    def test_an_implementation_that_is_missing_is_an_import_error(self):
        import addend

        with tempfile.TemporaryDirectory() as folder:
            package = os.path.join(folder, "addend")
            shutil.copytree(os.path.dirname(addend.__file__), package, symlinks=False)
            for name in os.listdir(package):
                if name.startswith("libaddend_torch"):
                    os.remove(os.path.join(package, name))
            program = "import sys\nsys.path.insert(0, %r)\nimport addend" % folder
            said = run(program).splitlines()[-1]
        self.assertTrue(said.startswith("ImportError: there is no libaddend_torch<version>.so in %s" % package), said)

    def test_tells_what_reports_of_problems_need(self):
        import addend

        told = run("import addend\nprint(addend.show_config())" + MAPPED + "print(*files)")
        *lines, number, mapped = told.splitlines()
        self.assertEqual(number, "1")
        first, second, third = re.split(r"\n(?=[A-Z])", "\n".join(lines))
        self.assertEqual(first.splitlines()[0], "Addend " + addend.__version__)
        folder = os.path.realpath(os.path.dirname(addend.__file__))
        library = os.path.realpath(os.path.join(folder, "libaddend.so.1"))
        self.assertIn("\n  library: %s\n" % library, first)
        self.assertRegex(first, r"\n  built from: (not stamped|commit [0-9a-f]{40}|no commit)")
        self.assertRegex(first, r"\n  opened: /.*/libaddend_torch[0-9.]+\.so, for LibTorch " + addend.libtorch_version)
        self.assertRegex(second, r"^LibTorch [0-9]")
        self.assertIn("\n  library: %s\n" % mapped, second)
        self.assertRegex(second, r"\n  threads: [0-9]+ for operators.*\n(.*\n)*  devices: CPU")
        self.assertTrue(third.startswith("Python " + sys.version.split()[0]), third)
        if importlib.util.find_spec("torch") is not None:
            import torch

            self.assertIn("\n  torch: %s, %s" % (torch.__version__, torch.__file__), third)
        else:
            self.assertIn("\n  torch: not imported", third)
        self.assertEqual(run_module().splitlines()[0], first.splitlines()[0])

    def test_tells_it_where_the_import_fails(self):
        foreign = os.path.realpath(os.environ["FOREIGN"])
        told = run_module(LD_PRELOAD=foreign)
        self.assertIn("\n  opened: none\n  refused: this process has loaded LibTorch 0.99.0 (%s)" % foreign, told)
        self.assertIn("\nLibTorch 0.99.0\n  library: %s\n" % foreign, told)
        self.assertIn("\nPython " + sys.version.split()[0], told)
        self.assertNotIn("Traceback", told)

    def test_without_torch_and_numpy(self):
        program = """
import sys
sys.modules["numpy"] = sys.modules["torch"] = None    # importing them fails
import addend
model = addend.load_model("docs/examples/models/digits/model.pt")
image = addend.read_tensors("docs/examples/models/digits/sample.safetensors")["input"]
output = model(addend.Input(image, (2, 3), baseline=0))
print(addend.as_tensor([1, 2]).tolist(), output.shape)
"""
        self.assertEqual(run(program), "[1, 2] (1, 10)")

    def test_tensors_compute_as_numpy_does_without_torch(self):
        program = """
import sys
sys.modules["torch"] = None
import addend, numpy
x = numpy.float32([1, 2, 3])
c = addend.Composition.diagonal(x, 0)
c.residual[:] += 0.5
c.leftover += x
print(type(c.recovery - 1), (c.recovery == 2 * x + 0.5).all(), c.recovery.max(), (2 * c).relu().numc)
try:
    c.dim()
except AttributeError as error:
    print(error)
"""
        said = run(program).splitlines()
        self.assertEqual(said[0], "<class 'numpy.ndarray'> True 6.5 3")
        self.assertRegex(said[1], "Composition has no attribute 'dim'; .* not installed")

    def test_only_figures_need_matplotlib(self):
        program = """
import sys
sys.modules["matplotlib"] = None    # importing it fails
import addend
from addend import *
print(load_model("docs/examples/models/digits/model.pt").input_names)
try:
    addend.plots.bar([1.0])
except ImportError as error:
    print(error)
"""
        said = run(program).splitlines()
        self.assertEqual(len(said), 2, said)
        self.assertRegex(said[1], r"^addend.plots draws with matplotlib, which cannot be imported here .*: pip install matplotlib$")
        loaded = run("import sys, addend; print([name for name in sys.modules if name.startswith('matplotlib')])")
        self.assertEqual(loaded, "[]")

    def test_importing_prints_nothing(self):
        self.assertEqual(run("import addend"), "")

    def test_what_is_public_is_documented(self):
        program = """
import addend, inspect
for name in addend.__all__:
    value = getattr(addend, name)
    if not inspect.isclass(value) and not inspect.isroutine(value):
        continue
    members = [(name, value)]
    if inspect.isclass(value):
        members += [(name + "." + k, v) for k, v in vars(value).items() if not k.startswith("_") and callable(v)]
    for path, member in members:
        if not inspect.getdoc(member): print(path)
"""
        self.assertEqual(run(program), "")

    def test_types_are_declared(self):
        import addend

        folder = os.path.dirname(addend.__file__)
        self.assertTrue(os.path.exists(os.path.join(folder, "py.typed")))
        self.assertEqual(sorted(set(addend.__all__) - set(dir(addend))), [])
