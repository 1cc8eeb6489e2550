"""Results of `lm`: a table of tokens by tokens, to be read, printed and shown."""

import array
import base64
import dataclasses
import json
import math
import os
import sys
import textwrap
import unicodedata
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

from . import _native
from ._explanation import Contribution
from ._lm_compare import Comparison
from ._lm_tokens import Group, Groups, groups_of
from ._notes import of_cancelling
from ._page import Path, framed, written

_WIDTH = 80
_ROWS = 24
_COLUMNS = "%3s  %s  %9s  %9s  "


@dataclasses.dataclass(eq=False)
class LayerContributions:
    """Direct contributions of the layers of a decoder to explained numbers.

    Each layer passes on what it was given plus what its blocks return (an attention and a feed-forward network), so that a
    head reads the sum of the embeddings and of what all blocks returned. A contribution is that of one term of this sum:
    what the block gave by being read by the head, not what it gave because later layers read it too. So for each row
    ``reference + contributions + leftover`` is the value, as it is for tokens.

    Attributes:
        names: ``"embeddings"``, then the blocks by their paths in the model, in their order: ``"model.layers.0.mlp"``.
        matrix: the contributions, ``[rows, names]``: an array of float64, or lists where NumPy is missing.
        leftovers: by row, what belongs to no term: what the policy could not attribute behind the layers, and what the
            rounding of the sum itself contributed.
    """

    names: List[str]
    matrix: Any
    leftovers: List[float]

    def top(self, row: int = 0, count: Optional[int] = None) -> List[Contribution]:
        """The contributions of the largest magnitude to a row, the largest first; all of them unless a count is given."""
        return _top(self.names, self.matrix, row, count)

    def to_dict(self) -> Dict[str, Any]:
        """All of it as data that JSON knows."""
        return {**self.__dict__, "matrix": _lists(self.matrix)}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LayerContributions):
            return NotImplemented
        return repr(self.to_dict()) == repr(other.to_dict())  # as text, in which NaN is NaN

    def __hash__(self) -> int:
        return hash((tuple(self.names), tuple(self.leftovers)))


