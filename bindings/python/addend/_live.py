"""Live models: Python code that is decomposed as it runs."""

import copy
import functools
import inspect
import json
import threading
import types
from collections.abc import Mapping
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple, Type, Union

from . import _native
from ._attribution import Attribution, add_targets, explained
from ._call import using
from ._cancellation import Cancellation
from ._captum import Question
from ._captum_options import own_choices
from ._composition import Composition
from ._context import CHOICES, Context, as_context, require_options
from ._dtypes_apart import dtypes_apart
from ._errors import Code, Error, FailedPrecondition, InvalidArgument, NotFound, Unimplemented
from ._functions import any_in_graph, call_function
from ._input import Input, Inside, add_input, add_inside, as_input, as_inputs, as_insides, new_request, note_of_axis
from ._input import one_or_list
from ._methods import Methods, method_of
from ._meta import on_meta
from ._modules import KnownTensors, ModulePaths, Modules, SlowAttention, SlowPaths, Uncompiled, is_module
from ._modules import listing_module, modules_of, named_tensors, unwrapped
from ._live_tensors import has_parts, live_tensor
from ._model import as_arguments
from ._named_parts import placed
from ._on_baseline import OnBaseline
from ._program import Program, Requirement, TraceCheck, read_check
from ._reads import Readings
from ._recorded_call import RecordedCall
from ._recorded_question import ALL_TOGETHER, RecordedQuestion, examples_of, larger_calls
from ._plan import Plan
from ._reasons import Concepts, Interactions
from ._request_options import OF_ANY, OF_DECOMPOSE, OF_TRACE
from ._results import Results, result_at
from ._shared import SharedMemory
from ._source_lines import SourceLines, caller
from ._state import State
from ._structure import Place, filled, map_leaves
from ._tensor import Tensor, as_tensor
from ._workers import Workers

# Choices of a call that are no choices of a policy.
_OF_DECOMPOSE = ("probes", "outputs", *OF_DECOMPOSE)
_OF_ANY = ("inside", "cancellation", "context", *OF_ANY)

_HIGHER_ORDER = (
    "the model calls a higher-order operator of PyTorch (cond, while_loop, scan, map), which PyTorch compiles even where it "
    "is called as it is, so that its operators are not seen; save the model with torch.export.save and load the file with "
    "addend.load_model"
)
_ELSEWHERE = (
    "%s ran on another thread, where no operator is seen: only what LibTorch computes on the thread of the trace is; let "
    "the model run its modules one after the other"
)
_GIVEN_AWAY = (
    "the model gave work to another thread, where no operator is seen: what that computed from the inputs counts as a "
    "constant"
)
_LISTED = (
    "the TorchScript module %s takes a list of a tensor's elements, which no operator shows: the reference may be that of "
    "another branch"
)
# This sentence begins the error that core/explain/same_run.cc raises, by which it is known here.
_APART = "two runs of the model give different results"
_KEEPS = (
    "; something that no buffer and no other attribute of its modules holds goes from run to run: reset it in forward, or "
    "keep it in a buffer"
)
# These words are in the error of a replay that goes another way than the recording, by which it is known here.
_UNCOMPILED = "torch.compile wraps %s, which ran as it is inside, uncompiled"


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
    chosen = as_context(context, policy, tracing)
    request = new_request(probes, cancellation, everything=everything, memory=memory, direction=direction)
    known = model._known if isinstance(model, TracedModel) else KnownTensors()
    modules = modules_of(model.model if isinstance(model, TracedModel) else model)
    return Trace(inputs, [None] * len(inputs), modules, known, request, chosen)


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


class _Running(threading.local):
    """Counts the runs of models on this thread, so that a traced model inside of another one runs as a plain model."""

    depth = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *exception: Any) -> None:
        self.depth -= 1


_running = _Running()


