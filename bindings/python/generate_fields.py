"""Writes the types of what checks and reasons tell.

    generate_fields.py FIELDS MODULE
"""

import pathlib
import sys

import blocks  # in bindings/generate, as fields is
import fields

_HEAD = '''"""What checks and reasons tell. Generated from core/explain/fields.txt; do not edit."""

from typing import List, NamedTuple, Optional
'''

_TYPES = {
    "count": "int",
    "index": "int",
    "number": "float",
    "flag": "bool",
    "text": "str",
    "texts": "List[str]",
    "optional index": "Optional[int]",
    "optional text": "Optional[str]",
}


def main(path, module):
    types = [named_tuple(record) for record in fields.read(path).values() if record.in_python]
    pathlib.Path(module).write_text(_HEAD + "".join("\n\n" + text for text in types), encoding="utf-8")


def named_tuple(record):
    attributes = "".join(attribute(field) + "\n" for field in record.fields)
    declared = "".join("    %s: %s\n" % (field.name, type_of(field)) for field in record.fields)
    return 'class %s(NamedTuple):\n    """%s\n\n    Attributes:\n%s    """\n\n%s' % (
        record.name,
        record.says,
        attributes,
        declared,
    )


def type_of(field):
    return "List[%s]" % field.type[8:] if field.type.startswith("list of ") else _TYPES[field.type]


def attribute(field):
    says = field.says[:1].lower() + field.says[1:]
    if field.words:
        says = says[:-1] + ": " + fields.words(field, '``"{}"``'.format) + "."
    return blocks.wrap("%s: %s" % (field.name, says), 120, " " * 8, " " * 12)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
