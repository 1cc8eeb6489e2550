"""Base of the program's tests: a folder, models, and how the program and jobs are started."""

import json
import os
import re
import struct
import subprocess
import tempfile
import unittest

import numpy
import torch

PROGRAM = os.path.abspath("tools/addend/addend")


class Weighted(torch.nn.Module):
    """The sum of the columns, each with a weight: what a column contributes is its weight times its number."""

    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.arange(1.0, width + 1))

    def forward(self, x):
        return (x * self.weight).sum(1, keepdim=True)


class Network(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(width, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3), torch.nn.Softmax(dim=1))

    def forward(self, x):
        return self.layers(x)


def page_blocks(page, language, word):
    """The blocks of code in a page that are of this language and hold this word."""
    with open(page) as file:
        blocks = re.findall(r"^```%s\n(.*?)^```$" % language, file.read(), re.MULTILINE | re.DOTALL)
    return [block for block in blocks if word in block]


def read_safetensors(path):
    """The tensors of a file by name, read by its format's definition and not by the library that wrote it."""
    types = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "U8": "u1"}
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size).decode("utf-8"))
        data = file.read()
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = numpy.frombuffer(data[begin:end], types[entry["dtype"]]).reshape(entry["shape"])
    return tensors, metadata


class ProgramTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode("utf-8"))
        return self.path(name)

    def model(self, module):
        path = self.path("model.pt")
        torch.jit.script(module).save(path)
        return path

    def run_program(self, *arguments, **options):
        return subprocess.run([PROGRAM] + list(arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              universal_newlines=True, **options)


class JobTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.plan = self.path("plan.json")

    def numbers(self, rows, width):
        numbers = numpy.random.RandomState(7).standard_normal((rows, width)).astype(numpy.float32)
        numpy.save(self.path("rows.npy"), numbers)
        return numbers

    def job(self, *arguments, **options):
        done = self.run_program("job", *arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def refused(self, said, *arguments, **options):
        done = self.run_program("job", *arguments, **options)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        for part in [said] if isinstance(said, str) else said:
            self.assertIn(part, done.stderr)
        return done.stderr

    def make(self, *arguments):
        return json.loads(self.job("plan", *arguments, "--out", self.plan, "--json"))

    def merge(self):
        return json.loads(self.job("merge", self.plan, "--json"))

    def run_all(self):
        self.job("run", self.plan)
        return self.merge()
