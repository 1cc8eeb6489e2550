"""The options of requests, as the generators of all bindings read them from core/explain/request_options.txt."""

import collections
import re

import blocks  # beside this file

Option = collections.namedtuple("Option", "key type default calls refused words names parameter says more")
Option.__doc__ = """One option.

type: "flag", "bytes", "seconds", "text", or the name of an enumeration, of which `words` are the values.
calls: those that look at it; refused: those that refuse it.
names: maps a face ("Java") to the name that it has there, "-" where it has none.
"""


def read(path):
    """All options in the order of the list."""
    return [_option(key, dict(entries)) for key, entries in blocks.read(path)]


def name_in(option, face, spell):
    """The name of an option in a face: its own, or `spell` of its key."""
    return option.names.get(face) or spell(option.key)


def told(option, spell):
    """Sentences on an option, in which `spell` of a name stands where the list has it in backticks.

    spell: of the name of a call, of an option or of a word of a report.
    """
    says = [option.says] + ([option.more] if option.more else [])
    for verb, calls in (("Looked at by", option.calls), ("Refused by", option.refused)):
        spelled = [spell(call) for call in calls]
        known = [call for call in spelled if call]
        if known:
            says.append("%s %s." % (verb, ", ".join(known[:-2] + [" and ".join(known[-2:])])))
    return [re.sub("`([^`]*)`", lambda match: spell(match.group(1)), text) for text in says]


def _option(key, said):
    names = dict(pair.split(" ") for pair in said["names"].split("; ")) if "names" in said else {}
    kind = said["type"].replace("choice of ", "")
    calls, refused, words = (said[head].split(", ") if head in said else [] for head in ("calls", "refused", "words"))
    more = said.get("more", "")
    return Option(key, kind, said["default"], calls, refused, words, names, names.get("parameter", key), said["says"], more)
