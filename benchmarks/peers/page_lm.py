"""The page of what `measure_lm.py` found."""

import html
import math

from drawing import (
    Axis,
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
    which_time,
)

_STYLE = """
.plots { display: grid; gap: 1rem 1.5rem; grid-template-columns: repeat(auto-fill, minmax(330px, 1fr)); }
.table { overflow-x: auto; } th { text-align: left; font-weight: 600; }
th, td { white-space: nowrap; padding: .15rem .6rem .15rem 0; } table { font-size: .85rem; } td.own { color: var(--own); font-weight: 600; } td.bad { color: var(--soft); }
td.bad { font-style: italic; } .plots text { font-size: 11.5px; } .plots text.head { font-size: 13px; }
polyline { fill: none; stroke-width: 1.5px; } polyline.own, line.own { stroke: var(--own); }
polyline.other, line.other { stroke: var(--other); } polyline.plain, line.plain { stroke: var(--plain); }
circle.plain { fill: var(--plain); } line.lead { stroke-width: .7px; stroke-dasharray: 2 2; }
"""

_WIDTH = 400
_LEFT = 44  # of what is plotted: before it stand the names of ticks
_PLOT = 160
_NAMES = 226  # where the names of lines begin
_LINE = 15  # of text
_TOP = 24
_HEIGHT = 230

_QUESTIONS = {
    "each": (
        "Each generated token for itself",
        "A matrix: for each generated token, what every token of the prompt contributed to its log-probability (for LXT to "
        "its logit).",
    ),
    "together": (
        "All generated tokens together",
        "One row: what every token contributed to the sum of their log-probabilities (for LXT logits). The classes of Captum "
        "and Inseq give this as the sum of the matrix, at its price.",
    ),
}


def render(results):
    """The page of what `measure_lm.py` found."""
    time = which_time(results)
    model = results["model"]
    body = [
        "<h1>Addend beside its peers: language models</h1>",
        "<p>What it takes to say how much each token contributed to what a language model generated: a Llama of width %d "
        "with %d layers, %d heads, a gated network of %d and %d words, with random weights. Scales are logarithmic; lower, "
        "and errors further left, is better.</p>"
        % (model["hidden_size"], model["num_hidden_layers"], model["num_attention_heads"], model["intermediate_size"],
           model["vocab_size"]),
        "<p class=soft>%s The model is one of transformers %s.</p>"
        % (html.escape(conditions(results)), html.escape(results["machine"]["transformers"])),
    ]
    for question, entries in results["questions"].items():
        title, words = _QUESTIONS[question]
        counts = [count for count in results["generated"] if _cells(entries, results["prompts"], count)]
        if counts:
            body.append("<h2>%s</h2><p>%s</p>" % (title, words))
            body += _section(results, entries, counts, time)
    body.append(_legend(results))
    body.append(facts(results))
    return document("Addend beside its peers: language models", body, _STYLE)


def _section(results, entries, counts, time):
    for title, draw in (
        ("time, as a number of plain runs", lambda found, count: _lines(
            found, results["prompts"], lambda entry: entry["forwards"][time], factor, _generated(count))),
        ("peak memory, in MiB", lambda found, count: _lines(
            {name: own for name, own in found.items() if kind_of(name) != "plain"}, results["prompts"], lambda entry: entry["peak_mib"], digits, _generated(count))),
        ("sum error", lambda found, count: _dots(found, results["prompts"], _generated(count))),
    ):
        plots = [draw(_cells(entries, results["prompts"], count), count) for count in counts]
        yield "<h3>%s</h3><div class=plots>%s</div>" % (title[0].upper() + title[1:], "\n".join(plots))
    for count in counts:
        yield "<h3>%s: numbers</h3>" % _generated(count)[0].upper().join(["", _generated(count)[1:]])
        yield _table(_cells(entries, results["prompts"], count), results["prompts"], time)


def _generated(count):
    return "%d token%s generated" % (count, "" if count == 1 else "s")


