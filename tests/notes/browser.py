"""Pages as a browser shows them, with what their scripts write."""

import base64
import html
import json
import os
import re
import shutil
import subprocess
import tempfile
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_AT_ONCE = 60
_SECONDS = 240

# Gives the lines of a page in order: [whether it is in a closed section, the element's name, its text].
_SCRIPT = """
var SKIPPED = new Set("SCRIPT STYLE NOSCRIPT SVG CANVAS".split(" "));
function linesOf(page) {
  var lines = [], name = "", text = "", closed = false;
  function flush() { if (text.trim()) lines.push([closed, name, text.replace(/[ \\n]+/g, " ").trim()]); text = ""; }
  function visit(node, inClosed) {
    if (node.nodeType === 3) { text += node.data; return; }
    if (node.nodeType !== 1 || SKIPPED.has(node.tagName.toUpperCase()) || node.hidden) return;
    var style = page.defaultView.getComputedStyle(node).display, before = [name, closed];
    var block = !/^(inline|contents)$/.test(style) && !/^T[DH]$/.test(node.tagName);
    if (block) { flush(); name = node.tagName.toLowerCase(); closed = inClosed; }
    var closing = node.tagName === "DETAILS" && !node.open;
    for (var child of node.childNodes) visit(child, inClosed || closing && child.tagName !== "SUMMARY");
    if (/^T[DH]$/.test(node.tagName)) text += " ";
    if (block) { flush(); [name, closed] = before; }
  }
  visit(page.body, false);
  return lines;
}
addEventListener("load", function () {
  var frames = [...document.querySelectorAll("iframe")];
  var shown = frames.map(f => [f.contentDocument.title, linesOf(f.contentDocument)]);
  frames.forEach(f => f.remove());
  document.body.textContent = btoa(unescape(encodeURIComponent(JSON.stringify(shown))));
});
"""


class Shown(NamedTuple):
    """The text that a reader sees.

    Attributes:
        title: of the page.
        top: lines above the first section: what is known before any figure is read.
        open: all lines, but for those in closed sections.
        closed: the lines in those.
    """

    title: str
    top: str
    open: str
    closed: str


def find() -> Optional[str]:
    """The path of a browser; None where there is none."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


def shown(pages: Sequence[str]) -> List[Shown]:
    """Each page as it is when its scripts have run; many of them in one run of the browser."""
    found: List[Shown] = []
    for start in range(0, len(pages), _AT_ONCE):
        found += [_read(*one) for one in _run(pages[start : start + _AT_ONCE])]
    return found


def dom(address: str, *options: str) -> str:
    """A page as HTML when its scripts have run; options: further ones of the browser."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            find() or "", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--user-data-dir=" + os.path.join(folder, "profile"), "--timeout=%d" % (1000 * _SECONDS), "--dump-dom",
            *options, address,
        ]
        return subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, "HOME": folder},
            timeout=2 * _SECONDS, check=True,
        ).stdout.decode("utf-8")


def data_of(page: str) -> Dict[str, Any]:
    """The data that the script of a page reads."""
    return json.loads(_DATA.search(page).group(2))


def page_with(page: str, data: Dict[str, Any]) -> str:
    """The page with other data."""
    text = json.dumps(data).replace("<", "\\u003c")
    return _DATA.sub(lambda match: match.group(1) + text + match.group(3), page)


_DATA = re.compile(r'(<script type="application/json" id="data">)(.*?)(</script>)', re.DOTALL)


def _run(pages: Sequence[str]) -> List[Any]:
    frames = "".join('<iframe width="1000" srcdoc="%s"></iframe>' % html.escape(page) for page in pages)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "pages.html")
        with open(path, "w", encoding="utf-8") as file:
            file.write('<!DOCTYPE html><meta charset="utf-8"><body>%s<script>%s</script>' % (frames, _SCRIPT))
        written = dom("file://" + path)
    match = re.search(r"<body>\s*([A-Za-z0-9+/=]+)\s*</body>", written)
    if match is None:
        raise RuntimeError("the browser did not show the pages: " + written[:500])
    return json.loads(base64.b64decode(match.group(1)))


def _read(title: str, lines: Sequence[Any]) -> Shown:
    sections = [k for k, (_, name, _) in enumerate(lines) if name == "h2"]
    end = sections[0] if sections else len(lines)

    def joined(some: Sequence[Any], closed: bool) -> str:
        return "\n".join(text for own, _, text in some if own == closed)

    return Shown(title, joined(lines[:end], False), joined(lines, False), joined(lines, True))
