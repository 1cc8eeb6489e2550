"""Sums, products and quotients. SPEC.md#affine, #products, #division."""

import dataclasses
import math

from activation import marks_if
from composition import Composition, apply, finish, is_composition, marks_of, middle_of, pay, sum_rows, value_of
from elementwise import finite, pointwise, spread
from registry import operator
from tensor import Tensor, broadcast_shapes, plus, scaled, times, zip_map


def as_tensor(x):
    """A number beside tensors is a tensor of no dimensions."""
    return Tensor.scalar(float(x)) if isinstance(x, (int, float)) else x


def shared_marks(*operands):
    """The marks that all compositions among the operands share."""
    marks = [x.marks for x in operands if is_composition(x)]
    return frozenset.intersection(*marks) if marks else frozenset()


def constant_of(result, operands, forward):
    """The part of an affine operator's reference that is not linear."""
    rows = [x.reference if is_composition(x) else None for x in operands]
    return zip_map(lambda f, passed: f - passed, result.reference, forward(*rows))


def combination(policy, a, b, alpha, beta):
    """alpha a + beta b, either of which may be plain."""
    a, b = as_tensor(a), as_tensor(b)
    shape = broadcast_shapes(a.shape, b.shape)
    f = lambda x, y: plus(scaled(x, alpha), scaled(y, beta))

    def forward(x, y):
        return sum_rows([None if x is None else scaled(x, alpha), None if y is None else scaled(y, beta)], shape)

    keeps = shared_marks(a, b)
    result = apply(policy, [a, b], f, forward, keeps)
    if is_composition(result) and not (is_composition(a) and is_composition(b)):
        plain = scaled(a, alpha) if is_composition(b) else scaled(b, beta)
        result = pay(policy, result, plain)
    return result


@operator("aten::add.Tensor", "aten::add.Scalar")
def add(policy, a, b, alpha=1):
    return combination(policy, a, b, 1, alpha)


@operator("aten::sub.Tensor", "aten::sub.Scalar")
def sub(policy, a, b, alpha=1):
    return combination(policy, a, b, 1, -alpha)


@operator("aten::rsub.Tensor", "aten::rsub.Scalar")
def rsub(policy, a, b, alpha=1):
    return combination(policy, a, b, -alpha, 1)


def element_sizes(content, coefficient, leads_left):
    """The size of what each number of a coefficient multiplies, element by element: one number of the content, or the norm
    of those along dimensions where the coefficient has one and the content more, the first dimension apart."""
    rank = max(content.rank, coefficient.rank)
    over = []
    for d in range(1, rank):
        c, v = d - rank + coefficient.rank, d - rank + content.rank
        if c >= 0 and v >= 0 and coefficient.shape[c] == 1 and content.shape[v] > 1:
            over.append(v)
    squares = content.map(lambda x: x * x)
    return (squares.sum(over, True) if over else squares).map(math.sqrt)


def bilinear(policy, a, b, f, sizes=None):
    """A product f, linear in each of its two factors. Of two factors only one of which is frozen, that one is used as it
    is. Of two only one of which is a coefficient whose content comes first, the coefficient moves while the content is
    the reference's, then the content moves at the coefficient's value; or the content has a share of what both moved
    together, found from `sizes`. Else each moves at the middle of the other.
    SPEC.md#products, #content-first, #by-magnitude, #freeze."""
    a_moves, b_moves = is_composition(a), is_composition(b)
    a_frozen = a_moves and policy.frozen(a.marks)
    b_frozen = b_moves and policy.frozen(b.marks)
    a_leads = a_moves and policy.leads(a.marks)
    b_leads = b_moves and policy.leads(b.marks)
    if a_moves and b_moves:
        a_moves, b_moves = not (a_frozen and not b_frozen), not (b_frozen and not a_frozen)
    both = a_moves and b_moves
    if policy.anchor == "residual":
        a = a.anchored(policy) if is_composition(a) else a
        b = b.anchored(policy) if is_composition(b) else b
    if not both:
        left, right = value_of(a), value_of(b)
    elif a_leads == b_leads:
        left, right = middle_of(a), middle_of(b)
    elif a_leads:
        left, right = a.value, b.reference
    else:
        left, right = a.reference, b.value
    weights = policy.weights((a if a_leads else b).marks) if both and a_leads != b_leads and sizes else None
    if weights:
        coefficient, content = (a, b) if a_leads else (b, a)
        share = _shares(weights, coefficient, *(sizes(t, coefficient.value, a_leads) for t in (content.value, content.reference)))
        rest = share.map(lambda s: 1 - s)
        met = plus(coefficient.reference, times(share, coefficient.move))
        left, right = (met, b.reference) if a_leads else (a.reference, met)

    def forward(x, y):
        parts = []
        if a_moves:
            parts.append(f(x, right))
        if b_moves:
            parts.append(f(left, y))
        if weights and a_leads:
            parts.append(f(times(x, rest), b.move))
        if weights and b_leads:
            parts.append(f(a.move, times(y, rest)))
        return sum_rows(parts, f(value_of(a), value_of(b)).shape)

    return apply(policy, [a, b], f, forward, shared_marks(a, b))


