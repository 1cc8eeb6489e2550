"""Writes the everyday operators as methods and as functions of Python.

    generate_operators.py LIST METHODS FUNCTIONS
"""

import sys

import operators  # bindings/generate/operators.py

_TYPES = {
    "Tensor": "Operand",
    "Tensor?": "Optional[Operand]",
    "Tensor[]": "Sequence[Operand]",
    "Scalar": "Scalar",
    "Scalar?": "Optional[Scalar]",
    "int": "int",
    "int?": "Optional[int]",
    "int[]": "Ints",
    "float": "float",
    "float?": "Optional[float]",
    "bool": "bool",
    "str": "str",
    "ScalarType": "Any",
}
_RESULTS = {"Composition": '"Composition"', "Composition[]": 'List["Composition"]', "Tensor": "Tensor"}

_HEAD = '''"""{title}. Generated from core/composition/everyday_operators.txt; do not edit."""

from typing import TYPE_CHECKING, Any, List, Optional, Sequence, Tuple, Union, overload

from ._call import call, call_list
from ._context import Context
from ._dtype import as_dtype
from ._tensor import Tensor

if TYPE_CHECKING:
    from ._composition import Composition

Operand = Any  # a Composition, a Tensor, or whatever as_tensor() takes
Scalar = Union[bool, int, float]
Ints = Union[int, Sequence[int]]
'''


def parameter_text(parameter):
    text = "%s: %s" % (parameter.name, _TYPES[parameter.type])
    if parameter.default is None:
        return text
    default = {"[]": "()"}.get(parameter.default, parameter.default)
    return "%s = %s" % (text, default)


def parameters_text(operator, method):
    """The parameters, the options last."""
    pieces = ["self"] if method else []
    keyword_only = False
    for parameter in operator.parameters[1 if method else 0 :]:
        if parameter.keyword_only and not keyword_only:
            keyword_only = True
            pieces.append("*")
        pieces.append(parameter_text(parameter))
    if not keyword_only:
        pieces.append("*")
    return ", ".join(pieces + ["context: Optional[Context] = None"])


def result_text(operator):
    results = [_RESULTS[result] for result in operator.results]
    return results[0] if len(results) == 1 else "Tuple[%s]" % ", ".join(results)


def argument_text(parameter):
    value = "as_dtype(%s)" % parameter.name if parameter.type == "ScalarType" else parameter.name
    return "%s=%s" % (parameter.name, value)


def single(operator, method, indent):
    name = operator.name
    own = operator.parameters[1 if method else 0 :]
    lines = [
        "def %s(%s) -> %s:" % (name, parameters_text(operator, method), result_text(operator)),
        '    """``%s``"""' % schema(operator),
    ]
    keywords = ", ".join(argument_text(parameter) for parameter in own)
    if operator.results == ["Composition[]"]:
        positional = "(self,)" if method else "()"
        lines.append(
            '    return call_list("%s", %s, dict(%s), context)' % (operator.full_name, positional, keywords)
        )
    else:
        arguments = ['"%s"' % operator.full_name] + (["self"] if method else []) + ([keywords] if keywords else [])
        call = "call(%s, context=context)" % ", ".join(arguments)
        lines.append("    return self._become(%s)" % call if operators.writes_self(operator) else "    return " + call)
    return [indent + line for line in lines]


def several(overloads, method, indent):
    """Overloads are told apart by their arguments, where the native library looks them up."""
    name = overloads[0].name
    lines = []
    for operator in overloads:
        lines.append("@overload")
        lines.append("def %s(%s) -> %s: ..." % (name, parameters_text(operator, method), result_text(operator)))
    lines.append("def %s(%s*args: Any, **kwargs: Any) -> Any:" % (name, "self, " if method else ""))
    lines.append('    """One of')
    for operator in overloads:
        lines += ["", "    ``%s``" % schema(operator)]
    lines.append('    """')
    base = overloads[0].full_name.partition(".")[0]
    call = 'call("%s", %s*args, **kwargs)' % (base, "self, " if method else "")
    lines.append("    return self._become(%s)" % call if operators.writes_self(overloads[0]) else "    return " + call)
    return [indent + line if line else "" for line in lines]


def schema(operator):
    def piece(parameter):
        default = "" if parameter.default is None else "=" + parameter.default
        return "%s %s%s" % (parameter.type, parameter.name, default)

    parameters = ", ".join(piece(parameter) for parameter in operator.parameters)
    return "%s(%s)" % (operator.full_name, parameters.replace('"', "'"))


def methods_text(overloads_by_name):
    lines = [_HEAD.format(title="Operators as methods of compositions"), "", "class Operators:", "    __slots__ = ()"]
    for overloads in overloads_by_name.values():
        overloads = [operator for operator in overloads if operators.is_method(operator)]
        if overloads:
            write = several if len(overloads) > 1 else lambda found, method, indent: single(found[0], method, indent)
            lines += [""] + write(overloads, True, "    ")
    return "\n".join(lines) + "\n"


def functions_text(overloads_by_name):
    functions = [found for name, found in overloads_by_name.items() if not operators.writes_self(found[0])]
    names = sorted(found[0].name for found in functions)
    title = "Operators as functions, for calls that do not begin with a composition"
    lines = [_HEAD.format(title=title), "", "__all__ = ["] + ['    "%s",' % name for name in names] + ["]"]
    for overloads in functions:
        write = several if len(overloads) > 1 else lambda found, method, indent: single(found[0], method, indent)
        lines += ["", ""] + write(overloads, False, "")
    return "\n".join(lines) + "\n"


def main():
    source, methods, functions = sys.argv[1:]
    overloads_by_name = operators.by_name(operators.read(source))
    for path, text in ((methods, methods_text(overloads_by_name)), (functions, functions_text(overloads_by_name))):
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)


if __name__ == "__main__":
    main()
