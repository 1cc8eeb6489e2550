"""Makes a test of the programs that docs/cpp.md shows: each becomes a test. docs_page.h has what they speak of.

usage: generate_docs.py PAGE OUT
"""

import re
import sys

import pages

_HEAD = """// The programs of docs/cpp.md; generated.
#include "c_api/docs_page.h"

namespace addend::api {
namespace {

using DocsTest = DocsPage;
%s
}  // namespace
}  // namespace addend::api
"""

_METHOD = """
TEST_F(DocsTest, Program%d) {
%s}
"""


def program(block):
    """A program that stands in a function; files lie elsewhere."""
    return re.sub(r'"(model\.pt2|folder|decisions\.jsonl)"', r'Here("\1")', block)


def main(page, out):
    blocks = pages.programs(page, "cpp", least=8)
    pages.write(out, _HEAD, _METHOD, [program(block) for block in blocks], " " * 2)


if __name__ == "__main__":
    main(*sys.argv[1:])
