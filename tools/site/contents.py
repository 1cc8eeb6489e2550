"""The table of contents of a long page."""

import re

_HEADING = re.compile(r'<h([23])\b[^>]*\bid="([^"]+)"[^>]*>(.*?)</h\1>', re.DOTALL)
# A page is long from so many headings and so many letters on.
_HEADINGS = 3
_LETTERS = 5000

_FRAME = """<nav class="contents" aria-label="On this page">
<input type="checkbox" class="toggle" id="site-contents"><label for="site-contents">On this page</label>
%s
</nav>"""


def _plain(text):
    return re.sub(r"<[^>]*>", "", text).strip()


def _list(items):
    return "<ul>%s</ul>" % "\n".join(items) if items else ""


def _item(anchor, text, below=()):
    return '<li><a href="#%s">%s</a>%s</li>' % (anchor, text, _list(below))


def of(body):
    """The table as HTML; empty where a page is short."""
    headings = [(level, anchor, _plain(text)) for level, anchor, text in _HEADING.findall(body)]
    if len(headings) < _HEADINGS or len(_plain(body)) < _LETTERS:
        return ""
    sections = []  # (anchor, text, items below it)
    for level, anchor, text in headings:
        if level == "2" or not sections:
            sections.append((anchor, text, []))
        else:
            sections[-1][2].append(_item(anchor, text))
    return _FRAME % _list([_item(*section) for section in sections])