class Block:
    """Records the operators that this thread runs between entering and leaving, with live copies of inputs. It can be
    entered once."""

    # Errors of the block behind which the recording is ended as well: PyTorch gives its errors this type.
    _ends_behind: Tuple[Type[BaseException], ...] = (RuntimeError,)

    def __init__(self, inputs: Sequence[Input], modules: Modules, request: Any):
        self.inputs: Tuple[Any, ...] = tuple(live_tensor(source.value) for source in inputs)
        self._request = request
        self._workers = Workers(self._give_away)
        self._modules = ModulePaths(modules, self._workers)
        self._slow_paths = SlowPaths(modules)
        self._slow_attention: Optional[SlowAttention] = None  # where one is installed around this
        self._uncompiled = Uncompiled(modules)
        self._listing = listing_module(modules)
        self._readings = Readings()
        self._notes: List[str] = []
        self._trace: Any = None
        self._count = 0

    def output(self, tensor: Any, name: Optional[str] = None) -> None:
        """Asks for a tensor that was computed in the block.

        Args:
            tensor: of PyTorch; of a trace that decomposes a floating-point one.
            name: of the result; ``"output"``, ``"output.1"`` and so on unless given.

        Raises:
            NotFound: nothing that was recorded gave it.
            Unimplemented: a module of the model ran on another thread.
        """
        if self._trace is None:
            raise ValueError("outputs are named inside of the with block")
        if name is None:
            name = "output.%d" % self._count if self._count else "output"
        self._require_one_thread()
        _native.trace_add_output(self._trace, name, as_tensor(tensor)._handle)
        self._count += 1

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[types.TracebackType],
    ) -> None:
        _running.__exit__()
        self._modules.remove()
        self._workers.remove()
        notes = [*self._notes, *self._slow_paths.remove()]
        if self._slow_attention is not None:
            notes.extend(self._slow_attention.notes())
        self._uncompiled.remove()
        self._readings.remove()
        trace, self._trace = self._trace, None
        if error is None:
            self._require_one_thread()
            self._end(trace, notes)
        elif _is_of_higher_order(error):
            trace = None  # ends it: this frame lives as long as the error
            raise Unimplemented(_HIGHER_ORDER) from error
        elif isinstance(error, self._ends_behind):
            _raise_own(lambda trace: self._end(trace, notes), trace, error)

    def _begin(self, trace: Any) -> None:
        self._trace = trace
        self._request = None
        self._slow_paths.install()
        wrapped = self._uncompiled.install()
        if wrapped:
            self._notes.append(_UNCOMPILED % ", ".join(wrapped))
        self._modules.install(self._set_module, self._add_module_outputs)
        self._workers.install()
        self._readings.install()
        if self._listing is not None:
            self._tell_of_reads(_LISTED % (self._listing or "itself"))
        _running.__enter__()

    def _give_away(self) -> None:
        """Work goes to another thread."""
        if _GIVEN_AWAY not in self._notes:
            self._tell_of_reads(_GIVEN_AWAY)

    def _tell_of_reads(self, note: str) -> None:
        """Something may read all of the inputs, and nobody sees what."""
        import torch

        self._notes.append(note)
        for live in self.inputs:
            if not live.is_meta:
                torch.ops.addend.elements_read_outside(live)

    def _require_one_thread(self) -> None:
        if self._modules.elsewhere is not None:
            raise Unimplemented(_ELSEWHERE % (self._modules.elsewhere or "the model"))

    def _require_new(self) -> None:
        if self._request is None:
            raise RuntimeError("a trace runs once; make another one")

    def _end(self, trace: Any, notes: Sequence[str]) -> None:
        raise NotImplementedError

    def _set_module(self, path: str) -> None:
        _native.trace_set_module(self._trace, path)

    def _add_module_outputs(self, path: str, output: Any) -> None:
        """Tells what a module has returned."""
        import torch

        if type(output) is torch.Tensor:  # as of nearly all modules
            _native.trace_add_module_output(self._trace, path, 0, _handle_of(output))
            return
        tensors: List[Any] = []

        def note(leaf: Any, _: str) -> Any:
            if isinstance(leaf, torch.Tensor):
                tensors.append(leaf)
            return leaf

        map_leaves(note, output, "")
        for index, tensor in enumerate(tensors or [None]):
            _native.trace_add_module_output(self._trace, path, index, _handle_of(tensor))


def _handle_of(tensor: Any) -> Any:
    """A handle of a tensor that a module returned, without an operator; None where it can have none."""
    try:
        return None if tensor is None else _native.tensor_from_torch(tensor)
    except (Error, RuntimeError, TypeError):
        return None


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
        self._notes.extend(filter(None, [note_of_axis(inputs)]))
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


class _AttributionTrace(Trace):
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


class _PlanTrace(_AttributionTrace):
    """A trace that makes a plan.

    Attributes:
        found: the native plan, once the block has ended.
    """

    def _finish(self, trace: Any) -> None:
        self.found = _native.trace_end_plan(trace)

    def report(self) -> Dict[str, Any]:
        return {}


