"""The reference of C#, made of the XML documentation that the compiler writes, and of the types in the sources."""

import re
import xml.etree.ElementTree as Xml

import colours
import csharp_sources
from layout import Name, escape

PAGE = "reference/csharp.html"
_ALIASES = {"System.String": "string", "System.Int32": "int", "System.Int64": "long", "System.Double": "double",
            "System.Boolean": "bool", "System.Object": "object", "System.Single": "float", "System.Void": "void"}
_KINDS = {"T": "type", "M": "method", "P": "property", "F": "field", "E": "event"}


def _type(text):
    """"System.Collections.Generic.IReadOnlyList{System.String}" -> "IReadOnlyList<string>"."""
    text = re.sub(r"[\w.]+", lambda m: _ALIASES.get(m.group(), m.group().rsplit(".", 1)[-1]), text)
    text = re.sub(r"System\.Nullable<(.*?)>", r"\1?", text.replace("{", "<").replace("}", ">"))
    return re.sub(r"``?\d+", "T", text.replace("@", "").replace(",", ", "))


class Entry:
    """One member of the documentation: M:Addend.Model.Load(System.String)."""

    def __init__(self, node):
        self.node = node
        self.id = node.get("name")
        self.kind = _KINDS[self.id[0]]
        path, _, arguments = self.id[2:].partition("(")
        path = re.sub(r"``?\d+", "", path)
        self.arguments = arguments.rstrip(")") if arguments else None
        if self.arguments:
            self.arguments = self.arguments.split(")~")[0]
        pieces = path.split(".")
        self.owner, self.name = (None, pieces[-1]) if self.kind == "type" else (pieces[-2], pieces[-1])

    @property
    def anchor(self):
        return escape(re.sub(r"[^\w.]", "_", self.id[2:]))

    def signature(self, names, declared):
        if self.kind == "type":
            return self.name
        title = self.owner if self.name == "#ctor" else "%s.%s" % (self.owner, self.name.replace("#", "."))
        kinds = [_type(one) for one in csharp_sources.pieces(self.arguments)] if self.arguments else []
        own = declared.type_of(self.owner, self.name, len(kinds))
        title = "%s %s" % (own, title) if own else title
        if self.kind != "method":
            return title
        given = ["%s %s" % pair for pair in zip(kinds, names)] if len(names) == len(kinds) else kinds
        return "%s(%s)" % (title, ", ".join(given))


def _text(node):
    """The inside of an element as HTML."""
    if node is None:
        return ""
    parts = [escape(node.text or "")]
    for child in node:
        if child.tag == "see":
            shown = child.get("cref") or child.get("langword") or child.get("href") or ""
            parts.append("<code>%s</code>" % escape(re.sub(r"\(.*\)|^\w:Addend\.|^\w:|``?\d+", "", shown)))
        elif child.tag in ("c", "paramref", "typeparamref"):
            parts.append("<code>%s</code>" % escape(child.get("name") or "".join(child.itertext())))
        elif child.tag == "code":
            lines = "".join(child.itertext()).strip("\n").splitlines()
            indent = min([len(line) - len(line.lstrip()) for line in lines if line.strip()] or [0])
            parts.append("</p>%s<p>" % colours.block("\n".join(line[indent:] for line in lines), "csharp"))
        else:
            parts.append(_text(child))
        parts.append(escape(child.tail or ""))
    return "".join(parts)


def _body(entry, entries):
    node = entry.node
    inherited = node.find("inheritdoc")
    other = entries.get(inherited.get("cref")) if inherited is not None and inherited.get("cref") else None
    rows = "".join("<dt>%s</dt><dd>%s</dd>" % (escape(one.get("name")), _text(one))
                   for one in node.findall("param") or (other.node.findall("param") if other else []))
    raised = "".join("<dt>%s</dt><dd>%s</dd>" % (escape(one.get("cref").rsplit(".", 1)[-1]), _text(one))
                     for one in node.findall("exception"))
    told = "<p>%s</p>" % _text(node.find("summary") if other is None else other.node.find("summary"))
    told += "<p>Returns: %s</p>" % _text(node.find("returns")) if node.find("returns") is not None else ""
    return told + ("<dl>%s</dl>" % rows if rows else "") + ("<dl>%s</dl>" % raised if raised else "")


def build(site, text, sources):
    """`sources`: the texts of all files of C#, which say what is public and of which type it is."""
    declared = csharp_sources.read(sources)
    entries = {}
    for node in Xml.fromstring(text).iter("member"):
        path = node.get("name")[2:]
        if path.startswith("Addend.") and not path.startswith("Addend.Native."):
            entry = Entry(node)
            if declared.is_public(entry.owner, entry.name):
                entries[node.get("name")] = entry
    types = sorted((one for one in entries.values() if one.kind == "type"), key=lambda one: one.name)
    parts = ["<h1>C#</h1>", "<p>Namespace <code>Addend</code>; made of the XML documentation of the assembly.</p>"]
    for one in types:
        parts.append('<h2 id="%s">%s</h2>%s' % (one.anchor, escape(one.name), _body(one, entries)))
        site.names.append(Name("C#", one.name, "%s#%s" % (PAGE, one.anchor), kind="type"))
        for member in entries.values():
            if member.owner != one.name:
                continue
            names = [param.get("name") for param in member.node.findall("param")]
            parts.append('<div class="entry" id="%s">%s%s</div>' % (
                member.anchor, colours.block(member.signature(names, declared), "csharp"), _body(member, entries)))
            name = one.name if member.name == "#ctor" else member.name
            site.names.append(Name("C#", name, "%s#%s" % (PAGE, member.anchor), one.name, member.kind))
    site.add(PAGE, "C#", "\n".join(parts))
