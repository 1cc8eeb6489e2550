"""The jar beside DJL gives the bits that Python gives, with LibTorch 2.7 on both sides.

Two builds of that LibTorch are compared: the one that DJL brings, and that of Python's own package, which DJL takes where
PYTORCH_LIBRARY_PATH names it.
"""

import os
import struct
import subprocess
import unittest

import addend
import torch

MODELS = os.path.abspath("docs/examples/models")
PROGRAM = os.path.abspath("bindings/java/djl/bits.sh")
NEEDS = os.environ["NEEDS"]
ROWS = 20


def line(explanation):
    numbers = [explanation.value, explanation.reference, *explanation.contributions]
    return " ".join("%016x" % struct.unpack("<Q", struct.pack("<d", number)) for number in numbers)


def of_python():
    addend.set_num_threads(1)
    lines = []
    for name, dims in (("breast_cancer", (1,)), ("digits", (2, 3))):
        model = addend.load_model("%s/%s/model.pt" % (MODELS, name))
        rows = torch.from_dlpack(addend.read_tensors("%s/%s/heldout.safetensors" % (MODELS, name))["input"])
        for row in range(ROWS):
            asked = addend.Input(rows[row:row + 1].clone(), dims=dims, baseline=0)
            lines.append(line(model.decompose(asked).explain("0,0")))
            lines.append(line(model.explain(asked, targets=["0,0"])[0]))
    return lines


def of_java(**environment):
    environment = dict(os.environ, DJL_CACHE_DIR=os.environ["TEST_TMPDIR"] + "/djl", **environment)
    # Which LibTorch computes is DJL's choice here, also where the build is told of another one.
    environment.pop("ADDEND_LIBTORCH_PATH", None)
    done = subprocess.run(
        [PROGRAM, MODELS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, env=environment)
    if done.returncode:
        raise AssertionError(done.stderr)
    library, *lines = done.stdout.splitlines()
    return os.path.dirname(library), lines


@unittest.skipUnless(
    torch.__version__.startswith("2.7."),
    "Python's LibTorch is %s, DJL's 2.7: see tools/matrix pip-2.7.1" % torch.__version__)
@unittest.skipUnless(os.path.exists(NEEDS), "there is no %s: see ADDEND_IMPLEMENTATIONS" % NEEDS)
class BitsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.expected = of_python()

    def test_with_the_libtorch_of_djl(self):
        folder, lines = of_java()
        self.assertTrue(folder.startswith(os.path.realpath(os.environ["TEST_TMPDIR"] + "/djl/")), folder)
        self.assertEqual(lines, self.expected)

    def test_with_the_libtorch_of_python(self):
        # With the libraries of CUDA beside it, where the package has them: DJL's own library is that for the CPU.
        library = os.path.join(os.path.dirname(torch.__file__), "lib")
        folder, lines = of_java(
            PYTORCH_LIBRARY_PATH=library, PYTORCH_VERSION=torch.__version__.split("+")[0], PYTORCH_FLAVOR="cpu")
        self.assertEqual(folder, os.path.realpath(library))
        self.assertEqual(lines, self.expected)


if __name__ == "__main__":
    unittest.main()
