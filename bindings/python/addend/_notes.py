"""How notes become warnings of Python."""

import re
import warnings
from typing import Iterable, List

from ._source_lines import level_of_caller

# How a note begins that says that parts cancel.
ILL_CONDITIONED = "ill-conditioned: "
_DIGITS = re.compile("[0-9]+")


class AddendWarning(UserWarning):
    """The numbers that were returned do not mean what they seem to, and the message, a note of the run, says why.

    Python shows it once at each place of a program, whatever numbers and operators a note tells of there.
    ``warnings.simplefilter("error", addend.AddendWarning)`` makes an error of each.
    """

    def __str__(self) -> str:
        return _Text(super().__str__())


class _Text(str):
    """A text that equals others which differ in their numbers alone: by that a filter knows what it has shown."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and _DIGITS.sub("", self) == _DIGITS.sub("", other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(_DIGITS.sub("", self))


def of_components(note: str) -> bool:
    """Whether a note says that components cancel. What one says of single elements need not hold of their sums."""
    return note.startswith(ILL_CONDITIONED) and ", element by element," not in note


def of_cancelling(parts: float, gap: float) -> List[str]:
    """The warning of one number whose parts cancel nearly all of each other; none where they do not.

    Args:
        parts: the magnitudes of contributions and leftover.
        gap: the magnitude of what they sum to.
    """
    if not parts > 0 or parts < 1e3 * gap:
        return []
    return [
        "without their signs these parts come to %s times the difference that they sum to, so that no single one means much."
        % ("%.3g" % (parts / gap) if gap > 0 else "infinitely many")
    ]


def warn_of(notes: Iterable[str]) -> None:
    """Warns of each, at the line of the caller of this library."""
    level = level_of_caller()
    for note in notes:
        warnings.warn(AddendWarning(note), stacklevel=level)


def with_warnings(lines: Iterable[str], warnings: Iterable[str]) -> List[str]:
    """Lines that are printed, and one for each warning of the run behind them."""
    return [*lines, *("WARNING: %s" % warning for warning in warnings)]
