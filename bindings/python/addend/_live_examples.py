"""Calls of live models, recorded one by one and as examples of one program."""

import functools
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from . import _native
from ._errors import FailedPrecondition, InvalidArgument
from ._input import as_inputs
from ._live_call import LiveCall, bound_arguments
from ._program import Program
from ._recorded_call import RecordedCall
from ._recording import Recording
from ._request import new_request
from ._same_numbers import APART, equals, numbers_in
from ._structure import Place, map_leaves
from ._tensor import Tensor, as_tensor


def record_call(model: Any, args: Any, kwargs: Any, lines: bool) -> Tuple[Program, Any, Dict[str, Any]]:
    """The program of a call, what the call returned, and the tensors in that by their places, in the order of the
    program's outputs."""
    import torch

    call = LiveCall(model, args, kwargs, everything=True)
    if not call.given:
        raise ValueError("nothing to record: the model was given no tensor")
    with Recording(as_inputs(call.given), call.names, model, lines) as trace:
        output = call.run(call.arguments_with(trace.inputs))
        shared = call.written(trace.inputs)
        if shared is not None:
            raise InvalidArgument(shared + "; record copies of them")
        places: Dict[str, Any] = {}

        def add(leaf: Any, path: str) -> Any:
            if not isinstance(leaf, torch.Tensor):
                return leaf
            trace.output(leaf, path)
            places[path] = leaf
            return Place(len(places) - 1)

        returned = map_leaves(add, output, "output")
        if not places:
            raise ValueError("the model returned no tensor")
    program = trace.program
    assert program is not None
    arguments = call.arguments_with([Place(k) for k in range(len(call.given))])
    program._call = RecordedCall(functools.partial(bound_arguments, model), arguments, returned)
    return program, output, places


class Examples:
    """Calls of a live model, which is recorded with other tensors in the places of theirs.

    Args:
        begin: is told the number of a call that begins.
        end: is called behind every call.
        require_same: is told what the first call gave whenever it is recorded with its own tensors, which learning does
            twice, and raises where that is not to be.

    Attributes:
        first: the program of the call that was recorded first.
    """

    def __init__(
        self,
        model: Any,
        calls: Sequence[Tuple[Any, Any]],
        lines: bool,
        begin: Callable[[int], Any],
        end: Callable[[], Any] = lambda: None,
        require_same: Optional[Callable[[Dict[str, Any]], None]] = None,
    ):
        self.first: Optional[Program] = None
        self._require_same = require_same
        self._model = model
        self._calls = calls
        self._lines = lines
        self._begin, self._end = begin, end
        self.stopped: Optional[BaseException] = None  # what ends more than one call: an interrupt

    def request(self) -> Any:
        """The tensors of every call, on any depth, each object once."""
        request = new_request()
        for index, call in enumerate(self._calls):
            if index > 0:
                _native.request_next_example(request)
            for source in as_inputs(self._tensors(call)):
                _native.request_add_input(request, None, as_tensor(source.value)._handle)
        return request

    def record(self, example: int, inputs: List[Any]) -> Any:
        """The native program of the call with these tensors."""
        if self.stopped is not None:
            raise self.stopped
        self._begin(example)
        tensors = [Tensor(tensor).torch() for tensor in inputs]
        call = self._calls[example]
        own = self._tensors(call)
        given = {id(leaf): tensor for leaf, tensor in zip(own, tensors)}
        args, kwargs = map_leaves(lambda leaf, path: given.get(id(leaf), leaf), call, "")
        # Before the model may write it.
        same = self._require_same is not None and example == 0 and all(map(equals, tensors, as_inputs(own)))
        try:
            program, output, _ = record_call(self._model, args, kwargs, self._lines)
            if same and self._require_same is not None:
                self._require_same(numbers_in(output))
        except FailedPrecondition as apart:
            if str(apart).startswith(APART):
                self.stopped = apart
            raise
        except Exception:
            raise
        except BaseException as stop:
            self.stopped = stop
            raise
        finally:
            self._end()
        self.first = self.first or program
        return program._handle

    def _tensors(self, call: Tuple[Any, Any]) -> List[Any]:
        """The tensors of a call, in the order in which a recording has them as inputs."""
        return LiveCall(self._model, *call, everything=True).given
