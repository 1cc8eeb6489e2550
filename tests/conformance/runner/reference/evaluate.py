"""Expected results of a case: its operator, evaluated by the formulas of SPEC.md."""

import itertools
import math

# Every family registers its operators.
import activation, arithmetic, attention, convolution, embedding, indexing, linalg, loss  # noqa: E401, F401
import normalization, pooling, product, recurrent, reduction, selection, shape, softmax, special  # noqa: E401, F401
import policy as policies
from case_reader import Named, argument, result_json
from composition import Composition, is_composition, value_of
from registry import OPERATORS
from tensor import Tensor, minus, plus, scaled, total

VERSION = "1"


def find(op):
    """In-place and out-of-place forms have one reference."""
    if op in OPERATORS:
        return op, OPERATORS[op]
    name, _, overload = op.partition(".")
    for candidate in (name.rstrip("_") + ("." + overload if overload else ""), name.rstrip("_")):
        if candidate in OPERATORS:
            return candidate, OPERATORS[candidate]
    raise KeyError(f"the reference has no operator {op}")


def arguments_of(case):
    given = [argument(x) for x in case["args"]]
    return [x for x in given if not isinstance(x, Named)], {x.name: x.value for x in given if isinstance(x, Named)}


def preset_or_choices(policy):
    return {"preset": policy} if isinstance(policy, str) else policy


def policies_of(case):
    if "policy" in case:
        return [case["policy"]]
    return [preset_or_choices(p) for p in case.get("policies", [{}])]


def call(case, choices):
    name, f = find(case["op"])
    positional, named = arguments_of(case)
    policy = policies.parse(choices).of(case["op"])
    results = f(policy, *positional, **named)
    results = list(results) if isinstance(results, (tuple, list)) else [results]
    return results


def shapley(case):
    """SPEC.md#shapley: the mean marginal effect over all orders in which components join the residuals."""
    _, f = find(case["op"])
    positional, named = arguments_of(case)
    policy = policies.parse({})
    compositions = [x for x in positional if is_composition(x)]
    n = compositions[0].numc
    residual = lambda x: plus(x.reference, x.leftover)

    def value(present, base=residual):
        def at(x):
            if not is_composition(x):
                return x
            return total([base(x)] + [x.components[k] for k in present], x.shape)

        result = f(policy, *(at(x) for x in positional), **named)
        return result[0] if isinstance(result, tuple) else result

    shape = value(()).shape
    components = []
    for k in range(n):
        others = [j for j in range(n) if j != k]
        terms = []
        for size in range(n):
            weight = math.factorial(size) * math.factorial(n - size - 1) / math.factorial(n)
            for present in itertools.combinations(others, size):
                terms.append(scaled(minus(value(present + (k,)), value(present)), weight))
        components.append(total(terms, shape))
    reference = value((), base=lambda x: x.reference)
    return [Composition(components, reference, minus(value(()), reference))]


def expected(case):
    """The block "expect" of a case; None where it has no pinned numbers."""
    if "error" in case or case.get("verb", "call") not in ("call", "shapley") or "model" in case:
        return None
    if case.get("verb") == "shapley":
        blocks = [[result_json(r) for r in shapley(case)]]
    else:
        blocks = [[result_json(r) for r in call(case, choices)] for choices in policies_of(case)]
    for block in blocks[1:]:
        if block != blocks[0]:
            raise ValueError(f"case {case['name']}: its policies differ in the result; make it one case for each")
    return {"reference": VERSION, "outputs": blocks[0]}
