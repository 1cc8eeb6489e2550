"""Texts: words coloured by what they contributed, and a table of tokens by tokens."""

import dataclasses
import math
from typing import Any, List, Optional, Sequence, Tuple

import numpy

from ._lm_result import TokenAttribution
from ._plot_axes import (
    BAD,
    INK,
    SIGNED,
    SIGNED_FILL,
    SMALL,
    SOFT,
    Axes,
    axes_of,
    grow,
    plain,
    room_of,
    shortened,
    shown,
    title,
    width_of,
    write_below,
)
from ._plot_bars import WIDTH, shown_of
from ._plot_parts import Notes, Parts, parts_of
from ._plot_words import Line, decimals, fixed, leftover_of, lines_of, plural, value_of

# Sizes of letters that are tried, the largest first, and heights of a line beside that of its letters.
_SIZES = (11.0, 10.0, 9.0, 8.0, 7.0, 6.0, 5.0)
_LINE, _LINE_WITH_NUMBERS = 1.75, 2.55
# From this share of the strongest contribution on, its number stands under a token.
_TOLD = 0.02
# Points between a table and the sums of its rows.
_LEFT_OF_SUMS = 2.0


def text(
    explained: Any,
    *,
    row: Optional[int] = None,
    names: Optional[Sequence[Any]] = None,
    value: Any = None,
    reference: Any = None,
    leftover: Any = None,
    notes: Notes = (),
    numbers: bool = True,
    ax: Optional[Axes] = None,
) -> Axes:
    """Draws words or tokens in their order, coloured by what they contributed: blue lowers the value, orange raises it.

    Args:
        explained: as for `waterfall`; of an array, `names` are the tokens.
        row: as for `waterfall`, and so are the five that follow.
        names: the tokens.
        value: of an array.
        reference: of an array.
        leftover: of an array.
        notes: what a reader has to know beside the notes of the result.
        numbers: whether contributions stand under the tokens, but for those of less than a fiftieth of the largest one.
        ax: where to draw; a new figure unless given. Letters become smaller where it is small.
    """
    if names is None and not isinstance(explained, TokenAttribution) and not hasattr(explained, "to_dict"):
        raise ValueError("names are missing: the words or tokens, one for each contribution")
    parts = parts_of(explained, names, value, reference, leftover, notes).row(row)
    if parts.noun == "feature":
        parts.noun = "token"
    if isinstance(explained, TokenAttribution) and explained.groups is None:
        # Tokens from the last explained one on are not read for it, and contribute 0.
        end = explained.prompt_length + max(explained.spans[row or 0])
        words = list(explained.tokens if names is None else parts.names)[:end]
        parts = dataclasses.replace(parts, names=words, contributions=parts.contributions[:, :end])
    words, contributions = parts.names, parts.contributions[0]
    strongest = float(numpy.abs(contributions).max())
    places = decimals([strongest], 2)
    told = [
        fixed(float(one), places, True) if numbers and strongest and abs(one) >= _TOLD * strongest else ""
        for one in contributions
    ]
    new = ax is None
    ax = axes_of(ax, WIDTH, 2.0)
    # A figure of one's own has nothing at the sides of its axes.
    width, height = room_of(ax)
    width = 72 * (WIDTH - 0.2) if new else width
    ends = [word.endswith("\n") for word in words]
    words = [shown(word) for word in words]
    for size in _SIZES:
        spots, lines = _flow(words, told, ends, width, size)
        high = lines * size * (_LINE_WITH_NUMBERS if any(told) else _LINE)
        if new or high <= height:
            break
    else:
        raise ValueError(
            "%d tokens take %d lines, for which these axes are too small: give larger ones, or leave ax out"
            % (len(words), lines)
        )
    step = high / lines
    for word, number, (x, line), one in zip(words, told, spots, contributions):
        colour = SIGNED_FILL(0.5 + 0.5 * float(one) / (strongest or 1.0))
        plain(
            ax.annotate(
                word, (0, 1), (x, -(line * step + 0.3 * size)), "axes fraction", "offset points", va="top", ha="left",
                size=size, color=INK, annotation_clip=False,
                bbox={"boxstyle": "square,pad=0.12", "facecolor": colour, "linewidth": 0},
            )
        ).set_gid("token")
        if number:
            ax.annotate(
                number, (0, 1), (x, -(line * step + 1.55 * size)), "axes fraction", "offset points", va="top", ha="left",
                size=0.68 * size, color=SOFT, annotation_clip=False,
            ).set_gid("number")
    ax.set_axis_off()
    title(ax, value_of(parts))
    below = lines_of(parts)
    below.insert(1, _key(strongest, "value"))
    write_below(ax, below, None if new else high)
    if new:
        grow(ax, high / 72)
    return ax


