"""Reads the fields of reports and checks from core/explain/fields.txt, for the generators of all bindings."""

import collections
import re

import blocks  # beside this file

Field = collections.namedtuple("Field", "name type names says words")
Field.__doc__ = """One field of a record.

type: as in the list; "list of Finding".
names: maps a face ("Java") to the name that it has there.
words: pairs of a value and what it says; empty where any value may stand.
"""

Record = collections.namedtuple("Record", "name in_python says fields")


def read(path):
    """All records by their names, in the order of the list."""
    records = collections.OrderedDict()
    for head, entries in blocks.read(path):
        name, _, faces = head.partition(" in ")
        records[name] = Record(name, faces == "Python", dict(entries)["says"], _fields(entries))
    return records


def name_in(field, face, spell):
    """The name of a field in a face: its own, or `spell` of it."""
    return field.names.get(face) or spell(field.name)


def words(field, quote):
    """'"graph" (another run ...), "value" (...) or "guard" (...)', with `quote` for each value."""
    told = ["%s (%s)" % (quote(word), says) for word, says in field.words]
    return ", ".join(told[:-1]) + " or " + told[-1]


def _fields(entries):
    fields = []
    for head, text in entries:
        match = re.fullmatch(r"field (\w+) \(([^;)]+)((?:; [^;)]+)*)\)", head)
        if match:
            name, kind, faces = match.groups()
            names = dict(pair.split(" ") for pair in faces.split("; ")[1:])
            fields.append(Field(name, kind, names, text, []))
        elif head.startswith("word ") and fields:
            fields[-1].words.append((head[5:], text))
        elif head != "says":
            raise blocks.ListError("neither a field nor a word: " + head)
    return fields
