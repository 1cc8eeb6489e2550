"""The reference of the C interface, made of addend_api.json."""

import re

import colours
from layout import Name, escape

PAGE = "reference/c.html"
# Functions whose comment lists the keys that they take, the members of C++ that pass them on, and what takes them in Python.
_KEYS = {
    "addend_context_options_set_policy": ("ContextOptions.Policy", "Context", "argument"),
    "addend_results_report_number": ("Results.report", "Results.report", "key"),
    "addend_results_report_text": ("Results.report_text", "Results.report", "key"),
}


def _linked(text, known):
    """Names of the interface in a text become links."""
    return re.sub(r"\b(?:addend|ADDEND)_\w+", lambda m: '<a href="#%s">%s</a>' % (known[m.group()], m.group())
                  if m.group() in known else m.group(), text)


def paragraphs(text, known):
    """Lines of a comment: those that are indented stay lines, under each other."""
    blocks, lines = [], []

    def flush():
        if lines:
            blocks.append("<p>%s</p>" % _linked(escape(" ".join(lines)), known))
            lines.clear()

    fixed = []
    for line in text.splitlines() + [""]:
        if line.startswith("  "):
            flush()
            fixed.append(line[2:])
            continue
        if fixed:
            blocks.append("<pre><code>%s</code></pre>" % _linked(escape("\n".join(fixed)), known))
            fixed = []
        if line.strip():
            lines.append(line.strip())
    flush()
    return "\n".join(blocks)


def _comment(said, known):
    parts = [paragraphs(said.get("text", ""), known)]
    for key, title in (("in", "In"), ("out", "Out"), ("errors", "Errors"), ("thread", "Thread")):
        if key in said:
            parts.append("<dl><dt>%s</dt><dd>%s</dd></dl>" % (title, paragraphs(said[key], known)))
    return "\n".join(parts)


def signature(one):
    given = ["%s %s" % (parameter["type"], parameter["name"]) for parameter in one["parameters"]] or ["void"]
    plain = "%s %s(%s)" % (one["returns"]["type"], one["name"], ", ".join(given))
    if len(plain) <= 90:
        return plain
    return "%s %s(\n    %s)" % (one["returns"]["type"], one["name"], ",\n    ".join(given))


def _parameters(one):
    rows = []
    for parameter in one["parameters"]:
        words = [parameter["direction"]] + [parameter[key] for key in ("ownership",) if key in parameter]
        words += ["may be NULL"] * bool(parameter.get("nullable"))
        words += ["%s elements" % parameter["count"]] if "count" in parameter else []
        rows.append("<dt>%s</dt><dd class=\"badge\">%s</dd>" % (escape(parameter["name"]), escape(", ".join(words))))
    return "<dl>%s</dl>" % "".join(rows) if rows else ""


def _entry(name, code, body, badge=""):
    return '<div class="entry" id="%s"><h3>%s <span class="badge">%s</span></h3>\n%s\n%s</div>' % (
        name, name, badge, colours.block(code, "c"), body)


def _type(one, known):
    kind = one["kind"]
    if kind == "callback":
        return _entry(one["name"], signature(one), _parameters(one) + _comment(one["comment"], known), "callback")
    if kind == "struct":
        fields = "\n".join("  %s %s;  /* %s */" % (f["type"], f["name"], f["comment"]) for f in one["fields"])
        return _entry(one["name"], "typedef struct %s {\n%s\n} %s;" % (one["name"], fields, one["name"]),
                      _comment(one["comment"], known), "struct")
    told = "<p>Released by %s.</p>" % _linked(one["release"], known) if kind == "handle" else \
        "<p>Lives as long as the callback that is given it.</p>" if kind == "opaque" else "<p>Of another header.</p>"
    return _entry(one["name"], "typedef struct %s %s;" % (one["name"], one["name"]), _comment(one["comment"], known) + told,
                  kind)


def _enum(one, known):
    lines = []
    for value in one["values"]:
        behind = "  /* %s */" % value["comment"].replace("\n", " ") if value["comment"] else ""
        lines.append("  %s = %d,%s" % (value["name"], value["value"], behind))
    return _entry(one["name"], "enum %s {\n%s\n};" % (one["name"], "\n".join(lines)), _comment(one["comment"], known), "enum")


def build(site, api):
    known = {one["name"]: one["name"] for key in ("functions", "types", "enums") for one in api[key]}
    for enum in api["enums"]:
        known.update({value["name"]: enum["name"] for value in enum["values"]})
    sections = []
    for one in api["functions"]:
        if one["section"] not in sections:
            sections.append(one["section"])
    parts = ["<h1>The C interface</h1>",
             "<p>Made of <code>addend.h</code> and <code>addend_ext.h</code>. The same as data: "
             "<a href=\"addend_api.json\">addend_api.json</a>.</p>",
             "<h2 id=\"section-conventions\">Conventions</h2><dl class=\"entry\">%s</dl>" % "".join(
                 "<dt>%s</dt><dd>%s</dd>" % (escape(key), escape(text)) for key, text in api["conventions"].items()),
             "<h2 id=\"section-types\">Types</h2>"] + [_type(one, known) for one in api["types"]]
    parts += ["<h2 id=\"section-enumerations\">Enumerations</h2>"] + [_enum(one, known) for one in api["enums"]]
    for k, section in enumerate(sections):
        parts.append('<h2 id="section-%d">%s</h2>' % (k, escape(section)))
        for one in api["functions"]:
            if one["section"] == section:
                parts.append(_entry(one["name"], signature(one), _parameters(one) + _comment(one["comment"], known),
                                    "since ABI %d" % one["since"]))
    site.add(PAGE, "The C interface", "\n".join(parts))
    names = [(one["name"], one["name"], kind) for key, kind in (("types", "type"), ("functions", "function"))
             for one in api[key]]
    names += [(value["name"], enum["name"], "constant") for enum in api["enums"] for value in enum["values"]]
    site.names += [Name("C", name, "%s#%s" % (PAGE, anchor), kind=kind) for name, anchor, kind in names]
    for function, (member, python, kind) in _KEYS.items():
        said = next(one["comment"]["text"] for one in api["functions"] if one["name"] == function)
        for key in re.findall(r"(?m)^  (\w+): ", said):
            site.names.append(Name("C", key, "%s#%s" % (PAGE, function), function, "argument"))
            site.names.append(Name("C++", key, "reference/cpp.html#" + member, member.replace(".", "::"), "argument"))
            if python in {name.full for name in site.names if name.language == "Python"}:
                site.names.append(Name("Python", key, "reference/python.html#" + python, python, kind))
