"""PyTorch's operator database, called live in Python.

The oracle is not ours: near a baseline, what a component contributes is the derivative along its move, which PyTorch's
autograd gives. Where the function itself does not follow the derivative (a kink, a step, a matrix of which one half is
read), only PyTorch's value and its value on the baseline are compared. Nothing may be wrong without an error, a warning
or a leftover.
"""

import random
import sys
import types
import unittest
import warnings

# The database imports a test framework that it does not need for samples.
sys.modules.setdefault("expecttest", types.SimpleNamespace(ACCEPT=False, TestCase=object))

import numpy  # noqa: E402
import torch  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

import addend  # noqa: E402

SAMPLES = 3
MAX_NUMEL = 2000
MOVE = 1e-6
STEP = 1e-4  # of differences
CLOSE = 1e-3  # of the largest derivative: MOVE leaves six digits of sixteen, and as many curvatures of its own
LEAST = 0.97  # of the entries that have a sample


def leaves_of(value, found):
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        for own in value:
            leaves_of(own, found)
    elif isinstance(value, dict):
        for own in value.values():
            leaves_of(own, found)
    return found


def with_leaves(value, leaves):
    """A structure with other tensors in the places of its own, in order."""
    if isinstance(value, torch.Tensor):
        return next(leaves)
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        parts = [with_leaves(own, leaves) for own in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        return {key: with_leaves(own, leaves) for key, own in value.items()}
    return value


class Sample:
    """One call: a function of its floating-point tensors. They come in order, and so do the results of that kind."""

    def __init__(self, op, sample):
        self._op = op
        self._arguments = ([sample.input, *sample.args], dict(sample.kwargs))
        self._leaves = [leaf.detach() for leaf in leaves_of(self._arguments, [])]
        self.moving = [k for k, leaf in enumerate(self._leaves) if leaf.is_floating_point() and leaf.numel() > 0]
        self.inputs = [self._leaves[k].clone() for k in self.moving]
        self.numel = sum(leaf.numel() for leaf in self._leaves)
        self.is_dense = all(leaf.layout == torch.strided for leaf in self._leaves)

    def __call__(self, *inputs):
        leaves = [leaf.clone() for leaf in self._leaves]
        for k, given in zip(self.moving, inputs):
            leaves[k] = given
        arguments, keywords = with_leaves(self._arguments, iter(leaves))
        results = leaves_of(self._op(*arguments, **keywords), [])
        return tuple(own for own in results if own.is_floating_point() or own.is_complex())


def differences(sample, base, move):
    ahead, behind = (sample(*[b + sign * STEP * own for b, own in zip(base, move)]) for sign in (1, -1))
    return [(a - b) / (2 * STEP) for a, b in zip(ahead, behind)]


def derivatives(sample, base, moves):
    """The derivatives of every result along each component's move; differences where autograd has no second derivative."""
    found = []
    for move in moves:
        try:
            found.append(torch.autograd.functional.jvp(sample, tuple(base), tuple(move))[1])
        except (RuntimeError, NotImplementedError):
            found.append(differences(sample, base, move))
    return [torch.stack(list(of_result)) for of_result in zip(*found)]


def far(found, want, scale):
    apart = (found - want).abs()
    return bool((apart > CLOSE * scale).any()) or not bool(torch.isfinite(apart).all())


def backward(live, given, results, parts):
    """How far a sweep back from one element is from what went forward, of the largest part."""
    name = next((n for n, own in zip(results.names, results) if any(own is one for one in parts) and own.value.torch().numel()), None)
    if name is None or results[name].value.torch().is_complex():
        return 0.0
    value = results[name].value.torch()
    place = tuple(own[len(own) // 2].item() for own in value.isfinite().nonzero().T) if value.isfinite().any() else None
    if place is None:
        return 0.0
    components = results[name].components.torch()[(slice(None), *place)]
    found = torch.tensor(live.explain(*given, targets=[place], at=name, each_example=False)[0].contributions)
    largest = components.abs().max().item()
    return (found.to(components) - components).abs().max().item() / largest if largest > 1e-12 else 0.0


def judge(sample):
    """The fault of a sample, or ""; "said" where the derivative tells nothing, or a warning or a leftover tells why the
    parts are others; "refused: ..." and "skip: ..."."""
    torch.manual_seed(3)
    base = sample.inputs
    whole = [torch.randn(own.shape, dtype=own.dtype) for own in base]
    halves = [torch.randint(2, own.shape) for own in base]
    moves = [[own * (half == k) for own, half in zip(whole, halves)] for k in range(2)]
    values = [own + MOVE * move for own, move in zip(base, whole)]
    try:
        plain, at_base = sample(*[v.clone() for v in values]), sample(*[b.clone() for b in base])
        want = derivatives(sample, base, moves)
    except Exception as error:  # the database's own
        return "skip: %s" % str(error).splitlines()[0][:80] if str(error) else "skip"
    if not plain or not any(own.numel() for own in plain):
        return "skip"
    given = [addend.Input(v, labels=h, baseline=b, first_component=0) for v, h, b in zip(values, halves, base)]
    live = addend.compile(sample, preset="faithful")
    try:
        results = live.decompose(*given)
        parts = [own for own in results if isinstance(own, addend.Composition)]
        apart = backward(live, given, results, parts)
    except (addend.Error, TypeError, ValueError) as error:
        return "refused: %s: %s" % (type(error).__name__, str(error).splitlines()[0][:120])
    said = bool(results.warnings)
    if len(parts) != len(plain):
        return "there are %d results for %d" % (len(parts), len(plain))
    if not apart < 1e-6:
        return "a sweep back gives others: off by %g of the largest" % apart
    answer = ""
    for own, value, reference, along in zip(parts, plain, at_base, want):
        if value.numel() == 0:
            continue
        scale = value.abs().max().item() + reference.abs().max().item()
        if not torch.isfinite(value).all() or not torch.isfinite(reference).all():
            answer = "said"
            continue
        digits = max(1e-9, 4 * torch.finfo(value.dtype).eps)
        for what, mine, theirs in (("recovery", own.recovery, value), ("reference", own.reference, reference)):
            apart = (mine.torch() - theirs).abs().max().item()
            if apart > digits * (scale + 1e-3) and not (said and what == "reference"):
                return "%s is off by %g" % (what, apart)
        if digits > 1e-9:
            continue  # which the move is too small for
        components = own.components.torch() / MOVE
        along = along[: len(components)]  # a label that no element has is no component
        left = own.leftover.torch().abs().max().item() / MOVE
        step = along.abs().max().item()
        if not far(components, along, step + 1e-4 * scale):
            continue
        there = (value - reference) / MOVE
        if left > CLOSE * step or far(there, along.sum(0), step + 1e-4 * scale) or said:
            answer = "said"
            continue
        return "parts are off by %g of %g" % ((components - along).abs().max().item(), step)
    return answer


class OpDbLiveTest(unittest.TestCase):
    def test_nothing_is_wrong_without_a_word(self):
        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        right, refused, said, skipped, wrong = [], {}, [], [], {}
        for op in op_db:
            if not op.supports_autograd or torch.float64 not in op.dtypes:
                continue
            name = op.name + ("." + op.variant_test_name if op.variant_test_name else "")
            torch.manual_seed(0)
            random.seed(1)
            numpy.random.seed(1)
            samples = [Sample(op.op, own) for own in op.sample_inputs("cpu", torch.float64, requires_grad=False)]
            samples = [own for own in samples if own.inputs and own.is_dense and own.numel <= MAX_NUMEL]
            step = max(1, -(-len(samples) // SAMPLES))
            verdicts = []
            for sample in samples[::step]:
                verdicts.append(judge(sample))
            refusals = [own for own in verdicts if own.startswith("refused")]
            if any(own and not own.startswith(("said", "refused", "skip")) for own in verdicts):
                wrong[name] = [own for own in verdicts if own]
            elif not verdicts or all(own.startswith("skip") for own in verdicts):
                skipped.append((name, verdicts[:1]))
            elif refusals:
                refused[name] = refusals[0]
            elif all(own == "said" for own in verdicts):
                said.append(name)
            else:
                right.append(name)
        print("%d as the derivative, %d that it tells nothing of, %d refused, %d without a sample, %d wrong" % (
            len(right), len(said), len(refused), len(skipped), len(wrong)))
        for title, own in (("refused", refused), ("no derivative", said), ("no sample", skipped), ("wrong", wrong)):
            print(title, own)
        self.assertEqual(wrong, {})
        entries = len(right) + len(said) + len(refused) + len(wrong)
        self.assertGreater(entries, 400)
        self.assertGreaterEqual(len(right) + len(said), LEAST * entries)
        self.assertGreaterEqual(len(right), 0.9 * entries)


if __name__ == "__main__":
    unittest.main()
