"""Attributions of language models, one for each generated token::

    explained = addend.lm.attribute(model, "The capital of France is", tokenizer=tokenizer)
    print(explained)                       # of each generated token, what contributed most
    explained.matrix                       # [generated tokens, tokens]
    explained.to_html("page.html")

The prompt and what is generated run once, as one text, without a cache of keys and values. The numbers of all generated
tokens are explained by one sweep back through that run. Each of them is a sum, as ever: what it is on the baseline, what
each token contributed, and the leftover.
"""

from collections.abc import Mapping
from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Union

from ._cancellation import Cancellation
from ._context import Context, PolicyChoices, as_context
from ._live_choices import UNSET, made
from ._lm_model import Run, Runner, as_matrix
from ._lm_result import LayerContributions, TokenAttribution
from ._lm_tokens import (
    Group,
    Groups,
    Tokenizer,
    as_ids,
    baseline_of,
    continuation_of,
    groups_of,
    is_messages,
    kept_of,
    prompts_of,
    targets_of,
    turns_of,
)
from ._unpack import Unpack

__all__ = ["Group", "LayerContributions", "TokenAttribution", "attribute"]

# The largest share of a row that tokens behind those it reads may have in a causal model: nothing but rounding.
_FUTURE = 1e-6


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
    arguments: Optional[Mapping] = None,
    max_new_tokens: int = 20,
    generation: Optional[Mapping] = None,
    rows_per_run: Optional[int] = None,
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
            takes that length.
        prompt: text, ids, what a tokenizer returned, or messages (``{"role": ..., "content": ...}``) for a tokenizer with
            a chat template. A list of prompts is run one by one and gives a list. Padding that an attention mask leaves
            out is removed.
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
        groups: which tokens have one sum: None: each its own. ``"words"``. ``"turns"``: the messages of a chat. A list of
            (name, slice) over the tokens of prompt and continuation in one; what is in none of these is in a group of its
            own, of the prompt or of the continuation.
        baseline: the token that means "nothing": an id, or ``"pad"``, ``"unk"``, ``"eos"`` or ``"bos"`` of the tokenizer;
            the first of these that there is unless given. A list has an id for each token of prompt and continuation.
        keep: the tokens that are the same on the baseline, so that they contribute 0: ``"special"``, those that the
            tokenizer says are special; positions; or None. They stay what they are where a baseline for each is given.
        layers: whether `TokenAttribution.layers` says what the attention and the feed-forward network of each layer added.
            The model is live, its layers stand in a ``torch.nn.ModuleList``, and each passes on what it was given plus what
            its blocks return; it is an error where that is not so. It takes three more runs, of which one is kept whole:
            `memory` is no limit for it.
        arguments: what the model is given beside the ids, by name.
        max_new_tokens: how many tokens are generated at most.
        generation: what the model's own ``generate`` is given besides, such as ``{"num_beams": 4}`` or
            ``{"do_sample": True, "top_p": 0.9}``. What is explained is the path that it took.
        rows_per_run: how many rows one sweep finds; all of them unless given. A sweep with many rows needs memory for
            each; several sweeps take a run each.
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
    options = {
        "target": target,
        "span": span,
        "groups": groups,
        "baseline": baseline,
        "keep": keep,
        "layers": layers,
        "max_new_tokens": max_new_tokens,
        "generation": generation,
        "rows_per_run": rows_per_run,
    }
    own = made(
        memory=memory, keep_references=keep_references, verify_reference=verify_reference,
        cancellation=cancellation, context=context,
    )
    runner = Runner(model, arguments, {**policy, **own})
    as_context(None, attribute, **policy)  # so that what is wrong is told before the model runs
    known = Tokenizer(tokenizer, runner.model)
    prompts = prompts_of(prompt)
    if prompts is None:
        return _attribute(runner, known, prompt, continuation, **options)
    if continuation is None:
        continuation = [None] * len(prompts)
    if isinstance(continuation, (str, Mapping)) or len(continuation) != len(prompts):
        raise ValueError("%d prompts take a list of as many continuations" % len(prompts))
    return [_attribute(runner, known, *both, **options) for both in zip(prompts, continuation)]


