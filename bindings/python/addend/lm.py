"""Attributions of language models, one for each generated token::

    explained = addend.lm.attribute(model, "The capital of France is", tokenizer=tokenizer)
    print(explained)                       # of each generated token, what contributed most
    explained.matrix                       # [generated tokens, tokens]
    explained.to_html("page.html")

The prompt and what is generated run once, as one text, without a cache of keys and values. The numbers of all generated
tokens are explained by one sweep back through that run. Each of them is a sum, as ever: what it is on the baseline, what
each token contributed, and the leftover. Behind an encoder, which reads the prompt as a source, the sum has the tokens of
the source and those that the decoder wrote before.
"""

from collections.abc import Mapping
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

from ._cancellation import Cancellation
from ._context import Context, PolicyChoices, as_context
from ._errors import Cancelled
from ._live_choices import UNSET, made
from ._lm_compare import Comparison, compared, name_of_policy, note_on
from ._lm_model import Run, Runner, as_matrix
from ._lm_result import LayerContributions, TokenAttribution
from ._lm_targets import Question, rows_of
from ._lm_tokens import (
    Group,
    Groups,
    Text,
    Tokenizer,
    as_ids,
    baseline_of,
    continuation_of,
    groups_of,
    is_messages,
    kept_of,
    prompts_of,
    turns_of,
)
from ._unpack import Unpack

__all__ = ["Comparison", "Group", "LayerContributions", "TokenAttribution", "attribute"]

# The largest share of a row that tokens behind those it reads may have in a causal model: nothing but rounding.
_FUTURE = 1e-6
# How a note of the core begins that says that a model looked at its numbers: of several texts, at those of all.
_READS = "the model reads numbers that depend on the input"


