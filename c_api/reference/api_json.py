"""Describes the C interface as data: addend_api.json, from which bindings can be generated and are checked.

usage: api_json.py OUT SYMBOLS HEADER...
"""

import json
import os
import re
import sys

import comments
import header as headers

CONVENTIONS = {
    "status": "A function that returns addend_status* gives NULL on success; any other status is a handle that the caller "
    "releases with addend_status_release. Parameters of direction out are then untouched.",
    "out": "A parameter of direction out is a pointer to one element that the function writes.",
    "borrowed": "Used during the call; what is returned lives as long as the handle that it was asked from.",
    "shared": "Kept alive by the library as long as it needs it; the caller may release its own handle.",
    "copied": "Read during the call, and kept as a copy.",
    "taken over": "The library's from then on, if the call succeeds.",
    "new": "The caller's, to be released once.",
    "array": "A parameter with a count points to that many elements; it may be NULL where the count is 0.",
    "text": "const char* is UTF-8 that ends with NUL, unless it has a count of bytes.",
    "null": "NULL for a parameter that is not nullable is ADDEND_INVALID_ARGUMENT, and 0, NULL or NaN from functions without "
    "a status.",
}
_RELEASED = "Releases the handle. NULL does nothing."
# Parameters for which the headers allow NULL once for all functions: (functions, type, name).
_NULL_EVERYWHERE = [
    (r"\w+", "const addend_context*", "context"),
    (r"\w+", "const char*", "options"),
    (r"\w+", "void*", "payload"),
    (r"\w+", "addend_release_fn", "release"),
    (r"addend_arguments_(add|begin)_\w+", "const char*", "name"),
    (r"addend_frames_add", "const char*", "function"),
]


def since(symbols):
    """The version of the interface that brought each function."""
    found, version = {}, 0
    with open(symbols, encoding="utf-8") as file:
        for line in file.read().split("\n"):
            if re.fullmatch(r"ADDEND_\d+", line):
                version = int(line.split("_")[1])
            elif line.startswith("addend_"):
                found[line] = version
    return found


def counts(given):
    """Maps arrays to the parameter that counts their elements: (dims, num_dims), (data, size)."""
    names = [name for _, name in given]
    found = {}
    for (kind, name), (_, following) in zip(given, given[1:]):
        if "*" in kind and (following == "num_" + name or following == "size" and "void" in kind):
            found[name] = following
    return {array: count for array, count in found.items() if count in names}


def null_by_default(declaration, said):
    """The parameter of which the first sentences say what NULL means: "Sets the callback ...; NULL: none"."""
    if not re.search(r"; NULL[:,]", said.get("text", "")):
        return None
    known = ("payload", "release")
    pointers = [name for kind, name in declaration.parts["parameters"][1:]
                if ("*" in kind or kind.endswith("_fn")) and not name.startswith("out_") and name not in known]
    return pointers[-1] if pointers else None


def null_everywhere(function, kind, name):
    return any(re.fullmatch(pattern, function) and (kind, name) == (a_type, a_name)
               for pattern, a_type, a_name in _NULL_EVERYWHERE)


def parameters(declaration, said):
    given = declaration.parts["parameters"]
    names = {name for _, name in given}
    owned, optional, counted = comments.owned(said, names), comments.nullable(said, names), counts(given)
    optional.add(null_by_default(declaration, said))
    release = declaration.kind == "function" and declaration.name.endswith("_release")
    described = []
    for kind, name in given:
        out = name.startswith("out_")
        one = {"name": name, "type": kind, "direction": "out" if out else "in"}
        pointer = "*" in kind or kind.endswith("_fn")
        if pointer and not (out and kind.count("*") == 1):
            one["ownership"] = owned.get(name, "new" if out else "borrowed")
        if name == "payload" and "release" in names:
            one["ownership"] = "taken over"
        if release:
            one["ownership"] = "taken over"
        if pointer:
            one["nullable"] = release or name in optional or null_everywhere(declaration.name, kind, name)
        if name in counted:
            one.update(nullable=False, count=counted[name])
        described.append(one)
    return described


def function(declaration, versions, default):
    said = comments.parts(declaration.comment)
    if not said and declaration.name.endswith("_release"):
        said = {"text": _RELEASED}
    result = {"name": declaration.name, "header": declaration.header, "section": declaration.section}
    if declaration.kind == "function":
        result["since"] = versions.get(declaration.name, default)
    returns = {"type": declaration.parts["returns"]}
    if returns["type"] == "addend_status*":
        returns["ownership"] = "new"
    elif "*" in returns["type"]:
        returns["ownership"] = "borrowed"
    result.update(returns=returns, parameters=parameters(declaration, said), comment=said)
    return result


def describe(symbols, paths):
    declarations = [one for path in paths for one in headers.read(path, os.path.basename(path))]
    versions = since(symbols)
    abi = next(one.parts["value"] for one in declarations if one.name == "ADDEND_ABI_VERSION")
    api = {"format": "addend.api", "version": 1, "abi_version": abi, "conventions": CONVENTIONS, "constants": [],
           "types": [], "enums": [], "functions": []}
    functions = {one.name for one in declarations if one.kind == "function"}
    for one in declarations:
        known = {"name": one.name, "header": one.header}
        said = comments.parts(one.comment)
        if one.kind == "function":
            api["functions"].append(function(one, versions, abi))
        elif one.kind == "enum":
            values = [{"name": name, "value": value, "comment": text} for name, value, text in one.parts["values"]]
            api["enums"].append(dict(known, values=values, comment=said))
        elif one.kind == "constant":
            api["constants"].append(dict(known, value=one.parts["value"], comment=said))
        elif one.kind == "callback":
            api["types"].append(dict(function(one, versions, abi), kind="callback"))
        elif one.kind == "struct":
            fields = [{"name": name, "type": kind, "comment": text} for kind, name, text in one.parts["fields"]]
            api["types"].append(dict(known, kind="struct", fields=fields, comment=said))
        else:
            release = one.name + "_release"
            kind = "opaque" if one.name.startswith("addend_") else "foreign"
            handle = {"kind": "handle", "release": release} if release in functions else {"kind": kind}
            api["types"].append(dict(known, **handle, comment=said))
    return api


if __name__ == "__main__":
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        json.dump(describe(sys.argv[2], sys.argv[3:]), out, indent=1)
        out.write("\n")
