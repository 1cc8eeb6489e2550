"""ONNX models as bytes: what make_onnx.py and tests need of the format, in plain Python.

Field numbers are those of the messages in onnx.proto: ModelProto, GraphProto, NodeProto, AttributeProto, TensorProto,
ValueInfoProto.
"""

import struct

FLOAT, INT64, BOOL = 1, 7, 9

# AttributeProto's field of a value, and its number among the types of attributes.
_ATTRIBUTES = {"f": (2, 1), "i": (3, 2), "s": (4, 3), "g": (6, 5), "floats": (7, 6), "ints": (8, 7)}

_VARINT, _BYTES, _FIXED32 = 0, 2, 5


def _varint(number):
    number &= 2**64 - 1
    written = bytearray()
    while number >= 0x80:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(written + bytes([number]))


def _integer(field, number):
    return _varint(field << 3 | _VARINT) + _varint(number)


def _bytes(field, content):
    content = content.encode() if isinstance(content, str) else content
    return _varint(field << 3 | _BYTES) + _varint(len(content)) + content


def _attribute(name, value):
    if isinstance(value, Graph):
        kind, data = "g", _bytes(6, value.message())
    elif isinstance(value, str):
        kind, data = "s", _bytes(4, value)
    elif isinstance(value, int):
        kind, data = "i", _integer(3, value)
    elif isinstance(value, float):
        kind, data = "f", _varint(2 << 3 | _FIXED32) + struct.pack("<f", value)
    elif all(isinstance(element, int) for element in value):
        kind, data = "ints", _bytes(8, b"".join(map(_varint, value)))
    else:
        kind, data = "floats", _bytes(7, struct.pack("<%df" % len(value), *value))
    return _bytes(1, name) + data + _integer(20, _ATTRIBUTES[kind][1])


def _entry(key, value):
    return _bytes(1, key) + _bytes(2, value)


def _value_info(name, dtype, dims):
    shape = b"".join(_bytes(1, _bytes(2, dim) if isinstance(dim, str) else _integer(1, dim)) for dim in dims)
    return _bytes(1, name) + _bytes(2, _bytes(1, _integer(1, dtype) + _bytes(2, shape)))


class Graph:
    """A graph that is written node by node. `inside`: the names of its values begin with it; a graph in a node needs
    other names than the graph around it."""

    def __init__(self, name, inside=""):
        self.name = name
        self._inside = inside
        self._nodes, self._tensors, self._inputs, self._outputs = [], {}, [], []
        self._counts = {}

    def input(self, name, dims, dtype=FLOAT):
        """An input; a size that is a text is symbolic."""
        self._inputs.append(_value_info(self._inside + name, dtype, dims))
        return self._inside + name

    def output(self, name, dims, dtype=FLOAT):
        self._outputs.append(_value_info(name, dtype, dims))

    def floats(self, name, dims, numbers):
        """A tensor of float32."""
        return self._tensor(name, FLOAT, dims, struct.pack("<%df" % len(numbers), *numbers))

    def floats_elsewhere(self, name, dims, location, offset=0):
        """A tensor of float32 whose bytes lie in another file."""
        name = self._inside + name
        length = 4
        for size in dims:
            length *= size
        entries = {"location": location, "offset": str(offset), "length": str(length)}
        message = _bytes(1, b"".join(map(_varint, dims))) + _integer(2, FLOAT) + _bytes(8, name)
        message += b"".join(_bytes(13, _entry(key, value)) for key, value in entries.items()) + _integer(14, 1)
        self._tensors[name] = message
        return name

    def integers(self, name, numbers):
        """A vector of int64; of one number: a scalar."""
        dims, numbers = ([], [numbers]) if isinstance(numbers, int) else ([len(numbers)], numbers)
        return self._tensor(name, INT64, dims, struct.pack("<%dq" % len(numbers), *numbers))

    def node(self, op, inputs, module="", outputs=1, to=None, metadata=None, **attributes):
        """Adds a node of a module ("encoder.layers.0"), named as PyTorch's exporter names it; returns the names of what
        it makes: one, or a list. `to`: the name of its one result; `metadata`: texts by their keys."""
        prefix = "".join("/" + part for part in _steps(module)) + "/" + op
        number = self._counts.get(prefix, 0)
        self._counts[prefix] = number + 1
        name = self._inside + (prefix if number == 0 else "%s_%d" % (prefix, number))
        made = [to] if to else ["%s_output_%d" % (name, k) for k in range(outputs)]
        message = b"".join([_bytes(1, given) for given in inputs] + [_bytes(2, result) for result in made])
        message += _bytes(3, name) + _bytes(4, op)
        message += b"".join(_bytes(5, _attribute(key, value)) for key, value in attributes.items())
        message += b"".join(_bytes(9, _entry(key, value)) for key, value in (metadata or {}).items())
        self._nodes.append(message)
        return made[0] if outputs == 1 else made

    def message(self):
        fields = [(1, self._nodes), (2, [self.name]), (5, self._tensors.values())]
        fields += [(11, self._inputs), (12, self._outputs)]
        return b"".join(_bytes(field, message) for field, messages in fields for message in messages)

    def _tensor(self, name, dtype, dims, data):
        name = self._inside + name
        message = _bytes(1, b"".join(map(_varint, dims))) if dims else b""
        message += _integer(2, dtype) + _bytes(8, name) + _bytes(9, data)
        if self._tensors.setdefault(name, message) != message:
            raise ValueError("two tensors are called %s" % name)
        return name


def _steps(module):
    """The steps of a module path: a number belongs to the list before it, "encoder", "layers.0"."""
    steps = []
    for part in module.split(".") if module else []:
        if part.isdigit() and steps:
            steps[-1] += "." + part
        else:
            steps.append(part)
    return steps


def model(graph, opset, ir_version):
    """The bytes of a file."""
    operators = _bytes(1, "") + _integer(2, opset)
    return _integer(1, ir_version) + _bytes(2, "addend") + _bytes(7, graph.message()) + _bytes(8, operators)
