"""Targets of `lm`: which numbers of generated tokens are explained."""

from typing import Any, Callable, List, NamedTuple, Sequence, Tuple, Union

from ._lm_tokens import Text, Tokenizer, as_ids, is_id

Contrast = Union[None, int, str, Sequence[int]]

_KINDS = ("logit", "log_probability", "probability", "entropy")


class Rows(NamedTuple):
    """The explained numbers of a text: a row for each.

    Attributes:
        called: what is explained, for people.
        kind: ``"logit"``, ``"log_probability"``, ``"probability"``, ``"entropy"``, or ``"contrast"`` of two logits.
        this: for each generated token the class that is explained.
        that: for each the class whose logit a contrast subtracts.
        spans: the generated tokens that each row sums.
    """

    called: str
    kind: str
    this: List[int]
    that: List[int]
    spans: List[List[int]]

    def targets(self) -> List[str]:
        """The rows as targets of the model's output for this text alone. Positions count from the end, since models may
        give the logits of the last ones only."""
        count = len(self.this)
        found = self.targets_at(self.spans, lambda k: (k - count - 1, self.this[k], self.that[k]))
        everything = list(range(count))
        if self.kind != "log_probability":
            return found
        whole = "continuation:" + ",".join(map(str, self.this))
        return [whole if own == everything and count > 1 else one for own, one in zip(self.spans, found)]

    def targets_at(self, spans: Sequence[Sequence[int]], place: Callable[[int], Tuple[int, int, int]]) -> List[str]:
        """Rows as targets of a tensor.

        Args:
            place: tells of a generated token the position, the class, and the class that a contrast subtracts.
        """

        def one(k: int) -> str:
            at, this, that = place(k)
            if self.kind == "entropy":
                return "entropy:%d" % at
            if self.kind == "contrast":
                return "%d,%d-%d,%d" % (at, this, at, that)
            return "%s%d,%d" % ("" if self.kind == "logit" else self.kind + ":", at, this)

        return ["sum:" + "+".join(map(one, own)) if len(own) > 1 else one(own[0]) for own in spans]


class Question(NamedTuple):
    """A text, and what is asked of it.

    Attributes:
        text: as ids.
        baseline: the id of each token on the baseline.
        rows: the numbers that are explained.
    """

    text: Text
    baseline: List[int]
    rows: Rows


def rows_of(target: Any, span: Any, ids: Sequence[int], tokenizer: Tokenizer) -> Rows:
    """The rows of a text.

    Args:
        ids: of the continuation.
    """
    called, kind, this, that = _one_target(target, ids, tokenizer)
    return Rows(called, kind, this, that, _spans(span, len(ids)))


def _spans(span: Any, count: int) -> List[List[int]]:
    if span is None:
        return [[k] for k in range(count)]
    if isinstance(span, str):
        if span != "all":
            raise ValueError('span is None, "all" or slices of the generated tokens, not %r' % span)
        return [list(range(count))]
    spans = []
    for place in [span] if isinstance(span, slice) else span:
        if not isinstance(place, slice):
            raise TypeError('span is None, "all" or slices of the generated tokens, not a %s' % type(place).__name__)
        spans.append(list(range(*place.indices(count))))
        if not spans[-1]:
            raise ValueError("the span %r holds none of the %d generated tokens" % (place, count))
    if not spans:
        raise ValueError("span holds no slice of the generated tokens")
    return spans


def _one_target(target: Any, ids: Sequence[int], tokenizer: Tokenizer) -> Tuple[str, str, List[int], List[int]]:
    """Returns what a reader calls it, its kind, and the classes of each generated token."""
    if isinstance(target, (list, tuple)):
        if len(target) != 2:
            raise ValueError("a contrast is of two tokens, (this, that), not of %d" % len(target))
        sides = [_side(side, ids, tokenizer) for side in target]
        names = [
            "the generated token" if side is None else _quoted(tokenizer, own) if len(set(own)) == 1 else "given tokens"
            for side, own in zip(target, sides)
        ]
        return "logit of %s minus that of %s" % tuple(names), "contrast", sides[0], sides[1]
    if not isinstance(target, str) or target not in _KINDS:
        raise ValueError("target is one of %s, or a contrast (this, that), not %r" % (", ".join(_KINDS), target))
    return target.replace("_", "-"), target, list(ids), list(ids)


def _side(side: Contrast, ids: Sequence[int], tokenizer: Tokenizer) -> List[int]:
    """One token of a contrast, for each generated token."""
    count = len(ids)
    if side is None:
        return list(ids)
    if isinstance(side, str):
        own = tokenizer.encode(side, False, "contrast")
        if len(own) != 1:
            raise ValueError(
                "%r is %d tokens; a contrast takes one, or ids; a word inside a text begins with a space" % (side, len(own))
            )
        return own * count
    if is_id(side):
        return as_ids([side], "contrast") * count
    own = as_ids(side, "contrast")
    if len(own) != count:
        raise ValueError("the contrast has %d ids for %d generated tokens" % (len(own), count))
    return own


def _quoted(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    (text,) = tokenizer.texts(ids[:1])
    return text if text == str(ids[0]) else '"%s"' % (text.strip() or text)
