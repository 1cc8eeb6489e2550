"""Tokens of a text for `lm`: what a tokenizer does, what stands for nothing, and what belongs together."""

from collections.abc import Mapping
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

# How tokenizers mark a space in front of a token.
_SPACES = ("\u0120", "\u2581")
# The character to which tokenizers decode a part of a letter.
_BROKEN = "\ufffd"
# How tokenizers that divide text into bytes write those that do not print: as the letters from 256 on, in their order.
_PRINTED = [*range(33, 127), *range(161, 173), *range(174, 256)]
_BYTES = {chr(one): one for one in _PRINTED}
_BYTES.update((chr(256 + k), one) for k, one in enumerate(sorted(set(range(256)) - set(_PRINTED))))

_NO_TURNS = "the chat template %s, so that nobody knows where one ends; pass groups as a list of (name, slice)"

_SPECIAL = ("pad", "unk", "eos", "bos")


class Group(NamedTuple):
    """Tokens whose contributions are one sum.

    Attributes:
        name: for people.
        positions: of the tokens, in their order.
    """

    name: str
    positions: Tuple[int, ...]


class Text(NamedTuple):
    """A text as ids.

    Attributes:
        source: what an encoder reads; empty for a decoder.
        start: what the decoder is given before it goes on: the prompt; behind an encoder the token that it begins with.
        continuation: what was generated.
    """

    source: List[int]
    start: List[int]
    continuation: List[int]

    @property
    def written(self) -> List[int]:
        """The ids that the decoder reads."""
        return self.start + self.continuation

    @property
    def ids(self) -> List[int]:
        """All of them."""
        return self.source + self.written

    @property
    def first(self) -> int:
        """The place of the first generated token among all ids."""
        return len(self.source) + len(self.start)


class Tokenizer:
    """The interface that `lm` uses to tokenizers of any library.

    Args:
        given: one like those of transformers, one of the package tokenizers, a pair of functions ``(encode, decode)``, or
            None.
        model: whose ``config`` tells special ids where the tokenizer does not.
    """

    def __init__(self, given: Any, model: Any = None):
        self._pair = given if isinstance(given, tuple) else None
        self._given = None if self._pair is not None else given
        self._config = getattr(model, "config", None)
        if self._pair is not None and not (len(self._pair) == 2 and all(map(callable, self._pair))):
            raise TypeError("a tokenizer that is a tuple holds two functions: (encode, decode)")

    @property
    def known(self) -> bool:
        """Whether there is one."""
        return self._given is not None or self._pair is not None

    def encode(self, text: str, special: bool, what: str, of_target: bool = False) -> List[int]:
        """The ids of a text, with the special tokens that the tokenizer puts around it or without.

        Args:
            of_target: it is what a decoder writes behind an encoder; some tokenizers have other ids for that.
        """
        if not self.known:
            raise ValueError("the %s is text, which takes a tokenizer: pass tokenizer=..., or ids" % what)
        if self._pair is not None:
            return as_ids(self._pair[0](text), what)
        for name in ("__call__", "encode"):
            function = getattr(self._given, name, None)
            if function is None:
                continue
            if special:
                return as_ids(function(text), what)
            if of_target:
                try:
                    return as_ids(function(text_target=text, add_special_tokens=False), what)
                except TypeError:  # it has one language
                    pass
            try:
                return as_ids(function(text, add_special_tokens=False), what)
            except TypeError:  # it adds none, or always the same
                return as_ids(function(text), what)
        raise TypeError("the tokenizer is a %s, which neither can be called nor has encode()" % type(self._given).__name__)

    def chat(self, messages: Sequence[Any], asks: bool) -> List[int]:
        """The ids of messages; with what asks for the next one, or without."""
        template = getattr(self._given, "apply_chat_template", None)
        if template is None:
            raise ValueError("the prompt is messages, which take a tokenizer with apply_chat_template(): pass text or ids")
        if getattr(self._given, "chat_template", "") is None:
            raise ValueError(
                "the prompt is messages, but the tokenizer has no chat template: set tokenizer.chat_template to the one "
                "that the model was trained with, or pass text or ids in which the messages are written out"
            )
        return as_ids(template(list(messages), add_generation_prompt=asks, tokenize=True), "prompt")

    def texts(self, ids: Sequence[int]) -> List[str]:
        """Each token as text, with the space that it begins with; its id where nobody knows more."""
        if self._pair is not None:
            return [str(self._pair[1]([one])) for one in ids]
        convert = getattr(self._given, "convert_ids_to_tokens", None)
        if convert is not None:
            pieces: Sequence[Any] = convert(list(ids))
        else:
            by_id = getattr(self._given, "id_to_token", None)
            pieces = [by_id(one) for one in ids] if by_id is not None else [None] * len(ids)
        decode = getattr(self._given, "decode", None)
        found = []
        for one, piece in zip(ids, pieces):
            try:
                text = str(decode([one])) if decode is not None else None
            except Exception:  # tokenizers refuse ids that they do not have, each in its own way
                text = None
            found.append(_shown(one, None if piece is None else str(piece), text))
        return found

    @property
    def special(self) -> Set[int]:
        """The ids of special tokens."""
        return {int(one) for one in getattr(self._given, "all_special_ids", None) or ()}

    def id_of(self, name: str) -> Optional[int]:
        """The id of the ``"pad"``, ``"unk"``, ``"eos"`` or ``"bos"`` token; None without one."""
        for holder in (self._given, self._config):
            found = getattr(holder, name + "_token_id", None)
            if isinstance(found, (list, tuple)):  # several ends, in configurations
                found = found[0] if found else None
            if found is not None:
                return int(found)
        return None

    def ends(self) -> Set[int]:
        """The ids that end a text."""
        found: Set[int] = set()
        for holder in (self._given, self._config):
            one = getattr(holder, "eos_token_id", None)
            found.update(map(int, one) if isinstance(one, (list, tuple)) else () if one is None else (int(one),))
        return found


