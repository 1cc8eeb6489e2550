"""Blocks of code that are decomposed, attributed or planned."""

from typing import Any, Callable, Dict, List, Optional, Sequence

from . import _native
from ._block import Block
from ._context import Context
from ._input import as_inputs, note_of_axis, warnings_before
from ._modules import KnownTensors, Modules
from ._request import add_input
from ._results import Results
from ._source_lines import SourceLines, caller
from ._tensor import Tensor, as_tensor


class Trace(Block):
    """The block of `tracing`. It belongs to the thread that enters it.

    Attributes:
        inputs: the live tensors, copies of what was given, in the same order: what the model has to be called with.
        results: the `Results`, once the block has ended.
        on_baseline: what gives the outputs of the plain model, by name, where `inputs` are the baselines that it is
            given; the report then says how far the reference is from that. Where it is not set, nobody looks.
    """

    on_baseline: Optional[Callable[[List[Any]], Dict[str, Any]]] = None

    def __init__(
        self,
        inputs: Sequence[Any],
        names: Sequence[Optional[str]],
        modules: Modules,
        known: KnownTensors,
        request: Any,
        context: Context,
    ):
        sources = as_inputs(inputs)
        super().__init__(sources, modules, request)
        self.results: Optional[Results] = None
        self._context = context
        self._notes.extend(filter(None, [note_of_axis(inputs), *warnings_before(inputs)]))
        for name, source, live in zip(names, sources, self.inputs):
            add_input(request, name, source, live)
        for name, tensor in known.handles(modules):
            _native.request_add_parameter(request, name, tensor._handle)

    def __enter__(self) -> "Trace":
        self._require_new()
        lines = SourceLines(caller())
        self._begin(self._begun(self._request))
        _native.trace_set_frames(self._trace, lines)
        return self

    def _begun(self, request: Any) -> Any:
        return _native.trace_begin(self._context._handle, request)

    def _again(self) -> None:
        """Begins the run that is decomposed, behind the one that found what is inside the model."""
        _native.trace_again(self._trace)
        self._count = 0

    def _end(self, trace: Any, notes: Sequence[str]) -> None:
        for note in notes:
            _native.trace_add_note(trace, note)
        if self.on_baseline is not None:
            baselines = [Tensor(_native.trace_baseline(trace, k)).torch() for k in range(len(self.inputs))]
            for name, tensor in self.on_baseline(baselines).items():
                _native.trace_add_on_baseline(trace, name, as_tensor(tensor)._handle)
        self._finish(trace)

    def _finish(self, trace: Any) -> None:
        self.results = Results(_native.trace_end(trace))

    def report(self) -> Dict[str, Any]:
        """The report of the run, once the block has ended."""
        return {} if self.results is None else self.results.report


class AttributionTrace(Trace):
    """A trace that computes an attribution.

    Attributes:
        found: the `Attribution`, once the block has ended, but for the places of its inputs.
    """

    found: Any = None

    def _begun(self, request: Any) -> Any:
        return _native.trace_begin_attribution(self._context._handle, request)

    def _finish(self, trace: Any) -> None:
        self.found = _native.trace_end_attribution(trace)

    def report(self) -> Dict[str, Any]:
        return Results(_native.attribution_results(self.found)).report


class PlanTrace(AttributionTrace):
    """A trace that makes a plan.

    Attributes:
        found: the native plan, once the block has ended.
    """

    def _finish(self, trace: Any) -> None:
        self.found = _native.trace_end_plan(trace)

    def report(self) -> Dict[str, Any]:
        return {}
