"""The safetensors format: bytes of tensors behind a header in JSON."""

import json
import struct

from .tensor import SIZES, Tensor, count

_NAMES = {
    "f64": "F64",
    "f32": "F32",
    "f16": "F16",
    "bf16": "BF16",
    "i64": "I64",
    "i32": "I32",
    "i16": "I16",
    "i8": "I8",
    "u8": "U8",
    "bool": "BOOL",
}
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}


class Malformed(ValueError):
    """Not what the format allows."""


def encode(tensors, metadata):
    """Bytes of tensors by name, and of metadata, both dicts. Larger elements come first, so that all are aligned."""
    header = {}
    if metadata:
        header["__metadata__"] = metadata
    chunks = []
    end = 0
    for name in sorted(tensors, key=lambda name: -SIZES[tensors[name].dtype]):
        tensor = tensors[name]
        begin, end = end, end + len(tensor.raw)
        header[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [begin, end]}
        chunks.append(tensor.raw)
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    text += b" " * (-len(text) % 8)
    return b"".join([struct.pack("<Q", len(text)), text] + chunks)


def decode(data):
    """Tensors by name, and the metadata. Raises Malformed."""
    if len(data) < 8:
        raise Malformed("%d bytes are no safetensors" % len(data))
    (size,) = struct.unpack_from("<Q", data)
    if size > len(data) - 8:
        raise Malformed("a header of %d bytes in %d" % (size, len(data)))
    try:
        header = json.loads(data[8 : 8 + size].decode("utf-8"))
    except ValueError as error:
        raise Malformed("the header is no JSON: %s" % error) from None
    if not isinstance(header, dict):
        raise Malformed("the header is no object")
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in metadata.values()):
        raise Malformed("the metadata is no object of texts")
    tensors = {}
    used = 0
    body = data[8 + size :]
    for name, entry in header.items():
        try:
            dtype, shape, (begin, end) = _DTYPES[entry["dtype"]], entry["shape"], entry["data_offsets"]
        except (KeyError, TypeError, ValueError) as error:
            raise Malformed("the entry of %s lacks or has a strange %s" % (name, error)) from None
        if not 0 <= begin <= end <= len(body) or end - begin != count(shape) * SIZES[dtype]:
            raise Malformed("%s has %s%s at [%d, %d) of %d bytes" % (name, dtype, shape, begin, end, len(body)))
        tensors[name] = Tensor(dtype, shape, raw=body[begin:end])
        used += end - begin
    if used != len(body):
        raise Malformed("%d of %d bytes belong to tensors" % (used, len(body)))
    return tensors, metadata
