"""The quick start prints what its program in C prints."""

import subprocess
import sys
import unittest

MODEL = "docs/examples/models/digits/"


def output(command, model):
    arguments = [MODEL + model, MODEL + "sample.safetensors"]
    return subprocess.run(command + arguments, stdout=subprocess.PIPE, check=True, universal_newlines=True).stdout


class QuickstartTest(unittest.TestCase):
    def test_same_numbers_as_in_c(self):
        for model in ("model.pt2", "model.onnx"):
            printed = output([sys.executable, "docs/examples/quickstart.py"], model)
            self.assertIn("leftover: ", printed)
            self.assertEqual(printed, output(["docs/examples/quickstart_c"], model))
