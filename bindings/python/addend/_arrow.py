"""The structs of the Arrow C data interface, which no version changes, and tables that are given away through them."""

import ctypes
from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Sequence

from . import _native
from ._errors import ResourceExhausted


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


class Stream(ctypes.Structure):
    pass


Release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_GetSchema = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Schema))
_GetNext = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Array))
# A pointer, as a `c_char_p` that a callback returns would be copied from.
_GetLastError = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(Stream))

Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_void_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
    ("dictionary", ctypes.POINTER(Schema)),
    ("release", Release),
    ("private_data", ctypes.c_void_p),
]
Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))),
    ("dictionary", ctypes.POINTER(Array)),
    ("release", Release),
    ("private_data", ctypes.c_void_p),
]
Stream._fields_ = [
    ("get_schema", _GetSchema),
    ("get_next", _GetNext),
    ("get_last_error", _GetLastError),
    ("release", Release),
    ("private_data", ctypes.c_void_p),
]

STRUCT = b"+s"
STREAM = b"arrow_array_stream"

_NULLABLE = 2
_EIO = 5

# Offsets of texts are int32.
_MOST_BYTES = 2**31 - 1


class Column(NamedTuple):
    """A column of a batch. buffers: as Arrow lays them out for the format, None for a bitmap that is left out."""

    buffers: Sequence[Any]
    nulls: int = 0


class Field(NamedTuple):
    """A column's name and its format in Arrow: ``"g"`` for float64, ``"l"`` for int64, ``"u"`` for texts."""

    name: str
    format: str


class Batch(NamedTuple):
    rows: int
    columns: Sequence[Column]


