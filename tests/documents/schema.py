"""JSON Schema, draft 2020-12: those of its words that docs/schemas uses."""

import json
import os
import re

# Words that say nothing about a value.
_REMARKS = {"$schema", "$id", "$defs", "title", "description"}
_TYPES = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def read(text):
    """A document; NaN and Infinity, which are no JSON, are refused."""

    def refuse(constant):
        raise ValueError("%s is no JSON" % constant)

    return json.loads(text, parse_constant=refuse)


class Schemas:
    """The schemas of a folder."""

    def __init__(self, folder):
        self._schemas = {}
        for name in sorted(os.listdir(folder)):
            if name.endswith(".schema.json"):
                with open(os.path.join(folder, name)) as file:
                    self._schemas[name] = read(file.read())

    def names(self):
        return list(self._schemas)

    def of(self, name):
        return self._schemas[name]

    def named_by(self, document):
        """The name of the schema that a document's `format` names."""
        if document["format"] == "addend program":  # as the first files of programs said it
            return "program.schema.json"
        family, name = document["format"].split(".")
        if family != "addend":
            raise ValueError("unknown format %s" % document["format"])
        return name + ".schema.json"

    def problems(self, document, name=None):
        """The faults of a document, one line each: "targets[0].value: ..."."""
        name = name or self.named_by(document)
        return list(self._check(document, self._schemas[name], name, ""))

    def _check(self, value, schema, name, place):
        """`name`: of the schema file that references without one are of."""
        for word in schema:
            if word not in _REMARKS and not hasattr(self, "_" + word.strip("$")):
                raise ValueError("%s: the word %s is not understood" % (name, word))
        for word, argument in schema.items():
            if word not in _REMARKS:
                yield from getattr(self, "_" + word.strip("$"))(value, argument, schema, name, place)

    def _ref(self, value, reference, _, name, place):
        file, pointer = reference.split("#")
        name = file or name
        schema = self._schemas[name]
        for key in pointer.strip("/").split("/"):
            schema = schema[key]
        yield from self._check(value, schema, name, place)

    def _type(self, value, types, _, __, place):
        types = [types] if isinstance(types, str) else types
        if not any(_TYPES[one](value) for one in types):
            yield "%s: %r is not %s" % (place, value, " or ".join(types))

    def _const(self, value, expected, _, __, place):
        if value != expected:
            yield "%s: %r is not %r" % (place, value, expected)

    def _enum(self, value, choices, _, __, place):
        if value not in choices:
            yield "%s: %r is none of %r" % (place, value, choices)

    def _pattern(self, value, pattern, _, __, place):
        if isinstance(value, str) and not re.search(pattern, value):
            yield "%s: %r does not look like %s" % (place, value, pattern)

    def _items(self, value, schema, _, name, place):
        for k, item in enumerate(value if isinstance(value, list) else []):
            yield from self._check(item, schema, name, "%s[%d]" % (place, k))

    def _minItems(self, value, count, _, __, place):
        if isinstance(value, list) and len(value) < count:
            yield "%s: %d items, at least %d are needed" % (place, len(value), count)

    def _required(self, value, keys, _, __, place):
        for key in keys if isinstance(value, dict) else []:
            if key not in value:
                yield "%s: %s is missing" % (place, key)

    def _properties(self, value, properties, _, name, place):
        for key, schema in properties.items():
            if isinstance(value, dict) and key in value:
                yield from self._check(value[key], schema, name, "%s.%s" % (place, key))

    def _patternProperties(self, value, patterns, _, name, place):
        for key in value if isinstance(value, dict) else []:
            for pattern, schema in patterns.items():
                if re.search(pattern, key):
                    yield from self._check(value[key], schema, name, "%s.%s" % (place, key))

    def _additionalProperties(self, value, schema, whole, name, place):
        for key in value if isinstance(value, dict) else []:
            known = key in whole.get("properties", {})
            if known or any(re.search(pattern, key) for pattern in whole.get("patternProperties", {})):
                continue
            if schema is False:
                yield "%s: the key %s is unknown" % (place, key)
            elif schema is not True:
                yield from self._check(value[key], schema, name, "%s.%s" % (place, key))
