"""Verdicts on a device's answers: beside that of the CPU, where there is one, and beside what LibTorch itself can do
there."""

import collections
import math

from . import checks, protocol, refusal, tensor, unique
from .testee import LOST_CONTEXT

# The answer that checks get, what is wrong about it (class, message), and why the check is skipped; "" if it is not.
Verdict = collections.namedtuple("Verdict", "answer failures skipped", defaults=((), ""))


def weigh(variant, subject, request, answers, tolerances):
    """A generator, as checks are: yields lists of requests, gets for each the answers of the device and of the CPU, and
    returns a Verdict.

    Args:
        answers: of the device, and of the CPU or not.
    """
    own, cpu = answers if len(answers) > 1 else (answers[0], None)
    refused_too = cpu is not None and cpu.code != "OK"
    if own.code == LOST_CONTEXT and refused_too:
        return Verdict(cpu)  # An index: on the device there is no other way to refuse it.
    words = refusal.no_kernel(own) or (refusal.no_kernel_of_type(own) if cpu is not None else "")
    if words and not refused_too:
        plain = own
        if not _is_plain(request):
            ((plain, *_),) = yield [subject.value()]
        if refusal.no_kernel(plain) or refusal.no_kernel_of_type(plain):
            return Verdict(own, skipped="LibTorch refuses: " + words)
    if cpu is None:
        return Verdict(own)
    if own.code != cpu.code:
        kind = checks.kind_of(own) if own.code != "OK" else "error"
        return Verdict(own, [(kind, "%s (%s) instead of %s (%s)" % (own.code, own.message, cpu.code, cpu.message))])
    if own.code != "OK":
        return Verdict(own)
    if variant.draws:
        named = request.entries.get("inner_verb", request.verb) in ("run", "decompose")
        return Verdict(own, [("number", words) for words in checks.differences(own, cpu, named=named, numbers=False)])
    failures = _apart(variant, request, own, cpu, tolerances)
    if failures and all(kind == "number" for kind, _ in failures):
        failures = yield from _beside_float64(variant, subject, request, own, failures, tolerances)
    return Verdict(own, failures)


def _is_plain(request):
    """Whether what is asked is LibTorch's own work."""
    if request.verb == "call":
        return all(kind != "composition" for kind, _, _ in protocol.fields(request.entries.get("args", ""), 3))
    return request.verb not in ("attribute", "decompose", "shapley", "threads")


def _apart(variant, request, got, expected, tolerances, kernel=0.0):
    judge = checks.Judge(variant, "devices", tolerances, kernel=kernel)
    unique.close_results(judge, request, got, expected)
    return judge.failures


def _beside_float64(variant, subject, request, own, failures, tolerances):
    """The failures that remain beside the CPU's answer in float64, where the device is allowed what its own kernel is
    off: the plain operator, or model, beside the CPU's in float64."""
    witnesses = [request] if _is_plain(request) else [subject.value(), subject.reference()]
    exact = [witness.in_float64(variant.dtype) for witness in witnesses]
    answers = yield [request.in_float64(variant.dtype)] + witnesses + exact
    (_, truth), answers = answers[0], answers[1:]
    plain, exact = answers[: len(witnesses)], [cpu for _, cpu in answers[len(witnesses) :]]
    if any(answer.code != "OK" for answer in [truth] + exact + [answer for pair in plain for answer in pair]):
        return failures
    off = []
    for side in range(2):
        measure = _Measure(variant, tolerances)
        for witness, pair, expected in zip(witnesses, plain, exact):
            unique.close_results(measure, witness, pair[side], expected)
        off.append(measure.worst)
    note = "; of its results the kernel itself is off by %.3g, that of the CPU by %.3g" % tuple(off)
    kernel = off[0]
    if kernel > tolerances.kernel[variant.dtype]:
        kernel, note = 0.0, note + ", which is more than a kernel may be"
    # A part is the difference of two results of the kernel.
    parts = 1 if _is_plain(request) else 2
    remaining = _apart(variant, request, own, truth, tolerances, parts * kernel)
    return [(kind, message + note) for kind, message in remaining]


class _Measure(checks.Judge):
    """Judges nothing, and remembers the largest error relative to the numbers that it is measured by."""

    def __init__(self, variant, tolerances):
        super().__init__(variant, "devices", tolerances)
        self.worst = 0.0

    def say(self, kind, message):
        self.worst = math.inf

    def close(self, what, got, expected, sizes):
        if got.shape != expected.shape or not tensor.is_floating(expected.dtype):
            super().close(what, got, expected, sizes)
            return
        smallest = self.allowance(got.dtype).at(0.0)
        sizes = sizes if isinstance(sizes, list) else [sizes] * len(got.numbers)
        for a, b, size in zip(got.numbers, expected.numbers, sizes):
            if a != b and not (a != a and b != b):
                error = abs(a - b) - smallest
                ratio = error / size if size else math.inf
                self.worst = max(self.worst, math.inf if ratio != ratio else ratio if error > 0 else 0.0)