def validity(there: Sequence[bool]) -> Column:
    """A column's bitmap, alone, of which rows are not null; None in place of one that is all ones."""
    nulls = len(there) - sum(there)
    if not nulls:
        return Column((None,))
    bitmap = bytearray((len(there) + 7) // 8)
    for k, own in enumerate(there):
        if own:
            bitmap[k >> 3] |= 1 << (k & 7)
    return Column((bitmap,), nulls)


def texts(values: Sequence[Optional[str]]) -> Column:
    """A column of texts, None for null. Raises ResourceExhausted for texts that are too long together."""
    encoded = [b"" if value is None else value.encode("utf-8") for value in values]
    size = sum(map(len, encoded))
    if size > _MOST_BYTES:
        raise ResourceExhausted("a column of texts has %d bytes, of %d at most; plan more shards" % (size, _MOST_BYTES))
    offsets = (ctypes.c_int32 * (len(values) + 1))()
    end = 0
    for k, text in enumerate(encoded):
        end += len(text)
        offsets[k + 1] = end
    there = validity([value is not None for value in values])
    return Column((*there.buffers, offsets, b"".join(encoded)), there.nulls)


def stream(fields: Sequence[Field], batches: Callable[[], Iterator[Batch]]) -> Any:
    """A capsule with an ``ArrowArrayStream`` of these batches, which are made when they are asked for."""
    own = _Source(fields, batches())
    own.struct.get_schema, own.struct.get_next = _get_schema, _get_next
    own.struct.get_last_error, own.struct.release = _get_last_error, _release_stream
    own.struct.private_data = _keep(own)
    return _native.arrow_stream_capsule(own.struct)


def pointer(capsule: Any, name: bytes) -> int:
    """The address that a capsule of this name holds. Raises ValueError for another capsule."""
    return _get_pointer(capsule, name)


# Prototypes of their own, which nobody else changes.
_get_pointer: Any = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_increment: Any = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_IncRef", ctypes.pythonapi))
_decrement: Any = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(("Py_DecRef", ctypes.pythonapi))


# ---- What C owns of Python: an object is kept by a reference that the struct's release() gives back.


def _keep(value: Any) -> int:
    _increment(value)
    return id(value)


def _kept(address: int) -> Any:
    return ctypes.cast(address, ctypes.py_object).value


class _Source:
    def __init__(self, fields: Sequence[Field], batches: Iterator[Batch]):
        self.fields = fields
        self.batches = batches
        self.error = ctypes.create_string_buffer(b"")
        self.struct = Stream()


class _Held:
    """Keeps alive the objects that a struct points to."""

    def __init__(self, *members: Any):
        self.members = members


def _fill_schema(schema: Any, form: bytes, name: bytes, flags: int, children: Sequence[Any]) -> None:
    pointers = (ctypes.POINTER(Schema) * max(1, len(children)))(*(ctypes.pointer(child) for child in children))
    schema.format, schema.name, schema.metadata, schema.flags = form, name, None, flags
    schema.n_children, schema.children, schema.dictionary = len(children), pointers, None
    schema.release = _release_schema
    schema.private_data = _keep(_Held(form, name, pointers, list(children)))


def _fill_array(array: Any, rows: int, column: Column, children: Sequence[Any]) -> None:
    memory = []
    for buffer in column.buffers:
        if buffer is None:
            memory.append(None)
        elif isinstance(buffer, ctypes.Array):
            memory.append(buffer)
        else:
            memory.append((ctypes.c_char * max(1, len(buffer))).from_buffer_copy(bytes(buffer) or b"\0"))
    addresses = (ctypes.c_void_p * max(1, len(memory)))(*(own if own is None else ctypes.addressof(own) for own in memory))
    pointers = (ctypes.POINTER(Array) * max(1, len(children)))(*(ctypes.pointer(child) for child in children))
    array.length, array.null_count, array.offset = rows, column.nulls, 0
    array.n_buffers, array.n_children = len(memory), len(children)
    # The memory of a consumer holds anything, so that every field has to be written.
    array.buffers, array.children, array.dictionary = addresses, pointers, None
    array.release = _release_array
    array.private_data = _keep(_Held(memory, addresses, pointers, list(children)))


def _release(kind: Any) -> Any:
    def release(address: int) -> None:
        struct = kind.from_address(address)
        # A consumer may have taken children for itself, and says so by the same mark.
        for k in range(struct.n_children):
            child = struct.children[k].contents
            if child.release:
                child.release(ctypes.addressof(child))
        held = struct.private_data
        struct.release = Release()
        _decrement(held)

    return Release(release)


_release_schema = _release(Schema)
_release_array = _release(Array)


def _told(source: _Source, error: BaseException) -> int:
    source.error = ctypes.create_string_buffer(str(error).encode("utf-8", "replace"))
    return _EIO


@_GetSchema
def _get_schema(own: Any, out: Any) -> int:
    source = _kept(own.contents.private_data)
    try:
        children = []
        for field in source.fields:
            children.append(Schema())
            _fill_schema(children[-1], field.format.encode("ascii"), field.name.encode("utf-8"), _NULLABLE, [])
        _fill_schema(out.contents, STRUCT, b"", 0, children)
        return 0
    except BaseException as error:
        return _told(source, error)


@_GetNext
def _get_next(own: Any, out: Any) -> int:
    source = _kept(own.contents.private_data)
    try:
        batch = next(source.batches, None)
        if batch is None:
            # The end.
            ctypes.memset(out, 0, ctypes.sizeof(Array))
            return 0
        children: List[Any] = []
        for column in batch.columns:
            children.append(Array())
            _fill_array(children[-1], batch.rows, column, [])
        _fill_array(out.contents, batch.rows, Column((None,)), children)
        return 0
    except BaseException as error:
        return _told(source, error)


@_GetLastError
def _get_last_error(own: Any) -> Any:
    return ctypes.addressof(_kept(own.contents.private_data).error)


@Release
def _release_stream(address: int) -> None:
    struct = Stream.from_address(address)
    held = struct.private_data
    struct.release = Release()
    _decrement(held)
