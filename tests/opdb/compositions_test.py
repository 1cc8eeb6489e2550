"""PyTorch's operator database on compositions: its entries, called by their Python names.

Each entry is given a composition for each floating-point tensor, as users call it (`torch.add(c, 2)`,
`torch.nn.functional.gelu(c)`), and also runs in a block of `addend.tracing` on the same compositions. The oracle is not
ours: what is recovered is what PyTorch computes of the plain tensors, and integers and bools are PyTorch's. Compositions
take at least as many entries as tracing does. What they refuse is named here with the words of the refusal, and so is
what only tracing takes.
"""

import inspect
import random
import re
import sys
import types
import unittest
import warnings

# The database imports a test framework that it does not need for samples.
sys.modules.setdefault("expecttest", types.SimpleNamespace(ACCEPT=False, TestCase=object))

import numpy  # noqa: E402
import torch  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402
from torch.utils._pytree import tree_flatten, tree_unflatten  # noqa: E402

import addend  # noqa: E402

SAMPLES = 5
MAX_NUMEL = 2000
DIGITS = 16  # of the dtype's steps, for the largest number: that many functions lose in float32
ROUNDING = 1e-3  # a result that is farther from float64's is no matter of rounding: it was drawn, or took another branch

# Counts and tables are those of PyTorch 1.13. Others have other entries, of which a share has to work.
IS_MEASURED = torch.__version__.startswith("1.13")
MEASURED_ONLY = "the tables are those of PyTorch 1.13"
COMPOSITIONS = 517
TRACED = 489
LEAST = 0.8

# Nobody has written the memory that these give.
UNWRITTEN = {"empty_like", "new_empty", "new_empty_strided"}
# The database calls `torch.Tensor.uniform_`, which Python lets no other class have.
SPELLED = {"uniform": lambda x, *args, **kwargs: x.uniform_(*args, **kwargs)}

NO_RULE = "^Unimplemented: no composition rule for aten::"
NO_TORCH_DTYPE = "^(Type|Attribute)Error: .*DType"  # that c.dtype is an addend.DType, and what to do, docs/python.md says
# Neither way takes these.
REFUSED = {
    **dict.fromkeys(
        "geqrf histc histogram histogramdd igamma igammac linalg.eig linalg.eigvals linalg.ldl_factor linalg.ldl_factor_ex "
        "linalg.ldl_solve randint_like unique unique_consecutive "
        "special.airy_ai special.chebyshev_polynomial_t special.chebyshev_polynomial_u special.chebyshev_polynomial_v "
        "special.chebyshev_polynomial_w special.hermite_polynomial_h special.hermite_polynomial_he "
        "special.laguerre_polynomial_l special.legendre_polynomial_p special.shifted_chebyshev_polynomial_t "
        "special.shifted_chebyshev_polynomial_u special.shifted_chebyshev_polynomial_v "
        "special.shifted_chebyshev_polynomial_w special.spherical_bessel_j0 "
        "special.zeta".split(),
        NO_RULE,
    ),
    "chalf": "^TypeError: no dtype torch.complex32; there are ",
    "resize_": r"^AttributeError: a composition has no 'resize_' of its own; take that of c.recovery.torch\(\)",
    "resize_as_": r"^TypeError: a composition has no memory that resize_as_ could give; take it of c.recovery.torch\(\)",
    "to_sparse": r"^AttributeError: a composition has no 'to_sparse' of its own; take that of c.recovery.torch\(\)",
    # Positions, as numbers of the dtype of what they are found in: no component reaches them.
    **dict.fromkeys(("masked.argmax", "masked.argmin"), NO_TORCH_DTYPE),
}
# Tracing takes these, compositions do not.
ONLY_TRACED = {
    **dict.fromkeys(
        "masked.amax masked.amin masked.cumprod masked.cumsum masked.log_softmax masked.logaddexp masked.logsumexp "
        "masked.mean masked.median masked.norm masked.normalize masked.prod masked.softmax masked.softmin masked.std "
        "masked.sum masked.var".split(),
        NO_TORCH_DTYPE,
    ),
    # PyTorch takes it apart into an operator that has no rule, and its own has none.
    "linalg.tensorsolve": NO_RULE,
    # PyTorch 1.13 takes such a list for a tuple, later versions take it for a tensor.
    "__getitem__": "^TypeError: a list of lists as an index is a tuple to some versions of PyTorch and a tensor to others",
}


