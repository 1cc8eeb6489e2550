"""Sizes in models: whatever way a program goes to other sizes than it was recorded at, it is right or refuses.

The oracle is the model itself. Forms are what models do with sizes; each is recorded live and from a TorchScript file, and
is replayed, saved, exported and asked as a model at sizes that were not recorded.
"""

import itertools
import os
import tempfile
import unittest
import warnings

import torch
from torch import Tensor, nn
from torch.nn import functional

import addend


class Form(nn.Module):
    """A layer over the columns, and something done with sizes."""

    def __init__(self, way):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.way = way

    def forward(self, x):
        return self.way(self.layer(x))


class Positions(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.positions = nn.Embedding(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x) + self.positions(torch.arange(x.shape[0]))


class Heads(nn.Module):
    """Attention without a batch: two heads of two."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        n, c = x.shape
        heads = self.layer(x).reshape(n, 2, c // 2).transpose(0, 1)
        weights = (heads @ heads.transpose(-1, -2) / n**0.5).softmax(-1)
        return (weights @ heads).transpose(0, 1).reshape(n, -1)


class Causal(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        y = self.layer(x)
        mask = torch.ones(x.size(0), x.size(0), dtype=torch.bool).triu(1)
        return (y @ y.transpose(0, 1)).masked_fill(mask, -1e9).softmax(-1) @ y


class ByBranch(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        y = self.layer(x)
        if x.size(0) > 2:
            return y * 2
        return y.sin()


class Truncated(nn.Module):
    """Cuts off what is longer than it takes, as language models do."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x[: min(x.size(0), 6)])


class Mean(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x).sum(0) / x.shape[0]


class Repeated(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Parameter(torch.rand(1, 4))
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.token.expand(x.size(0), 4), self.layer(x)], 1)


