"""Writes the everyday operators as Java. A program of the build:

generate_operators.py everyday_operators.txt Operators.java CompositionOperators.java
"""

import argparse
import re
import sys

import operators

_TYPES = {
    "Tensor": "Operand",
    "Tensor?": "Operand",
    "Tensor[]": "List<? extends Operand>",
    "Scalar": "Number",
    "Scalar?": "Number",
    # None is said by leaving the argument out.
    "int": "long",
    "int?": "long",
    "int[]": "long[]",
    "float": "double",
    "float?": "double",
    "bool": "boolean",
    "str": "String",
    "ScalarType": "DType",
}

_RESULTS = {
    ("Composition",): ("Composition", "composition", "the result"),
    ("Composition[]",): ("List<Composition>", "compositions", "the results in order"),
    ("Tensor",): ("Tensor", "tensor", "the result, which has no components"),
    ("Composition", "Tensor"): ("ValuesAndIndices", "valuesAndIndices", "what was found, and where"),
}

_ORIGIN = "// Generated from core/composition/everyday_operators.txt; do not edit.\npackage dev.addend;\n\nimport java.util.List;\n"

_FUNCTIONS = """
/**
 * The everyday operators as functions, under one context. Methods of {@link Composition} are those of {@link #defaults};
 * these serve calls under a policy, and those that begin with a tensor or a list. A parameter may be left out where
 * LibTorch has a default for it and for all that follow.
 */
public final class Operators extends OperatorCalls {
  private static final Operators DEFAULTS = new Operators(null);

  private Operators(Context context) {
    super(context);
  }

  /**
   * The operators under the default context.
   *
   * @return the operators
   */
  public static Operators defaults() {
    return DEFAULTS;
  }

  /**
   * The operators under a context.
   *
   * @param context open as long as they are used
   * @return the operators
   */
  public static Operators under(Context context) {
    return new Operators(context);
  }
"""

_METHODS = """
/** The everyday operators as methods of compositions, under the default context. */
abstract class CompositionOperators extends NativeObject {
  CompositionOperators(String noun, long address, LongConsumer release) {
    super(noun, address, release);
  }

  private Operand self() {
    return (Composition) this;
  }
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("list")
    parser.add_argument("functions")
    parser.add_argument("methods")
    arguments = parser.parse_args()
    # Compositions never change here: x = x.add(y) does what add_ is for.
    entries = [o for o in operators.read(arguments.list) if not operators.writes_self(o)]
    functions, methods = [], []
    for operator in entries:
        for parameters in overloads(operator.parameters):
            functions.append(function(operator, parameters))
            if operators.is_method(operator):
                methods.append(method(operator, parameters))
    write(arguments.functions, _ORIGIN + _FUNCTIONS, functions)
    imports = _ORIGIN + "import java.util.function.LongConsumer;\n"
    write(arguments.methods, imports + _METHODS, methods)


def write(path, head, members):
    with open(path, "w", encoding="utf-8") as out:
        out.write(head + "".join("\n" + member for member in members) + "}\n")


def overloads(parameters):
    """The parameters of each overload: all, and what remains when trailing ones with defaults are left out."""
    required = max((i + 1 for i, p in enumerate(parameters) if p.default is None), default=0)
    return [parameters[:count] for count in range(required, len(parameters) + 1)]


def function(operator, parameters):
    result, collect, _ = _RESULTS[tuple(operator.results)]
    named = "".join(',\n        Named.named("%s", %s)' % (p.name, camel(p.name)) for p in parameters)
    return comment(operator, parameters) + '  public %s %s(%s) {\n    return %s(\n        "%s"%s);\n  }\n' % (
        result,
        camel(operator.name),
        declare(parameters),
        collect,
        operator.full_name,
        named,
    )


def method(operator, parameters):
    result = _RESULTS[tuple(operator.results)][0]
    name = camel(operator.name)
    arguments = ", ".join(["self()"] + [camel(p.name) for p in parameters[1:]])
    return comment(operator, parameters[1:]) + "  public %s %s(%s) {\n    return Operators.defaults().%s(%s);\n  }\n" % (
        result,
        name,
        declare(parameters[1:]),
        name,
        arguments,
    )


def comment(operator, parameters):
    lines = ["Calls {@code %s}." % operator.full_name, ""]
    for p in parameters:
        optional = ", or {@code null}" if p.type in ("Tensor?", "Scalar?") else ""
        lines.append("@param %s {@code %s}%s" % (camel(p.name), p.type, optional))
    lines.append("@return " + _RESULTS[tuple(operator.results)][2])
    return "  /**\n" + "".join(("   * " + line).rstrip() + "\n" for line in lines) + "   */\n"


def declare(parameters):
    declared = [_TYPES[p.type] + " " + camel(p.name) for p in parameters]
    if declared:
        declared[-1] = declared[-1].replace("long[] ", "long... ")
    return ", ".join(declared)


def camel(name):
    return re.sub(r"_(\w)", lambda match: match.group(1).upper(), name)


if __name__ == "__main__":
    sys.exit(main())
