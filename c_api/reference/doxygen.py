"""Writes a header with its comments in the form that Doxygen reads. The code stays as it is, token for token.

usage: doxygen.py API HEADER OUT
"""

import json
import re
import sys

import comments
from header import text_of

_COMMENT = re.compile(r"/\*(?:[^*]|\*(?!/))*\*/")
_DECLARED = re.compile(r"\s*(?:typedef struct (\w+)|typedef [^;({]*\([^)*]*\*\s*(\w+)\)|enum (\w+)|ADDEND_API[^(;]*?(addend_\w+)\s*\(|"
                       r"#define (ADDEND_\w+) )")


def escaped(text):
    """Signs that Doxygen would take for commands or HTML."""
    return re.sub(r"([@\\<>&#%])", r"\\\1", text)


def written(lines):
    return "/**\n" + "".join(" * %s\n" % line if line else " *\n" for line in lines) + " */"


def _owner(parameter):
    words = [parameter["ownership"]] if "ownership" in parameter else []
    words += ["may be NULL"] if parameter.get("nullable") else []
    words += ["%s elements" % parameter["count"]] if "count" in parameter else []
    return " (%s)" % ", ".join(words) if words else ""


def converted(said, one):
    """The lines of a comment, with one @param for each parameter."""
    lines = []
    for line in said.get("text", "").splitlines():
        # Indented text keeps its lines.
        lines.append("    " + line if line.startswith("  ") else escaped(line))
    for parameter in one.get("parameters", []):
        lines.append("@param[%s] %s%s" % (parameter["direction"], parameter["name"], _owner(parameter)))
    for part, title in (("in", "In"), ("out", "Out"), ("errors", "Errors"), ("thread", "Thread")):
        if part in said:
            first, *more = said[part].splitlines()
            lines += ["@par %s" % title, escaped(first)] + [escaped(line.strip()) for line in more]
    if "since" in one:
        lines.append("@since ABI %d" % one["since"])
    return lines


def convert(text, described):
    out, end = [], 0
    for match in _COMMENT.finditer(text):
        out.append(text[end:match.start()])
        end = match.end()
        said = text_of(match.group())
        declared = _DECLARED.match(text, end)
        name = next(filter(None, declared.groups()), None) if declared else None
        line = text[text.rfind("\n", 0, match.start()) + 1:match.start()]
        if said.startswith("----") or "extern" in said or said.startswith("ADDEND_"):
            out.append(match.group())
        elif line.strip():  # behind a value or a field
            out.append("/**< %s */" % escaped(said))
        elif not out[0].strip() and len(out) == 1:
            out.append(written(["@file"] + [escaped(one) for one in said.splitlines()]))
        else:
            out.append(written(converted(comments.parts(said), described.get(name, {}))))
    return "".join(out) + text[end:]


def main(api, header, out):
    with open(api, encoding="utf-8") as file:
        data = json.load(file)
    described = {one["name"]: one for key in ("functions", "types", "enums", "constants") for one in data[key]}
    with open(header, encoding="utf-8") as file:
        text = file.read()
    with open(out, "w", encoding="utf-8") as file:
        file.write(convert(text, described))


if __name__ == "__main__":
    main(*sys.argv[1:])
