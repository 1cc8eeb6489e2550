"""Numbers of a figure: the parts of one value or of many, read from results and from arrays."""

import dataclasses
import math
import sys
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

import numpy

from ._attribution import Attribution
from ._dtype import DType
from ._explanation import Explanation
from ._job_results import JobResults
from ._lm_result import LayerContributions, TokenAttribution
from ._notes import AddendWarning
from ._tensor import Tensor, as_tensor

Notes = Union[str, Iterable[str]]

# Rounding of a sum is judged as the library judges it, by 8 eps sqrt(count) of all magnitudes. What a model computes has
# more operators than parts, though, and results that do not tell their number are granted a hundred times the count.
_DEPTH = 100
_SINGLE, _DOUBLE = 2.0**-23, 2.0**-52
_EPSILONS = {DType.float16: 2.0**-10, DType.bfloat16: 2.0**-7, DType.float32: _SINGLE}


@dataclasses.dataclass
class Parts:
    """Rows of numbers, each a value with the parts that it is made of.

    Attributes:
        names: of the parts.
        contributions: ``[rows, parts]``.
        references: by row; None where nobody gave them.
        leftovers: by row; None as well.
        values: by row; None as well.
        rounding: by row, how large a number may be that is rounding.
        checked: whether value and parts are known apart from each other, so that their sum says something.
        noun: the word for a part.
        row_noun: the word for a row.
        titles: by row; empty where rows have no name.
        notes: what a reader has to know.
        warnings: those that say that numbers may not mean what a reader takes them for.
        standard_errors: of the contributions, where these are means over several baselines.
        elements: by part, the number of the input that it belongs to, where it is known.
        size: height and width, where parts are pixels.
    """

    names: List[str]
    contributions: Any
    references: Any = None
    leftovers: Any = None
    values: Any = None
    rounding: Any = None
    checked: bool = False
    noun: str = "feature"
    row_noun: str = "row"
    titles: Sequence[str] = ()
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()
    standard_errors: Any = None
    elements: Optional[Sequence[Optional[float]]] = None
    size: Optional[Tuple[int, int]] = None

    def __post_init__(self) -> None:
        rows, count = self.contributions.shape
        if not rows:
            raise ValueError("there are no rows, so there is nothing to draw")
        if not count:
            raise ValueError("there are no contributions, so there is nothing to draw")
        if len(self.names) != count:
            raise ValueError("%d names for %d contributions" % (len(self.names), count))
        for word, numbers in (
            ("contributions", self.contributions),
            ("reference", self.references),
            ("leftover", self.leftovers),
            ("value", self.values),
        ):
            if numbers is not None and not numpy.isfinite(numbers).all():
                row = int(numpy.argwhere(~numpy.isfinite(numbers))[0][0])
                where = " of row %d" % row if rows > 1 else ""
                raise ValueError("the %s%s are NaN or infinite, of which no figure can be drawn" % (word, where))

    @property
    def sums(self) -> Any:
        """The recovery, by row: reference, contributions and leftover together."""
        return self.references + self.contributions.sum(1) + self.leftovers

    @property
    def missing(self) -> Any:
        """How much larger the value is than the sum of all parts, by row; 0 where that is rounding."""
        gap = self.values - self.sums
        return numpy.where(numpy.abs(gap) > self.rounding, gap, 0.0)

    @property
    def is_known(self) -> bool:
        """Whether values, references and leftovers are known."""
        return self.values is not None

    def has_leftover(self) -> bool:
        """Whether the leftover of some row is more than rounding."""
        return self.is_known and bool((numpy.abs(self.leftovers) > self.rounding).any())

    def row(self, row: Optional[int]) -> "Parts":
        """One of the rows. It need not be named where there is only one."""
        count = len(self.contributions)
        if row is None:
            if count > 1:
                raise ValueError(
                    "there are %d %ss, of which this draws one: say which, by row=0 to row=%d"
                    % (count, self.row_noun, count - 1)
                )
            row = 0
        if not -count <= row < count:
            raise IndexError("row %d of %d" % (row, count))
        row %= count
        at = slice(row, row + 1)
        own = {
            name: None if numbers is None else numbers[at]
            for name, numbers in (
                ("contributions", self.contributions),
                ("references", self.references),
                ("leftovers", self.leftovers),
                ("values", self.values),
                ("rounding", self.rounding),
            )
        }
        return dataclasses.replace(self, **own, titles=self.titles[at])