def _attribute(
    runner: Runner,
    tokenizer: Tokenizer,
    prompt: Any,
    continuation: Any,
    target: Any,
    span: Any,
    groups: Any,
    baseline: Any,
    keep: Any,
    layers: bool,
    max_new_tokens: int,
    generation: Optional[Mapping],
    rows_per_run: Optional[int],
) -> TokenAttribution:
    messages = prompt if is_messages(prompt) else None
    if messages is not None:
        before = tokenizer.chat(messages, True)
    else:
        before = tokenizer.encode(prompt, True, "prompt") if isinstance(prompt, str) else as_ids(prompt, "prompt")
    if not before:
        raise ValueError("the prompt has no token; the first generated token needs one before it")
    if continuation is None:
        after = runner.generate(before, max_new_tokens, tokenizer.ends(), generation)
    else:
        after = continuation_of(continuation, before, tokenizer)
    if not after:
        raise ValueError("the continuation has no token, so there is nothing to explain")
    ids = before + after
    first = len(before)
    kept = kept_of(keep, ids, tokenizer)
    base, base_name, notes = baseline_of(baseline, ids, kept, tokenizer)
    warnings: List[str] = []
    if continuation is not None and after[:first] == before:
        warnings.append("the continuation begins with the whole prompt again; generate() returns both, pass what is behind it")
        notes += warnings
    called, targets, spans = targets_of(target, span, ids, len(after), tokenizer)
    tokens = tokenizer.texts(ids)
    if isinstance(groups, str) and groups == "turns":
        if messages is None:
            raise ValueError('groups="turns" takes a prompt of messages, {"role": ..., "content": ...}')
        groups = turns_of(messages, ids, tokenizer)
    special = {k for k, one in enumerate(ids) if one in tokenizer.special}
    grouped = groups_of(groups, tokens, first, special)  # before the run, which takes longer than to be told of a mistake

    with runner.one_state():
        runs = _runs(lambda some: runner.attribute(ids, base, some, first), targets, rows_per_run)
        numbers = [one for run in runs for one in run.explanations]
        of_layers = _layers(runner, ids, base, targets, first, rows_per_run, numbers) if layers else None
    matrix: List[Any] = [row for run in runs for row in run.matrix]
    told = [(note, note in run.warnings) for run in runs for note in run.notes]
    if of_layers is not None:
        told += [("layers: " + note, note in run.warnings) for run in of_layers.runs for note in run.notes]
    if continuation is None and not generation:
        others = runs[0].unlikely(ids, first)
        if others:
            told.append(("%d of the generated tokens have not the largest logit when the text is run at once" % others, True))
    told += [(note, False) for note in _require_causal(matrix, spans, first)]
    for note, is_warning in told:
        if note not in notes:
            notes.append(note)
            warnings += [note] if is_warning else []
    values, references, leftovers, recovery_errors, conditionings = map(list, zip(*numbers))
    return TokenAttribution(
        target=called,
        targets=targets,
        rows=["".join(tokens[first + k] for k in own) for own in spans],
        ids=ids,
        tokens=tokens,
        prompt_length=first,
        spans=spans,
        matrix=as_matrix(matrix),
        groups=grouped,
        layers=None if of_layers is None else of_layers.found,
        values=values,
        references=references,
        leftovers=leftovers,
        recovery_errors=recovery_errors,
        conditionings=conditionings,
        baseline=base,
        baseline_name=base_name,
        kept=[k for k, one in enumerate(ids) if base[k] == one],
        special=sorted(special),
        notes=notes,
        warnings=warnings,
        report=next((run.report for run in runs if run.report["reference_is_model_on_baseline"] != "yes"), runs[0].report),
    )


def _runs(run: Callable[[List[str]], Run], targets: List[str], rows: Optional[int]) -> List[Run]:
    if rows is not None and rows < 1:
        raise ValueError("rows_per_run is %d; a sweep finds one row at least" % rows)
    step = len(targets) if rows is None else rows
    return [run(targets[k : k + step]) for k in range(0, len(targets), step)]


class _OfLayers(NamedTuple):
    """The contributions of layers, and the runs that computed them."""

    found: LayerContributions
    runs: List[Run]


def _layers(
    runner: Runner,
    ids: List[int],
    baseline: List[int],
    targets: List[str],
    first: int,
    rows: Optional[int],
    expected: List[Any],
) -> _OfLayers:
    """Computes the contributions of each layer to targets, whose numbers by the whole model are expected."""
    terms = runner.terms(ids, baseline)
    runs = _runs(lambda some: runner.layers(ids, some, terms, first), targets, rows)
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
