"""Compositions, and the few principles by which every operator moves their rows. SPEC.md#composition, #bracket."""

import math

from tensor import Tensor, minus, plus, times, total, zip_map


class Composition:
    """Components, reference and leftover, with the value, which is their sum, and the marks that freezing looks at."""

    def __init__(self, components, reference, leftover=None, marks=frozenset(), value=None):
        self.components = list(components)
        self.reference = reference
        self.leftover = Tensor.full(reference.shape, 0.0) if leftover is None else leftover
        self.marks = marks
        self.value = value if value is not None else total(self.components + [reference, self.leftover], reference.shape)

    @property
    def numc(self):
        return len(self.components)

    @property
    def shape(self):
        return self.reference.shape

    @property
    def rank(self):
        return len(self.shape)

    @property
    def rows(self):
        return self.components + [self.leftover]

    @property
    def move(self):
        return minus(self.value, self.reference)

    def anchored(self, policy):
        """With anchor=residual what is left over is reference from the next operator on."""
        if policy.anchor != "residual":
            return self
        return Composition(self.components, plus(self.reference, self.leftover), None, self.marks, self.value)


def is_composition(x):
    return isinstance(x, Composition)


def value_of(x):
    return x.value if is_composition(x) else x


def reference_of(x):
    return x.reference if is_composition(x) else x


def marks_of(x):
    return x.marks if is_composition(x) else frozenset()


def middle_of(x):
    if not is_composition(x):
        return x
    return zip_map(lambda a, b: a if a == b else (a + b) / 2, x.value, x.reference)


def finish(policy, value, reference, rows, moved, marks=frozenset()):
    """The result of an operator. `rows`: what its map gives for components and leftover; `moved`: for the move."""
    bracket = zip_map(lambda x, b, m: 0.0 if x == b and m == 0 else x - b - m, value, reference, moved)
    *components, leftover = rows
    if policy.anchor == "residual":
        reference = plus(reference, bracket)
    else:
        leftover = plus(leftover, bracket)
    return Composition(components, reference, leftover, marks, value)


def apply(policy, operands, f, forward, marks=frozenset(), reference=None):
    """An operator f of tensors, some of which are compositions, with a linear map of their rows.

    `forward` takes one row (a tensor, or None where the operand is plain) for each operand.
    """
    given = [x.anchored(policy) if is_composition(x) else x for x in operands]
    moving = [x for x in given if is_composition(x)]
    value = f(*(value_of(x) for x in given))
    if not moving:
        return value
    if reference is None:
        reference = f(*(reference_of(x) for x in given))
    count = len(moving[0].rows)
    rows = [forward(*(x.rows[k] if is_composition(x) else None for x in given)) for k in range(count)]
    moved = forward(*(x.move if is_composition(x) else None for x in given))
    return finish(policy, value, reference, rows, moved, marks)


def map_linear(policy, x, f, keeps=True):
    """f on every row: SPEC.md#linear."""
    return apply(policy, [x], f, f, marks_of(x) if keeps else frozenset())


def sum_rows(parts, shape):
    """The sum of what some operands give; None: nothing."""
    parts = [p for p in parts if p is not None]
    return total([p if p.shape == shape else p.expand(shape) for p in parts], shape)


def quotient(a, b):
    """Zero over zero is zero, and so is anything over zero: SPEC.md#zero."""
    return 0.0 if b == 0 else a / b


def pay(policy, result, constant):
    """Shares of an operator's constant for the components, taken from the leftover: SPEC.md#bias."""
    if policy.bias == "residual" or not is_composition(result):
        return result
    constant = constant.expand(result.shape)
    number = policy.bias_number
    components = result.components
    shape = result.shape
    if policy.bias == "norm":
        sizes = []
        for c in components:
            if not shape:
                sizes.append(c.map(abs))
                continue
            norm = c.reduce([-1], True, lambda e: max(map(abs, e)) if number == math.inf
                            else sum(abs(x) ** number for x in e) ** (1 / number))
            sizes.append(norm.expand(shape))
        sums = total(sizes, shape)
        shares = [zip_map(quotient, s, sums) for s in sizes]
    else:
        magnitude = total([c.map(abs) for c in components], shape)
        signed = total(components, shape)

        def share(c, s, a):
            by_size, by_part = quotient(abs(c), a), quotient(c, s)
            return {
                "abs": lambda: by_size,
                "hybrid": lambda: by_size if abs(s) < number * a else by_part,
                "hybrid_threshold": lambda: by_part if abs(s) > number else by_size,
                "sign": lambda: 0.0 if abs(s) < number * a else by_part,
                "sign_threshold": lambda: by_part if abs(s) > number else 0.0,
            }[policy.bias]()

        shares = [zip_map(share, c, signed, magnitude) for c in components]
    paid = [times(s, constant) for s in shares]
    return Composition([plus(c, p) for c, p in zip(components, paid)], result.reference,
                       zip_map(lambda left, p: left - p, result.leftover, total(paid, shape)), result.marks, result.value)
