"""Language models for `lm`: how they are run, how they generate, and how a run of them is attributed."""

import contextlib
import copy
import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from ._attribution import Attribution
from ._compile import compile
from ._context import CHOICES, Context, as_context, require_options
from ._input import Input
from ._live_call import parameters_of
from ._lm_batch import aligned, padded, place_of
from ._lm_layers import Terms, behind, find_layers, terms_of
from ._lm_targets import Question
from ._lm_tokens import Text, after_prompt, as_ids
from ._model import Model
from ._modules import is_module
from ._program import Program
from ._state import State
from ._tensor import Tensor, as_tensor
from ._traced_model import TracedModel

_NO_LOGITS = (
    "the model returned %s, but logits of shape [%d, %d, classes] are needed, as a tensor or as .logits of what it returns; "
    "pass the model with its head, or a function that takes ids and returns logits"
)


class Runner:
    """A language model that is given ids.

    Args:
        model: live (a module, a function, or what `compile` gives), a `Model` or a `Program`.
        arguments: what else it is given, by name.
        policy: choices of `Model.explain`, or for live models of `compile`.

    Attributes:
        model: without what wraps it.
        encodes: whether an encoder reads the prompt, and a decoder goes on behind it.
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
        self.encodes = False
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
        known, config = parameters_of(model), getattr(model, "config", None)
        has_both = {"input_ids", "decoder_input_ids"} <= known
        self.encodes = has_both if config is None else bool(getattr(config, "is_encoder_decoder", False))
        if self.encodes and not has_both:
            raise ValueError(
                "the model reads with one stack and writes with another, and does not take input_ids and "
                "decoder_input_ids; encoders of sounds and images are not supported"
            )
        require_options(policy, compile)
        self._options = _faithful({**options, **policy})
        self._live = _LanguageModel(model, self._options)

    @property
    def takes_several(self) -> bool:
        """Whether several texts may be run at once: a live module, whose other arguments do not count examples."""
        if self._live is None or not is_module(self._live.model):
            return False
        if self.encodes and "attention_mask" not in parameters_of(self.model):
            return False  # its encoder would read the padding
        return all(one is None or isinstance(one, (bool, int, float, str)) for one in self._arguments.values())

    @property
    def policy(self) -> Dict[str, str]:
        """The policy of its runs."""
        options = self._policy if self._live is None else self._options
        choices = {key: own for key, own in options.items() if key in CHOICES}
        return as_context(options.get("context"), **choices).policy

    def with_policy(self, given: Any) -> "Runner":
        """Returns a runner of the same model under another policy.

        Args:
            given: a mapping of the choices that differ, or a `Context`.
        """
        twin = copy.copy(self)

        def other(options: Dict[str, Any]) -> Dict[str, Any]:
            if not isinstance(given, Context):
                if "context" in options:
                    raise TypeError("compare is a Context where the policy is given as one")
                return {**options, **given}
            return {**{key: own for key, own in options.items() if key not in CHOICES}, "context": given}

        if self._live is None:
            twin._policy = other(self._policy)
        else:
            twin._options = other(self._options)
            twin._live = _LanguageModel(self.model, twin._options)
        return twin

    def start(self, generation: Optional[Mapping]) -> List[int]:
        """The token that a decoder behind an encoder begins with."""
        holders = [dict(generation or {})]
        holders += [getattr(getattr(self.model, name, None), "__dict__", {}) for name in ("generation_config", "config")]
        for name in ("decoder_start_token_id", "bos_token_id"):
            for holder in holders:
                if holder.get(name) is not None:
                    return as_ids([holder[name]], name)
        raise ValueError(
            'nobody says which token the decoder begins with: pass generation={"decoder_start_token_id": ID}, or set it in '
            "the config of the model"
        )

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

    def attribute(self, questions: Sequence[Question], rows: slice) -> List["Run"]:
        """Computes what each token contributed to some of the rows, by one run.

        Args:
            questions: several are padded and run at once; their rows sum the same generated tokens, or are one for each.
        """
        self._begin()
        try:
            found, kept = self._explain(questions, rows)
        except (IndexError, RuntimeError) as error:
            if "index out of range" not in str(error):
                raise
            text = max(max(question.text.ids) for question in questions)
            baseline = max(max(question.baseline) for question in questions)
            raise ValueError(
                "the model has no embedding for one of the ids, of which the largest are %d in the text and %d on the "
                "baseline; does the tokenizer belong to it?" % (text, baseline)
            ) from error
        return [Run.of(found, questions, number, kept[number], rows) for number in range(len(questions))]

    def terms(self, question: Question) -> Terms:
        """Finds the terms that the layers of a live model add up, by separate runs."""
        if self.encodes:
            raise ValueError("layers=True is for decoders; behind an encoder there are two stacks")
        model = self.model if self._live is None else self._live.model  # without the wrapper of torch.compile
        ids = question.text.ids
        given = self._tensor([ids])
        beside = self._beside([question.text], 1)  # nobody asks for logits
        self._begin()
        layers = find_layers(model, lambda: model(given, **beside))
        # One component: only values and references are asked for.
        source = Input(given, labels=[[0] * len(ids)], baseline=self._tensor([question.baseline]))
        options = {key: own for key, own in self._options.items() if key != "verify_reference"}
        self._begin()
        return terms_of(model, layers, source, beside, options)

    def layers(self, question: Question, terms: Terms, rows: slice) -> "Run":
        """Computes what the terms contributed to some of the rows; see `attribute`."""
        text = question.text
        count = len(text.continuation) + 1
        given = self._tensor([text.ids])
        assert self._live is not None
        whole = behind(self._live.model, terms.layers, given, self._beside([text], count))
        model = _LanguageModel(whole, self._options)
        model.shapes = (1, (len(text.ids), count))
        self._begin()
        found = model.explain(Input(terms.whole, parts=terms.moves), targets=question.rows.targets()[rows])
        return Run.of(found, [question], 0, slice(None), rows)

    def generate(self, text: Text, count: int, ends: Set[int], options: Optional[Mapping]) -> List[int]:
        """Generates the model's own continuation: unless told otherwise, at each step the token of the largest logit,
        up to one of `ends`.

        Args:
            text: what it goes on from.
            options: further arguments of the model's own ``generate``.
        """
        if count < 1:
            raise ValueError("max_new_tokens is %d; a continuation has one token at least" % count)
        own = callable(getattr(self.model, "generate", None)) and self._live is not None
        if options and not own and set(options) != {"decoder_start_token_id"}:
            raise ValueError("generation is for models that have generate(); others go on with the largest logit")
        if self._live is None:
            return self._greedy(text, count, ends, self._last_of_model)
        import torch

        with torch.no_grad():
            if not own:
                return self._greedy(text, count, ends, self._last_of_live)
            given = self._tensor([text.source or text.start])
            choices = {"max_new_tokens": count, "do_sample": False, **dict(options or {})}
            beside = {"attention_mask": torch.ones_like(given)} if "attention_mask" in parameters_of(self.model) else {}
            made = self.model.generate(given, **beside, **choices)
        return after_prompt(getattr(made, "sequences", made).tolist(), text.start)

    def differs_alone(self, questions: Sequence[Question], together: "Run") -> bool:
        """Whether the model itself computes other logits for the shortest of several texts where it runs alone.

        Args:
            together: a run of all of them.
        """
        import torch

        number = min(range(len(questions)), key=lambda k: len(questions[k].text.ids))
        text = questions[number].text
        shapes = (len(text.written), len(text.continuation) + 1)
        self._begin()
        with torch.no_grad():
            args, kwargs = self._arguments_of(text)
            alone = self._aligned([questions[number]], shapes)(*args, **kwargs, **self._beside([text], shapes[1]))
        found = together.logits.torch()[number, : alone.shape[1]]
        scale, allowed = alone.abs().max().item(), math.sqrt(torch.finfo(alone.dtype).eps)
        return not (found - alone[0]).abs().max().item() <= allowed * scale  # NaN is too much

    def _explain(self, questions: Sequence[Question], rows: slice) -> Tuple[Attribution, List[List[int]]]:
        """Explains rows; and for each text the components of its tokens."""
        texts = [question.text for question in questions]
        places = [len(text.source) for text in texts]
        baselines = [(one.baseline[:place], one.baseline[place:]) for one, place in zip(questions, places)]
        written = self._tensor(padded([text.written for text in texts]))
        on_baseline = self._tensor(padded([one for _, one in baselines]))
        if self._live is None:
            given = self._given(Input(written, dims=1, baseline=on_baseline))
            found = self.model.explain(*given, targets=questions[0].rows.targets()[rows], **self._policy)
            _require_logits(found.value.shape, 1, (len(texts[0].written),))
            return found, [[*range(len(texts[0].ids))]]
        # Logits of the other positions would take memory for each target: positions times classes.
        width = written.shape[1]
        count = max(width - len(text.start) for text in texts) + 1
        live = self._live
        live.shapes = (len(texts), (width, count))
        asked: Dict[str, Any] = {"targets": questions[0].rows.targets()[rows]}
        if len(texts) > 1:
            longest = max(questions, key=lambda one: len(one.rows.spans)).rows
            asked = {"targets": longest.targets_at(longest.spans[rows], lambda k: (k, 0, 1))}
            asked.update(each_example=True, every_target=True)
            live = _LanguageModel(self._aligned(questions, (width, count)), self._options)
            live.shapes = (len(texts), (max(len(text.continuation) for text in texts),))
        beside = self._beside(texts, count)
        if not self.encodes:
            found = live.explain(Input(written, dims=1, baseline=on_baseline), **asked, **beside)
            return found, [[*range(len(text.ids))] for text in texts]
        source = self._tensor(padded([text.source for text in texts]))
        found = live.explain(
            input_ids=Input(source, dims=1, baseline=self._tensor(padded([one for one, _ in baselines])), first_component=0),
            decoder_input_ids=Input(written, dims=1, baseline=on_baseline, first_component=source.shape[1]),
            **asked,
            **beside,
        )
        begin = source.shape[1]
        return found, [[*range(len(text.source)), *range(begin, begin + len(text.written))] for text in texts]

    def _beside(self, texts: Sequence[Text], count: int = 0) -> Dict[str, Any]:
        """Arguments of a live model beside the ids. Masks say which ids are padding: unless told, models of transformers
        guess it from ids that look like that. Behind the end of what a decoder reads no mask is needed.

        Args:
            count: of how many positions logits are needed, from the last one on; 0: of all.
        """
        known = parameters_of(self.model)
        own: Dict[str, Any] = {}
        masks = {"attention_mask": [len(text.source or text.written) for text in texts]}
        if self.encodes:
            masks["decoder_attention_mask"] = [max(len(text.written) for text in texts)] * len(texts)
        for name, lengths in masks.items():
            if name in known:
                width = max(lengths if self.encodes else [len(text.written) for text in texts])
                own[name] = self._tensor([[int(k < length or not self.encodes) for k in range(width)] for length in lengths])
        if "use_cache" in known:
            own["use_cache"] = False
        if count and "logits_to_keep" in known:
            own["logits_to_keep"] = count
        return {**own, **self._arguments}

    def _aligned(self, questions: Sequence[Question], lengths: Tuple[int, ...]) -> Any:
        """The method of the live model that returns the logits of generated tokens alone."""
        assert self._live is not None
        return aligned(self._live.model, questions, lambda output: _logits_of(output, len(questions), lengths))

    def _arguments_of(self, text: Text) -> Tuple[List[Any], Dict[str, Any]]:
        """The ids that a live model is given, by place and by name."""
        written = self._tensor([text.written])
        if not self.encodes:
            return [written], {}
        return [], {"input_ids": self._tensor([text.source]), "decoder_input_ids": written}

    def _given(self, ids: Any) -> Tuple[Any, ...]:
        """Arguments with which a model from a file is called."""
        if not self._arguments:
            return (ids,)
        names = [name for name in self.model.input_names if name not in self._arguments]
        if len(names) != 1:
            raise ValueError("of the inputs %s of the model one holds ids, and the others are given as arguments" % names)
        return ({names[0]: ids, **self._arguments},)

    def _tensor(self, rows: Sequence[Sequence[int]]) -> Any:
        """[rows, length], where the model is."""
        if self._live is None:
            return as_tensor([list(row) for row in rows])
        import torch

        parameters = getattr(self.model, "parameters", None)
        one = next(iter(parameters()), None) if callable(parameters) else None
        return torch.tensor([list(row) for row in rows], dtype=torch.int64, device=None if one is None else one.device)

    def _greedy(self, text: Text, count: int, ends: Set[int], largest: Callable[[Text], int]) -> List[int]:
        found: List[int] = []
        while len(found) < count:
            found.append(largest(Text(text.source, text.start, found)))
            if found[-1] in ends:
                break
        return found

    def _last_of_live(self, text: Text) -> int:
        args, kwargs = self._arguments_of(text)
        output = self.model(*args, **kwargs, **self._beside([text]))
        return int(_logits_of(output, 1, (len(text.written),))[0, -1].argmax())

    def _last_of_model(self, text: Text) -> int:
        logits = self.model.run(*self._given(self._tensor([text.ids])))[0]
        _require_logits(logits.shape, 1, (len(text.ids),))
        row = logits.to("float64", "cpu").memoryview()
        return max(range(row.shape[2]), key=lambda k: row[0, len(text.ids) - 1, k])


class _LanguageModel(TracedModel):
    """A live model of which logits alone are asked.

    Attributes:
        shapes: of how many texts they are, and how many positions they may have.
    """

    shapes: Tuple[int, Tuple[int, ...]] = (1, ())

    def _name_outputs(self, trace: Any, call: Any, arguments: Any, output: Any, outputs: Any) -> Dict[str, int]:
        logits = _logits_of(output, *self.shapes)
        path = _logits_in(output)[1]
        if path == "output.logits" and not (isinstance(output, Mapping) or dataclasses.is_dataclass(output)):
            output, path = logits, "output"  # of a class that nobody else looks into
        return super()._name_outputs(trace, call, arguments, output, [path])


class Run(NamedTuple):
    """The result of a run for one text.

    Attributes:
        matrix: for each target what the tokens gave, as rows of numbers.
        explanations: for each target its numbers: value, reference, leftover, recovery error, conditioning.
        notes: what a reader has to know.
        warnings: those of the notes that say that numbers may not mean what a reader takes them for.
        report: what the run says about itself.
        logits: as the model computed them.
        chosen: for each generated token its place among them.
    """

    matrix: List[Any]
    explanations: List[Tuple[float, float, float, float, float]]
    notes: List[str]
    warnings: List[str]
    report: Dict[str, Any]
    logits: Tensor
    chosen: List[Tuple[int, int, int]]

    @staticmethod
    def of(found: Attribution, questions: Sequence[Question], number: int, kept: Any, rows: slice) -> "Run":
        """Reads an attribution of some rows of several texts.

        Args:
            number: the number of the text.
            kept: the components of its tokens; a slice takes all.
        """
        question = questions[number]
        step = len(questions)
        of = "" if step == 1 else " (in a run of %d prompts)" % step
        own = [found[k * step + number] for k in range(len(question.rows.spans[rows]))]
        parts = [one.contributions for one in own]
        matrix = [one[kept] if isinstance(kept, slice) else [one[k] for k in kept] for one in parts]
        numbers = [(one.value, one.reference, one.leftover, one.recovery_error, one.conditioning) for one in own]
        ids = question.text.continuation
        if step == 1:
            chosen = [(0, k - len(ids) - 1, one) for k, one in enumerate(ids)]
        else:
            chosen = [(number, k, place_of(question, k)) for k in range(len(ids))]
        # Notes of several texts do not say which one they are of.
        notes, warnings = ([note + of for note in told] for told in (found.notes, found.warnings))
        return Run(matrix, numbers, notes, warnings, found.report, found.value, chosen)

    def unlikely(self) -> int:
        """How many generated tokens have not the largest logit of their position; 0 where nobody can look."""
        if not has_numpy():
            return 0
        dtype = str(self.logits.dtype)
        logits = (self.logits if dtype in ("float32", "float64") else self.logits.to("float32")).to(device="cpu").numpy()
        return sum(int(logits[text, at, one] < logits[text, at].max()) for text, at, one in self.chosen)


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


def _logits_of(output: Any, texts: int, lengths: Tuple[int, ...]) -> Any:
    """The logits in what a live model returned, which are of so many texts and of one of these lengths."""
    logits = _logits_in(output)[0]
    _require_logits(None if logits is None else tuple(logits.shape), texts, lengths, output)
    return logits


def _require_logits(shape: Optional[Tuple[int, ...]], texts: int, lengths: Tuple[int, ...], output: Any = None) -> None:
    if shape is None:
        raise ValueError(_NO_LOGITS % ("a %s without them" % type(output).__name__, texts, lengths[0]))
    if len(shape) != 3 or shape[0] != texts or shape[1] not in lengths:
        raise ValueError(_NO_LOGITS % ("a tensor of shape %s" % list(shape), texts, lengths[0]))


def _faithful(options: Dict[str, Any]) -> Dict[str, Any]:
    """There always is a baseline, so that the preset "auto" would say that it is this one."""
    return options if "context" in options else {"preset": "faithful", **options}