def attribute(
    model: Any,
    prompt: Any,
    continuation: Any = None,
    tokenizer: Any = None,
    *,
    target: Any = "log_probability",
    span: Any = None,
    groups: Groups = None,
    baseline: Union[None, int, str, Sequence[int]] = None,
    keep: Union[None, str, Sequence[int]] = "special",
    layers: bool = False,
    compare: Union[None, Mapping, Context] = None,
    arguments: Optional[Mapping] = None,
    max_new_tokens: int = 20,
    generation: Optional[Mapping] = None,
    rows_per_run: Optional[int] = None,
    prompts_per_run: int = 8,
    memory: int = UNSET,
    keep_references: bool = UNSET,
    verify_reference: bool = UNSET,
    cancellation: Optional[Cancellation] = UNSET,
    context: Optional[Context] = UNSET,
    **policy: Unpack[PolicyChoices],
) -> Any:
    """Computes what each token of the prompt, and each token generated before, contributed to each generated token.

    Args:
        model: a decoder that takes ids ``[1, length]`` and returns logits ``[1, length, classes]``, as a tensor, as
            ``logits`` of what it returns, or as the first of several results. Live (a ``torch.nn.Module``, a function, or
            what `compile` gives), or without PyTorch a `Model` or a `Program`; a program that was recorded at one length
            takes that length. Or a live encoder-decoder, which takes ``input_ids`` and ``decoder_input_ids``: its encoder
            reads the prompt as a source, and its decoder writes behind the token that it begins with.
        prompt: text, ids, what a tokenizer returned, or messages (``{"role": ..., "content": ...}``) for a tokenizer with
            a chat template. A list of prompts gives a list. Padding that an attention mask leaves out is removed.
        continuation: text or ids of what was generated, or the output object that ``generate`` returned; for a list of
            prompts, a list. Padding behind an end is left out. Unless given, the model goes on by itself, each time with
            the token of the largest logit: by its own ``generate`` if it has one. Text is tokenized on its own, so it has
            to begin with the space that stands between it and the prompt.
        tokenizer: one of transformers or of the package tokenizers, anything with their methods, or a pair of functions
            ``(encode, decode)``. Not needed for ids.
        target: what is explained of each generated token: ``"log_probability"``, ``"probability"``, ``"logit"``,
            ``"entropy"`` (of the distribution that it was taken from), or a contrast ``(this, that)``: the difference of
            two logits at its place. Each side of a contrast is an id, text that is one token, a list of an id for each
            generated token, or None for the generated token itself.
        span: None: a row for each generated token. ``"all"``: one row, the sum over all of them. A slice of the generated
            tokens, or a list of slices: a row for each, their sum.
        groups: which tokens have one sum: None: each its own. ``"words"``. ``"turns"``: the messages of a chat;
            ``"roles"``: all messages of a role. A list of (name, slice) over the tokens of prompt and continuation in one;
            what is in none of these is in a group of its own, of the prompt or of the continuation.
        baseline: the token that means "nothing": an id, or ``"pad"``, ``"unk"``, ``"eos"`` or ``"bos"`` of the tokenizer;
            the first of these that there is unless given. A list has an id for each token of prompt and continuation.
            An encoder's source has it like any prompt.
        keep: the tokens that are the same on the baseline, so that they contribute 0: ``"special"``, those that the
            tokenizer says are special; positions; or None. They stay what they are where a baseline for each is given.
            The token that a decoder behind an encoder begins with is kept in any case.
        layers: whether `TokenAttribution.layers` says what the attention and the feed-forward network of each layer added.
            The model is live, its layers stand in a ``torch.nn.ModuleList``, and each passes on what it was given plus what
            its blocks return; it is an error where that is not so. It takes three more runs, of which one is kept whole:
            `memory` is no limit for it.
        compare: choices of another policy, ``{"content_first": "none"}``, or a `Context`, under which the same numbers are
            shared out once more: `TokenAttribution.compared`. Each policy answers a question of its own (docs/results.md);
            a warning tells where they give more than a third of the contributions to different tokens.
        arguments: what the model is given beside the ids, by name.
        max_new_tokens: how many tokens are generated at most.
        generation: what the model's own ``generate`` is given besides, such as ``{"num_beams": 4}`` or
            ``{"do_sample": True, "top_p": 0.9}``. What is explained is the path that it took.
        rows_per_run: how many rows one sweep finds; all of them unless given. A sweep with many rows needs memory for
            each; several sweeps take a run each.
        prompts_per_run: how many prompts of a list run at once, padded behind their ends; those whose rows sum the same
            generated tokens do. Each has its own sums, the same as alone to rounding. Models from files, functions, and all
            with `layers` run on one at a time.
        memory: as for `Model.explain`; unless given, what `compile` was told, and so are the four that follow.
        keep_references: as for `Model.explain`; live models keep none.
        verify_reference: as for `Model.explain`.
        cancellation: who may end the run.
        context: how to decompose.
        policy: choices of a `Context`, in place of one.

    Returns:
        A `TokenAttribution`, or a list of them.

    Raises:
        ValueError: what is given does not fit, or the model is not causal: a generated token depends on tokens behind it.
    """
    own = made(
        memory=memory, keep_references=keep_references, verify_reference=verify_reference,
        cancellation=cancellation, context=context,
    )
    if prompts_per_run < 1:
        raise ValueError("prompts_per_run is %d; a run has one prompt at least" % prompts_per_run)
    if rows_per_run is not None and rows_per_run < 1:
        raise ValueError("rows_per_run is %d; a sweep finds one row at least" % rows_per_run)
    runner = Runner(model, arguments, {**policy, **own})
    as_context(None, attribute, **policy)  # so that what is wrong is told before the model runs
    other = None
    if compare is not None:
        if not isinstance(compare, Context):
            as_context(None, attribute, **compare)
        other = name_of_policy(runner.with_policy(compare).policy, runner.policy)
    known = Tokenizer(tokenizer, runner.model)
    prompts = prompts_of(prompt)
    several = prompts is not None
    if prompts is None:
        prompts, continuation = [prompt], [continuation]
    elif continuation is None:
        continuation = [None] * len(prompts)
    if isinstance(continuation, (str, Mapping)) or len(continuation) != len(prompts):
        raise ValueError("%d prompts take a list of as many continuations" % len(prompts))
    asked = [
        _asked(runner, known, *both, target, span, groups, baseline, keep, max_new_tokens, generation)
        for both in zip(prompts, continuation)
    ]
    at_once = prompts_per_run if runner.takes_several and not layers else 1
    found: Dict[int, TokenAttribution] = {}
    for batch in _batches(asked, at_once, span is None):
        questions = [asked[number].question for number in batch]
        with runner.one_state():
            runs = _together(runner, questions, rows_per_run)
            others = None
            if compare is not None:
                others = _together(runner.with_policy(compare), questions, rows_per_run)
            for k, number in enumerate(batch):
                numbers = [one for run in runs[k] for one in run.explanations]
                of_layers = _layers(runner, questions[k], rows_per_run, numbers) if layers else None
                found[number] = _result(asked[number], runs[k], of_layers, other, None if others is None else others[k])
    results = [found[number] for number in range(len(asked))]
    return results if several else results[0]