def _cells(entries, prompts, count):
    """The entries of each method, by the length of the prompt."""
    found = {}
    for name, lengths in entries.items():
        own = {prompt: lengths["%d+%d" % (prompt, count)] for prompt in prompts if "%d+%d" % (prompt, count) in lengths}
        if own:
            found[name] = own
    return found


def _able(own):
    return {prompt: entry for prompt, entry in own.items() if "reason" not in entry}


def _lines(found, prompts, value, form, title):
    """A line for each method over the lengths of prompts, with its name behind it."""
    values = {name: {prompt: max(value(entry), 0.1) for prompt, entry in _able(own).items()} for name, own in found.items()}
    drawn = {name: own for name, own in values.items() if own}
    bottom = _TOP + _HEIGHT
    upward = Axis([one for own in drawn.values() for one in own.values()], bottom, -_HEIGHT)
    places = _places(prompts)
    missing = [name for name in found if name not in drawn]
    height = bottom + 40 + _LINE * len(missing)
    parts = [
        "<svg viewBox='0 0 %d %d' role='img' aria-label='%s'>" % (_WIDTH, height, html.escape(title, quote=True)),
        text(0, 12, title, "head"),
    ]
    for tick in upward.ticks():
        y = upward.place(tick)
        parts.append("<line x1='%d' x2='%d' y1='%.1f' y2='%.1f' />" % (_LEFT, _LEFT + _PLOT, y, y))
        parts.append(text(_LEFT - 5, y + 4, form(tick), "soft", "end"))
    for prompt, x in places.items():
        parts.append(text(x, bottom + 16, "%d" % prompt, "soft", "middle"))
    parts.append(text(_LEFT, bottom + 31, "tokens of the prompt", "soft"))
    ends = {}
    for name, own in sorted(drawn.items(), key=lambda item: kind_of(item[0]) == "own"):
        points = [(places[prompt], upward.place(one)) for prompt, one in own.items()]
        kind = kind_of(name)
        parts.append("<polyline class='%s' points='%s' />" % (kind, " ".join("%.1f,%.1f" % point for point in points)))
        parts += ["<circle class='%s' cx='%.1f' cy='%.1f' r='3' />" % (kind, *point) for point in points]
        ends[name] = points[-1]
    heights = spread({name: point[1] for name, point in ends.items()}, _LINE - 1, _TOP, bottom + 20)
    for name, (x, y) in ends.items():
        kind = kind_of(name)
        parts.append("<line class='lead %s' x1='%.1f' y1='%.1f' x2='%d' y2='%.1f' />" % (kind, x + 4, y, _NAMES - 3, heights[name]))
        beyond = " \N{BLACK UP-POINTING TRIANGLE}" if len(drawn[name]) < len(found[name]) else ""
        parts.append(text(_NAMES, heights[name] + 4, name + beyond, "own" if kind == "own" else ""))
    for row, name in enumerate(missing):
        reason = shortened("%s: %s" % (name, next(iter(found[name].values()))["reason"]), 66)
        parts.append(text(0, bottom + 46 + _LINE * row, reason, "bad"))
    return "\n".join([*parts, "</svg>"])


def spread(heights, distance, top, bottom):
    """Heights of names that do not overlap, each as near to where it belongs as the others leave room."""
    order = sorted(heights, key=heights.get)
    placed = {}
    last = -math.inf
    for name in order:
        last = placed[name] = max(heights[name], last + distance, top)
    limit = bottom
    for name in reversed(order):
        placed[name] = min(placed[name], limit)
        limit = placed[name] - distance
    return placed


def _places(prompts):
    """The positions of lengths from left to right, as far apart as they are in proportion."""
    low, high = math.log(min(prompts)), math.log(max(prompts))
    span = (high - low) or 1.0
    return {prompt: _LEFT + 12 + (_PLOT - 24) * (math.log(prompt) - low) / span for prompt in prompts}


