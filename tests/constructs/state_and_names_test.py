"""Models that keep a state from run to run, and whatever can be named in a question: outputs, blocks, elements."""

import collections
import io
import os
import sys
import tempfile
import unittest

import numpy as np
import torch
from torch import nn

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import addend  # noqa: E402
from table import of, table  # noqa: E402

LENGTH = 4


class Cell(nn.Module):
    """h = tanh(W x + state), where a subclass keeps the state."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(LENGTH, LENGTH)
        self.begin()

    def begin(self):
        pass

    def state(self):
        raise NotImplementedError

    def keep(self, h):
        raise NotImplementedError

    def forward(self, x):
        h = torch.tanh(self.linear(x) + self.state())
        self.keep(h.detach())
        return h


class AssignedBuffer(Cell):
    def begin(self):
        self.register_buffer("h", torch.zeros(1, LENGTH))

    def state(self):
        return self.h

    def keep(self, h):
        self.h = h


class WrittenBuffer(AssignedBuffer):
    def keep(self, h):
        self.h.copy_(h)


class OtherMemory(AssignedBuffer):
    def keep(self, h):
        self.h.data = h.clone()


class TransientBuffer(AssignedBuffer):
    def begin(self):
        self.register_buffer("h", torch.zeros(1, LENGTH), persistent=False)


class BufferFromNothing(AssignedBuffer):
    def begin(self):
        self.register_buffer("h", None)

    def state(self):
        return 0.0 if self.h is None else self.h


class BufferThatGoes(AssignedBuffer):
    def state(self):
        return 0.5 if self.h is None else self.h

    def keep(self, h):
        self.h = None


class BufferThatGrows(AssignedBuffer):
    def state(self):
        return self.h.sum(0)

    def keep(self, h):
        self.h = torch.cat([self.h, h])


class BufferOfAnotherDtype(AssignedBuffer):
    def state(self):
        return self.h.float()

    def keep(self, h):
        self.h = h.double()


class NewBuffer(AssignedBuffer):
    def begin(self):
        pass

    def state(self):
        return self.h if hasattr(self, "h") else 0.0

    def keep(self, h):
        if hasattr(self, "h"):
            self.h = h
        else:
            self.register_buffer("h", h)


class AssignedParameter(AssignedBuffer):
    def begin(self):
        self.h = nn.Parameter(torch.zeros(1, LENGTH))

    def keep(self, h):
        self.h = nn.Parameter(h)


class InSubmodule(Cell):
    def begin(self):
        self.parts = nn.ModuleList([nn.ModuleDict({"memory": nn.Module()})])
        self.parts[0]["memory"].register_buffer("h", torch.zeros(1, LENGTH))

    def state(self):
        return self.parts[0]["memory"].h

    def keep(self, h):
        self.parts[0]["memory"].h = h


class ModuleInList(Cell):
    def begin(self):
        self.held = [nn.Module()]  # not registered
        self.held[0].register_buffer("h", torch.zeros(1, LENGTH))

    def state(self):
        return self.held[0].h

    def keep(self, h):
        self.held[0].h = h


class Attribute(Cell):
    def begin(self):
        self.memory = None

    def state(self):
        return 0.0 if self.memory is None else self.memory

    def keep(self, h):
        self.memory = h


class ListThatGrows(Cell):
    def begin(self):
        self.cache = []

    def state(self):
        return sum(self.cache) if self.cache else 0.0

    def keep(self, h):
        self.cache.append(h)


class Nested(Cell):
    def begin(self):
        self.cache = {"layers": [(torch.zeros(1, LENGTH),)]}

    def state(self):
        return self.cache["layers"][0][0]

    def keep(self, h):
        self.cache["layers"][0] = (h,)


class Queue(Cell):
    def begin(self):
        self.cache = collections.deque([torch.zeros(1, LENGTH)], maxlen=1)

    def state(self):
        return self.cache[0]

    def keep(self, h):
        self.cache.append(h)


class Counter(Cell):
    def begin(self):
        self.steps = 0

    def state(self):
        return 0.3 * self.steps

    def keep(self, h):
        self.steps += 1


class Memory:
    def __init__(self):
        self.h = torch.zeros(1, LENGTH)


class ObjectOfItsOwn(Cell):
    def begin(self):
        self.memory = Memory()

    def state(self):
        return self.memory.h

    def keep(self, h):
        self.memory.h = h


class OwnGenerator(Cell):
    def begin(self):
        self.generator = torch.Generator().manual_seed(3)

    def state(self):
        return torch.rand(1, LENGTH, generator=self.generator)

    def keep(self, h):
        pass


class Array(Cell):
    def begin(self):
        self.count = np.zeros(1)

    def state(self):
        return 0.3 * float(self.count[0])

    def keep(self, h):
        self.count += 1


class ScriptedMemory(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("h", torch.zeros(1, LENGTH))

    def forward(self, x):
        h = torch.tanh(x + self.h)
        self.h = h.detach()
        return h


class ScriptedPart(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(LENGTH, LENGTH)
        self.memory = torch.jit.script(ScriptedMemory())

    def forward(self, x):
        return self.memory(self.linear(x))


KEPT = [
    AssignedBuffer, WrittenBuffer, OtherMemory, TransientBuffer, BufferFromNothing, BufferThatGoes, BufferThatGrows,
    BufferOfAnotherDtype, NewBuffer, AssignedParameter, InSubmodule, ModuleInList, Attribute, ListThatGrows, Nested, Queue,
    Counter, ObjectOfItsOwn, OwnGenerator, Array, ScriptedPart,
]  # fmt: skip

ELSEWHERE = []


class Global(Cell):
    def state(self):
        return sum(ELSEWHERE) if ELSEWHERE else 0.0

    def keep(self, h):
        ELSEWHERE.append(h)


def closure():
    kept = []

    class Closure(Cell):
        def state(self):
            return sum(kept) if kept else 0.0

        def keep(self, h):
            kept.append(h)

    return Closure()


def count():
    class Steps(Cell):
        def begin(self):
            self.steps = iter(range(100))

        def state(self):
            return 0.3 * next(self.steps)

        def keep(self, h):
            pass

    return Steps()


LOST = {"a global": Global, "a closure": closure, "an iterator": count}


def described(value):
    """A form of a value that compares."""
    if isinstance(value, torch.Tensor):
        return type(value).__name__, str(value.dtype), value.tolist()
    if isinstance(value, torch.Generator):
        return value.get_state().tolist()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, torch.jit.ScriptModule):
        return described(value.h)
    if isinstance(value, nn.Module):
        return {name: described(one) for name, one in vars(value).items() if "_hooks" not in name}
    if isinstance(value, dict):
        return {name: described(one) for name, one in value.items()}
    if isinstance(value, (list, tuple, collections.deque)):
        return type(value).__name__, [described(one) for one in value]
    if isinstance(value, Memory):
        return described(value.h)
    return repr(value) if isinstance(value, (int, float, str, bool, type(None))) else None


def made(kind):
    torch.manual_seed(0)
    del ELSEWHERE[:]
    return kind().eval()


INSIDE = dict(inside=addend.Inside("linear", dims=1, baseline=0))


class StateTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.x = torch.linspace(-1, 1, LENGTH).view(1, LENGTH)

    def each(self, kinds=KEPT):
        for kind in kinds:
            with self.subTest(kind.__name__), torch.no_grad():
                plain = made(kind)
                yield kind, plain(self.x), plain

    @of("state that modules keep")
    def test_questions_that_run_twice_are_about_the_first_run_and_leave_what_one_run_leaves(self):
        for kind, value, plain in self.each():
            model = made(kind)
            results = addend.compile(model, preset="faithful", **INSIDE).decompose(self.x)
            self.assertTrue(torch.equal(results[0].value.torch(), value), "inside, decompose")
            self.assertEqual(described(model), described(plain), "inside, decompose")

            model = made(kind)
            found = addend.compile(model, preset="faithful", **INSIDE).explain(self.x)
            self.assertTrue(torch.equal(found.value.torch(), value), "inside, explain")
            self.assertEqual(described(model), described(plain), "inside, explain")

            for ask in ("decompose", "explain"):
                model = made(kind)
                compiled = addend.compile(model, preset="faithful", verify_reference=True)
                report = getattr(compiled, ask)(addend.Input(self.x, dims=1, baseline=0)).report
                self.assertEqual(report["reference_is_model_on_baseline"], "yes", ask)
                self.assertEqual(described(model), described(plain), ask)

    @of("state that modules keep")
    def test_one_run_is_one_run(self):
        for kind, value, plain in self.each():
            model = made(kind)
            results = addend.compile(model, preset="faithful", memory=10**6).decompose(addend.Input(self.x, 1, baseline=0))
            self.assertTrue(torch.equal(results[0].value.torch(), value))
            self.assertEqual(described(model), described(plain))
            model = made(kind)
            found = addend.compile(model, preset="faithful", memory=10**6).explain(addend.Input(self.x, 1, baseline=0))
            self.assertTrue(torch.equal(found.value.torch(), value))
            self.assertEqual(described(model), described(plain))

    @of("state that modules keep")
    def test_checks_leave_the_model_as_it_was_and_find_its_state(self):
        for kind, _, _ in self.each():
            model, before = made(kind), described(made(kind))
            found = addend.compile(model).check_trace(self.x, others=[(2 * self.x,)])
            self.assertEqual(described(model), before)
            self.assertFalse(found.ok, "a second run is another, and nothing says so")
            if kind is not OwnGenerator:  # which no replay has
                others = [finding for finding in found.findings if finding.error and finding.input_set is not None]
                self.assertEqual(others, [], "further inputs begin in the state of the recording")

    @of("state that modules keep")
    def test_recordings_of_several_sizes_begin_alike(self):
        for kind, value, plain in self.each((AssignedBuffer, Attribute, ListThatGrows)):
            model = made(kind)
            program = addend.compile(model).record(
                self.x, others=[(self.x.expand(3, LENGTH).clone(),), (self.x.expand(5, LENGTH).clone(),)]
            )
            self.assertTrue(torch.equal(program.replay(self.x)[0].torch(), value))
            self.assertEqual(described(model), described(plain))

    @of("state that modules keep")
    def test_plans_refuse_what_the_next_run_computes_otherwise(self):
        for kind, _, plain in self.each():
            model = made(kind)
            with self.assertRaises(addend.FailedPrecondition):
                addend.compile(model).plan(addend.Input(self.x, dims=1, baseline=0))
            self.assertEqual(described(model), described(plain))

        class Counted(Cell):
            def begin(self):
                self.calls = 0

            def state(self):
                return 0.0

            def keep(self, h):
                self.calls += 1

        model = made(Counted)
        plan = addend.compile(model, preset="faithful").plan(addend.Input(self.x, dims=1, baseline=0))
        self.assertTrue(torch.equal(plan.attribute(2 * self.x).value.torch(), model(2 * self.x)))

    @of("state that nobody can put back")
    def test_two_runs_that_differ_are_an_error_that_names_the_operator(self):
        for name, kind in LOST.items():
            with self.subTest(name), torch.no_grad():
                with self.assertRaisesRegex(addend.FailedPrecondition, "two runs of the model .*aten::"):
                    addend.compile(made(kind), **INSIDE).decompose(self.x)
                with self.assertRaisesRegex(addend.FailedPrecondition, "two runs of the model .*aten::"):
                    addend.compile(made(kind), verify_reference=True).decompose(addend.Input(self.x, 1, baseline=0))
                with self.assertRaises(addend.FailedPrecondition):
                    addend.compile(made(kind)).plan(addend.Input(self.x, 1, baseline=0))
                results = addend.compile(made(kind), preset="faithful").decompose(addend.Input(self.x, 1, baseline=0))
                self.assertTrue(torch.equal(results[0].value.torch(), made(kind)(self.x)), "one run needs no other")

    @of("state that nobody can put back")
    def test_random_numbers_are_no_state(self):
        def model(x):
            return (x + torch.rand(1, LENGTH)).tanh()

        torch.manual_seed(4)
        value = model(self.x)
        torch.manual_seed(4)
        results = addend.compile(model, verify_reference=True).decompose(addend.Input(self.x, 1, baseline=0))
        self.assertTrue(torch.equal(results[0].value.torch(), value))
        self.assertEqual(results.report["reference_is_model_on_baseline"], "yes")

    @of("state in files")
    def test_files_put_back_what_shares_memory_and_compare_what_they_do_not_put_back(self):
        class Expanded(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(LENGTH, LENGTH)
                self.register_buffer("all", torch.ones(1, 1).expand(1, LENGTH))

            def forward(self, x):
                self.all[:, :1].add_(1)
                return self.linear(x) * self.all.clone()

        class Learned(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(LENGTH, LENGTH)
                self.factor = nn.Parameter(torch.ones(1, 1))

            def forward(self, x):
                with torch.no_grad():
                    self.factor.add_(1)
                return self.linear(x) * self.factor.detach().clone()

        source = addend.Input(self.x, dims=1, baseline=0)
        inside = addend.Inside("linear", dims=1, baseline=0)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.pt")
            torch.jit.script(made(Expanded)).save(path)
            plain = torch.jit.load(path)
            value, later = plain(self.x).detach(), plain(self.x).detach()
            for name, ask in {
                "verify": lambda m: m.explain(source, targets="0,1", verify_reference=True)[0].value,
                "inside": lambda m: m.explain(self.x, inside=inside, targets="0,1")[0].value,
                "interactions": lambda m: m.interactions(source, target="0,1").to_dict()["value"],
                "shapley": lambda m: m.shapley(source).value.torch()[0, 1].item(),
            }.items():
                with self.subTest(name):
                    model = addend.load_model(path)
                    self.assertAlmostEqual(ask(model), value[0, 1].item(), places=5)
                    self.assertTrue(torch.equal(model.run(self.x)[0].torch(), later))
            torch.jit.script(made(Learned)).save(path)
            with self.assertRaisesRegex(addend.FailedPrecondition, "two runs of the model give different results"):
                addend.load_model(path).shapley(source)

    @of("state in files")
    def test_scripted_modules_keep_theirs(self):
        class Lists(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(LENGTH, LENGTH)
                self.cache = [torch.zeros(1, LENGTH)]

            def forward(self, x):
                h = torch.tanh(self.linear(x) + self.cache[-1])
                self.cache.append(h.detach())
                return h

        class Steps(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(LENGTH, LENGTH)
                self.steps = 0

            def forward(self, x):
                self.steps += 1
                return torch.tanh(self.linear(x) * float(self.steps))

        class Written(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(LENGTH, LENGTH)
                self.register_buffer("h", torch.zeros(1, LENGTH))

            def forward(self, x):
                h = torch.tanh(self.linear(x) + self.h)
                self.h.copy_(h)
                return h

        for kind in (ScriptedPart, Lists, Steps, Written):
            with self.subTest(kind.__name__), tempfile.TemporaryDirectory() as folder, torch.no_grad():
                path = os.path.join(folder, "model.pt")
                torch.jit.script(made(kind)).save(path)
                plain = torch.jit.load(path)
                first, second = plain(self.x), plain(self.x)
                source = addend.Input(self.x, dims=1, baseline=0)

                def leaves_one_run(model, what):
                    self.assertTrue(torch.equal(model.run(self.x)[0].torch(), second), what)

                model = addend.load_model(path)
                results = model.decompose(self.x, preset="faithful", **INSIDE)
                self.assertTrue(torch.equal(results[0].value.torch(), first))
                leaves_one_run(model, "inside")
                for ask in ("decompose", "explain"):
                    model = addend.load_model(path)
                    report = getattr(model, ask)(source, preset="faithful", verify_reference=True).report
                    self.assertEqual(report["reference_is_model_on_baseline"], "yes")
                    leaves_one_run(model, "verify_reference")
                model = addend.load_model(path)
                self.assertFalse(model.check_trace(self.x).ok)
                self.assertTrue(torch.equal(model.run(self.x)[0].torch(), first), "check_trace")
                model = addend.load_model(path)
                with self.assertRaises(addend.FailedPrecondition):
                    model.plan(source)
                leaves_one_run(model, "plan")
                model = addend.load_model(path)
                several = addend.Input(self.x, dims=1, baselines=torch.zeros(3, 1, LENGTH))
                one = addend.load_model(path).explain(source, preset="faithful")[0]
                mean = model.explain(several, preset="faithful")[0]
                for a, b in zip(mean.contributions, one.contributions):
                    self.assertAlmostEqual(a, b, places=5)
                leaves_one_run(model, "baselines")
                model = addend.load_model(path)
                found = model.interactions(source, preset="faithful")
                for a, b in zip(found.contributions, one.contributions):
                    self.assertAlmostEqual(a, b, places=5)
                leaves_one_run(model, "interactions")
                model = addend.load_model(path)
                shapley = model.shapley(source)
                self.assertLess((shapley.recovery.torch() - first).abs().max().item(), 1e-5)

    @of("state in files")
    def test_all_runs_of_a_question_draw_the_same_numbers(self):
        class Noisy(nn.Module):
            def forward(self, x):
                return 2 * x + torch.randn(1, 4)

        source = addend.Input(self.x, dims=1, baseline=0)
        several = addend.Input(self.x, dims=1, baselines=torch.stack([self.x * 0.5, self.x * 0.25, self.x * 0]))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.pt")
            torch.jit.script(Noisy()).save(path)
            model = addend.load_model(path)
        torch.manual_seed(5)
        value = model.run(self.x)[0].torch()
        following = torch.rand(3)
        for ask in (
            lambda: model.shapley(source).recovery.torch(),
            lambda: model.explain(several).value.torch(),
            lambda: (model.interactions(source), value)[1],
        ):
            torch.manual_seed(5)
            self.assertLess((ask() - value).abs().max().item(), 1e-5)
            self.assertTrue(torch.equal(torch.rand(3), following))
        torch.manual_seed(5)
        parts = model.shapley(source).components.torch().reshape(LENGTH, LENGTH)
        self.assertLess((parts - torch.diag(2 * self.x[0])).abs().max().item(), 1e-5)


class NamesTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(2)
        self.x = torch.tensor([[0.5, -1.0, 2.0, 0.1]])

    def input(self):
        return addend.Input(self.x, dims=1, baseline=0)

    @of("outputs by name")
    def test_every_question_is_about_the_outputs_that_are_named(self):
        def model(x):
            return {"loss": x.square().mean(), "logits": 2 * x.tanh(), "soft": x.exp()}

        outputs = model(self.x)
        compiled = addend.compile(model, preset="faithful")
        largest, loss = outputs["logits"].max().item(), outputs["loss"].item()
        for options in (
            dict(outputs="output.logits"),
            dict(outputs=["output.logits"]),
            dict(outputs=("output.soft", "output.logits"), at="output.logits"),
            dict(at="logits"),
            dict(at="output.logits"),
        ):
            with self.subTest(**options):
                found = compiled.explain(self.input(), **options)
                self.assertAlmostEqual(found[0].value, largest, places=6)
                parts = compiled.decompose(self.input(), outputs="output.logits").explain("top1").contributions
                for a, b in zip(found[0].contributions, parts):
                    self.assertAlmostEqual(a, b, places=5)
                plan = compiled.plan(self.input(), **options)
                self.assertAlmostEqual(plan.attribute(self.x)[0].value, largest, places=6)
                attributed = compiled.attribute(self.input(), target=[(0, 2)], each_example=False, **options)
                self.assertAlmostEqual(attributed.sum().item(), largest, places=5)
        self.assertAlmostEqual(compiled.explain(self.input())[0].value, loss, places=6)
        own = addend.compile(model, preset="faithful", outputs="output.logits")
        self.assertAlmostEqual(own.explain(self.input())[0].value, largest, places=6)
        self.assertTrue(torch.equal(own.explain(self.input(), at="logits").value.torch(), outputs["logits"]))
        probed = compiled.decompose(self.input(), probes="logits")
        self.assertTrue(torch.equal(probed["logits"].value.torch(), outputs["logits"]))
        with self.assertRaisesRegex(addend.InvalidArgument, "it has output.logits"):
            own.explain(self.input(), at="output.loss")
        with self.assertRaisesRegex(addend.InvalidArgument, "the model's output is output.logits"):
            own.explain(self.input(), at="loss")
        for options in (dict(outputs="no such thing"), dict(outputs=["output.logits", "logits"])):
            for ask in (compiled.explain, compiled.decompose, compiled.plan):
                with self.assertRaisesRegex(ValueError, "output.loss, output.logits, output.soft"):
                    ask(self.input(), **options)
        for at in ("no such thing", "output.nothing"):
            for ask in (compiled.explain, compiled.plan):
                with self.assertRaisesRegex(ValueError, "output.loss, output.logits, output.soft"):
                    ask(self.input(), at=at)

    @of("outputs by name")
    def test_of_several_outputs_the_first_that_is_named_is_explained(self):
        class Two(nn.Module):
            def forward(self, x):
                return 2 * x, x.sin()

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.pt")
            torch.jit.script(Two()).save(path)
            file = addend.load_model(path)
        several = addend.Input(self.x, dims=1, baselines=torch.zeros(2, LENGTH))
        for model, names in ((addend.compile(Two()), ["output.0", "output.1"]), (file, ["output", "output.1"])):
            for outputs in (names, names[::-1], tuple(names[::-1])):
                with self.subTest(model=type(model).__name__, outputs=outputs):
                    value = Two()(self.x)[names.index(outputs[0])][0, 0].item()
                    options = dict(outputs=outputs, targets="0,0")
                    found = model.explain(self.input(), **options)
                    self.assertAlmostEqual(found[0].value, value, places=6)
                    self.assertEqual(found[0].to_dict()["at"], outputs[0])
                    self.assertTrue(str(found[0]).startswith(outputs[0] + " [0, 0] = "), str(found[0]))
                    self.assertAlmostEqual(model.explain(several, **options)[0].value, value, places=6)
                    plan = model.plan(self.input(), **options)
                    self.assertAlmostEqual(plan.attribute(self.x)[0].value, value, places=6)
                    pairs = model.interactions(self.input(), outputs=outputs, target="0,0")
                    self.assertAlmostEqual(sum(pairs.contributions), value, places=6)
                    attributed, delta = model.attribute(
                        self.x, 0.0, target=0, outputs=outputs, return_convergence_delta=True
                    )
                    self.assertAlmostEqual(attributed.sum().item(), value, places=6)
                    self.assertAlmostEqual(delta.item(), 0, places=5)
        for outputs in (["output.0", "output.1"], ["output.1", "output.0"]):
            results = addend.compile(Two()).decompose(self.input(), outputs=outputs)
            self.assertEqual(results.names, outputs)
            value = Two()(self.x)[int(outputs[0][-1])][0, 0].item()
            self.assertAlmostEqual(results.explain("0,0").value, value, places=6)

    @of("outputs by name")
    def test_logits_of_several_outputs_are_those_of_a_softmax_or_have_to_be_named(self):
        compiled = addend.compile(lambda x: (x.square().mean(), 2 * x.tanh()))
        with self.assertRaisesRegex(addend.InvalidArgument, "output.0, output.1"):
            compiled.explain(self.input(), at="logits")
        soft = addend.compile(lambda x: ((3 * x).softmax(1), x.tanh()))
        self.assertAlmostEqual(soft.explain(self.input(), at="logits")[0].value, 6.0, places=5)
        alone = addend.compile(lambda x: 3 * x)
        self.assertAlmostEqual(alone.explain(self.input(), at="logits")[0].value, 6.0, places=5)

    @of("outputs by name")
    def test_logits_are_what_the_last_softmax_or_sigmoid_reads(self):
        weight = torch.tensor([[1.0, 0.5, -1.0, 2.0], [0.3, -1.0, 0.2, 0.0], [-0.5, 0.1, 1.0, 1.0]])

        def scores(x):
            return nn.functional.linear(x, weight)

        def in_two_parts(s):
            given = torch.zeros(1, 4)
            given[:, :2] = s[:, :2].softmax(-1)
            given[:, 2:] = s[:, 1:].softmax(-1)
            return given

        want = scores(self.x)[0, 1].item()
        for name, behind in {
            "softmax": lambda s: s.softmax(-1),
            "log_softmax": lambda s: s.log_softmax(-1),
            "sigmoid": lambda s: s.sigmoid(),
            "logsigmoid": nn.functional.logsigmoid,
            "clamped": lambda s: s.softmax(-1).clamp(1e-7, 1 - 1e-7),
            "cast": lambda s: s.softmax(-1).double(),
            "scaled": lambda s: s.sigmoid() * 100 / 2,
            "moved a little": lambda s: (s.softmax(-1) + 1e-6).log(),
            "back from logarithms": lambda s: s.log_softmax(-1).exp(),
            "copied": lambda s: s.sigmoid().clone().view(1, 3),
            "in place": lambda s: s.sigmoid().clamp_(0.1, 0.9),
            "saturated": lambda s: (s * 1000).div(1000).sigmoid(),
            "nothing": lambda s: s,
        }.items():
            with self.subTest(name):
                compiled = addend.compile(lambda x, behind=behind: behind(scores(x)))
                found = compiled.explain(self.input(), targets="0,1", at="logits")
                self.assertAlmostEqual(found[0].value, want, places=5)
                for a, b in zip(found[0].contributions, (self.x * weight[1])[0].tolist()):
                    self.assertAlmostEqual(a, b, places=5)
        for name, behind in {
            "tanh": lambda s: s.tanh(),
            "a softmax by hand": lambda s: s.exp() / s.exp().sum(-1, keepdim=True),
            "a part": lambda s: s.softmax(-1)[:, 1:],
            "written in two parts": in_two_parts,
            "what remains": lambda s: 1 - s.sigmoid(),
            "turned": lambda s: s.sigmoid() * -1 + 1,
            "moved down": lambda s: s.sigmoid() - 0.5,
            "turned by a factor of a sum": lambda s: torch.add(1, s.sigmoid(), alpha=-1),
            "turned by a quotient": lambda s: torch.tensor(0.1) / s.sigmoid(),
            "both classes": lambda s: torch.cat([1 - s[:, :1].sigmoid(), s[:, :1].sigmoid()], 1),
            "both classes, stacked": lambda s: torch.stack([1 - s[:, 0].sigmoid(), s[:, 0].sigmoid()], -1),
            "in another order": lambda s: s.softmax(-1)[:, [2, 1, 0]],
            "flipped": lambda s: s.softmax(-1).flip(1),
            "chosen": lambda s: s.softmax(-1).index_select(1, torch.tensor([0, 2])),
            "two softmaxes": lambda s: torch.cat([s.softmax(-1), (2 * s).softmax(-1)], 1),
            "their mean": lambda s: (s.softmax(-1) + (2 * s).softmax(-1)) / 2,
            "their product": lambda s: s.sigmoid() * (2 * s).sigmoid(),
            "masked": lambda s: s.softmax(-1).masked_fill(torch.tensor([[False, False, True]]), 0),
            "masked by where": lambda s: torch.where(torch.tensor([[False, True, True]]), s.softmax(-1), torch.zeros(1)),
            "padded": lambda s: nn.functional.pad(s.softmax(-1), (0, 1)),
            "rounded": lambda s: s.softmax(-1).round(decimals=3),
            "smoothed": lambda s: torch.lerp(s.softmax(-1), torch.full((1, 3), 1 / 3), 0.1),
            "the largest": lambda s: s.softmax(-1).amax(-1, keepdim=True).expand(1, 3),
            "cut off": lambda s: nn.functional.relu(s.softmax(-1) - 0.01),
            "a loss of each class": lambda s: nn.functional.binary_cross_entropy(
                s.sigmoid(), torch.ones(1, 3), reduction="none"
            ),
            "a loss": lambda s: nn.functional.nll_loss(s.log_softmax(-1), torch.tensor([1]), reduction="none")[:, None],
            "a loss of scores": lambda s: nn.functional.cross_entropy(s, torch.tensor([1]), reduction="none").reshape(1, 1),
        }.items():
            with self.subTest(name):
                with self.assertRaisesRegex(addend.InvalidArgument, "gives? the (output|scores)"):
                    addend.compile(lambda x, behind=behind: behind(scores(x))).explain(
                        self.input(), targets="0,1", at="logits"
                    )

    @of("outputs by name")
    def test_a_split_at_the_logits_is_one_of_the_scores(self):
        for name, last in {"softmax": nn.Softmax(-1), "sigmoid": nn.Sigmoid(), "log_softmax": nn.LogSoftmax(-1)}.items():
            net = nn.Sequential(nn.Linear(4, 3), last).eval()
            compiled = addend.compile(net)
            traced = io.BytesIO()
            torch.jit.save(torch.jit.trace(net, self.x), traced)
            for door, model in {
                "live": compiled,
                "program": compiled.record(self.x).model(),
                "file": addend.load_model(traced.getvalue()),
            }.items():
                with self.subTest(name, door=door):
                    found, scores = (
                        model.explain(self.x, inside=addend.Inside(place, dims=1), targets="0,1")[0]
                        for place in ("logits", "0")
                    )
                    self.assertEqual(found.contributions, scores.contributions)
                    self.assertEqual(found.reference, scores.reference)
                    self.assertAlmostEqual(scores.reference, last(torch.zeros(1, 3))[0, 1].item(), places=6)

    @of("outputs by name")
    def test_files_obey_or_refuse(self):
        class Two(nn.Module):
            def forward(self, x):
                return x.square().mean(), 2 * x.tanh()

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.pt")
            torch.jit.script(Two()).save(path)
            model = addend.load_model(path)
        largest = (2 * self.x.tanh()).max().item()
        self.assertAlmostEqual(model.explain(self.input(), outputs="output.1")[0].value, largest, places=6)
        self.assertAlmostEqual(model.plan(self.input(), outputs="output.1").attribute(self.x)[0].value, largest, places=6)
        found = model.interactions(self.input(), outputs="output.1")
        self.assertAlmostEqual(sum(found.contributions), largest, places=5)
        attributed = model.attribute(self.input(), target=[(0, 2)], each_example=False, outputs="output.1")
        self.assertAlmostEqual(attributed.sum().item(), largest, places=5)
        for options in (dict(outputs="no such thing"), dict(at="output.2")):
            with self.assertRaisesRegex(addend.InvalidArgument, "it has output"):
                model.explain(self.input(), **options)
        with self.assertRaisesRegex(addend.InvalidArgument, "output.1 is none of the outputs that the request names"):
            model.explain(self.input(), outputs="output", at="output.1")

    @of("elements of scalars")
    def test_the_only_element_of_a_scalar_has_the_empty_index(self):
        compiled = addend.compile(lambda x: x.square().sum(), preset="faithful")
        value = self.x.square().sum().item()
        for explain in (
            lambda target: compiled.explain(self.input(), targets=[target])[0],
            lambda target: compiled.decompose(self.input()).explain(target),
            lambda target: compiled.plan(self.input(), targets=[target]).attribute(self.x)[0],
        ):
            for target in ((), "()", "top1"):
                self.assertAlmostEqual(explain(target).value, value, places=5)
            with self.assertRaisesRegex(addend.InvalidArgument, "does not fit an output of shape"):
                explain((0,))
        with self.assertRaisesRegex(addend.InvalidArgument, r"target \(\) does not fit an output of shape"):
            addend.compile(lambda x: x).explain(self.input(), targets=[()])
        rows = addend.compile(lambda x: x.square().sum(1), preset="faithful")
        pair = torch.stack([self.x[0], 2 * self.x[0]])
        found = rows.explain(addend.Input(pair, dims=1, baseline=0), targets=[()], each_example=True)
        for one, expected in zip(found, pair.square().sum(1).tolist()):
            self.assertAlmostEqual(one.value, expected, places=4)

    @of("references equal to the bit")
    def test_a_reference_that_has_the_bits_of_the_model_is_that_of_the_model(self):
        def neighbours(x):
            near = (x.t() - x).abs().topk(2, largest=False).indices  # others on the baseline
            return near.float().mul(0).sum() + x.sum(1)

        def experts(x):
            gates = (x[:, :2] * 3).softmax(1)
            best = gates.argmax(1)
            return torch.where(best[:, None] == 0, x * 2, x + x)

        for model in (neighbours, experts):
            with self.subTest(model.__name__):
                compiled = addend.compile(model, preset="faithful", verify_reference=True)
                x = torch.tensor([[0.3, 0.9, -0.4, 0.5]])
                source = addend.Input(x, dims=1, baseline=torch.tensor([[0.7, 0.1, 0.2, -0.3]]))
                expected = model(torch.tensor([[0.7, 0.1, 0.2, -0.3]]))
                results = compiled.decompose(source)
                self.assertTrue(torch.equal(results[0].reference.torch(), expected))
                for report in (results.report, compiled.explain(source).report):
                    self.assertEqual(report["reference_is_model_on_baseline"], "yes")
                    self.assertEqual(report["reference_reason"], "")

    @of("replays that draw")
    def test_replays_say_that_they_draw_their_own_numbers(self):
        program = addend.compile(lambda x: x + torch.rand(1, LENGTH)).record(self.x)
        first, second = program.replay(self.x), program.replay(self.x)
        self.assertFalse(torch.equal(first[0].torch(), second[0].torch()))
        self.assertRegex(" ".join(first.notes), "random numbers are drawn by aten::rand.* a replay draws its own")
        with tempfile.TemporaryDirectory() as folder:
            program.save(folder)
            self.assertEqual(addend.Program.load(folder).replay(self.x).notes, first.notes)
        plain = addend.compile(lambda x: x + 1).record(self.x)
        self.assertEqual(plain.replay(self.x).notes, [])


class BlocksTest(unittest.TestCase):
    @of("blocks that are called by keyword")
    def test_layers_add_up_however_they_are_called(self):
        class Block(nn.Module):
            def __init__(self, returns):
                super().__init__()
                self.returns = returns
                self.norm = nn.LayerNorm(16)
                self.mlp = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))

            def forward(self, bias, hidden_states=None, scale=None):
                if hidden_states is None:
                    bias, hidden_states = None, bias
                h = hidden_states + self.mlp(self.norm(hidden_states))
                if self.returns == "tuple":
                    return h, None, hidden_states.mean()
                if self.returns == "weights first":
                    return torch.ones(1, 2), h
                return {"last": h} if self.returns == "dict" else h

        class Decoder(nn.Module):
            def __init__(self, call, returns):
                super().__init__()
                self.call, self.returns = call, returns
                self.embed = nn.Embedding(30, 16)
                self.h = nn.ModuleList([Block(returns), Block(returns)])
                self.head = nn.Linear(16, 30)

            def forward(self, ids):
                x = self.embed(ids).cumsum(1)
                bias = torch.zeros(1, ids.shape[1])
                for block in self.h:
                    x = self.call(block, x, bias)
                    x = {"tuple": lambda: x[0], "weights first": lambda: x[1], "dict": lambda: x["last"]}.get(
                        self.returns, lambda: x
                    )()
                return self.head(x)

        calls = {
            "by position": lambda block, x, bias: block(x),
            "by keyword": lambda block, x, bias: block(bias=bias, hidden_states=x),
            "mixed": lambda block, x, bias: block(bias, hidden_states=x, scale=bias),
            "mixed up": lambda block, x, bias: block(bias, x),
        }
        expected = None
        for name, call in calls.items():
            for returns in ("tensor", "tuple", "weights first", "dict"):
                with self.subTest(name, returns=returns):
                    torch.manual_seed(0)
                    model = Decoder(call, returns).eval()
                    found = addend.lm.attribute(model, [5, 6, 7], [8, 9], baseline=3, layers=True).layers
                    self.assertEqual(found.names, ["embeddings", "h.0.mlp", "h.1.mlp"])
                    numbers = torch.as_tensor(found.matrix, dtype=torch.float64)
                    expected = numbers if expected is None else expected
                    torch.testing.assert_close(numbers, expected, rtol=1e-5, atol=1e-6)
                    for block in model.h:
                        self.assertNotIn("forward", vars(block))


Cases = table("state and names", [], [StateTest, NamesTest, BlocksTest])


if __name__ == "__main__":
    unittest.main()
