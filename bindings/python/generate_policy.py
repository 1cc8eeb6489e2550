"""Writes the module of contexts, whose choices are those of a policy.

    generate_policy.py TEMPLATE CHOICES MODULE
"""

import pathlib
import sys

import blocks  # in bindings/generate, as policy is
import policy

_TYPES = {"one": "str", "some": "Union[str, Iterable[str]]", "whole": "int", "number": "float"}
_WIDTH = 112  # of what is indented by a function


def main(template, choices, module):
    keys = policy.read(choices)
    texts = {
        "arguments": "\n".join(argument(key) for key in keys),
        "fields": "\n".join("%s: Optional[%s]" % (key.name, _TYPES[key.kind]) for key in keys),
        "parameters": "\n".join("%s: Optional[%s] = None," % (key.name, _TYPES[key.kind]) for key in keys),
        "values": "\n".join('"%s": %s,' % (key.name, key.name) for key in keys),
    }
    filled = blocks.fill(pathlib.Path(template).read_text(encoding="utf-8"), "policy", texts)
    pathlib.Path(module).write_text(filled, encoding="utf-8")


def argument(key):
    says = key.says[:1].lower() + key.says[1:]
    return blocks.wrap("%s: %s %s." % (key.name, says, takes(key)), _WIDTH, "", "    ")


def takes(key):
    """Describes the values that a key takes, and its default."""
    if key.kind == "some":
        words = ", ".join(quote(value.name) for value in key.values)
        default = key.unset[1][:1].lower() + key.unset[1][1:-1] if key.unset else "``%s``" % key.default.split("+")
        return "Some of %s; an empty list: none. By default %s" % (words, default.replace("'", '"'))
    if key.kind != "one":
        return "By default " + (key.unset[1][:-1] if key.unset else "``%s``" % key.default)
    words = [quote(value.name) + (" (the default)" if value.name == key.default else "") for value in key.values]
    text = ", ".join(words[:-1]) + " or " + words[-1]
    numbers = [value for value in key.values if value.number]
    if numbers:
        text += ", with a number as in " + quote(policy.spelled(numbers[0]))
    return text


def quote(word):
    return '``"%s"``' % word


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
