"""Dots: many rows by features, and one feature against its contribution."""

from typing import Any, List, Optional, Sequence, Union

import numpy

from ._plot_axes import (
    DOWN,
    LABEL,
    ORDERED,
    SMALL,
    SOFT,
    UP,
    Axes,
    axes_of,
    grow,
    label_lines,
    plain,
    quiet,
    room_of,
    shortened,
    shown,
    title,
    write_below,
)
from ._plot_bars import WIDTH, names_of, shown_of
from ._plot_parts import Notes, Parts, parts_of, table_of
from ._plot_words import Line, lines_of, plural

# Inches of a lane of dots. Dots that fall into one of so many places along the axis lie beside each other.
_LANE, _PLACES = 0.42, 120
# From this many dots on, files of vectors hold them as a picture.
_MANY = 5000


def beeswarm(
    explained: Any,
    data: Any = None,
    *,
    names: Optional[Sequence[Any]] = None,
    value: Any = None,
    reference: Any = None,
    leftover: Any = None,
    notes: Notes = (),
    max_shown: Optional[int] = 10,
    ax: Optional[Axes] = None,
) -> Axes:
    """Draws a dot for each row and feature, at its contribution, the features with the largest mean magnitude first.

    Args:
        explained: an `Attribution` or a list of explanations with the same components, the results of a job, or an array
            ``[rows, features]``, as `attribute` returns it.
        data: the numbers of the features, in the same shape: dots are coloured by them, from low to high.
        names: as for `bar`, and so are the four that follow.
        value: of an array.
        reference: of an array.
        leftover: of an array.
        notes: what a reader has to know beside the notes of the result.
        max_shown: how many features have a lane of their own; the others share one, with the sum of their contributions in
            each row.
        ax: where to draw; a new figure unless given.
    """
    parts = _rows_of(explained, names, value, reference, leftover, notes, "beeswarm")
    numbers = parts.contributions
    table = None if data is None else table_of(data, parts.names, len(numbers), explained)
    chosen = shown_of(numpy.abs(numbers).mean(0), max_shown)
    labels = names_of(parts)
    lanes = [(labels[k], numbers[:, k], None if table is None else _shares(table[:, k])) for k in chosen.own]
    if chosen.others:
        lanes.append((plural(len(chosen.others), "other " + parts.noun), numbers[:, chosen.others].sum(1), None))
    if parts.has_leftover():
        lanes.append(("leftover", parts.leftovers, None))
    if parts.is_known and parts.missing.any():
        lanes.append(("missing", parts.missing, None))
    new = ax is None
    height = _LANE * len(lanes)
    ax = axes_of(ax, WIDTH, height + 1.4)
    every = numpy.concatenate([at for _, at, _ in lanes])
    low, high = float(every.min()), float(every.max())
    dots = None
    for k, (label, at, own) in enumerate(lanes):
        drawn = ax.scatter(
            at,
            k + _aside(at, low, high),
            s=9,
            c=SOFT if own is None else own,
            cmap=None if own is None else ORDERED,
            vmin=None if own is None else 0,
            vmax=None if own is None else 1,
            alpha=0.85,
            linewidths=0,
            plotnonfinite=True,
            rasterized=len(every) > _MANY,
            label=label,
            zorder=2,
        )
        dots = dots if own is None else drawn
        ax.axhline(k, color=SOFT, alpha=0.25, linewidth=0.6, zorder=0)
    ax.axvline(0, color=SOFT, linewidth=0.8, zorder=1)
    label_lines(ax, [label for label, _, _ in lanes])
    ax.set_xlabel("contribution", size=SMALL)
    ax.margins(x=0.04)
    quiet(ax)
    title(ax, plural(len(numbers), parts.row_noun))
    lines = lines_of(parts)
    if dots is not None:
        bar = ax.figure.colorbar(dots, ax=ax, ticks=[0, 1], pad=0.02, aspect=30)
        bar.ax.set_yticklabels(["low", "high"], size=SMALL)
        bar.set_label("feature", size=SMALL)
        bar.outline.set_visible(False)
        lines.insert(1, Line("Low and high are the 5th and the 95th percentile of each feature, or where these are equal its "
                             "least and its largest number."))
        lost = int((~numpy.isfinite(table[:, chosen.own])).sum())
        if lost:
            lines.insert(2, Line("%s gray: what the feature is there is missing or not finite." % plural(lost, "dot")))
    write_below(ax, lines)
    if new:
        grow(ax, height)
    return ax


