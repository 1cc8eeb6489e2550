"""One page of plots, which needs nothing beside itself."""

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

_ROW = 24
_TOP = 44
_LABELS = 262
_WIDTH = 1160
# Left edge and width of each panel's axis; behind it there is room for the number.
_PANELS = {"time": (_LABELS, 200), "memory": (_LABELS + 375, 110), "error": (_LABELS + 615, 150)}


def render(results):
    """The page of what `measure.py` found."""
    machine = results["machine"]
    time = which_time(results)
    body = [
        "<h1>Addend beside its peers</h1>",
        "<p>What it takes to say how much each of N parts of an input contributes to one output, on the same networks, "
        "inputs and threads. All scales are logarithmic; shorter bars, and errors further left, are better.</p>",
        "<p class=soft>%s</p>" % html.escape(_conditions(results)),
    ]
    for network in results["networks"].values():
        body.append("<h2>%s</h2>" % html.escape(network["title"]))
        body.append(_plots(network["methods"], time))
    body.append(_legend())
    body.append(_facts(machine, results))
    return (
        "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n<meta name=viewport content='width=device-width'>\n"
        "<title>Addend beside its peers</title>\n<style>%s</style>\n%s\n</html>\n" % (_STYLE, "\n".join(body))
    )


class Axis:
    """A logarithmic scale over whole decades.

    Args:
        values: what has to fit; those that are not positive are drawn at its start.
        left, width: where it is, in units of the drawing.
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
        step = math.ceil((self.last - self.first) / (self.width // 50))
        return [10.0**power for power in range(self.first, self.last + 1, step)]


def _plots(entries, key):
    """Time, memory and completeness error of each method, one row each."""
    able = {name: entry for name, entry in entries.items() if "reason" not in entry}
    plain = able["plain run"][key]["median"]
    height = _TOP + _ROW * len(entries) + 6
    parts = ["<svg viewBox='0 0 %d %d' role='img' aria-label='time, memory and error of each method'>" % (_WIDTH, height)]
    axes = {}
    for panel, title, values, form in (
        ("time", "time", [1e3 * entry[key]["median"] for entry in able.values()], milliseconds),
        ("memory", "peak memory", [max(entry["peak_mib"], 0.1) for entry in able.values()], mebibytes),
        ("error", "completeness error",
         [max(entry["completeness_error"], 1e-9) for entry in able.values() if "completeness_error" in entry], power),
    ):
        axis = axes[panel] = Axis(values, *_PANELS[panel])
        parts.append(_text(axis.left, 14, title, "head"))
        for tick in axis.ticks():
            place = axis.place(tick)
            parts.append("<line x1='%.1f' x2='%.1f' y1='%d' y2='%d' />" % (place, place, _TOP - 6, height - 4))
            parts.append(_text(place, _TOP - 12, form(tick), "soft", "middle"))
    for row, (name, entry) in enumerate(entries.items()):
        middle = _TOP + _ROW * row + _ROW / 2
        kind = "plain" if name.startswith("plain") else "own" if name.startswith("Addend") else "other"
        parts.append(_text(0, middle + 4, name, "own" if kind == "own" else ""))
        if "reason" in entry:
            parts.append(_text(_LABELS + 6, middle + 4, shortened(entry["reason"]), "bad"))
            continue
        time = entry[key]["median"]
        parts.append(_bar(axes["time"], 1e3 * time, middle, kind))
        once = "" if entry[key]["runs"] > 1 else " *"
        times = "" if name == "plain run" else " (%s)" % factor(time / plain)
        parts.append(_text(axes["time"].place(1e3 * time) + 6, middle + 4, milliseconds(1e3 * time) + times + once))
        memory = max(entry["peak_mib"], 0.1)
        parts.append(_bar(axes["memory"], memory, middle, kind))
        parts.append(_text(axes["memory"].place(memory) + 6, middle + 4, mebibytes(entry["peak_mib"])))
        if "completeness_error" in entry:
            place = axes["error"].place(max(entry["completeness_error"], 1e-9))
            parts.append("<circle class='%s' cx='%.1f' cy='%.1f' r='5' />" % (kind, place, middle))
            parts.append(_text(place + 10, middle + 4, power(entry["completeness_error"])))
    parts.append("</svg>")
    return "\n".join(parts)


def which_time(results):
    """Times by the clock say nothing where more processes wanted to run than there are cores."""
    machine = results["machine"]
    return "clock" if max(machine["load"], results["load_at_end"]) <= machine["cores"] + 0.5 else "processor"


def _bar(axis, value, middle, kind):
    # Even the smallest value is visible.
    width = max(axis.place(value) - axis.left, 2.0)
    return "<rect class='%s' x='%.1f' y='%.1f' width='%.1f' height='12' rx='2' />" % (kind, axis.left, middle - 6, width)


def _text(x, y, text, kind="", anchor="start"):
    return "<text x='%.1f' y='%.1f' class='%s' text-anchor='%s'>%s</text>" % (x, y, kind, anchor, html.escape(text))


def milliseconds(value):
    return "%s s" % digits(value / 1e3) if value >= 1e3 else "%s ms" % digits(value)


def mebibytes(value):
    return "%s GiB" % digits(value / 1024) if value >= 1024 else "under 0.1 MiB" if value < 0.1 else "%s MiB" % digits(value)


def factor(value):
    return "%sx" % digits(value)


def power(value):
    """1e-07 as 1e-7, 1e+10 as 1e10; what is nearly one as itself."""
    if 0.01 <= value < 1e4:
        return digits(value)
    mantissa, exponent = ("%.0e" % value).split("e")
    return "%se%d" % (mantissa, int(exponent))


def digits(value):
    """Two significant digits, or the whole number where that has more."""
    if value == 0:
        return "0"
    places = max(0, 1 - math.floor(math.log10(abs(value))))
    text = "%.*f" % (places, value)
    return text.rstrip("0").rstrip(".") if "." in text else text


def shortened(reason, most=125):
    return reason if len(reason) <= most else reason[: most - 3] + "..."


def _conditions(results):
    machine = results["machine"]
    peers = ", ".join("%s %s" % (name, version or "not given") for name, version in results["peers"].items())
    busy = "" if which_time(results) == "clock" else (
        " Others used the machine: times are those of the processor, not of the clock."
    )
    return "%s, %s thread%s, PyTorch %s, %s; load %s to %s on %s cores." % (
        machine["processor"], machine["threads"], "" if machine["threads"] == 1 else "s",
        machine["torch"], peers, machine["load"], results["load_at_end"], machine["cores"],
    ) + busy


def _legend():
    return (
        "<h2>What the numbers are</h2>"
        "<p><b>Time</b>: the median of runs in turns with the other methods, everything included, and how many plain runs "
        "of the network that is; * one run. A decomposition gives the contributions to every output, the other methods to one.</p>"
        "<p><b>Peak memory</b>: above what the process held with the network loaded; each method in a process of its own.</p>"
        "<p><b>Completeness error</b>: |sum of contributions - what they shall add up to|, relative to the latter: the output's "
        "difference to that of the baseline, for LRP the output itself. For decompositions it is what stays in the residual, "
        "which is reported: components and residual together recover the output.</p>"
    )


def _facts(machine, results):
    rows = [(name, ", ".join("%s=%s" % item for item in value.items()) if isinstance(value, dict) else value)
            for name, value in machine.items()]
    rows.append(("seconds", results["seconds"]))
    cells = "".join("<tr><td>%s<td>%s" % (html.escape(str(name)), html.escape(str(value))) for name, value in rows)
    return "<h2>Machine</h2><table>%s</table>" % cells
