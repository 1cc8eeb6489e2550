"""Which notes say that numbers do not mean what they seem to, and how these become warnings of Python."""

import re
import warnings
from typing import Iterable, List

from ._source_lines import level_of_caller

# The core gives notes as sentences and marks no weight. These are the light ones: they say which choice was made, how
# the numbers were found, or that a condition is the same on the baseline. All others have weight, so that a sentence
# that is new is heard.
_LIGHT = re.compile(
    "preset auto: "
    "|computed in float(32|64) from tensors of "
    "|operators round to a half type"
    "|components that were found backward did not come to "
    "|contributions, reference and leftover are means over "
    "|the memory limit was not kept: "
    "|[^:]* is in double precision, but went through single precision "
    "|(conditions or indices|the model reads numbers that) depend on the input[^:]* on the baseline they are the same: "
    "|torch.compile wraps "
)
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


def notes_of_weight(notes: Iterable[str]) -> List[str]:
    """Those that say that numbers do not mean what the reader thinks."""
    return [note for note in notes if not _LIGHT.match(note)]


def warn_of(notes: Iterable[str]) -> None:
    """Warns of the notes of weight, at the line of the caller of this library."""
    level = level_of_caller()
    for note in notes_of_weight(notes):
        warnings.warn(AddendWarning(note), stacklevel=level)
