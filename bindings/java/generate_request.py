"""Writes the requests of Java, whose methods for options are generated, and the enumerations that these take. A program
of the build:

generate_request.py templates/Request.java request_options.txt Request.java ENUMERATION.java...
"""

import pathlib
import sys

import blocks
import request

# Types of options: the declaration of the parameter, its sentence, what is checked, and the text that is set.
_TYPES = {
    "flag": ("boolean {0}", "whether it is so; not unless given", "", "String.valueOf({0})"),
    "bytes": (
        "long {0}",
        "how many",
        "  if ({0} < 0) {{\n"
        '    throw new IllegalArgumentException("{0} is " + {0} + ", a negative number");\n'
        "  }}\n",
        "String.valueOf({0})",
    ),
    "seconds": ("Duration {0}", "the time", "", "String.valueOf({0}.toNanos() / 1e9)"),
    "text": ("String {0}", "the text; {{@code null}} for none", "", '{0} == null ? "" : {0}'),
}
_CHOICE = ("%s {0}", "the choice; at the beginning {{@link %s#%s}}", '  Objects.requireNonNull({0}, "{0}");\n', "{0}.text()")

# Links that stand for names in sentences on options; others are options.
_LINKS = {
    "attribute": "Model#attribute(Request)",
    "cancelled": "AddendException.Code#CANCELLED",
    "decompose": "Model#decompose(Request)",
    "forget_references": "Model#forgetReferences()",
    "interactions": "Model#interactions(Request)",
    "job": "Job#plan",
    "live": "",
    "plan": "Model#plan(Request)",
    "probe": "#probe",
    "record": "Model#record(Request)",
    "reference_error": "Report#referenceError()",
    "trace": "TracingScope",
    "trace_attribute": "AttributionScope",
    "trace_baseline": "LiveScope#baseline",
}


_ENUMERATION = """\
// Generated from core/explain/request_options.txt; do not edit.
package dev.addend;

import java.util.Locale;

%spublic enum %s {
%s;

  String text() {
    return name().toLowerCase(Locale.ROOT);
  }
}
"""


def main(template, path, written, *enumerations):
    options = request.read(path)
    for option in options:
        _LINKS[option.key] = _LINKS.get(option.key) or "#" + name(option)
    texts = {"methods": "\n".join(map(method, options))}
    filled = blocks.fill(pathlib.Path(template).read_text(encoding="utf-8"), "request", texts)
    pathlib.Path(written).write_text(filled, encoding="utf-8")
    choices = [option for option in options if option.values]
    for option, file in zip(choices, enumerations):
        pathlib.Path(file).write_text(enumeration(option), encoding="utf-8")


def name(option):
    return request.name_in(option, "Java", blocks.camel)


def link(word):
    return "{@link %s}" % _LINKS[word] if _LINKS[word] else ""


def told(text):
    return blocks.escaped(request.spelled_out(text, link)).replace("{@link #", "{@link Request#")


def enumeration(option):
    values = [blocks.javadoc([told(means)]) + value.upper() for value, means in option.values]
    constants = ",\n".join("\n".join("  " + line for line in value.split("\n")) for value in values)
    return _ENUMERATION % (blocks.javadoc([told(option.says)]), option.type, constants)


def method(option):
    kind = _TYPES.get(option.type)
    if kind is None:
        declared, says, check, value = _CHOICE
        kind = (declared % option.type, says % (option.type, option.default.upper()), check, value)
    parameter = blocks.camel(option.parameter)
    declared, says, check, value = (text.format(parameter) for text in kind)
    lines = [blocks.escaped(" ".join(request.told(option, link, with_values=False))), ""]
    lines += ["@param %s %s" % (parameter, says), "@return the changed copy"]
    return blocks.javadoc(lines) + 'public Request %s(%s) {\n%s  return option("%s", %s);\n}\n' % (
        name(option),
        declared,
        check,
        option.key,
        value,
    )


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
