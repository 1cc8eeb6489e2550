"""Figures of what a page of Addend tells, drawn without a script: bars, a map of pixels, coloured words."""

import base64
import json
import math
import re
import struct

from layout import escape

_DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)
_MOST = 12  # bars; the rest is one bar


def data_of(page):
    """The data that the scripts of a page draw; None where it has none."""
    found = _DATA.search(page)
    return json.loads(found.group(1)) if found else None


def _names(data):
    """All names in it, in order."""
    if isinstance(data, dict):
        own = [data["name"]] if isinstance(data.get("name"), str) else []
        return own + [name for value in data.values() for name in _names(value)]
    return [name for value in data for name in _names(value)] if isinstance(data, list) else []


def words(page):
    """The texts of a page of Addend, as HTML: its title and the names in its data."""
    title = re.search(r"<title>(.*?)</title>", page, re.DOTALL)
    data = data_of(page)
    tokens = data.get("tokens", []) if isinstance(data, dict) else []
    named = list(dict.fromkeys(_names(data) + [token.strip() for token in tokens if isinstance(token, str)]))
    return "<p>%s</p><p>%s</p>" % (title.group(1) if title else "", escape(", ".join(named)))


def figure(page):
    """A page of an explanation, or of a language model, as a figure."""
    data = data_of(page)
    if data is None:
        raise ValueError("a figure of a notebook has no data")
    parts = _generated(data) if "tokens" in data else _explanation(data)
    return '<figure class="drawn">%s</figure>\n' % "\n".join(parts)


def _number(value):
    return "not a number" if value is None else "%.4g" % value


def _signed(value):
    return "not a number" if value is None else "%+.4g" % value


def _size(value):
    return abs(value) if value is not None and math.isfinite(value) else 0.0


def _reference(data):
    """The name of the reference: what it is follows from whether the model gives it on the baseline, which older documents do
    not tell."""
    if data.get("reference_is_model_on_baseline") == "yes":
        return "reference (on the baseline)"
    reason = data.get("reference_reason")
    return "reference (which stands for the baseline%s)" % (": " + reason if reason else "")


def _noted(data):
    """Notes of a result; those of weight stand out."""
    weighs = data.get("warnings", [])
    return ['<p class="%s">%s</p>' % ("warning" if note in weighs else "badge", escape(note)) for note in data["notes"]]


def _explanation(data):
    if len(data["targets"]) != 1:
        raise ValueError("a figure of a notebook explains %d numbers, and this draws one" % len(data["targets"]))
    target, report = data["targets"][0], data["report"]
    names = [component["name"] for component in data["components"]]
    values = target["contributions"]
    caption = "%s is %s: %s %s, contributions %s, leftover %s" % (
        target["name"], _number(target["value"]), _reference(report), _number(target["reference"]),
        "not a number" if None in values else _number(math.fsum(values)), _number(target["leftover"]))
    parts = ["<figcaption>%s</figcaption>" % escape(caption)]
    image = data["image"]
    if image and len(values) == image["height"] * image["width"]:
        parts.append(_map(names, values, image))
    if data["kind"] == "text":
        parts.append(_text(names, values, " "))
    return parts + [_bars(names, values)] + _noted(report)


def _bars(names, values):
    order = sorted(range(len(values)), key=lambda k: -_size(values[k]))
    rows = [(names[k], values[k]) for k in order[:_MOST]]
    if len(order) > _MOST:
        rest = [values[k] for k in order[_MOST:]]
        rows.append(("%d more" % len(rest), None if None in rest else math.fsum(rest)))
    below = max([_size(value) for _, value in rows if value is not None and value < 0] or [0])
    whole = below + max([_size(value) for _, value in rows if value is not None and value > 0] or [0]) or 1
    lines = []
    for name, value in rows:
        size = _size(value)
        start = below if value is not None and value > 0 else below - size
        lines.append('<span>%s</span><span class="track"><i class="%s" style="left:%.2f%%;width:%.2f%%"></i></span><b>%s</b>' % (
            escape(name), "up" if value is not None and value > 0 else "down", 100 * start / whole, 100 * size / whole,
            _signed(value)))
    return '<div class="bars">%s</div>' % "\n".join(lines)


def _map(names, values, image):
    largest = max(map(_size, values)) or 1
    width, height = image["width"], image["height"]
    cells = []
    for k, (name, value) in enumerate(zip(names, values)):
        cells.append('<rect x="%d" y="%d" width="1" height="1" class="%s" fill-opacity="%.3f"><title>%s: %s</title></rect>' % (
            k % width, k // width, "up" if value is not None and value > 0 else "down", _size(value) / largest, escape(name),
            _signed(value)))
    return '<svg class="map" viewBox="0 0 %d %d" role="img" aria-label="contributions of the pixels">%s</svg>' % (
        width, height, "".join(cells))


def _text(tokens, values, between):
    """Tokens, each coloured by what it contributed, relative to the largest of them. between: what separates them."""
    largest = max(map(_size, values)) or 1
    marked = ['<span class="%s" style="--share:%.1f%%" title="%s">%s</span>' % (
        "up" if value is not None and value > 0 else "down", 65 * _size(value) / largest, _signed(value), escape(token))
        for token, value in zip(tokens, values)]
    return '<p class="told">%s</p>' % between.join(marked)


def _generated(data):
    """A language model: one line for each row, with the tokens that stand before it."""
    matrix = base64.b64decode(data["matrix"])
    matrix = struct.unpack("<%dd" % (len(matrix) // 8), matrix)
    tokens, rows = data["tokens"], data["rows"]
    if len(matrix) != len(rows) * len(tokens):
        raise ValueError("a figure has %d numbers for %d rows of %d tokens" % (len(matrix), len(rows), len(tokens)))
    parts = ["<figcaption>%s of each row, its %s and its leftover. Tokens in orange raise it and those in blue lower it, the "
             "more the stronger the colour.</figcaption>" % (escape(data["target"]), escape(_reference(data)))]
    for k, row in enumerate(rows):
        values = matrix[k * len(tokens):(k + 1) * len(tokens)]
        last = max([j for j, value in enumerate(values) if value] or [-1])
        parts.append('<h4><code>%s</code> %s <span class="badge">reference %s, leftover %s</span></h4>%s' % (
            escape(row.strip() or repr(row)), _number(data["values"][k]), _number(data["references"][k]),
            _number(data["leftovers"][k]), _text(tokens[:last + 1], values, "")))
    return parts + _noted(data)