def parts_of(
    given: Any,
    names: Optional[Sequence[Any]] = None,
    value: Any = None,
    reference: Any = None,
    leftover: Any = None,
    notes: Notes = (),
    dims: Tuple[int, ...] = (1, 2),
) -> Parts:
    """Reads what people draw.

    Args:
        given: a result of Addend, a list of explanations, or an array.
        names: of the parts, in place of those that it has.
        value: of an array, what was explained: a number, or one for each row.
        reference: of an array.
        leftover: of an array.
        notes: what a reader has to know beside the notes of the result.
        dims: how many dimensions an array may have.
    """
    found = _of_result(given)
    if found is None:
        found = _of_array(given, value, reference, leftover, dims)
    elif not (value is None and reference is None and leftover is None):
        raise TypeError("%s has a value, a reference and a leftover of its own; leave them out" % type(given).__name__)
    if names is not None:
        found = dataclasses.replace(found, names=[str(name) for name in names])
    return with_notes(found, notes)


def with_notes(parts: Parts, notes: Notes) -> Parts:
    """Parts with further notes."""
    further = [notes] if isinstance(notes, str) else [str(note) for note in notes]
    return dataclasses.replace(parts, notes=[*parts.notes, *(note for note in further if note not in parts.notes)])


def _of_result(given: Any) -> Optional[Parts]:
    if isinstance(given, (Explanation, Attribution)):
        return _of_documents([given.to_dict()])
    if isinstance(given, TokenAttribution):
        return _of_tokens(given)
    if isinstance(given, JobResults):
        return _of_job(given)
    if isinstance(given, (list, tuple)) and given and all(isinstance(one, (Explanation, Attribution)) for one in given):
        return _of_documents([one.to_dict() for one in given])
    if isinstance(given, LayerContributions):
        raise TypeError("contributions of layers have no value and no reference of their own; draw explained.layers.matrix")
    if hasattr(given, "explain"):
        raise TypeError("%s is no explanation of a number; draw what its explain() returns" % type(given).__name__)
    return None


def _of_documents(records: Sequence[Mapping[str, Any]]) -> Parts:
    """Reads documents of explanations, whose components have to be the same."""
    names = [one["name"] for one in records[0]["components"]]
    for record in records[1:]:
        if [one["name"] for one in record["components"]] != names:
            raise ValueError("the explanations have different components, so that they cannot share a figure")
    targets = [target for record in records for target in record["targets"]]
    notes, warnings = _merged(records, "notes"), _merged(records, "warnings")
    spreads = [target["baselines"] for target in targets if target.get("baselines")]
    counts = {spread["count"] for spread in spreads}
    if counts and max(counts) > 1:
        several = "%d" % max(counts) if len(counts) == 1 else "several"
        worst = max(_number(spread["worst_leftover"]) for spread in spreads)
        notes.insert(0, "means over %s baselines; the largest leftover under one of them is %.2g" % (several, worst))
    numbers = {key: _array([target[key] for target in targets]) for key in ("value", "reference", "leftover")}
    contributions = _array([target["contributions"] for target in targets]).reshape(len(targets), len(names))
    rounding = _rounding(_SINGLE, contributions, numbers["reference"], numbers["leftover"])
    tolerances = _array([target.get("tolerance") for target in targets])
    first = records[0]
    at = "" if first["at"] is None else first["at"] + " "
    image = first.get("image")
    return Parts(
        names,
        contributions,
        numbers["reference"],
        numbers["leftover"],
        numbers["value"],
        numpy.where(numpy.isfinite(tolerances), tolerances, rounding),
        checked=True,
        noun=first["noun"],
        row_noun="explained number",
        titles=[at + target["name"] for target in targets],
        notes=notes,
        warnings=warnings,
        standard_errors=_array(spreads[0]["standard_errors"]) if len(targets) == len(spreads) == 1 else None,
        elements=[one["value"] for one in first["components"]] if len(targets) == 1 else None,
        size=(image["height"], image["width"]) if image else None,
    )


def _merged(records: Sequence[Mapping[str, Any]], key: str) -> List[str]:
    """The notes of several runs, of which those that differ in their numbers alone are told once."""
    found = [note for record in records for note in record["report"].get(key, [])]
    if len(records) == 1:
        return found
    counts: Dict[str, int] = {}
    for note in found:
        told = str(AddendWarning(note))  # by which it equals others that differ in numbers alone
        counts[told] = counts.get(told, 0) + 1
    return ["%s (so in %d of %d runs)" % (note, count, len(records)) for note, count in counts.items()]