class _Asked(NamedTuple):
    """One prompt with its continuation, and what a reader is told of it whatever the runs say.

    Attributes:
        question: for the model.
        tokens: all ids as text.
        groups: of tokens.
        turns: the tokens of each message of a chat; None where they are not known.
        special: positions of special tokens.
        baseline_name: what the baseline is called.
        notes: what a reader has to know, and `warnings` among them.
        greedy: whether the model went on by itself, each time with the token of the largest logit.
    """

    question: Question
    tokens: List[str]
    groups: Optional[List[Group]]
    turns: Optional[List[Group]]
    special: Set[int]
    baseline_name: str
    notes: List[str]
    warnings: List[str]
    greedy: bool


def _asked(
    runner: Runner,
    tokenizer: Tokenizer,
    prompt: Any,
    continuation: Any,
    target: Any,
    span: Any,
    groups: Any,
    baseline: Any,
    keep: Any,
    max_new_tokens: int,
    generation: Optional[Mapping],
) -> _Asked:
    messages = prompt if is_messages(prompt) else None
    if messages is not None:
        before = tokenizer.chat(messages, True)
    else:
        before = tokenizer.encode(prompt, True, "prompt") if isinstance(prompt, str) else as_ids(prompt, "prompt")
    if not before:
        raise ValueError("the prompt has no token; the first generated token needs one before it")
    source, start = (before, runner.start(generation)) if runner.encodes else ([], before)
    if continuation is None:
        after = runner.generate(Text(source, start, []), max_new_tokens, tokenizer.ends(), generation)
    else:
        after = continuation_of(continuation, start, tokenizer, runner.encodes)
    if not after:
        raise ValueError("the continuation has no token, so there is nothing to explain")
    text = Text(source, start, after)
    ids = text.ids
    kept = kept_of(keep, ids, tokenizer)
    if runner.encodes:
        kept |= set(range(len(source), text.first))
    base, base_name, notes = baseline_of(baseline, ids, kept, tokenizer)
    warnings: List[str] = []
    if continuation is not None and after[: len(start)] == start:
        warnings.append("the continuation begins with %s again; generate() returns both, pass what is behind it"
                        % ("what the decoder begins with" if runner.encodes else "the whole prompt"))
        notes += warnings
    rows = rows_of(target, span, after, tokenizer)
    tokens = tokenizer.texts(ids)
    special = {k for k, one in enumerate(ids) if one in tokenizer.special}
    turns = None
    if messages is not None:
        try:
            turns = turns_of(messages, ids, tokenizer)
        except ValueError:
            if groups in ("turns", "roles"):
                raise
    grouped = groups_of(groups, tokens, len(source), text.first, special, turns)
    question = Question(text, base, rows)
    greedy = continuation is None and not generation
    return _Asked(question, tokens, grouped, turns, special, base_name, notes, warnings, greedy)


def _batches(asked: Sequence[_Asked], at_once: int, one_by_one: bool) -> List[List[int]]:
    """The numbers of the prompts that run at once.

    Args:
        one_by_one: rows are the generated tokens one by one, which fits prompts of any number of them.
    """
    alike: Dict[str, List[int]] = {}
    for number, one in enumerate(asked):
        alike.setdefault("" if one_by_one else repr(one.question.rows.spans), []).append(number)
    return [own[k : k + at_once] for own in alike.values() for k in range(0, len(own), at_once)]


def _together(runner: Runner, questions: Sequence[Question], rows: Optional[int]) -> List[List[Run]]:
    """The runs of each of several texts: at once, or one by one with a note where the model does not take them so."""
    if len(questions) == 1:
        return [_runs(runner, questions, rows)[0]]
    try:
        found = _runs(runner, questions, rows)
        reads = any(note.startswith(_READS) for run in found[0] for note in run.notes)
        if reads:
            why = "it reads numbers, which would be those of all of them"
        elif runner.differs_alone(questions, found[0][0]):
            why = "it computes other numbers for the shortest one then"
        else:
            return found
    except Cancelled:
        raise
    except (AssertionError, IndexError, RuntimeError, TypeError, ValueError) as error:
        why = str(error).strip().split("\n")[0] or type(error).__name__
    found = [_runs(runner, [one], rows)[0] for one in questions]
    note = "the model does not take several prompts at once (%s); they were run one by one" % why
    return [[runs[0]._replace(notes=[*runs[0].notes, note]), *runs[1:]] for runs in found]


def _runs(runner: Runner, questions: Sequence[Question], rows: Optional[int]) -> List[List[Run]]:
    """The runs of each of several texts, all at once, with some of the rows each."""
    found = [runner.attribute(questions, chosen) for chosen in _chosen(questions, rows)]
    return [list(runs) for runs in zip(*found)]


def _chosen(questions: Sequence[Question], rows: Optional[int]) -> List[slice]:
    count = max(len(question.rows.spans) for question in questions)
    step = count if rows is None else rows
    return [slice(k, k + step) for k in range(0, count, step)]


