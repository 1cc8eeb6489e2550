"""Cells of the table of doors and constructs that have an exception. Each is named by its door and its construct.

A door "of a file" asks about a model that was read from a file, as every language does; the others are Python's alone.
"""

from typing import Dict, Tuple

# Cells in which a door may stop, and what its error then has to say, as a regular expression of every language.
_INFLUENCE = "examples of a batch (may )?influence each other.*evaluation mode"
_NOT_FINITE = "not finite on the way from the baseline; choose a baseline on which it is finite"
_ONE_ROW = "Expected more than 1 value per channel when training"  # PyTorch's own
_NO_PLAN = "cannot be planned: .*; attribute it without a plan"
REFUSED: Dict[Tuple[str, str], str] = {
    ("baselines", "condition, branch"): "numbers of all examples of the batch together.*ask for one example at a time",
    ("baselines", "quantised, all rows"): _INFLUENCE,
    ("baselines", "quantised, all rows, from zero"): _INFLUENCE,
    ("baselines", "batch norm in training"): _INFLUENCE,
    ("baselines", "batch norm in training, always"): _INFLUENCE,
    ("baselines of a file", "quantised, all rows"): _INFLUENCE,
    ("baselines of a file", "quantised, all rows, from zero"): _INFLUENCE,
    ("baselines of a file", "batch norm in training"): _INFLUENCE,
    ("baselines of a file", "batch norm in training, always"): _ONE_ROW,
    ("interactions", "NaN baseline, logarithms"): _NOT_FINITE,
    ("interactions of a file", "NaN baseline, logarithms"): _NOT_FINITE,
    ("interactions", "condition, branch"): "goes another way than the call .* spell the branch with torch.where",
    ("job", "quantised, all rows"): _INFLUENCE,
    ("job", "quantised, all rows, from zero"): _INFLUENCE,
    ("job", "batch norm in training"): _INFLUENCE,
    ("job", "batch norm in training, always"): _ONE_ROW,
    ("plan", "condition, argmax"): _NO_PLAN,
    ("plan", "quantised, each row"): _NO_PLAN,
    ("plan", "quantised, all rows"): _NO_PLAN,
    ("plan", "quantised, all rows, from zero"): _NO_PLAN,
    ("plan", "batch norm in training"): _NO_PLAN,
    ("plan of a file", "quantised, each row"): _NO_PLAN,
    ("plan of a file", "quantised, all rows"): _NO_PLAN,
    ("plan of a file", "quantised, all rows, from zero"): _NO_PLAN,
    ("plan of a file", "batch norm in training"): _NO_PLAN,
}

# Cells that are not right yet, and why. Each of these tests has to fail.
KNOWN: Dict[Tuple[str, str], str] = {}


def of_construct(table: Dict[Tuple[str, str], str], construct: str) -> Dict[str, str]:
    """The entries of a table for a construct, by door."""
    return {door: text for (door, name), text in table.items() if name == construct}
