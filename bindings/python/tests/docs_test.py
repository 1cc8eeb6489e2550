"""The programs of docs/python.md run."""

import contextlib
import io
import re
import unittest


class DocsTest(unittest.TestCase):
    def test_every_block(self):
        with open("docs/python.md", encoding="utf-8") as file:
            blocks = re.findall(r"```python\n(.*?)```", file.read(), re.DOTALL)
        self.assertGreater(len(blocks), 5)
        names = {}
        for number, block in enumerate(blocks):
            with self.subTest(block=number), contextlib.redirect_stdout(io.StringIO()):
                exec(compile(block, "block %d" % number, "exec"), names)
