"""Tables as people keep them: frames of pandas, Arrow tables, and records of NumPy."""

import array
import ctypes
import math
import struct
import sys
from typing import Any, Callable, Iterator, List, Optional, Sequence, Tuple

from . import _arrow, _native
from ._dtype import to_code
from ._notes import warn_of
from ._tensor import Tensor


class Table:
    """Numbers in rows and columns.

    Attributes:
        names: of the columns.
        tensor: ``[rows, columns]``, float32.
    """

    def __init__(self, names: Sequence[Any], columns: Sequence[List[Any]], rows: int):
        """Columns hold numbers, and None where one is missing. Raises ValueError for what is missing, and for what single
        precision does not hold."""
        self.names = tuple(str(name) for name in names)
        if not self.names:
            raise ValueError("the table has no columns")
        for k, name in enumerate(self.names):
            if name in self.names[:k]:
                raise ValueError('two columns are called "%s"' % name)
        # Strides of an array are assigned in C.
        numbers = array.array("f", bytes(4 * rows * len(self.names)))
        for k, (name, values) in enumerate(zip(self.names, columns)):
            own = _single(name, values)
            numbers[k :: len(self.names)] = own
            _warn_of_others(name, values, own)
        self.tensor = Tensor(_native.tensor_copy(numbers, to_code("float32"), [rows, len(self.names)]))


def as_table(value: Any) -> Optional[Table]:
    """The table that a frame of pandas, a structured array of NumPy or anything with the Arrow C interface
    (``__arrow_c_stream__``, ``__arrow_c_array__``) is; None for everything else.

    Raises TypeError for columns of texts, dates and the like, and ValueError for what is missing (null, NaN)."""
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(value, pandas.DataFrame):
        return _from_pandas(value)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray):
        return None if value.dtype.names is None else _from_records(value, numpy)
    if isinstance(value, type):
        return None
    if hasattr(value, "__arrow_c_stream__"):
        return _from_stream(value.__arrow_c_stream__())
    if hasattr(value, "__arrow_c_array__"):
        return _from_arrays(*value.__arrow_c_array__())
    return None


