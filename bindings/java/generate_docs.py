"""Makes a test of the programs that docs/java.md shows: each becomes a method. DocsPage.java has what they speak of.

usage: generate_docs.py PAGE OUT
"""

import re
import sys

_HEAD = """package dev.addend;

import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;

/** The programs of docs/java.md. */
class DocsTest extends DocsPage {
%s}
"""

_METHOD = """
  @Test
  void program%d() throws Exception {
%s  }
"""


def main(page, out):
    with open(page, encoding="utf-8") as file:
        blocks = re.findall(r"```java\n(.*?)```", file.read(), re.DOTALL)
    # What speaks of a native library of the reader's own is tested with one: NativeModelTest.
    blocks = [block for block in blocks if "network." not in block]
    if len(blocks) < 8:
        sys.exit("%s shows %d programs only" % (page, len(blocks)))
    methods = []
    for number, block in enumerate(blocks, 1):
        # Files lie elsewhere, and one program is about another model.
        code = block.replace('Path.of("', 'file("')
        if "Input.of(ids)" in code:
            code = "model = text();\n" + code
        methods.append(_METHOD % (number, "".join("    %s\n" % line if line else "\n" for line in code.splitlines())))
    with open(out, "w", encoding="utf-8") as file:
        file.write(_HEAD % "".join(methods))


if __name__ == "__main__":
    main(*sys.argv[1:])
