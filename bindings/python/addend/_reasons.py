"""Reasons: what people are told of a decision."""

import json
import math
from typing import Any, Dict, Iterator, List, Mapping, Union

from . import _native
from ._handle import Handle
from ._notes import with_warnings
from ._page import Path, framed, written
from ._records import Decision, Reason


class Concepts(Handle):
    """A description of the concepts that people are told of, read once and used for any number of decisions::

        concepts = addend.Concepts({
            "adverse": "negative", "at_most": 3, "threshold_share": 0.05,
            "concepts": [{"name": "Housing", "components": ["housing_*"], "values": "one_hot",
                          "text": "{concept}: {value}"}],
        })
        for decision in model.explain(row, targets="0").reasons(concepts):
            print([reason.text for reason in decision.reasons])

    Args:
        description: the description as a dictionary, or its JSON. The page on reasons has every key; "format" and
            "version" may be left out of a dictionary.

    Raises:
        InvalidArgument: a key, a concept or a text is not as the page says.
    """

    __slots__ = ()
    _INSTEAD = "read the description where it is used"

    def __init__(self, description: Union[str, Mapping[str, Any]]):
        if not isinstance(description, (str, Mapping)):
            raise TypeError(
                'concepts are a dictionary {"concepts": [{"name": ..., "components": [...]}]}, or its JSON, not a %s'
                % type(description).__name__
            )
        if not isinstance(description, str):
            description = json.dumps(described(description))
        super().__init__(_native.concepts_read(description))


class _Document:
    """A document of the library, which is kept as it was written."""

    __slots__ = ("_text",)

    def __init__(self, text: str):
        self._text = text

    def __reduce__(self) -> Any:
        return type(self), (self._text,)

    def to_json(self) -> str:
        """The document, as the library wrote it."""
        return self._text

    def to_dict(self) -> Dict[str, Any]:
        """All of it."""
        return json.loads(self._text)

    @property
    def notes(self) -> List[str]:
        """The notes of the run, one line each, which a reader has to know; `Decision.notes` are those of one decision."""
        return self.to_dict()["notes"]

    @property
    def warnings(self) -> List[str]:
        """The notes that say that numbers may not mean what a reader takes them for; `print` shows them."""
        return self.to_dict().get("warnings", [])


class Reasons(_Document):
    """The reasons of some decisions: a sequence of one `Decision` for each target, or for each example."""

    __slots__ = ("_decisions",)

    def __init__(self, text: str):
        super().__init__(text)
        self._decisions = [_decision(one) for one in json.loads(text)["decisions"]]

    def __len__(self) -> int:
        return len(self._decisions)

    def __getitem__(self, index: int) -> Decision:
        return self._decisions[index]

    def __iter__(self) -> Iterator[Decision]:
        return iter(self._decisions)

    def __eq__(self, other: object) -> bool:
        return self._text == other._text if isinstance(other, Reasons) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._text)

    def to_html(self, path: Path = None) -> str:
        """A page for a browser that needs nothing else; written to a file too if a path is given."""
        return written(_native.reasons_html(self._text), path)

    def _repr_html_(self) -> str:
        return framed(self.to_html())

    def __repr__(self) -> str:
        lines: List[str] = []
        for decision in self._decisions[:8]:
            lines.append("%s = %.6g: %s" % (decision.name, decision.value, decision.outcome.replace("_", " ")))
            lines += ["%+14.6g  %s" % (reason.contribution, reason.text) for reason in decision.reasons]
            lines += ["  " + note for note in decision.notes]
        if len(self) > 8:
            lines.append("... %d more" % (len(self) - 8))
        return "\n".join(with_warnings(lines, self.warnings))


class Interactions(_Document):
    """Interactions of groups of components; `Model.interactions` returns them.

    Attributes:
        names: the names of the groups.
        contributions: the contributions of the groups to the number that is explained.
        matrix: a row for each group, which adds up to its contribution; an entry off the diagonal is the part that would
            be gone with the group of that column at its baseline.
        asymmetry: 0 where the matrix is symmetric, 1 where of each pair one entry is 0 or has the other sign.
    """

    __slots__ = ("_record", "asymmetry", "contributions", "matrix", "names")

    def __init__(self, text: str):
        super().__init__(text)
        self._record = json.loads(text)
        groups = self._record["groups"]
        self.names: List[str] = [group["name"] for group in groups]
        self.contributions: List[float] = [group["contribution"] for group in groups]
        self.matrix: List[List[float]] = [group["interactions"] for group in groups]
        self.asymmetry: float = self._record["asymmetry"]

    def to_html(self, path: Path = None) -> str:
        """A page for a browser that needs nothing else; written to a file too if a path is given."""
        return written(_native.interactions_html(self._text), path)

    def _repr_html_(self) -> str:
        return framed(self.to_html())

    def __repr__(self) -> str:
        return "Interactions(%s)" % ", ".join(self.names)

    def __str__(self) -> str:
        return "\n".join(with_warnings([repr(self)], self.warnings))


def described(concepts: Mapping[str, Any]) -> Dict[str, Any]:
    """A dictionary of concepts as a document, which says what it is."""
    return {"format": "addend.concepts", "version": 1, **concepts}


def as_concepts(concepts: Union[Concepts, Mapping[str, Any]]) -> Any:
    """The native object of what `reasons` is given."""
    return (concepts if isinstance(concepts, Concepts) else Concepts(concepts))._handle


def _decision(record: Dict[str, Any]) -> Decision:
    # JSON knows no other numbers.
    record = {field: math.nan if value is None else value for field, value in record.items()}
    reasons = [Reason(*(reason[field] for field in Reason._fields)) for reason in record["reasons"]]
    return Decision(*(reasons if field == "reasons" else record[field] for field in Decision._fields))
