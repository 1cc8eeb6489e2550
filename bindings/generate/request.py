"""The options of requests, as the generators of all bindings read them from core/explain/request_options.txt."""

import collections
import re

import blocks  # beside this file

Option = collections.namedtuple("Option", "key type default calls refused names parameter says more values")
Option.__doc__ = """One option.

type: "flag", "bytes", "seconds", "text", or the name of an enumeration.
calls: those that look at it; refused: those that refuse it.
names: maps a face ("Java") to the name that it has there, "-" where it has none.
values: pairs of a value of the enumeration and what it means; empty for other types.
"""


def read(path):
    """All options in the order of the list."""
    return [_option(key, entries) for key, entries in blocks.read(path)]


def name_in(option, face, spell):
    """The name of an option in a face: its own, or `spell` of its key."""
    return option.names.get(face) or spell(option.key)


def told(option, spell, with_values=True):
    """Sentences on an option, in which `spell` of a name stands where the list has it in backticks.

    spell: of the name of a call, of an option or of a word of a report.
    """
    says = [option.says] + ([option.more] if option.more else [])
    says += ['"%s": %s' % (value, means[:1].lower() + means[1:]) for value, means in option.values if with_values]
    for verb, calls in (("Looked at by", option.calls), ("Refused by", option.refused)):
        spelled = [spell(call) for call in calls]
        known = [call for call in spelled if call]
        if known:
            says.append("%s %s." % (verb, ", ".join(known[:-2] + [" and ".join(known[-2:])])))
    return [spelled_out(text, spell) for text in says]


def spelled_out(text, spell):
    """A text with `spell` of each name in place of the name in backticks."""
    return re.sub("`([^`]*)`", lambda match: spell(match.group(1)), text)


def _option(key, entries):
    said = dict(entries)
    names = dict(pair.split(" ") for pair in said["names"].split("; ")) if "names" in said else {}
    kind = said["type"].replace("choice of ", "")
    calls, refused = (said[head].split(", ") if head in said else [] for head in ("calls", "refused"))
    values = [(head[6:], text) for head, text in entries if head.startswith("value ")]
    parameter, more = names.get("parameter", key), said.get("more", "")
    return Option(key, kind, said["default"], calls, refused, names, parameter, said["says"], more, values)
