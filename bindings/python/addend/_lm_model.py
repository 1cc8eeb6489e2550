"""Language models for `lm`: how they are run, how they generate, and how a run of them is attributed."""

import contextlib
import dataclasses
from collections.abc import Mapping
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from ._attribution import Attribution
from ._compile import compile
from ._context import require_options
from ._input import Input
from ._live_call import parameters_of
from ._lm_layers import Terms, behind, find_layers, terms_of
from ._lm_tokens import after_prompt
from ._model import Model
from ._program import Program
from ._state import State
from ._tensor import Tensor, as_tensor
from ._traced_model import TracedModel

_NO_LOGITS = (
    "the model returned %s, but logits of shape [1, %d, classes] are needed, as a tensor or as .logits of what it returns; "
    "pass the model with its head, or a function that takes ids and returns logits"
)


class Runner:
    """A language model that is given ids.

    Args:
        model: live (a module, a function, or what `compile` gives), a `Model` or a `Program`.
        arguments: what else it is given, by name.
        policy: choices of `Model.explain`, or for live models of `compile`.
    """

    def __init__(self, model: Any, arguments: Optional[Mapping], policy: Dict[str, Any]):
        for name in (
            *("inside", "probes", "outputs", "everything", "direction"),
            *("targets", "at", "each_example", "every_target"),
        ):
            if name in policy:
                raise TypeError("lm.attribute() has no argument %r: it explains logits, token by token" % name)
        self._arguments = dict(arguments or {})
        self._policy = _faithful(policy)
        self._live: Optional[_LanguageModel] = None
        self._begin: Callable[[], None] = lambda: None  # called before each run
        self._options: Dict[str, Any] = {}  # of a live model, as `compile` takes them
        if isinstance(model, Program):
            model = model.model()
        if isinstance(model, Model):
            self.model: Any = model
            return
        if not callable(model):
            raise TypeError("model is a live model, an addend.Model or an addend.Program, not a %s" % type(model).__name__)
        options: Dict[str, Any] = {}
        if isinstance(model, TracedModel):
            options = {key: own for key, own in model._options.items() if key not in ("probes", "outputs", "everything")}
            model = model.model
        self.model = model
        if getattr(getattr(model, "config", None), "is_encoder_decoder", False):
            raise ValueError("the model reads with one stack and writes with another; only decoders are supported")
        require_options(policy, compile)
        self._options = _faithful({**options, **policy})
        self._live = _LanguageModel(model, self._options)

    @contextlib.contextmanager
    def one_state(self) -> Iterator[None]:
        """Lets all runs within begin as the first one does, and leaves a live model as that one leaves it."""
        live = self._live
        if live is None:
            yield
            return
        before = State(live.model)
        after: List[State] = []
        begun: List[bool] = []

        def begin() -> None:
            if begun and not after:
                after.append(State(live.model))
            if begun:
                before.restore()
            begun.append(True)

        self._begin = begin
        try:
            yield
        finally:
            self._begin = lambda: None
            for state in after:
                state.restore()

    def attribute(self, ids: Sequence[int], baseline: Sequence[int], targets: Sequence[str], first: int) -> "Run":
        """Computes what each token contributed to the targets, by one run. Targets count positions from the end, and
        none is about a position before the last token of the prompt, whose length is `first`."""
        self._begin()
        try:
            found = self._explain(ids, baseline, list(targets), first)
        except (IndexError, RuntimeError) as error:
            if "index out of range" not in str(error):
                raise
            raise ValueError(
                "the model has no embedding for one of the ids, of which the largest are %d in the text and %d on the "
                "baseline; does the tokenizer belong to it?" % (max(ids), max(baseline))
            ) from error
        return Run.of(found)

    def terms(self, ids: Sequence[int], baseline: Sequence[int]) -> Terms:
        """Finds the terms that the layers of a live model add up, by separate runs."""
        model = self.model if self._live is None else self._live.model  # without the wrapper of torch.compile
        given = self._tensor(ids)
        beside = self._beside(given, 1)  # nobody asks for logits
        self._begin()
        layers = find_layers(model, lambda: model(given, **beside))
        # One component: only values and references are asked for.
        source = Input(given, labels=[[0] * len(ids)], baseline=self._tensor(baseline))
        options = {key: own for key, own in self._options.items() if key != "verify_reference"}
        self._begin()
        return terms_of(model, layers, source, beside, options)

    def layers(self, ids: Sequence[int], targets: Sequence[str], terms: Terms, first: int) -> "Run":
        """Computes what the terms contributed to the targets; see `attribute`."""
        count = len(ids) - first + 1
        given = self._tensor(ids)
        assert self._live is not None
        whole = behind(self._live.model, terms.layers, given, self._beside(given, count))
        model = _LanguageModel(whole, self._options)
        model.lengths = (len(ids), count)
        self._begin()
        return Run.of(model.explain(Input(terms.whole, parts=terms.moves), targets=list(targets)))

    def generate(self, ids: Sequence[int], count: int, ends: Set[int], options: Optional[Mapping]) -> List[int]:
        """Generates the model's own continuation: unless told otherwise, at each step the token of the largest logit,
        up to one of `ends`.

        Args:
            options: further arguments of the model's own ``generate``.
        """
        if count < 1:
            raise ValueError("max_new_tokens is %d; a continuation has one token at least" % count)
        own = callable(getattr(self.model, "generate", None)) and self._live is not None
        if options and not own:
            raise ValueError("generation is for models that have generate(); others go on with the largest logit")
        if self._live is None:
            return self._greedy(ids, count, ends, self._last_of_model)
        import torch

        with torch.no_grad():
            if not own:
                return self._greedy(ids, count, ends, self._last_of_live)
            given = self._tensor(ids)
            choices = {"max_new_tokens": count, "do_sample": False, **dict(options or {})}
            made = self.model.generate(given, **self._mask(given), **choices)
        return after_prompt(getattr(made, "sequences", made).tolist(), ids)

    def _explain(self, ids: Sequence[int], baseline: Sequence[int], targets: List[str], first: int) -> Attribution:
        source = Input(self._tensor(ids), dims=1, baseline=self._tensor(baseline))
        if self._live is not None:
            # Logits of the other positions would take memory for each target: positions times classes.
            count = len(ids) - first + 1
            self._live.lengths = (len(ids), count)
            return self._live.explain(source, targets=targets, **self._beside(source.value, count))
        given = self._given(source)
        found = self.model.explain(*given, targets=targets, **self._policy)
        _require_logits(found.value.shape, (len(ids),))
        return found

    def _beside(self, ids: Any, count: int = 0) -> Dict[str, Any]:
        """Arguments of a live model beside the ids.

        Args:
            count: of how many positions logits are needed, from the last one on; 0: of all.
        """
        known = parameters_of(self.model)
        own: Dict[str, Any] = {**self._mask(ids)}
        if "use_cache" in known:
            own["use_cache"] = False
        if count and "logits_to_keep" in known:
            own["logits_to_keep"] = count
        return {**own, **self._arguments}

    def _mask(self, ids: Any) -> Dict[str, Any]:
        """That no id is padding. Said, or models of transformers guess it from ids that look like padding."""
        if "attention_mask" not in parameters_of(self.model):
            return {}
        import torch

        return {"attention_mask": torch.ones_like(ids)}

    def _given(self, ids: Any) -> Tuple[Any, ...]:
        """Arguments with which a model from a file is called."""
        if not self._arguments:
            return (ids,)
        names = [name for name in self.model.input_names if name not in self._arguments]
        if len(names) != 1:
            raise ValueError("of the inputs %s of the model one holds ids, and the others are given as arguments" % names)
        return ({names[0]: ids, **self._arguments},)

    def _tensor(self, ids: Sequence[int]) -> Any:
        """[1, length], where the model is."""
        if self._live is None:
            return as_tensor([list(ids)])
        import torch

        parameters = getattr(self.model, "parameters", None)
        one = next(iter(parameters()), None) if callable(parameters) else None
        return torch.tensor([list(ids)], dtype=torch.int64, device=None if one is None else one.device)

    def _greedy(self, ids: Sequence[int], count: int, ends: Set[int], largest: Any) -> List[int]:
        path = list(ids)
        while len(path) - len(ids) < count:
            path.append(largest(path))
            if path[-1] in ends:
                break
        return path[len(ids) :]

    def _last_of_live(self, ids: Sequence[int]) -> int:
        given = self._tensor(ids)
        output = self.model(given, **self._beside(given))
        logits, _ = _logits_in(output)
        _require_logits(None if logits is None else tuple(logits.shape), (len(ids),), output)
        return int(logits[0, -1].argmax())

    def _last_of_model(self, ids: Sequence[int]) -> int:
        logits = self.model.run(*self._given(self._tensor(ids)))[0]
        _require_logits(logits.shape, (len(ids),))
        row = logits.to("float64", "cpu").memoryview()
        return max(range(row.shape[2]), key=lambda k: row[0, len(ids) - 1, k])


