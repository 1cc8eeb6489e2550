"""Models that decompose what they are given."""

import functools
from collections.abc import Mapping
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from ._attribution import Attribution
from ._block import UNCOMPILED, running
from ._cancellation import Cancellation
from ._captum import Question
from ._captum_options import drop_captums
from ._composition import Composition
from ._context import Context, PolicyChoices, as_context, require_options
from ._functions import any_in_graph, call_function
from ._input import Input, Inside, as_inputs, as_insides, one_or_list
from ._live_call import LiveCall, copied, parameters_of, plain, takes_by_name
from ._live_check import check
from ._live_choices import OF_ANY, OF_DECOMPOSE, UNSET, for_files, made, names_of, request_of, separated
from ._live_examples import record_call
from ._live_record import record
from ._live_run import name_outputs, require_steady, run_traced
from ._meta import on_meta
from ._methods import Methods, method_of
from ._modules import KnownTensors, SlowAttention, SlowPaths, modules_of, unwrapped
from ._named_parts import placed
from ._on_baseline import OnBaseline
from ._plan import Plan
from ._program import Program
from ._reasons import Concepts, Interactions
from ._recorded_question import RecordedQuestion, recorded_question
from ._records import Requirement, TraceCheck
from ._request import add_inside, add_targets, explained
from ._results import Results, result_of_run
from ._same_numbers import numbers_in
from ._state import State
from ._structure import map_leaves
from ._trace_block import AttributionTrace, PlanTrace, Trace
from ._unpack import Unpack
from ._using import using