def _shares(weights, coefficient, size, size_at_reference):
    """w |v| / (w |v| + |v'|), one where nothing stands on either side."""
    opens, closes = weights
    w = zip_map(lambda x, y: opens if abs(x) > abs(y) else closes, coefficient.value, coefficient.reference)
    weighed = times(w, size)
    return zip_map(lambda p, q: p / (p + q) if p + q else 1.0, weighed, size_at_reference)


@operator("aten::mul.Tensor", "aten::mul.Scalar")
def mul(policy, a, b):
    return bilinear(policy, as_tensor(a), as_tensor(b), times, element_sizes)


def inverse_of(policy, d, marks=frozenset(), pole=0.0):
    """1 / d as the policy linearizes it."""
    d = Composition(d.components, d.reference, d.leftover, frozenset(), d.value)
    return pointwise(policy, d, lambda v: 1 / v, lambda v: -1 / (v * v), pole=pole, marks=marks)


def bare(c):
    """Without marks."""
    return Composition(c.components, c.reference, c.leftover, frozenset(), c.value) if is_composition(c) else c


@operator("aten::div.Tensor", "aten::div.Scalar")
def div(policy, a, d):
    """The product of a with 1 / d. Divisors are frozen as denominators, or as normalizers where they come from one, and
    in the same way their content comes first."""
    a, d = as_tensor(a), as_tensor(d)
    if not is_composition(d):
        return bilinear(policy, a, d.map(lambda v: 1 / v), times)
    of_kind = lambda kinds: "denominator" in kinds or ("normalizer" in kinds and "normalizer" in d.marks)
    if is_composition(a) and of_kind(policy.freeze):
        inverse = value_of(d).map(lambda v: 1 / v)
        shape = broadcast_shapes(a.shape, d.shape)
        f = lambda x, y: zip_map(lambda p, q: p / q, x, y)
        return apply(policy, [a, d], f, lambda x, y: times(x, inverse).expand(shape))
    d = d.anchored(policy)
    if not is_composition(a):
        return bilinear(policy, a, inverse_of(policy, d), times)
    a = a.anchored(policy)
    if of_kind(policy.content_first - policy.freeze):
        return _content_first(policy, a, d)
    crosses = [finite(1 / x if x else float("inf")) and (b == 0 or x * b < 0)
               for x, b in zip(d.value.data, d.reference.data)]
    return _at_value_where(a, d, bilinear(policy, bare(a), bare(inverse_of(policy, d)), times), Tensor(d.shape, crosses))


def _content_first(policy, a, d):
    """(da - y' dd) / d, y' the quotient's reference: written so, a divisor that changes its sign needs nothing special."""
    zero = Tensor(d.shape, [finite(1 / x if x else float("inf")) and b == 0 for x, b in zip(d.value.data, d.reference.data)])
    if policy.nonlinearity != "path":
        inverse = inverse_of(policy, d, marks=frozenset({"denominator"}), pole=None)
        inner = dataclasses.replace(policy, freeze=frozenset(), content_first=frozenset({"denominator"}))
        return _at_value_where(a, d, bare(bilinear(inner, bare(a), inverse, times)), zero)
    shape = broadcast_shapes(a.shape, d.shape)
    divide = lambda x, y: zip_map(lambda p, q: p / q if q else math.nan, x, y)
    reference = divide(a.reference, d.reference)
    forward = lambda x, y: divide(plus(x, scaled(times(reference, y), -1)), d.value).expand(shape)
    return _at_value_where(a, d, apply(policy, [a, d], divide, forward), zero)


