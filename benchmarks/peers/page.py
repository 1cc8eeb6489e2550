"""The page of what `measure.py` found."""

import html

from drawing import (
    Axis,
    bar,
    conditions,
    digits,
    document,
    factor,
    facts,
    kind_of,
    mebibytes,
    milliseconds,
    power,
    shortened,
    text,
    thousands,
    which_time,
)

_STYLE = """
.wide { overflow-x: auto; } .wide svg { min-width: 60rem; } .wide table { margin-top: .6rem; }
.wide th, .wide td { padding: .15rem 1.2rem .15rem 0; text-align: right; white-space: nowrap; }
.wide th { font-weight: 600; } .wide :is(th, td):first-child { text-align: left; }
td.own { color: var(--own); font-weight: 600; } td.bad { color: var(--soft); font-style: italic; }
.wide td.bad { text-align: left; }
@media (max-width: 40rem) { .wide table { font-size: .7rem; }
  .wide th, .wide td { padding-right: .35rem; } .wide :is(th, td:first-child) { white-space: normal; } }
"""

_ROW = 24
_TOP = 44
_LABELS = 262
_WIDTH = 1160
# Left edge and width of each panel's axis; behind it there is room for the number.
_PANELS = {"time": (_LABELS, 200), "memory": (_LABELS + 375, 110), "error": (_LABELS + 615, 150)}


def render(results):
    """The page of what `measure.py` found."""
    time = which_time(results)
    body = [
        "<h1>Addend beside its peers</h1>",
        "<p>What it takes to say how much each of N parts of an input contributes to one output, on the same networks, "
        "inputs and threads; of several rows each has an output of its own. All scales are logarithmic; shorter bars, and "
        "errors further left, are better.</p>",
        "<p class=soft>%s</p>" % html.escape(conditions(results)),
    ]
    for network in results["networks"].values():
        body.append("<h2>%s</h2>" % html.escape(network["title"]))
        body.append("<div class=wide>%s</div>" % _plots(network["methods"], time))
        # Older results do not say how many runs there were.
        if "rows" in network:
            body.append("<div class=wide>%s</div>" % _table(network, time))
    body.append(_legend())
    body.append(facts(results))
    return document("Addend beside its peers", body, _STYLE)


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
        parts.append(text(axis.left, 14, title, "head"))
        for tick in axis.ticks():
            place = axis.place(tick)
            parts.append("<line x1='%.1f' x2='%.1f' y1='%d' y2='%d' />" % (place, place, _TOP - 6, height - 4))
            parts.append(text(place, _TOP - 12, form(tick), "soft", "middle"))
    for row, (name, entry) in enumerate(entries.items()):
        middle = _TOP + _ROW * row + _ROW / 2
        kind = kind_of(name)
        parts.append(text(0, middle + 4, name, "own" if kind == "own" else ""))
        if "reason" in entry:
            parts.append(text(_LABELS + 6, middle + 4, shortened(entry["reason"]), "bad"))
            continue
        time = entry[key]["median"]
        parts.append(bar(axes["time"], 1e3 * time, middle, kind))
        once = "" if entry[key]["runs"] > 1 else " *"
        times = "" if name == "plain run" else " (%s)" % factor(time / plain)
        parts.append(text(axes["time"].place(1e3 * time) + 6, middle + 4, milliseconds(1e3 * time) + times + once))
        memory = max(entry["peak_mib"], 0.1)
        parts.append(bar(axes["memory"], memory, middle, kind))
        parts.append(text(axes["memory"].place(memory) + 6, middle + 4, mebibytes(entry["peak_mib"])))
        if "completeness_error" in entry:
            place = axes["error"].place(max(entry["completeness_error"], 1e-9))
            parts.append("<circle class='%s' cx='%.1f' cy='%.1f' r='5' />" % (kind, place, middle))
            parts.append(text(place + 10, middle + 4, power(entry["completeness_error"])))
    parts.append("</svg>")
    return "\n".join(parts)


def _table(network, key):
    """A table of the cost of a row and the error of its sum, one line for each method."""
    rows = network["rows"]
    plain = network["methods"]["plain run"][key]["median"]
    lines = ["<tr><th>method<th>rows a second<th>runs a row<th>time in plain runs<th>error, median<th>error, worst"]
    for name, entry in network["methods"].items():
        line = "<tr><td class=%s>%s" % (kind_of(name), html.escape(name))
        if "reason" in entry:
            lines.append("%s<td colspan=5 class=bad>%s" % (line, html.escape(shortened(entry["reason"], 70))))
            continue
        seconds = entry[key]["median"]
        once = "" if entry[key]["runs"] > 1 else " *"
        cells = [thousands(rows / seconds) + once, digits(entry["model_runs"] / rows), thousands(seconds / plain) + "x"]
        if "completeness_error" in entry:
            cells += [power(entry["completeness_error_median"]), power(entry["completeness_error"])]
        else:
            cells += ["", ""]
        lines.append(line + "".join("<td>" + cell for cell in cells))
    return "<table>%s</table>" % "\n".join(lines)


def _legend():
    return (
        "<h2>What the numbers are</h2>"
        "<p><b>Time</b>: the median of runs in turns with the other methods, everything included, and how many plain runs "
        "of the network that is; * one run. A decomposition, PyDec and what says <i>all outputs</i> give the contributions to "
        "every output, the other methods to one. A plain run is of all rows at once. <i>Kept</i>: references of the baseline "
        "stay from run to run. <i>Plan</i>: made before the time begins, for all rows to come.</p>"
        "<p><b>Runs a row</b>: how many inputs went through the network forward, over the number of rows, counted. Runs "
        "backward, and the references that Addend computes beside its run, are in the time. PyDec's run has all N parts in "
        "it. <b>Kernel SHAP by hand</b>: what SHAP's KernelExplainer does, a weighted regression on coalitions that are "
        "drawn for each row, without its selection of features. Its sum is a condition of the regression, so that its "
        "error says nothing about single contributions, which chance has a part in.</p>"
        "<p><b>Peak memory</b>: above what the process held with the network loaded; each method in a process of its own.</p>"
        "<p><b>Completeness error</b>: |sum of contributions - what they shall add up to|, relative to the latter: the output's "
        "difference to that of the baseline, for LRP the output itself. Of several rows the plot has the worst. For "
        "decompositions it is what stays in the residual, which is reported: components and residual together recover the output.</p>"
    )
