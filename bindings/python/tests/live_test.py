"""Live models decompose as they are: control flow, in-place writes, dicts and dataclasses."""

import collections
import copy
import ctypes
import dataclasses
import importlib
import os
import threading
import typing
import unittest
from pathlib import Path

import numpy as np
import torch
from torch import nn

import addend

# vmap and grad, which before PyTorch 2 are a package of their own.
TRANSFORMS = getattr(torch, "func", None) or importlib.import_module("functorch")


def give_back():
    """Gives memory that nobody uses back to the system."""
    ctypes.CDLL(None).malloc_trim(0)


def resident_mib():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


class Branches(nn.Module):
    """Which of its layers runs, and how often, depends on the data."""

    def __init__(self):
        super().__init__()
        self.positive = nn.Linear(4, 4)
        self.negative = nn.Linear(4, 4)
        self.taken = []

    def forward(self, x):
        self.taken = []
        for _ in range(int(x.abs().max().item()) + 1):
            layer = self.positive if x.sum() > 0 else self.negative
            self.taken.append(layer)
            x = layer(x)
        return x


class Writes(nn.Module):
    """A linear map that is spelled with writes: through views, into a buffer, by out=, and with +=."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 4))
        self.register_buffer("cache", torch.zeros(2, 4))

    def forward(self, x):
        self.cache.zero_()
        self.cache[0] = x
        self.cache[1, 1:3] = 2 * x[:2]
        self.cache[:, 3] += x[0]
        mixed = torch.empty(2, 3)
        torch.matmul(self.cache, self.weight.detach().t(), out=mixed)
        mixed += 1
        mixed[0].mul_(3)
        return mixed


class ModelOutput(collections.OrderedDict):
    """An ordered dict whose items are fields of a dataclass, as libraries of Transformers return it."""

    def __post_init__(self):
        for field in dataclasses.fields(self):
            if getattr(self, field.name) is not None:
                self[field.name] = getattr(self, field.name)

    def __setattr__(self, name, value):
        if name in self and value is not None:
            super().__setitem__(name, value)
        super().__setattr__(name, value)

    def __setitem__(self, name, value):
        super().__setitem__(name, value)
        super().__setattr__(name, value)

    def __reduce__(self):
        return type(self), tuple(getattr(self, field.name) for field in dataclasses.fields(self))


@dataclasses.dataclass
class ClassifierOutput(ModelOutput):
    logits: torch.Tensor
    loss: typing.Optional[torch.Tensor] = None
    hidden_states: typing.Optional[typing.Tuple[torch.Tensor, ...]] = None
    predicted: typing.Optional[torch.Tensor] = None


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm = nn.LayerNorm(8)
        self.classifier = nn.Linear(8, 3)
        self.config = {"labels": 3}

    def forward(self, input_ids=None, attention_mask=None, output_hidden_states=False):
        embedded = self.embed(input_ids)
        mixed, _ = self.attention(embedded, embedded, embedded, key_padding_mask=attention_mask == 0)
        hidden = self.norm(embedded + mixed)
        logits = self.classifier(hidden[:, 0])
        states = (embedded, hidden) if output_hidden_states else None
        return ClassifierOutput(logits=logits, hidden_states=states, predicted=logits.argmax(-1))


def jacobian_times_input(function, x):
    """The contribution of each element of x to a linear function, by PyTorch alone."""
    jacobian = torch.autograd.functional.jacobian(function, x)
    return (jacobian * x).movedim(-1, 0)


class LiveTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(7)

    def assertRecovers(self, composition, expected):
        np.testing.assert_allclose(composition.recovery, expected.detach(), rtol=1e-5, atol=1e-5)

    def test_branches_that_depend_on_the_data(self):
        model = Branches()
        traced = addend.compile(model)
        seen = set()
        for x in (torch.tensor([0.5, 1.0, -0.2, 0.4]), torch.tensor([-2.5, 0.1, 0.3, 0.2])):
            output = traced(addend.Input(x, 0))
            taken = list(model.taken)
            seen.add(tuple(layer is model.positive for layer in taken))
            self.assertRecovers(output, model(x))

            def same_branch(x, taken=taken):
                for layer in taken:
                    x = layer(x)
                return x

            np.testing.assert_allclose(output.components, jacobian_times_input(same_branch, x), atol=1e-5)
            np.testing.assert_allclose(output.reference, same_branch(torch.zeros(4)).detach(), atol=1e-5)
        self.assertEqual(len(seen), 2, "the inputs were meant to take different branches")

    @unittest.skipUnless(hasattr(torch, "float8_e4m3fn"), "this PyTorch has no floating-point numbers of one byte")
    def test_numbers_of_one_byte_are_refused_by_name(self):
        def quantized(x):
            low, weight = x.to(torch.float8_e4m3fn), torch.eye(16).to(torch.float8_e4m3fn)
            one = torch.tensor(1.0)
            return torch._scaled_mm(low, weight.t(), scale_a=one, scale_b=one, out_dtype=torch.float32)

        with self.assertRaisesRegex(addend.Unimplemented, "aten::_to_copy to Float8_e4m3fn.*before it is quantized"):
            addend.compile(quantized)(addend.Input(torch.rand(16, 16), 0))

    def test_writes_in_place(self):
        model = Writes()
        x = torch.randn(4)

        def pure(x):
            row = 2 * x[:2]
            first = torch.cat([x[:3], x[3:] + x[:1]])
            second = torch.cat([torch.zeros(1), row, x[:1]])
            mixed = torch.stack([first, second]) @ model.weight.t() + 1
            return torch.stack([3 * mixed[0], mixed[1]])

        torch.testing.assert_close(model(x), pure(x))
        output = addend.compile(model)(addend.Input(x, 0))
        np.testing.assert_allclose(output.components, jacobian_times_input(pure, x).detach(), atol=1e-5)
        np.testing.assert_allclose(output.reference, pure(torch.zeros(4)).detach(), atol=1e-5)

    def test_the_model_may_write_its_input(self):
        x = torch.randn(4)
        kept = x.clone()
        output = addend.compile(lambda x: x.mul_(2).add_(1))(addend.Input(x, 0))
        torch.testing.assert_close(x, kept, msg="the caller's tensor was written")
        np.testing.assert_allclose(output.components, torch.diag(2 * x), atol=1e-6)

    def test_dict_inputs_and_dataclass_outputs(self):
        model = Classifier().eval()
        ids = torch.tensor([[3, 1, 4, 1, 5]])
        mask = torch.tensor([[1, 1, 1, 1, 0]])
        batch = {
            "input_ids": addend.Input(ids, labels=torch.arange(5)[None], baseline=0, names=["c", "a", "d", "a", "e"]),
            "attention_mask": mask,
            "output_hidden_states": True,
        }
        traced = addend.compile(model, preset="faithful")
        results = traced.decompose(**batch)
        output = results.output
        with torch.no_grad():
            expected = model(ids, mask, True)
            baseline = model(torch.zeros_like(ids), mask, True)

        self.assertIsInstance(output, ClassifierOutput)
        self.assertIsNone(output.loss)
        self.assertIs(output["logits"], output.logits)
        self.assertEqual(results.names, ["output.logits", "output.hidden_states.0", "output.hidden_states.1"])
        torch.testing.assert_close(output.predicted, expected.predicted)
        for decomposed, value, reference in [
            (output.logits, expected.logits, baseline.logits),
            (output.hidden_states[1], expected.hidden_states[1], baseline.hidden_states[1]),
        ]:
            self.assertEqual(decomposed.numc, 5)
            self.assertRecovers(decomposed, value)
            np.testing.assert_allclose(decomposed.reference, reference, atol=1e-5)
            np.testing.assert_allclose(decomposed.leftover, torch.zeros_like(value), atol=1e-4)
        # A token adds to its own embedding only, and the masked one to nothing but that.
        embedded = (model.embed(ids) - model.embed(torch.zeros_like(ids))).detach()
        for token in range(5):
            own = torch.zeros_like(embedded)
            own[:, token] = embedded[:, token]
            np.testing.assert_allclose(output.hidden_states[0].component(token), own, atol=1e-6)
        self.assertEqual(np.abs(output.logits.component(4)).max(), 0)
        self.assertEqual(set(results.explain(name="output.logits").names), {"a", "c", "d", "e"})
        self.assertEqual(traced.config, {"labels": 3}, "attributes are those of the model")

    def test_named_tuples_lists_and_frozen_dataclasses(self):
        Pair = collections.namedtuple("Pair", "left right")

        @dataclasses.dataclass(frozen=True)
        class Frozen:
            value: torch.Tensor
            more: list

        def model(pair):
            return Frozen(pair.left + pair.right, [pair.left * 2, "text", (pair.right.max(0))])

        pair = Pair(addend.Input(torch.ones(3), 0), torch.arange(3.0))
        output = addend.compile(model)(pair)
        self.assertIsInstance(output, Frozen)
        np.testing.assert_array_equal(output.value.recovery, [1, 2, 3])
        np.testing.assert_array_equal(output.more[0].components, 2 * np.eye(3))
        self.assertEqual(output.more[1], "text")
        self.assertIsInstance(output.more[2], torch.return_types.max)
        self.assertEqual(int(output.more[2].indices), 2)

    def test_what_is_passed_on_has_no_parts(self):
        class Passes(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.randn(3))

            def forward(self, x, plain):
                return x * 2, x, self.weight, plain

        model, plain = Passes(), torch.randn(3)
        product, x, weight, same = addend.compile(model)(addend.Input(torch.randn(3), 0), plain)
        self.assertIsInstance(product, addend.Composition)
        self.assertEqual(x.numc, 3)
        self.assertRecovers(weight, model.weight)
        self.assertEqual(np.abs(weight.components).max(), 0, "nothing of it is due to the input")
        self.assertIs(same, plain)

    def test_what_was_written_into_buffers_and_arguments_has_parts(self):
        class Fills(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("state", torch.zeros(2, 3))

            def forward(self, x, out):
                self.state[1] = 2 * x
                out.copy_(x).neg_()
                return self.state, out

        x = torch.randn(3)
        state, out = addend.compile(Fills())(addend.Input(x, 0), torch.empty(3))
        np.testing.assert_array_equal(state.components.numpy()[:, 1], torch.diag(2 * x))
        np.testing.assert_array_equal(out.components, torch.diag(-x))

    def test_what_leaves_pytorch_is_reported(self):
        model = addend.compile(lambda x: torch.from_numpy(np.sin(x.numpy())) * 2)
        with self.assertRaisesRegex(addend.FailedPrecondition, "no component reaches output.*NumPy or Python, which reads the numbers"):
            model.decompose(addend.Input(torch.randn(3), 0))
        beside = addend.compile(lambda x: torch.from_numpy(np.sin(x.numpy())) * x)
        results = beside.decompose(addend.Input(torch.randn(3), 0))
        self.assertTrue(any("reads numbers that depend on the input" in note for note in results.notes), results.notes)
        self.assertRegex(results.notes[0], "no baseline was given: zero for ")

    def test_what_transformed_functions_compute_is_reported(self):
        weight = torch.tensor([1.0, -2.0, 3.0])
        models = {
            "vmap": lambda x: TRANSFORMS.vmap(lambda row: (row * weight).sum().tanh())(x)[:, None] + x,
            "grad": lambda x: TRANSFORMS.grad(lambda z: (z**3).sum())(x) + x,
            "vmap of grad": lambda x: TRANSFORMS.vmap(TRANSFORMS.grad(lambda row: (row**3).sum()))(x) + x,
        }
        x, baseline = torch.tensor([[0.7, -1.2, 2.1]]), torch.tensor([[0.1, 0.2, -0.3]])
        source = addend.Input(x, dims=1, baseline=baseline)
        for name, model in models.items():
            with self.subTest(name):
                found = addend.compile(model).explain(source, targets="0,0")
                self.assertTrue(any("reads numbers that depend on the input" in note for note in found.notes), found.notes)
                self.assertNotEqual(found.report["reference_is_model_on_baseline"], "yes")
                with self.assertWarnsRegex(addend.AddendWarning, "reads numbers that depend on the input"):
                    given, delta = addend.attribute(model, x, baseline, 0, return_convergence_delta=True)
                moved = (model(x) - model(baseline))[0, 0]
                self.assertGreater(abs(moved - given.sum()), 0.1)
                torch.testing.assert_close(delta, (given.sum() - moved)[None].to(delta.dtype))
        # A result of constants is a constant.
        mask = addend.compile(lambda x: x * TRANSFORMS.vmap(lambda place: (place > 1).float())(torch.arange(3.0)))
        self.assertFalse(any("reads numbers" in note for note in mask.explain(source, targets="0,2").notes))

    def test_what_transformed_functions_read_beside_their_arguments_is_refused(self):
        ones = torch.ones(1, 3)

        def read(z, x):
            return z.sum() + float(x.numpy().sum())

        models = {
            "vmap": lambda x: TRANSFORMS.vmap(lambda row: (row * x).sum())(ones) + x,
            "grad": lambda x: TRANSFORMS.grad(lambda z: (z**3 * x).sum())(ones),
            "grad, alone": lambda x: TRANSFORMS.grad(lambda z: z.sin().sum() + (x * 2).sum())(ones) + x,
            "grad, as numbers": lambda x: TRANSFORMS.grad(lambda z: z.sin().sum() + float(x.sum()))(ones) + x,
            "grad, what was computed": lambda x: (lambda h: TRANSFORMS.grad(lambda z: (z * h).sum())(ones))(x * 2) + x,
            "grad, by NumPy": lambda x: TRANSFORMS.grad(lambda z: read(z, x))(ones) + x,
            "vmap of grad": lambda x: TRANSFORMS.vmap(TRANSFORMS.grad(lambda row: (row * x[0]).sum()))(ones) + x,
        }
        for name, model in models.items():
            with self.subTest(name), self.assertRaisesRegex(addend.Unimplemented, "function that torch.func or functorch"):
                addend.compile(model).explain(addend.Input(torch.rand(1, 3), dims=1, baseline=0), targets="0,0")
            with self.subTest(name, of="a recording"), self.assertRaisesRegex(addend.Unimplemented, "torch.func or functorch"):
                addend.compile(model).record(torch.rand(1, 3))

    def test_both_directions_and_little_memory_give_the_same(self):
        network = nn.Sequential(nn.Linear(6, 5), nn.GELU(), nn.Linear(5, 2))
        source = addend.Input(torch.randn(1, 6), dims=1, baseline=0)
        forward = addend.compile(network, direction="forward").decompose(source)
        self.assertEqual(forward.report["direction"], "forward")
        for options in ({"direction": "backward"}, {"memory": 1 << 20}):
            model = addend.compile(network, **options)
            found = model.decompose(source)
            self.assertEqual(found.report["direction"], options.get("direction", "forward"))
            np.testing.assert_allclose(found[0].components, forward[0].components, atol=1e-5)
            model.explain(source)  # goes back, whatever decompositions do
        with self.assertRaisesRegex(ValueError, "allow more memory"):
            addend.compile(network, memory=10).decompose(source)

    def test_a_memory_limit_holds_where_parameters_have_gradients(self):
        grown = []

        class Deep(nn.Module):
            """30 layers, of which each gives 8 MiB for values and references."""

            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList(nn.Linear(256, 256) for _ in range(30))

            def forward(self, x):
                give_back()  # what earlier tests let go of would not be counted
                before = resident_mib()
                for layer in self.layers:
                    x = torch.tanh(layer(x))
                grown.append(resident_mib() - before)
                return x.sum(1)

        network = Deep().eval()
        x = torch.randn(1, 4096, 256)
        network(x)
        found = [
            addend.compile(network).explain(addend.Input(x, dims=2, baseline=0), memory=memory)
            for memory in (1 << 24, 0)
        ]
        np.testing.assert_array_equal(found[0][0].contributions, found[1][0].contributions)
        self.assertLess(grown[1], 150)
        self.assertGreater(sum(grown[1:]), 300)

    def test_a_model_that_differentiates_inside_needs_all_that_it_computes(self):
        def slope(x):
            free = x.detach().requires_grad_()
            return torch.autograd.grad((free**3).sum(), free)[0] * x

        source = addend.Input(torch.randn(4), dims=0, baseline=0)
        self.assertTrue(addend.compile(slope).explain(source))
        with self.assertRaisesRegex(RuntimeError, "does not require grad"):
            addend.compile(slope).explain(source, memory=1 << 20)

    def test_parameters_may_be_others_from_call_to_call(self):
        network = nn.Linear(3, 2)
        model = addend.compile(network)
        x = torch.randn(3)
        source = addend.Input(x, dims=0)

        def moved():
            network.weight.data = torch.randn(2, 3)

        def replaced():
            network.weight = nn.Parameter(torch.randn(2, 3))

        def laid_out_otherwise():
            network.weight.data = torch.randn(3, 2).t()

        def written():
            with torch.no_grad():
                network.weight.mul_(2)

        for change in (moved, replaced, laid_out_otherwise, written, lambda: None):
            change()
            results = model.decompose(source)
            (check,) = [one for one in results.report["checks"] if "linear" in one["operator"]]
            self.assertIn("weight", check["parameters"])
            np.testing.assert_allclose(
                results[0].recovery, network(x).detach().numpy(), rtol=1e-5, atol=1e-6
            )

    def test_several_inputs_share_one_component_axis(self):
        a, b = torch.randn(2), torch.randn(3)
        output = addend.compile(lambda a, b: torch.cat([a, b]).sum())(addend.Input(a, 0), addend.Input(b, 0))
        np.testing.assert_allclose(output.components, torch.cat([a, b]), atol=1e-6)

    def test_the_same_input_twice_is_one(self):
        x = addend.Input(torch.tensor([1.0, 2.0]), 0)
        output = addend.compile(lambda a, b: a + b)(x, x)
        np.testing.assert_array_equal(output.components, [[2, 0], [0, 4]])

    def test_compositions_go_in(self):
        layer = nn.Linear(4, 3)
        x = torch.randn(4)
        composition = addend.Composition.diagonal(x, 0, baseline=torch.ones(4))
        first = addend.compile(layer)(composition)
        second = addend.compile(nn.Tanh())(first)
        self.assertRecovers(second, torch.tanh(layer(x)))
        np.testing.assert_allclose(first.reference, layer(torch.ones(4)).detach(), atol=1e-6)

    def test_what_is_computed_of_a_result_keeps_the_warnings_of_its_run(self):
        model = addend.compile(lambda x: torch.where(x > 0.5, 3 * x, x - 1))
        warned = model(addend.Input(torch.tensor([0.25, 2.0]), dims=0, baseline=0))
        silent = model(addend.Input(torch.tensor([0.25, 0.5]), dims=0, baseline=0))
        (warning,) = warned.warnings
        self.assertEqual(silent.warnings, [])
        twice = copy.copy(warned)
        twice.mul_(2)
        for name, computed in {
            "method": warned.exp(), "operator": 2 - warned, "two": silent * warned, "function": torch.tanh(warned),
            "element": warned[1:], "list": addend.call("aten::stack", [silent, warned]), "several": warned.split(1)[1],
            "far": (warned + 1).relu().sum(), "selected": warned.select_components([1]), "written": twice,
        }.items():
            with self.subTest(name):
                self.assertEqual(computed.warnings, [warning])
                self.assertIn(warning, computed.notes)
                self.assertIn("WARNING: " + warning, str(computed))
                index = ",".join("0" * len(computed.shape)) or "()"
                explanation = computed.explain(index)
                self.assertEqual(explanation.warnings, [warning])
                self.assertIn("on the baseline some are others", explanation.to_html())
        self.assertEqual((silent * 2 + silent).warnings, [])
        behind = addend.compile(torch.tanh).decompose(warned * 2)
        self.assertEqual((behind.warnings, behind.explain("1").warnings), ([warning], [warning]))

    def test_trace_switches_back(self):
        layer = nn.Linear(4, 3)
        x = torch.randn(4)
        model = addend.compile(layer)
        self.assertTrue(model.tracing)
        self.assertIs(model.trace(False), model)
        self.assertFalse(model.tracing)
        torch.testing.assert_close(model(x), layer(x))
        torch.testing.assert_close(model(addend.Input(x, 0)), layer(x))
        self.assertTrue(model(x).requires_grad, "the plain model trains as ever")
        self.assertIsInstance(model.trace()(addend.Input(x, 0)), addend.Composition)

    def test_numpy_goes_in(self):
        output = addend.compile(lambda x: x * 3)(addend.Input(np.float32([1, 2]), 0))
        np.testing.assert_array_equal(output.components, [[3, 0], [0, 6]])

    def test_probes_are_found_by_name(self):
        model = nn.Sequential(collections.OrderedDict(inner=nn.Sequential(nn.Linear(4, 5), nn.ReLU()), last=nn.Linear(5, 2)))
        x = torch.randn(4)
        results = addend.compile(model, probes=["inner", "inner.0"]).decompose(addend.Input(x, 0))
        self.assertEqual(results.names, ["output", "inner", "inner.0"])
        self.assertRecovers(results["inner"], model.inner(x))
        self.assertRecovers(results["inner.0"], model.inner[0](x))
        self.assertEqual(list(model._forward_hooks), [], "hooks are gone")
        self.assertEqual(list(model.inner._forward_pre_hooks), [])

    def test_policy_by_module_path(self):
        model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2), nn.Tanh())
        x = torch.randn(4)
        plain = addend.compile(model)(addend.Input(x, 0))
        other = addend.compile(model, overrides={"3": {"nonlinearity": "gradient"}})(addend.Input(x, 0))
        inner = addend.compile(model[:3])(addend.Input(x, 0))
        value = model[:3](x).detach()
        np.testing.assert_allclose(other.components, inner.components.numpy() * (1 - np.tanh(value.numpy()) ** 2), atol=1e-5)
        self.assertGreater(np.abs(other.components.numpy() - plain.components.numpy()).max(), 1e-4)

    def test_a_block_of_code(self):
        weight = torch.randn(3, 2)
        source = torch.randn(2)
        with addend.tracing(addend.Input(source, 0, names=["left", "right"])) as trace:
            (x,) = trace.inputs
            y = weight @ x
            trace.output(y)
            trace.output(y.exp(), "exponential")
        self.assertEqual(trace.results.names, ["output", "exponential"])
        np.testing.assert_allclose(trace.results["output"].components, (weight * source).t(), atol=1e-6)
        self.assertRecovers(trace.results["exponential"], (weight @ source).exp())
        self.assertEqual(set(trace.results.explain().names), {"left", "right"})

    def test_what_was_not_recorded_is_no_output(self):
        stranger = torch.randn(3)
        with self.assertRaisesRegex(addend.NotFound, "stranger"):
            with addend.tracing(addend.Input(torch.randn(3), 0)) as trace:
                trace.inputs[0] * 2
                trace.output(stranger, "stranger")
        self.assertIsInstance(addend.NotFound(), KeyError)

    def test_a_thread_has_one_at_a_time(self):
        with self.assertRaises(addend.FailedPrecondition):
            with addend.tracing(addend.Input(torch.randn(3), 0)):
                with addend.tracing(addend.Input(torch.randn(3), 0)):
                    self.fail("a second trace opened")

    def test_exceptions_of_the_model_pass(self):
        class Mine(Exception):
            pass

        def fails(x):
            x * 2
            raise Mine("of the model")

        model = addend.compile(fails)
        with self.assertRaisesRegex(Mine, "of the model"):
            model(addend.Input(torch.randn(3), 0))
        with self.assertRaisesRegex(RuntimeError, "shape|size") as caught:
            addend.compile(lambda x: x @ torch.ones(5, 5))(addend.Input(torch.randn(3), 0))
        self.assertNotIsInstance(caught.exception, addend.Error)
        output = addend.compile(lambda x: x * 2)(addend.Input(torch.ones(1), 0))
        self.assertEqual(output.recovery.item(), 2, "the trace before is closed")

    def test_a_model_may_catch_what_a_module_raises(self):
        class Raises(nn.Module):
            def forward(self, x):
                raise ValueError("no")

        class Catches(nn.Module):
            def __init__(self):
                super().__init__()
                self.raises = Raises()
                self.layer = nn.Linear(3, 2)

            def forward(self, x):
                try:
                    return self.raises(x)
                except ValueError:
                    return self.layer(x)

        model = Catches()
        results = addend.compile(model, probes="layer").decompose(addend.Input(torch.randn(3), 0))
        np.testing.assert_array_equal(results["layer"].recovery, results["output"].recovery)

    def test_an_operator_without_rule_says_which(self):
        library = torch.library.Library("addend_live_test", "DEF")
        library.define("secret(Tensor x) -> Tensor")
        library.impl("secret", lambda x: x.sin().clone(), "CPU")

        class Inner(nn.Module):
            def forward(self, x):
                return torch.ops.addend_live_test.secret(x)

        model = nn.Sequential(collections.OrderedDict(first=nn.Linear(3, 3), second=nn.Sequential(Inner())))
        with self.assertRaisesRegex(addend.Unimplemented, "no composition rule for addend_live_test::secret") as caught:
            addend.compile(model)(addend.Input(torch.randn(3), 0))
        error = caught.exception
        self.assertEqual(error.code, addend.Code.UNIMPLEMENTED)
        self.assertIn("addend_live_test::secret", error.payload["op"])
        self.assertIsInstance(error, NotImplementedError)
        absorbed = addend.compile(model, missing_rule="absorb").decompose(addend.Input(torch.randn(3), 0))
        self.assertEqual(np.abs(absorbed.output.components).max(), 0)

    def test_an_operator_without_rule_says_where_it_is(self):
        library = torch.library.Library("addend_place_test", "DEF")
        library.define("secret(Tensor x) -> Tensor")
        library.impl("secret", lambda x: x.sin().clone(), "CPU")

        class Inner(nn.Module):
            def forward(self, x):
                return torch.ops.addend_place_test.secret(x)

        model = nn.Sequential(collections.OrderedDict(first=nn.Linear(3, 3), second=nn.Sequential(Inner())))
        with self.assertRaises(addend.Unimplemented) as caught:
            addend.compile(model)(addend.Input(torch.randn(3), 0))
        self.assertEqual(caught.exception.payload.get("module_path"), "second.0")

    def test_errors_name_the_parameters_that_an_operator_reads(self):
        library = torch.library.Library("addend_parameter_test", "DEF")
        library.define("scale(Tensor x, Tensor weight) -> Tensor")
        library.impl("scale", lambda x, weight: x * weight, "CPU")

        class Scale(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(3))

            def forward(self, x):
                return torch.ops.addend_parameter_test.scale(x, self.weight)

        with self.assertRaises(addend.Unimplemented) as caught:
            addend.compile(nn.Sequential(nn.Linear(3, 3), Scale()))(addend.Input(torch.randn(3), 0))
        self.assertIn("1.weight", caught.exception.payload["parameters"])

    def test_a_rule_for_an_operator_of_ones_own(self):
        library = torch.library.Library("addend_rule_test", "DEF")
        library.define("double_tanh(Tensor x) -> Tensor")
        library.impl("double_tanh", lambda x: 2 * x.tanh(), "CPU")

        def model(x):
            return torch.ops.addend_rule_test.double_tanh(x)

        x = torch.tensor([0.5, -1.0, 2.0])
        output = addend.compile(model, rules={"addend_rule_test::double_tanh": "pointwise"}, preset="faithful")(
            addend.Input(x, 0)
        )
        np.testing.assert_allclose(np.diag(output.components), 2 * x.tanh(), rtol=1e-5)
        np.testing.assert_allclose(output.reference, np.zeros(3), atol=1e-6)
        for rules in ({"addend_rule_test::double_tanh": "magic"}, {"": "path"}):
            with self.assertRaises(addend.InvalidArgument):
                addend.Context(rules=rules)

    def test_nothing_to_decompose(self):
        with self.assertRaisesRegex(ValueError, "addend.Input"):
            addend.compile(nn.Linear(3, 3))(torch.randn(3))
        with self.assertRaisesRegex(TypeError, "callable"):
            addend.compile(5)

    def test_arguments_that_share_memory(self):
        def writes(a, c):
            a.mul_(2)
            return c + a

        def note(model, *args):
            notes = addend.compile(model).decompose(*args).notes
            return [one for one in notes if "share memory" in one]

        x = torch.rand(2, 4)
        source = addend.Input(x, dims=1, baseline=0)
        said = "a and c share memory, and the model writes a: it was given copies"
        self.assertIn(said, note(writes, source, addend.Input(x, dims=1, baseline=0))[0])
        self.assertIn(said, note(writes, source, x)[0])
        self.assertIn(said, note(writes, addend.Input(x[:, :2], dims=1), addend.Input(x[:, 1:3], dims=1))[0])
        self.assertIn(said, note(writes, addend.Input(x.numpy(), dims=1), x)[0])
        self.assertEqual(note(writes, source, x.clone()), [])
        self.assertEqual(note(writes, addend.Input(x[:, :2], dims=1), addend.Input(x[:, 2:], dims=1)), [])
        self.assertEqual(note(lambda a, c: a * 2 + c, source, x), [])
        with torch.inference_mode():
            self.assertIn(said, note(writes, source, x)[0])
            self.assertEqual(note(lambda a, c: a * 2 + c, source, x), [])
        self.assertEqual(note(writes, source, source), [], "one argument in two places is one tensor")
        with self.assertRaisesRegex(addend.InvalidArgument, said):
            addend.compile(writes).record(x, x.view(2, 4))

    def test_threads_give_the_same_bits(self):
        model = Classifier().eval()
        traced = addend.compile(model, probes="norm")
        inputs = [torch.randint(0, 11, (1, 5)) for _ in range(8)]
        mask = torch.ones(1, 5, dtype=torch.int64)

        def decompose(ids):
            results = traced.decompose(addend.Input(ids, 1), mask)
            return [results.output.logits.components.numpy(), results["norm"].components.numpy()]

        expected = [decompose(ids) for ids in inputs]
        found = [None] * 8

        def work(k):
            for _ in range(5):
                found[k] = decompose(inputs[k])

        threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for k in range(8):
            for a, b in zip(expected[k], found[k]):
                np.testing.assert_array_equal(a, b)
