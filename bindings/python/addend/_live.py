"""Live models: Python code that is decomposed as it runs."""

import inspect
import itertools
import types
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple, Type, Union

from . import _native
from ._attribution import (
    Attribution,
    as_given,
    numbers_like,
    plain_arguments,
    split_for_attribution,
    split_inside,
)
from ._cancellation import Cancellation
from ._composition import Composition
from ._context import Context, as_context
from ._errors import Code, Error, NotFound
from ._input import Input, add_input, as_input, new_request, one_or_list
from ._modules import KnownTensors, ModulePaths, Modules, modules_of, named_tensors
from ._program import Program
from ._results import Results, result_at
from ._source_lines import SourceLines, caller
from ._structure import map_leaves
from ._tensor import as_tensor


def tracing(
    *inputs: Any,
    model: Any = None,
    probes: Union[str, Sequence[str]] = (),
    everything: bool = False,
    memory: int = 0,
    direction: str = "auto",
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
        memory: what parts and rows may take together, in bytes; see `Model.decompose`.
        direction: which way components are found; see `Model.decompose`.
        cancellation: who may end the run.
        context: how to decompose.
        policy: choices of a `Context`, in place of one.
    """
    chosen = as_context(context, policy)
    request = new_request(probes, everything, cancellation)
    _native.request_set_memory(request, memory)
    _native.request_set_direction(request, direction)
    known = model._known if isinstance(model, TracedModel) else KnownTensors()
    modules = modules_of(model.model if isinstance(model, TracedModel) else model)
    return Trace([as_input(value) for value in inputs], modules, known, request, chosen)


def recording(*inputs: Any, model: Any = None, lines: bool = True) -> "Recording":
    """Keeps what PyTorch computes in a ``with`` block as a `Program`::

        with addend.recording(x, model=network) as trace:
            logits = network(trace.inputs[0])
            trace.output(logits)
        print(trace.program.code())

    Every operator that this thread calls is recorded, whoever calls it, and runs as ever.

    Args:
        inputs: tensors or arrays: the inputs of the program.
        model: a ``torch.nn.Module``, so that the program knows the names of its modules, parameters and buffers. Tensors
            that nobody named are constants of the program.
        lines: whether every operator knows the lines of Python that called it, which takes some microseconds.
    """
    return Recording([as_input(value) for value in inputs], [None] * len(inputs), model, lines)


class _Block:
    """What runs on this thread between entering and leaving, with live copies of inputs. It runs once."""

    def __init__(self, inputs: Sequence[Input], modules: Modules, request: Any):
        self.inputs: Tuple[Any, ...] = tuple(_live_tensor(source.value) for source in inputs)
        self._request = request
        self._modules = ModulePaths(modules)
        self._trace: Any = None
        self._count = 0

    def output(self, tensor: Any, name: Optional[str] = None) -> None:
        """Asks for a tensor that was computed in the block.

        Args:
            tensor: of PyTorch; of a trace that decomposes a floating-point one.
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

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[types.TracebackType],
    ) -> None:
        self._modules.remove()
        trace, self._trace = self._trace, None
        if error is None:
            self._end(trace)
        elif isinstance(error, RuntimeError):
            _raise_own(self._end, trace, error)

    def _begin(self, trace: Any) -> None:
        self._trace = trace
        self._request = None
        self._modules.install(self._set_module)

    def _require_new(self) -> None:
        if self._request is None:
            raise RuntimeError("a trace runs once; make another one")

    def _end(self, trace: Any) -> None:
        raise NotImplementedError

    def _set_module(self, path: str) -> None:
        _native.trace_set_module(self._trace, path)


class Trace(_Block):
    """The block of `tracing`. It belongs to the thread that enters it.

    Attributes:
        inputs: the live tensors, copies of what was given, in the same order: what the model has to be called with.
        results: the `Results`, once the block has ended.
    """

    def __init__(
        self, inputs: Sequence[Input], modules: Modules, known: KnownTensors, request: Any, context: Context
    ):
        super().__init__(inputs, modules, request)
        self.results: Optional[Results] = None
        self._context = context
        for source, live in zip(inputs, self.inputs):
            add_input(request, None, source, live)
        for name, tensor in known.handles(modules):
            _native.request_add_parameter(request, name, tensor._handle)

    def __enter__(self) -> "Trace":
        self._require_new()
        self._begin(_native.trace_begin(self._context._handle, self._request))
        return self

    def _end(self, trace: Any) -> None:
        self.results = Results(_native.trace_end(trace))


