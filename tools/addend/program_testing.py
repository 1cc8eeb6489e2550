"""What tests of the program have in common: a folder, a model whose contributions are known, and how it is started."""

import os
import subprocess
import tempfile
import unittest

import torch

PROGRAM = os.path.abspath("tools/addend/addend")


class Weighted(torch.nn.Module):
    """The sum of the columns, each with a weight: what a column contributes is its weight times its number."""

    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.arange(1.0, width + 1))

    def forward(self, x):
        return (x * self.weight).sum(1, keepdim=True)


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