def _shown(one: int, piece: Optional[str], text: Optional[str]) -> str:
    if piece is None or text == piece:
        return text if text else str(one) if piece is None else piece
    if text is None or _BROKEN in text:
        if all(letter in _BYTES for letter in piece):
            return bytes(_BYTES[letter] for letter in piece).decode("utf-8", "backslashreplace")
        for mark in _SPACES:
            piece = piece.replace(mark, " ")
        return piece
    return " " + text if piece.startswith(_SPACES) and not text[:1].isspace() else text or piece


def as_ids(given: Any, what: str) -> List[int]:
    """The ids in a list, an array, a tensor, or what a tokenizer returned: one row of them."""
    if isinstance(given, Mapping):
        rows = _rows(given)
        given = rows[0] if len(rows) == 1 else given["input_ids"]
    else:
        for name in ("input_ids", "ids"):
            given = getattr(given, name, given)
    if hasattr(given, "tolist"):
        given = given.tolist()
    if isinstance(given, (list, tuple)) and len(given) == 1 and isinstance(given[0], (list, tuple)):
        given = given[0]
    if not isinstance(given, (list, tuple)) or not all(is_id(one) for one in given):
        raise TypeError("the %s is text or one row of ids, not %s" % (what, _described(given)))
    ids = [int(one) for one in given]
    if any(one < 0 for one in ids):
        raise ValueError("the %s has the id %d; ids count from 0" % (what, min(ids)))
    return ids


def continuation_of(given: Any, start: List[int], tokenizer: Tokenizer, of_target: bool) -> List[int]:
    """The ids of what was generated: text, ids, or what ``generate`` of transformers returned as an object.

    Args:
        start: what a decoder was given before it went on.
        of_target: it did so behind an encoder.
    """
    if isinstance(given, str):
        return tokenizer.encode(given, False, "continuation", of_target)
    made = given.get("sequences") if isinstance(given, Mapping) else getattr(given, "sequences", None)
    ids = as_ids(given, "continuation") if made is None else after_prompt(made.tolist(), start)
    ends, pad = tokenizer.ends(), tokenizer.id_of("pad")
    end = next((k + 1 for k, one in enumerate(ids) if one in ends), len(ids))
    return ids[:end] if all(one == pad for one in ids[end:]) else ids


def after_prompt(sequences: List[List[int]], prompt: Sequence[int]) -> List[int]:
    """Returns the ids behind the prompt in the sequence that ``generate`` returned."""
    if len(sequences) != 1:
        raise ValueError("generate() returned %d sequences; pass one of them as the continuation" % len(sequences))
    if sequences[0][: len(prompt)] != list(prompt):
        raise ValueError("generate() did not return the prompt and what follows it; pass the ids of the continuation")
    return [int(one) for one in sequences[0][len(prompt) :]]


def is_id(one: Any) -> bool:
    """Whether it is a whole number of whatever library."""
    # Arrays and tensors have __index__, whatever they hold.
    return hasattr(one, "__index__") and not isinstance(one, bool) and getattr(one, "ndim", 0) == 0


