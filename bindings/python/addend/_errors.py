"""Errors of Addend as exceptions that are also those that Python programs expect."""

import enum
from typing import Dict, Mapping, Optional


class Code(enum.IntEnum):
    """The canonical codes of gRPC, as far as Addend uses them."""

    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13


class Error(RuntimeError):
    """Base of all exceptions of Addend.

    Attributes:
        code: one of `Code`.
        message: one line that says what to do.
        detail: where in C++ it happened, if the context asked for it (``Context(detail=True)``), else ``""``.
        payload: what the message says, as data: ``"op"``, ``"op_index"``, ``"module_path"``, ``"function"``,
            ``"file"``, ``"line"`` and ``"parameters"`` of the operator to blame, as far as they are known.
    """

    code = Code.UNKNOWN

    def __init__(
        self, message: str = "", *, code: Optional[int] = None, detail: str = "", payload: Mapping[str, str] = {}
    ):
        super().__init__(message)
        if code is not None:
            self.code = Code(code) if code in Code._value2member_map_ else Code.UNKNOWN
        self.message = message
        self.detail = detail
        self.payload: Dict[str, str] = dict(payload)

    # Not KeyError's, which quotes the message.
    def __str__(self) -> str:
        return self.message

    def __reduce__(self):
        return _restore, (type(self), self.message, int(self.code), self.detail, self.payload)


class InvalidArgument(Error, ValueError):
    """An argument is of no use; the message says which and why."""

    code = Code.INVALID_ARGUMENT


class OutOfRange(Error, IndexError):
    """An index is beyond the end."""

    code = Code.OUT_OF_RANGE


class NotFound(Error, KeyError):
    """There is no file, name or operator like that."""

    code = Code.NOT_FOUND


class Unimplemented(Error, NotImplementedError):
    """An operator without a rule, or something that LibTorch does not have."""

    code = Code.UNIMPLEMENTED


class ResourceExhausted(Error, MemoryError):
    """Memory ran out."""

    code = Code.RESOURCE_EXHAUSTED


class FailedPrecondition(Error):
    """Not now: something has to be done or undone first."""

    code = Code.FAILED_PRECONDITION


class Cancelled(Error):
    """A `Cancellation` ended the run."""

    code = Code.CANCELLED


_CLASSES = {
    cls.code: cls
    for cls in (
        InvalidArgument,
        OutOfRange,
        NotFound,
        Unimplemented,
        ResourceExhausted,
        FailedPrecondition,
        Cancelled,
    )
}


def from_status(code: int, message: str, detail: str, payload: Mapping[str, str]) -> Error:
    """The exception for a failed status; the native module calls this."""
    return _restore(_CLASSES.get(code, Error), message, code, detail, payload)


def _restore(cls, message, code, detail, payload):
    return cls(message, code=code, detail=detail, payload=payload)
