"""Attributions: the contributions of each element of the inputs to some numbers, computed by one backward sweep."""

import copy
import itertools
import json
import math
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Union

from . import _native
from ._explanation import Explanation
from ._handle import Handle
from ._notes import with_warnings
from ._page import Path, framed, written
from ._reasons import Concepts, Reasons, as_concepts
from ._results import Results
from ._tensor import Tensor


class Attribution(Handle):
    """Numbers, and what each element of the inputs gave to them; `Model.explain` gives it.

    It is a sequence of one `Explanation` for each target, or for each example where each has one. A value: it can be
    compared, copied and pickled, all but `output`.

    Attributes:
        output: what a live model returned in the run that is explained. None for models from files.
    """

    __slots__ = ("_num_inside", "_places", "_results", "output")

    def __init__(
        self, capsule: Any, num_inside: int = 0, places: Optional[Sequence[Optional[int]]] = None, output: Any = None
    ):
        self._begin(_Found(capsule), Results(_native.attribution_results(capsule)), num_inside)
        self._places = range(len(self._results) - 1 - num_inside) if places is None else places
        self.output = output

    def _begin(self, source: Any, results: Any, num_inside: int) -> None:
        super().__init__(source)
        self._results = results
        self._num_inside = num_inside

    def close(self) -> None:
        super().close()
        self._results.close()

    def __copy__(self) -> "Attribution":
        twin = super().__copy__()
        twin._results = copy.copy(self._results)
        return twin

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Attribution):
            return NotImplemented
        return self is other or (not self.closed and not other.closed and self._key() == other._key())

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return _read, (self._handle.json(), _Kept.of(self._results), self._num_inside, list(self._places))

    @property
    def value(self) -> Tensor:
        """The explained tensor, as the model computed it."""
        return self._results[0]

    @property
    def inputs(self) -> List[Optional[Tensor]]:
        """For each input of the model, in their order, what its elements give: ``[targets, *shape]``, or ``[*shape]``
        where each example has a target; for ids one number each. None for plain inputs."""
        return [None if place is None else self._results[1 + place] for place in self._places]

    @property
    def inside(self) -> List[Tensor]:
        """For each `Inside`, in their order, what the elements of the tensor give: ``[targets, *shape]``, or
        ``[*shape]`` where each example has a target."""
        end = len(self._results)
        return [self._results[index] for index in range(end - self._num_inside, end)]

    @property
    def leftovers(self) -> List[float]:
        """The leftover by target, which is not attributed to elements: value - reference - the sum of all
        attributions."""
        return self._numbers(_native.NUMBER_LEFTOVER)[0]

    @property
    def operators(self) -> List[Dict[str, Any]]:
        """The relevance that passed through each operator and its leftover, by target; empty unless it was asked
        for."""
        return self.to_dict().get("operators", [])

    def passed(self, modules: str) -> Dict[str, List[float]]:
        """The relevance that passed through each module that is called so, by target: of experts, layers, branches.

        It is what passed through the last operator that the module called, without views of it, and where the module was
        called several times, the sum over its calls. Modules that did not run, or through which nothing of the inputs
        passes, are not there.

        Args:
            modules: a path in which ``*`` stands for any name: ``"layers.*.experts.*"``.

        Raises:
            ValueError: the attribution was made without ``operators=True``, or nothing that it saw is called so.
        """
        operators = self.operators
        if not operators:
            raise ValueError("what passed through modules is known where operators=True was asked for")
        wanted = modules.split(".")
        found: Dict[str, List[float]] = {}
        for path, run in itertools.groupby(operators, lambda one: _path_in(one["module_path"], wanted)):
            if path is None:
                continue
            calls = list(run)
            for one in calls:
                if one["index"] == calls[-1]["index"]:
                    before = found.get(path, [0.0] * len(one["passed"]))
                    found[path] = [a + b for a, b in zip(before, one["passed"])]
        if not found:
            seen = sorted({one["module_path"] for one in operators})
            raise ValueError("nothing passes through a module called %s; there are %s" % (modules, ", ".join(seen[:12])))
        return found

    @property
    def report(self) -> Dict[str, Any]:
        """The report of the run."""
        return self._results.report

    def number(self, key: str) -> float:
        """One number of the report; NaN if it has none."""
        return self._results.number(key)

    @property
    def warnings(self) -> List[str]:
        """The notes that say that numbers may not mean what a reader takes them for."""
        return self._results.warnings

    @property
    def notes(self) -> List[str]:
        """The notes that a reader has to know, one line each."""
        return self._results.notes

    def __len__(self) -> int:
        return self._handle.size()

    def __getitem__(self, index: int) -> Explanation:
        size = len(self)
        position = index + size if index < 0 else index
        if not 0 <= position < size:
            raise IndexError("target %d of %d" % (index, size))
        return Explanation(self._handle.explain(position))

    def __iter__(self) -> Iterator[Explanation]:
        return (self[index] for index in range(len(self)))

    def reasons(self, concepts: Union[Concepts, Mapping[str, Any]]) -> Reasons:
        """For each target, or for each example, the concepts that moved it the way that they describe, the largest
        first. What was pickled knows no values of the inputs any more, which texts may ask for.

        Args:
            concepts: a description that was read, or a dictionary to be read.

        Raises:
            InvalidArgument: a concept names no component of these, two claim one, or a text asks for a value that is no
                number of an input.
        """
        return Reasons(self._handle.reasons(as_concepts(concepts)))

    def to_dict(self) -> Dict[str, Any]:
        """All targets, with the operators where they were asked for."""
        return json.loads(self._handle.json())

    def to_html(self, path: Path = None) -> str:
        """A page for a browser that needs nothing else; written to a file too if a path is given."""
        return written(self._handle.html(), path)

    def _repr_html_(self) -> str:
        return framed(self.to_html())

    def __repr__(self) -> str:
        if self.closed:
            return "Attribution(closed)"
        return "Attribution(%s)" % ", ".join(explanation.target for explanation in self)

    def __str__(self) -> str:
        return repr(self) if self.closed else "\n".join(with_warnings([repr(self)], self.warnings))

    def _numbers(self, *kinds: int) -> List[List[float]]:
        """For each kind of number that explanations have, those of all targets. Of thousands of targets no `Explanation`
        is made, which would take as long as finding the attributions."""
        source = self._handle
        found = [[_native.explanation_number(one, kind) for kind in kinds] for one in map(source.explain, range(len(self)))]
        return [list(column) for column in zip(*found)] or [[] for _ in kinds]

    def _key(self) -> Any:
        """The key by which attributions are compared for equality."""
        tensors = [None if tensor is None else tensor.__reduce__()[1] for tensor in self._results]
        return list(self), tensors, list(self._places), self._num_inside


