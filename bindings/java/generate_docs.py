"""Makes a test of the programs that docs/java.md shows: each becomes a method. DocsPage.java has what they speak of.

usage: generate_docs.py PAGE OUT
"""

import sys

import pages

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


def program(block):
    """A program that stands in a method: files lie elsewhere, and one program is about another model."""
    code = block.replace('Path.of("', 'file("')
    return "model = text();\n" + code if "Input.of(ids)" in code else code


def main(page, out):
    blocks = pages.programs(page, "java", least=8)
    pages.write(out, _HEAD, pages.JAVA_METHOD, [program(block) for block in blocks], " " * 4)


if __name__ == "__main__":
    main(*sys.argv[1:])