def _flow(
    words: Sequence[str], told: Sequence[str], ends: Sequence[bool], width: float, size: float
) -> Tuple[List[Tuple[float, int]], int]:
    """Places of tokens, in points and in lines, and the number of lines."""
    spots, x, line = [], 0.0, 0
    for word, number, end in zip(words, told, ends):
        own = max(width_of(word, size), width_of(number, 0.68 * size)) + 0.45 * size
        if x > 0 and x + own > width:
            x, line = 0.0, line + 1
        spots.append((x + 0.15 * size, line))
        x += own
        if end:
            x, line = 0.0, line + 1
    return spots, line + (1 if x > 0 else 0)


def _key(strongest: float, what: str) -> Line:
    return Line(
        "Blue lowers the %s, orange raises it; the strongest colour is %s."
        % (what, fixed(strongest, decimals([strongest])))
    )


def matrix(
    explained: Any,
    *,
    rows: Optional[Sequence[Any]] = None,
    names: Optional[Sequence[Any]] = None,
    value: Any = None,
    reference: Any = None,
    leftover: Any = None,
    notes: Notes = (),
    max_shown: Optional[int] = 40,
    ax: Optional[Axes] = None,
) -> Axes:
    """Draws what each token before contributed to each generated token: a row for each generated token, a column for each
    token or group of tokens. At the right each row is added up.

    Args:
        explained: a `TokenAttribution`, an `Attribution` or a list of explanations, or an array ``[rows, columns]``.
        rows: what rows are called, in place of the names that they have.
        names: what columns are called.
        value: of an array, one number for each row, and so are the two that follow.
        reference: of an array.
        leftover: of an array.
        notes: what a reader has to know beside the notes of the result.
        max_shown: how many columns there are at most, those with the largest magnitudes, in their order. The others share
            one, with their sum.
        ax: where to draw; a new figure unless given.
    """
    parts = parts_of(explained, names, value, reference, leftover, notes, dims=(2,))
    count = len(parts.contributions)
    if rows is None:
        rows = explained.rows if isinstance(explained, TokenAttribution) else parts.titles or range(count)
    labels = [shown(str(one)) for one in rows]
    if len(labels) != count:
        raise ValueError("%d names for %d rows" % (len(labels), count))
    if parts.noun == "feature" and not isinstance(explained, TokenAttribution):
        parts.noun = "column"
    kept = shown_of(numpy.abs(parts.contributions).sum(0), max_shown)
    columns = sorted(kept.own)
    cells = [parts.contributions[:, columns]]
    heads = [shown(parts.names[k]) for k in columns]
    if kept.others:
        cells.append(parts.contributions[:, kept.others].sum(1, keepdims=True))
        heads.append(plural(len(kept.others), "other " + parts.noun))
    if parts.has_leftover():
        cells.append(parts.leftovers[:, None])
        heads.append("leftover")
    if parts.is_known and parts.missing.any():
        cells.append(parts.missing[:, None])
        heads.append("missing")
    drawn = numpy.concatenate(cells, 1)
    strongest = float(numpy.abs(drawn).max()) or 1.0
    new = ax is None
    height = max(0.6, min(12.0, 0.26 * count))
    ax = axes_of(ax, max(WIDTH, min(14.0, 3.6 + 0.26 * len(heads))), height + 2.0)
    ax.imshow(drawn, cmap=SIGNED, vmin=-strongest, vmax=strongest, aspect="auto", interpolation="nearest")
    own = drawn.shape[1] - len(columns)
    if own:
        ax.axvline(len(columns) - 0.5, color=INK, linewidth=0.8)
    width, tall = room_of(ax)
    tall = (72 * height if new else tall) / count
    right = _add_up(ax, parts, tall, 0.4 * width) if parts.is_known else 0.0
    # The width of the axes is to be shared with labels and sums yet.
    rest = width * (1.15 if new else 1.0) - right - min(110.0, max(width_of(one, SMALL) for one in labels))
    _label(ax, labels, heads, max(0.3 * width, rest) / len(heads), tall, len(columns))
    for side in ax.spines.values():
        side.set_visible(False)
    title(ax, "%s of what was generated" % explained.target if isinstance(explained, TokenAttribution) else "")
    below = lines_of(parts)
    below.insert(1, _key(strongest, "value of its row"))
    write_below(ax, below)
    if new:
        grow(ax, height)
    return ax


