"""Programs that score with ONNX Runtime and explain with Addend: what they print is what the TorchScript file gives.

PROGRAM: "java" runs with ONNX Runtime, "csharp" with a stand-in for it.
"""

import os
import re
import subprocess
import unittest

import numpy as np

import addend

PROGRAM = os.path.abspath("docs/examples/onnx/score_and_explain_%s.sh" % os.environ["PROGRAM"])
FOLDER = os.path.abspath("docs/examples/models/breast_cancer") + "/"


class OnnxExamplesTest(unittest.TestCase):
    def test_prints_one_score_and_what_it_is_made_of(self):
        arguments = [FOLDER + name for name in ("model.onnx", "sample.safetensors", "baseline.npy")]
        run = subprocess.run([PROGRAM] + arguments, stdout=subprocess.PIPE, universal_newlines=True, check=True)
        lines = run.stdout.splitlines()
        row = np.array(addend.read_tensors(FOLDER + "sample.safetensors")["input"])
        mean = np.array(addend.read_tensors(FOLDER + "baseline.npy")[""])
        model = addend.load_model(FOLDER + "model.pt")
        known = model.decompose(addend.Input(row, 1, baseline=mean)).explain()
        self.assertEqual(lines[:2], ["ONNX Runtime: %.4f" % known.value, "Addend: %.4f" % known.value])
        shown = [re.fullmatch(r"  (.*): ([+-][\d.]+)", line).groups() for line in lines[2:5]]
        self.assertEqual([name for name, _ in shown], [column.name for column in known.top(3)])
        for (_, value), column in zip(shown, known.top(3)):
            self.assertAlmostEqual(float(value), column.value, places=3)
        self.assertRegex(lines[5], r"  reference: %.4f, leftover: -?0\.0000" % known.reference)

    def test_fails_without_a_model(self):
        run = subprocess.run([PROGRAM, "/nowhere", FOLDER + "sample.safetensors", FOLDER + "baseline.npy"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertNotEqual(run.returncode, 0)


if __name__ == "__main__":
    unittest.main()
