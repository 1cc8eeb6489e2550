"""One number and what it is made of."""

import json
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Union

from . import _native
from ._handle import Handle
from ._notes import of_cancelling, of_components, with_warnings
from ._page import Path, framed, written
from ._reasons import Concepts, Reasons, as_concepts


class Contribution(NamedTuple):
    """The contribution of one component to the explained number."""

    component: int
    name: str
    value: float


class Explanation(Handle):
    """One number of a composition, its reference, its leftover, and the contribution of each component.

    A value: it can be compared, copied and pickled.
    """

    __slots__ = ("_notes", "_warnings")

    def __init__(self, capsule: Any, notes: Sequence[str] = (), warnings: Sequence[str] = ()):
        super().__init__(capsule)
        # Notes of a run that the native object does not know; its document, its page and its reasons have them all the same.
        self._notes = list(notes)
        self._warnings = list(warnings)

    @property
    def target(self) -> str:
        """The element: ``"[0, 7]"``, or ``"[0, 7] minus [0, 2]"``."""
        return _native.explanation_target(self._handle)

    @property
    def value(self) -> float:
        """The value that the model computed."""
        return self._number(_native.NUMBER_VALUE)

    @property
    def reference(self) -> float:
        """The reference: the value on the baseline."""
        return self._number(_native.NUMBER_REFERENCE)

    @property
    def leftover(self) -> float:
        """The leftover: what the policy could not attribute."""
        return self._number(_native.NUMBER_LEFTOVER)

    @property
    def recovery(self) -> float:
        """The sum of all contributions, reference and leftover."""
        return self._number(_native.NUMBER_RECOVERY)

    @property
    def recovery_error(self) -> float:
        """Recovery minus value."""
        return self._number(_native.NUMBER_RECOVERY_ERROR)

    @property
    def conditioning(self) -> float:
        """How much cancels: the magnitudes of the parts, or that of the reference if it is larger, over the smaller of
        |value| and |value - reference|; 1 where nothing does."""
        return self._number(_native.NUMBER_CONDITIONING)

    @property
    def mass(self) -> float:
        """The sum of all magnitudes, against which rounding is measured."""
        return self._number(_native.NUMBER_MASS)

    @property
    def contributions(self) -> List[float]:
        """One for each component, in their order."""
        handle = self._handle
        count = _native.explanation_numc(handle)
        return [_native.explanation_contribution(handle, component) for component in range(count)]

    @property
    def num_baselines(self) -> int:
        """How many baselines the numbers are means over."""
        return _native.explanation_num_baselines(self._handle)

    @property
    def standard_errors(self) -> List[float]:
        """The standard errors of the contributions, which are means over several baselines; NaN where there was one."""
        return self._by_component(_native.explanation_standard_error)

    @property
    def same_sign(self) -> List[float]:
        """The share of baselines under which a contribution has the sign of their mean; NaN where there was one."""
        return self._by_component(_native.explanation_same_sign)

    @property
    def names(self) -> List[str]:
        """The names of the components."""
        handle = self._handle
        return [_native.explanation_name(handle, component) for component in range(_native.explanation_numc(handle))]

    def top(self, count: Optional[int] = None) -> List[Contribution]:
        """The contributions of the largest magnitude, the largest first; all of them unless a count is given."""
        handle = self._handle
        numc = _native.explanation_numc(handle)
        ranks = range(numc if count is None else max(0, min(count, numc)))
        return [
            Contribution(
                component,
                _native.explanation_name(handle, component),
                _native.explanation_contribution(handle, component),
            )
            for component in (_native.explanation_ranked(handle, rank) for rank in ranks)
        ]

    def reasons(self, concepts: Union[Concepts, Mapping[str, Any]]) -> Reasons:
        """The concepts that moved it the way that they describe, the largest first, as one decision."""
        return Reasons(_native.explanation_reasons(self._whole(), as_concepts(concepts)))

    @property
    def notes(self) -> List[str]:
        """The notes on the run that found it, which a reader has to know, one line each; `print` shows the warnings."""
        return self.to_dict()["report"]["notes"]

    @property
    def warnings(self) -> List[str]:
        """The notes that say that numbers may not mean what a reader takes them for."""
        return self.to_dict()["report"].get("warnings", [])

    def to_dict(self) -> Dict[str, Any]:
        """All of it."""
        record = json.loads(_native.explanation_json(self._handle))
        for key, further in (("notes", self._notes), ("warnings", self._warnings)):
            if further:
                own = record["report"].get(key, [])
                record["report"][key] = [*(note for note in further if note not in own), *own]
        if self._warnings:
            record["report"].pop("warning_kinds", None)  # nobody here knows those of the further ones
        return record

    def to_html(self, path: Path = None) -> str:
        """A page for a browser that needs nothing else; written to a file too if a path is given."""
        return written(_native.explanation_html(self._whole()), path)

    def to_svg(self, path: Path = None) -> str:
        """A picture in SVG for reports and e-mails: the way from the reference to the value, a bar for each of the largest
        contributions, one for the others, and all notes; written to a file too if a path is given."""
        return written(_native.explanation_svg(self._whole()), path)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Explanation):
            return NotImplemented
        return self is other or (not self.closed and not other.closed and self._key() == other._key())

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> Any:
        return _read, (self._document(),)

    def _repr_html_(self) -> str:
        return framed(self.to_html())

    def __repr__(self) -> str:
        if self.closed:
            return "Explanation(closed)"
        shown = self.top(8)
        at = self.to_dict()["at"]
        lines = ["%s%s = %.6g" % ("" if at is None else at + " ", self.target, self.value)]
        lines += ["%+14.6g  %s" % (contribution.value, contribution.name) for contribution in shown]
        others = sum(self.contributions) - sum(contribution.value for contribution in shown)
        rest = _native.explanation_numc(self._handle) - len(shown)
        if rest > 0:
            lines.append("%+14.6g  %d more" % (others, rest))
        lines.append("%+14.6g  reference" % self.reference)
        lines.append("%+14.6g  leftover" % self.leftover)
        warnings = self.warnings
        if not any(map(of_components, warnings)):
            warnings = warnings + of_cancelling(self.mass - abs(self.reference), abs(self.value - self.reference))
        lines = with_warnings(lines, warnings)
        return "\n".join(lines)

    def _key(self) -> str:
        """The key by which explanations are compared for equality: a text, in which NaN equals NaN."""
        numbers = self.value, self.reference, self.leftover, self.recovery, self.conditioning, self.mass
        return repr((self.target, numbers, self.contributions, self.names))

    def _document(self) -> str:
        """The document of this explanation as the library writes it, with all notes."""
        return json.dumps(self.to_dict()) if self._notes else _native.explanation_json(self._handle)

    def _whole(self) -> Any:
        """A native object that knows all notes."""
        return _native.explanation_read(self._document()) if self._notes else self._handle

    def _by_component(self, number: Any) -> List[float]:
        handle = self._handle
        return [number(handle, component) for component in range(_native.explanation_numc(handle))]

    def _number(self, number: int) -> float:
        return _native.explanation_number(self._handle, number)


def _read(record: str) -> Explanation:
    """Restores an explanation that was pickled."""
    return Explanation(_native.explanation_read(record))
