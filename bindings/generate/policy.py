"""The choices of a policy, as the generators of all bindings read them from core/base/policy_choices.txt."""

import collections
import re

import blocks  # beside this file

Value = collections.namedtuple("Value", "name number default says")
Value.__doc__ = """One value of a key.

number: what the number is that it may take in brackets, "threshold"; "" where it takes none.
default: that number where none is given, as text.
"""

Key = collections.namedtuple("Key", "name kind enum default scope since says about_type unset values")
Key.__doc__ = """One key.

kind: "one", "some", "whole" or "number".
enum: the name of the enumeration; "" for numbers.
about_type: what is said of the enumeration, a list of paragraphs.
unset: (word, what it comes to), None where nothing chosen has no word of its own.
values: empty for numbers; where another key has the same enumeration, those of that key.
"""


def read(path):
    """All keys in the order of the list."""
    keys = [_key(name, entries) for name, entries in blocks.read(path)]
    values = {key.enum: key.values for key in reversed(keys) if key.values}
    return [key._replace(values=values[key.enum]) if key.enum else key for key in keys]


def enumerations(keys):
    """The keys that bring an enumeration, each enumeration once."""
    first = collections.OrderedDict()
    for key in keys:
        if key.enum:
            first.setdefault(key.enum, key)
    return list(first.values())


def choices(key):
    """Texts that a key accepts, the default first: ["auto", "faithful", "fast"]; of coefficients the one that is no
    kind: "none"."""
    values = ["none"] if key.kind == "some" else [spelled(value) for value in key.values]
    return [key.default] + [value for value in values if value != key.default]


def spelled(value):
    """With the number that it takes where none is given: "hybrid(0.15)"."""
    return "%s(%s)" % (value.name, value.default) if value.number else value.name


def _key(name, entries):
    said = dict(entries)
    kind, _, enum = said["type"].partition(" of ")
    unset = [(head[6:], text) for head, text in entries if head.startswith("unset ")]
    values = [_value(head[6:], text) for head, text in entries if head.startswith("value ")]
    return Key(
        name,
        kind.split()[0],
        enum,
        said["default"],
        said["scope"],
        said["since"],
        said["says"],
        [said["enumeration"]] if "enumeration" in said else [said[head] for head in ("says", "more") if head in said],
        unset[0] if unset else None,
        values,
    )


def _value(head, says):
    match = re.fullmatch(r"(\w+)(?: \((\w+) (\S+)\))?", head)
    if not match:
        raise blocks.ListError("not a value: " + head)
    name, number, default = match.groups()
    return Value(name, number or "", default or "", says)
