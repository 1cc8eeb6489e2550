"""The quick start prints what its program in C prints."""

import subprocess
import sys
import unittest

MODEL = "docs/examples/models/digits/"
ARGUMENTS = [MODEL + "model.pt2", MODEL + "sample.safetensors"]


def output(command):
    return subprocess.run(command + ARGUMENTS, stdout=subprocess.PIPE, check=True, universal_newlines=True).stdout


class QuickstartTest(unittest.TestCase):
    def test_same_numbers_as_in_c(self):
        printed = output([sys.executable, "docs/examples/quickstart.py"])
        self.assertIn("leftover: ", printed)
        self.assertEqual(printed, output(["docs/examples/quickstart_c"]))
