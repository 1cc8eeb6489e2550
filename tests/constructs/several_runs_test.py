"""Questions that take several runs of a model: each run begins as the first one did, or the question is refused."""

import collections
import functools
import itertools
import os
import random
import sys
import types
import unittest

import numpy as np
import torch
from torch import nn

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import addend  # noqa: E402
from table import of, table  # noqa: E402

LENGTH, WIDTH = 4, 3


class Scaled(nn.Module):
    """(W x + b) times what the state gives, so that contributions and Shapley values are known: W x times that."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(LENGTH, WIDTH)
        self.begin()

    def begin(self):
        pass

    def factor(self):
        """A number, or a row of numbers, that the next run finds otherwise."""
        raise NotImplementedError

    def forward(self, x):
        return self.linear(x) * self.factor()


class Counted(Scaled):
    def begin(self):
        self.seen = collections.Counter(calls=1)

    def factor(self):
        self.seen["calls"] += 1
        return self.seen["calls"]


class OwnUpdate(Scaled):
    class Table(dict):
        def update(self, *others, **named):
            raise AssertionError("nobody asked for this")

        clear = __setitem__ = items = update

    def begin(self):
        self.table = self.Table(calls=torch.ones(1, 1))

    def factor(self):
        dict.__setitem__(self.table, "calls", self.table["calls"] + 1)
        return self.table["calls"].clone()


class OwnExtend(Scaled):
    class Rows(list):
        def extend(self, others):
            raise AssertionError("nobody asked for this")

        clear = __iter__ = extend

    def begin(self):
        self.rows = self.Rows()

    def factor(self):
        self.rows.append(1)
        return len(self.rows) + 1


class OwnAdd(Scaled):
    class Names(set):
        def update(self, others):
            raise AssertionError("nobody asked for this")

        clear = __iter__ = update

    def begin(self):
        self.names = self.Names()

    def factor(self):
        self.names.add(len(self.names))
        return len(self.names) + 1


class InOrder(Scaled):
    def begin(self):
        self.table = collections.OrderedDict([("a", 2.0), ("b", 3.0), ("c", 5.0)])

    def factor(self):
        first = next(iter(self.table))
        self.table.move_to_end(first)
        return self.table[first]


class AttributeOfList(Scaled):
    class Rows(list):
        calls = 1

    def begin(self):
        self.rows = self.Rows()

    def factor(self):
        self.rows.calls += 1
        return self.rows.calls


class InSlots(Scaled):
    class Box:
        __slots__ = ("calls", "later")

    def begin(self):
        self.box = self.Box()
        self.box.calls = 1

    def factor(self):
        self.box.calls += 1
        self.box.later = torch.ones(1)
        return self.box.calls


class InNamespace(Scaled):
    def begin(self):
        self.box = types.SimpleNamespace(calls=torch.ones(1, 1))

    def factor(self):
        self.box.calls = self.box.calls + 1
        return self.box.calls


class InBytes(Scaled):
    def begin(self):
        self.bytes = bytearray(1)

    def factor(self):
        self.bytes[0] += 1
        return self.bytes[0] + 1


class AttributeOfTensor(Scaled):
    def factor(self):
        self.linear.weight.calls = getattr(self.linear.weight, "calls", 1) + 1
        return self.linear.weight.calls


class Gradient(Scaled):
    def begin(self):
        self.linear.bias.grad = torch.ones(WIDTH)

    def factor(self):
        self.linear.bias.grad += 1
        return self.linear.bias.grad.clone()


class AnotherGradient(Gradient):
    def factor(self):
        self.linear.bias.grad = self.linear.bias.grad + 1
        return self.linear.bias.grad.clone()


class Frozen(Scaled):
    def begin(self):
        self.center = nn.Parameter(torch.ones(1, 1), requires_grad=False)

    def factor(self):
        self.center.mul_(0.9).add_(0.4)
        return self.center.clone()


class Switched(Scaled):
    def begin(self):
        self.part = nn.Parameter(torch.ones(1))

    def factor(self):
        self.part.requires_grad_(not self.part.requires_grad)
        return 2.0 + self.part.requires_grad


class Expanded(Scaled):
    def begin(self):
        self.register_buffer("one", torch.ones(1, 1))
        self.register_buffer("all", self.one.expand(1, WIDTH))

    def factor(self):
        self.one.add_(1)
        return self.all.clone()


class ExpandedAlone(Scaled):
    def begin(self):
        self.register_buffer("all", torch.ones(1, 1).expand(1, WIDTH))

    def factor(self):
        self.all[:, :1].add_(1)
        return self.all.clone()


class ReadOnly(Counted):
    def begin(self):
        super().begin()
        self.table = np.ones(3)
        self.table.flags.writeable = False


class DrawsFromItsOwn(Scaled):
    def begin(self):
        self.generator = torch.Generator().manual_seed(3)

    def factor(self):
        return torch.randn(1, WIDTH, generator=self.generator)


class DrawsInPlace(DrawsFromItsOwn):
    def factor(self):
        drawn = torch.bernoulli(torch.full((1, WIDTH), 0.5), generator=self.generator)
        return drawn + torch.empty(1, WIDTH).normal_(generator=self.generator)


class DrawsFromAList(Scaled):
    def begin(self):
        self.held = [{"generators": (torch.Generator().manual_seed(3),)}]

    def factor(self):
        return torch.rand(1, WIDTH, generator=self.held[0]["generators"][0])


class DrawsFromAClosure(Scaled):
    def begin(self):
        generator = torch.Generator().manual_seed(3)
        self.draw = lambda: torch.rand(1, WIDTH, generator=generator)

    def factor(self):
        return self.draw()


class DrawsFromAPartial(Scaled):
    def begin(self):
        self.draw = functools.partial(torch.rand, 1, WIDTH, generator=torch.Generator().manual_seed(3))

    def factor(self):
        return self.draw()


class DrawsFromADefault(Scaled):
    def begin(self):
        def draw(*, generator=torch.Generator().manual_seed(3)):
            return torch.rand(1, WIDTH, generator=generator)

        self.draw = draw

    def factor(self):
        return self.draw()


class DrawsFromTheClass(Scaled):
    generators = {}

    def begin(self):
        self.generators["own"] = torch.Generator().manual_seed(3)

    def factor(self):
        return torch.rand(1, WIDTH, generator=self.generators["own"])


GENERATOR = torch.Generator()


class DrawsFromAGlobal(Scaled):
    def begin(self):
        GENERATOR.manual_seed(3)

    def factor(self):
        return [torch.rand(1, WIDTH, generator=GENERATOR) for _ in range(2)][1]


class DrawsInAHook(Scaled):
    def begin(self):
        generator = torch.Generator().manual_seed(3)
        self.linear.register_forward_hook(lambda module, given, output: output * torch.rand(1, generator=generator))

    def factor(self):
        return 1.0


class NumbersOfPython(Scaled):
    def begin(self):
        generator = random.Random(3)
        self.draw = lambda: 1 + generator.random()

    def factor(self):
        return self.draw()


class NumbersOfNumpy(Scaled):
    def begin(self):
        generator = np.random.default_rng(3)
        self.draw = lambda: 1 + float(generator.random())

    def factor(self):
        return self.draw()


KEPT = [
    Counted, OwnUpdate, OwnExtend, OwnAdd, InOrder, AttributeOfList, InSlots, InNamespace, InBytes, AttributeOfTensor,
    Gradient, AnotherGradient, Frozen, Switched, Expanded, ExpandedAlone, ReadOnly,
]  # fmt: skip

DRAW = [
    DrawsFromItsOwn, DrawsInPlace, DrawsFromAList, DrawsFromAClosure, DrawsFromAPartial, DrawsFromADefault,
    DrawsFromTheClass, DrawsFromAGlobal, DrawsInAHook, NumbersOfPython, NumbersOfNumpy,
]  # fmt: skip


class Iterator(Scaled):
    def begin(self):
        self.steps = itertools.count(2)

    def factor(self):
        return next(self.steps)


class Closure(Scaled):
    def begin(self):
        calls = 1

        def step():
            nonlocal calls
            calls += 1
            return calls

        self.step = step

    def factor(self):
        return self.step()


class OfTheClass(Scaled):
    calls = 1

    def begin(self):
        type(self).calls = 1

    def factor(self):
        type(self).calls += 1
        return type(self).calls


class Learned(Scaled):
    def begin(self):
        self.part = nn.Parameter(torch.ones(1, 1))

    def factor(self):
        with torch.no_grad():
            self.part.add_(1)
        return self.part.detach().clone()


def hidden():
    """A generator in what no attribute shows."""
    generator = torch.Generator().manual_seed(3)
    while True:
        yield torch.rand(1, WIDTH, generator=generator)


class Hidden(Scaled):
    def begin(self):
        self.drawn = hidden()

    def factor(self):
        return next(self.drawn)


class Shared(Scaled):
    def begin(self):
        self.memory = np.ones((1, 1), "float32")
        self.view = torch.from_numpy(self.memory)

    def factor(self):
        self.memory += 1
        return self.view


LOST = [Iterator, Closure, OfTheClass, Learned, Hidden, Shared]


def made(kind):
    torch.manual_seed(0)
    return kind().eval()


def compiled(model):
    return addend.compile(model, preset="faithful")


class SeveralRunsTest(unittest.TestCase):
    def setUp(self):
        self.x = torch.tensor([[0.5, -1.0, 2.0, 0.1]])
        self.baselines = torch.stack([torch.zeros(LENGTH), torch.ones(LENGTH)])

    def input(self, **baseline):
        return addend.Input(self.x, dims=1, **(baseline or {"baseline": 0}))

    def doors(self):
        """Ways of asking, by name: they give a model's number of the element 0,1, and its contributions or Shapley
        values, None where they are of something else."""
        inside = addend.Inside("linear", dims=1, baseline=0)

        def explained(found):
            return found[0].value, found[0].contributions

        def shapley(found):
            return found.value.torch()[0, 1].item(), found.components.torch()[:, 0, 1].tolist()

        return {
            "explain": lambda m: explained(compiled(m).explain(self.input(), targets="0,1")),
            "memory": lambda m: explained(compiled(m).explain(self.input(), targets="0,1", memory=1)),
            "verify": lambda m: explained(compiled(m).explain(self.input(), targets="0,1", verify_reference=True)),
            "inside": lambda m: (compiled(m).explain(self.x, inside=inside, targets="0,1")[0].value, None),
            "baselines": lambda m: explained(
                compiled(m).explain(self.input(baselines=0 * self.baselines), targets="0,1")
            ),
            "interactions": lambda m: self.interactions(m),
            "shapley": lambda m: shapley(compiled(m).shapley(self.input())),
        }

    def interactions(self, model):
        found = compiled(model).interactions(self.input(), target="0,1")
        matrix = torch.tensor(found.matrix)
        self.assertLess((matrix - matrix.diag().diag()).abs().max().item(), 1e-5, "the model is additive")
        return found.to_dict()["value"], found.contributions

    def each(self, kinds):
        """The number of the element 0,1 of a plain model of each kind, its contributions, and later outputs."""
        found = []
        for kind in kinds:
            plain = made(kind)
            with torch.no_grad():
                value = plain(self.x)
                factor = (value / plain.linear.__class__.forward(plain.linear, self.x))[0, 1].item()
                later = [plain(self.x) for _ in range(2)]
            self.assertFalse(torch.equal(value, later[0]), "the next call of %s is another" % kind.__name__)
            contributions = (plain.linear.weight[1] * self.x[0] * factor).tolist()
            found.append((kind, value[0, 1].item(), contributions, later))
        return found

    def assert_left(self, model, later):
        with torch.no_grad():
            for expected in later:
                self.assertTrue(torch.equal(model(self.x), expected), "it is left as one call leaves it")

    @of("state in containers, slots, tensors and gradients")
    def test_questions_are_about_the_first_call_and_leave_what_it_leaves(self):
        self.assert_about_the_first_call(KEPT)

    @of("generators of the model's own")
    def test_generators_of_the_model_give_every_run_the_same_numbers(self):
        self.assert_about_the_first_call(DRAW)

    def assert_about_the_first_call(self, kinds):
        for kind, value, contributions, later in self.each(kinds):
            for door, ask in self.doors().items():
                with self.subTest(kind.__name__, door=door):
                    model = made(kind)
                    found, parts = ask(model)
                    self.assertAlmostEqual(found, value, 5)
                    for part, expected in zip(parts or [], contributions):
                        self.assertAlmostEqual(part, expected, 5)
                    self.assert_left(model, later)

    @of("state in containers, slots, tensors and gradients")
    def test_recordings_and_checks_leave_the_model_too(self):
        for kind, value, _, later in self.each(KEPT + DRAW):
            for options in ({"learn_sizes": True}, {"others": [(self.x.expand(2, LENGTH).clone(),)]}):
                with self.subTest(kind.__name__, **options):
                    model = made(kind)
                    compiled(model).record(self.x, **options)
                    self.assert_left(model, later)
            with self.subTest(kind.__name__, check=True):
                model = made(kind)
                compiled(model).check_trace(self.x)
                self.assertAlmostEqual(model(self.x)[0, 1].item(), value, 6)
                self.assert_left(model, later)

    @of("state that goes another way")
    def test_where_it_cannot_be_put_back_nobody_gets_numbers_of_another_call(self):
        for kind, value, contributions, _ in self.each(LOST):
            for door, ask in self.doors().items():
                try:
                    found, parts = ask(made(kind))
                except addend.FailedPrecondition as error:
                    self.assertRegex(str(error), "^two runs of the model .*goes from run to run", door)
                    self.assertNotIn(door, ("explain", "memory"), "one run needs no other")
                    continue
                self.assertAlmostEqual(found, value, 5, door)
                for part, expected in zip(parts or [], contributions):
                    self.assertAlmostEqual(part, expected, 5, door)
            for options in ({"learn_sizes": True}, {"others": [(self.x.expand(2, LENGTH).clone(),)]}):
                try:
                    program = compiled(made(kind)).record(self.x, **options)
                except addend.FailedPrecondition as error:
                    self.assertRegex(str(error), "^two runs of the model ")
                    continue
                if kind is not Shared:  # whose memory is the recording's, too
                    self.assertAlmostEqual(program.replay(self.x)[0].torch()[0, 1].item(), value, 5)
        with self.assertRaisesRegex(addend.FailedPrecondition, "two runs of the model .*aten::"):
            compiled(made(Iterator)).explain(self.input(baselines=self.baselines), targets="0,1")
        with self.assertRaisesRegex(addend.FailedPrecondition, "two runs of the model .*aten::"):
            compiled(made(Iterator)).interactions(self.input(), target="0,1")
        with self.assertRaisesRegex(addend.FailedPrecondition, "two runs of the model .* rand is the first"):
            compiled(made(Hidden)).shapley(self.input())

    @of("generators that are given")
    def test_generators_that_are_given_are_put_back(self):
        class Given(Scaled):
            def forward(self, x, generators):
                return self.linear(x) * torch.rand(1, WIDTH, generator=generators["own"][0])

        def given():
            return {"own": [torch.Generator().manual_seed(3)]}

        inside = addend.Inside("linear", dims=1, baseline=0)
        with torch.no_grad():
            plain, one = made(Given), given()
            value, later = plain(self.x, one)[0, 1].item(), plain(self.x, one)
        for door, ask in {
            "verify": lambda m, g: m.explain(self.input(), g, targets="0,1", verify_reference=True)[0].value,
            "inside": lambda m, g: m.explain(self.x, g, inside=inside, targets="0,1")[0].value,
            "baselines": lambda m, g: m.explain(self.input(baselines=self.baselines), g, targets="0,1")[0].value,
            "interactions": lambda m, g: m.interactions(self.input(), g, target="0,1").to_dict()["value"],
            "shapley": lambda m, g: m.shapley(self.input(), g).value.torch()[0, 1].item(),
        }.items():
            with self.subTest(door):
                model, generators = made(Given), given()
                self.assertAlmostEqual(ask(compiled(model), generators), value, 5)
                self.assertTrue(torch.equal(model(self.x, generators), later), "it is left as one call leaves it")

    @of("generators of the model's own")
    def test_models_that_are_no_modules_are_as_good(self):
        weight = torch.linspace(-1, 1, LENGTH * WIDTH).view(WIDTH, LENGTH)

        def function():
            generator = torch.Generator().manual_seed(3)
            return lambda x: (x @ weight.t() + 1) * torch.rand(1, WIDTH, generator=generator)

        def wrapped():
            return torch.no_grad()(function())

        class Calls:
            def __init__(self):
                self.calls, self.generator = 0, torch.Generator().manual_seed(3)

            def __call__(self, x):
                self.calls += 1
                return (x @ weight.t() + self.calls) * torch.rand(1, WIDTH, generator=self.generator)

            def other(self, factor, x):
                return factor * self(x)

        class InSlots(Calls):
            __slots__ = ("calls", "generator")

        for name, make in {
            "function": function,
            "wrapped": wrapped,
            "object": Calls,
            "slots": InSlots,
            "method": lambda: functools.partial(Calls().other, 2),
        }.items():
            plain = make()
            value, later = plain(self.x)[0, 1].item(), [plain(self.x) for _ in range(2)]
            for door, ask in self.doors().items():
                if door == "inside":
                    continue
                with self.subTest(name, door=door):
                    model = make()
                    self.assertAlmostEqual(ask(model)[0], value, 5)
                    self.assert_left(model, later)

    @of("state that goes another way")
    def test_the_run_that_finds_heads_is_the_run_that_is_explained(self):
        class Once(nn.Module):
            def __init__(self):
                super().__init__()
                self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
                self.steps = iter([2.0])

            def forward(self, x):
                return self.attention(x, x, x)[0].mean(1) * next(self.steps, 1.0)

        x = torch.linspace(-1, 1, 40).view(1, 5, 8)
        for heads in (True, 2):
            inside = addend.Inside("attention", heads=heads)
            with self.assertRaisesRegex(addend.FailedPrecondition, "two runs of the model "):
                compiled(made(Once)).explain(x, inside=inside, targets="0,1")
            with self.assertRaisesRegex(addend.FailedPrecondition, "two runs of the model "):
                compiled(made(Once)).decompose(x, inside=inside)


Cases = table("several runs", [], [SeveralRunsTest])


if __name__ == "__main__":
    unittest.main()