class TokenAttribution:
    """Contributions of each token to the numbers of generated tokens; `attribute` returns it.

    Rows are what is explained: the generated tokens one by one, or spans of them. Columns are the tokens of prompt and
    continuation in one; of an encoder-decoder those of the source, the one that the decoder begins with, and those of the
    continuation. For each row ``reference + contributions + leftover`` is the value, up to the recovery error.

    A value: it can be compared, copied and pickled.

    Attributes:
        target: what is explained, for people: ``"log-probability"``.
        targets: the same of each row, as a `Target`.
        rows: what each row is called: the generated token, or the text of the span.
        ids: of all tokens, the prompt before the continuation.
        tokens: all of them as text.
        source_length: how many an encoder read; 0 for a decoder.
        prompt_length: how many stand before the first generated one: the prompt, or the source and the token that the
            decoder begins with.
        spans: the generated tokens that each row sums, counted from the first generated one.
        matrix: the contributions, ``[rows, tokens]``: an array of float64, or lists where NumPy is missing. What stands
            behind the tokens that a row reads is 0.
        groups: tokens that belong together, or None; `group_matrix` has their contributions.
        turns: the tokens of each message of a chat, as its template writes them; None for other prompts, and where the
            template writes a message otherwise when others follow.
        layers: what each layer added to the same numbers, if that was asked for; else None.
        compared: the same numbers under another policy, if that was asked for; else None.
        values: what the model computed, of each row.
        references: what it computes on the baseline, where ``report["reference_is_model_on_baseline"]`` is ``"yes"``.
        leftovers: what the policy could not attribute.
        recovery_errors: by how much the sum misses the value.
        conditionings: how much of the contributions cancels; see `Explanation`.
        baseline: the id of each token on the baseline.
        baseline_name: what the baseline is called.
        kept: positions of tokens that are the same on the baseline, special ones as a rule; they contribute 0.
        special: positions of the tokens that the tokenizer says are special; they belong to no word.
        notes: what a reader has to know, one line each; those of the runs for layers begin with ``"layers: "``.
        warnings: the notes that say that numbers may not mean what a reader takes them for.
        report: what the run says about itself; of several the first whose reference may not be what the model computes on
            the baseline, else the first.
    """

    def __init__(self, **fields: Any):
        self.__dict__.update(fields)

    target: str
    targets: List[str]
    rows: List[str]
    ids: List[int]
    tokens: List[str]
    source_length: int
    prompt_length: int
    spans: List[List[int]]
    matrix: Any
    groups: Optional[List[Group]]
    turns: Optional[List[Group]]
    layers: Optional[LayerContributions]
    compared: Optional[Comparison]
    values: List[float]
    references: List[float]
    leftovers: List[float]
    recovery_errors: List[float]
    conditionings: List[float]
    baseline: List[int]
    baseline_name: str
    kept: List[int]
    special: List[int]
    notes: List[str]
    warnings: List[str]
    report: Dict[str, Any]

    @property
    def continuation_tokens(self) -> List[str]:
        """The generated tokens."""
        return self.tokens[self.prompt_length :]

    @property
    def continuation_ids(self) -> List[int]:
        """The ids of the generated tokens."""
        return self.ids[self.prompt_length :]

    @property
    def names(self) -> List[str]:
        """The name of each token: its text, marked ``"(kept)"`` where it is the same on the baseline."""
        kept = set(self.kept)
        return [token + " (kept)" if k in kept else token for k, token in enumerate(self.tokens)]

    @property
    def group_matrix(self) -> Any:
        """The contributions by group, ``[rows, groups]``, each the sum over its tokens; by token without groups."""
        return self._by_group(self.matrix)

    def _by_group(self, matrix: Any) -> Any:
        if self.groups is None:
            return matrix
        sums = [[math.fsum(row[k] for k in group.positions) for group in self.groups] for row in _lists(matrix)]
        numpy = None if isinstance(matrix, list) else sys.modules.get("numpy")
        return sums if numpy is None else numpy.array(sums, dtype=numpy.float64).reshape(len(sums), len(self.groups))

    def by(self, groups: Groups) -> "TokenAttribution":
        """Returns the attribution with other groups, without another run; groups are given as to `attribute`."""
        special = set(self.special)
        found = groups_of(groups, self.tokens, self.source_length, self.prompt_length, special, self.turns)
        return TokenAttribution(**{**self.__dict__, "groups": found})

    def top(self, row: int = 0, count: Optional[int] = None) -> List[Contribution]:
        """The contributions of the largest magnitude to a row, the largest first: of groups where there are any, else of
        tokens. All of them unless a count is given."""
        return self._top(self.matrix, row, count)

    def _top(self, matrix: Any, row: int, count: Optional[int]) -> List[Contribution]:
        names = self.names if self.groups is None else [group.name for group in self.groups]
        return _top(names, self._by_group(matrix), row, count)

    def to_dict(self) -> Dict[str, Any]:
        """All of it as data that JSON knows."""
        data = {**self.__dict__, "matrix": _lists(self.matrix)}
        for key in ("groups", "turns"):
            found = data[key]
            data[key] = found and [{"name": group.name, "positions": list(group.positions)} for group in found]
        for key in ("layers", "compared"):
            data[key] = data[key] and data[key].to_dict()
        return data

    def to_html(self, path: Path = None) -> str:
        """A page for a browser that needs nothing else: a generated token is chosen, and the tokens before it show what
        they gave.

        Args:
            path: where it is written too.
        """
        with open(os.path.join(os.path.dirname(__file__), "_lm.html"), encoding="utf-8") as file:
            template = file.read()
        before, after = template.split("__ADDEND_DATA__")
        page = before + self._data() + after
        return written(page, path)

    def _data(self) -> str:
        """The data that the page reads, as JSON. Numbers of the matrix are doubles in base64, the lowest byte first."""
        data = self.to_dict()
        if self.layers is not None:
            data["layers"]["stack"] = _path_of_layers(self.layers.names)
        for holder in (data, data["layers"], data["compared"]):
            if holder is not None:
                holder["matrix"] = _base64(holder["matrix"])
                holder["leftovers"] = _finite(holder["leftovers"])
        if self.compared is not None:
            for key in ("references", "recovery_errors"):
                data["compared"][key] = _finite(data["compared"][key])
        for key in ("values", "references", "recovery_errors", "conditionings"):
            data[key] = _finite(data[key])
        data["baselines"] = data.pop("baseline")
        data["cancelling"] = [self._cancelling(row) for row in range(len(self.rows))]
        report = data.pop("report")
        data.update({key: report[key] for key in ("reference_is_model_on_baseline", "reference_reason")})
        data["version"] = _native.version()
        text = json.dumps(data, separators=(",", ":"))
        return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")

    def _repr_html_(self) -> str:
        return framed(self.to_html(), height=40)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TokenAttribution):
            return NotImplemented
        return self is other or self._key() == other._key()

    def __hash__(self) -> int:
        return hash((self.target, tuple(self.ids), tuple(self.values)))

    def _key(self) -> str:
        """The key by which attributions are compared for equality: a text, in which NaN equals NaN."""
        return repr({key: own for key, own in self.to_dict().items() if key != "report"})

    def _cancelling(self, row: int) -> str:
        """That the parts of a row cancel; empty where they do not."""
        parts = math.fsum(abs(float(one)) for one in self.matrix[row]) + abs(self.leftovers[row])
        return "".join(of_cancelling(parts, abs(self.values[row] - self.references[row])))

    def __repr__(self) -> str:
        units = "tokens" if self.groups is None else "groups"
        count = len(self.tokens) - self.prompt_length
        given = "source of %d" % self.source_length if self.source_length else "prompt of %d" % self.prompt_length
        lines = _wrapped(
            "%s of %d generated tokens, %s; baseline %s" % (self.target, count, given, _shown(self.baseline_name))
        )
        lines.append(_COLUMNS % ("row", _fit("", 16), "value", "reference") + "largest contributions of " + units)
        lines += self._lines(lambda row: ["%.4g" % own[row] for own in (self.values, self.references)], self._parts)
        other, leftovers, errors = self.compared, "largest leftover %.1e" % _largest(self.leftovers), self.recovery_errors
        if other is not None:
            lines += _wrapped("under %s (apart: the share of the contributions that goes to other tokens)" % other.policy)
            lines.append(_COLUMNS % ("row", _fit("", 16), "apart", "reference") + "largest contributions of " + units)
            lines += self._lines(
                lambda row: ["%.0f %%" % (100 * other.disagreements[row]), "%.4g" % other.references[row]],
                lambda row: self._parts(row, other.matrix),
            )
            leftovers += ", under the other policy %.1e" % _largest(other.leftovers)
            errors = [*errors, *other.recovery_errors]
        if self.layers is not None:
            lines.append("row  " + _fit("", 16) + "  largest direct contributions of layers")
            lines += self._lines(lambda row: [], self._layers)
            leftovers += ", of layers %.1e" % _largest(self.layers.leftovers)
        lines += _wrapped("%s, largest recovery error %.1e" % (leftovers, _largest(errors)))
        if self.kept:
            lines += _wrapped("kept, the same on the baseline: %d of %d tokens" % (len(self.kept), len(self.tokens)))
        for note in self.notes:
            lines += _wrapped(("WARNING: " if note in self.warnings else "note: ") + note)
        for row in range(len(self.rows)):
            lines += _wrapped("WARNING: in row %d %s" % (row, self._cancelling(row))) if self._cancelling(row) else []
        return "\n".join(lines)

    def _lines(
        self, numbers: Callable[[int], List[str]], parts: Callable[[int], Iterable[Tuple[str, float]]]
    ) -> Iterator[str]:
        """Lines of the table for the first rows, each with its numbers and with as many parts as fit."""
        for row in range(min(len(self.rows), _ROWS)):
            line = "%3d  %s  " % (row, _fit(_shown(self.rows[row]), 16))
            line += "".join("%9s  " % number for number in numbers(row))
            said: List[str] = []
            for name, value in parts(row):
                said.append("%s %+.3g" % (name, value))
                if value == 0 or _width(line + ", ".join(said)) > _WIDTH:
                    said.pop()
                    break
            yield (line + ", ".join(said)).rstrip()
        if len(self.rows) > _ROWS:
            yield "%d more rows" % (len(self.rows) - _ROWS)

    def _parts(self, row: int, matrix: Any = None) -> Iterator[Tuple[str, float]]:
        for part in self._top(self.matrix if matrix is None else matrix, row, 8):
            name = _clip(_shown(part.name), 22)
            if self.groups is None and self.tokens.count(self.tokens[part.component]) > 1:
                name += "@%d" % part.component
            yield name, part.value

    def _layers(self, row: int) -> Iterator[Tuple[str, float]]:
        assert self.layers is not None
        stack = _path_of_layers(self.layers.names)
        for part in self.layers.top(row, 8):
            yield _clip(part.name[len(stack) :] if part.component else part.name, 30), part.value