def leaves_of(value):
    """The results of a function one by one: tensors or compositions, and whatever else it returns."""
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return [leaf for own in value for leaf in leaves_of(own)]
    return [value]


def has_parts(value):
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


def largest(tensor):
    """The largest finite magnitude."""
    finite = tensor[tensor.isfinite()].abs()
    return finite.max().item() if finite.numel() else 0.0


def by_name(function, name):
    """The function as users call it on something that is no tensor: what only the class of tensors has is a method."""
    if inspect.ismethoddescriptor(function):
        return lambda x, *args, **kwargs: getattr(x, function.__name__)(*args, **kwargs)
    return SPELLED.get(name, function)


class Call:
    """One call: a function of its floating-point tensors. Half of each is reference, the other half two components."""

    def __init__(self, function, sample):
        self._function = function
        leaves, self._structure = tree_flatten(((sample.input, *sample.args), sample.kwargs))
        self._leaves = [leaf.detach() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        tensors = [leaf for leaf in self._leaves if isinstance(leaf, torch.Tensor)]
        self._moving = [
            k
            for k, leaf in enumerate(self._leaves)
            if isinstance(leaf, torch.Tensor) and leaf.is_floating_point() and leaf.numel() > 0
        ]
        self.inputs = [self._leaves[k] for k in self._moving]
        self._labels = [torch.randint(2, own.shape) for own in self.inputs]
        # Compositions are dense, and of numbers: NaN and infinity have no parts.
        self.is_fit = (
            len(self.inputs) > 0
            and sum(own.numel() for own in tensors) <= MAX_NUMEL
            and all(own.layout == torch.strided for own in tensors)
            and all(bool(own.isfinite().all()) for own in self.inputs)
        )

    def __call__(self, inputs):
        leaves = [leaf.clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in self._leaves]
        for k, given in zip(self._moving, inputs):
            leaves[k] = given
        args, kwargs = tree_unflatten(leaves, self._structure)
        torch.manual_seed(3)  # so that all ways draw the same
        return self._function(*args, **kwargs)

    def compositions(self):
        return [
            addend.Composition.from_labels(own, labels, baseline=own / 2, numc=2)  # halves add up to the last bit
            for own, labels in zip(self.inputs, self._labels)
        ]


class Expected:
    """Results of PyTorch on the plain tensors, and how much of them is rounding."""

    def __init__(self, call):
        self.output = call([own.clone() for own in call.inputs])
        self.leaves = leaves_of(self.output)
        try:
            wide = leaves_of(call([own.double() for own in call.inputs]))
        except RuntimeError:  # the function wants its other arguments to be of the same dtype
            wide = []
        self._wide = wide if len(wide) == len(self.leaves) else self.leaves

    def difference(self, found):
        """The fault of the results, or ""."""
        if len(found) != len(self.leaves):
            return "there are %d results for %d" % (len(found), len(self.leaves))
        return next(filter(None, map(self._difference, found, self.leaves, self._wide)), "")

    @staticmethod
    def _difference(found, plain, wide):
        if not has_parts(plain):
            is_same = torch.equal(found, plain) if isinstance(plain, torch.Tensor) else found == plain
            return "" if is_same and type(found) is type(plain) else "%r for %r" % (found, plain)
        if not isinstance(found, addend.Composition):
            return "a %s for a composition" % type(found).__name__
        form, its = (found.shape, str(found.dtype)), (tuple(plain.shape), str(plain.dtype).partition(".")[2])
        if form != its:
            return "shape and dtype %s for %s" % (form, its)
        scale = largest(plain) + largest(found.reference.torch()) + 1e-2
        rounding = largest(wide - plain) if has_parts(wide) and wide.shape == plain.shape else 0.0
        close = DIGITS * torch.finfo(plain.dtype).eps * scale + (4 * rounding if rounding < ROUNDING else 0.0)
        for what in ("recovery", "value"):
            own = getattr(found, what).torch()
            if not torch.isclose(own, plain.to(own.dtype), rtol=0, atol=close, equal_nan=True).all():
                return "%s is off by %g of %g" % (what, (own - plain).abs().max().item(), scale)
        return ""


def on_compositions(call, expected):
    """The fault of an entry on compositions, or ""."""
    found, its = call(call.compositions()), expected.output
    if isinstance(its, (list, tuple)) and type(found) is not type(its):
        return "%s is no %s" % (type(found).__name__, type(its).__name__)
    return expected.difference(leaves_of(found))


def by_tracing(call, expected):
    """The fault of an entry by tracing, or ""; None where nothing that it gives has parts."""
    if not any(map(has_parts, expected.leaves)):
        return None
    with addend.tracing(*call.compositions()) as trace:
        found = leaves_of(call(trace.inputs))
        for k, leaf in enumerate(found):
            if has_parts(leaf):
                trace.output(leaf, "result %d" % k)
    return expected.difference([
        trace.results["result %d" % k] if has_parts(leaf) else leaf for k, leaf in enumerate(found)
    ])


class Verdicts:
    """Verdicts on entries that are run one way. An entry is right if all of its samples are."""

    def __init__(self, way):
        self._way = way
        self.right = set()
        self.refused, self.wrong = {}, {}  # what is said of which entry

    def judge(self, name, samples):
        answers = []
        for call, expected in samples:
            try:
                answers.append(self._way(call, expected))
            except Exception as error:  # the tables tell which errors are clear
                first = str(error).partition("\n")[0]
                self.refused.setdefault(name, []).append("%s: %s" % (type(error).__name__, first))
        wrong = [answer for answer in answers if answer]
        if wrong:
            self.wrong[name] = wrong
        if all(answer == "" for answer in answers) and name not in self.refused:
            self.right.add(name)


def samples_of(op, name):
    torch.manual_seed(0)
    random.seed(1)
    numpy.random.seed(1)
    calls = [Call(by_name(op.op, name), own) for own in op.sample_inputs("cpu", torch.float32, requires_grad=False)]
    calls = [call for call in calls if call.is_fit]
    samples = []
    for call in calls[:: max(1, -(-len(calls) // SAMPLES))]:
        try:
            samples.append((call, Expected(call)))
        except (AssertionError, RuntimeError):
            pass  # of the database itself: what needs a GPU
    return samples


class OpDbCompositionsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        cls.compositions, cls.traced = Verdicts(on_compositions), Verdicts(by_tracing)
        cls.skipped = []
        cls.count = 0
        for op in op_db:
            name = op.name + ("." + op.variant_test_name if op.variant_test_name else "")
            if torch.float32 not in op.dtypes or name in UNWRITTEN:
                continue
            samples = samples_of(op, name)
            if not samples:
                cls.skipped.append(name)
                continue
            cls.count += 1
            cls.compositions.judge(name, samples)
            cls.traced.judge(name, samples)
        print("%d entries: %d on compositions, %d by tracing, %d refused on compositions; %d without a sample: %s" % (
            cls.count, len(cls.compositions.right), len(cls.traced.right), len(cls.compositions.refused),
            len(cls.skipped), " ".join(cls.skipped)))

    def assertSaid(self, found, table):
        """Entries say what a table says of them; in the PyTorch that it was made with, all of it."""
        other = {
            name: [text for text in texts if not re.search(table.get(name, "^$"), text)] for name, texts in found.items()
        }
        self.assertEqual({name: texts for name, texts in other.items() if texts}, {})
        if IS_MEASURED:
            self.assertEqual(set(table) - set(found), set(), "these lines have to go: the entries pass")

    def test_nothing_is_wrong(self):
        self.assertEqual(self.traced.wrong, {})
        self.assertEqual(self.compositions.wrong, {})

    @unittest.skipUnless(IS_MEASURED, MEASURED_ONLY)
    def test_refusals_are_told(self):
        self.assertSaid(self.compositions.refused, {**REFUSED, **ONLY_TRACED})

    @unittest.skipUnless(IS_MEASURED, MEASURED_ONLY)
    def test_what_tracing_takes_compositions_take(self):
        self.assertEqual(self.traced.right - self.compositions.right, set(ONLY_TRACED))

    def test_counts(self):
        compositions, traced = len(self.compositions.right), len(self.traced.right)
        self.assertGreaterEqual(compositions, traced)
        self.assertGreaterEqual(compositions, LEAST * self.count)
        if IS_MEASURED:
            self.assertGreaterEqual(compositions, COMPOSITIONS)
            self.assertGreaterEqual(traced, TRACED)


if __name__ == "__main__":
    unittest.main()