class Recording(Block):
    """The block of `recording`. It belongs to the thread that enters it.

    Attributes:
        inputs: the live tensors, copies of what was given, in the same order: what the model has to be called with.
        program: the `Program`, once the block has ended. Its outputs are what `output` was given, in order.
    """

    def __init__(self, inputs: Sequence[Input], names: Sequence[Optional[str]], model: Any, lines: bool):
        request = new_request()
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

    def _end(self, trace: Any, notes: Sequence[str]) -> None:
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
        require_options(options, compile, (*_OF_DECOMPOSE, *_OF_ANY))
        inner = unwrapped(model)
        self._notes: Tuple[str, ...] = ()
        if inner is not None:
            self._notes = (_UNCOMPILED % "the model",)
        self.model = model if inner is None else inner
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
        if self._tracing and not _running.depth:
            if any_in_graph((args, kwargs)):
                return self._call_in_graph(args, kwargs)
            return self.decompose(*args, **kwargs).output
        args, kwargs = map_leaves(_plain, (args, self._choices(kwargs)[1]), "")
        with _running:
            return self.model(*args, **kwargs)

    def _call_in_graph(self, args: Any, kwargs: Any) -> Any:
        """Calls the model operator by operator on compositions that autograd follows, so that gradients pass through it."""
        chosen, kwargs = self._choices(kwargs)
        slow_paths = SlowPaths(modules_of(self.model))
        slow_paths.install()
        try:
            with using(chosen.pop("context", None), **chosen):
                return call_function(self.model, args, kwargs)
        finally:
            slow_paths.remove()

    def decompose(self, *args: Any, **kwargs: Any) -> Results:
        """Calls the model; what it returns is the ``output`` of the results.

        They are named by their place in it: ``"output"``, ``"output.logits"``, ``"output.hidden_states.3"``. Components
        are counted in the order of the model's own arguments. Where they begin inside the model, it runs twice, with
        the same random numbers and buffers: first to be searched, then to be decomposed.

        Args:
            args: what the model is called with, an `Input` or a `Composition` for each tensor that is decomposed.
            kwargs: of the model; and the choices that `compile` takes, for this call, where the model has no argument
                of that name itself.
        """
        chosen, kwargs = self._choices(kwargs)
        outputs = chosen.pop("outputs", None)
        asked = as_insides(chosen.pop("inside", None))
        with self._slow_attention(asked) as slow:
            insides, searched = self._placed(asked, args, kwargs)
            call = _Call(self.model, args, kwargs)
            on_baseline = OnBaseline().reported() if chosen.pop("verify_reference", False) else None
            request, context = _request_of(chosen)
            trace = self._traced(Trace, call, insides, request, context, slow)
            output, names = self._run(call, trace, insides, _names_of(outputs), on_baseline, searched)
        results = trace.results
        assert results is not None
        results.output = map_leaves(
            lambda leaf, path: result_at(results._handle, names[path], results._run) if path in names else leaf,
            output,
            "output",
        )
        return results

    def record(
        self, *args: Any, lines: bool = True, others: Sequence[Any] = (), learn_sizes: bool = False, **kwargs: Any
    ) -> Program:
        """Calls the model, and keeps what it did as a `Program`.

        Every tensor in the arguments, on any depth, is an input of the program, called by the model's own name for the
        argument (``"x"``, ``"masks.0"``); every tensor that the model returns is an output, in order. Nothing is
        compared, so that this is one run of the model; `trace` compares.

        Args:
            lines: whether every operator knows the lines of Python that called it, which takes some microseconds.
            others: calls of other sizes, from which the program learns as `Model.record` says; so is `learn_sizes`.
        """
        if others or learn_sizes:
            program = self._record_several([(args, kwargs), *map(_example, others)], lines)
        else:
            program = self._record(args, kwargs, lines)
            program._learn = self._learn(args, kwargs, lines)
        program._source = functools.partial(self._check, args, kwargs)
        return program

    def methods(self, *names: str) -> "TracedModel":
        """Returns a traced model, with the same options, that runs other methods than ``forward``.

        Several run one after the other, and what they return is given as a tuple. Their arguments are called
        ``"encode.x"``; those that are given without a name are the ones that the methods have no default for, in order.

        Raises:
            NotFound: the model has no such method.
        """
        return compile(method_of(self.model, names[0]) if len(names) == 1 else Methods(self.model, names), **self._options)

    def check_trace(
        self,
        *args: Any,
        others: Sequence[Any] = (),
        tolerance: float = 1e-5,
        strict: bool = True,
        out_of_place: bool = False,
        **kwargs: Any,
    ) -> TraceCheck:
        """Whether a recording is the model: records twice, replays, and tries other inputs, and leaves buffers and
        generators of random numbers as they were. See `Program.check`."""
        options = {"tolerance": tolerance, "strict": strict, "out_of_place": out_of_place}
        return self._check(args, kwargs, others, **options)

    def requirements(self, *args: Any, meta: bool = False, **kwargs: Any) -> List[Requirement]:
        """Lists everything that decomposing a call with these arguments lacks: operators without a rule, and modules
        that run as in training. There is no file to read, so the model is called once, and recorded.

        Args:
            meta: calls a copy of the model on the meta device, where nothing is computed and nothing takes memory: for
                large ones. It is the model's own error where it reads elements, or makes tensors on another device by
                itself; one that chooses its operators by the device may call others there.
        """
        model, run = self.model, self
        if meta:
            model, args, kwargs = on_meta(self.model, args, kwargs)
            run = TracedModel(model, self._options)
        sources = as_inputs(_Call(model, args, kwargs, everything=True).given)
        context = as_context(self._options.get("context"), {})
        program = run._record(args, kwargs, True)
        return program.requirements(*[source.value for source in sources], context=context)

    def explain(
        self,
        *args: Any,
        targets: Any = "top1",
        at: Optional[str] = None,
        each_example: bool = False,
        every_target: bool = False,
        operators: bool = False,
        **kwargs: Any,
    ) -> Attribution:
        """Finds what each element of the inputs gave to one number of the output, or to several, by one sweep back
        through the run that this call is; see `Model.explain`.

        Args:
            args: what the model is called with, an `Input` for each tensor that is attributed to.
            targets: as for `Model.explain`, and so are `each_example`, `every_target` and `operators`.
            at: what the targets are elements of, unless it is the first output that holds numbers, or the first of
                `outputs`: one by the name that `decompose` gives it (``"output.logits"``, or ``"logits"`` alone), or an
                inner tensor.
            kwargs: of the model, and choices as for `decompose`.
        """
        self._require_own_word(kwargs, self.explain)
        asked = {"targets": targets, "at": at, "each_example": each_example}
        asked.update(every_target=every_target, operators=operators)
        return self._explain(args, kwargs, asked)[0]

    def plan(
        self,
        *args: Any,
        targets: Any = "top1",
        at: Optional[str] = None,
        each_example: bool = False,
        every_target: bool = False,
        operators: bool = False,
        **kwargs: Any,
    ) -> Plan:
        """Makes an attribution ready for many rows by the run that this call is, and one more on the baseline; see
        `Model.plan`. The plan takes the tensors that are an `Input` here, in their order, of the sizes that they have
        here; everything else is as it was.
        """
        self._require_own_word(kwargs, self.plan)
        asked = {"targets": targets, "at": at, "each_example": each_example}
        asked.update(every_target=every_target, operators=operators)
        chosen, kwargs = self._choices(kwargs)
        outputs = _names_of(chosen.get("outputs"))
        chosen = {key: value for key, value in chosen.items() if key not in _OF_DECOMPOSE}
        if as_insides(chosen.pop("inside", None)):
            raise ValueError("a split that starts inside the model cannot be planned")
        chosen.pop("verify_reference", None)
        call = _Call(self.model, args, kwargs)
        request, context = _request_of(chosen)
        add_targets(request, **{**asked, "at": explained(at, outputs)})
        trace = self._traced(_PlanTrace, call, (), request, context)
        before = State(self.model, given=(args, kwargs))
        output, _ = self._run(call, trace, (), outputs, OnBaseline().reported())
        self._require_steady(call, before, output)
        return Plan(trace.found, self.model)

    def interactions(
        self,
        *args: Any,
        target: Any = "top1",
        concepts: Union[None, Concepts, Mapping] = None,
        at: Optional[str] = None,
        **kwargs: Any,
    ) -> Interactions:
        """Finds what the contributions of groups owe to each other; see `Model.interactions`.

        The model is recorded, and the recording runs for each group: with the group at its baseline it has to go the way
        that it goes here.

        Args:
            args: what the model is called with, an `Input` for each tensor that is split: one example.
            target: as for `Model.interactions`, and so are `concepts`.
            at: as for `explain`.
            kwargs: of the model, and choices as for `decompose`.

        Raises:
            FailedPrecondition: the model reads numbers of its inputs, by which it may branch, and they are others with a
                group at its baseline; or the examples of a batch influence each other.
        """
        self._require_own_word(kwargs, self.interactions)
        chosen, kwargs = self._choices(kwargs)
        outputs = _names_of(chosen.get("outputs"))
        options = self._for_files(chosen, ("cancellation", "context"))
        return self._asked(args, kwargs, False).interactions(target, concepts, explained(at, outputs), outputs, options)

    def shapley(self, *args: Any, **kwargs: Any) -> Composition:
        """The exact Shapley values of the components for the first floating-point output: at most 16 components, which
        take 2**16 runs. What decompositions are compared with.

        The model is recorded, and the recording runs for each subset of the components: it has to go one way for all of
        them. The values depend on no policy.

        Args:
            args: what the model is called with, an `Input` or a `Composition` for each tensor that is split.
            kwargs: of the model, and `cancellation`.

        Raises:
            FailedPrecondition: the model reads numbers of its inputs, by which it may branch, and they are others for a
                subset.
        """
        chosen, kwargs = self._choices(kwargs)
        if chosen.get("outputs") is not None:
            raise ValueError("Shapley values are those of the first output; leave outputs out, or wrap the model")
        if as_insides(chosen.get("inside")):
            raise ValueError("Shapley values are those of what the model is given, not of a split inside it")
        return self._asked(args, kwargs, None).shapley(chosen.get("cancellation"))

    def attribute(
        self,
        inputs: Any,
        baselines: Any = None,
        target: Any = None,
        additional_forward_args: Any = None,
        return_convergence_delta: bool = False,
        *,
        feature_mask: Any = None,
        each_example: bool = True,
        at: Optional[str] = None,
        **choices: Any,
    ) -> Any:
        """Computes what each element of the inputs contributed to the target, with the arguments of Captum; see
        `Model.attribute`.

        Inputs are the positional arguments of the model, or in a dict its named ones. Further ones in
        `additional_forward_args` may be anything that the model takes. Where the model was compiled with `inside`, that
        is what is attributed to. `choices` are those that `compile` takes, for this call.
        """
        choices = own_choices(choices)
        require_options(choices, self.attribute, (*_OF_ANY, "outputs"))
        inside = choices.pop("inside", self._options.get("inside"))
        by_name = _takes_by_name(self.model, inputs, additional_forward_args)
        question = Question(
            inputs, baselines, target, additional_forward_args, inside, feature_mask, each_example, by_name
        )
        own = {**choices, "inside": question.insides()}
        args, kwargs = (*question.positional, *question.further), question.named
        on_baseline: Optional[OnBaseline] = None

        def explain(targets: Any, each_example: bool) -> Tuple[Attribution, Dict[int, int]]:
            nonlocal on_baseline
            asked = {"targets": targets, "at": at, "each_example": each_example}
            asked.update(every_target=False, operators=False)
            on_baseline = OnBaseline() if return_convergence_delta else None
            return self._explain(args, kwargs, asked, own, on_baseline)

        found, places = question.ask(explain, lambda answer: answer[0].value.shape)
        tensors: List[Any] = []
        if question.inside is None:
            tensors = [found._results[1 + places[id(source)]] for source in question.leaves.sources]
        return question.answer(found, tensors, on_baseline and functools.partial(on_baseline.output, at))

    def _explain(
        self,
        args: Any,
        kwargs: Any,
        asked: Dict[str, Any],
        own: Optional[Dict[str, Any]] = None,
        on_baseline: Optional[OnBaseline] = None,
    ) -> Tuple[Attribution, Dict[int, int]]:
        """Returns the attribution of `explain`, and for each tensor that was given, by its identity, its place among the
        inputs that are attributed to.

        Args:
            own: choices of the call; without it `kwargs` hold them.
            on_baseline: will be ready to run the model on the baseline.
        """
        if own is None:
            chosen, kwargs = self._choices(kwargs)
        else:
            chosen = {**self._options, **own}
        outputs = _names_of(chosen.get("outputs"))
        asked = {**asked, "at": explained(asked["at"], outputs)}
        chosen = {key: value for key, value in chosen.items() if key not in _OF_DECOMPOSE}
        call = _Call(self.model, args, kwargs)
        inside = as_insides(chosen.get("inside"))
        with self._slow_attention(inside) as slow:
            if any(isinstance(given, Input) and given.has_several_baselines for given in call.given):
                options = self._for_files(chosen, _OF_ANY)
                return self._asked(args, kwargs, asked["each_example"]).explain(asked, outputs, options)
            chosen.pop("inside", None)
            insides, searched = self._placed(inside, args, kwargs)
            if chosen.pop("verify_reference", False):
                on_baseline = (on_baseline or OnBaseline()).reported()
            elif insides:
                on_baseline = None  # no argument of the model holds the baseline
            request, context = _request_of(chosen)
            add_targets(request, **asked)
            trace = self._traced(_AttributionTrace, call, insides, request, context, slow)
            output, _ = self._run(call, trace, insides, outputs, on_baseline, searched)
        return Attribution(trace.found, len(insides), call.tensors, output), call.places

    def _for_files(self, chosen: Dict[str, Any], taken: Sequence[str]) -> Dict[str, Any]:
        """Those choices that a model from a file takes: some of Addend, and those of a policy."""
        return {name: value for name, value in chosen.items() if name in taken or name in CHOICES}

    def _asked(self, args: Any, kwargs: Any, each_example: Optional[bool]) -> RecordedQuestion:
        """The call, recorded to be run again and again.

        Args:
            each_example: whether the first dimension counts examples; None: runs have the sizes of this one.
        """
        call = _Call(self.model, args, kwargs, everything=True)
        sources = as_inputs(call.given)
        if all(source.dims is None and source.labels is None and source.parts is None for source in sources):
            raise ValueError("nothing to attribute to: pass an addend.Input with dims or labels")
        before = State(self.model, given=(args, kwargs))
        program, returned, places = self._record_call(args, kwargs, True)
        after = State(self.model, given=(args, kwargs))
        larger = [] if each_example is None else larger_calls(call.places, sources, (args, kwargs), each_example)
        # Numbers that left the tensors of a batch would be those of all its examples together.
        if larger and program.summary["guards"]:
            if examples_of(sources, each_example) > 1:
                raise FailedPrecondition(ALL_TOGETHER)
        elif larger:
            # Batches of examples have other sizes; a model that takes them is asked with them.
            before.restore()
            try:
                program = self._record_several([(args, kwargs), *larger], True, _numbers_in(returned))
            except Exception as error:
                if examples_of(sources, each_example) > 1 or str(error).startswith(_APART):
                    raise
            finally:
                after.restore()
        inputs = dict(zip([name or "" for name in call.names], sources))
        names = dict(zip(places, (output.name for output in program.outputs)))
        question = RecordedQuestion(program.model(), inputs, call.places, returned, places, names, before, after)
        # The recording may draw from a generator, or read memory, that nobody knows of.
        self._require_same(call, _numbers_in(returned), question.replayed())
        return question

    def _slow_attention(self, insides: Sequence[Inside]) -> SlowAttention:
        """A block in which heads are seen, where some are asked for."""
        return SlowAttention(modules_of(self.model) if any(one.heads for one in insides) else [])

    def _placed(self, inside: Sequence[Inside], args: Any, kwargs: Any) -> Tuple[List[Inside], Dict[str, Any]]:
        """The splits that start inside the model, with heads and experts found by a run that leaves no trace; and the
        numbers that this run gave, by their places, where there was one."""
        searched: Dict[str, Any] = {}

        def record() -> Program:
            before = State(self.model, given=(args, kwargs))
            try:
                program, output, _ = self._record_call(_copied(args), _copied(kwargs), False)
                searched.update(_numbers_in(output))
                return program
            finally:
                before.restore()

        return placed(inside, record), searched

    def _choices(self, kwargs: Dict[str, Any]) -> Tuple[Dict[str, Any], Dict[str, Any]]:
        """Separates keyword arguments into choices of Addend, where those of the call override those of `compile`, and
        arguments of the model."""
        own = _parameters_of(self.model)
        names = {name for name in (*_OF_DECOMPOSE, *_OF_ANY, *CHOICES) if name not in own}
        chosen = {name: value for name, value in kwargs.items() if name in names}
        given = {name: value for name, value in kwargs.items() if name not in names}
        return {**self._options, **chosen}, given

    def _require_own_word(self, kwargs: Dict[str, Any], function: Callable[..., Any]) -> None:
        """Raises TypeError where `target` or `targets`, of which a function takes the other one, would go to a model
        that has no argument of that name."""
        own = _parameters_of(self.model)
        require_options([name for name in ("target", "targets") if name in kwargs and name not in own], function, _OF_ANY)

    def _traced(
        self,
        kind: Any,
        call: "_Call",
        insides: Any,
        request: Any,
        context: Context,
        slow: Optional[SlowAttention] = None,
    ) -> Any:
        if not call.given and not insides:
            raise ValueError("nothing to decompose: pass an addend.Input or a Composition, or switch to .trace(False)")
        trace = kind(call.given, call.names, modules_of(self.model), self._known, request, context)
        for source in insides:
            add_inside(request, source)
        trace._notes.extend(self._notes)
        trace._slow_attention = slow
        return trace

    def _run(
        self,
        call: "_Call",
        trace: Any,
        insides: Any,
        outputs: Optional[Sequence[str]],
        on_baseline: Optional[OnBaseline],
        searched: Optional[Dict[str, Any]] = None,
    ) -> Tuple[Any, Dict[str, int]]:
        """Calls the model in the block of a trace: what it returned, and by their places in that the results.

        Args:
            searched: the numbers of the first run of the model, where another one came before.
        """
        arguments = call.arguments_with(trace.inputs)
        first = _copied(arguments) if insides else None
        given = (call.args, call.kwargs)
        before = State(self.model, given=given) if insides or on_baseline is not None else None
        # Copied now: the run may change what the model is given beside its inputs.
        again = None
        if on_baseline is not None:
            again = _copied(call.arguments_with([Place(k) for k in range(len(call.given))]))
        names: Dict[str, int] = {}
        if before is not None and on_baseline is not None:
            on_baseline.begin(functools.partial(self._outputs_from, before, call, again), names)
            trace.on_baseline = on_baseline
        try:
            with trace:
                if before is not None and insides:
                    self._name_outputs(trace, call, first, call.run(first), None)
                    before.restore()
                    trace._again()
                output = call.run(arguments)
                trace._notes.extend(filter(None, [call.written(trace.inputs)]))
                names.update(self._name_outputs(trace, call, arguments, output, outputs))
        except FailedPrecondition as error:
            if not str(error).startswith(_APART):
                raise
            raise FailedPrecondition(self._apart(call, str(error))) from error
        if searched:
            self._require_same(call, searched, _numbers_in(output))
        if before is not None and on_baseline is not None:
            self._require_repeatable(trace, call, again, before, output)
        return output, names

    def _outputs_from(self, before: State, call: "_Call", arguments: Any, inputs: List[Any]) -> Dict[str, Any]:
        """Runs the plain model from the state `before` and returns its outputs by their places. The model is left in
        its present state."""
        import torch

        after = State(self.model, given=(call.args, call.kwargs))
        before.restore()
        given = filled(_copied(arguments), inputs)
        found: Dict[str, Any] = {}
        try:
            with torch.no_grad():
                found.update(_numbers_in(call.run(given)))
        finally:
            after.restore()
        return found

    def _require_repeatable(self, trace: Any, call: "_Call", arguments: Any, before: State, output: Any) -> None:
        """Checks, if the model's output on the baseline is not the reference, that this is not because a second run of
        the model differs from the first.

        Raises:
            FailedPrecondition: two runs differ.
        """
        report = trace.report()
        if report.get("reference_is_model_on_baseline") != "no" or report.get("reference_error") is None:
            return
        inputs = [live_tensor(source.value) for source in as_inputs(call.given)]
        self._require_same(call, _numbers_in(output), self._outputs_from(before, call, arguments, inputs))

    def _require_same(self, call: "_Call", first: Dict[str, Any], again: Dict[str, Any]) -> None:
        """Makes sure that two runs of a call gave the same numbers.

        Raises:
            FailedPrecondition: they did not.
        """
        other = _first_apart(first, again)
        if other is not None:
            raise FailedPrecondition(self._apart(call, _APART + " at " + other))

    def _require_steady(self, call: "_Call", before: State, output: Any) -> None:
        """Makes sure that the run since `before` changed nothing that the next one depends on.

        Raises:
            FailedPrecondition: it did.
        """
        changed = before.difference()
        if changed is None:
            return
        recorded = _numbers_in(output)
        after = State(self.model, given=(call.args, call.kwargs))
        live = [live_tensor(source.value) for source in as_inputs(call.given)]
        try:
            import torch

            with torch.no_grad():
                again = _numbers_in(call.run(call.arguments_with(live)))
        finally:
            after.restore()
        other = _first_apart(recorded, again)
        if other is not None:
            raise FailedPrecondition(
                "the model cannot be planned: a run changes %s, and the next one gives another %s; attribute it without a "
                "plan" % (changed, other)
            )

    def _apart(self, call: "_Call", found: str) -> str:
        """Describes a model of which two runs differ, including the operator where they part."""
        try:
            findings = self._check(call.args, call.kwargs, ()).findings
        except Exception:  # what it says of two runs stands without the operator
            findings = []
        blamed = [finding for finding in findings if finding.error]
        # An operator, where one is to blame.
        blamed.sort(key=lambda finding: not finding.position)
        where = "; ".join("%s: %s" % (one.position, one.message) if one.position else one.message for one in blamed[:1])
        return found + (" (%s)" % where if where else "") + _KEEPS

    def _name_outputs(
        self, trace: Any, call: "_Call", arguments: Any, output: Any, outputs: Optional[Sequence[str]]
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
                if known[path].data_ptr() not in self._addresses(arguments):
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

    def _check(self, args: Any, kwargs: Any, others: Sequence[Any], **options: Any) -> TraceCheck:
        before = State(self.model, parameters=True, given=(args, kwargs, others))
        # The second run follows the first without a reset: what differs between them is what is looked for. Every other
        # input begins as the first one did.
        examples = _Examples(self, [(args, kwargs), *map(_example, others)], True, lambda k: k > 0 and before.restore())
        try:
            return read_check(_native.live_check_trace(examples.request(), json.dumps(options), examples.record))
        finally:
            before.restore()

    def _record_checked(
        self, args: Any, kwargs: Any, lines: bool, others: Sequence[Any], **options: Any
    ) -> Tuple[Program, TraceCheck]:
        """Records, and checks the program by the second run that `_check` makes; the model is left as the first call
        leaves it."""
        after: List[State] = []
        given = (args, kwargs, others)
        before = State(self.model, parameters=True, given=given)

        def begin(example: int) -> None:
            if examples.first is not None and not after:
                after.append(State(self.model, parameters=True, given=given))
            if example > 0:
                before.restore()

        examples = _Examples(self, [(args, kwargs), *map(_example, others)], lines, begin)
        try:
            check = read_check(_native.live_check_trace(examples.request(), json.dumps(options), examples.record))
        finally:
            for state in after:
                state.restore()
        program = examples.first
        assert program is not None
        program._learn = self._learn(args, kwargs, lines)
        program._source = functools.partial(self._check, args, kwargs)
        return program, check

    def _record_several(
        self, calls: Sequence[Tuple[Any, Any]], lines: bool, first: Optional[Dict[str, Any]] = None
    ) -> Program:
        """One program for several calls, each of them from the state that the model has now; it is left as the first
        call leaves it: at sizes that nobody asked for it might write what it does not write otherwise.

        Args:
            first: the numbers that the first call gave when it was made, where it was.

        Raises:
            FailedPrecondition: the first call gives others.
        """
        before = State(self.model, parameters=True, given=calls)
        after: List[State] = []

        def end() -> None:
            if not after:
                after.append(State(self.model, parameters=True, given=calls))
            before.restore()

        known = first

        def require_same(numbers: Dict[str, Any]) -> None:
            nonlocal known
            if known is None:
                known = numbers
            elif _first_apart(known, numbers) is not None:
                call = _Call(self.model, *calls[0], everything=True)
                self._require_same(call, known, numbers)

        # Replays in between begin where recordings did, and recordings where replays did not end.
        examples = _Examples(self, calls, lines, lambda example: before.restore(), end, require_same)
        try:
            program = Program(_native.live_record(examples.request(), examples.record))
            if examples.stopped is not None:
                raise examples.stopped
            program._call = None if examples.first is None else examples.first._call
            return program
        finally:
            for state in after:
                state.restore()

    def _learn(self, args: Any, kwargs: Any, lines: bool) -> Callable[..., Optional[Program]]:
        """Returns a function that records the call again, for other sizes too, and leaves the model as it is. It
        returns None if the model's tensors have changed by then."""

        import torch

        def tensors() -> List[Any]:
            found = []
            for _, module in modules_of(self.model):
                for tensor in (*module.parameters(recurse=False), *module.buffers(recurse=False)):
                    memory = tensor.data_ptr() if tensor.layout == torch.strided else None
                    found.append((id(tensor), memory, None if tensor.is_inference() else tensor._version))
            return found

        known = tensors()

        def learn(**options: Any) -> Optional[Program]:
            nonlocal known
            if tensors() != known:
                return None
            before = State(self.model, parameters=True, given=(args, kwargs))
            try:
                return self.record(*args, lines=lines, **options, **kwargs)
            finally:
                before.restore()
                known = tensors()

        return learn

    def _record(self, args: Any, kwargs: Any, lines: bool) -> Program:
        return self._record_call(args, kwargs, lines)[0]

    def _record_call(self, args: Any, kwargs: Any, lines: bool) -> Tuple[Program, Any, Dict[str, Any]]:
        """The program of a call, what the call returned, and the tensors in that by their places, in the order of the
        program's outputs."""
        import torch

        call = _Call(self.model, args, kwargs, everything=True)
        if not call.given:
            raise ValueError("nothing to record: the model was given no tensor")
        with Recording(as_inputs(call.given), call.names, self.model, lines) as trace:
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
        program._call = RecordedCall(functools.partial(_bound, self.model), arguments, returned)
        return program, output, places

    def _addresses(self, arguments: Any) -> Set[int]:
        """The addresses of the tensors that the model was given or has."""
        found = {tensor.data_ptr() for _, tensor, _ in named_tensors(modules_of(self.model))}

        def find(leaf: Any, path: str) -> Any:
            if has_parts(leaf) and leaf.numel() > 0:
                found.add(leaf.data_ptr())
            return leaf

        map_leaves(find, arguments, "")
        return found

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, "_known": KnownTensors()}

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

    Nothing is converted: the model runs with its own control flow, in-place writes included. While a call runs,
    ``Tensor.numpy``, ``Tensor.tolist``, ``Tensor.__dlpack__``, ``Tensor.storage`` and ``to_dlpack`` tell of what they read,
    and starting a thread or giving work to a pool of threads tells that, since no operator does.

    Args:
        model: a ``torch.nn.Module``, or any function that computes with PyTorch. What wraps a module is one itself, and
            stands wherever modules do: ``model.eval()``, ``model.to("cuda")``, ``model.state_dict()`` with the names of
            the module, ``torch.nn.Sequential(model)``. Called by a model that is decomposed or recorded itself, it is the
            plain module.
        options: `probes`, `everything`, `memory`, `direction`, `cancellation`, `context`, or choices of a `Context`; see
            `tracing`. With `outputs`, one name or several such as ``"output.logits"``, only these of the model's results
            are decomposed, and the others are tensors as ever. With `inside`, components begin at tensors inside the
            model, as for `Model.decompose`. With `verify_reference` the plain model also runs on the baseline, from the
            same state, and the report's ``reference_error`` says how far the reference is from that. Each call may make
            other choices.
    """
    if not callable(model):
        raise TypeError("model must be callable, not %s" % type(model).__name__)
    if isinstance(model, TracedModel):
        return compile(model.model, **{**model._options, **options})
    if not is_module(model):
        return TracedModel(model, options)
    from ._traced_module import TracedModule

    return TracedModule(model, options)


def _plain(leaf: Any, path: str) -> Any:
    if isinstance(leaf, (Input, Composition)):
        return live_tensor(leaf.value)
    return leaf


def _numbers_in(output: Any) -> Dict[str, Any]:
    """Copies of what a model returned that holds numbers, by the names of their places."""
    found: Dict[str, Any] = {}

    def add(leaf: Any, path: str) -> Any:
        if has_parts(leaf):
            found.setdefault(path, leaf.detach().clone())
        return leaf

    map_leaves(add, output, "output")
    return found


def _equals(tensor: Any, source: Input) -> bool:
    """Whether a tensor has the elements of an input."""
    import torch

    own = live_tensor(source.value)
    return tensor.dtype == own.dtype and torch.equal(tensor, own)


def _first_apart(first: Dict[str, Any], again: Dict[str, Any]) -> Optional[str]:
    """The name of the first tensor that is another in a second run; None where none is."""
    return next((name for name in first if not _as_good_as(first[name], again.get(name))), None)


def _as_good_as(one: Any, other: Any) -> bool:
    """Whether two tensors are equal but for rounding: as `verify_reference` compares them."""
    import torch

    if other is None or one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.numel() == 0 or torch.equal(one, other):
        return True
    wide = torch.complex128 if one.is_complex() else torch.float64
    a, b = one.to(wide), other.to(wide)
    same = (a == b) | (a.isnan() & b.isnan())
    scale = a.abs().nan_to_num(0, 0, 0).max().item() or 1.0
    apart = (a - b).abs().masked_fill(same, 0).max().item()
    return bool(apart <= 1000 * torch.finfo(one.dtype).eps * scale)


def _is_of_higher_order(error: BaseException) -> bool:
    """Whether PyTorch says that a higher-order operator does not run while operators are seen."""
    if isinstance(error, NotImplementedError):
        return "HigherOrderOperator" in str(error)
    kinds = [kind.__name__ for kind in type(error).__mro__]
    # From LibTorch 2.15 on, the operator has its functions compiled, which fails on what is seen.
    compiled = "TorchDynamoException" in kinds and "_higher_order_ops" in str(error)
    return compiled or "UncapturedHigherOrderOpError" in kinds


def _raise_own(end: Callable[[Any], None], trace: Any, error: BaseException) -> None:
    """Raises what the recording itself failed with, which PyTorch has turned into an error of its own."""
    try:
        end(trace)
    except Error as own:
        if str(own).startswith("no reason given"):
            # An error of Python within an operator, whose words LibTorch does not hand on: `error` has them.
            return
        # The error of an operator that the model called wrongly is the model's own: it stays as PyTorch words it.
        if own.code not in (Code.INVALID_ARGUMENT, Code.OUT_OF_RANGE):
            raise own from error


class _Call:
    """A call of a model.

    Attributes:
        args: as they were given, and so are `kwargs`.
        given: what is traced in its arguments, each object once, in the order of the model's own arguments: of type
            `Input` or `Composition`, or with `everything` tensors too.
        names: what the model calls them: ``"x"``, ``"masks.0"``.
        places: of each in `given`, by its identity.
        tensors: for every tensor in the arguments its place in `given`; None where it is plain.
    """

    def __init__(self, model: Any, args: Any, kwargs: Any, everything: bool = False):
        import torch

        self.args, self.kwargs = args, kwargs
        self._model = model
        self._arguments, self._call = _named_arguments(model, args, kwargs)
        self.given: List[Any] = []
        self.names: List[Optional[str]] = []
        self.places: Dict[int, int] = {}  # one live tensor for each object, wherever it is passed
        self._memory = SharedMemory()
        self.tensors: List[Optional[int]] = []
        seen: Set[int] = set()

        def find(leaf: Any, path: str) -> Any:
            traced = isinstance(leaf, (Input, Composition)) or (everything and isinstance(leaf, torch.Tensor))
            if id(leaf) in seen or not (traced or isinstance(leaf, torch.Tensor)):
                return leaf
            seen.add(id(leaf))
            value = leaf if isinstance(leaf, torch.Tensor) else leaf.value
            self._memory.add(path, value, len(self.given) if traced else None)
            if traced:
                self.places[id(leaf)] = len(self.given)
                self.given.append(leaf)
                self.names.append(path)
            self.tensors.append(self.places.get(id(leaf)))
            return leaf

        map_leaves(find, self._arguments, "")

    def arguments_with(self, live: Sequence[Any]) -> Any:
        """The arguments with live tensors for what is given."""
        return map_leaves(
            lambda leaf, path: live[self.places[id(leaf)]] if id(leaf) in self.places else leaf, self._arguments, ""
        )

    def run(self, arguments: Any) -> Any:
        """Calls the model.

        Raises:
            InvalidArgument: it fails as it is of another dtype than what it is given.
        """
        with _running:
            try:
                return self._call(arguments)
            except RuntimeError as error:
                apart = None if isinstance(error, Error) else dtypes_apart(self._model, arguments, error)
                if apart is None:
                    raise
                raise InvalidArgument(apart) from error

    def written(self, live: Sequence[Any]) -> Optional[str]:
        """Returns a note if arguments share memory and the run with these live tensors wrote one of them, else None."""
        return self._memory.written(live)


class _Examples:
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
        model: TracedModel,
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
        same = self._require_same is not None and example == 0 and all(map(_equals, tensors, as_inputs(own)))
        try:
            program, output, _ = self._model._record_call(args, kwargs, self._lines)
            if same and self._require_same is not None:
                self._require_same(_numbers_in(output))
        except FailedPrecondition as apart:
            if str(apart).startswith(_APART):
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
        return _Call(self._model.model, *call, everything=True).given


def _example(given: Any) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    return ((), dict(given)) if isinstance(given, Mapping) else (tuple(as_arguments(given)), {})


def _copied(arguments: Any) -> Any:
    """Arguments that a run may change in the place of the given ones; where they cannot be copied, those. Generators stay
    the same ones: whoever copies puts them back."""
    import torch

    known: Dict[int, Any] = {}

    def add(leaf: Any, path: str) -> Any:
        if isinstance(leaf, torch.Generator):  # not every PyTorch copies them
            known[id(leaf)] = leaf
        return leaf

    map_leaves(add, arguments, "")
    try:
        return copy.deepcopy(arguments, known)
    except Exception:
        return arguments


def _names_of(outputs: Union[None, str, Sequence[str]]) -> Optional[Sequence[str]]:
    """The outputs that a choice names; None: all."""
    return (outputs,) if isinstance(outputs, str) else outputs


def _request_of(chosen: Dict[str, Any]) -> Tuple[Any, Context]:
    """A native request and the context of a call's choices."""
    chosen = dict(chosen)
    options = {key: chosen.pop(key) for key in OF_TRACE if key in chosen}
    request = new_request(chosen.pop("probes", ()), chosen.pop("cancellation", None), **options)
    return request, as_context(chosen.pop("context", None), chosen)


