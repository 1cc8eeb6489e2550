"""Groups of elements that cancel nearly all of each other, which the library does not see where they are no components."""

import functools
import math
from typing import List, Optional, Sequence

from ._attribution import Attribution
from ._call import call
from ._notes import ILL_CONDITIONED, of_components
from ._tensor import Tensor

# From here on no single part means much, as the library says it of components.
_ILL_CONDITIONED = 1e3
_NOTE = (
    "%sthe attributions %s between value and reference that they sum to, so that no single one means much. To get others: "
    "compute in float64 (policy compute_dtype=float64), or choose another baseline, or cut the line (policy segments=8)"
)


def notes_of_groups(found: Attribution, parts: Sequence[Optional[Tensor]]) -> List[str]:
    """The warnings of a run whose elements are read in groups: of what cancels, what is so of the groups.

    Args:
        parts: the numbers that a reader sees, each once; their first dimension counts targets. None for plain inputs.
    """
    warnings = [one for one in found.warnings if not one.startswith(ILL_CONDITIONED) or of_components(one)]
    if any(map(of_components, warnings)):
        return warnings
    return [*warnings, *_notes_of_cancelling(found, parts)]


def _notes_of_cancelling(found: Attribution, parts: Sequence[Optional[Tensor]]) -> List[str]:
    """A note where magnitudes of all targets together are large against what the numbers move by."""
    known = [_as_rows(part) for part in parts if part is not None]
    if not known:
        return []
    totals = _together([_sums(rows) for rows in known])
    # The move of a target is the total of its parts and its leftover. Where even the smallest that it may be is large
    # enough, no target has to be looked at.
    share = found.number("leftover_share")
    if sum(_size(rows) for rows in known) * (1 + share) < (_ILL_CONDITIONED - share) * _size(totals):
        return []
    masses = _together([_sums(call("aten::abs", rows)) for rows in known])
    size = move = value = 0.0
    for mass, one in zip(masses.tolist(), found):
        if math.isfinite(one.value) and math.isfinite(mass):
            size += mass + abs(one.leftover)
            move += abs(one.value - one.reference)
            value += abs(one.value)
    epsilon = 2.0**-52 if found.value.dtype in ("float64", "complex128") else 2.0**-23
    if size <= 64 * epsilon * value or size < _ILL_CONDITIONED * move:
        return []
    come_to = "come to %.2g times the difference" % (size / move) if move else "do not vanish, as the difference does,"
    return [_NOTE % (ILL_CONDITIONED, come_to)]


def _as_rows(part: Tensor) -> Tensor:
    wide = part if part.dtype in ("float32", "float64") else part.to("float32")
    if len(part.shape) == 2:
        return wide
    return call("aten::reshape", wide, [part.shape[0], math.prod(part.shape[1:])])


def _together(sums: Sequence[Tensor]) -> Tensor:
    """Adds tensors up, by target."""
    return functools.reduce(lambda one, other: call("aten::add.Tensor", one, other), sums)


def _sums(rows: Tensor) -> Tensor:
    return call("aten::sum.dim_IntList", rows, [1])


def _size(numbers: Tensor) -> float:
    """The sum of all magnitudes."""
    return call("aten::linalg_vector_norm", numbers, 1).item()
