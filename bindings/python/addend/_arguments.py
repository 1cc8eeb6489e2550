"""Arguments of models: tensors, also in tuples, lists and dicts, and plain values."""

import json
import math
from collections.abc import Mapping
from typing import Any, Dict, List, Optional, Sequence, Tuple

from ._composition import Composition
from ._input import Input


class Plain:
    """A value that a model takes as it is: a list of numbers, for example, which would be taken for a tensor.

    Args:
        value: a number, a bool, text, None, or tuples, lists and dicts of these.
    """

    def __init__(self, value: Any):
        self.value = value

    def __repr__(self) -> str:
        return "Plain(%r)" % (self.value,)


def described(arguments: Sequence[Any]) -> Tuple[List[Tuple[Optional[str], Any]], Optional[str]]:
    """The tensors among the arguments of a model, each with its name where it is given by name; and how they make up the
    arguments, in the JSON of the C interface, or None where every tensor is an argument.

    Args:
        arguments: in their order, or one mapping of them by name.
    """
    named: Dict[Optional[str], Any] = {}
    if len(arguments) == 1 and isinstance(arguments[0], Mapping):
        named = dict(arguments[0])
        arguments = ()
    listed: List[Tuple[Optional[str], Any]] = [(None, value) for value in arguments] + list(named.items())
    if not any(_is_structure(value) for _, value in listed):
        return listed, None
    leaves = _Leaves()
    parts = [(name, leaves.describe(value, name or "")) for name, value in listed]
    structure: Any = dict(parts) if named else [argument for _, argument in parts]
    return [(path or None, value) for path, value in leaves.found], json.dumps(structure)


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float))


def _is_structure(value: Any) -> bool:
    """Whether a model takes it as something else than a tensor. A list of numbers alone is a tensor."""
    if isinstance(value, list):
        return not is_numbers(value)
    return value is None or _is_number(value) or isinstance(value, (str, tuple, Mapping, Plain))


def is_numbers(value: Any) -> bool:
    """Whether it is a number, or lists of nothing else, which are tensors."""
    if isinstance(value, list):
        return all(is_numbers(item) for item in value)
    return _is_number(value)


class _Leaves:
    """Finds the tensors of arguments, and describes the arguments as the C interface has them.

    Attributes:
        found: the tensors in their order, each with its name where it is given by name.
    """

    def __init__(self) -> None:
        self.found: List[Tuple[str, Any]] = []

    def describe(self, value: Any, path: str) -> Any:
        """One argument; `path` is its name where it is given by name."""
        if isinstance(value, list) and is_numbers(value):
            return self._tensor(value, path)
        return self._inner(value, path, False)

    def _inner(self, value: Any, path: str, plain: bool) -> Any:
        if isinstance(value, (Input, Composition)):
            return self._tensor(value, path)
        if isinstance(value, Plain):
            return self._inner(value.value, path, True)
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, int):
            if not -(2**63) <= value < 2**63:
                raise ValueError("%s%d is no 64-bit integer" % (path and path + ": ", value))
            return int(value)
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else {"float": str(float(value))}
        if isinstance(value, tuple):
            return {"tuple": [self._inner(item, _at(path, k), plain) for k, item in enumerate(value)]}
        if isinstance(value, list):
            described: Dict[str, Any] = {
                "list": [self._inner(item, _at(path, k), plain) for k, item in enumerate(value)]
            }
            return described if value else {**described, "type": "Tensor"}
        if isinstance(value, Mapping):
            for key in value:
                if not isinstance(key, str):
                    raise TypeError("%sthe keys of a dict are text, not %r" % (path and path + ": ", key))
            described = {"dict": {key: self._inner(item, _at(path, key), plain) for key, item in value.items()}}
            return described if value else {**described, "type": "Tensor"}
        if plain:
            raise TypeError("a plain value is a number, text or None, not a %s" % type(value).__name__)
        return self._tensor(value, path)

    def _tensor(self, value: Any, path: str) -> Any:
        self.found.append((path, value))
        return {"tensor": len(self.found) - 1}


def _at(path: str, key: Any) -> str:
    return "%s.%s" % (path, key) if path else ""
