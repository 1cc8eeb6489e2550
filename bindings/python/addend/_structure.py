"""Tensors inside of tuples, lists, dicts and dataclasses."""

import copy
import dataclasses
from collections.abc import Mapping, MutableMapping
from typing import Any, Callable, Sequence

Leaf = Callable[[Any, str], Any]


class Place:
    """Stands for a tensor in a structure: one of several, by its index."""

    def __init__(self, index: int):
        self.index = index


def filled(structure: Any, tensors: Sequence[Any]) -> Any:
    """Puts tensors into their places in a structure."""
    return map_leaves(lambda leaf, _: tensors[leaf.index] if isinstance(leaf, Place) else leaf, structure, "")


def map_leaves(function: Leaf, value: Any, path: str) -> Any:
    """Replaces each leaf of a structure by ``function(leaf, path)``; parts that do not change are not copied.

    Knows tuples (named ones too), lists, dicts and other mappings, and dataclasses, with the classes that derive from
    them: what models take and return. Paths are ``"output.hidden_states.3"``.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _map_dataclass(function, value, path)
    if isinstance(value, Mapping):
        changes = _changes(function, value.items(), path)
        if changes:
            if not isinstance(value, MutableMapping):
                raise TypeError("%s: a %s cannot be given other values; pass a dict" % (path, type(value).__name__))
            value = copy.copy(value)
            for key, leaf in changes.items():
                value[key] = leaf
        return value
    if isinstance(value, (list, tuple)):
        changes = _changes(function, enumerate(value), path)
        if not changes:
            return value
        items = [changes.get(index, item) for index, item in enumerate(value)]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return function(value, path)


def _map_dataclass(function: Leaf, value: Any, path: str) -> Any:
    fields = [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
    changes = _changes(function, fields, path)
    if changes:
        # Not dataclasses.replace(), which runs __init__: that may look into its arguments.
        value = copy.copy(value)
        frozen = type(value).__dataclass_params__.frozen
        for name, leaf in changes.items():
            object.__setattr__(value, name, leaf) if frozen else setattr(value, name, leaf)
    return value


def _changes(function: Leaf, items: Any, path: str) -> dict:
    changed = {}
    for key, item in items:
        leaf = map_leaves(function, item, "%s.%s" % (path, key) if path else str(key))
        if leaf is not item:
            changed[key] = leaf
    return changed
