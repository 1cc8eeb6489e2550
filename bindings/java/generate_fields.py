"""Writes the value types of Java. A program of the build:

generate_fields.py fields.txt TEMPLATE... FILE...
"""

import pathlib
import sys

import blocks
import fields

# Types of fields: the type of the member, the expression that reads it from a record of JSON, and the text for what its
# getter returns.
_TYPES = {
    "count": ("long", 'JsonReader.count(record.get("{0}"))', "the number"),
    "index": ("int", '(int) JsonReader.count(record.get("{0}"))', "the position"),
    "number": ("double", 'JsonReader.number(record.get("{0}"))', "the number"),
    "flag": ("boolean", '(Boolean) record.get("{0}")', "whether it is so"),
    "text": ("String", 'JsonReader.text(record.get("{0}"))', "the text"),
    "optional text": ("String", 'JsonReader.text(record.get("{0}"))', "the text; empty for nothing"),
    "optional index": ("OptionalInt", 'JsonReader.index(record.get("{0}"))', "the position, or nothing"),
    "numbers": ("double[]", 'JsonReader.numbers(record.get("{0}"))', "a new array"),
    "seconds": ("Duration", "", "the time"),
    "texts": ("List<String>", 'JsonReader.texts(record.get("{0}"))', "one line each"),
}

# Expressions that read a field of the report, which is read field by field.
_REPORT = {
    "count": 'Math.round(number(results, "{0}"))',
    "number": 'number(results, "{0}")',
    "flag": 'number(results, "{0}") == 1',
    "text": 'text(results, "{0}")',
    "seconds": 'Duration.ofNanos(Math.round(number(results, "{0}") * 1e9))',
    "texts": "results.lines(AddendNative::addend_results_{1})",
}


def main(path, *files):
    templates, written = files[: len(files) // 2], files[len(files) // 2 :]
    records = fields.read(path)
    texts = {}
    for record in records.values():
        texts[record.name + "_comment"] = blocks.javadoc([blocks.escaped(record.says)])
        texts[record.name + "_members"] = "".join(member(field) for field in record.fields)
        texts[record.name + "_reads"] = "".join(reading(record, field) for field in record.fields)
        texts[record.name + "_getters"] = "\n".join(getter(field) for field in record.fields)
    for template, file in zip(templates, written):
        filled = blocks.fill(pathlib.Path(template).read_text(encoding="utf-8"), "fields", texts)
        pathlib.Path(file).write_text(filled, encoding="utf-8")


def name(field):
    return fields.name_in(field, "Java", blocks.camel)


def type_of(field):
    if field.type.startswith("list of "):
        element = field.type[8:]
        read = 'JsonReader.list(record.get("{0}"), %s::new)' % element
        return "List<%s>" % element, read, "in their order"
    return _TYPES[field.type]


def member(field):
    return "private final %s %s;\n" % (type_of(field)[0], blocks.camel(field.name))


def reading(record, field):
    read = _REPORT[field.type] if record.name == "Report" else type_of(field)[1]
    return "%s = %s;\n" % (blocks.camel(field.name), read.format(field.name, field.name[:-1]))


def getter(field):
    kind, _, returned = type_of(field)
    if field.words:
        returned = blocks.escaped(fields.words(field, "{{@code {}}}".format))
    value = blocks.camel(field.name) + (".clone()" if kind.endswith("[]") else "")
    lines = [blocks.escaped(field.says), "", "@return " + returned]
    return blocks.javadoc(lines) + "public %s %s() {\n  return %s;\n}\n" % (kind, name(field), value)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
