"""Makes a test of the programs that docs/csharp.md shows: each becomes a method. DocsPage.cs has what they speak of.

usage: generate_docs.py PAGE OUT
"""

import re
import sys

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
    code = re.sub(r'"(model\.pt|sample\.safetensors|folder)"', r'Here("\1")', code)
    if code.startswith("catch "):
        code = "try\n{\n    WithoutRule();\n}\n" + code
    if "Composition Attention(" in code:
        code += "_ = Attention(Parts, weight);\n"
    if '["tokens"]' in code:
        code = "Model model = Text();\n" + code
    return code


def main(page, out):
    with open(page, encoding="utf-8") as file:
        blocks = re.findall(r"```csharp\n(.*?)```", file.read(), re.DOTALL)
    # What speaks of a native library of the reader's own is tested with one: NativeModelTests.
    blocks = [block for block in blocks if "network." not in block]
    if len(blocks) < 10:
        sys.exit("%s shows %d programs only" % (page, len(blocks)))
    methods = []
    for number, block in enumerate(blocks, 1):
        lines = program(block).splitlines()
        methods.append(_METHOD % (number, "".join("        %s\n" % line if line else "\n" for line in lines)))
    with open(out, "w", encoding="utf-8") as file:
        file.write(_HEAD % "".join(methods))


if __name__ == "__main__":
    main(*sys.argv[1:])