def _at_value_where(a, d, result, where):
    """Linearizes the whole quotient at the value where the divisor passes through zero: SPEC.md#stand-ins."""
    if not any(where.data):
        return result
    shape = result.shape
    broken = where.expand(shape)
    tangent_a = d.value.map(lambda v: 1 / v)
    tangent_d = zip_map(lambda n, v: -n / (v * v), a.value, d.value)
    forward = lambda x, y: plus(times(x, tangent_a), times(y, tangent_d)).expand(shape)
    pick = lambda there, at_value: zip_map(lambda use, p, q: q if use else p, broken, there, at_value)
    rows = [pick(r, forward(x, y)) for r, x, y in zip(result.rows, a.rows, d.rows)]
    met = zip_map(lambda v, m: v - m, result.value, forward(a.move, d.move))
    return Composition(rows[:-1], pick(result.reference, met), rows[-1], frozenset(), result.value)


@operator("aten::neg")
def neg(policy, x):
    return apply(policy, [x], lambda t: scaled(t, -1), lambda row: scaled(row, -1), marks_of(x))


@operator("aten::addcmul")
def addcmul(policy, x, a, b, value=1):
    product = bilinear(policy.inner(), a, b, times, element_sizes)
    return add(policy.inner(), x, product, value)


@operator("aten::addcdiv")
def addcdiv(policy, x, a, b, value=1):
    """Written out: a / b, then the sum."""
    return add(policy, x, div(policy, a, b), value)


@operator("aten::lerp.Scalar", "aten::lerp.Tensor")
def lerp(policy, start, end, weight):
    """start + weight (end - start), one product."""
    inner = policy.inner()
    return bare(add(inner, start, bilinear(inner, as_tensor(weight), bare(sub(inner, end, start)), times,
                                           element_sizes)))


# ---- writes: SPEC.md#writes


@operator("aten::copy_")
def copy(policy, x, source):
    source = as_tensor(source)
    return apply(policy, [source], lambda t: t.expand(x.shape), lambda row: row.expand(x.shape), marks_of(source))


@operator("aten::fill_.Scalar")
def fill(policy, x, number):
    return apply(policy, [x], lambda t: Tensor.full(t.shape, float(number)), lambda row: Tensor.full(row.shape, 0.0),
                 reference=Tensor.full(x.shape, float(number)))


@operator("aten::zero_")
def zero(policy, x):
    return fill(policy, x, 0.0)


@operator("aten::where.self")
def where(policy, condition, a, b):
    shape = broadcast_shapes(condition.shape, a.shape, b.shape)
    choose = lambda x, y: zip_map(lambda c, p, q: p if c else q, condition, x, y).expand(shape)
    nothing = Tensor.scalar(0.0)
    result = apply(policy, [a, b], choose,
                   lambda x, y: choose(nothing if x is None else x, nothing if y is None else y), shared_marks(a, b))
    if is_composition(result):
        constant = choose(nothing if is_composition(a) else a, nothing if is_composition(b) else b)
        result = pay(policy, result, constant)
    return result


@operator("aten::masked_fill.Scalar")
def masked_fill(policy, x, mask, value):
    shape = broadcast_shapes(x.shape, mask.shape)
    pick = lambda t, number: zip_map(lambda v, m: number if m else v, t, mask).expand(shape)
    result = apply(policy, [x], lambda t: pick(t, float(value)), lambda row: pick(row, 0.0), marks_of(x))
    constant = Tensor(shape, [float(value) if m and finite(float(value)) else 0.0 for m in mask.expand(shape).data])
    return pay(policy, result, constant)
