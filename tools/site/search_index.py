"""The texts of all pages in one script, which search.js reads into an index when somebody searches.

The script sets `addendPages`: [[page, title, weight, [[anchor, heading, text], ...]], ...]. A page is cut at its headings and at
the entries of references, so that what is found leads to its place.
"""

import html.parser
import json
import re

_HEADINGS = ("h1", "h2", "h3", "h4")
# Elements that are cut out with an anchor of their own: entries of our references, words, members of javadoc's pages.
_ENTRIES = {"entry", "word", "detail"}
# Elements whose texts stand elsewhere too, or are none: javadoc's tables of members are its members once more.
_SKIPPED_TAGS = ("script", "style", "noscript", "nav", "header", "footer")
_SKIPPED_CLASSES = {"summary", "sub-nav", "inheritance"}
_EMPTY = ("area", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr")
# Elements within a word or a line.
_INLINE = ("a", "b", "code", "em", "i", "mark", "small", "span", "strong", "sub", "sup", "wbr")

# How much a match on a page counts, by the beginning of its path: guides come before references, references before files.
_WEIGHTS = (("source/", 0.05), ("reference/", 0.15), ("CHANGELOG", 0.3), ("docs/conformance", 0.3), ("docs/architecture", 0.6),
            ("docs/seeds", 0.3), ("docs/ops", 0.6), ("benchmarks/", 0.6), ("tests/", 0.4), ("gallery/", 0.5))


class _Cut(html.parser.HTMLParser):
    """A page as sections: [anchor, heading, text]."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.sections = [["", "", ""]]
        self._skipped = None  # the tag of a skipped element, while in it
        self._depth = 0  # elements of that tag that are open in it
        self._heading = None  # the tag of a heading, while in it
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        if self._skipped:
            self._depth += tag == self._skipped
            return
        given = dict(attributes)
        classes = set((given.get("class") or "").split())
        if tag in _SKIPPED_TAGS or classes & _SKIPPED_CLASSES:
            if tag not in _EMPTY:
                self._skipped, self._depth = tag, 1
            return
        anchor = given.get("id")
        if tag in _HEADINGS and (anchor or tag == "h1"):
            self.sections.append([anchor or "", "", ""])
            self._heading = tag
        elif anchor and classes & _ENTRIES:
            self.sections.append([anchor, anchor.replace("-", " ") if "word" in classes else anchor, ""])
        elif tag not in _INLINE:
            self._add(" ")

    def handle_endtag(self, tag):
        if self._skipped:
            self._depth -= tag == self._skipped
            if not self._depth:
                self._skipped = None
        elif tag == self._heading:
            self._heading = None
        elif tag not in _INLINE:
            self._add(" ")

    def handle_data(self, data):
        if not self._skipped:
            self._add(data)

    def _add(self, text):
        self.sections[-1][1 if self._heading else 2] += text


def sections(page):
    """[[anchor, heading, text]] of what a page has to read."""
    found = [[anchor, _tidy(heading), _tidy(text)] for anchor, heading, text in _Cut(page).sections]
    return [one for one in found if one[1] or one[2]]


def _tidy(text):
    return re.sub(r"\s+", " ", text).strip()


def _weight(path):
    return next((weight for beginning, weight in _WEIGHTS if path.startswith(beginning)), 1)


def build(site):
    """Pages of the site, and those that others wrote, which site.searched names."""
    pages = [[path, title, _weight(path), sections(body)] for path, (title, body, _) in site.pages.items()]
    pages += [[path, title, _weight(path), sections(body)] for path, title, body in site.searched]
    text = json.dumps(pages, ensure_ascii=False, separators=(",", ":"))
    site.copy("search/pages.js", ("var addendPages = %s;\n" % text).encode("utf-8"))
