"""Makes a test of the programs that docs/csharp.md shows: each becomes a method. DocsPage.cs has what they speak of.

usage: generate_docs.py PAGE OUT
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generate"))
import pages  # noqa: E402 (found beside the bindings)

_HEAD = """// The programs of docs/csharp.md; generated.
#pragma warning disable
using System;
using System.Collections.Generic;
using System.Threading.Tasks;

namespace Addend.Tests;

public sealed class DocsTests : DocsPage
{
%s}
"""

_METHOD = """
    [Fact]
    public async Task Program_%d()
    {
%s    }
"""


def program(block):
    """A program that stands in a method."""
    code = block.replace("using Addend;\n", "")
    # Files lie elsewhere.
    code = re.sub(r'"(model\.pt2|sample\.safetensors|folder)"', r'Here("\1")', code)
    if code.startswith("catch "):
        code = "try\n{\n    WithoutRule();\n}\n" + code
    if "Composition Attention(" in code:
        code += "_ = Attention(Parts, weight);\n"
    if '["tokens"]' in code:
        code = "Model model = Text();\n" + code
    return code


def main(page, out):
    blocks = pages.programs(page, "csharp", least=10)
    pages.write(out, _HEAD, _METHOD, [program(block) for block in blocks], " " * 8)


if __name__ == "__main__":
    main(*sys.argv[1:])
