"""Calls of live models as programs."""

import functools
import json
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from . import _native
from ._live_call import LiveCall, example_of
from ._live_check import check, require_same
from ._live_examples import Examples, record_call
from ._modules import modules_of
from ._program import Program, read_check
from ._records import TraceCheck
from ._same_numbers import first_apart
from ._state import State


def record(
    model: Any, args: Any, kwargs: Any, lines: bool, others: Sequence[Any] = (), learn_sizes: bool = False
) -> Program:
    """The program of a call, as `TracedModel.record` gives it."""
    if others or learn_sizes:
        program = record_several(model, [(args, kwargs), *map(example_of, others)], lines)
    else:
        program = record_call(model, args, kwargs, lines)[0]
        program._learn = _learn(model, args, kwargs, lines)
    program._source = functools.partial(check, model, args, kwargs)
    return program


def record_checked(
    model: Any, args: Any, kwargs: Any, lines: bool, others: Sequence[Any], **options: Any
) -> Tuple[Program, TraceCheck]:
    """Records, and checks the program by the second run that `check` makes; the model is left as the first call
    leaves it."""
    after: List[State] = []
    given = (args, kwargs, others)
    before = State(model, parameters=True, given=given)

    def begin(example: int) -> None:
        if examples.first is not None and not after:
            after.append(State(model, parameters=True, given=given))
        if example > 0:
            before.restore()

    examples = Examples(model, [(args, kwargs), *map(example_of, others)], lines, begin)
    try:
        found = read_check(_native.live_check_trace(examples.request(), json.dumps(options), examples.record))
    finally:
        for state in after:
            state.restore()
    program = examples.first
    assert program is not None
    program._learn = _learn(model, args, kwargs, lines)
    program._source = functools.partial(check, model, args, kwargs)
    return program, found


def record_several(
    model: Any, calls: Sequence[Tuple[Any, Any]], lines: bool, first: Optional[Dict[str, Any]] = None
) -> Program:
    """One program for several calls, each of them from the state that the model has now; it is left as the first
    call leaves it: at sizes that nobody asked for it might write what it does not write otherwise.

    Args:
        first: the numbers that the first call gave when it was made, where it was.

    Raises:
        FailedPrecondition: the first call gives others.
    """
    before = State(model, parameters=True, given=calls)
    after: List[State] = []

    def end() -> None:
        if not after:
            after.append(State(model, parameters=True, given=calls))
        before.restore()

    known = first

    def require_known(numbers: Dict[str, Any]) -> None:
        nonlocal known
        if known is None:
            known = numbers
        elif first_apart(known, numbers) is not None:
            require_same(LiveCall(model, *calls[0], everything=True), known, numbers)

    # Replays in between begin where recordings did, and recordings where replays did not end.
    examples = Examples(model, calls, lines, lambda example: before.restore(), end, require_known)
    try:
        program = Program(_native.live_record(examples.request(), examples.record))
        if examples.stopped is not None:
            raise examples.stopped
        program._call = None if examples.first is None else examples.first._call
        return program
    finally:
        for state in after:
            state.restore()


def _learn(model: Any, args: Any, kwargs: Any, lines: bool) -> Callable[..., Optional[Program]]:
    """Returns a function that records the call again, for other sizes too, and leaves the model as it is. It
    returns None if the model's tensors have changed by then."""
    import torch

    def tensors() -> List[Any]:
        found = []
        for _, module in modules_of(model):
            for tensor in (*module.parameters(recurse=False), *module.buffers(recurse=False)):
                memory = tensor.data_ptr() if tensor.layout == torch.strided else None
                found.append((id(tensor), memory, None if tensor.is_inference() else tensor._version))
        return found

    known = tensors()

    def learn(**options: Any) -> Optional[Program]:
        nonlocal known
        if tensors() != known:
            return None
        before = State(model, parameters=True, given=(args, kwargs))
        try:
            return record(model, args, kwargs, lines, **options)
        finally:
            before.restore()
            known = tensors()

    return learn