def _result(
    asked: _Asked, runs: List[Run], of_layers: Optional["_OfLayers"], other: Optional[str], others: Optional[List[Run]]
) -> TokenAttribution:
    """Puts the runs of one prompt together.

    Args:
        other: what the policy that is compared is called, and `others`: its runs.
    """
    text, rows = asked.question.text, asked.question.rows
    first, ids, base = text.first, text.ids, asked.question.baseline
    matrix: List[Any] = [row for run in runs for row in run.matrix]
    told = [(note, note in run.warnings) for run in runs for note in run.notes]
    if of_layers is not None:
        told += [("layers: " + note, note in run.warnings) for run in of_layers.runs for note in run.notes]
    comparison = None
    if other is not None and others is not None:
        comparison = compared(other, matrix, others)
        told += [("%s: %s" % (other, note), note in run.warnings) for run in others for note in run.notes]
        told += [(note, True) for note in note_on(comparison)]
    if asked.greedy:
        unlikely = runs[0].unlikely()
        if unlikely:
            says = "%d of the generated tokens have not the largest logit when the text is run at once"
            told.append((says % unlikely, True))
    told += [(note, False) for note in _require_causal(matrix, rows.spans, first)]
    notes, warnings = list(asked.notes), list(asked.warnings)
    for note, is_warning in told:
        if note not in notes:
            notes.append(note)
            warnings += [note] if is_warning else []
    numbers = [one for run in runs for one in run.explanations]
    values, references, leftovers, recovery_errors, conditionings = map(list, zip(*numbers))
    return TokenAttribution(
        target=rows.called,
        targets=rows.targets(),
        rows=["".join(asked.tokens[first + k] for k in own) for own in rows.spans],
        ids=ids,
        tokens=asked.tokens,
        source_length=len(text.source),
        prompt_length=first,
        spans=rows.spans,
        matrix=as_matrix(matrix),
        groups=asked.groups,
        turns=asked.turns,
        layers=None if of_layers is None else of_layers.found,
        compared=comparison,
        values=values,
        references=references,
        leftovers=leftovers,
        recovery_errors=recovery_errors,
        conditionings=conditionings,
        baseline=base,
        baseline_name=asked.baseline_name,
        kept=[k for k, one in enumerate(ids) if base[k] == one],
        special=sorted(asked.special),
        notes=notes,
        warnings=warnings,
        report=next((run.report for run in runs if run.report["reference_is_model_on_baseline"] != "yes"), runs[0].report),
    )


class _OfLayers(NamedTuple):
    """The contributions of layers, and the runs that computed them."""

    found: LayerContributions
    runs: List[Run]


def _layers(runner: Runner, question: Question, rows: Optional[int], expected: List[Any]) -> _OfLayers:
    """Computes the contributions of each layer to rows, whose numbers by the whole model are expected."""
    terms = runner.terms(question)
    runs = [runner.layers(question, terms, chosen) for chosen in _chosen([question], rows)]
    numbers = [one for run in runs for one in run.explanations]
    scale = max(abs(one) for number in expected for one in number[:2])
    for row, (own, of_model) in enumerate(zip(numbers, expected)):
        for found, known in zip(own[:2], of_model[:2]):
            if not abs(found - known) <= terms.precision * scale:  # NaN is too much
                raise ValueError(
                    "what stands behind the layers gives %.6g for row %d where the model gives %.6g, so that there are no "
                    "contributions of layers; does the head read anything but what the last layer passes on?"
                    % (found, row, known)
                )
    matrix = [row for run in runs for row in run.matrix]
    # The last term is rounding, which is nobody's.
    leftovers = [own[2] + float(row[-1]) for own, row in zip(numbers, matrix)]
    return _OfLayers(LayerContributions(terms.names, as_matrix([row[:-1] for row in matrix]), leftovers), runs)


def _require_causal(matrix: List[Any], spans: List[List[int]], first: int) -> List[str]:
    """Rows are zero behind the last token that they read; a note where rounding says otherwise."""
    worst = 0.0
    for row, own in enumerate(spans):
        numbers = [abs(float(one)) for one in matrix[row]]
        end = first + max(own)  # the token that is explained, and those behind it
        behind = max(numbers[end:], default=0.0)
        if behind > _FUTURE * max(numbers):
            raise ValueError(
                "the model is not causal: token %d or one behind it contributed %.3g to row %d, which is about what comes "
                "before it; only decoders, whose tokens read those before them alone, are explained token by token"
                % (end, behind, row)
            )
        worst = max(worst, behind)
    return ["tokens behind the explained one contributed up to %.1e, which is rounding" % worst] if worst else []