def _of_tokens(given: TokenAttribution) -> Parts:
    matrix = _array(given.group_matrix)
    references, leftovers = _array(given.references), _array(given.leftovers)
    names = given.names if given.groups is None else [group.name for group in given.groups]
    return Parts(
        names,
        matrix,
        references,
        leftovers,
        _array(given.values),
        _rounding(_SINGLE, matrix, references, leftovers),
        checked=True,
        noun="token" if given.groups is None else "group",
        row_noun="row",
        titles=["%s at \u201c%s\u201d" % (given.target, row.strip(" ") or row) for row in given.rows],
        notes=given.notes,
        warnings=given.warnings,
    )


def _of_job(given: JobResults) -> Parts:
    """Reads the rows of a job, without those that were refused."""
    columns: Dict[str, List[Any]] = {name: [] for name in given.columns}
    if len(columns) != len(given.columns):
        raise ValueError("two columns of the results have one name")
    for shard in range(given.shards):
        for own, numbers in zip(columns.values(), given._columns(shard)):
            own.extend(numbers)
    if not given._names:
        raise ValueError("the job was planned without contributions, so there is nothing to draw")
    targets = {target for target, reason in zip(columns["target"], columns["refused"]) if reason is None}
    if len(set(columns["row"])) != len(columns["row"]):
        raise ValueError("the job explains several targets of each row; take the columns of one of them as an array")
    kept = numpy.array([reason is None for reason in columns["refused"]], dtype=bool)
    notes = ["%s (%d rows)" % (one["note"], one["rows"]) for one in given.notes]
    warnings = [text for text, one in zip(notes, given.notes) if one["warning"]]
    if not kept.all():
        notes.insert(0, "%d of %d rows were refused and are not drawn" % ((~kept).sum(), len(kept)))
    contributions = _array([columns[name] for name in given._names]).reshape(len(given._names), len(kept)).T[kept]
    value, reference, leftover = (_array(columns[name])[kept] for name in ("value", "reference", "leftover"))
    title = "output %d" % next(iter(targets)) if len(targets) == 1 and min(targets) >= 0 else "output"
    return Parts(
        list(given._names),
        contributions,
        reference,
        leftover,
        value,
        _rounding(_SINGLE, contributions, reference, leftover),
        checked=True,
        titles=[title] * len(value),
        notes=notes,
        warnings=warnings,
    )


def _of_array(given: Any, value: Any, reference: Any, leftover: Any, dims: Tuple[int, ...]) -> Parts:
    contributions, epsilon = as_numbers(given, "contributions")
    if contributions.ndim not in dims:
        wanted = {(1,): "[features]", (2,): "[rows, features]", (1, 2): "[features] or [rows, features]"}[dims]
        raise ValueError("contributions are %s, these have shape %s" % (wanted, list(contributions.shape)))
    labels = given.columns if _is_frame(given) else given.index if _is_series(given) else None
    if contributions.ndim == 1:
        contributions = contributions[None]
    found = of_numbers(contributions, epsilon, value, reference, leftover)
    return found if labels is None else dataclasses.replace(found, names=[str(label) for label in labels])


def of_numbers(contributions: Any, epsilon: float, value: Any, reference: Any, leftover: Any) -> Parts:
    """Parts from numbers that no result holds.

    Args:
        contributions: ``[rows, parts]``.
        epsilon: the rounding of the type that they had.
        value: one number, one for each row, or None, as for `parts_of`; and so are the two that follow.
        reference: the same.
        leftover: the same.
    """
    values, references, leftovers = (
        _by_row(numbers, word, len(contributions))
        for numbers, word in ((value, "value"), (reference, "reference"), (leftover, "leftover"))
    )
    totals = contributions.sum(1)
    checked = values is not None and references is not None
    if checked:
        if leftovers is None:
            leftovers = values - references - totals
    elif values is not None or references is not None:
        leftovers = numpy.zeros(len(totals)) if leftovers is None else leftovers
        references = values - totals - leftovers if references is None else references
        values = references + totals + leftovers if values is None else values
    elif leftovers is not None:
        raise ValueError("a leftover belongs to a value and a reference: give at least one of them too")
    return Parts(
        ["feature %d" % k for k in range(contributions.shape[1])],
        contributions,
        references,
        leftovers,
        values,
        None if values is None else _rounding(epsilon, contributions, references, leftovers, 1),
        checked=checked,
    )


def _by_row(numbers: Any, word: str, rows: int) -> Any:
    """One number for each row, or the same for all."""
    if numbers is None:
        return None
    own, _ = as_numbers(numbers, word)
    if own.size != 1 and own.shape != (rows,):
        raise ValueError("%s is one number or one for each row, [%d], this has shape %s" % (word, rows, list(own.shape)))
    return numpy.broadcast_to(own.reshape(-1), (rows,)).astype("float64")