class _LanguageModel(TracedModel):
    """A live model of which logits alone are asked.

    Attributes:
        lengths: how many positions they may have.
    """

    lengths: Tuple[int, ...] = ()

    def _name_outputs(self, trace: Any, call: Any, arguments: Any, output: Any, outputs: Any) -> Dict[str, int]:
        logits, path = _logits_in(output)
        _require_logits(None if logits is None else tuple(logits.shape), self.lengths, output)
        if path == "output.logits" and not (isinstance(output, Mapping) or dataclasses.is_dataclass(output)):
            output, path = logits, "output"  # of a class that nobody else looks into
        return super()._name_outputs(trace, call, arguments, output, [path])


class Run(NamedTuple):
    """The result of a run.

    Attributes:
        matrix: for each target what the components gave, as rows of numbers.
        explanations: for each target its numbers: value, reference, leftover, recovery error, conditioning.
        notes: what a reader has to know.
        warnings: those of the notes that say that numbers may not mean what a reader takes them for.
        report: what the run says about itself.
        logits: of the text, as the model computed them.
    """

    matrix: List[Any]
    explanations: List[Tuple[float, float, float, float, float]]
    notes: List[str]
    warnings: List[str]
    report: Dict[str, Any]
    logits: Tensor

    @staticmethod
    def of(found: Attribution) -> "Run":
        """Reads an attribution to one input."""
        matrix = [one.contributions for one in found]
        numbers = [(one.value, one.reference, one.leftover, one.recovery_error, one.conditioning) for one in found]
        return Run(matrix, numbers, found.notes, found.warnings, found.report, found.value)

    def unlikely(self, ids: Sequence[int], first: int) -> int:
        """How many ids from `first` on have not the largest logit of their position; 0 where nobody can look."""
        if not has_numpy():
            return 0
        dtype = str(self.logits.dtype)
        rows = (self.logits if dtype in ("float32", "float64") else self.logits.to("float32")).to(device="cpu").numpy()[0]
        rows = rows[first - len(ids) - 1 : -1]
        return sum(int(row[one] < row.max()) for row, one in zip(rows, ids[first:]))


