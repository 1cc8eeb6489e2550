"""Checks JSON against a schema: the part of JSON Schema (draft 7) that case.schema.json uses.

A keyword that this does not know is an error of the schema, so that none is silently not checked.
"""

import re

_TYPES = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
}
_KNOWN = {
    "$ref",
    "additionalProperties",
    "anyOf",
    "const",
    "description",
    "enum",
    "items",
    "minItems",
    "minProperties",
    "minimum",
    "oneOf",
    "pattern",
    "properties",
    "required",
    "type",
}
_AT_THE_TOP = {"$schema", "title", "definitions"}


def problems(value, schema):
    """The faults of a value, as texts that begin with its place; empty if there are none."""
    _refuse_unknown(schema, _KNOWN | _AT_THE_TOP)
    return _check(value, schema, schema, "")


def _refuse_unknown(schema, known=_KNOWN):
    if not isinstance(schema, dict):
        return
    unknown = schema.keys() - known
    if unknown:
        raise ValueError("the schema has keywords that are not checked: %s" % ", ".join(sorted(unknown)))
    inner = [schema.get("items"), schema.get("additionalProperties"), *schema.get("anyOf", []), *schema.get("oneOf", [])]
    for part in [*inner, *schema.get("properties", {}).values(), *schema.get("definitions", {}).values()]:
        _refuse_unknown(part)


def _check(value, schema, root, place):
    if schema is True:
        return []
    found = []

    def say(text):
        found.append("%s: %s" % (place or "the file", text))

    if "$ref" in schema:
        found += _check(value, _definition(root, schema["$ref"]), root, place)
    if "type" in schema and not _TYPES[schema["type"]](value):
        say("%s is no %s" % (_shown(value), schema["type"]))
        return found
    if "const" in schema and value != schema["const"]:
        say("%s is not %r" % (_shown(value), schema["const"]))
    if "enum" in schema and not any(value == known and type(value) is type(known) for known in schema["enum"]):
        say("%s is none of %s" % (_shown(value), ", ".join(map(str, schema["enum"]))))
    if "minimum" in schema and _TYPES["number"](value) and value < schema["minimum"]:
        say("%s is under %s" % (_shown(value), schema["minimum"]))
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        say("%s does not fit %s" % (_shown(value), schema["pattern"]))
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            say("%d entries are too few" % len(value))
        if "items" in schema:
            for index, item in enumerate(value):
                found += _check(item, schema["items"], root, "%s[%d]" % (place, index))
    if isinstance(value, dict):
        if len(value) < schema.get("minProperties", 0):
            say("%d entries are too few" % len(value))
        for key in schema.get("required", []):
            if key not in value:
                say("lacks %s" % key)
        known = schema.get("properties", {})
        others = schema.get("additionalProperties", True)
        for key, item in value.items():
            inside = "%s.%s" % (place, key) if place else key
            if key in known:
                found += _check(item, known[key], root, inside)
            elif others is False:
                say("has no %s; known are %s" % (key, ", ".join(sorted(known))))
            else:
                found += _check(item, others, root, inside)
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            found += _choose(keyword, value, schema[keyword], root, place)
    return found


def _choose(keyword, value, choices, root, place):
    # Most of a case file are numbers, which fit the first choice; what other choices lack of it is of no interest.
    if keyword == "anyOf":
        for choice in choices:
            if _impossible(value, choice, root):
                continue
            if not _check(value, choice, root, place):
                return []
    wrong = [_check(value, choice, root, place) for choice in choices]
    fitting = sum(not problem for problem in wrong)
    if fitting == 1 or (fitting > 1 and keyword == "anyOf"):
        return []
    if fitting > 1:
        return ["%s: %s fits %d choices, it has to be one" % (place, _shown(value), fitting)]
    # That which came furthest says most: its problem lies deepest.
    return max(wrong, key=lambda problem: max(len(text.split(":")[0]) for text in problem))


def _impossible(value, schema, root):
    """Whether the type alone rules a choice out."""
    while "$ref" in schema:
        schema = _definition(root, schema["$ref"])
    return "type" in schema and not _TYPES[schema["type"]](value)


def _definition(root, reference):
    kind, _, name = reference.rpartition("/")
    if kind != "#/definitions":
        raise ValueError("the schema refers to %s; only #/definitions/NAME is known" % reference)
    return root["definitions"][name]


def _shown(value):
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