def as_numbers(given: Any, what: str) -> Tuple[Any, float]:
    """An array of float64, and the rounding of the type that the numbers have had."""
    if not isinstance(given, Tensor) and hasattr(given, "detach"):
        given = as_tensor(given.detach())
    if isinstance(given, Tensor):
        epsilon = _EPSILONS.get(given.dtype, _DOUBLE)
        if str(given.dtype).startswith("complex"):
            raise TypeError("%s are complex numbers; a figure shows real ones" % what)
        return given.to("float64", "cpu").numpy().copy(), epsilon
    try:
        array = _of_pandas(given) if _is_frame(given) or _is_series(given) else numpy.asarray(given)
        epsilon = float(numpy.finfo(array.dtype).eps) if array.dtype.kind == "f" else _DOUBLE
        # NumPy would make numbers of texts and of dates.
        if array.dtype.kind not in "biufO" or any(isinstance(one, str) for one in array.flat if array.dtype.kind == "O"):
            raise TypeError("they are %s" % ("complex" if array.dtype.kind == "c" else "texts or dates"))
        return array.astype("float64"), epsilon
    except (TypeError, ValueError) as error:
        raise TypeError("%s are no array of numbers but a %s (%s)" % (what, type(given).__name__, error)) from None


def _of_pandas(given: Any) -> Any:
    """A frame or a series as an array; what is missing is NaN."""
    columns = [given.iloc[:, k] for k in range(given.shape[1])] if _is_frame(given) else [given]
    for column in columns:
        # The kind is also known of extension types, such as nullable integers.
        if column.dtype != object and getattr(column.dtype, "kind", "O") not in "biufc":
            raise TypeError('column "%s" is of the type %s: make numbers of it, such as codes' % (column.name, column.dtype))
    if all(isinstance(column.dtype, numpy.dtype) for column in columns):
        return numpy.asarray(given)
    return given.to_numpy(dtype="float64", na_value=math.nan)


def table_of(data: Any, names: Sequence[str], rows: int, explained: Any, column: Optional[int] = None) -> Any:
    """The numbers of the inputs, ``[rows, features]``, beside contributions of that shape. A frame may have its columns in
    another order.

    Args:
        data: the numbers, or with a column those of it alone.
        names: of the features.
        rows: how many there are.
        explained: what the contributions were read from.
        column: the place of the feature whose numbers are wanted, ``[rows]``; all of them unless given.
    """
    _require_order_of(explained, data)
    if _is_frame(data):
        own = [str(name) for name in data.columns]
        if set(own) != set(names) or len(own) != len(names):
            unknown = sorted(set(own) ^ set(names))
            raise ValueError("data has other columns than the contributions: %s" % (
                ", ".join(unknown[:6]) or "%d of them, not %d" % (len(own), len(names))))
        if own != list(names):
            again = [name for name in own if own.count(name) > 1]
            if again:
                raise ValueError(
                    "several columns of data are called %s, and columns stand in another order than the contributions: give "
                    "them in that order" % again[0]
                )
            data = data.iloc[:, [own.index(name) for name in names]]
    numbers, _ = as_numbers(data, "data")
    if column is not None and numbers.shape == (rows,):
        return numbers
    if numbers.shape != (rows, len(names)):
        raise ValueError(
            "data is [rows, features] as the contributions are, %s%s, this has shape %s"
            % ([rows, len(names)], "" if column is None else ", or [%d]" % rows, list(numbers.shape))
        )
    return numbers if column is None else numbers[:, column]


def _require_order_of(explained: Any, data: Any) -> None:
    """Throws where contributions and data have the same rows by their labels, but not in the same order."""
    if (_is_frame(explained) or _is_series(explained)) and (_is_frame(data) or _is_series(data)):
        index, own = explained.index, data.index
        if len(index) == len(own) and not index.equals(own) and index.sort_values().equals(own.sort_values()):
            raise ValueError(
                "the index of data has the rows of the contributions in another order: give data.loc[contributions.index], or "
                "where the rows do stand in one order, both with reset_index(drop=True)"
            )


def _is_frame(given: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(given, pandas.DataFrame)


def _is_series(given: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(given, pandas.Series)


def _number(number: Optional[float]) -> float:
    """A number of a document, in which NaN is null."""
    return math.nan if number is None else number


def _array(numbers: Any) -> Any:
    return numpy.array(numbers, dtype="float64")


def _rounding(epsilon: float, contributions: Any, references: Any, leftovers: Any, depth: int = _DEPTH) -> Any:
    masses = numpy.abs(contributions).sum(1) + numpy.abs(references) + numpy.abs(leftovers)
    return 8 * epsilon * math.sqrt(contributions.shape[1] * depth) * masses