def _top(names: Sequence[str], matrix: Any, row: int, count: Optional[int]) -> List[Contribution]:
    """The contributions to a row, those of the largest magnitude first."""
    if not -len(matrix) <= row < len(matrix):
        raise IndexError("row %d of %d" % (row, len(matrix)))
    numbers = [float(one) for one in matrix[row]]
    order = sorted(range(len(numbers)), key=lambda k: (-abs(numbers[k]), k))
    return [Contribution(k, names[k], numbers[k]) for k in (order if count is None else order[: max(0, count)])]


def _path_of_layers(names: Sequence[str]) -> str:
    """The common beginning of the paths of all blocks, up to the number of a layer: ``"model.layers."``."""
    common = os.path.commonprefix(list(names[1:]))
    return common[: common.rfind(".") + 1] if len(names) > 2 else ""


def _lists(matrix: Any) -> List[List[float]]:
    return matrix if isinstance(matrix, list) else matrix.tolist()


def _finite(numbers: Sequence[float]) -> List[Optional[float]]:
    """JSON knows no other numbers."""
    return [one if math.isfinite(one) else None for one in numbers]


def _base64(rows: Sequence[Sequence[float]]) -> str:
    """Doubles, the lowest byte first."""
    numbers = array.array("d", [one for row in rows for one in row])
    if sys.byteorder == "big":
        numbers.byteswap()
    return base64.b64encode(numbers.tobytes()).decode("ascii")


def _largest(numbers: Sequence[float]) -> float:
    return max((abs(one) for one in numbers), default=0.0)


def _shown(text: str) -> str:
    """On one line of a terminal: what does not print as an escape, spaces alone in quotes."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text.strip(" ") or repr(text))


def _width(text: str) -> int:
    """The columns of a terminal that a text takes."""
    return sum(0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text)


def _clip(text: str, width: int) -> str:
    """No more than some columns of it."""
    if _width(text) <= width:
        return text
    while _width(text) > width - 2:
        text = text[:-1]
    return text + ".."


def _fit(text: str, width: int) -> str:
    """In so many columns."""
    text = _clip(text, width)
    return text + " " * (width - _width(text))


def _wrapped(text: str) -> List[str]:
    return textwrap.wrap(text, _WIDTH, subsequent_indent="  ")
