"""Checks of a case. A check is a generator: it yields lists of requests, gets their answers, and says to its judge what
is wrong. So checks know nothing of processes, and a test can answer them itself."""

import math
import re

from . import compare, distribution, protocol, safetensors, subjects, unique
from .protocol import PARTS, Request
from .tensor import Tensor, is_floating, real_dtype
from .testee import LOST_CONTEXT

THREADS = 8
_ALL_PARTS = ("components", "reference", "leftover", "residual", "recovery", "value")
_EPSILON = {"f64": 2.0**-52, "f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}


class Judge:
    """Collects what is wrong. A muted one looks at codes and texts only: where bits are compared with those of another
    testee, numbers have been judged there.

    Args:
        exact: whether kernels give the same bits for the same numbers, as those of the CPU do.
        repeatable: whether the device gives the same bits for the same request each time.
        kernel: how far the device's own kernel is off, relative to its results.
    """

    def __init__(self, variant, law, tolerances, muted=False, exact=True, repeatable=True, kernel=0.0):
        self.variant = variant
        self.law = law
        self.tolerances = tolerances
        self.muted = muted
        self.exact = exact
        self.repeatable = repeatable
        self.kernel = kernel
        self.failures = []  # (class, message)
        self._allowances = {}

    def say(self, kind, message):
        self.failures.append((kind, message))

    def allowance(self, dtype=None):
        """That of the case's dtype, or of a coarser one that a tensor has."""
        dtype = self._coarser(real_dtype(dtype) if dtype else self.variant.dtype)
        if dtype not in self._allowances:
            case = self.variant.case
            self._allowances[dtype] = self.tolerances.of(
                dtype, self.variant.subject, self.law, case.get("kind", ""), self.variant.policy_name, self.kernel
            )
        return self._allowances[dtype]

    def _coarser(self, dtype):
        own = self.variant.dtype
        return dtype if _EPSILON.get(dtype, 0) > _EPSILON[own] else own

    def ok(self, *answers):
        """Whether all have code OK; says so if not."""
        for answer in answers:
            if answer.code != "OK":
                self.say(kind_of(answer), "%s: %s" % (answer.code, answer.message))
                return False
        return True

    def close(self, what, got, expected, sizes):
        if not self.muted:
            if not is_floating(expected.dtype):
                self._add("number", compare.same_bits(what, got, expected))
            else:
                self._add("number", compare.close(what, got, expected, self.allowance(got.dtype), sizes))

    def same_bits(self, what, got, expected):
        if not self.muted:
            self._add("bits", compare.same_bits(what, got, expected))

    def same_again(self, what, got, expected, sizes):
        """Judges what was computed twice: bit for bit, or to rounding where the device sums in another order each time."""
        if self.repeatable:
            self.same_bits(what, got, expected)
        else:
            self.close(what, got, expected, sizes)

    def zero(self, what, got, but=None):
        if not self.muted:
            self._add("number", compare.zero(what, got, but))

    def equal(self, what, got, expected):
        if got != expected:
            self.say("text", "%s is %r, expected is %r" % (what, got, expected))

    def _add(self, kind, message):
        if message:
            self.say(kind, message)


def kind_of(answer):
    """The class of a wrong code in reports and lists of failures."""
    return _KINDS.get(answer.code, "error")


_KINDS = {"CRASH": "crash", LOST_CONTEXT: "crash", "TIMEOUT": "timeout", "PROTOCOL": "protocol"}


# Laws whose requests have the form of those of recovery and component_permutation: plain tensors, and compositions by
# their parts. A binding that gives the same bits for those has nothing left to get wrong here.
_SAME_FORM = {"component_merge", "zero_component", "identity", "row_by_row", "deterministic"}


def of(variant, comparing=False):
    """The checks of a variant by their names. `comparing`: answers are compared with another testee's bit for bit, and
    laws that only ask again what other checks have asked in the same form are left out."""
    case = variant.case
    if "error" in case:
        return {"error": check_error}
    if variant.verb in _OTHER_VERBS:
        return {variant.verb: _OTHER_VERBS[variant.verb]}
    checks = {}
    if "expect" in case:
        checks["expect"] = check_expect
    if "report" in case:
        checks["report"] = check_report
    if "explain" in case:
        checks["explanation"] = check_explanation
    for law in variant.laws:
        if not (comparing and law in _SAME_FORM):
            checks[law] = LAWS[law]
    return checks or {"ok": check_ok}


# ---- what the case states


def check_ok(subject, judge):
    (answer,) = yield [subject.base()]
    judge.ok(answer)


def check_error(subject, judge):
    (answer,) = yield [subject.base()]
    expected = subject.variant.case["error"]
    # An index that the CPU refuses with an error ends the context of a GPU: LibTorch has no other way to refuse it there.
    if answer.code == LOST_CONTEXT and expected in ("INVALID_ARGUMENT", "OUT_OF_RANGE"):
        return
    if answer.code != expected:
        judge.say(kind_of(answer), "%s instead of %s: %s" % (answer.code, expected, answer.message))
        return
    payload = answer.payload()
    for key, text in subject.variant.case.get("payload", {}).items():
        judge.equal("payload %s" % key, payload.get(key), text)


def check_expect(subject, judge):
    (answer,) = yield [subject.base()]
    if not judge.ok(answer):
        return
    expected = subject.variant.case["expect"]["outputs"]
    if len(answer.results) < len(expected):
        judge.say("text", "%d results instead of %d" % (len(answer.results), len(expected)))
        return
    for index, (result, wanted) in enumerate(zip(answer.results, expected)):
        if wanted is None:
            continue
        wanted = {part: subject.variant.tensor(tensor) for part, tensor in wanted.items()}
        kind = "tensor" if "tensor" in wanted else "composition"
        if result.kind != kind:
            judge.say("text", "result %d is a %s instead of a %s" % (index, result.kind, kind))
        elif kind == "tensor":
            judge.close("result %d" % index, result.tensor, wanted["tensor"], compare.size_of(wanted["tensor"]))
        else:
            _judge_parts(judge, index, result, wanted)


def _judge_parts(judge, index, result, wanted):
    """Each number against the expected one, measured by the largest of its tensor, since it is a sum of such; and of a
    component also by the conditioning of its element: it is a share of what components make together, so what that sum
    loses to cancellation is lost by every share."""
    zeros = [0.0] * len(result.reference.numbers)
    held = {part: list(map(abs, wanted.get(part, getattr(result, part)).numbers)) if part != "components" else None
            for part in ("reference", "leftover")}
    components = wanted.get("components", result.components)
    sums, totals = list(zeros), list(zeros)
    for row in components.rows():
        if len(row.numbers) != len(zeros):
            break
        sums = [total + abs(number) for total, number in zip(sums, row.numbers)]
        totals = [total + number for total, number in zip(totals, row.numbers)]
    masses = [a + b + c for a, b, c in zip(sums, held["reference"], held["leftover"])]
    limit = 1 / math.sqrt(_EPSILON[judge.variant.dtype])
    conditions = [min(m / abs(t), limit) if t else limit for m, t in zip(masses, totals)]
    for part, tensor in wanted.items():
        got = getattr(result, part)
        what = "%s of result %d" % (part, index)
        if part == "components":
            repeated = conditions * max(tensor.shape[0], 1)
            floor = compare.size_of(tensor)
            sizes = [floor + abs(number) * condition for number, condition in zip(tensor.numbers, repeated)]
        elif part == "leftover":
            sizes = max(masses, default=0.0)
        else:
            sizes = compare.size_of(tensor)
        judge.close(what, got, tensor, sizes)


def check_report(subject, judge):
    (answer,) = yield [subject.base()]
    if judge.ok(answer):
        report = answer.report
        for key, expected in subject.variant.case["report"].items():
            got = report.get(key)
            if got != expected and not (got is not None and got != got and expected == "NaN"):
                judge.say("number", "the report's %s is %s, expected is %s" % (key, got, expected))


def check_explanation(subject, judge):
    (answer,) = yield [subject.base()]
    if not judge.ok(answer):
        return
    for index, wanted in enumerate(subject.variant.case["explain"]):
        name = wanted.get("name")
        results = [r for r in answer.results if r.kind == "composition" and name in (None, r.name)]
        if not results:
            judge.say("text", "no composition %s" % (name or "among the results"))
            continue
        _judge_explanation(judge, answer, "explanation.%d" % index, results[0])


def _judge_explanation(judge, answer, key, result):
    target = answer.entries.get(key + ".target", "")
    places = [[int(i) for i in re.findall(r"\d+", text)] for text in target.split(" minus ")]
    shape = result.reference.shape
    if not re.match(r"^\[[\d, ]*\]( minus \[[\d, ]*\])?$", target) or any(len(p) != len(shape) for p in places):
        judge.say("text", "%s.target is %r, the result has the shape %s" % (key, target, list(shape)))
        return
    offsets = [sum(i * step for i, step in zip(place, subjects.strides(shape))) for place in places]

    def at(tensor):
        numbers = tensor.numbers
        return numbers[offsets[0]] - (numbers[offsets[1]] if len(offsets) > 1 else 0)

    contributions = [at(row) for row in result.components.rows()]
    reference, leftover, value = at(result.reference), at(result.leftover), at(result.value)
    recovery = sum(contributions) + reference + leftover
    size = compare.mass(result) * len(offsets)
    numbers = [value, reference, leftover, recovery, recovery - value]
    judge.close(key + ".contributions", answer.tensor(key + ".contributions"),
                Tensor("f64", (len(contributions),), contributions), size)
    judge.close(key + ".numbers", answer.tensor(key + ".numbers"), Tensor("f64", (5,), numbers), size)
    told = list(answer.tensor(key + ".contributions").numbers)
    order = sorted(range(len(told)), key=lambda component: -abs(told[component]))
    judge.equal(key + ".ranked", list(answer.tensor(key + ".ranked").numbers), order)
    judge.equal("the number of %s.names" % key, len(protocol.unlines(answer.entries.get(key + ".names", ""))), len(told))


# ---- laws


def _compositions(judge, answer):
    """The results that are compositions, with their places. Without any there is nothing to judge, which is wrong."""
    found = [(index, result) for index, result in enumerate(answer.results) if result.kind == "composition"]
    if not found:
        judge.say("case", "no result is a composition: there is nothing to judge")
    return found


def _first_composition(judge, answer):
    """None where there is nothing to judge."""
    found = _compositions(judge, answer) if judge.ok(answer) else []
    return found[0][1] if found else None


def _pairs(judge, base, plain):
    """Compositions with what the plain operator or model gives in their place; probes have nothing there."""
    for index, result in _compositions(judge, base):
        if index < len(plain.results):
            yield "result %d" % index, result, plain.results[index].tensor


def _counted(judge, base, plain):
    """Whether the plain operator gives as many results; a decomposition has its probes behind them."""
    probes = len(judge.variant.case.get("probes", []))
    if len(base.results) - probes == len(plain.results):
        return True
    judge.say("text", "%d results, the plain operator has %d" % (len(base.results) - probes, len(plain.results)))
    return False


def _judge_plain(judge, base, plain):
    """Results that are no compositions are those of the plain operator."""
    for index, (result, truth) in enumerate(zip(base.results, plain.results)):
        if result.kind == "tensor" and truth.kind == "tensor":
            judge.same_again("plain result %d" % index, result.tensor, truth.tensor, compare.size_of(truth.tensor))
        elif result.kind != "composition" and result.kind != truth.kind:
            judge.say("text", "result %d is a %s instead of a %s" % (index, result.kind, truth.kind))


def law_recovery(subject, judge):
    """Components, reference and leftover sum to what the plain operator gives for the value."""
    base, plain = yield [subject.base(), subject.value()]
    if judge.ok(base, plain) and _counted(judge, base, plain) and not judge.muted:
        _judge_plain(judge, base, plain)
        for what, result, truth in _pairs(judge, base, plain):
            size = compare.mass(result)
            judge.close("the recovery of " + what, compare.recovery(result), truth, size)
            judge.close("the value of " + what, result.value, truth, size)
        for result in base.results[len(plain.results) :]:
            if result.kind == "composition":
                judge.close("the recovery of " + result.name, compare.recovery(result), result.value, compare.mass(result))


def _reference(exact):
    def law(subject, judge):
        base, plain = yield [subject.base(), subject.reference()]
        if judge.ok(base, plain) and _counted(judge, base, plain) and not judge.muted:
            for what, result, truth in _pairs(judge, base, plain):
                what = "the reference of " + what
                # That of half types is kept as float32.
                if exact and judge.exact and truth.dtype not in ("f16", "bf16"):
                    judge.same_bits(what, result.reference, truth)
                else:
                    judge.close(what, result.reference, truth, compare.mass(result))

    law.__doc__ = "The reference is what the plain operator gives for the baseline%s." % (
        ", bit for bit on the CPU" if exact else ", to rounding"
    )
    return law


def law_no_leftover(subject, judge):
    """The leftover is zero to rounding; of path kinds to the error of their quadrature."""
    (base,) = yield [subject.base()]
    if judge.ok(base) and not judge.muted:
        for index, result in _compositions(judge, base):
            zero = result.leftover.like([0] * len(result.leftover.numbers))
            judge.close("the leftover of result %d" % index, result.leftover, zero, compare.mass(result))


def _enough(subject, judge, count):
    if subject.numc >= count:
        return True
    judge.say("case", "the law needs %d components, there are %d" % (count, subject.numc))
    return False


def _judge_rows(judge, what, got, expected, size):
    for index, (a, b) in enumerate(zip(got, expected)):
        judge.close("component %d of %s" % (index, what), a, b, size)


def _mapped_law(places_of, expected_of):
    """A law that says what becomes of results when components are mapped to others."""

    def law(subject, judge):
        if not _enough(subject, judge, 2):
            return
        numc = subject.numc
        places, after = places_of(numc)
        base, other = yield [subject.mapped(range(numc), numc), subject.mapped(places, after)]
        if not judge.ok(base, other) or judge.muted:
            return
        if len(base.results) != len(other.results):
            judge.say("text", "%d results instead of %d" % (len(other.results), len(base.results)))
            return
        for index, result in _compositions(judge, base):
            changed = other.results[index]
            what = "result %d" % index
            if changed.components.shape[0] != after or result.components.shape[0] != numc:
                judge.say("text", "%s has %d components instead of %d" % (what, changed.components.shape[0], after))
                continue
            size = compare.mass(result)
            rows = result.components.rows()
            _judge_rows(judge, what, changed.components.rows(), expected_of(rows), size)
            judge.close("the reference of " + what, changed.reference, result.reference, size)
            judge.close("the leftover of " + what, changed.leftover, result.leftover, size)
            if after > numc:
                infinite = [not math.isfinite(number) for number in result.value.numbers]
                judge.zero("component %d of %s" % (_ZERO, what), changed.components.row(_ZERO), infinite)

    return law


_ZERO = 1  # where the component that is zero is put
law_component_permutation = _mapped_law(lambda n: (list(range(n))[::-1], n), lambda rows: rows[::-1])
law_component_merge = _mapped_law(
    lambda n: ([0] + list(range(n - 1)), n - 1),
    lambda rows: [rows[0].like([a + b for a, b in zip(rows[0].numbers, rows[1].numbers)])] + rows[2:],
)
law_zero_component = _mapped_law(
    lambda n: ([0] + list(range(2, n + 1)), n + 1),
    lambda rows: rows[:1] + [rows[0].like([0] * len(rows[0].numbers))] + rows[1:],
)


def law_identity(subject, judge):
    """Components are exactly zero if the value is the baseline, nothing is left over, the reference is the value."""
    base, plain = yield [subject.unmoved(), subject.reference()]
    if judge.ok(base, plain) and _counted(judge, base, plain) and not judge.muted:
        for what, result, truth in _pairs(judge, base, plain):
            infinite = [not math.isfinite(number) for number in truth.numbers]
            for index, row in enumerate(result.components.rows()):
                judge.zero("component %d of %s" % (index, what), row, infinite)
            size = compare.size_of(truth)
            judge.close("the reference of " + what, result.reference, truth, size)
            zero = result.leftover.like([0] * len(infinite))
            judge.close("the leftover of " + what, result.leftover, zero, size)


def law_row_by_row(subject, judge):
    """Each component is moved by the operator without its constant."""
    requests = [subject.base()] + subject.rows()
    base, *rows = yield requests
    if not judge.ok(base, *rows) or judge.muted:
        return
    *rows, leftovers, zeros = rows
    for index, result in _compositions(judge, base):
        constant = zeros.results[index].tensor
        size = max(compare.mass(result), compare.size_of(constant))
        for row, (got, plain) in enumerate(zip(result.components.rows(), rows)):
            truth = plain.results[index].tensor
            moved = truth.like([a - b for a, b in zip(truth.numbers, constant.numbers)])
            judge.close("component %d of result %d" % (row, index), got, moved, size)
        truth = leftovers.results[index].tensor
        moved = truth.like([a - b for a, b in zip(truth.numbers, constant.numbers)])
        judge.close("the leftover of result %d" % index, result.leftover, moved, size)


def law_view_bit_exact(subject, judge):
    """Components, reference and leftover are what the operator makes of them, bit for bit."""
    requests = [subject.base(), subject.reference()] + subject.rows()
    base, reference, *rows = yield requests
    if not judge.ok(base, reference, *rows) or judge.muted:
        return
    *rows, leftovers, _ = rows
    for index, result in _compositions(judge, base):
        for row, (got, plain) in enumerate(zip(result.components.rows(), rows)):
            judge.same_bits("component %d of result %d" % (row, index), got, plain.results[index].tensor)
        judge.same_bits("the reference of result %d" % index, result.reference, reference.results[index].tensor)
        judge.same_bits("the leftover of result %d" % index, result.leftover, leftovers.results[index].tensor)


def law_dtype_preserved(subject, judge):
    """The value has the dtype that the plain operator gives, the parts too; of half types they are float32."""
    base, plain = yield [subject.base(), subject.value()]
    if judge.ok(base, plain) and _counted(judge, base, plain):
        for what, result, truth in _pairs(judge, base, plain):
            judge.equal("the dtype of " + what, result.value.dtype, truth.dtype)
            expected = "f32" if truth.dtype in ("f16", "bf16") else truth.dtype
            for part in ("components", "reference", "leftover"):
                judge.equal("the dtype of the %s of %s" % (part, what), getattr(result, part).dtype, expected)


def law_shape_preserved(subject, judge):
    """All parts have the shape that the plain operator gives, components behind their number."""
    base, plain = yield [subject.base(), subject.value()]
    if judge.ok(base, plain) and _counted(judge, base, plain):
        for what, result, truth in _pairs(judge, base, plain):
            judge.equal("the shape of the components of " + what, result.components.shape, (subject.numc,) + truth.shape)
            for part in ("reference", "leftover", "value"):
                judge.equal("the shape of the %s of %s" % (part, what), getattr(result, part).shape, truth.shape)


def law_parts(subject, judge):
    """Residual and recovery are the sums that their names say."""
    (base,) = yield [subject.base(parts=_ALL_PARTS)]
    if not judge.ok(base) or judge.muted:
        return
    for index, result in _compositions(judge, base):
        size = compare.mass(result)
        residual = [a + b for a, b in zip(result.reference.numbers, result.leftover.numbers)]
        judge.close("the residual of result %d" % index, result.residual, result.reference.like(residual), size)
        judge.close("the recovery of result %d" % index, result.recovery, compare.recovery(result), size)
        judge.close("the value of result %d" % index, result.value, compare.recovery(result), size)


def _judge_same(judge, what, request, got, expected):
    """Two answers to one request are equal bit for bit, or to rounding where the device sums in another order each time."""
    for message in differences(got, expected, numbers=judge.repeatable):
        judge.say("bits", "%s: %s" % (what, message))
    if not judge.repeatable and not judge.muted:
        unique.close_results(judge, request, got, expected)


def law_deterministic(subject, judge):
    """Two equal requests have equal answers, bit for bit."""
    request = subject.base()
    first, second = yield [request, request.again("again")]
    if judge.ok(first, second):
        _judge_same(judge, "the second time", request, second, first)


def law_context_isolated(subject, judge):
    """Computations in between, with another policy or without success, change nothing."""
    request = subject.base()
    other = (("preset", "fast"), ("nonlinearity", "gradient"))
    if subject.variant.policy_name == "fast":
        other = (("preset", "faithful"),)
    between = subject.base(policy=other)
    refused = Request("call", {"op": "aten::no_such_operator"}, nonce="isolated")
    first, _, failed, second = yield [request, between, refused, request.again("isolated")]
    judge.equal("the code of an unknown operator", failed.code, "NOT_FOUND")
    if judge.ok(first, second):
        _judge_same(judge, "after another context", request, second, first)


def law_thread(subject, judge):
    """Threads that compute at once get the bits that one gets alone."""
    request = subject.base()
    base, threads = yield [request, subject.threads(THREADS)]
    if not judge.ok(base, threads):
        return
    own = base.results
    if len(threads.results) != THREADS * len(own):
        judge.say("text", "%d results of %d threads, one has %d" % (len(threads.results), THREADS, len(own)))
        return
    for index, result in enumerate(threads.results):
        for message in result_differences(result, own[index % len(own)], numbers=judge.repeatable):
            judge.say("bits", "thread %d: %s" % (index // len(own), message))
    if not judge.repeatable and not judge.muted:
        for begin in range(0, len(threads.results), len(own)):
            unique.close_each(judge, request, threads.results[begin : begin + len(own)], own)


def law_alias(subject, judge):
    """The arguments are afterwards what they were."""
    (base,) = yield [subject.base(echo=True)]
    if not judge.ok(base):
        return
    for key in subject.compositions:
        parts = subject.explicit(key)
        for part in ("components", "reference", "leftover"):
            sent = getattr(parts, part)
            if sent is None:
                sent = parts.reference.like([0] * len(parts.reference.numbers))
            judge.same_bits("%s of argument %s" % (part, key), base.tensor("%s.%s" % (key, part)), sent)


def law_adjoint(subject, judge):
    """One sweep back from a number of the output finds what decomposing finds for it; under choices that look at all
    components together there is none, and it may be refused."""
    (base,) = yield [subject.base()]
    result = _first_composition(judge, base)
    if result is None:
        return
    shape = result.reference.shape
    last = [extent - 1 for extent in shape]
    targets = [",".join(map(str, last))]
    if any(last):
        targets.append(",".join("0" * len(shape)) + "-" + targets[0])
    (swept,) = yield [subject.attribution(targets)]
    if swept.code == "FAILED_PRECONDITION" and _is_joint(subject.variant.policy):
        return
    if judge.ok(swept) and not judge.muted:
        for index in range(len(targets)):
            _judge_explanation(judge, swept, "attribution.%d" % index, result)


def law_memory_limit(subject, judge):
    """Contributions within a limit of memory, so low that nearly all is computed again, have the same bits. Policies
    that need the whole run may be refused."""
    (base,) = yield [subject.base()]
    result = _first_composition(judge, base)
    if result is None:
        return
    target = ",".join(str(extent - 1) for extent in result.reference.shape)
    whole, limited = yield [subject.attribution([target]), subject.attribution([target], limit=1000)]
    if whole.code == "FAILED_PRECONDITION" and _is_joint(subject.variant.policy):
        return
    if limited.code == "INVALID_ARGUMENT" and _needs_whole_run(subject.variant.policy):
        return
    if judge.ok(whole, limited) and not judge.muted:
        for part in ("numbers", "contributions", "ranked"):
            key = "attribution.0." + part
            # The order of contributions that are equal to rounding is as good as another one.
            if judge.repeatable or part != "ranked":
                judge.same_again(key, limited.tensor(key), whole.tensor(key), compare.mass(result))


def law_distribution(subject, judge):
    """Contributions to a probability, to its logarithm and to an entropy of the softmax over the last dimension are those
    to the logits, weighted with the mean gradient along the line between both ends."""
    (base,) = yield [subject.base()]
    result = _first_composition(judge, base)
    if result is None:
        return
    shape = result.reference.shape
    if not shape or shape[-1] < 2 or 0 in shape or result.reference.dtype not in ("f32", "f64"):
        return
    row = [extent - 1 for extent in shape[:-1]]
    place = ",".join(map(str, row + [0]))
    rows = ",".join(map(str, row))
    targets = ["probability:" + place, "log_probability:" + place, "entropy:" + rows if rows else "entropy"]
    (swept,) = yield [subject.attribution(targets)]
    if swept.code == "FAILED_PRECONDITION" and _is_joint(subject.variant.policy):
        return
    if not judge.ok(swept) or judge.muted:
        return
    last = lambda tensor: list(tensor.numbers)[-shape[-1] :]
    value, reference = last(result.value), last(result.reference)
    if not all(map(math.isfinite, value + reference)):
        return
    parts = [last(part) for part in result.components.rows()]
    for index, target in enumerate(targets):
        word, key = target.split(":")[0], "attribution.%d" % index
        mean = distribution.mean_gradient(word, 0, reference, value)
        contributions = [math.fsum(g * x for g, x in zip(mean, part)) for part in parts]
        ends = [distribution.QUANTITIES[word][0](logits, 0) for logits in (value, reference)]
        leftover = ends[0] - ends[1] - math.fsum(contributions)
        size = compare.mass(result) * max(1.0, *map(abs, mean))
        judge.close(key + ".contributions", swept.tensor(key + ".contributions"),
                    Tensor("f64", (len(parts),), contributions), size)
        judge.close(key + ".numbers", swept.tensor(key + ".numbers"), Tensor("f64", (5,), ends + [leftover, ends[0], 0.0]),
                    size)


def law_direction(subject, judge):
    """Components that come back from the results are those that went through every operator; under choices that look at
    all components together none come back, and it may be refused."""
    forward, backward = yield [subject.directed("forward"), subject.directed("backward")]
    if backward.code == "FAILED_PRECONDITION" and _is_joint(subject.variant.policy):
        return
    if judge.ok(forward, backward) and _compositions(judge, forward) and not judge.muted:
        if len(backward.results) != len(forward.results):
            judge.say("text", "%d results instead of %d" % (len(backward.results), len(forward.results)))
            return
        for index, expected in _compositions(judge, forward):
            got, size = backward.results[index], compare.mass(expected)
            rows, expected_rows = list(got.components.rows()), list(expected.components.rows())
            judge.equal("the number of components of result %d" % index, len(rows), len(expected_rows))
            _judge_rows(judge, "result %d" % index, rows, expected_rows, size)
            judge.close("the leftover of result %d" % index, got.leftover, expected.leftover, size)
            judge.same_again("the reference of result %d" % index, got.reference, expected.reference, size)


def _is_joint(policy):
    """Whether coefficients may depend on all components: see SPEC.md, nonlinearity and bias."""
    return any(key in ("nonlinearity", "bias") and re.match(r"abs|sign|norm|hybrid", value) for key, value in policy or ())


def _needs_whole_run(policy):
    return any(key in ("segments", "anchor", "bias") for key, _ in policy or ())


def law_program(subject, judge):
    """A recorded program that was saved and loaded stands for the model: the same bits, plain and decomposed; what
    rounds by addresses is close."""
    requests = [subject.value(), subject.base()]
    plain, base, *others = yield requests + [subject.recorded(request) for request in requests]
    if judge.ok(plain, base, *others) and _compositions(judge, base) and not judge.muted:
        for expected, got in zip((plain, base), others):
            if not (subject.variant.repeatable and judge.repeatable):
                unique.close_results(judge, requests[0], got, expected)
                continue
            if len(got.results) != len(expected.results):
                judge.say("text", "%d results instead of %d" % (len(got.results), len(expected.results)))
            for a, b in zip(got.results, expected.results):
                for message in result_differences(a, b):
                    judge.say("bits", "%s: %s" % (b.name, message))


LAWS = {name[len("law_") :]: law for name, law in list(globals().items()) if name.startswith("law_")}
LAWS["reference"] = _reference(exact=False)
LAWS["reference_exact"] = _reference(exact=True)


# Features that a testee has to announce, by law.
NEEDED_FEATURE = {
    "adjoint": "attribution",
    "direction": "directions",
    "distribution": "distributions",
    "memory_limit": "limits",
    "program": "programs",
}


# ---- verbs that speak of one language


def check_lifecycle(subject, judge):
    (answer,) = yield [subject.base()]
    if judge.ok(answer):
        case = subject.variant.case
        codes = protocol.unlines(answer.entries.get("codes", ""))
        judge.equal("the number of codes", len(codes), len(case["codes"]))
        for step, got, expected in zip(case["steps"], codes, case["codes"]):
            judge.equal("the code of %s" % " ".join(step), got, expected)


def check_memory(subject, judge):
    (answer,) = yield [subject.base()]
    if judge.ok(answer):
        for name, expected in (("shared", "after"), ("copied", "data")):
            message = compare.same_bits(name, answer.tensor(name), subject.tensors[expected])
            if message:
                judge.say("bits", message)


def check_read(subject, judge):
    (answer,) = yield [subject.base()]
    if judge.ok(answer):
        tensors, _ = safetensors.decode(subject.tensors["file"].raw)
        names = protocol.unlines(answer.entries.get("names", ""))
        judge.equal("the names of the tensors", sorted(names), sorted(tensors))
        for name, tensor in tensors.items():
            message = compare.same_bits(name, answer.tensor("file." + name), tensor)
            if message:
                judge.say("bits", message)


_OTHER_VERBS = {"lifecycle": check_lifecycle, "memory": check_memory, "read": check_read}


# ---- two answers


def differences(got, expected, named=False, numbers=True):
    """The differences of two answers, except for the texts of errors: at most a few lines. `named`: whether the names
    of results count; `numbers`: whether numbers do, and reports of them, or only where they stand."""
    if got.code != expected.code:
        return ["%s (%s) instead of %s (%s)" % (got.code, got.message, expected.code, expected.message)]
    found = []
    ignored = {"id", "message", "results", "complex", "payload"} | (set() if numbers else {"report"})
    for key in sorted((got.entries.keys() | expected.entries.keys()) - ignored):
        a, b = got.entries.get(key, ""), expected.entries.get(key, "")
        if a != b:
            found.append("%s is %r instead of %r" % (key, a, b))
    if len(got.results) != len(expected.results):
        found.append("%d results instead of %d" % (len(got.results), len(expected.results)))
    for a, b in zip(got.results, expected.results):
        found += result_differences(a, b, named, numbers)
    owned = ("attribution.", "explanation.", "c", "shared", "copied", "file.")
    for name in sorted(expected.tensors):
        if name.startswith(owned) and not _of_a_result(name, expected):
            found += _tensor_difference(name, got.tensor(name), expected.tensors[name], numbers)
    return found[:5]


def _of_a_result(name, answer):
    keys = {value for _, _, value in protocol.fields(answer.entries.get("results", ""), 3)}
    return name in keys or name.rpartition(".")[0] in keys


def result_differences(got, expected, named=False, numbers=True):
    if got.kind != expected.kind or (named and got.name != expected.name):
        return ["%s %r instead of %s %r" % (got.kind, got.name, expected.kind, expected.name)]
    found = []
    for part, wanted in expected.parts.items():
        if part == "number":
            a, b = protocol.number(got.parts.get(part, math.nan)), protocol.number(wanted)
            if numbers and a != b:
                found.append("the number is %s instead of %s" % (a, b))
        elif part not in got.parts:
            found.append("the %s are missing" % part)
        else:
            found += _tensor_difference(part, got.parts[part], wanted, numbers)
    return found


def _tensor_difference(what, got, expected, numbers):
    message = (compare.same_bits if numbers else compare.same_form)(what, got, expected)
    return [message] if message else []
