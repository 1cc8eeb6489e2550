"""Models from files: TorchScript, and programs of torch.export."""

import functools
import json
import os
from typing import Any, List, Mapping, Optional, Sequence, Union

from . import _native
from ._attribution import Attribution
from ._cancellation import Cancellation
from ._captum import Question
from ._captum_inputs import baselines_of
from ._captum_options import drop_captums
from ._composition import Composition
from ._context import Context, PolicyChoices, as_context
from ._dtype import to_code
from ._errors import Unimplemented
from ._handle import Handle
from ._input import Inside, as_insides
from ._named_parts import placed
from ._plan import Plan
from ._program import Program, Requirement, TraceCheck, read_check, read_requirements
from ._reasons import Concepts, Interactions, as_concepts
from ._request import add_outputs, add_targets, as_arguments, explained, new_model_request, set_options
from ._results import Results
from ._tensor import Tensor
from ._unpack import Unpack


class Model(Handle):
    """A model from a file, on the CPU and in evaluation mode; `load_model` gives it. Threads may share one.

    Inputs are given in the order of `input_names`, or one dict by name. Each is an `Input`, a `Composition`, or a
    tensor or array, which has no components then; or tuples, lists and dicts of these, where the model takes such
    arguments. Numbers, text and None are given as they are; a list of numbers alone is a tensor, unless in `Plain`.
    """

    __slots__ = ()
    _INSTEAD = "load it where it is used; threads may share one"

    @staticmethod
    def sha256(path: Union[str, "os.PathLike[str]"]) -> str:
        """The SHA-256 of a model, as `AuditLog` and `Job` have it: 64 hexadecimal digits.

        That of a file is the one of its bytes. An ONNX model with weights in files beside it has one that stands for all of
        these files, and so has the folder of a program.

        Args:
            path: a file that `load_model` takes, or a folder that `Program.save` wrote.

        Raises:
            NotFound: there is no such file, or one of the weights of an ONNX model is missing.
        """
        return _native.model_sha256(os.fspath(path))

    @property
    def input_names(self) -> List[str]:
        """The arguments that the model takes, in order."""
        handle = self._handle
        return [_native.model_input_name(handle, index) for index in range(_native.model_num_inputs(handle))]

    def to(self, device: Any = None, dtype: Any = None) -> "Model":
        """A copy on another device, such as ``"cuda:0"``, or with parameters of another floating-point type.

        Raises:
            Unimplemented: the model does not come from a file.
        """
        return Model(_native.model_to(self._handle, to_code(dtype), None if device is None else str(device)))

    def methods(self, *names: str) -> "Model":
        """Returns a model of the same parameters that runs other methods than ``forward``. They run one after the
        other, each on as many of the inputs as it has arguments. Several methods give the outputs of each, in order,
        and their inputs are called ``"encode.x"``.

        Raises:
            NotFound: the model has no such method.
            Unimplemented: the model does not come from a TorchScript file.
        """
        for name in names:
            if not isinstance(name, str) or "," in name:
                raise TypeError("the name of a method is text without a comma, not %r" % (name,))
        return Model(_native.model_methods(self._handle, ",".join(names)))

    def forget_references(self) -> None:
        """Forgets what `keep_references` made the model keep: to free the memory, or after writes to parameters that no
        operator made."""
        _native.model_forget_references(self._handle)

    def requirements(self, *inputs: Any, context: Optional[Context] = None) -> List[Requirement]:
        """Lists everything that a run with these inputs lacks, before anything runs.

        It is found by reading the source of the model, including branches that are not taken.

        Args:
            inputs: what the model would be given.
            context: whose rules count.
        """
        request = new_model_request([inputs])
        return read_requirements(_native.model_requirements(as_context(context)._handle, self._handle, request))

    def decompose(
        self,
        *inputs: Any,
        inside: Union[None, Inside, Sequence[Inside]] = None,
        probes: Union[str, Sequence[str]] = (),
        outputs: Union[str, Sequence[str]] = (),
        everything: bool = False,
        memory: int = 0,
        direction: str = "auto",
        keep_references: bool = False,
        verify_reference: bool = False,
        cancellation: Optional[Cancellation] = None,
        context: Optional[Context] = None,
        **policy: Unpack[PolicyChoices],
    ) -> Results:
        """Runs the model and writes what it computes as sums of its causes.

        Args:
            inputs: what the model is given.
            inside: one or several tensors inside the model at which components begin, in place of the inputs, which are
                plain then. It takes one more run of the model.
            probes: inner tensors that are wanted too: ``"layers.0.attention"`` (what left a module: the tensor that it
                gave and others read or the model returns), ``"encoder@1"`` (the same of one of several calls, counted
                from 0), ``"attention:1"`` (one of several tensors that left it), ``"encoder@*"`` and ``"attention:*"``
                (all of them, each a result of its own), ``"#28"`` (an operator by its number), ``"#28:1"`` (one of its
                tensors), ``"aten::gelu"`` or ``"aten::gelu:2"`` (by its name), ``"logits"`` (what the last softmax or
                sigmoid reads). A name of several tensors is an error that lists them.
            outputs: which of the model's results are decomposed, ``"output"`` or ``"output.1"``, ``"output.logits"`` of
                a dictionary; the others are left out. All of them unless given.
            everything: checks every operator, not only those that results depend on.
            memory: what the parts of results and all rows on their way there may take together, in bytes, beside the
                model and its recorded run; 0: any amount. Components then move through the model in groups, which run
                it once all the same.
            direction: ``"forward"`` sends every component through every operator; ``"backward"`` finds them from the
                numbers that are asked for, while the sum of all components goes forward and is checked after every
                operator; ``"auto"`` takes that way where there are few numbers and much to save. The results are the
                same to rounding, and `Results.report` tells the way.
            keep_references: the model keeps what it gives on the baselines, and takes it from there in later runs that
                ask for that, where the baselines and everything else that it depends on are the same; see
                `forget_references`.
            verify_reference: also runs the plain model on the baseline; the report's ``reference_error`` says how far
                the reference is from that, over its largest magnitude.
            cancellation: who may end the run.
            context: how to decompose.
            policy: choices of a `Context`, in place of one.

        Raises:
            Unimplemented: an operator has no rule; the payload says where it is.
            Cancelled: the run was ended.
            Error: a tracing failure: recovery and value differ, at the operator that the payload names.
        """
        chosen = as_context(context, self.decompose, **policy)
        insides = placed(as_insides(inside), lambda: self._recorded_unchanged(inputs, cancellation))
        request = new_model_request(
            [inputs],
            probes,
            cancellation,
            insides,
            everything=everything,
            memory=memory,
            direction=direction,
            keep_references=keep_references,
            verify_reference=verify_reference,
        )
        add_outputs(request, outputs)
        return Results(_native.model_decompose(chosen._handle, self._handle, request))

    def run(self, *inputs: Any, cancellation: Optional[Cancellation] = None) -> Results:
        """Runs the plain model: its tensors, without compositions."""
        return Results(_native.model_run(self._handle, new_model_request([inputs], cancellation=cancellation)))

    def explain(
        self,
        *inputs: Any,
        inside: Union[None, Inside, Sequence[Inside]] = None,
        targets: Any = "top1",
        at: Optional[str] = None,
        outputs: Union[str, Sequence[str]] = (),
        each_example: bool = False,
        every_target: bool = False,
        operators: bool = False,
        memory: int = 0,
        keep_references: bool = False,
        verify_reference: bool = False,
        cancellation: Optional[Cancellation] = None,
        context: Optional[Context] = None,
        **policy: Unpack[PolicyChoices],
    ) -> Attribution:
        """Finds what each element of the inputs gave to one number of the output, or to several: one sweep back, at the
        same price for ten components and for ten thousand.

        Args:
            inputs: what the model is given, split as for `decompose`.
            inside: as for `decompose`; then found in `Attribution.inside`.
            targets: the number to explain as `Results.explain` takes it, or a list of several.
            at: what the targets are elements of, unless it is the first output: ``"output.1"``, or an inner tensor as
                for `decompose`.
            outputs: which of the model's results count, as for `decompose`; without `at`, the first that is named
                is explained.
            each_example: the first dimension of all split inputs and of the explained tensor counts examples, and each
                has a target of its own, whose index leaves out that dimension: a list of one for each, or one for all.
            every_target: beside `each_example`, each example has all of the targets, rather than one of them. Targets of
                the attribution are then the first one for every example, then the second one, and attributions of an
                input are ``[targets, *shape]``.
            operators: also finds what passes through every operator.
            memory: what the recorded run and its coefficients may take beside the model, in bytes, about; 0: any amount.
                What does not fit is computed again, with the same bits, for up to two plain runs more.
            keep_references: as for `decompose`; not within a limit of memory.
            verify_reference: as for `decompose`.
            cancellation: who may end the run.
            context: how to decompose.
            policy: choices of a `Context`, in place of one.

        Raises:
            FailedPrecondition: a choice of the policy looks at all components together, which no sweep back can.
            Unimplemented: an operator has no rule; the payload says where it is.
        """
        chosen = as_context(context, self.explain, **policy)
        insides = placed(as_insides(inside), lambda: self._recorded_unchanged(inputs, cancellation))
        request = new_model_request([inputs], cancellation=cancellation, insides=insides)
        add_targets(
            request,
            targets,
            at=explained(at, outputs),
            each_example=each_example,
            every_target=every_target,
            operators=operators,
        )
        add_outputs(request, outputs)
        set_options(request, memory=memory, keep_references=keep_references, verify_reference=verify_reference)
        return Attribution(_native.model_attribute(chosen._handle, self._handle, request), len(insides))

    def plan(
        self,
        *inputs: Any,
        targets: Any = "top1",
        at: Optional[str] = None,
        outputs: Union[str, Sequence[str]] = (),
        each_example: bool = False,
        every_target: bool = False,
        operators: bool = False,
        verify_reference: bool = False,
        cancellation: Optional[Cancellation] = None,
        context: Optional[Context] = None,
        **policy: Unpack[PolicyChoices],
    ) -> Plan:
        """Makes an attribution ready for many rows: the model runs now, and later rows go through the operators that it
        called, with nothing looked up again. What a plan gives has the bits of `explain`.

        Args:
            inputs: an example of what the model will be given, split as for `decompose`; its baselines are the plan's.
            targets: as for `explain`, and so are all others. With `each_example`, later batches may have another number
                of examples.

        Raises:
            FailedPrecondition: the model cannot be planned: it draws random numbers, writes its own memory, gives sizes
                that depend on elements, or computes what no operator shows. The payload says where.
        """
        chosen = as_context(context, self.plan, **policy)
        request = new_model_request([inputs], cancellation=cancellation)
        add_targets(
            request,
            targets,
            at=explained(at, outputs),
            each_example=each_example,
            every_target=every_target,
            operators=operators,
        )
        add_outputs(request, outputs)
        set_options(request, verify_reference=verify_reference)
        return Plan(_native.model_plan(chosen._handle, self._handle, request))

    def attribute(
        self,
        inputs: Any,
        baselines: Any = None,
        target: Any = None,
        additional_forward_args: Any = None,
        return_convergence_delta: bool = False,
        *,
        feature_mask: Any = None,
        inside: Union[None, Inside, Sequence[Inside]] = None,
        each_example: bool = True,
        at: Optional[str] = None,
        outputs: Union[str, Sequence[str]] = (),
        memory: int = 0,
        keep_references: bool = False,
        verify_reference: bool = False,
        cancellation: Optional[Cancellation] = None,
        context: Optional[Context] = None,
        **policy: Unpack[PolicyChoices],
    ) -> Any:
        """Computes what each element of the inputs contributed to the target, with the arguments of Captum and their
        meaning.

        Args:
            inputs: a tensor, or a tuple, list or dict (by name) of them, on any depth that the model takes, where None,
                numbers and text may stand too. Their first dimension counts examples.
            baselines: what means "nothing": a tensor that broadcasts to the input, or a number, or one for each input
                in the same structure. Unless given, zero for floats, and for ids token 0, of which a warning tells.
            target: which element of each example's output: a number, a tuple for outputs of more dimensions, or a list
                or tensor with one of these for each example; text such as ``"7-2"`` is the seventh minus the second, and
                ``"top1"`` the largest. May be left out where the output has one element for each example, or only one.
                A tuple that is the index in the whole output explains that one number, as of a node of a graph.
            additional_forward_args: further inputs that nothing is attributed to: a tensor, or a tuple of them.
            return_convergence_delta: also returns the sum of attributions minus the difference that they explain, for
                which the model runs on the baseline where its output there is not known otherwise.
            feature_mask: integers that broadcast to the input, the number of each element's group (or one for each
                input, in the same structure, a number being the same group in all of them). The attribution of every
                element is then the sum of its group's in this example.
            inside: what is attributed to in place of the inputs (what Captum knows as layers): a tensor inside the
                model, or several. The inputs are plain then, and baselines are those of the `Inside`.
            each_example: False: the target is a whole index, or a list of several, and the first dimension of what is
                returned counts targets.
            at: as for `explain`, and so is `outputs`.
            memory: as for `explain`.
            keep_references: as for `decompose`.
            verify_reference: as for `decompose`.
            cancellation: who may end the run.
            context: how to decompose.
            policy: choices of a `Context`, in place of one. Options that Captum needs and Addend does not (``n_steps``,
                ``internal_batch_size``) are taken, and a warning says why they change nothing.

        Returns:
            Attributions in the structure of the inputs, or of `inside`, each of the shape of its input and of the same
            library; None in the place of what is no tensor. With `return_convergence_delta` a tuple of these and of one
            number for each target: sum of attributions - (model(inputs) - model(baselines)).

        Warns:
            AddendWarning: the numbers do not mean what they seem to; see `Attribution.notes`.
        """
        drop_captums(policy)
        chosen = as_context(context, self.attribute, **policy)
        names = self.input_names
        by_name = isinstance(inputs, Mapping) and (len(names) != 1 or bool(set(names) & set(inputs)))
        question = Question(
            inputs, baselines, target, additional_forward_args, inside, feature_mask, each_example, by_name
        )
        if question.named and question.further:
            raise TypeError("inputs are a dict, so plain ones are named in it too: as addend.Input(value)")

        def explain(targets: Any, each_example: bool) -> Attribution:
            return self.explain(
                *self._arguments(question, question.leaves.sources),
                inside=question.insides(),
                targets=targets,
                at=at,
                outputs=outputs,
                each_example=each_example,
                memory=memory,
                keep_references=keep_references,
                verify_reference=verify_reference,
                cancellation=cancellation,
                context=chosen,
            )

        found = question.ask(explain, lambda answer: answer.value.shape)
        sources = question.leaves.sources
        if question.named:
            sources = question.leaves.sources_in(names)
        by_source = dict(zip(map(id, sources), found.inputs))
        tensors: List[Any] = [by_source.get(id(source)) for source in question.leaves.sources]
        on_baseline = functools.partial(self._on_baseline, question, explained(at, outputs), outputs)
        return question.answer(found, tensors, on_baseline if return_convergence_delta else None)

    def _arguments(self, question: Question, tensors: Sequence[Any]) -> Sequence[Any]:
        """The arguments of `explain` or `run` that ask a question, with these in the places of its tensors."""
        given = question.leaves.given(tensors)
        if question.named:
            return (given,)
        arguments = (*((given,) if question.leaves.is_single else given), *question.further)
        if len(arguments) == 1 and isinstance(arguments[0], Mapping):
            return ({self.input_names[0]: arguments[0]},)  # alone it would be taken for arguments by name
        return arguments

    def _on_baseline(
        self, question: Question, at: Optional[str], outputs: Union[str, Sequence[str]]
    ) -> Optional[Tensor]:
        """The plain model's output on the baselines for the tensor that is explained; None where no run gives that."""
        if question.inside is not None or any(source.has_several_baselines for source in question.leaves.sources):
            return None
        results = self.run(*self._arguments(question, baselines_of(question.leaves.sources)))
        names = results.names
        first = (outputs,) if isinstance(outputs, str) else tuple(outputs)
        name = at or (first[0] if first else next((name for name in names if _holds_numbers(results[name])), None))
        return results[name] if name in names else None

    def record(
        self,
        *inputs: Any,
        others: Sequence[Any] = (),
        learn_sizes: bool = False,
        cancellation: Optional[Cancellation] = None,
    ) -> Program:
        """Runs the model once and keeps what it did.

        Args:
            inputs: what the model is given.
            others: inputs of other sizes, each a tuple or a dict where the model takes several: from these the program
                learns which numbers follow which size, so that it runs for other sizes too. What it learned from two
                sizes it tries on a third. Without others, it runs for the sizes of the recording.
            learn_sizes: derives others from `inputs`, parts and repetitions of them, and learns from these: about ten
                runs for each dimension. The program then holds between the sizes that were tried.
            cancellation: who may end the run.

        Raises:
            Unimplemented: something cannot be recorded (tensors that are not dense); the payload says where it is.
            FailedPrecondition: a number follows no size of the inputs.
        """
        request = new_model_request(
            [inputs, *map(as_arguments, others)], cancellation=cancellation, learn_sizes=learn_sizes
        )
        program = Program(_native.model_record(self._handle, request), functools.partial(self.check_trace, *inputs))
        if not others and not learn_sizes:
            program._learn = functools.partial(self.record, *inputs)
        return program

    def _recorded_unchanged(self, inputs: Sequence[Any], cancellation: Optional[Cancellation]) -> Program:
        """Records a run that leaves nothing for the next one."""
        program = self.record(*inputs, cancellation=cancellation)
        graph = program.graph()
        held = {name for kind in ("parameter", "buffer") for name in program.names(kind)}
        for node in graph["nodes"]:
            written = [one["value"] for own in node.get("arguments", ()) for one in own.get("tensors", ()) if one["written"]]
            if node.get("random") or held.intersection(written):
                raise Unimplemented(
                    "the model draws random numbers or writes what it holds, so that a run for finding heads or experts "
                    "would change the next one: split the tensor with dims= or labels="
                )
        return program

    def check_trace(
        self,
        *inputs: Any,
        others: Sequence[Any] = (),
        tolerance: float = 1e-5,
        strict: bool = True,
        out_of_place: bool = False,
        cancellation: Optional[Cancellation] = None,
    ) -> TraceCheck:
        """Whether a recording is the model: records twice, replays, and tries other inputs. See `Program.check`."""
        request = new_model_request([inputs, *map(as_arguments, others)], cancellation=cancellation)
        options = json.dumps({"tolerance": tolerance, "strict": strict, "out_of_place": out_of_place})
        return read_check(_native.model_check_trace(self._handle, request, options))

    def interactions(
        self,
        *inputs: Any,
        target: Any = "top1",
        concepts: Union[None, Concepts, Mapping[str, Any]] = None,
        at: Optional[str] = None,
        outputs: Union[str, Sequence[str]] = (),
        memory: int = 0,
        verify_reference: bool = False,
        cancellation: Optional[Cancellation] = None,
        context: Optional[Context] = None,
        **policy: Unpack[PolicyChoices],
    ) -> Interactions:
        """Finds what the contributions of groups owe to each other, by one attribution for each group and one more, in a
        batch where the model takes batches.

        Args:
            inputs: what the model is given, one example, split as for `decompose`.
            target: the number to explain as `Results.explain` takes it.
            concepts: the groups; components that no concept names are groups by themselves, without concepts all are.
            at: as for `explain`, and so are `outputs` and `memory`.
            verify_reference: as for `decompose`.
            cancellation: who may end the run.
            context: how to decompose.
            policy: choices of a `Context`, in place of one.

        Raises:
            FailedPrecondition: the examples of a batch influence each other.
        """
        chosen = as_context(context, self.interactions, **policy)
        request = new_model_request(
            [inputs], cancellation=cancellation, memory=memory, verify_reference=verify_reference
        )
        add_targets(request, target, at=explained(at, outputs))
        add_outputs(request, outputs)
        groups = None if concepts is None else as_concepts(concepts)
        return Interactions(_native.model_interactions(chosen._handle, self._handle, request, groups))

    def shapley(self, *inputs: Any, cancellation: Optional[Cancellation] = None) -> Composition:
        """The exact Shapley values of the components for the first output: at most 16 components, which take 2**16
        runs. What decompositions are compared with."""
        request = new_model_request([inputs], cancellation=cancellation)
        return Composition._adopt(_native.model_shapley(self._handle, request))

    def __call__(
        self,
        *inputs: Any,
        inside: Union[None, Inside, Sequence[Inside]] = None,
        probes: Union[str, Sequence[str]] = (),
        outputs: Union[str, Sequence[str]] = (),
        everything: bool = False,
        memory: int = 0,
        direction: str = "auto",
        keep_references: bool = False,
        verify_reference: bool = False,
        cancellation: Optional[Cancellation] = None,
        context: Optional[Context] = None,
        **policy: Unpack[PolicyChoices],
    ) -> Any:
        """The outputs that `decompose` gives, whose arguments these are: one, or a tuple of several."""
        results = self.decompose(
            *inputs,
            inside=inside,
            probes=probes,
            outputs=outputs,
            everything=everything,
            memory=memory,
            direction=direction,
            keep_references=keep_references,
            verify_reference=verify_reference,
            cancellation=cancellation,
            context=context,
            **policy,
        )
        outputs = [result for name, result in zip(results.names, results) if _is_output(name)]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def __repr__(self) -> str:
        return "Model(closed)" if self.closed else "Model(%s)" % ", ".join(self.input_names)


Program._model_class = Model


def load_model(source: Union[str, "os.PathLike[str]", bytes], dtype: Any = None) -> Model:
    """Loads a TorchScript file, a program that `torch.export.save` wrote (``.pt2``), or an ONNX model. Run only what you
    trust.

    Args:
        source: the path, or the bytes of the file.
        dtype: converts parameters and floating-point buffers.

    Raises:
        NotFound: there is no such file.
        InvalidArgument: it is none of them, or cut off.
        Unimplemented: it holds compiled operations, which tracing cannot see, or calls operators that this LibTorch does
            not have.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        return Model(_native.model_load_bytes(source, to_code(dtype)))
    return Model(_native.model_load(os.fspath(source), to_code(dtype)))


def _holds_numbers(result: Any) -> bool:
    return isinstance(result, Tensor) and ("float" in result.dtype or "complex" in result.dtype)


def _is_output(name: Optional[str]) -> bool:
    return name is not None and (name == "output" or name.startswith("output."))