# Models that TorchScript compiles, and what is done live only. Rows are what varies, 4 columns each.
FILES = {
    "a mean as sum over size": Mean,
    "positions": Positions,
    "heads": Heads,
    "a causal mask": Causal,
    "a branch": ByBranch,
    "truncation": Truncated,
    "a repeated parameter": Repeated,
}
LIVE = {
    "nothing of sizes": lambda y: y * 2 + 1,
    "flatten": lambda y: y.reshape(y.shape[0], -1),
    "rows and columns as one": lambda y: y.reshape(y.shape[0] * 2, 2),
    "the first half": lambda y: y[: (y.shape[0] + 1) // 2],
    "all but the last": lambda y: y[: y.shape[0] - 1].sum(),
    "the last": lambda y: y[y.shape[0] - 1],
    "len": lambda y: y * len(y),
    "numel": lambda y: y.sum() / y.numel(),
    "a root of a size": lambda y: y / y.shape[0] ** 0.5,
    "zeros of a size": lambda y: torch.cat([y, torch.zeros(y.shape[0], 1)], 1),
    "a size as a tensor": lambda y: y * torch.tensor(y.shape[0]),
    "sizes in a list": lambda y: y.sum() * torch.tensor(list(y.shape)).sum(),
    "a range of floats": lambda y: y * torch.linspace(0, 1, y.shape[0])[:, None],
    "a loop over rows": lambda y: sum((y[k] * (k + 1) for k in range(y.shape[0])), torch.zeros(4)),
    "padding to a multiple": lambda y: functional.pad(y, (0, 0, 0, -y.shape[0] % 4)),
    "a square of a size": lambda y: torch.ones(y.shape[0] ** 2).sum() * y,
    "one-hot rows": lambda y: functional.one_hot(torch.arange(y.shape[0]), y.shape[0]).float() @ y,
    "twice as large": lambda y: functional.interpolate(y[None, None], size=(2 * y.shape[0], 4), mode="nearest")[0, 0],
    "chunks": lambda y: torch.cat(y.chunk(2, 0)[::-1]),
    "the largest of a size and a number": lambda y: y * max(y.shape[0], 4),
    "other rows": lambda y: y.roll(y.shape[0] // 2, 0),
    "a quarter, rounded up": lambda y: y[: -(-y.shape[0] // 4)].sum(0),
    "three times a half": lambda y: y[:2].repeat(3 * (y.shape[0] // 2), 1).sum(0),
    "half of the first": lambda y: y[max(y.shape[0] // 2, 2) - 2 :].sum(0),
}
SIZES = (1, 2, 3, 4, 5, 7, 8, 12)


def rows(count):
    torch.manual_seed(count)
    return torch.randn(count, 4)


class SizesTest(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore")
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def judge(self, run, model, where):
        """How many of the sizes are right; none may be wrong."""
        right = []
        for count in SIZES:
            x = rows(count)
            with torch.no_grad():
                want = model(x)
            try:
                got = run(x)
            except (addend.Error, torch.jit.Error):
                continue
            same = got.shape == want.shape and torch.allclose(got, want, rtol=1e-5, atol=1e-6)
            self.assertTrue(same, "%s is wrong at %d rows: %s for %s" % (where, count, got, want))
            right.append(count)
        return right

    def ways(self, source, recorded, where):
        """Every way from a recording at so many rows; `source` is what records, a live model or one of a file."""
        x = rows(recorded)
        yield where + ", replayed", source.record(x).replay
        learned = source.record(x, learn_sizes=True)
        yield where + ", learned and replayed", learned.replay
        yield where + ", with others", self.with_others(source, x, recorded)
        for name, program in (("plain", source.record(x)), ("learned", learned)):
            saved = self.path("%s-%d" % (name, recorded))
            program.save(saved)
            yield "%s, %s and saved" % (where, name), addend.Program.load(saved).replay
            exported = self.path("%s-%d.pt" % (name, recorded))
            try:
                program.export_torchscript(exported)
            except addend.Error as error:
                self.assertIn("cannot export", str(error), where)
                continue
            yield "%s, %s and exported" % (where, name), torch.jit.load(exported)
            model = program.model()
            yield "%s, %s as a model" % (where, name), lambda given: model.decompose(addend.Input(given, dims=0))[0].value

    def with_others(self, source, x, recorded):
        try:
            return source.record(x, others=[rows(recorded + 1), rows(recorded + 3)]).replay
        except addend.Error as error:
            self.assertTrue(str(error))
            return self.refuse

    def refuse(self, given):
        raise addend.Error("refused when it was recorded")

    def run_ways(self, source, model, where):
        found = {}
        for recorded in (1, 3):
            for way, run in self.ways(source, recorded, "%s at %d" % (where, recorded)):
                with self.subTest(way):
                    found[way] = self.judge(lambda x: tensor_of(run(x)), model, way)
                    if "others" not in way:
                        self.assertIn(recorded, found[way], "%s does not run at the size of the recording" % way)
        return found

    def test_live_models(self):
        found = {}
        for name, way in LIVE.items():
            torch.manual_seed(0)
            model = Form(way).eval()
            found.update(self.run_ways(addend.compile(model), model, name))
        for name, kind in FILES.items():
            torch.manual_seed(0)
            model = kind().eval()
            found.update(self.run_ways(addend.compile(model), model, name))
        self.require_followed(found)
        self.require_followed(found, ("the first half", "other rows", "a quarter, rounded up", "three times a half"))

    def test_files(self):
        found = {}
        for name, kind in FILES.items():
            torch.manual_seed(0)
            model = kind().eval()
            path = self.path("model.pt")
            torch.jit.script(model).save(path)
            found.update(self.run_ways(addend.load_model(path), model, name))
        self.require_followed(found)

    def require_followed(self, found, names=("a mean as sum over size", "positions", "a causal mask", "a repeated parameter")):
        """Models of one free size follow it, learned from one example: a refusal everywhere would be right, too."""
        for name in names:
            for way in ("learned and replayed", "learned and exported", "learned as a model"):
                for recorded in (1, 3):
                    key = "%s at %d, %s" % (name, recorded, way)
                    self.assertGreaterEqual(set(found[key]), {2, 3, 4, 5, 7, 8}, key)


class SeveralDimensionsTest(unittest.TestCase):
    """Batch and time vary together, and features do not."""

    def model(self):
        class Sequence(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 6)

            def forward(self, x, mask):
                b, t, _ = x.shape
                y = self.layer(x.reshape(b * t, 4)).reshape(b, t, 2, 3).transpose(1, 2)
                scores = y @ y.transpose(-1, -2) + (1 - mask)[:, None, None] * -1e4
                return (scores.softmax(-1) @ y).transpose(1, 2).reshape(b, t, 6).sum(1)

        torch.manual_seed(0)
        return Sequence().eval()

    def test_products_of_sizes_are_learned_from_one_example(self):
        model = self.model()
        for batch, time in ((1, 5), (2, 3)):
            program = addend.compile(model).record(torch.rand(batch, time, 4), torch.ones(batch, time), learn_sizes=True)
            path = os.path.join(tempfile.mkdtemp(), "m.pt")
            program.export_torchscript(path)
            exported = torch.jit.load(path)
            for b, t in ((1, 2), (2, 5), (4, 6), (batch, time)):
                x, mask = torch.rand(b, t, 4), (torch.rand(b, t) > 0.2).float()
                with torch.no_grad():
                    want = model(x, mask)
                torch.testing.assert_close(exported(x, mask), want)
                torch.testing.assert_close(tensor_of(program.replay(x, mask)), want)

    def test_what_is_refused_says_why(self):
        model = self.model()
        program = addend.compile(model).record(torch.rand(2, 3, 4), torch.ones(2, 3), learn_sizes=True)
        path = os.path.join(tempfile.mkdtemp(), "m.pt")
        program.export_torchscript(path)
        exported = torch.jit.load(path)
        with self.assertRaisesRegex(addend.InvalidArgument, "dimension 1 of mask has to be as large as dimension 1 of x"):
            program.replay(torch.rand(2, 3, 4), torch.ones(2, 4))
        with self.assertRaisesRegex(torch.jit.Error, "dimension 1 of mask is 4, which has to be as large as"):
            exported(torch.rand(2, 3, 4), torch.ones(2, 4))
        with self.assertRaisesRegex(addend.InvalidArgument, "dimension 1 of x is 99, but sizes from 1 to 9 were tried"):
            program.replay(torch.rand(2, 99, 4), torch.ones(2, 99))
        with self.assertRaisesRegex(torch.jit.Error, "dimension 1 of x is 99, but sizes from 1 to 9 were tried"):
            exported(torch.rand(2, 99, 4), torch.ones(2, 99))
        with self.assertRaisesRegex(torch.jit.Error, "x has 2 dimensions, and 3 were recorded"):
            exported(torch.rand(3, 4), torch.ones(2, 3))
        with self.assertRaisesRegex(torch.jit.Error, r"the sizes of x are \[2, 3, 5\], and \[2, 3, 4\] were recorded"):
            exported(torch.rand(2, 3, 5), torch.ones(2, 3))


class TwoExamplesTest(unittest.TestCase):
    def test_sizes_behind_a_stride(self):
        class Strided(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = nn.Conv1d(2, 3, 2, stride=2)

            def forward(self, x):
                y = self.conv(x)
                return y.reshape(y.shape[0], 3 * y.shape[2]).tanh()

        model = Strided().eval()
        program = addend.compile(model).record(
            torch.rand(1, 2, 16), others=[[torch.rand(1, 2, 24)], [torch.rand(1, 2, 40)]]
        )
        for width in (16, 17, 30, 41, 60):
            x = torch.rand(1, 2, width)
            with torch.no_grad():
                torch.testing.assert_close(tensor_of(program.replay(x)), model(x))

    def test_two_suffice(self):
        layer = nn.Linear(4, 2)
        for first, second in ((1, 2), (2, 1), (2, 3), (5, 2)):
            program = addend.compile(layer).record(rows(first), others=[rows(second)])
            with torch.no_grad():
                torch.testing.assert_close(tensor_of(program.replay(rows(7))), layer(rows(7)))


def padded(window):
    """Means of windows, behind padding to a multiple of one, as models of shifted windows do."""

    def means(x):
        whole = functional.pad(x, (0, (window - x.shape[-1] % window) % window))
        return whole.unfold(-1, window, window).mean(-1)

    return means


def even(x):
    whole = functional.pad(x, (0, x.shape[-1] % 2))
    return whole.sum(-1) / 2 + whole[..., -1]


class WindowsTest(unittest.TestCase):
    """Sizes that are all multiples of a window say nothing about those in between."""

    def test_sizes_between_multiples_are_right_or_refused(self):
        torch.manual_seed(0)
        cases = [("window %d" % k, padded(k), k * 2, o) for k in (2, 4, 7) for o in ((3 * k,), (4 * k,), (4 * k, 6 * k))]
        cases += [("even", even, 4, (6,)), ("even", even, 4, (8, 12)), ("even, from odd", even, 5, (7, 9))]
        for name, model, first, others in cases:
            with self.subTest(name, first=first, others=others), tempfile.TemporaryDirectory() as folder:
                x = torch.randn(2, 3, first)
                program = addend.compile(model).record(x, others=[torch.randn(2, 3, size) for size in others])
                path = os.path.join(folder, "p")
                program.save(path)
                runs = {"replayed": program.replay, "saved": addend.Program.load(path).replay}
                program.export_torchscript(path + ".pt")
                runs["exported"] = torch.jit.load(path + ".pt")
                for way, run in runs.items():
                    ran = set()
                    for size in range(1, 3 * others[-1]):
                        given = torch.randn(2, 3, size)
                        try:
                            found = tensor_of(run(given))
                        except (addend.Error, torch.jit.Error) as error:
                            self.assertIn("were tried", str(error))
                            continue
                        torch.testing.assert_close(found, model(given), msg="%s at %d" % (way, size))
                        ran.add(size)
                    self.assertLessEqual({first, *others}, ran)

    def test_what_is_the_same_at_neighbours_has_all_sizes(self):
        layer = nn.Linear(4, 2)
        program = addend.compile(layer).record(rows(4), others=[rows(8), rows(12)])
        with torch.no_grad():
            for size in (4, 5, 6, 7, 9, 11):
                torch.testing.assert_close(tensor_of(program.replay(rows(size))), layer(rows(size)))


class Counting(nn.Module):
    """Scales by how often it was called, as its own code knows."""

    def __init__(self, count):
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(4, 3)
        self.count = count

    def forward(self, x):
        return self.layer(x) * self.count()


def counted_by_closure():
    calls = [0]

    def count():
        calls[0] += 1
        return calls[0]

    return count


def counted_in_elements():
    count = counted_by_closure()
    return lambda: torch.arange(count()).sum()


def counted_by_iterator():
    count = itertools.count(1)
    return lambda: float(next(count))


COUNTERS = {
    "an iterator": counted_by_iterator,
    "a closure": counted_by_closure,
    "elements": counted_in_elements,
    "a part of the rows": lambda: (lambda count: lambda: 1 + 0.5 * count())(counted_by_closure()),
}


class CountersTest(unittest.TestCase):
    """A number that rises with each example as sizes do is no function of sizes."""

    def test_they_are_no_sizes(self):
        for name, make in COUNTERS.items():
            for how in (dict(others=[rows(2), rows(3)]), dict(learn_sizes=True)):
                with self.subTest(name, how=list(how)):
                    with self.assertRaisesRegex(addend.Error, "cannot be learned|two runs of the model give different"):
                        addend.compile(Counting(make())).record(rows(1), **how)
            with self.subTest(name):
                program = addend.compile(Counting(make())).record(rows(1))
                self.assertEqual(program.summary["free"], [])
                for size in (2, 3):
                    with self.assertRaises(addend.Error):
                        program.replay(rows(size))


def tensor_of(results):
    if isinstance(results, torch.Tensor):
        return results
    value = results if hasattr(results, "torch") else results[0]
    return value.torch()


if __name__ == "__main__":
    unittest.main()
