"""Notebooks as pages: their texts, their code and what it printed. Figures of Addend's pages are drawn here, so that no script
has to run; those of matplotlib are stored as SVG."""

import base64
import html
import json
import posixpath
import re

import colours
import figures
import markdown_pages
from layout import escape

_TEXT = re.compile(r"<text\b[^>]*>([^<]*)</text>")
_FRAME = re.compile(r'<iframe srcdoc="([^"]*)"')


def _text(lines):
    return lines if isinstance(lines, str) else "".join(lines)


def _printed(text):
    return '<pre class="out"><code>%s</code></pre>' % escape(text.rstrip("\n"))


def _plot(svg):
    """A figure of matplotlib as an image, whose texts are its description. Being an image keeps its ids and styles from the
    page's."""
    told = " ".join(html.unescape(one) for one in _TEXT.findall(svg))
    data = base64.b64encode(svg.encode("utf-8")).decode("ascii")
    return '<figure class="plot"><img alt="%s" src="data:image/svg+xml;base64,%s"></figure>' % (escape(told), data)


class _Notebook:
    """The parts of a page, and the pages of Addend that the notebook shows."""

    def __init__(self, path, where):
        self.path = path
        self.where = where
        self.framed = []

    def cell(self, cell):
        source = _text(cell["source"])
        if cell["cell_type"] == "markdown":
            return markdown_pages.convert(source, self.path, self.where)[1]
        if cell["cell_type"] != "code":
            return ""
        return colours.block(source, "python") + "\n" + "\n".join(self.output(one) for one in cell["outputs"])

    def output(self, output):
        if output["output_type"] == "stream":
            return _printed(_text(output["text"]))
        data = output.get("data")
        if data is None:
            raise ValueError("%s stores an output of the kind %s" % (self.path, output["output_type"]))
        if "image/svg+xml" in data:
            return _plot(_text(data["image/svg+xml"]))
        framed = _FRAME.search(_text(data.get("text/html", "")))
        if framed is None:
            return _printed(_text(data["text/plain"]))
        self.framed.append(html.unescape(framed.group(1)))
        return '%s\n%s<p class="badge"><a href="%s">The figure as the notebook shows it</a>, which needs JavaScript.</p>' % (
            _printed(_text(data["text/plain"])), figures.figure(self.framed[-1]), posixpath.basename(self.page(len(self.framed))))

    def page(self, number):
        """The path of a page that the notebook shows."""
        return re.sub(r"\.ipynb$", "_%d.html" % number, self.path)


def build(site, path, text, where):
    notebook = _Notebook(path, where)
    cells = json.loads(text)["cells"]
    body = "\n".join(notebook.cell(cell) for cell in cells)
    title = markdown_pages.convert(_text(cells[0]["source"]), path, where)[0]
    origin = '<p class="badge">A notebook with stored outputs: <code>%s</code>.</p>' % escape(path)
    site.add(where[path], title, body.replace("</h1>", "</h1>\n" + origin, 1))
    for number, page in enumerate(notebook.framed, start=1):
        site.copy(notebook.page(number), page.encode("utf-8"))
        site.searched.append((notebook.page(number), title, figures.words(page)))
