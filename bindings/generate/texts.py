"""Writes committed texts anew that repeat what a list says: the comments of the C interface, tables of documents.

texts.py policy_choices.txt fields.txt addend.h policies.md HEADER DOCUMENT
"""

import pathlib
import sys

import blocks
import fields
import policy

_COLUMNS = 120


def main(choices, listed, header, document, new_header, new_document):
    keys = policy.read(choices)
    records = fields.read(listed)
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
        ("Numbers of the report", "addend_results_report_number(", closed(numbers, flag=" 1 or 0.")),
        ("Texts of the report", "addend_results_report_text(", closed(texts)),
    ]
    rewrite(header, new_header, parts)
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
