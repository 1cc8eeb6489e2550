"""Style, scales and texts of numbers for pages of plots. A page needs nothing beside itself."""

import html
import math

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2024; --soft: #60646c; --line: #d9d9e0; --page: #fcfcfd; --own: #0d74ce;
  --other: #8b8d98; --plain: #1c2024; --bad: #ce2c31; }
@media (prefers-color-scheme: dark) { :root { --ink: #edeef0; --soft: #b0b4ba; --line: #363a3f; --page: #111113;
  --own: #70b8ff; --other: #7d828a; --plain: #edeef0; --bad: #ff9592; } }
body { background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto;
  max-width: 1180px; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0 0 .3rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .3rem; }
p { margin: .3rem 0; max-width: 52rem; } .soft { color: var(--soft); }
svg { display: block; height: auto; width: 100%; }
text { fill: var(--ink); font: 13px system-ui, sans-serif; paint-order: stroke; stroke: var(--page); stroke-width: 4px; } text.soft { fill: var(--soft); font-size: 12px; }
text.bad { fill: var(--soft); font-style: italic; } text.own { fill: var(--own); font-weight: 600; }
line { stroke: var(--line); } rect.own, circle.own { fill: var(--own); } rect.other, circle.other { fill: var(--other); }
rect.plain { fill: var(--plain); } text.head { font-weight: 600; }
table { border-collapse: collapse; font-size: .9rem; } td { border-top: 1px solid var(--line); padding: .15rem 1rem .15rem 0; }
"""


def document(title, body, style=""):
    """A page in ASCII, with style of its own behind the common one."""
    page = (
        "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n<meta name=viewport content='width=device-width'>\n"
        "<title>%s</title>\n<style>%s</style>\n%s\n</html>\n" % (title, _STYLE + style, "\n".join(body))
    )
    return page.encode("ascii", "xmlcharrefreplace").decode()


class Axis:
    """A logarithmic scale over whole decades.

    Args:
        values: what has to fit; those that are not positive are drawn at its start.
        left, width: where it is, in units of the drawing; one that goes up has its lower end and a negative height.
    """

    def __init__(self, values, left, width):
        positive = [value for value in values if value > 0] or [1.0]
        self.first = math.floor(math.log10(min(positive)))
        self.last = max(math.ceil(math.log10(max(positive))), self.first + 1)
        self.left, self.width = left, width

    def place(self, value):
        if value <= 0:
            return self.left
        share = (math.log10(value) - self.first) / (self.last - self.first)
        return self.left + self.width * min(max(share, 0.0), 1.0)

    def ticks(self):
        """Powers of ten, as many as there is room for their names."""
        step = math.ceil((self.last - self.first) / (abs(self.width) // 50))
        return [10.0**power for power in range(self.first, self.last + 1, step)]


def which_time(results):
    """Times by the clock say nothing where more processes wanted to run than there are cores."""
    machine = results["machine"]
    return "clock" if max(machine["load"], results["load_at_end"]) <= machine["cores"] + 0.5 else "processor"


def kind_of(name):
    """The class of what is drawn for a method."""
    return "plain" if name.startswith("plain") else "own" if name.startswith("Addend") else "other"


def bar(axis, value, middle, kind):
    # Even the smallest value is visible.
    width = max(axis.place(value) - axis.left, 2.0)
    return "<rect class='%s' x='%.1f' y='%.1f' width='%.1f' height='12' rx='2' />" % (kind, axis.left, middle - 6, width)


def text(x, y, words, kind="", anchor="start"):
    return "<text x='%.1f' y='%.1f' class='%s' text-anchor='%s'>%s</text>" % (x, y, kind, anchor, html.escape(words))


def milliseconds(value):
    return "%s s" % digits(value / 1e3) if value >= 1e3 else "%s ms" % digits(value)


def mebibytes(value):
    return "%s GiB" % digits(value / 1024) if value >= 1024 else "under 0.1 MiB" if value < 0.1 else "%s MiB" % digits(value)


def factor(value):
    return "%sx" % digits(value)


def power(value):
    """1e-07 as 1e-7, 1e+10 as 1e10; what is nearly one as itself."""
    if value == 0 or 0.01 <= value < 1e4:
        return digits(value)
    mantissa, exponent = ("%.0e" % value).split("e")
    return "%se%d" % (mantissa, int(exponent))


def thousands(value):
    """Two significant digits of what may be large: 49,000."""
    return format(float("%.2g" % value), ",.0f") if value >= 10 else digits(value)


def digits(value):
    """Two significant digits, or the whole number where that has more."""
    if value == 0:
        return "0"
    places = max(0, 1 - math.floor(math.log10(abs(value))))
    text = "%.*f" % (places, value)
    return text.rstrip("0").rstrip(".") if "." in text else text


def shortened(reason, most=125):
    return reason if len(reason) <= most else reason[: most - 3] + "..."


def conditions(results):
    """On what and how the results were measured."""
    machine = results["machine"]
    peers = ", ".join("%s %s" % (name, version or "not given") for name, version in results["peers"].items())
    busy = "" if which_time(results) == "clock" else (
        " Others used the machine: times are those of the processor, not of the clock."
    )
    return "%s, %s thread%s, PyTorch %s, %s; load %s to %s on %s cores." % (
        machine["processor"], machine["threads"], "" if machine["threads"] == 1 else "s",
        machine["torch"], peers, machine["load"], results["load_at_end"], machine["cores"],
    ) + busy


def facts(results):
    """All that is known of the machine, as a table."""
    rows = [(name, ", ".join("%s=%s" % item for item in value.items()) if isinstance(value, dict) else value)
            for name, value in results["machine"].items()]
    rows.append(("seconds", results["seconds"]))
    cells = "".join("<tr><td>%s<td>%s" % (html.escape(str(name)), html.escape(str(value))) for name, value in rows)
    return "<h2>Machine</h2><table>%s</table>" % cells
