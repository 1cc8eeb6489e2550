"""Live models: Python code that is decomposed as it runs."""

import types
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple, Type, Union

from . import _native
from ._cancellation import Cancellation
from ._composition import Composition
from ._context import Context, as_context
from ._errors import Code, Error, NotFound
from ._input import Input, add_input, as_input, new_request
from ._modules import ModulePaths, named_tensors
from ._results import Results, result_at
from ._structure import map_leaves
from ._tensor import as_tensor


def tracing(
    *inputs: Any,
    model: Any = None,
    probes: Union[str, Sequence[str]] = (),
    everything: bool = False,
    cancellation: Optional[Cancellation] = None,
    context: Optional[Context] = None,
    **policy: Any,
) -> "Trace":
    """Decomposes what PyTorch computes in a ``with`` block::

        with addend.tracing(addend.Input(x, dims=0)) as trace:
            logits = model(trace.inputs[0])
            trace.output(logits, "logits")
        print(trace.results["logits"])

    Every operator that this thread calls is recorded, whoever calls it, and runs as ever.

    Args:
        inputs: each an `Input`, a `Composition`, or a tensor or array, which has no components then.
        model: a ``torch.nn.Module``, so that reports, probes and policies know the names of its modules and parameters.
        probes: inner tensors that are wanted too; see `Model.decompose`.
        everything: checks every operator, not only those that results depend on.
        cancellation: who may end the run.
        context: how to decompose.
        policy: choices of a `Context`, in place of one.
    """
    chosen = as_context(context, policy)
    return Trace([as_input(value) for value in inputs], model, new_request(probes, everything, cancellation), chosen)


class Trace:
    """The block of `tracing`. It belongs to the thread that enters it.

    Attributes:
        inputs: the live tensors, copies of what was given, in the same order: what the model has to be called with.
        results: the `Results`, once the block has ended.
    """

    def __init__(self, inputs: Sequence[Input], model: Any, request: Any, context: Context):
        self.inputs: Tuple[Any, ...] = tuple(_live_tensor(source.value) for source in inputs)
        self.results: Optional[Results] = None
        self._request = request
        self._context = context
        self._modules = ModulePaths(model)
        self._trace: Any = None
        self._count = 0
        for source, live in zip(inputs, self.inputs):
            add_input(request, None, source, live)
        for name, tensor in named_tensors(model):
            _native.request_add_parameter(request, name, as_tensor(tensor)._handle)

    def output(self, tensor: Any, name: Optional[str] = None) -> None:
        """Asks for the composition of a tensor that was computed in the block.

        Args:
            tensor: a floating-point tensor of PyTorch.
            name: of the result; ``"output"``, ``"output.1"`` and so on unless given.

        Raises:
            NotFound: nothing that was recorded gave it.
        """
        if self._trace is None:
            raise ValueError("outputs are named inside of the with block")
        if name is None:
            name = "output.%d" % self._count if self._count else "output"
        _native.trace_add_output(self._trace, name, as_tensor(tensor)._handle)
        self._count += 1

    def __enter__(self) -> "Trace":
        if self._request is None:
            raise RuntimeError("a trace runs once; make another one with addend.tracing()")
        self._trace = _native.trace_begin(self._context._handle, self._request)
        self._request = None
        self._modules.install(self._set_module)
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[types.TracebackType],
    ) -> None:
        self._modules.remove()
        trace, self._trace = self._trace, None
        if error is None:
            self.results = Results(_native.trace_end(trace))
        elif isinstance(error, RuntimeError):
            _raise_own(trace, error)

    def _set_module(self, path: str) -> None:
        _native.trace_set_module(self._trace, path)


