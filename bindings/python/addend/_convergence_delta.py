"""Convergence delta as Captum defines it: the part of the model's move that attributions miss."""

import math
from typing import Any, Callable, List, Optional, Sequence, Tuple

from . import _native
from ._attribution import Attribution
from ._call import call
from ._composition import Composition
from ._tensor import Tensor, as_tensor

# Returns the explained tensor on the baseline, from a run of the plain model; None where no run gives it.
OnBaseline = Callable[[], Optional[Any]]

_UNKNOWN = (
    "the delta is measured from the reference, which is not known to be what the model gives on the baseline%s; no run of "
    "the model gives that where what is explained or attributed to is inside it, or where there are several baselines"
)


def deltas(
    found: Attribution, tensors: Sequence[Optional[Tensor]], on_baseline: OnBaseline
) -> Tuple[List[float], List[str]]:
    """Computes the deltas by target, with notes on them: the sum of attributions minus (value - the model's output on
    the baseline). The model runs on the baseline unless provenance knows that the reference is its output there.

    Args:
        tensors: the attributions, whose first dimension counts targets; None for plain inputs.
        on_baseline: runs the model on the baseline.
    """
    values, starts = found._numbers(_native.NUMBER_VALUE, _native.NUMBER_REFERENCE)
    report = found.report
    notes: List[str] = []
    if report["reference_is_model_on_baseline"] != "yes":
        own = on_baseline()
        if own is not None:
            starts = _numbers_of(as_tensor(own), found)
        else:
            reason = report["reference_reason"]
            notes.append(_UNKNOWN % (reason and " (%s)" % reason))
    sums = [0.0] * len(values)
    for tensor in tensors:
        if tensor is not None:
            sums = [a + b for a, b in zip(sums, _sums(tensor))]
    return [total - (value - start) for total, value, start in zip(sums, values, starts)], notes


def _sums(tensor: Tensor) -> List[float]:
    """The sum of each example or target."""
    rows = call("aten::reshape", tensor.to("float64"), [tensor.shape[0], math.prod(tensor.shape[1:])])
    return call("aten::sum.dim_IntList", rows, [1]).tolist()


def _numbers_of(output: Tensor, found: Attribution) -> List[float]:
    """The targets' numbers of another output; NaN where it is of another shape, so that it has none of them."""
    if tuple(output.shape) != tuple(found.value.shape):
        return [math.nan] * len(found)
    whole = Composition(call("aten::unsqueeze", output, 0))
    return [whole.explain(one.to_dict()["targets"][0]["target"]).value for one in found]
