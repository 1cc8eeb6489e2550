"""Sentences under a figure: the sum in numbers, what is wrong with it, and the notes of the result."""

import math
from typing import Iterable, List, NamedTuple, Optional, Sequence, Tuple

import numpy

from ._notes import of_cancelling, of_components
from ._plot_parts import Parts

MINUS = "\u2212"
# From this share of the move on, a leftover is told.
_MUCH = 0.2


class Line(NamedTuple):
    """A paragraph under a figure. is_warning: whether numbers may not mean what a reader takes them for."""

    text: str
    is_warning: bool = False


def decimals(numbers: Iterable[float], digits: int = 3) -> Optional[int]:
    """How many decimals show that many digits of the largest of some numbers; None where they are better written with an
    exponent."""
    top = max((abs(one) for one in numbers), default=0.0)
    if top == 0:
        return digits - 1
    if not 1e-4 <= top < 1e7:
        return None
    return max(0, digits - 1 - math.floor(math.log10(top)))


def fixed(number: float, places: Optional[int], signed: bool = False) -> str:
    """A number with that many decimals, or with an exponent where so few would make 0 of it."""
    if number != 0 and (places is None or abs(number) < 0.5 * 10.0**-places):
        text = "%.*e" % (2 if places is None else 0, abs(number))
        mantissa, _, exponent = text.partition("e")
        text = "%se%s%d" % (mantissa, MINUS if exponent[0] == "-" else "", int(exponent[1:]))
    else:
        text = "%.*f" % (places or 0, abs(number))
    return (MINUS if number < 0 else "+" if signed and number > 0 else "") + text


def plural(count: int, noun: str) -> str:
    return "%d %s%s" % (count, noun, "" if count == 1 else "s")


def lines_of(parts: Parts, split: Optional[Tuple[str, Sequence[int]]] = None) -> List[Line]:
    """All that stands under a figure of some rows.

    Args:
        split: parts that the figure shows alone: what they are called, and which.
    """
    lines = [Line(_sum_of(parts, split))]
    if parts.is_known:
        lines += [Line(text, True) for text in _faults(parts)]
    lines += [Line("Warning: " + note, True) for note in parts.warnings]
    lines += [Line("Note: " + note) for note in parts.notes if note not in parts.warnings]
    return lines


def places_of(parts: Parts) -> Optional[int]:
    """The decimals of the sum of some rows, with which the figure tells it: four digits of the largest number in it, and
    more where the sum would not be true as it is written, as far as two more help."""
    numbers = [number for _, number in _terms_of(parts, None)]
    total = _total_of(parts)
    places = decimals([*numbers, total], 4)
    if places is None:
        return None
    for more in range(places, places + 3):
        written = [round(number, more) for number in (*numbers, total)]
        if abs(math.fsum(written[:-1]) - written[-1]) < 0.5 * 10.0**-more:
            return more
    return places


def value_of(parts: Parts) -> str:
    """The explained number of one row, where it has a name, and what it is."""
    if not parts.titles:
        return ""
    return "%s = %s" % (parts.titles[0], fixed(float(parts.values[0]), places_of(parts)))


def leftover_of(number: float, rounding: float, places: Optional[int], signed: bool = False) -> str:
    """A leftover, which is 0 as far as anybody can tell where it is rounding."""
    return fixed(0.0 if abs(number) <= rounding else number, places, signed)


def _terms_of(parts: Parts, split: Optional[Tuple[str, Sequence[int]]]) -> List[Tuple[str, float]]:
    """The means over rows of all that adds up to the value."""
    count = parts.contributions.shape[1]
    means = parts.contributions.mean(0)
    terms = [(plural(count, parts.noun), float(means.sum()))]
    if split is not None:
        name, chosen = split
        own = float(means[list(chosen)].sum())
        terms = [(name, own)]
        if count > len(chosen):
            terms.append((plural(count - len(chosen), "other " + parts.noun), float(means.sum()) - own))
    if parts.is_known:
        terms.insert(0, ("reference", float(parts.references.mean())))
        terms.append(("leftover", float(parts.leftovers.mean()) if parts.has_leftover() else 0.0))
        if parts.missing.any():
            terms.append(("missing", float(parts.missing.mean())))
    return terms


def _total_of(parts: Parts) -> float:
    return float(parts.values.mean() if parts.is_known else parts.contributions.sum(1).mean())


def _sum_of(parts: Parts, split: Optional[Tuple[str, Sequence[int]]]) -> str:
    """The sum in numbers."""
    rows = len(parts.contributions)
    told = "value" if parts.checked else "the sum; it was not given"
    if not parts.is_known:
        told = "their sum; value and reference were not given"
    places = places_of(parts)
    text = "" if rows == 1 else "means of %s: " % plural(rows, parts.row_noun)
    for k, (name, number) in enumerate(_terms_of(parts, split)):
        sign = MINUS if number < 0 else "+" if k else ""
        text += "%s%s (%s)" % (" %s " % sign if k else sign, fixed(abs(number), places), name)
    return "%s = %s (%s)" % (text, fixed(_total_of(parts), places), told)


def _faults(parts: Parts) -> Iterable[str]:
    """Sentences on what a reader has to know of these numbers before believing them."""
    rows = len(parts.values)
    missing = numpy.abs(parts.missing)
    off = int((missing > 0).sum())
    if off:
        where = "" if rows == 1 else "in %d of %s, " % (off, plural(rows, parts.row_noun))
        most = "" if rows == 1 else "up to "
        yield "Warning: %sthe parts do not add up to the value; %s%s is missing. Do not rely on them." % (
            where, most, fixed(float(missing.max()), decimals([float(missing.max())])))
    gaps = numpy.abs(parts.values - parts.references)
    sizes = numpy.abs(parts.contributions).sum(1) + numpy.abs(parts.leftovers)
    if not any(map(of_components, parts.warnings)):
        told = [note for size, gap in zip(sizes, gaps) for note in of_cancelling(float(size), float(gap))]
        if told:
            yield "Warning: %s%s" % (
                "" if rows == 1 else "in %d of %s: " % (len(told), plural(rows, parts.row_noun)), told[0])
    left = numpy.abs(parts.leftovers)
    much = (left > _MUCH * gaps) & (left > parts.rounding)
    if much.any() and not any(note.startswith("much is left over") for note in parts.warnings):
        worst = int(numpy.argmax(numpy.where(much, left, -1)))
        share = "%.2g times" % (left[worst] / gaps[worst]) if gaps[worst] > 0 else "infinitely many times"
        yield "Warning: %sthe leftover, which belongs to no %s, is %s the difference between value and reference" % (
            "" if rows == 1 else "in %d of %s, the largest of which is told: " % (much.sum(), plural(rows, parts.row_noun)),
            parts.noun, share)