def as_matrix(rows: List[Any]) -> Any:
    """An array of float64, or lists where NumPy is missing."""
    if not has_numpy():
        return [list(row) for row in rows]
    import numpy

    return numpy.array([list(row) for row in rows], dtype=numpy.float64)


def has_numpy() -> bool:
    try:
        import numpy  # noqa: F401
    except ImportError:
        return False
    return True


def _logits_in(output: Any) -> Tuple[Any, str]:
    """The logits in what a live model returned, with the name that `TracedModel.decompose` gives them."""
    named = output.get("logits") if isinstance(output, Mapping) else getattr(output, "logits", None)
    if named is not None:
        fields = getattr(output, "_fields", ())
        return named, "output.%s" % (fields.index("logits") if "logits" in fields else "logits")
    if isinstance(output, (tuple, list)) and output:
        return (output[0], "output.0") if hasattr(output[0], "shape") else (None, "")
    return (output, "output") if hasattr(output, "shape") else (None, "")


def _require_logits(shape: Optional[Tuple[int, ...]], lengths: Tuple[int, ...], output: Any = None) -> None:
    if shape is None:
        raise ValueError(_NO_LOGITS % ("a %s without them" % type(output).__name__, lengths[0]))
    if len(shape) != 3 or shape[0] != 1 or shape[1] not in lengths:
        raise ValueError(_NO_LOGITS % ("a tensor of shape %s" % list(shape), lengths[0]))


def _faithful(options: Dict[str, Any]) -> Dict[str, Any]:
    """There always is a baseline, so that the preset "auto" would say that it is this one."""
    return options if "context" in options else {"preset": "faithful", **options}
