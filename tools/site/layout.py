"""Frame of all pages of the site, and the links between them."""

import html
import os

# The pages of the menu: (title, pages); what is not there is linked from other pages.
MENU = [
    ("Begin", ["index.html", "docs/first_program.html", "docs/concepts.html", "gallery.html", "docs/results.html"]),
    ("Languages", ["docs/python.html", "docs/java.html", "docs/csharp.html", "docs/cpp.html", "docs/c_api.html",
                   "docs/from_python.html", "docs/from_export.html", "docs/from_onnx.html", "docs/transformers.html"]),
    ("Look up", ["words.html", "names.html", "reference/python.html", "reference/java.html", "reference/csharp.html",
                 "reference/cpp.html", "reference/c.html", "docs/ops.html", "docs/schemas/README.html"]),
    ("More", ["docs/policies.html", "docs/tracing.html", "docs/audit.html", "docs/eager.html", "docs/extending.html",
              "docs/building.html", "docs/services.html", "docs/plans.html", "docs/architecture.html",
              "docs/glossary.html", "docs/conformance.html"]),
]
# Names in the menu of pages whose title is longer.
NAMES = {
    "index.html": "What it is",
    "docs/from_python.html": "From Python to the others",
    "docs/from_export.html": "From torch.export",
    "docs/from_onnx.html": "From ONNX",
    "docs/transformers.html": "Hugging Face models",
    "docs/results.html": "Unexpected results",
    "docs/conformance.html": "Conformance",
    "docs/schemas/README.html": "JSON documents",
    "docs/eager.html": "Operators one by one",
    "docs/extending.html": "Rules of your own",
    "docs/tracing.html": "Programs",
    "docs/building.html": "Building and platforms",
    "reference/c.html": "C reference",
    "reference/cpp.html": "C++ reference",
    "reference/python.html": "Python reference",
    "reference/csharp.html": "C# reference",
    "reference/java.html": "Java reference",
    "words.html": "One word, five languages",
    "names.html": "Find a name",
    "docs/java.html": "Java",
    "docs/csharp.html": "C#",
    "docs/c_api.html": "C",
    "docs/cpp.html": "C++",
}

_FRAME = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="{root}style.css">
<link rel="icon" href="data:,">
</head>
<body>
<div class="menu"><input type="checkbox" id="menu"><label for="menu">Addend</label><nav>
{menu}
</nav></div>
<main class="{kind}">
{body}
</main>
</body>
</html>
"""


def escape(text):
    return html.escape(str(text), quote=True)


def relative(href, page):
    """A link from one page of the site to another, both as paths from its root."""
    path, mark, anchor = href.partition("#")
    link = os.path.relpath(path, os.path.dirname(page) or ".") if path else ""
    return link + mark + anchor


class Site:
    """Collects pages and names, then writes them."""

    def __init__(self, folder):
        self.folder = folder
        self.pages = {}  # path -> (title, body, kind)
        self.names = []  # Name, in the order of the references

    def add(self, path, title, body, kind=""):
        if path in self.pages:
            raise ValueError("%s is there twice" % path)
        self.pages[path] = (title, body, kind)

    def copy(self, path, data):
        target = os.path.join(self.folder, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as file:
            file.write(data)

    def _menu(self, page, also):
        lines = []
        for title, paths in MENU:
            lines.append("<p>%s</p><ul>" % escape(title))
            for path in paths:
                if path in self.pages or path in also:
                    name = NAMES.get(path) or self.pages[path][0]
                    here = ' class="here"' if path == page else ""
                    lines.append('<li><a%s href="%s">%s</a></li>' % (here, relative(path, page), escape(name)))
            lines.append("</ul>")
        return "\n".join(lines)

    def write(self, also=()):
        for path, (title, body, kind) in self.pages.items():
            root = os.path.relpath(".", os.path.dirname(path) or ".") + "/"
            text = _FRAME.format(title=escape(title), root=root, menu=self._menu(path, also), body=body, kind=kind)
            self.copy(path, text.encode("utf-8"))


class Name:
    """A name that a language has: `owner` is the type that it belongs to, "" for what stands alone. Of an "argument", which
    is given by name or as a text, it is the function; of a "key", what is indexed."""

    def __init__(self, language, name, href, owner="", kind="", text=""):
        self.language = language
        self.name = name
        self.href = href
        self.owner = owner
        self.kind = kind
        self.text = text

    @property
    def full(self):
        if self.kind == "key":
            return '%s["%s"]' % (self.owner, self.name)
        if self.kind == "argument":
            return "%s(%s)" % (self.owner, self.name + "=" if self.language == "Python" else '"%s"' % self.name)
        separator = "::" if self.language == "C++" else "."
        return self.owner + separator + self.name if self.owner else self.name
