"""Bars: the way from the reference to one value, and the size of contributions."""

from typing import Any, List, NamedTuple, Optional, Sequence

import numpy

from ._plot_axes import (
    BAD,
    SMALL,
    SOFT,
    Axes,
    axes_of,
    grow,
    label_lines,
    quiet,
    signed_colour,
    title,
    write_below,
)
from ._plot_parts import Notes, Parts, parts_of
from ._plot_words import decimals, fixed, lines_of, places_of, plural, value_of

# Inches that a line of a figure takes, and the width of a figure.
LINE, WIDTH = 0.29, 6.4


class Shown(NamedTuple):
    """The parts that have a line of their own, the largest first, and those that share one."""

    own: List[int]
    others: List[int]


def shown_of(sizes: Any, max_shown: Optional[int]) -> Shown:
    """Chooses parts by their size."""
    if max_shown is not None and (isinstance(max_shown, bool) or not isinstance(max_shown, int) or max_shown < 1):
        raise ValueError("max_shown is %r; a number of features from 1 on is expected, or None for all" % (max_shown,))
    order = [int(k) for k in numpy.argsort(-numpy.asarray(sizes), kind="stable")]
    count = len(order) if max_shown is None else max_shown
    return Shown(order[:count], order[count:])


def names_of(parts: Parts) -> List[str]:
    """The names of parts, with the number of the input where it is known, and with their place where two have one name."""
    names = [name if name.strip() else repr(name) for name in parts.names]
    again = {name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else set()
    found = ["%s@%d" % (name, k) if name in again else name for k, name in enumerate(names)]
    if parts.elements is not None and parts.noun == "feature":
        found = [name if own is None else "%s = %.4g" % (name, own) for name, own in zip(found, parts.elements)]
    return found


class _Bar(NamedTuple):
    label: str
    size: float
    colour: str
    hatch: str = ""


def _places(bars: Sequence[_Bar]) -> Optional[int]:
    """The decimals of a column of numbers: three digits of the largest bar of a single part."""
    return decimals(bar.size for bar in bars if not bar.hatch)


def _bars_of(parts: Parts, max_shown: Optional[int], size_of: Any, colour_of: Any) -> List[_Bar]:
    """The bars of parts: one for each that is shown, and for the others, the leftover and what is missing.

    Args:
        size_of: makes numbers by row, of which there may be several columns, to one number for each column.
        colour_of: the colour of a bar of some size.
    """
    sizes = size_of(parts.contributions)
    shown = shown_of(numpy.abs(sizes), max_shown)
    names = names_of(parts)
    bars = [_Bar(names[k], float(sizes[k]), colour_of(sizes[k])) for k in shown.own]
    if shown.others:
        rest = float(sizes[shown.others].sum())
        bars.append(_Bar(plural(len(shown.others), "other " + parts.noun), rest, colour_of(rest), "////"))
    if parts.has_leftover():
        bars.append(_Bar("leftover", float(size_of(parts.leftovers)), SOFT, "...."))
    if parts.is_known and parts.missing.any():
        bars.append(_Bar("missing", float(size_of(parts.missing)), BAD, "xxxx"))
    return bars


def _signed_bars(parts: Parts, max_shown: Optional[int]) -> List[_Bar]:
    """The bars of one row, which together are its value minus its reference."""
    return _bars_of(parts, max_shown, lambda numbers: numbers[0], signed_colour)


def _mean_bars(parts: Parts, max_shown: Optional[int]) -> List[_Bar]:
    """Bars of the mean magnitudes over all rows."""
    return _bars_of(parts, max_shown, lambda numbers: numpy.abs(numbers).mean(0), lambda _: "#4a6079")


def _draw(ax: Axes, places: Any, bars: Sequence[_Bar], **options: Any) -> None:
    """Draws bars at places along the second axis, those of no single part hatched."""
    colours = [one.colour for one in bars]
    container = ax.barh(places, [one.size for one in bars], 0.66, color=colours, **options)
    for one, patch in zip(bars, container):
        _hatch(patch, one.hatch)


def waterfall(
    explained: Any,
    *,
    row: Optional[int] = None,
    names: Optional[Sequence[Any]] = None,
    value: Any = None,
    reference: Any = None,
    leftover: Any = None,
    notes: Notes = (),
    max_shown: Optional[int] = 10,
    ax: Optional[Axes] = None,
) -> Axes:
    """Draws the way from the reference to one value, a step for each contribution, the largest first.

    The leftover is a step of its own where it is more than rounding, and so is what is missing where the parts do not add
    up to the value.

    Args:
        explained: an `Explanation`, an `Attribution`, a `TokenAttribution`, the results of a job, or an array of
            contributions.
        row: which explained number, where there are several: the target or the example of an `Attribution`, the generated
            token, the row of an array.
        names: of the features, in place of those that it has.
        value: of an array, what was explained. Where it is left out, it is the sum of reference and contributions.
        reference: of an array: the value on the baseline, which others call the base value. It follows from the value
            where it is left out.
        leftover: of an array. Where it is left out, what `value` and `reference` leave is the leftover.
        notes: what a reader has to know, under the figure, beside the notes of the result: those of the warnings that came
            with an array, say.
        max_shown: how many features have a bar of their own; the others share one, their sum. None: all.
        ax: where to draw; a new figure unless given.
    """
    parts = parts_of(explained, names, value, reference, leftover, notes).row(row)
    if not parts.is_known:
        raise ValueError("a waterfall goes from the reference to the value: give reference= or value= beside the array")
    bars = _signed_bars(parts, max_shown)
    sizes = numpy.array([bar.size for bar in bars])
    start, end = float(parts.references[0]), float(parts.values[0])
    starts = start + numpy.concatenate([[0.0], numpy.cumsum(sizes)[:-1]])
    new = ax is None
    height = LINE * (len(bars) + 2)
    ax = axes_of(ax, WIDTH, height + 1.2)
    places = numpy.arange(1, len(bars) + 1)
    _draw(ax, places, bars, left=starts, label="contributions")
    for place, behind in zip(places, starts + sizes):
        ax.plot([behind, behind], [place - 0.33, place + 1.33], color=SOFT, linewidth=0.8, linestyle=":", zorder=0)
    ax.plot([start, start], [0, 1.33], color=SOFT, linewidth=0.8, linestyle=":", zorder=0)
    ax.plot([start, end], [0, len(bars) + 1], "D", color="0.35", markersize=4.5, clip_on=False, label="reference, value")
    column, ends = _places(bars), places_of(parts)
    label_lines(
        ax,
        ["reference", *(bar.label for bar in bars), "value"],
        [fixed(start, ends), *(fixed(bar.size, column, True) for bar in bars), fixed(end, ends)],
        ["0.35", *(bar.colour for bar in bars), "0.35"],
    )
    ax.use_sticky_edges = False
    ax.margins(x=0.04)
    quiet(ax)
    title(ax, value_of(parts))
    write_below(ax, lines_of(parts))
    if new:
        grow(ax, height)
    return ax


def bar(
    explained: Any,
    *,
    row: Optional[int] = None,
    names: Optional[Sequence[Any]] = None,
    value: Any = None,
    reference: Any = None,
    leftover: Any = None,
    notes: Notes = (),
    max_shown: Optional[int] = 10,
    ax: Optional[Axes] = None,
) -> Axes:
    """Draws the contributions to one value as bars, or of several rows the means of their magnitudes.

    Args:
        explained: as for `waterfall`, or a list of explanations with the same components.
        row: the row whose contributions are drawn; means over all of them unless given.
        names: as for `waterfall`, and so are the six that follow.
        value: of an array, one number or one for each row.
        reference: of an array, one number or one for each row.
        leftover: of an array, one number or one for each row.
        notes: what a reader has to know beside the notes of the result.
        max_shown: how many features have a bar of their own; the others share one, their sum.
        ax: where to draw; a new figure unless given.
    """
    parts = parts_of(explained, names, value, reference, leftover, notes)
    if row is not None or len(parts.contributions) == 1:
        parts = parts.row(row)
        bars, several = _signed_bars(parts, max_shown), False
    else:
        bars, several = _mean_bars(parts, max_shown), True
    new = ax is None
    height = LINE * len(bars)
    ax = axes_of(ax, WIDTH, height + 1.2)
    _draw(ax, range(len(bars)), bars)
    column = _places(bars)
    label_lines(
        ax,
        [one.label for one in bars],
        [fixed(one.size, column, not several) for one in bars],
        [one.colour for one in bars],
    )
    lines = lines_of(parts)
    errors = None if several else parts.standard_errors
    if errors is not None and numpy.isfinite(errors).all():
        shown = shown_of(numpy.abs(parts.contributions[0]), max_shown).own
        ax.errorbar(
            [one.size for one in bars[: len(shown)]], range(len(shown)), xerr=errors[shown], fmt="none", ecolor="0.2",
            elinewidth=1, capsize=2,
        )
        lines.insert(1, lines[0]._replace(text="Lines at the ends of bars are standard errors."))
    ax.axvline(0, color=SOFT, linewidth=0.8)
    ax.margins(x=0.04)
    quiet(ax)
    if several:
        ax.set_xlabel("mean magnitude", size=SMALL)
        lines.insert(1, lines[0]._replace(text="Magnitudes do not add up to the value; the contributions do, as above."))
    title(ax, "mean of %s" % plural(len(parts.contributions), parts.row_noun) if several else value_of(parts))
    write_below(ax, lines)
    if new:
        grow(ax, height)
    return ax


def _hatch(patch: Any, hatch: str) -> None:
    """Marks a bar that is no single part: pale, with lines in its colour."""
    if hatch:
        colour = patch.get_facecolor()
        patch.set_edgecolor(colour)
        patch.set_facecolor((*colour[:3], 0.3))
        patch.set_hatch(hatch)
        patch.set_linewidth(0.6)