class Recording(_Block):
    """The block of `recording`. It belongs to the thread that enters it.

    Attributes:
        inputs: the live tensors, copies of what was given, in the same order: what the model has to be called with.
        program: the `Program`, once the block has ended. Its outputs are what `output` was given, in order.
    """

    def __init__(self, inputs: Sequence[Input], names: Sequence[Optional[str]], model: Any, lines: bool):
        request = new_request((), False, None)
        modules = modules_of(model)
        super().__init__(inputs, modules, request)
        self.program: Optional[Program] = None
        self._lines = lines
        for name, live in zip(names, self.inputs):
            _native.request_add_input(request, name, as_tensor(live)._handle)
        for name, tensor, learned in named_tensors(modules):
            add = _native.request_add_parameter if learned else _native.request_add_buffer
            add(request, name, as_tensor(tensor)._handle)

    def __enter__(self) -> "Recording":
        self._require_new()
        lines = SourceLines(caller()) if self._lines else None
        self._begin(_native.trace_record(self._request, lines))
        return self

    def _end(self, trace: Any) -> None:
        self.program = Program(_native.trace_end_program(trace))


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
        self._known = KnownTensors()
        if "inside" in options:
            options["inside"] = one_or_list(options["inside"])
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

        They are named by their place in it: ``"output"``, ``"output.logits"``, ``"output.hidden_states.3"``. Where
        components begin inside the model, it runs once and its recorded program is decomposed, whose outputs are
        ``"output"``, ``"output.1"`` in order.
        """
        if self._options.get("inside") is not None:
            return self._decompose_inside(args, kwargs)
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
        with tracing(*sources, model=self, **self._options) as trace:
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

    def record(self, *args: Any, lines: bool = True, **kwargs: Any) -> Program:
        """Calls the model, and keeps what it did as a `Program`.

        Every tensor in the arguments, on any depth, is an input of the program, called by the model's own name for the
        argument (``"x"``, ``"masks.0"``); every tensor that the model returns is an output, in order.

        Args:
            lines: whether every operator knows the lines of Python that called it, which takes some microseconds.
        """
        return self._record(args, kwargs, lines)[0]

    def explain(
        self,
        *args: Any,
        targets: Any = "top1",
        at: Optional[str] = None,
        each_example: bool = False,
        operators: bool = False,
        **kwargs: Any,
    ) -> Attribution:
        """Finds what each element of the inputs gave to one number of the output, or to several, by one sweep back; see
        `Model.explain`. The model runs once, as it is; its recorded program is what is explained.

        Args:
            args: what the model is called with, an `Input` for each tensor that is attributed to.
            targets: as for `Model.explain`, and so are `at`, `each_example` and `operators`.
            kwargs: of the model.
        """
        return self._explain(args, kwargs, targets=targets, at=at, each_example=each_example, operators=operators)[0]

    def attribute(
        self,
        inputs: Any,
        baselines: Any = None,
        target: Any = None,
        additional_forward_args: Any = None,
        return_convergence_delta: bool = False,
        *,
        each_example: bool = True,
        at: Optional[str] = None,
    ) -> Any:
        """What each element of the inputs gave to the target, with the arguments of Captum; see `Model.attribute`.

        Inputs are the positional arguments of the model, or in a dict its named ones. Further ones in
        `additional_forward_args` may be anything that the model takes. Where the model was compiled with `inside`, that
        is what is attributed to.
        """
        inside = self._options.get("inside")
        split, values = split_for_attribution(inputs, baselines, inside)
        further = plain_arguments(additional_forward_args)
        named = split if isinstance(split, dict) else {}
        positional = [] if isinstance(split, dict) else split
        asked = {"targets": target, "at": at, "each_example": each_example, "inside": split_inside(inside)}
        found, order = self._explain((*positional, *further), named, **asked)
        if inside is not None:
            given = as_given(found.inside, inside, [(*values, *further)[0]] * len(found.inside))
        else:
            tensors = {id(source): tensor for source, tensor in zip(order, found.inputs)}
            sources = named.values() if named else positional
            given = as_given([tensors[id(source)] for source in sources], inputs, values)
        return (given, numbers_like(found.leftovers, (*values, *further)[0])) if return_convergence_delta else given

    def _explain(self, args: Any, kwargs: Any, **asked: Any) -> Tuple[Attribution, List[Input]]:
        """As `explain`; also what the inputs of the program were given as, in their order."""
        program, sources, _ = self._record(args, kwargs, True)
        of_decompose = ("probes", "everything", "memory", "direction")
        options = {key: value for key, value in self._options.items() if key not in of_decompose}
        return program.model().explain(*sources, **{**options, **asked}), sources

    def _decompose_inside(self, args: Any, kwargs: Any) -> Results:
        """As `decompose`, of the recorded program: what is inside is only found in a model that runs twice."""
        import torch

        program, sources, output = self._record(args, kwargs, True)
        results = program.model().decompose(*sources, **self._options)
        positions = itertools.count()

        def replace(leaf: Any, path: str) -> Any:
            if not isinstance(leaf, torch.Tensor):
                return leaf
            position = next(positions)
            return result_at(results._handle, position) if _has_parts(leaf) else leaf

        results.output = map_leaves(replace, output, "output")
        return results

    def _record(self, args: Any, kwargs: Any, lines: bool) -> Tuple[Program, List[Input], Any]:
        """The program of a call, what its inputs were given as, in their order, and what the model returned."""
        import torch

        arguments, call = _named_arguments(self.model, args, kwargs)
        sources: List[Input] = []
        names: List[str] = []
        places: Dict[int, int] = {}  # one live tensor for each object, wherever it is passed

        def find(leaf: Any, path: str) -> Any:
            if isinstance(leaf, (Input, Composition, torch.Tensor)) and id(leaf) not in places:
                places[id(leaf)] = len(sources)
                sources.append(as_input(leaf))
                names.append(path)
            return leaf

        map_leaves(find, arguments, "")
        if not sources:
            raise ValueError("nothing to record: the model was given no tensor")
        with Recording(sources, names, self.model, lines) as trace:
            output = call(
                map_leaves(
                    lambda leaf, path: trace.inputs[places[id(leaf)]] if id(leaf) in places else leaf, arguments, ""
                )
            )
            count: List[Any] = []

            def add(leaf: Any, path: str) -> Any:
                if isinstance(leaf, torch.Tensor):
                    trace.output(leaf, path)
                    count.append(leaf)
                return leaf

            map_leaves(add, output, "output")
            if not count:
                raise ValueError("the model returned no tensor")
        program = trace.program
        assert program is not None
        return program, sources, output

    def _addresses(self, arguments: Any) -> Set[int]:
        """Of the tensors that the model was given or has."""
        found = {tensor.data_ptr() for _, tensor, _ in named_tensors(modules_of(self.model))}

        def find(leaf: Any, path: str) -> Any:
            if _has_parts(leaf) and leaf.numel() > 0:
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
        options: `probes`, `everything`, `memory`, `direction`, `cancellation`, `context`, or choices of a `Context`; see
            `tracing`. With `inside`, components begin at tensors inside the model, as for `Model.decompose`.
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

    return isinstance(leaf, torch.Tensor) and (leaf.is_floating_point() or leaf.is_complex())


def _raise_own(end: Callable[[Any], None], trace: Any, error: RuntimeError) -> None:
    """Raises what the recording itself failed with, which PyTorch has turned into an error of its own."""
    try:
        end(trace)
    except Error as own:
        # That of an operator which the model called wrongly is the model's: it stays as PyTorch words it.
        if own.code not in (Code.INVALID_ARGUMENT, Code.OUT_OF_RANGE):
            raise own from error


def _named_arguments(model: Any, args: Any, kwargs: Any) -> Tuple[Dict[str, Any], Callable[[Any], Any]]:
    """The arguments of a call by the names that the model gives them, and the call with others in their places."""
    function = getattr(model, "forward", model)
    try:
        signature = inspect.signature(function)
        bound = signature.bind(*args, **kwargs)
    except (TypeError, ValueError):
        # The model says itself what is wrong, if anything is.
        named = {"input_%d" % index: value for index, value in enumerate(args)}
        named.update(kwargs)
        return named, lambda given: model(
            *[given["input_%d" % index] for index in range(len(args))], **{key: given[key] for key in kwargs}
        )

    def call(given: Any) -> Any:
        bound.arguments.update(given)
        return model(*bound.args, **bound.kwargs)

    return dict(bound.arguments), call
