"""Recorded programs: what a model did, to be read, kept and run again."""

import json
import math
import os
import tempfile
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    ClassVar,
    Dict,
    Iterable,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    Type,
    Union,
)

from . import _graph, _native
from ._arguments import is_numbers
from ._cancellation import Cancellation
from ._context import Context, as_context
from ._dtype import DType, from_code, to_code
from ._errors import InvalidArgument
from ._handle import Handle
from ._recorded_call import RecordedCall, as_given
from ._records import Finding, Requirement, TraceCheck
from ._request import new_model_request
from ._results import Results
from ._structure import map_leaves

if TYPE_CHECKING:
    from ._model import Model

# Numbers to show for each operator: numbers, or ("seconds", numbers) or ("bytes", numbers); None where there is none.
Numbers = Mapping[str, Union[Sequence[Optional[float]], Tuple[str, Sequence[Optional[float]]]]]


class ProgramOutput(NamedTuple):
    """A tensor that a program gives: the name that its result has, and dtype and shape in the recording."""

    name: str
    dtype: DType
    shape: Tuple[int, ...]


class Program(Handle):
    """The recorded run of a model for one input: `Model.record` and `Program.load` give it. Immutable; threads may
    share one.

    It runs again with other inputs, without the model, and stops if a number that left the tensors (``item()``, a
    condition, the size of ``nonzero()``) differs from the recording.
    """

    __slots__ = ("_source", "_learn", "_call")
    _INSTEAD = "save() it, and load it where it is used"
    # The class of models, which stands above this one and makes programs: it enters itself here.
    _model_class: "ClassVar[Type[Model]]"

    def __init__(self, capsule: Any, source: Optional[Callable[..., TraceCheck]] = None):
        super().__init__(capsule)
        self._source = source  # checks a recording of the same model with the same inputs
        # Records it again, with the arguments of `Model.record` about sizes; None: it is not there, or is another now.
        self._learn: Optional[Callable[..., Optional[Program]]] = None
        self._call: Optional[RecordedCall] = None  # of a live model

    @staticmethod
    def load(folder: Union[str, "os.PathLike[str]"]) -> "Program":
        """Reads what `save` has written. That runs nothing; running a program runs the operators that the files name, so
        run only what you trust.

        Raises:
            NotFound: there is no such folder.
            InvalidArgument: its files are cut off, do not fit together, or are of another version. Edits that fit are not
                noticed.
        """
        return Program(_native.program_load(os.fspath(folder)))

    def save(self, folder: Union[str, "os.PathLike[str]"]) -> None:
        """Writes ``program.json`` and ``weights.safetensors`` into a folder, made if there is none."""
        _native.program_save(self._handle, os.fspath(folder))

    def export_torchscript(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes a TorchScript file, which PyTorch runs without this library, with the parameters and buffers by their
        names.

        The file follows the sizes of its inputs as far as the program does, and stops with an error at others. A program
        that was recorded for one size learns others first, while its model is there, as with ``learn_sizes``.

        Raises:
            FailedPrecondition: a number that depends on elements has left the tensors; the payload says where. Such a
                file would go the recorded way without a word.
            Unimplemented: TorchScript has no such thing: plain values among the inputs, models without values.
        """
        _native.program_export_torchscript((self._of_other_sizes() or self)._handle, os.fspath(path))

    def script_module(self) -> Any:
        """The program as a ``torch.jit.ScriptModule``, without a file that stays: see `export_torchscript`, which says
        what is refused."""
        import torch

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.pt")
            self.export_torchscript(path)
            return torch.jit.load(path)

    def to(self, dtype: Any) -> "Program":
        """The program with every floating-point tensor of another floating-point type, parameters included. It is
        replayed on inputs of that type, and stops at an operator that gives another one."""
        program = Program(_native.program_to(self._handle, to_code(dtype)))
        program._call = self._call
        return program

    def requirements(self, *inputs: Any, context: Optional[Context] = None) -> List[Requirement]:
        """Lists everything that a replay with these inputs lacks, before anything runs; see `Model.requirements`."""
        request = new_model_request([inputs])
        return read_requirements(_native.program_requirements(as_context(context)._handle, self._handle, request))

    @property
    def outputs(self) -> List[ProgramOutput]:
        """The outputs of the program, in order, known before it runs: name, dtype, and the shape in the recording."""
        handle = self._handle
        return [
            ProgramOutput(
                _native.program_output_name(handle, k),
                from_code(_native.program_output_dtype(handle, k)),
                tuple(_native.program_output_size(handle, k, d) for d in range(_native.program_output_num_dims(handle, k))),
            )
            for k in range(_native.program_num_outputs(handle))
        ]

    def model(self) -> "Model":
        """The program as a model, to be run, decomposed and attributed without the one that was recorded."""
        return self._model_class(_native.program_model(self._handle))

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Runs the program as its model is called::

            program = addend.compile(network).record(x)
            y = program(other)

        Args:
            inputs: what the model is called with. Of a live model also what was no tensor, which has to be the same, and
                what is nested, as it was.
            named: inputs by their names.

        Returns:
            What a live model returned, with the tensors of this run in the places of its own: those of PyTorch where an
            input is one, else a `Tensor`. They have no gradients. A program that was loaded, or made of a file or of a
            block of code, gives its outputs: one, or a tuple of several.

        Raises:
            ValueError: the arguments have another form than in the recording, or the model also returned something that is
                neither a tensor, text nor None, such as a number, which no run computes.
            FailedPrecondition: as `replay`, and so is InvalidArgument.
        """
        if self._call is not None:
            self._call.require_computed()
            results = as_given(list(self.replay(*self._call.inputs(inputs, named))), (inputs, named))
            return self._call.output(results)
        if inputs and named:
            raise TypeError("give all inputs in order, or all of them by name")
        results = as_given(list(self.replay(*([named] if named else inputs))), (inputs, named))
        return results[0] if len(results) == 1 else tuple(results)

    def replay(
        self,
        *inputs: Any,
        values: Union[None, str, Iterable[str]] = None,
        every_value: bool = False,
        guards: bool = True,
        guard_tolerance: float = 0.0,
        out_of_place: bool = False,
        cancellation: Optional[Cancellation] = None,
    ) -> Results:
        """Runs the program. Where it was recorded for one size, and is given another, it learns sizes first, while its
        model is there, as with ``learn_sizes``.

        Args:
            inputs: as `Model.run` takes them; of a live model, as it was called itself, or one by one.
            values: names of inner tensors that are wanted too, as `names` has them.
            every_value: all of them.
            guards: whether a number that left the tensors and is another one now stops the run. Without, it follows the
                branch of the recording, right or wrong.
            guard_tolerance: by how much floating-point numbers among them may differ, relative.
            out_of_place: every write goes into a copy of the memory: inner tensors are as they were made.
            cancellation: who may end the run.

        Raises:
            FailedPrecondition: a guard does not hold; the message says where.
            InvalidArgument: the inputs are not like those of the recording.
        """
        options: Dict[str, Any] = {"every_value": every_value, "guards": guards, "guard_tolerance": guard_tolerance}
        options["out_of_place"] = out_of_place
        if values is not None:
            options["values"] = [values] if isinstance(values, str) else list(values)
        request = new_model_request([self._as_recorded(inputs)], cancellation=cancellation)
        try:
            return Results(_native.program_replay(self._handle, request, json.dumps(options)))
        except InvalidArgument:
            learned = self._of_other_sizes()
            if learned is None:
                raise
            return Results(_native.program_replay(learned._handle, request, json.dumps(options)))

    def _of_other_sizes(self) -> Optional["Program"]:
        """Records the program anew for other sizes too; None if the model is not there any more, or nothing is
        learned."""
        if self._learn is None:
            return None
        learned = self._learn(learn_sizes=True)
        return learned if learned is not None and learned.summary["free"] else None

    def check(
        self, *others: Any, tolerance: float = 1e-5, strict: bool = True, out_of_place: bool = False
    ) -> TraceCheck:
        """Whether the program is the model that it was recorded from: records again, replays, and tries other inputs.

        Args:
            others: further inputs to try; each a tuple or a dict where the model takes several. Only they show what
                depends on the input.
            tolerance: how far results may differ, relative.
            strict: whether outputs that callers could change, lists and dictionaries, are worth a finding.
            out_of_place: also replays without writes in place, which finds aliases that the program does not know of.

        Raises:
            ValueError: the program was loaded, or recorded from a block of code, so there is no model to compare it with.
        """
        if self._source is None:
            raise ValueError(
                "this program was loaded, or recorded from a block of code, which cannot run again; record the model "
                "again, and check what that gives"
            )
        return self._source(others=others, tolerance=tolerance, strict=strict, out_of_place=out_of_place)

    @property
    def num_operators(self) -> int:
        """How many operators were called."""
        return _native.program_num_operators(self._handle)

    def names(self, kind: Optional[str] = None) -> List[str]:
        """The names of its tensors: all, or those that are an ``"input"``, ``"parameter"``, ``"buffer"``,
        ``"constant"``, ``"result"`` or ``"part"``."""
        handle = self._handle
        return [
            _native.program_value_name(handle, index)
            for index in range(_native.program_num_values(handle))
            if kind is None or _native.program_value_kind(handle, index) == kind
        ]

    @property
    def summary(self) -> Dict[str, Any]:
        """``operators``, ``inputs``, ``output``, ``values``, ``guards``, and ``free``: the dimensions of inputs that may
        have another size."""
        return json.loads(_native.program_summary(self._handle))

    def code(
        self,
        *,
        succinct: bool = True,
        color: bool = False,
        names: bool = False,
        marks: bool = False,
        include: Iterable[str] = (),
        exclude: Optional[Iterable[str]] = None,
        numbers: Optional[Numbers] = None,
    ) -> str:
        """Its operators as text, each under the source lines that called it.

        Args:
            succinct: a line stands once for all its expressions.
            color: with the escapes of terminals.
            names: tensors with their names.
            marks: tensors that share memory, with the number of their storage, and ``!`` where it is written.
            include: patterns for the files whose lines are shown; all unless given.
            exclude: patterns for those that are not; the inside of PyTorch unless given.
            numbers: what stands behind each operator: ``{"time": ("seconds", [...]), "contribution": [...]}``.
        """
        return _native.program_code_text(
            self._handle, code_options(succinct, color, names, marks, include, exclude, numbers)
        )

    def code_record(
        self,
        *,
        names: bool = False,
        marks: bool = False,
        include: Iterable[str] = (),
        exclude: Optional[Iterable[str]] = None,
        numbers: Optional[Numbers] = None,
    ) -> Dict[str, Any]:
        """Its code as data: ``calls``, each with its ``line``, and the ``places`` where they stand."""
        options = code_options(True, False, names, marks, include, exclude, numbers)
        return json.loads(_native.program_code_json(self._handle, options))

    def graph(self, numbers: Optional[Numbers] = None) -> Dict[str, Any]:
        """Its graph: ``nodes`` in topological order and ``edges``."""
        return json.loads(_native.program_graph_json(self._handle, json.dumps(_with_numbers({}, numbers))))

    def dot(self, *, sources: bool = False, modules: bool = True) -> str:
        """Its graph for Graphviz.

        Args:
            sources: parameters, buffers and constants as nodes.
            modules: modules as boxes.
        """
        return _native.program_graph_dot(self._handle, json.dumps({"sources": sources, "modules": modules}))

    def to_networkx(self, numbers: Optional[Numbers] = None) -> Any:
        """Its graph as a ``networkx.MultiDiGraph``: nodes by their names in topological order, with what `graph` has of
        them as attributes, and so for edges. Needs the package networkx."""
        return _graph.to_networkx(self.graph(numbers))

    def graphml(self, numbers: Optional[Numbers] = None) -> str:
        """Its graph as GraphML, which Gephi, yEd, igraph and NetworkX read. Attributes are numbers and text there: the
        arguments of an operator that are no tensors are one line, without those that have their defaults."""
        return _graph.graphml(self.graph(numbers))

    def draw(self, path: Union[str, "os.PathLike[str]"], *, sources: bool = False, modules: bool = True) -> None:
        """Draws its graph by Graphviz into a file, whose ending says the format: ``"graph.svg"``, ``"graph.png"``.

        Args:
            sources: as for `dot`, and so is `modules`.

        Raises:
            FailedPrecondition: Graphviz is not installed.
            InvalidArgument: Graphviz does not know the format, or cannot write there.
        """
        _graph.draw(self.dot(sources=sources, modules=modules), path)

    def html(self, title: str = "program", numbers: Optional[Numbers] = None) -> str:
        """Its graph as a page for a browser that needs nothing else."""
        return _native.program_graph_html(self._handle, json.dumps(_with_numbers({"title": title}, numbers)))

    def _as_recorded(self, inputs: Tuple[Any, ...]) -> Tuple[Any, ...]:
        """Inputs by their names where they are nested, as a live model takes them, and the program has them one by one."""
        alone = inputs[0] if len(inputs) == 1 and isinstance(inputs[0], Mapping) else None
        values = tuple(alone.values()) if alone is not None else inputs
        if not any(_is_nested(value) for value in values):
            return inputs
        if any(entry["structure"] != "Tensor" for entry in self.summary["inputs"]):
            return inputs
        names = self.names("input")
        arguments = list(dict.fromkeys(name.split(".")[0] for name in names))
        if alone is not None:
            arguments = [str(key) for key in alone]
        found: Dict[str, Any] = {}
        if len(arguments) == len(values):
            for argument, value in zip(arguments, values):
                map_leaves(lambda leaf, path: found.setdefault(path, leaf), value, argument)
        return (found,) if set(found) == set(names) else inputs

    def __repr__(self) -> str:
        if self.closed:
            return "Program(closed)"
        return "Program(%s: %d operators)" % (", ".join(self.names("input")), self.num_operators)


def _is_nested(value: Any) -> bool:
    return isinstance(value, (tuple, Mapping)) or (isinstance(value, list) and not is_numbers(value))


def read_check(record: str) -> TraceCheck:
    """Reads a check from the JSON of the C interface."""
    data = json.loads(record)
    findings = [Finding(*(finding[field] for field in Finding._fields)) for finding in data["findings"]]
    return TraceCheck(data["ok"], data["worst_error"], findings)


def read_requirements(record: str) -> List[Requirement]:
    """Reads requirements from the JSON of the C interface."""
    return [Requirement(*(unmet[field] for field in Requirement._fields)) for unmet in json.loads(record)["unmet"]]


def code_options(
    succinct: bool,
    color: bool,
    names: bool,
    marks: bool,
    include: Iterable[str],
    exclude: Optional[Iterable[str]],
    numbers: Optional[Numbers],
) -> str:
    """Options for the text of a program, in the JSON that the C interface takes."""
    options: Dict[str, Any] = {"succinct": succinct, "color": color, "names": names, "marks": marks}
    options["include"] = _patterns("include", include)
    if exclude is not None:
        options["exclude"] = _patterns("exclude", exclude)
    return json.dumps(_with_numbers(options, numbers))


def _patterns(name: str, patterns: Iterable[str]) -> List[str]:
    if isinstance(patterns, str):
        raise TypeError("%s is a list of patterns, not one" % name)
    return list(patterns)


def _with_numbers(options: Dict[str, Any], numbers: Optional[Numbers]) -> Dict[str, Any]:
    if numbers is None:
        return options
    options["numbers"] = []
    for name, given in numbers.items():
        unit, values = given if isinstance(given, tuple) and given and isinstance(given[0], str) else ("", given)
        listed = [None if value is None or not math.isfinite(value) else float(value) for value in values]
        options["numbers"].append({"name": name, "unit": unit, "values": listed})
    return options