def _label(ax: Axes, rows: Sequence[str], columns: Sequence[str], wide: float, tall: float, own: int) -> None:
    """Labels rows at the left and columns above, in letters that fit; where columns are too narrow for any letters, only
    some of them, but always those that are no tokens."""
    size = max(3.0, min(SMALL, 0.9 * tall))
    ax.set_yticks(range(len(rows)), [shortened(row, 110.0, size) for row in rows], size=size)
    size = max(5.0, min(SMALL, 0.8 * wide))
    step = max(1, math.ceil(size / (0.8 * wide)))
    told = [k for k in range(len(columns)) if k >= own or (k % step == 0 and k <= own - step * (own < len(columns)))]
    ax.set_xticks(told, [shortened(columns[k], 90.0, size) for k in told], size=size, rotation=90)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    for label in (*ax.get_yticklabels(), *ax.get_xticklabels()):
        plain(label)


def _add_up(ax: Axes, parts: Parts, tall: float, room: float) -> float:
    """Writes at the right of each row what it adds up to; only the value where there is no room for more. Returns the
    width that it takes, in points."""
    terms = [parts.references, parts.contributions.sum(1), parts.leftovers, parts.missing, parts.values]
    heads = ["reference", parts.noun + "s", "leftover", "missing", "value"]
    places = decimals(numpy.concatenate(terms), 4)
    columns = []
    for head, numbers in zip(heads, terms):
        signed = head not in ("reference", "value")
        if head == "leftover":
            told = [leftover_of(*both, places, signed) for both in zip(numbers, parts.rounding)]
        else:
            told = [fixed(float(number), places, signed) for number in numbers]
        columns.append([head, *told])
    if not parts.missing.any():
        del columns[3]
    size = max(3.0, min(SMALL - 1, 0.85 * tall))
    if _width(columns, size) > room:
        size = max(3.0, min(5.0, size))
    if _width(columns, size) > room:
        columns, size = columns[-1:], max(3.0, min(SMALL - 1, 0.85 * tall))
    right = _LEFT_OF_SUMS
    for column in columns:
        right += _width([column], size) - _LEFT_OF_SUMS
        for row, one in enumerate(column, -1):
            ax.annotate(
                one, (1, row), (right, 0), ax.get_yaxis_transform(), "offset points", va="center", ha="right", size=size,
                annotation_clip=False, color=BAD if column[0] == "missing" else SOFT if row < 0 else None,
            ).set_gid("sum" if row >= 0 else "head")
    return right


def _width(columns: Sequence[Sequence[str]], size: float) -> float:
    """How wide columns of sums are together, in points."""
    return _LEFT_OF_SUMS + sum(max(width_of(one, size) for one in column) + 7 for column in columns)
