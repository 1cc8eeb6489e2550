"""Writes committed texts anew that repeat what a list says: the comments of the C interface, tables of documents.

texts.py policy_choices.txt fields.txt request_options.txt addend.h addend.hpp policies.md HEADER WRAPPER DOCUMENT
"""

import pathlib
import sys

import blocks
import fields
import policy
import request

_COLUMNS = 120

# Names in sentences on options, as the C interface spells them; others are options and stay as they are.
_IN_C = {
    "attribute": "addend_model_attribute",
    "cancelled": "CANCELLED",
    "decompose": "addend_model_decompose",
    "forget_references": "addend_model_forget_references",
    "interactions": "addend_model_interactions",
    "job": "addend_job_plan",
    "live": "",
    "plan": "addend_model_plan",
    "probe": "addend_request_add_probe",
    "record": "addend_model_record",
    "reference_error": '"reference_error"',
    "trace": "addend_trace_begin",
    "trace_attribute": "addend_trace_begin_attribution",
    "trace_baseline": "addend_trace_baseline",
}

# Parameters of the methods of addend.hpp, and the text that is set.
_IN_CPP = {
    "flag": ("bool {0} = true", '{0} ? "true" : "false"'),
    "bytes": ("int64_t {0}", "std::to_string({0})"),
}


def main(choices, listed, asked, header, wrapper, document, new_header, new_wrapper, new_document):
    keys = policy.read(choices)
    records = fields.read(listed)
    options = request.read(asked)
    report = records["Report"].fields
    texts = [field for field in report if field.type == "text"]
    numbers = [field for field in report if field.type in ("count", "number", "seconds", "flag")]
    check = described(records["TraceCheck"].fields) + " * Fields of a finding:\n" + closed(records["Finding"].fields)
    decision = described(records["Decision"].fields) + " * Fields of a reason:\n" + closed(records["Reason"].fields)
    parts = [
        ("Keys of the policy", '"KEY@SELECTOR" sets', "".join(paragraph(key) for key in keys)),
        ("Fields of a trace check", "addend_model_check_trace(", check),
        ("Fields of a requirement", "addend_model_requirements(", closed(records["Requirement"].fields)),
        ("Fields of a decision", "addend_attribution_reasons(", decision),
        ("in: key and value:", "errors: INVALID_ARGUMENT for other keys", "".join(map(option, options))),
        ("Numbers of the report", "addend_results_report_number(", closed(numbers, flag=" 1 or 0.")),
        ("Texts of the report", "addend_results_report_text(", closed(texts)),
    ]
    rewrite(header, new_header, parts)
    methods = "".join(method(own) for own in options if own.names.get("C++") != "-")
    rewrite(wrapper, new_wrapper, [("// Begin: options", "// End: options", methods)])
    # The values of other keys have formulas, which the document writes out.
    values = [key for key in keys if key.name in ("missing_rule", "on_failure", "check")]
    tables = [("<!-- Begin: keys", "<!-- End", table(keys)), ("<!-- Begin: values", "<!-- End", values_table(values))]
    rewrite(document, new_document, tables)


def rewrite(path, new_path, parts):
    """Writes a text in which each part, told by lines (begin, end, body), is new."""
    text = pathlib.Path(path).read_text(encoding="utf-8")
    for begin, end, body in parts:
        text = blocks.between(text, begin, end, body)
    pathlib.Path(new_path).write_text(text, encoding="utf-8")


def paragraph(key):
    since = "" if key.since == "1" else " Since ABI %s." % key.since
    text = "%s: %s. %s%s" % (key.name, takes(key), key.says, since)
    return blocks.wrap(text, _COLUMNS, " *   ", " *     ") + "\n"


def option(own):
    values = "%s. " % ", ".join(value for value, _ in own.values) if own.values else ""
    unit = " In seconds." if own.type == "seconds" else ""
    says = request.told(own, lambda name: _IN_C.get(name, name))
    text = "%s: %s%s%s" % (own.key, values, says[0], unit)
    return blocks.wrap(" ".join([text] + says[1:]), _COLUMNS, " *   ", " *     ") + "\n"


def method(own):
    declared, value = _IN_CPP.get(own.type, ("const std::string& {0}", "{0}"))
    says = request.told(own, lambda name: _IN_C.get(name, name))[0]
    says += " One of %s." % ", ".join('"%s"' % value for value, _ in own.values) if own.values else ""
    return "%s\n  Request& %s(%s) { return Option(\"%s\", %s); }\n" % (
        blocks.wrap(says, _COLUMNS, "  // "),
        request.name_in(own, "C++", blocks.pascal),
        declared.format(own.parameter),
        own.key,
        value.format(own.parameter),
    )


def described(listed, flag=""):
    """Fields, a paragraph each. flag: how a flag is told."""
    units = {"seconds": " In seconds.", "flag": flag}
    paragraphs = []
    for field in listed:
        says = field.says
        if field.words:
            says = "%s: %s." % (says[:-1], fields.words(field, '"{}"'.format))
        text = "%s: %s%s" % (field.name, says, units.get(field.type, ""))
        paragraphs.append(blocks.wrap(text, _COLUMNS - 3, " *   ", " *     ") + "\n")
    return "".join(paragraphs)


def closed(listed, flag=""):
    """Fields, and the end of their comment."""
    return described(listed, flag)[:-1] + " */\n"


def takes(key, quote="%s"):
    """All that a key takes, the default first."""
    words = [quote % word for word in policy.choices(key)]
    if key.unset:
        words[0] += " (%s)" % (key.unset[1][:1].lower() + key.unset[1][1:-1])
    if key.kind in ("whole", "number"):
        return words[0] + ", or a " + {"whole": "whole number", "number": "number"}[key.kind]
    if key.kind == "some":
        kinds = ", ".join(quote % value.name for value in key.values)
        return "%s, or some of %s joined by %s" % (", ".join(words), kinds, quote % "+")
    return ", ".join(words)


def table(keys):
    lines = ["| key | takes, the default first | decides | by operator |", "|---|---|---|---|"]
    for key in keys:
        by_operator = "yes" if key.scope == "operators" else ""
        lines.append("| `%s` | %s | %s | %s |" % (key.name, takes(key, "`%s`"), key.says[:-1], by_operator))
    return "\n".join(lines) + "\n"


def values_table(keys):
    lines = ["| key | value | what it does |", "|---|---|---|"]
    for key in keys:
        for value in key.values:
            lines.append("| `%s` | `%s` | %s |" % (key.name, value.name, value.says[:-1]))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