def _dots(found, prompts, title):
    """A row for each method that has errors, a dot for each length of the prompt, larger for longer ones."""
    errors = {
        name: {prompt: max(entry["sum_error"], 1e-9) for prompt, entry in _able(own).items() if "sum_error" in entry}
        for name, own in found.items()
    }
    errors = {name: own for name, own in errors.items() if own}
    height = _TOP + 26 + (_LINE + 3) * len(errors)
    axis = Axis([one for own in errors.values() for one in own.values()], 190, 195)
    parts = [
        "<svg viewBox='0 0 %d %d' role='img' aria-label='%s'>" % (_WIDTH, height, html.escape(title, quote=True)),
        text(0, 12, title, "head"),
    ]
    for tick in axis.ticks():
        x = axis.place(tick)
        parts.append("<line x1='%.1f' x2='%.1f' y1='%d' y2='%d' />" % (x, x, _TOP + 16, height - 4))
        parts.append(text(x, _TOP + 8, power(tick), "soft", "middle"))
    for row, (name, own) in enumerate(errors.items()):
        middle = _TOP + 28 + (_LINE + 3) * row
        kind = kind_of(name)
        parts.append(text(0, middle + 4, name, "own" if kind == "own" else ""))
        for prompt, one in own.items():
            radius = 2.5 + 1.5 * prompts.index(prompt)
            parts.append("<circle class='%s' cx='%.1f' cy='%.1f' r='%.1f' opacity='.65' />" % (kind, axis.place(one), middle, radius))
    return "\n".join([*parts, "</svg>"])


def _table(found, prompts, time):
    rows = ["<tr><th>%s" % "".join("<th colspan=4>%d tokens of the prompt" % prompt for prompt in prompts)]
    rows.append("<tr><th>" + len(prompts) * "<th>time<th>runs<th>memory<th>error")
    for name, own in found.items():
        cells = ["<tr><td class=%s>%s" % (kind_of(name), html.escape(name))]
        for prompt in prompts:
            entry = own[prompt]
            if "reason" in entry:
                cells.append("<td colspan=4 class=bad>%s" % html.escape(shortened(entry["reason"], 70)))
                continue
            once = " *" if entry[time]["runs"] == 1 else ""
            error = power(entry["sum_error"]) if "sum_error" in entry else ""
            cells.append("<td>%s (%s)%s<td>%d<td>%s<td>%s" % (
                milliseconds(1e3 * entry[time]["median"]), factor(entry["forwards"][time]), once, entry["model_runs"],
                mebibytes(entry["peak_mib"]), error))
        rows.append("".join(cells))
    return "<div class=table><table>%s</table></div>" % "\n".join(rows)


def _legend(results):
    limits = results["limits"]
    return (
        "<h2>What the numbers are</h2>"
        "<p><b>Time</b>: everything from the loaded model and the ids (for Captum and Inseq: the text) to the contributions; the "
        "median of up to five runs, * one run. In brackets, as a number of <b>plain runs</b>: that over the time of a run of the model on prompt and generated "
        "tokens in the same process, which gives the logits of the generated tokens alone. <b>Runs</b>: how many sequences "
        "the model was given, runs backward not counted.</p>"
        "<p><b>Peak memory</b>: above what the process held with the model loaded and run; each method and each length of a text "
        "in a process of its own. \N{BLACK UP-POINTING TRIANGLE}: longer prompts took more than %g s of the processor or %g GiB. A text is not tried where a shorter one "
        "took too long.</p>"
        "<p><b>Sum error</b>: what the sums of contributions miss, over all generated tokens, relative to what they should be: "
        "sum of |sum of a row - its aim| / sum of |aim|. The aim is taken from plain runs, not from what a method says of itself: "
        "the log-probability of the generated token less that on the baseline. The baseline has another token in every place; "
        "for Captum only in the prompt, since its classes leave earlier generated tokens as they are. For LXT the aim is the "
        "logit, which LRP distributes. Gradient times input and ablation claim no sum, nor does <i>fast</i> without its leftover, "
        "which Addend reports. Errors below 1e-6 are rounding.</p>" % (limits["seconds"], limits["memory_gib"])
    )
