"""Frame of all pages of the site, and the links between them."""

import html
import os

import contents

# The pages of the menu: (title, pages); what is not there is linked from other pages.
MENU = [
    ("Begin", ["index.html", "docs/first_program.html", "docs/concepts.html", "gallery.html", "docs/results.html"]),
    ("Explain", ["docs/reasons.html", "docs/interactions.html", "docs/plots.html", "docs/policies.html", "docs/jobs.html",
                 "docs/plans.html", "docs/services.html", "docs/audit.html", "docs/transformers.html", "docs/gpu.html"]),
    ("Notebooks", ["docs/notebooks/README.html", "docs/notebooks/table.html", "docs/notebooks/image.html",
                   "docs/notebooks/text.html", "docs/notebooks/speaker.html", "docs/notebooks/language_model.html",
                   "docs/notebooks/credit.html", "docs/notebooks/time_series.html", "docs/notebooks/recommender.html",
                   "docs/notebooks/survival.html"]),
    ("Come from", ["docs/from_captum.html", "docs/from_shap.html", "docs/from_pydec.html", "docs/from_python.html",
                   "docs/from_export.html", "docs/from_onnx.html", "docs/djl.html"]),
    ("Languages", ["docs/python.html", "docs/java.html", "docs/csharp.html", "docs/cpp.html", "docs/c_api.html"]),
    ("Look up", ["words.html", "names.html", "docs/glossary.html", "reference/python.html", "reference/java.html",
                 "reference/csharp.html", "reference/cpp.html", "reference/c.html", "docs/ops.html",
                 "docs/onnx_operators.html", "docs/schemas/README.html"]),
    ("Measured", ["benchmarks/README.html", "benchmarks/faithfulness/README.html", "benchmarks/peers/README.html",
                  "docs/conformance.html"]),
    ("More", ["docs/README.html", "docs/tracing.html", "docs/eager.html", "docs/extending.html", "docs/building.html",
              "docs/architecture.html", "CONTRIBUTING.html", "CHANGELOG.html"]),
]
# Names in the menu of pages whose title is longer.
NAMES = {
    "index.html": "What it is",
    "docs/README.html": "All pages",
    "docs/reasons.html": "Reasons",
    "docs/interactions.html": "Interactions",
    "docs/plots.html": "Plots",
    "docs/jobs.html": "Jobs over data sets",
    "docs/notebooks/README.html": "All notebooks",
    "docs/notebooks/table.html": "A table",
    "docs/notebooks/image.html": "An image",
    "docs/notebooks/text.html": "A text",
    "docs/notebooks/speaker.html": "What was generated",
    "docs/notebooks/language_model.html": "A chat",
    "docs/notebooks/credit.html": "Credit",
    "docs/notebooks/time_series.html": "A time series",
    "docs/notebooks/recommender.html": "A recommender",
    "docs/notebooks/survival.html": "Survival",
    "docs/from_captum.html": "Captum",
    "docs/from_shap.html": "SHAP",
    "docs/from_pydec.html": "PyDec",
    "docs/from_python.html": "Python, to the others",
    "docs/from_export.html": "torch.export",
    "docs/from_onnx.html": "ONNX",
    "docs/djl.html": "DJL",
    "docs/ops.html": "Operators",
    "docs/onnx_operators.html": "Operators of ONNX",
    "benchmarks/README.html": "Benchmarks",
    "benchmarks/faithfulness/README.html": "Faithfulness",
    "benchmarks/peers/README.html": "Beside its peers",
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
<html lang="en" data-root="{root}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="{root}style.css">
<link rel="icon" href="data:,">
<script src="{root}site.js"></script>
</head>
<body>
<input type="checkbox" class="toggle" id="site-menu" aria-label="Menu">
<header class="top">
<label for="site-menu" title="Menu">&#9776;</label>
<a class="brand" href="{root}index.html">Addend</a>
{search}
<button type="button" class="scripted" id="site-theme" title="Light or dark" aria-label="Light or dark">&#9680;</button>
</header>
<div class="frame">
<nav class="menu" aria-label="Pages">
{menu}
</nav>
<div class="page">
{contents}
<main class="{kind}">
{body}
</main>
</div>
</div>
</body>
</html>
"""

_SEARCH = """<div class="search scripted" role="search">
<input type="search" id="site-search" placeholder="Search all pages ( / )" aria-label="Search all pages" autocomplete="off"
  spellcheck="false">
<section id="site-found" aria-label="Found" hidden></section>
</div>
<script src="{root}search.js" defer></script>"""


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
        self.searched = []  # (path, title, HTML) of pages that are there without `add`, and are found too

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

    def write(self, also=(), searched=False):
        """searched: whether the site has what its search needs."""
        for path, (title, body, kind) in self.pages.items():
            root = os.path.relpath(".", os.path.dirname(path) or ".") + "/"
            text = _FRAME.format(title=escape(title), root=root, menu=self._menu(path, also), body=body, kind=kind,
                                 contents=contents.of(body) if path != "index.html" else "",
                                 search=_SEARCH.format(root=root) if searched else '<span class="search"></span>')
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