class TracedModel:
    """A model that decomposes what it is given; `compile` makes it.

    It is called as the model is, with an `Input` or a `Composition` in place of each tensor that shall be decomposed, on
    any depth of its arguments. What it returns is what the model returns, with a `Composition` in place of each
    floating-point tensor that operators have met. The model itself runs unmodified, on copies of these inputs.

    Attributes:
        model: the model as it was given. Other attributes are those of it.
    """

    def __init__(self, model: Callable[..., Any], options: Dict[str, Any]):
        self.model = model
        self._options = options
        self._tracing = True

    @property
    def tracing(self) -> bool:
        """Whether calls decompose."""
        return self._tracing

    def trace(self, mode: bool = True) -> "TracedModel":
        """Switches between decomposing and the plain model, which takes tensors and returns them."""
        self._tracing = bool(mode)
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._tracing:
            return self.decompose(*args, **kwargs).output
        args, kwargs = map_leaves(_plain, (args, kwargs), "")
        return self.model(*args, **kwargs)

    def decompose(self, *args: Any, **kwargs: Any) -> Results:
        """Calls the model; what it returns is the ``output`` of the results.

        They are named by their place in it: ``"output"``, ``"output.logits"``, ``"output.hidden_states.3"``.
        """
        sources: List[Input] = []
        places: Dict[int, int] = {}  # one live tensor for each object, wherever it is passed

        def find(leaf: Any, path: str) -> Any:
            if isinstance(leaf, (Input, Composition)) and id(leaf) not in places:
                places[id(leaf)] = len(sources)
                sources.append(as_input(leaf))
            return leaf

        arguments = (args, kwargs)
        map_leaves(find, arguments, "")
        if not sources:
            raise ValueError("nothing to decompose: pass an addend.Input or a Composition, or switch to .trace(False)")
        with tracing(*sources, model=self.model, **self._options) as trace:
            args, kwargs = map_leaves(
                lambda leaf, path: trace.inputs[places[id(leaf)]] if id(leaf) in places else leaf, arguments, ""
            )
            output = self.model(*args, **kwargs)
            names: Dict[str, int] = {}

            def add(leaf: Any, path: str) -> Any:
                if _has_parts(leaf):
                    try:
                        trace.output(leaf, path)
                    except NotFound:
                        # Passed on untouched, it is what it was.
                        if leaf.data_ptr() not in self._addresses((args, kwargs)):
                            raise
                        return leaf
                    names[path] = len(names)
                return leaf

            map_leaves(add, output, "output")
            if not names:
                raise ValueError("the model returned no floating-point tensor that it computed")
        results = trace.results
        assert results is not None
        results.output = map_leaves(
            lambda leaf, path: result_at(results._handle, names[path]) if path in names else leaf, output, "output"
        )
        return results

    def _addresses(self, arguments: Any) -> Set[int]:
        """Of the tensors that the model was given or has."""
        found = {tensor.data_ptr() for _, tensor in named_tensors(self.model)}

        def find(leaf: Any, path: str) -> Any:
            if _has_parts(leaf):
                found.add(leaf.data_ptr())
            return leaf

        map_leaves(find, arguments, "")
        return found

    def __getattr__(self, name: str) -> Any:
        if name == "model":  # before __init__ has set it
            raise AttributeError(name)
        return getattr(self.model, name)

    def __repr__(self) -> str:
        return "TracedModel(%r)" % (self.model,)


def compile(model: Callable[..., Any], **options: Any) -> TracedModel:
    """Wraps a model so that calls of it decompose what they are given::

        model = addend.compile(model)
        output = model(addend.Input(x, dims=0))   # a Composition
        model.trace(False)
        output = model(x)                         # a tensor, as ever

    Nothing is converted and nothing patched: the model runs with its own control flow, in-place writes included.

    Args:
        model: a ``torch.nn.Module``, or any function that computes with PyTorch.
        options: `probes`, `everything`, `cancellation`, `context`, or choices of a `Context`; see `tracing`.
    """
    if not callable(model):
        raise TypeError("model must be callable, not %s" % type(model).__name__)
    return TracedModel(model, options)


def _live_tensor(value: Any) -> Any:
    """A contiguous tensor of PyTorch on memory of its own."""
    import torch

    if not isinstance(value, torch.Tensor):
        value = as_tensor(value).torch()
    return value.detach().clone(memory_format=torch.contiguous_format)


def _plain(leaf: Any, path: str) -> Any:
    if isinstance(leaf, (Input, Composition)):
        return _live_tensor(leaf.value)
    return leaf


def _has_parts(leaf: Any) -> bool:
    import torch

    return isinstance(leaf, torch.Tensor) and (leaf.is_floating_point() or leaf.is_complex()) and leaf.numel() > 0


def _raise_own(trace: Any, error: RuntimeError) -> None:
    """Raises what the recording itself failed with, which PyTorch has turned into an error of its own."""
    try:
        _native.trace_end(trace)
    except Error as own:
        # That of an operator which the model called wrongly is the model's: it stays as PyTorch words it.
        if own.code not in (Code.INVALID_ARGUMENT, Code.OUT_OF_RANGE):
            raise own from error
