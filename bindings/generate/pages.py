"""The programs that a page in Markdown shows, for what makes tests of them."""

import re
import sys

# A program as a test of JUnit.
JAVA_METHOD = """
  @Test
  void program%d() throws Exception {
%s  }
"""


def programs(path, language, least):
    """The blocks of a language; ends the program where there are fewer than `least`.

    What speaks of a native library of the reader's own (`network.`) is left out: it is tested with one. So are whole files,
    which stand behind their names: tests/packages/pages_test.py writes and runs them.
    """
    with open(path, encoding="utf-8") as file:
        blocks = re.findall(r"(?:^`([\w.]+)`:\n\n)?^```%s\n(.*?)^```$" % language, file.read(), re.DOTALL | re.MULTILINE)
    blocks = [block for name, block in blocks if not name and "network." not in block]
    if len(blocks) < least:
        sys.exit("%s shows %d programs only" % (path, len(blocks)))
    return blocks


def write(path, head, method, programs_of_methods, indent):
    """Writes `head` with one `method` for each program, whose lines are indented."""
    methods = []
    for number, code in enumerate(programs_of_methods, 1):
        lines = "".join("%s%s\n" % (indent, line) if line else "\n" for line in code.splitlines())
        methods.append(method % (number, lines))
    with open(path, "w", encoding="utf-8") as file:
        file.write(head % "".join(methods))
