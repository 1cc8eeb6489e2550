"""The words of a text, from what a tokenizer has returned."""

import re
from collections.abc import Mapping
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from ._tensor import as_tensor

# How tokenizers mark tokens that begin a word, go on with one, or end one.
_BEGINS = ("\u0120", "\u2581")
_GOES_ON = "##"
_ENDS = ("</w>", "@@")

Text = Union[str, Tuple[str, str]]


class Words(NamedTuple):
    """The words that the tokens of an encoding belong to; `words` gives it.

    Attributes:
        labels: the word of each token, -1 for special ones and padding. Of the shape of ``input_ids``; the words of a
            batch are counted from its first example on.
        names: of the words, in their order.
    """

    labels: Union[List[int], List[List[int]]]
    names: List[str]


def words(encoding: Any, text: Union[None, Text, Sequence[Text]] = None) -> Words:
    """The words of an encoding, as labels and names of components::

        encoding = tokenizer(text, return_tensors="pt")
        words = addend.words(encoding, text)
        ids = addend.Input(encoding["input_ids"], labels=words.labels, names=words.names, baseline=mask_token_id)

    Tokens without a word (special ones, padding) get no component: they stay as they are in the reference too.

    Args:
        encoding: what a fast tokenizer of Hugging Face returns, ``transformers.BatchEncoding`` or
            ``tokenizers.Encoding``: it has ``word_ids``. With `text`, a mapping that has ``"offset_mapping"`` is enough;
            words are then what stands between white space.
        text: what was tokenized, so that names are cut out of it: a string, a pair of them, or a list of these, one for
            each example of a batch. Without it, names are put together from tokens, which spell some letters otherwise.

    Raises:
        TypeError: it is no such encoding.
    """
    single = not _is_batch(encoding)
    examples = [_Example(encoding, k) for k in range(1 if single else len(encoding["input_ids"]))]
    texts: Sequence[Any] = [text] if isinstance(text, (str, tuple)) else [None] * len(examples) if text is None else text
    if len(texts) != len(examples):
        raise ValueError("there are %d texts for %d examples" % (len(texts), len(examples)))
    labels: List[List[int]] = []
    names: List[str] = []
    for example, own in zip(examples, texts):
        labels.append(example.labels(own, names))
    return Words(labels[0] if single else labels, names)


class _Example:
    """One example of an encoding."""

    def __init__(self, encoding: Any, index: int):
        self._encoding = encoding
        self._index = index

    def labels(self, text: Optional[Text], names: List[str]) -> List[int]:
        """The word of each token; appends the names of the words."""
        words = self._words(text)
        tokens: Dict[Any, List[int]] = {}
        for position, word in enumerate(words):
            if word is not None:
                tokens.setdefault(word, []).append(position)
        numbers = {word: len(names) + k for k, word in enumerate(tokens)}
        offsets = self._offsets() if text is not None else None
        for word, positions in tokens.items():
            names.append(self._name(word, positions, offsets, text) or "word %d" % len(names))
        return [-1 if word is None else numbers[word] for word in words]

    def _words(self, text: Optional[Text]) -> List[Any]:
        """For each token the number of its text (0, or 1 of a pair) and of its word in it; None without a word."""
        words = self._field("word_ids")
        if words is None:
            return self._words_of_offsets(text)
        # The words of the second text of a pair are counted from 0 again.
        sequences = self._field("sequence_ids") or [0] * len(words)
        return [None if word is None else (which or 0, word) for word, which in zip(words, sequences)]

    def _words_of_offsets(self, text: Optional[Text]) -> List[Any]:
        offsets = self._offsets()
        if offsets is None or not isinstance(text, str):
            raise TypeError(
                "words() takes what a fast tokenizer returns, which has word_ids(), or one with offset_mapping and its "
                "text, not %s; labels may also be a list of your own" % type(self._encoding).__name__
            )
        found: List[Any] = []
        for start, end in offsets:
            inner = start + len(text[start:end]) - len(text[start:end].lstrip())
            found.append((0, _word_at(text, inner)) if inner < end else None)
        return found

    def _name(self, word: Any, positions: List[int], offsets: Any, text: Optional[Text]) -> str:
        if text is not None and offsets is not None:
            own = text if isinstance(text, str) else text[word[0]]
            return own[min(offsets[k][0] for k in positions) : max(offsets[k][1] for k in positions)].strip()
        tokens = self._field("tokens")
        return "" if tokens is None else "".join(_spelled(tokens[k]) for k in positions)

    def _offsets(self) -> Optional[List[Tuple[int, int]]]:
        encoding = self._encoding
        offsets = getattr(encoding, "offsets", None)
        if offsets is None and _has(encoding, "offset_mapping"):
            offsets = encoding["offset_mapping"]
            if _is_batch(encoding):
                offsets = offsets[self._index]
            if not isinstance(offsets, list):
                offsets = as_tensor(offsets).tolist()
        if offsets is None and getattr(encoding, "encodings", None):
            offsets = encoding.encodings[self._index].offsets
        return None if offsets is None else [(int(start), int(end)) for start, end in offsets]

    def _field(self, name: str) -> Any:
        """Reads a field that ``transformers`` has as a method of the batch, and ``tokenizers`` as an attribute; None
        without either."""
        field = getattr(self._encoding, name, None)
        return field(self._index) if callable(field) else field


def _has(encoding: Any, key: str) -> bool:
    return isinstance(encoding, Mapping) and key in encoding


def _is_batch(encoding: Any) -> bool:
    ids = encoding["input_ids"] if _has(encoding, "input_ids") else []
    if isinstance(ids, list):  # of lists of any lengths
        return bool(ids) and isinstance(ids[0], list)
    return as_tensor(ids).ndim > 1


def _word_at(text: str, position: int) -> int:
    """How many words begin before what stands at a position of the text."""
    return len(re.findall(r"\S+", text[: position + 1])) - 1


def _spelled(token: str) -> str:
    """A token without the marks of its tokenizer."""
    for mark in _BEGINS:
        token = token.replace(mark, " ").strip()
    if token.startswith(_GOES_ON):
        token = token[len(_GOES_ON) :]
    for mark in _ENDS:
        if token.endswith(mark):
            token = token[: -len(mark)]
    return token
