"""Runs of live models in blocks that are decomposed, attributed or planned."""

import functools
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

from ._errors import FailedPrecondition, NotFound
from ._input import Inside
from ._live_call import LiveCall, copied
from ._live_check import apart, require_same
from ._live_tensors import has_parts
from ._modules import modules_of, named_tensors
from ._on_baseline import OnBaseline
from ._same_numbers import APART, first_apart, numbers_in
from ._state import State
from ._structure import Place, filled, map_leaves


def run_traced(
    call: LiveCall,
    trace: Any,
    insides: Sequence[Inside],
    outputs: Optional[Sequence[str]],
    on_baseline: Optional[OnBaseline],
    searched: Optional[Dict[str, Any]],
    name_outputs: Callable[..., Dict[str, int]],
) -> Tuple[Any, Dict[str, int]]:
    """Calls the model in the block of a trace: what it returned, and by their places in that the results.

    Args:
        outputs: those that are asked for; None: all.
        searched: the numbers of the first run of the model, where another one came before.
        name_outputs: asks for what the model returned, as the function of that name does.
    """
    arguments = call.arguments_with(trace.inputs)
    first = copied(arguments) if insides else None
    before = call.state() if insides or on_baseline is not None else None
    # Copied now: the run may change what the model is given beside its inputs.
    again = None
    if on_baseline is not None:
        again = copied(call.arguments_with([Place(k) for k in range(len(call.given))]))
    names: Dict[str, int] = {}
    if before is not None and on_baseline is not None:
        on_baseline.begin(functools.partial(_outputs_from, before, call, again), names)
        trace.on_baseline = on_baseline
    try:
        with trace:
            if before is not None and insides:
                name_outputs(trace, call, first, call.run(first), None)
                before.restore()
                trace._again()
            output = call.run(arguments)
            trace._notes.extend(filter(None, [call.written(trace.inputs)]))
            names.update(name_outputs(trace, call, arguments, output, outputs))
    except FailedPrecondition as error:
        if not str(error).startswith(APART):
            raise
        raise FailedPrecondition(apart(call, str(error))) from error
    if searched:
        require_same(call, searched, numbers_in(output))
    if before is not None and on_baseline is not None:
        _require_repeatable(trace, call, again, before, output)
    return output, names


def _outputs_from(before: State, call: LiveCall, arguments: Any, inputs: List[Any]) -> Dict[str, Any]:
    """Runs the plain model from the state `before` and returns its outputs by their places. The model is left in
    its present state."""
    import torch

    after = call.state()
    before.restore()
    given = filled(copied(arguments), inputs)
    found: Dict[str, Any] = {}
    try:
        with torch.no_grad():
            found.update(numbers_in(call.run(given)))
    finally:
        after.restore()
    return found


def _require_repeatable(trace: Any, call: LiveCall, arguments: Any, before: State, output: Any) -> None:
    """Checks, if the model's output on the baseline is not the reference, that this is not because a second run of
    the model differs from the first.

    Raises:
        FailedPrecondition: two runs differ.
    """
    report = trace.report()
    if report.get("reference_is_model_on_baseline") != "no" or report.get("reference_error") is None:
        return
    require_same(call, numbers_in(output), _outputs_from(before, call, arguments, call.inputs()))


def require_steady(call: LiveCall, before: State, output: Any) -> None:
    """Makes sure that the run since `before` changed nothing that the next one depends on.

    Raises:
        FailedPrecondition: it did.
    """
    import torch

    changed = before.difference()
    if changed is None:
        return
    recorded = numbers_in(output)
    after = call.state()
    live = call.inputs()
    try:
        with torch.no_grad():
            again = numbers_in(call.run(call.arguments_with(live)))
    finally:
        after.restore()
    other = first_apart(recorded, again)
    if other is not None:
        raise FailedPrecondition(
            "the model cannot be planned: a run changes %s, and the next one gives another %s; attribute it without a "
            "plan" % (changed, other)
        )


def name_outputs(
    trace: Any, call: LiveCall, arguments: Any, output: Any, outputs: Optional[Sequence[str]]
) -> Dict[str, int]:
    """Asks for what the model returned, or for some of it in the order of `outputs`; the results' indices by their
    places."""
    names: Dict[str, int] = {}
    known: Dict[str, Any] = {}

    def find(leaf: Any, path: str) -> Any:
        if has_parts(leaf):
            known[path] = leaf
        return leaf

    map_leaves(find, output, "output")
    for path in known if outputs is None else dict.fromkeys(path for path in outputs if path in known):
        try:
            trace.output(known[path], path)
        except NotFound:
            # Passed on untouched, it is what it was.
            if known[path].data_ptr() not in _addresses(call.model, arguments):
                raise
            continue
        names[path] = len(names)
    for name in outputs or ():
        if name not in known:
            raise ValueError("the model returned no %s that holds numbers; it has %s" % (name, ", ".join(known)))
    if outputs is not None and len(outputs) == 0:
        raise ValueError("outputs is empty; name some of %s, or leave it out" % ", ".join(known))
    if not names:
        raise ValueError("the model returned no floating-point tensor that it computed")
    return names


def _addresses(model: Any, arguments: Any) -> Set[int]:
    """The addresses of the tensors that the model was given or has."""
    found = {tensor.data_ptr() for _, tensor, _ in named_tensors(modules_of(model))}

    def find(leaf: Any, path: str) -> Any:
        if has_parts(leaf) and leaf.numel() > 0:
            found.add(leaf.data_ptr())
        return leaf

    map_leaves(find, arguments, "")
    return found
