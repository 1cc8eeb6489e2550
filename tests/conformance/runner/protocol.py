"""Frames, requests and answers: the wire side of PROTOCOL.md."""

import struct

from . import safetensors
from .tensor import LONG_NAMES, Tensor, real_dtype

PARTS = ("components", "reference", "leftover", "value")


class ProtocolError(Exception):
    """An answer is not what PROTOCOL.md says."""


def frame(blob):
    return struct.pack("<I", len(blob)) + blob


def lines(entries):
    """A list as text: an entry a line, fields between tabs."""
    return "\n".join("\t".join(entry) if isinstance(entry, (tuple, list)) else entry for entry in entries)


def unlines(text):
    return text.split("\n") if text else []


def fields(text, count):
    """The entries of a list, each with so many fields."""
    entries = [tuple(line.split("\t")) for line in unlines(text)]
    for entry in entries:
        if len(entry) != count:
            raise ProtocolError("%r has not %d fields" % ("\t".join(entry), count))
    return entries


def number(value):
    """A floating-point number as the digits of its bits."""
    return struct.pack(">d", value).hex()


def number_of(text):
    try:
        return struct.unpack(">d", bytes.fromhex(text))[0]
    except (ValueError, struct.error):
        raise ProtocolError("%r is no number" % text) from None


class Request:
    """A request to a testee. Two requests of the same content are the same, unless `nonce` tells them apart."""

    __slots__ = ("entries", "tensors", "nonce", "_key")

    def __init__(self, verb, entries=(), tensors=(), nonce=""):
        self.entries = {"verb": verb}
        self.entries.update((key, text) for key, text in dict(entries).items() if text != "")
        self.tensors = {name: tensor.on_the_wire() for name, tensor in dict(tensors).items()}
        complex_names = [name for name, tensor in dict(tensors).items() if tensor.dtype.startswith("c")]
        if complex_names:
            self.entries["complex"] = lines(complex_names)
        self.nonce = nonce
        self._key = None

    @property
    def verb(self):
        return self.entries["verb"]

    @property
    def key(self):
        if self._key is None:
            self._key = (
                self.nonce,
                tuple(sorted(self.entries.items())),
                tuple((name, tensor.dtype, tensor.shape, tensor.raw) for name, tensor in sorted(self.tensors.items())),
            )
        return self._key

    def again(self, nonce):
        """A copy of the request, to be executed once more."""
        other = Request.__new__(Request)
        other.entries, other.tensors, other.nonce, other._key = self.entries, self.tensors, nonce, None
        return other

    def in_float64(self, dtype):
        """The request with all numbers of a dtype in float64."""
        dtype, other = real_dtype(dtype), Request.__new__(Request)
        other.tensors = {name: Tensor("f64", tensor.shape, tensor.numbers) if tensor.dtype == dtype else tensor
                         for name, tensor in self.tensors.items()}
        other.entries = dict(self.entries)
        if "model_dtype" in other.entries:
            other.entries["model_dtype"] = LONG_NAMES["f64"]
        if "args" in other.entries:
            arguments = fields(other.entries["args"], 3)
            other.entries["args"] = lines((kind, name, LONG_NAMES["f64"]) if (kind, value) == ("dtype", LONG_NAMES[dtype])
                                          else (kind, name, value) for kind, name, value in arguments)
        other.nonce, other._key = self.nonce, None
        return other

    def encode(self, identity):
        return frame(safetensors.encode(self.tensors, dict(self.entries, id=str(identity))))


class Result:
    """One result of a call or a run."""

    __slots__ = ("kind", "name", "parts")

    def __init__(self, kind, name, parts):
        self.kind = kind
        self.name = name
        self.parts = parts  # of a composition by their names; else "tensor" or "number"

    @property
    def tensor(self):
        return self.parts["tensor"]

    def __getattr__(self, part):
        try:
            return self.parts[part]
        except KeyError:
            raise ProtocolError("a result lacks its %s" % part) from None


class Answer:
    """The answer of a testee."""

    def __init__(self, blob):
        try:
            self.tensors, self.entries = safetensors.decode(blob)
        except safetensors.Malformed as error:
            raise ProtocolError("the answer is no safetensors: %s" % error) from None
        for name in unlines(self.entries.get("complex", "")):
            try:
                self.tensors[name] = self.tensors[name].as_complex()
            except (KeyError, ValueError) as error:
                raise ProtocolError("complex tensor %s: %s" % (name, error)) from None
        self._results = None

    @property
    def code(self):
        return self.entries.get("code", "")

    @property
    def message(self):
        return self.entries.get("message", "")

    def tensor(self, name):
        try:
            return self.tensors[name]
        except KeyError:
            raise ProtocolError("the answer lacks the tensor %s" % name) from None

    @property
    def results(self):
        if self._results is None:
            self._results = [self._result(*entry) for entry in fields(self.entries.get("results", ""), 3)]
        return self._results

    def _result(self, kind, name, value):
        if kind == "composition":
            begin = value + "."
            parts = {key[len(begin) :]: tensor for key, tensor in self.tensors.items() if key.startswith(begin)}
            return Result(kind, name, parts)
        if kind == "tensor":
            return Result(kind, name, {"tensor": self.tensor(value)})
        if kind == "number":
            return Result(kind, name, {"number": number_of(value)})
        if kind == "none":
            return Result(kind, name, {})
        raise ProtocolError("no kind of result is called %r" % kind)

    @property
    def report(self):
        return {key: number_of(text) for key, text in fields(self.entries.get("report", ""), 2)}

    def payload(self):
        return dict(fields(self.entries.get("payload", ""), 2))
