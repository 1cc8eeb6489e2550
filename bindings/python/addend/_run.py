"""The notes of runs of models."""

from typing import Tuple


class Run:
    """The notes of a run, which all compositions of the run share.

    Attributes:
        notes: the notes that a reader of its results has to know.
        warnings: those that say that numbers may not mean what a reader takes them for.
    """

    __slots__ = ("notes", "warnings")

    def __init__(self, notes: Tuple[str, ...] = (), warnings: Tuple[str, ...] = ()):
        self.notes = notes
        self.warnings = warnings
