"""Writes the policy as Java. A program of the build:

generate_policy.py templates/Policy.java policy_choices.txt Policy.java
"""

import pathlib
import sys

import blocks
import policy


def main(template, choices, path):
    keys = policy.read(choices)
    texts = {
        "enumerations": "\n".join(enumeration(key) for key in policy.enumerations(keys)),
        "methods": "\n".join(method for key in keys for method in methods(key)),
    }
    filled = blocks.fill(pathlib.Path(template).read_text(encoding="utf-8"), "policy", texts)
    pathlib.Path(path).write_text(filled, encoding="utf-8")


def enumeration(key):
    lines = [blocks.escaped(key.about_type[0])] + [line for more in key.about_type[1:] for line in ("", "<p>" + blocks.escaped(more))]
    values = []
    for value in key.values:
        number = " Takes a number, its %s: %s unless given." % (value.number, value.default) if value.number else ""
        constant = blocks.javadoc([blocks.escaped(value.says) + number]) + value.name.upper()
        values.append("".join("  " + line + "\n" for line in constant.split("\n"))[:-1])
    return blocks.javadoc(lines) + "public enum %s {\n%s\n}\n" % (key.enum, ",\n".join(values))


def methods(key):
    name = blocks.camel(key.name)
    if key.kind == "some":
        yield method(key, name, ["%s... kinds" % key.enum], "words(kinds)", ["@param kinds the kinds; without any: none"])
    elif key.kind == "whole":
        yield method(key, name, ["int " + name], "Integer.toString(%s)" % name, ["@param %s the number" % name])
    elif key.kind == "number":
        yield method(key, name, ["double " + name], "Double.toString(%s)" % name, ["@param %s the number" % name])
    else:
        choice = "%s %s" % (key.enum, name)
        yield method(key, name, [choice], "word(%s)" % name, ["@param %s the choice" % name])
        if any(value.number for value in key.values):
            parameters = ["@param %s a choice that takes a number" % name, "@param number its number"]
            with_number = 'word(%s) + "(" + number + ")"' % name
            yield method(key, name, [choice, "double number"], with_number, parameters)


def method(key, name, declared, value, parameters):
    lines = [blocks.escaped(key.says), ""] + parameters + ["@return the changed copy"]
    return blocks.javadoc(lines) + 'public Policy %s(%s) {\n  return with("%s", %s);\n}\n' % (
        name,
        ", ".join(declared),
        key.name,
        value,
    )


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