def _described(given: Any) -> str:
    if isinstance(given, (list, tuple)):
        return "a list of %s" % (type(given[0]).__name__ if given else "nothing")
    return "a %s" % type(given).__name__


def prompts_of(prompt: Any) -> Optional[List[Any]]:
    """The prompts in a list, or in what a tokenizer made of several texts, without their padding; None where it is one."""
    if isinstance(prompt, Mapping):
        rows = _rows(prompt) if "input_ids" in prompt else []
        return rows if len(rows) > 1 else None
    if isinstance(prompt, (list, tuple)) and prompt:
        first = prompt[0]
        if isinstance(first, (str, list, tuple)) or getattr(first, "ndim", 0) > 0:
            return list(prompt)
        if isinstance(first, Mapping) and not _is_message(first):
            return list(prompt)
    if getattr(prompt, "ndim", 0) == 2 and len(prompt) != 1:
        raise ValueError(
            "the prompt holds %d rows of ids, of which nobody says what is padding; pass a list of prompts, or what the "
            "tokenizer returned, with its attention_mask" % len(prompt)
        )
    return None


def _rows(encoding: Any) -> List[List[Any]]:
    """The rows of ids that a tokenizer returned, without what its mask leaves out."""
    ids, mask = (
        found.tolist() if hasattr(found, "tolist") else found
        for found in (encoding["input_ids"], encoding["attention_mask"] if "attention_mask" in encoding else None)
    )
    if not ids or not isinstance(ids[0], (list, tuple)):
        ids, mask = [ids], None if mask is None else [mask]
    return [[one for k, one in enumerate(row) if mask is None or mask[index][k]] for index, row in enumerate(ids)]


def _is_message(given: Any) -> bool:
    return isinstance(given, Mapping) and "role" in given


def is_messages(prompt: Any) -> bool:
    """Whether it is a chat: a list of ``{"role": ..., "content": ...}``."""
    return isinstance(prompt, (list, tuple)) and bool(prompt) and all(map(_is_message, prompt))


def turns_of(messages: Sequence[Any], ids: Sequence[int], tokenizer: Tokenizer) -> List[Group]:
    """The tokens of each message of a chat, with what the template writes around it."""
    found = []
    begin = 0
    for k, message in enumerate(messages):
        try:
            before = tokenizer.chat(messages[: k + 1], False)
        except Exception as error:  # templates refuse chats that they were not made for, each in its own way
            raise ValueError(_NO_TURNS % ("refuses the messages up to %d without those behind" % k)) from error
        end = len(before)
        if end < begin or list(ids[:end]) != before:
            raise ValueError(_NO_TURNS % ("writes message %d otherwise when others follow it" % k))
        found.append(Group("%s %d" % (message["role"], k), tuple(range(begin, end))))
        begin = end
    return [group for group in found if group.positions]


def _roles_of(turns: Sequence[Group]) -> List[Group]:
    """The tokens of all messages of each role."""
    found: Dict[str, List[int]] = {}
    for name, positions in turns:
        found.setdefault(name.rsplit(" ", 1)[0], []).extend(positions)
    return [Group(role, tuple(positions)) for role, positions in found.items()]


def baseline_of(given: Any, ids: Sequence[int], kept: Set[int], tokenizer: Tokenizer) -> Tuple[List[int], str, List[str]]:
    """The id of each token on the baseline, what the baseline is called, and what a reader has to know.

    Args:
        kept: positions that stay what they are.
    """
    notes: List[str] = []
    if given is not None and not isinstance(given, str) and not is_id(given):
        own = as_ids(given, "baseline")
        if len(own) != len(ids):
            raise ValueError(
                "the baseline has %d ids for %d tokens; it takes one for each token of prompt and continuation, or one for "
                "all" % (len(own), len(ids))
            )
        return own, "given ids", notes
    if given is None:
        known = [name for name in _SPECIAL if tokenizer.id_of(name) is not None]
        if not known:
            raise ValueError("nobody says which token means nothing: pass baseline=ID, or a tokenizer with a pad token")
        if known[0] != "pad":
            notes.append("the baseline is the %s token, because there is no pad token" % known[0])
        given = known[0]
    if isinstance(given, str):
        name = given[: -len("_token")] if given.endswith("_token") else given
        if name not in _SPECIAL:
            raise ValueError("baseline is an id, a list of ids, or one of %s, not %r" % (", ".join(_SPECIAL), given))
        found = tokenizer.id_of(name)
        if found is None:
            others = [other for other in _SPECIAL if tokenizer.id_of(other) is not None]
            instead = "baseline=%r" % others[0] if others else "the id of a token that means nothing"
            raise ValueError("there is no %s token; pass %s" % (name, instead))
        given = found
    one = as_ids([given], "baseline")[0]
    (text,) = tokenizer.texts([one])
    name = str(one) if text == str(one) else "%s (%d)" % (text, one)
    return [own if k in kept else one for k, own in enumerate(ids)], name, notes


