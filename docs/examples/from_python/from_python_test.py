"""A model that Python records is decomposed in every other language, with the numbers of the live model."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

import addend

HERE = "docs/examples/from_python/"
LANGUAGES = os.environ["LANGUAGES"].split()


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)


def program(language):
    name = HERE + "decompose_" + language
    return os.path.abspath(name if language in ("c", "cc") else name + ".sh")


class FromPythonTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        recorded = run(sys.executable, HERE + "record.py", cls.folder.name)
        assert recorded.returncode == 0, recorded.stderr
        cls.live = recorded.stdout
        cls.file = os.path.join(cls.folder.name, "program", "program.json")
        with open(cls.file) as file:
            cls.saved = json.load(file)
        weights = os.path.join(cls.folder.name, "program", "weights.safetensors")
        # Weights without metadata, hence without checksums, may be edited below.
        addend.write_tensors(weights, addend.read_tensors(weights))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def tearDown(self):
        with open(self.file, "w") as file:
            json.dump(self.saved, file)

    def save(self, **changed):
        with open(self.file, "w") as file:
            json.dump({key: value for key, value in dict(self.saved, **changed).items() if value is not None}, file)

    def test_every_language_has_the_numbers_of_the_live_model(self):
        self.assertRegex(self.live, r"(?s)^output \[0, \d\] = .*word .*recovery: ")
        self.assertGreaterEqual(len(LANGUAGES), 2)
        for language in LANGUAGES:
            with self.subTest(language):
                decomposed = run(program(language), self.folder.name)
                self.assertEqual((decomposed.returncode, decomposed.stdout), (0, self.live), decomposed.stderr)

    def test_the_file_says_which_libtorch_wrote_it(self):
        self.assertEqual(self.saved["libtorch"], addend.libtorch_version)
        loaded = addend.Program.load(os.path.dirname(self.file))
        self.assertEqual(loaded.summary["libtorch"], addend.libtorch_version)

    def test_files_without_a_libtorch_are_read(self):
        self.save(libtorch=None)
        self.assertEqual(run(program("c"), self.folder.name).stdout, self.live)

    def test_another_libtorch_is_a_note(self):
        self.save(libtorch="99.1.0")
        self.assertEqual(run(program("c"), self.folder.name).stdout, self.live)
        model = addend.Program.load(os.path.dirname(self.file)).model()
        sample = addend.read_tensors(os.path.join(self.folder.name, "sample.safetensors"))
        inputs = dict(sample)
        inputs["batch.input_ids"] = addend.Input(inputs["batch.input_ids"], dims=1, baseline=0)
        told = "recorded with LibTorch 99.1.0, and this is LibTorch " + addend.libtorch_version
        self.assertTrue(any(told in note for note in model.decompose(inputs).notes))
        self.assertTrue(any(told in note for note in model.explain(inputs).notes))

    def test_operators_of_another_libtorch_are_an_error_that_names_both(self):
        calls = [dict(call) for call in self.saved["calls"]]
        calls[0]["operator"] = "aten::not_here_yet"
        self.save(libtorch="99.1.0", calls=calls)
        for language in LANGUAGES:
            with self.subTest(language):
                refused = run(program(language), self.folder.name)
                self.assertNotEqual(refused.returncode, 0)
                self.assertIn("aten::not_here_yet, which this LibTorch does not have", refused.stderr)
                self.assertIn("recorded with LibTorch 99.1.0, and this is LibTorch ", refused.stderr)
