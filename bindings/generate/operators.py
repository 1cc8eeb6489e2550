"""The everyday operators, as the generators of all bindings read them from core/composition/everyday_operators.txt."""

import collections
import re

Parameter = collections.namedtuple("Parameter", "type name default keyword_only")
Parameter.__doc__ = """One parameter of an operator.

type: as in the schema: "Tensor", "Tensor?", "Tensor[]", "Scalar", "Scalar?", "int", "int?", "int[]", "float", "float?",
    "bool", "str", "ScalarType"; the length of lists ("int[2]") is left out.
default: as in the schema, None where there is none.
"""

Operator = collections.namedtuple("Operator", "full_name name parameters results")
Operator.__doc__ = """One overload of an operator.

full_name: "aten::max.dim"; name: "max".
results: a list of "Composition", "Tensor" or "Composition[]".
"""


class OperatorListError(ValueError):
    """A line of the list that is no signature."""


def read(path):
    """All operators of a list, in its order."""
    with open(path, encoding="utf-8") as lines:
        stripped = (line.strip() for line in lines)
        return [parse(line) for line in stripped if line and not line.startswith("#")]


def parse(line):
    match = re.fullmatch(r"(\w+::(\w+)(?:\.\w+)?)\((.*)\) -> (.+)", line)
    if not match:
        raise OperatorListError("not a signature: " + line)
    full_name, name, parameters, results = match.groups()
    return Operator(full_name, name, _parameters(parameters, line), _results(results, line))


def writes_self(operator):
    """Whether it is one of those that write their first argument: add_."""
    return operator.name.endswith("_")


def is_method(operator):
    """Whether it begins with a tensor that a method can be called on."""
    first = operator.parameters[0]
    return first.type == "Tensor" and first.name != "condition"


def by_name(operators):
    """Maps each name to its overloads, in the order of the list."""
    overloads = collections.OrderedDict()
    for operator in operators:
        overloads.setdefault(operator.name, []).append(operator)
    return overloads


def _parameters(text, line):
    parameters = []
    keyword_only = False
    for piece in _split_outside_brackets(text):
        if piece == "*":
            keyword_only = True
            continue
        match = re.fullmatch(r"(\w+(?:\[\d*\])?\??) (\w+)(?:=(.+))?", piece)
        if not match:
            raise OperatorListError("not a parameter: %s in %s" % (piece, line))
        kind, name, default = match.groups()
        parameters.append(Parameter(re.sub(r"\[\d+\]", "[]", kind), name, default, keyword_only))
    return parameters


def _results(text, line):
    results = [piece.split(" ")[0] for piece in _split_outside_brackets(text.strip("()"))]
    for result in results:
        if result not in ("Composition", "Composition[]", "Tensor"):
            raise OperatorListError("not a result: %s in %s" % (result, line))
    return results


def _split_outside_brackets(text):
    return [piece.strip() for piece in re.split(r",(?![^\[]*\])", text) if piece.strip()]