def scatter(
    explained: Any,
    feature: Union[int, str],
    data: Any,
    *,
    names: Optional[Sequence[Any]] = None,
    value: Any = None,
    reference: Any = None,
    leftover: Any = None,
    notes: Notes = (),
    ax: Optional[Axes] = None,
) -> Axes:
    """Draws what one feature is in each row against what it contributes there.

    Args:
        explained: as for `beeswarm`.
        feature: its name, or its place from 0.
        data: the numbers of all features, ``[rows, features]``, or those of this one, ``[rows]``.
        names: as for `bar`, and so are the four that follow.
        value: of an array.
        reference: of an array.
        leftover: of an array.
        notes: what a reader has to know beside the notes of the result.
        ax: where to draw; a new figure unless given.
    """
    parts = _rows_of(explained, names, value, reference, leftover, notes, "scatter")
    at = _place_of(feature, parts.names)
    x = table_of(data, parts.names, len(parts.contributions), explained, at)
    y = parts.contributions[:, at]
    new = ax is None
    ax = axes_of(ax, WIDTH, 4.4)
    ax.scatter(
        x, y, s=12, c=[DOWN if one < 0 else UP for one in y], alpha=0.75, linewidths=0, rasterized=len(y) > _MANY, zorder=2,
    )
    ax.axhline(0, color=SOFT, linewidth=0.8, zorder=1)
    quiet(ax, grid=False)
    ax.spines["left"].set_visible(True)
    ax.grid(True, color=SOFT, alpha=0.2, linewidth=0.6)
    ax.tick_params(axis="both", labelsize=SMALL)
    plain(ax.set_xlabel(shortened(shown(parts.names[at]), 0.9 * room_of(ax)[0], LABEL), size=LABEL))
    ax.set_ylabel("contribution", size=LABEL)
    lines = lines_of(parts, (parts.names[at], [at]))
    lost = int((~numpy.isfinite(x)).sum())
    if lost:
        lines.insert(1, Line("%s not drawn: what the feature is there is not finite." % plural(lost, "row"), True))
    write_below(ax, lines)
    if new:
        grow(ax, 3.2)
    return ax


def _rows_of(
    explained: Any, names: Any, value: Any, reference: Any, leftover: Any, notes: Notes, function: str
) -> Parts:
    parts = parts_of(explained, names, value, reference, leftover, notes, dims=(2,))
    if len(parts.contributions) < 2:
        raise ValueError("%s draws many rows, there is one: bar and waterfall draw that" % function)
    return parts


def _place_of(feature: Union[int, str], names: List[str]) -> int:
    if isinstance(feature, str):
        if names.count(feature) != 1:
            told = "there is no feature" if feature not in names else "there are several features"
            raise KeyError("%s %r; there are %s" % (told, feature, ", ".join(map(repr, names[:12]))))
        return names.index(feature)
    if not -len(names) <= feature < len(names):
        raise IndexError("feature %d of %d" % (feature, len(names)))
    return feature % len(names)


def _aside(at: Any, low: float, high: float) -> Any:
    """How far each dot of a lane lies from its middle, so that those which are alike lie beside each other."""
    places = numpy.round((at - low) / ((high - low) or 1.0) * _PLACES).astype(int)
    order = numpy.argsort(places, kind="stable")
    _, first, counts = numpy.unique(places[order], return_index=True, return_counts=True)
    before = numpy.empty(len(at), dtype=int)
    before[order] = numpy.arange(len(at)) - numpy.repeat(first, counts)
    step = min(0.1, 0.84 / max(1, int(counts.max())))
    return numpy.where(before % 2 == 1, 1, -1) * ((before + 1) // 2) * step


def _shares(numbers: Any) -> Any:
    """Numbers of a feature between its 5th percentile, 0, and its 95th, 1. Those that are not finite stay so; None where
    all are."""
    finite = numbers[numpy.isfinite(numbers)]
    if not len(finite):
        return None
    low, high = numpy.percentile(finite, [5, 95])
    if low == high:
        low, high = finite.min(), finite.max()
    if low == high:
        return numpy.where(numpy.isfinite(numbers), 0.5, numpy.nan)
    return numpy.where(numpy.isfinite(numbers), numpy.clip((numbers - low) / (high - low), 0, 1), numpy.nan)
