"""Recordings of live models, compared with the models."""

import json
from typing import Any, Dict, Sequence

from . import _native
from ._errors import FailedPrecondition
from ._live_call import LiveCall, example_of
from ._live_examples import Examples
from ._program import read_check
from ._records import TraceCheck
from ._same_numbers import APART, first_apart
from ._state import State

_KEEPS = (
    "; something that no buffer and no other attribute of its modules holds goes from run to run: reset it in forward, or "
    "keep it in a buffer"
)


def check(model: Any, args: Any, kwargs: Any, others: Sequence[Any], **options: Any) -> TraceCheck:
    """Checks recordings of a call, as `TracedModel.check_trace` says."""
    before = State(model, parameters=True, given=(args, kwargs, others))
    # The second run follows the first without a reset: what differs between them is what is looked for. Every other
    # input begins as the first one did.
    examples = Examples(model, [(args, kwargs), *map(example_of, others)], True, lambda k: k > 0 and before.restore())
    try:
        return read_check(_native.live_check_trace(examples.request(), json.dumps(options), examples.record))
    finally:
        before.restore()


def require_same(call: LiveCall, first: Dict[str, Any], again: Dict[str, Any]) -> None:
    """Makes sure that two runs of a call gave the same numbers.

    Raises:
        FailedPrecondition: they did not.
    """
    other = first_apart(first, again)
    if other is not None:
        raise FailedPrecondition(apart(call, APART + " at " + other))


def apart(call: LiveCall, found: str) -> str:
    """Describes a model of which two runs differ, including the operator where they part."""
    try:
        findings = check(call.model, call.args, call.kwargs, ()).findings
    except Exception:  # what it says of two runs stands without the operator
        findings = []
    blamed = [finding for finding in findings if finding.error]
    # An operator, where one is to blame.
    blamed.sort(key=lambda finding: not finding.position)
    where = "; ".join("%s: %s" % (one.position, one.message) if one.position else one.message for one in blamed[:1])
    return found + (" (%s)" % where if where else "") + _KEEPS