def _path_in(path: str, wanted: Sequence[str]) -> Optional[str]:
    """The module with such a path that a path is of, or is in."""
    names = path.split(".")[: len(wanted)]
    fits = len(names) == len(wanted) and all(want in ("*", name) for want, name in zip(wanted, names))
    return ".".join(names) if fits else None


class _Found:
    """The native object, by a reference of this one."""

    def __init__(self, capsule: Any):
        self._capsule = capsule

    def native(self) -> Any:
        return self._capsule

    def size(self) -> int:
        return _native.attribution_num_targets(self._capsule)

    def explain(self, target: int) -> Any:
        return _native.attribution_explain(self._capsule, target)

    def reasons(self, concepts: Any) -> str:
        return _native.attribution_reasons(self._capsule, concepts)

    def json(self) -> str:
        return _native.attribution_json(self._capsule)

    def html(self) -> str:
        return _native.attribution_html(self._capsule)


class _Document:
    """The data of an attribution as `_Found` gives them, read from the document that was pickled."""

    def __init__(self, text: str):
        self._text = text
        self._capsule = _native.explanation_read(text)
        self._record = json.loads(text)

    def native(self) -> Any:
        raise TypeError("an attribution that was pickled does not hold its inputs; record it where it is made")

    def size(self) -> int:
        return len(self._record["targets"])

    def explain(self, target: int) -> Any:
        one = {key: value for key, value in self._record.items() if key != "operators"}
        one["targets"] = [one["targets"][target]]
        return _native.explanation_read(json.dumps(one))

    def reasons(self, concepts: Any) -> str:
        return _native.explanation_reasons(self._capsule, concepts)

    def json(self) -> str:
        return self._text

    def html(self) -> str:
        return _native.explanation_html(self._capsule)


class _Kept:
    """The part of the `Results` of an attribution that is pickled."""

    def __init__(
        self, tensors: Sequence[Optional[Tensor]], report: Dict[str, Any], notes: Sequence[str], warnings: Sequence[str]
    ):
        self._tensors = list(tensors)
        self.report = report
        self.notes = list(notes)
        self.warnings = list(warnings)

    @staticmethod
    def of(results: Any) -> "_Kept":
        return _Kept(list(results), results.report, results.notes, results.warnings)

    def __len__(self) -> int:
        return len(self._tensors)

    def __getitem__(self, index: int) -> Optional[Tensor]:
        return self._tensors[index]

    def __iter__(self) -> Iterator[Optional[Tensor]]:
        return iter(self._tensors)

    def number(self, key: str) -> float:
        number = self.report.get("direction") == key if key == "backward" else self.report.get(key)
        return float(number) if isinstance(number, (int, float)) else math.nan

    def close(self) -> None:
        """Others may share the tensors."""


def _read(document: str, results: _Kept, num_inside: int, places: Sequence[Optional[int]]) -> Attribution:
    """Restores an attribution that was pickled."""
    attribution = Attribution.__new__(Attribution)
    attribution._begin(_Document(document), results, num_inside)
    attribution._places = places
    attribution.output = None
    return attribution