def _parameters_of(model: Any) -> Set[str]:
    """The names of the arguments that the model itself has."""
    try:
        return set(inspect.signature(getattr(model, "forward", model)).parameters)
    except (TypeError, ValueError):
        return set()


def _takes_by_name(model: Any, inputs: Any, further: Any) -> bool:
    """Whether inputs are a mapping that the model takes by the names of its arguments, and not as one argument."""
    if not isinstance(inputs, Mapping):
        return False
    if isinstance(model, Methods):
        return True
    more = further if isinstance(further, (tuple, list)) else () if further is None else (further,)
    try:
        signature = inspect.signature(getattr(model, "forward", model))
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*more, **inputs)
        return True
    except TypeError:
        pass
    try:
        signature.bind(inputs, *more)
        return False
    except TypeError:
        return True  # the model says itself what is wrong


def _bound(model: Any, args: Any, kwargs: Any) -> Dict[str, Any]:
    """The arguments of a call by the names that the model gives them."""
    return _named_arguments(model, args, kwargs)[0]


def _named_arguments(model: Any, args: Any, kwargs: Any) -> Tuple[Dict[str, Any], Callable[[Any], Any]]:
    """The arguments of a call by the names that the model gives them, and the call with others in their places."""
    if isinstance(model, Methods):
        return model.arguments(args, kwargs), model.call
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
