"""The programs of docs/python.md run, but for whole files, which stand behind their names: tests/packages/pages_test.py runs
those."""

import contextlib
import io
import re
import unittest


class DocsTest(unittest.TestCase):
    def test_every_block(self):
        with open("docs/python.md", encoding="utf-8") as file:
            text = file.read()
        blocks = re.findall(r"(?:^`([\w.]+)`:\n\n)?^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
        blocks = [block for name, block in blocks if not name]
        self.assertGreater(len(blocks), 5)
        names = {}
        for number, block in enumerate(blocks):
            with self.subTest(block=number), contextlib.redirect_stdout(io.StringIO()):
                exec(compile(block, "block %d" % number, "exec"), names)