def kept_of(given: Any, ids: Sequence[int], tokenizer: Tokenizer) -> Set[int]:
    """The positions that are the same on the baseline."""
    if given is None:
        return set()
    if isinstance(given, str):
        if given != "special":
            raise ValueError('keep is "special", a list of positions, or None, not %r' % given)
        special = tokenizer.special
        return {k for k, one in enumerate(ids) if one in special}
    return {_position(one, len(ids), "keep") for one in given}


def _position(given: Any, count: int, what: str) -> int:
    if not is_id(given):
        raise TypeError("%s holds positions of tokens, not a %s" % (what, type(given).__name__))
    own = int(given) + count if int(given) < 0 else int(given)
    if not 0 <= own < count:
        raise IndexError("%s: position %d of %d tokens" % (what, int(given), count))
    return own


Groups = Union[None, str, Sequence[Tuple[str, Any]]]


def groups_of(
    given: Groups, tokens: Sequence[str], source: int, prompt: int, special: Set[int], turns: Optional[List[Group]] = None
) -> Optional[List[Group]]:
    """Which tokens are summed: every token in one group.

    Args:
        given: None, ``"words"``, ``"turns"``, ``"roles"``, or (name, slice or positions) for each.
        source: how many tokens an encoder reads, and `prompt`: how many stand before the first generated one.
        special: positions of tokens that belong to no word.
        turns: the tokens of each message, where they are known.
    """
    if given is None:
        return None
    if isinstance(given, str):
        if given == "words":
            return _words_of(tokens, (0, source, prompt), special)
        if given not in ("turns", "roles"):
            raise ValueError('groups is None, "words", "turns", "roles" or a list of (name, slice), not %r' % given)
        if turns is None:
            raise ValueError(
                'groups="%s" takes a prompt of messages, {"role": ..., "content": ...}, which the chat template writes one '
                "behind the other; else pass groups as a list of (name, slice)" % given
            )
        given = turns if given == "turns" else _roles_of(turns)
    count = len(tokens)
    owner: Dict[int, int] = {}
    found = []
    for index, entry in enumerate(given):
        if isinstance(entry, Group):
            entry = (entry.name, list(entry.positions))
        if not isinstance(entry, (list, tuple)) or len(entry) != 2:
            raise TypeError("groups holds (name, slice) for each group, not %r" % (entry,))
        name, place = entry
        if isinstance(place, slice):
            positions = list(range(*place.indices(count)))
        else:
            positions = [_position(one, count, "groups") for one in (place if hasattr(place, "__iter__") else [place])]
        if not positions:
            raise ValueError("the group %r has no token" % (name,))
        for position in positions:
            if owner.setdefault(position, index) != index or positions.count(position) > 1:
                raise ValueError(
                    "token %d is in two groups, or twice in %r; contributions are summed once" % (position, name)
                )
        found.append(Group(str(name), tuple(positions)))
    rest = [k for k in range(count) if k not in owner]
    end = source or prompt
    for name, own in (
        ("other tokens of the %s" % ("source" if source else "prompt"), [k for k in rest if k < end]),
        ("other generated tokens", [k for k in rest if k >= end]),
    ):
        if own:
            found.append(Group(name, tuple(own)))
    return found


def _words_of(tokens: Sequence[str], begins_at: Sequence[int], special: Set[int]) -> List[Group]:
    """Tokens up to the next one that begins with white space.

    Args:
        begins_at: where a text begins, and with it a word.
    """
    words: List[List[int]] = []
    for k, token in enumerate(tokens):
        begins = k in begins_at or k in special or k - 1 in special
        begins = begins or token[:1].isspace() or tokens[k - 1][-1:].isspace()
        if begins:
            words.append([])
        words[-1].append(k)
    return [Group("".join(tokens[k] for k in word).strip() or tokens[word[0]], tuple(word)) for word in words]