def labelled(tensor: Tensor, like: Any) -> Any:
    """Numbers for each cell of a frame of pandas, as a frame with its index and its columns. None where `like` is none,
    or the numbers are others than one for each cell."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(like, pandas.DataFrame) or tuple(tensor.shape) != like.shape:
        return None
    return pandas.DataFrame(tensor.numpy().copy(), index=like.index, columns=like.columns)


def as_row(value: Any) -> Optional[Table]:
    """Reads a table as `as_table` does, and a series of pandas as a table of one row, as the mean of a frame is."""
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(value, pandas.Series):
        return _from_pandas(value.to_frame().T)
    return as_table(value)


def _single(name: str, values: List[Any]) -> "array.array[float]":
    """A column in single precision, into which all but the largest numbers are rounded."""
    for row, number in enumerate(values):
        if number is None or number != number:
            raise ValueError(
                'column "%s" has no value in row %d (counted from 0); leave the row out, or fill in what the model was '
                "trained with there" % (name, row)
            )
    single = array.array("f", values)
    for row, number in enumerate(single):
        if math.isinf(number):
            raise ValueError('column "%s" has %r in row %d (counted from 0), which is no finite number of float32' % (
                name, values[row], row))
    return single


def is_another(value: Any, single: float) -> bool:
    """Whether single precision makes another number of a value, beyond the rounding that each fraction has: of a whole
    number such as an identifier that is not kept, or 0 of a number that is so small."""
    # Python compares integers with floats exactly.
    return bool(value != single) if isinstance(value, int) else single == 0 and value != 0


def said_of_another(name: str, value: Any, single: float) -> str:
    """The sentence that a reader is told of it."""
    return 'column "%s" is %r, of which float32 makes %s: that is what is explained' % (
        name, value, "%d" % single if isinstance(value, int) else "0"
    )


def _warn_of_others(name: str, values: List[Any], single: Sequence[float]) -> None:
    rows = [row for row, pair in enumerate(zip(values, single)) if is_another(*pair)]
    if rows:
        more = " (in row %d, counted from 0%s)" % (rows[0], " and %d more" % (len(rows) - 1) if len(rows) > 1 else "")
        warn_of([said_of_another(name, values[rows[0]], single[rows[0]]) + more])


def _refuse(name: Any, what: Any) -> TypeError:
    return TypeError('column "%s" holds no numbers but %s; make numbers or one-hot columns of it' % (name, what))


# ---- pandas and NumPy


def _from_pandas(frame: Any) -> Table:
    names, columns = list(frame.columns), []
    for k, name in enumerate(names):
        column = frame.iloc[:, k]
        # The kind is also known of extension types, such as nullable integers.
        if getattr(column.dtype, "kind", "O") not in "biuf":
            raise _refuse(name, column.dtype)
        missing = column.isna().tolist()
        columns.append([None if null else number for number, null in zip(column.tolist(), missing)])
    return Table(names, columns, len(frame))


def _from_records(records: Any, numpy: Any) -> Table:
    if records.ndim > 1:
        raise ValueError("records are a table if they have one dimension, these have %d" % records.ndim)
    records = records.reshape(-1)
    columns = []
    for name in records.dtype.names:
        column = records[name]
        if column.ndim != 1 or column.dtype.kind not in "biuf":
            raise _refuse(name, records.dtype[name])
        # None where it is masked.
        columns.append(column.tolist())
    return Table(records.dtype.names, columns, len(records))


# ---- Arrow

# Formats of numbers -> those of `struct`, which read the same bytes.
_FORMATS = {
    b"c": "b",
    b"C": "B",
    b"s": "h",
    b"S": "H",
    b"i": "i",
    b"I": "I",
    b"l": "q",
    b"L": "Q",
    b"e": "e",
    b"f": "f",
    b"g": "d",
}
_BOOL = b"b"
_KINDS = {
    b"u": "texts",
    b"U": "texts",
    b"v": "texts or bytes",
    b"z": "bytes",
    b"Z": "bytes",
    b"t": "dates or times",
    b"d": "decimals",
}


def _from_stream(capsule: Any) -> Optional[Table]:
    """A stream is read to its end; its capsule releases it. None where it has no columns, as a single one has not."""
    stream = _arrow.Stream.from_address(_arrow.pointer(capsule, _arrow.STREAM))
    schema = _arrow.Schema()
    _require(stream.get_schema(ctypes.byref(stream), ctypes.byref(schema)), stream)
    try:
        if schema.format != _arrow.STRUCT:
            return None
        names, formats = _columns_of(schema)
        columns: List[List[Any]] = [[] for _ in names]
        rows = 0
        while True:
            batch = _arrow.Array()
            _require(stream.get_next(ctypes.byref(stream), ctypes.byref(batch)), stream)
            if not batch.release:
                return Table(names, columns, rows)
            try:
                _read_batch(batch, formats, columns)
                rows += batch.length
            finally:
                batch.release(ctypes.addressof(batch))
    finally:
        schema.release(ctypes.addressof(schema))


def _from_arrays(schema_capsule: Any, array_capsule: Any) -> Optional[Table]:
    """One batch; the capsules release it. None where it has no columns."""
    schema = _arrow.Schema.from_address(_arrow.pointer(schema_capsule, b"arrow_schema"))
    if schema.format != _arrow.STRUCT:
        return None
    batch = _arrow.Array.from_address(_arrow.pointer(array_capsule, b"arrow_array"))
    names, formats = _columns_of(schema)
    columns: List[List[Any]] = [[] for _ in names]
    _read_batch(batch, formats, columns)
    return Table(names, columns, batch.length)


def _require(code: int, stream: Any) -> None:
    if code != 0:
        said = stream.get_last_error(ctypes.byref(stream))
        told = ctypes.string_at(said).decode("utf-8", "replace") if said else ""
        raise ValueError("the Arrow stream failed (%d): %s" % (code, told))


def _columns_of(schema: Any) -> Tuple[List[str], List[bytes]]:
    names, formats = [], []
    for k in range(schema.n_children):
        child = schema.children[k].contents
        name = (child.name or b"").decode("utf-8")
        if child.dictionary:
            raise _refuse(name, "categories")
        if child.format not in _FORMATS and child.format != _BOOL:
            raise _refuse(name, _KINDS.get(child.format[:1], "Arrow's %s" % child.format.decode("ascii", "replace")))
        names.append(name)
        formats.append(child.format)
    return names, formats


def _read_batch(batch: Any, formats: Sequence[bytes], columns: Sequence[List[Any]]) -> None:
    """Appends the numbers of a batch, None for null, to each column."""
    whole = list(_bits(batch.buffers[0], batch.offset, batch.length)) if batch.n_buffers and batch.buffers[0] else None
    for k, (form, column) in enumerate(zip(formats, columns)):
        child = batch.children[k].contents
        # Columns still hold the rows that the batch skips at its beginning.
        begin = child.offset + batch.offset
        values: List[Any]
        if batch.length == 0:
            values = []
        elif form == _BOOL:
            values = list(_bits(child.buffers[1], begin, batch.length))
        else:
            code = _FORMATS[form]
            size = struct.calcsize("=" + code)
            memory = ctypes.string_at(child.buffers[1] + begin * size, batch.length * size)
            values = list(struct.unpack("=%d%s" % (batch.length, code), memory))
        if child.null_count != 0 and child.buffers[0] and batch.length:
            valid = _bits(child.buffers[0], begin, batch.length)
            values = [value if there else None for value, there in zip(values, valid)]
        if whole is not None:
            values = [value if there else None for value, there in zip(values, whole)]
        column.extend(values)


def _bits(address: int, offset: int, count: int) -> Iterator[bool]:
    """Bits of a bitmap, the lowest of each byte first."""
    memory = ctypes.string_at(address, (offset + count + 7) // 8) if count else b""
    return (bool(memory[k >> 3] >> (k & 7) & 1) for k in range(offset, offset + count))