class TracedModel:
    """A model that decomposes what it is given; `compile` makes it.

    It is called as the model is, with an `Input` or a `Composition` in place of each tensor that shall be decomposed, on
    any depth of its arguments. What it returns is what the model returns, with a `Composition` in place of each
    floating-point tensor that operators have met. The model itself runs unmodified, on copies of these inputs.

    Methods take the choices that `compile` takes, for one call. A choice that is left out is what `compile` was told, and
    one that the model has an argument of its own for is the model's.

    Attributes:
        model: the model as it was given. Other attributes are those of it.
    """

    def __init__(self, model: Callable[..., Any], options: Dict[str, Any]):
        inner = unwrapped(model)
        self._notes: Tuple[str, ...] = ()
        if inner is not None:
            self._notes = (UNCOMPILED % "the model",)
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

    def __call__(
        self,
        *args: Any,
        probes: Union[str, Sequence[str]] = UNSET,
        outputs: Union[None, str, Sequence[str]] = UNSET,
        everything: bool = UNSET,
        direction: str = UNSET,
        inside: Union[None, Inside, Sequence[Inside]] = UNSET,
        memory: int = UNSET,
        cancellation: Optional[Cancellation] = UNSET,
        context: Optional[Context] = UNSET,
        verify_reference: bool = UNSET,
        **kwargs: Any,
    ) -> Any:
        """Calls the model, as `decompose` does, and returns what it returns."""
        own = made(
            probes=probes, outputs=outputs, everything=everything, direction=direction, inside=inside,
            memory=memory, cancellation=cancellation, context=context, verify_reference=verify_reference,
        )
        kwargs.update(own)
        if self._tracing and not running.depth:
            if any_in_graph((args, kwargs)):
                return self._call_in_graph(args, kwargs)
            return self.decompose(*args, **kwargs).output
        args, kwargs = map_leaves(plain, (args, separated(self.model, kwargs)[1]), "")
        with running:
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

    def decompose(
        self,
        *args: Any,
        probes: Union[str, Sequence[str]] = UNSET,
        outputs: Union[None, str, Sequence[str]] = UNSET,
        everything: bool = UNSET,
        direction: str = UNSET,
        inside: Union[None, Inside, Sequence[Inside]] = UNSET,
        memory: int = UNSET,
        cancellation: Optional[Cancellation] = UNSET,
        context: Optional[Context] = UNSET,
        verify_reference: bool = UNSET,
        **kwargs: Any,
    ) -> Results:
        """Calls the model; what it returns is the ``output`` of the results.

        They are named by their place in it: ``"output"``, ``"output.logits"``, ``"output.hidden_states.3"``. Components
        are counted in the order of the model's own arguments. Where they begin inside the model, it runs twice, with
        the same random numbers and buffers: first to be searched, then to be decomposed.

        Args:
            args: what the model is called with, an `Input` or a `Composition` for each tensor that is decomposed.
            kwargs: of the model; and choices of a `Context`. All others are as for `compile`.
        """
        own = made(
            probes=probes, outputs=outputs, everything=everything, direction=direction, inside=inside,
            memory=memory, cancellation=cancellation, context=context, verify_reference=verify_reference,
        )
        chosen, kwargs = self._choices({**kwargs, **own})
        outputs = names_of(chosen.pop("outputs", None))
        asked = as_insides(chosen.pop("inside", None))
        with self._slow_attention(asked) as slow:
            insides, searched = self._placed(asked, args, kwargs)
            call = LiveCall(self.model, args, kwargs)
            on_baseline = OnBaseline().reported() if chosen.pop("verify_reference", False) else None
            request, decomposed = request_of(chosen)
            trace = self._traced(Trace, call, insides, request, decomposed, slow)
            output, names = self._run(call, trace, insides, outputs, on_baseline, searched)
        results = trace.results
        assert results is not None
        results.output = map_leaves(
            lambda leaf, path: result_of_run(results._handle, names[path], results._run) if path in names else leaf,
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
        return record(self.model, args, kwargs, lines, others, learn_sizes)

    def methods(self, *names: str) -> "TracedModel":
        """Returns a traced model, with the same options, that runs other methods than ``forward``.

        Several run one after the other, and what they return is given as a tuple. Their arguments are called
        ``"encode.x"``; those that are given without a name are the ones that the methods have no default for, in order.

        Raises:
            NotFound: the model has no such method.
        """
        return self._of(method_of(self.model, names[0]) if len(names) == 1 else Methods(self.model, names))

    def _of(self, model: Any) -> "TracedModel":
        """Another model with the same options."""
        return TracedModel(model, dict(self._options))

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
        return check(self.model, args, kwargs, others, **options)

    def requirements(self, *args: Any, meta: bool = False, **kwargs: Any) -> List[Requirement]:
        """Lists everything that decomposing a call with these arguments lacks: operators without a rule, and modules
        that run as in training. There is no file to read, so the model is called once, and recorded.

        Args:
            meta: calls a copy of the model on the meta device, where nothing is computed and nothing takes memory: for
                large ones. It is the model's own error where it reads elements, or makes tensors on another device by
                itself; one that chooses its operators by the device may call others there.
        """
        model = self.model
        if meta:
            model, args, kwargs = on_meta(self.model, args, kwargs)
        sources = as_inputs(LiveCall(model, args, kwargs, everything=True).given)
        context = as_context(self._options.get("context"))
        program = record_call(model, args, kwargs, True)[0]
        return program.requirements(*[source.value for source in sources], context=context)

    def explain(
        self,
        *args: Any,
        targets: Any = "top1",
        at: Optional[str] = None,
        each_example: bool = False,
        every_target: bool = False,
        operators: bool = False,
        outputs: Union[None, str, Sequence[str]] = UNSET,
        inside: Union[None, Inside, Sequence[Inside]] = UNSET,
        memory: int = UNSET,
        cancellation: Optional[Cancellation] = UNSET,
        context: Optional[Context] = UNSET,
        verify_reference: bool = UNSET,
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
            kwargs: of the model; and choices of a `Context`. All others are as for `compile`.
        """
        own = made(
            outputs=outputs, inside=inside, memory=memory, cancellation=cancellation, context=context,
            verify_reference=verify_reference,
        )
        self._require_own_word(kwargs, self.explain)
        asked = {"targets": targets, "at": at, "each_example": each_example}
        asked.update(every_target=every_target, operators=operators)
        chosen, kwargs = self._choices({**kwargs, **own})
        return self._explain(args, kwargs, asked, chosen)[0]

    def plan(
        self,
        *args: Any,
        targets: Any = "top1",
        at: Optional[str] = None,
        each_example: bool = False,
        every_target: bool = False,
        operators: bool = False,
        outputs: Union[None, str, Sequence[str]] = UNSET,
        verify_reference: bool = UNSET,
        cancellation: Optional[Cancellation] = UNSET,
        context: Optional[Context] = UNSET,
        **kwargs: Any,
    ) -> Plan:
        """Makes an attribution ready for many rows by the run that this call is, and one more on the baseline; see
        `Model.plan`. The plan takes the tensors that are an `Input` here, in their order, of the sizes that they have
        here; everything else is as it was. Every plan of a live model verifies its reference, asked to or not.
        """
        own = made(outputs=outputs, verify_reference=verify_reference, cancellation=cancellation, context=context)
        self._require_own_word(kwargs, self.plan)
        asked = {"targets": targets, "at": at, "each_example": each_example}
        asked.update(every_target=every_target, operators=operators)
        chosen, kwargs = self._choices({**kwargs, **own})
        outputs = names_of(chosen.get("outputs"))
        chosen = {key: value for key, value in chosen.items() if key not in OF_DECOMPOSE}
        if as_insides(chosen.pop("inside", None)):
            raise ValueError("a split that starts inside the model cannot be planned")
        chosen.pop("verify_reference", None)
        call = LiveCall(self.model, args, kwargs)
        request, planned = request_of(chosen)
        add_targets(request, **{**asked, "at": explained(at, outputs)})
        trace = self._traced(PlanTrace, call, (), request, planned)
        before = call.state()
        output, _ = self._run(call, trace, (), outputs, OnBaseline().reported())
        require_steady(call, before, output)
        return Plan(trace.found, self.model)

    def interactions(
        self,
        *args: Any,
        target: Any = "top1",
        concepts: Union[None, Concepts, Mapping] = None,
        at: Optional[str] = None,
        outputs: Union[None, str, Sequence[str]] = UNSET,
        memory: int = UNSET,
        cancellation: Optional[Cancellation] = UNSET,
        context: Optional[Context] = UNSET,
        verify_reference: bool = UNSET,
        **kwargs: Any,
    ) -> Interactions:
        """Finds what the contributions of groups owe to each other; see `Model.interactions`.

        The model is recorded, and the recording runs for each group: with the group at its baseline it has to go the way
        that it goes here.

        Args:
            args: what the model is called with, an `Input` for each tensor that is split: one example.
            target: as for `Model.interactions`, and so are `concepts`.
            at: as for `explain`.
            kwargs: of the model; and choices of a `Context`. All others are as for `compile`.

        Raises:
            FailedPrecondition: the model reads numbers of its inputs, by which it may branch, and they are others with a
                group at its baseline; or the examples of a batch influence each other.
        """
        own = made(
            outputs=outputs, memory=memory, cancellation=cancellation, context=context,
            verify_reference=verify_reference,
        )
        self._require_own_word(kwargs, self.interactions)
        chosen, kwargs = self._choices({**kwargs, **own})
        outputs = names_of(chosen.get("outputs"))
        options = for_files(chosen, ("memory", "cancellation", "context", "verify_reference"))
        question = self._asked(args, kwargs, False)
        return question.interactions(target, concepts, explained(at, outputs), outputs, options)

    def shapley(self, *args: Any, cancellation: Optional[Cancellation] = UNSET, **kwargs: Any) -> Composition:
        """The exact Shapley values of the components for the first floating-point output: at most 16 components, which
        take 2**16 runs. What decompositions are compared with.

        The model is recorded, and the recording runs for each subset of the components: it has to go one way for all of
        them. The values depend on no policy.

        Args:
            args: what the model is called with, an `Input` or a `Composition` for each tensor that is split.
            cancellation: as for `compile`.
            kwargs: of the model.

        Raises:
            FailedPrecondition: the model reads numbers of its inputs, by which it may branch, and they are others for a
                subset.
        """
        chosen, kwargs = self._choices({**kwargs, **made(cancellation=cancellation)})
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
        inside: Union[None, Inside, Sequence[Inside]] = UNSET,
        each_example: bool = True,
        at: Optional[str] = None,
        outputs: Union[None, str, Sequence[str]] = UNSET,
        memory: int = UNSET,
        verify_reference: bool = UNSET,
        cancellation: Optional[Cancellation] = UNSET,
        context: Optional[Context] = UNSET,
        **policy: Unpack[PolicyChoices],
    ) -> Any:
        """Computes what each element of the inputs contributed to the target, with the arguments of Captum; see
        `Model.attribute`.

        Inputs are the positional arguments of the model, or in a dict its named ones. Further ones in
        `additional_forward_args` may be anything that the model takes. Where the model was compiled with `inside`, that
        is what is attributed to. Options that `Model.attribute` has not are as for `compile`.
        """
        drop_captums(policy)
        as_context(None, self.attribute, **policy)  # so that what is wrong is told before the model runs
        own = made(outputs=outputs, inside=inside, memory=memory, cancellation=cancellation, context=context)
        chosen = {**self._options, **policy, **own, **made(verify_reference=verify_reference)}
        by_name = takes_by_name(self.model, inputs, additional_forward_args)
        question = Question(
            inputs, baselines, target, additional_forward_args, chosen.get("inside"), feature_mask, each_example, by_name
        )
        chosen["inside"] = question.insides()
        args, kwargs = (*question.positional, *question.further), question.named
        on_baseline: Optional[OnBaseline] = None

        def explain(targets: Any, each_example: bool) -> Tuple[Attribution, Dict[int, int]]:
            nonlocal on_baseline
            asked = {"targets": targets, "at": at, "each_example": each_example}
            asked.update(every_target=False, operators=False)
            on_baseline = OnBaseline() if return_convergence_delta else None
            return self._explain(args, kwargs, asked, chosen, on_baseline)

        found, places = question.ask(explain, lambda answer: answer[0].value.shape)
        tensors: List[Any] = []
        if question.inside is None:
            tensors = [found._results[1 + places[id(source)]] for source in question.leaves.sources]
        run_there = None if on_baseline is None else functools.partial(on_baseline.output, at)
        return question.answer(found, tensors, run_there)

    def _explain(
        self,
        args: Any,
        kwargs: Any,
        asked: Dict[str, Any],
        chosen: Dict[str, Any],
        on_baseline: Optional[OnBaseline] = None,
    ) -> Tuple[Attribution, Dict[int, int]]:
        """Returns the attribution of `explain`, and for each tensor that was given, by its identity, its place among the
        inputs that are attributed to.

        Args:
            chosen: choices of the call.
            on_baseline: will be ready to run the model on the baseline.
        """
        outputs = names_of(chosen.get("outputs"))
        asked = {**asked, "at": explained(asked["at"], outputs)}
        chosen = {key: value for key, value in chosen.items() if key not in OF_DECOMPOSE}
        call = LiveCall(self.model, args, kwargs)
        inside = as_insides(chosen.get("inside"))
        with self._slow_attention(inside) as slow:
            if any(isinstance(given, Input) and given.has_several_baselines for given in call.given):
                options = for_files(chosen, OF_ANY)
                return self._asked(args, kwargs, asked["each_example"]).explain(asked, outputs, options)
            chosen.pop("inside", None)
            insides, searched = self._placed(inside, args, kwargs)
            if chosen.pop("verify_reference", False):
                on_baseline = (on_baseline or OnBaseline()).reported()
            elif insides:
                on_baseline = None  # no argument of the model holds the baseline
            request, context = request_of(chosen)
            add_targets(request, **asked)
            trace = self._traced(AttributionTrace, call, insides, request, context, slow)
            output, _ = self._run(call, trace, insides, outputs, on_baseline, searched)
        return Attribution(trace.found, len(insides), call.tensors, output), call.places

    def _asked(self, args: Any, kwargs: Any, each_example: Optional[bool]) -> RecordedQuestion:
        return recorded_question(LiveCall(self.model, args, kwargs, everything=True), each_example)

    def _slow_attention(self, insides: Sequence[Inside]) -> SlowAttention:
        """A block in which heads are seen, where some are asked for."""
        return SlowAttention(modules_of(self.model) if any(one.heads for one in insides) else [])

    def _placed(self, inside: Sequence[Inside], args: Any, kwargs: Any) -> Tuple[List[Inside], Dict[str, Any]]:
        """The splits that start inside the model, with heads and experts found by a run that leaves no trace; and the
        numbers that this run gave, by their places, where there was one."""
        searched: Dict[str, Any] = {}

        def search() -> Program:
            before = State(self.model, given=(args, kwargs))
            try:
                program, output, _ = record_call(self.model, copied(args), copied(kwargs), False)
                searched.update(numbers_in(output))
                return program
            finally:
                before.restore()

        return placed(inside, search), searched

    def _choices(self, kwargs: Dict[str, Any]) -> Tuple[Dict[str, Any], Dict[str, Any]]:
        """Separates keyword arguments into choices of Addend, where those of the call override those of `compile`, and
        arguments of the model."""
        chosen, given = separated(self.model, kwargs)
        return {**self._options, **chosen}, given

    def _require_own_word(self, kwargs: Dict[str, Any], function: Callable[..., Any]) -> None:
        """Raises TypeError where `target` or `targets`, of which a function takes the other one, would go to a model
        that has no argument of that name."""
        own = parameters_of(self.model)
        require_options([name for name in ("target", "targets") if name in kwargs and name not in own], function, OF_ANY)

    def _traced(
        self,
        kind: Any,
        call: LiveCall,
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
        call: LiveCall,
        trace: Any,
        insides: Any,
        outputs: Optional[Sequence[str]],
        on_baseline: Optional[OnBaseline],
        searched: Optional[Dict[str, Any]] = None,
    ) -> Tuple[Any, Dict[str, int]]:
        return run_traced(call, trace, insides, outputs, on_baseline, searched, self._name_outputs)

    def _name_outputs(
        self, trace: Any, call: LiveCall, arguments: Any, output: Any, outputs: Optional[Sequence[str]]
    ) -> Dict[str, int]:
        return name_outputs(trace, call, arguments, output, outputs)

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, "_known": KnownTensors()}

    def __getattr__(self, name: str) -> Any:
        if name == "model":  # before __init__ has set it
            raise AttributeError(name)
        return getattr(self.model, name)

    def __repr__(self) -> str:
        return "TracedModel(%r)" % (self.model,)
