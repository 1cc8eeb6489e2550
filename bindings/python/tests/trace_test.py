"""A trace is a thing that one can run: traces in the spelling of torch.jit, and programs that are called."""

import collections
import dataclasses
import os
import random
import unittest
import warnings

import numpy as np
import torch
from torch import nn

import addend

X = torch.rand(1, 3)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 2)
        self.register_buffer("shift", torch.rand(2))

    def encode(self, x):
        return self.inner(x) + self.shift

    def decode(self, z, scale=None):
        z = z if scale is None else z * scale
        return z @ self.inner.weight

    def forward(self, x):
        return {"a": self.encode(x), "b": (x, [x + 1, None])}


Pair = collections.namedtuple("Pair", ["first", "second"])


@dataclasses.dataclass
class Output:
    logits: torch.Tensor
    kind: str = "plain"


def silent(function, *args, **kwargs):
    """Calls it, where a warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return function(*args, **kwargs)


class CalledTest(unittest.TestCase):
    def test_the_seeds_first_example(self):
        def foo(x, y):
            return 2 * x + y

        traced = silent(addend.trace, foo, (torch.rand(3), torch.rand(3)))
        x, y = torch.rand(3), torch.rand(3)
        for found in (traced(x, y), traced(x, y=y), traced(y=y, x=x)):
            self.assertIsInstance(found, torch.Tensor)
            self.assertTrue(torch.equal(found, foo(x, y)))
        self.assertIsInstance(traced(x.numpy(), y.numpy()), addend.Tensor)
        np.testing.assert_array_equal(traced(x.numpy(), y.numpy()), foo(x, y).numpy())

    def test_outputs_have_the_structure_that_the_model_gave(self):
        functions = [
            lambda x: x * 2,
            lambda x: (x, x + 1),
            lambda x: Pair(x, [x + 1, x > 0.5]),
            lambda x: Output(x.exp()),
            lambda x: {"a": x.sum(), "b": [None, "text", {"c": x}]},
        ]
        for function in functions:
            found, expected = addend.trace(function, X)(X + 1), function(X + 1)
            self.assertEqual(type(found), type(expected))
            self.assertEqual(repr(found), repr(expected))  # values and dtypes with it

    def test_inputs_are_given_as_to_the_model(self):
        def function(x, factor, beside, *more, masks=None, **named):
            return x * factor + beside["y"][0] + sum(more) + (0 if masks is None else masks) + named.get("z", 0)

        def inputs():
            return [torch.rand(2) for _ in range(6)]

        a, b, c, d, e, f = inputs()
        program = addend.compile(function).record(a, 0.5, {"y": (b, "text")}, c, d, masks=e, z=f)
        a, b, c, d, e, f = inputs()
        expected = function(a, 0.5, {"y": (b, "text")}, c, d, masks=e, z=f)
        self.assertTrue(torch.equal(program(a, 0.5, {"y": (b, "text")}, c, d, z=f, masks=e), expected))
        wrong = {
            "factor was 0.5": lambda: program(a, 0.7, {"y": (b, "text")}, c, d, masks=e, z=f),
            "masks is missing": lambda: program(a, 0.5, {"y": (b, "text")}, c, d, z=f),
            "more.2 was not given": lambda: program(a, 0.5, {"y": (b, "text")}, c, d, e, masks=e, z=f),
            "beside.y.1 was 'text'": lambda: program(a, 0.5, {"y": (b, "other")}, c, d, masks=e, z=f),
        }
        for message, call in wrong.items():
            with self.assertRaisesRegex(ValueError, "^" + message):
                call()

    def test_one_tensor_in_two_places(self):
        program = addend.compile(lambda x, y: 2 * x + y).record(X, X)
        self.assertTrue(torch.equal(program(X + 1, X + 1), 3 * (X + 1)))
        with self.assertRaisesRegex(ValueError, "^x and y were one tensor"):
            program(X, X + 1)

    def test_what_no_run_computes_is_refused(self):
        program = addend.compile(lambda x: {"loss": x.sum(), "count": x.shape[0]}).record(X)
        with self.assertRaisesRegex(ValueError, "output.count = 1, which is no tensor"):
            program(torch.rand(2, 3))
        self.assertEqual(program.replay(X)[0].item(), X.sum().item())

    def test_programs_without_a_call(self):
        with addend.recording(X) as trace:
            trace.output(trace.inputs[0] + 1)
            trace.output(trace.inputs[0] * 2)
        one, other = trace.program(X + 1)
        self.assertTrue(torch.equal(one, X + 2) and torch.equal(other, 2 * (X + 1)))
        named = addend.compile(lambda x, y: x - y).record(X, X + 1).model()
        self.assertTrue(torch.equal(named.record(X, X + 1)(y=X, x=X + 5), X + 5 - X))

    def test_sizes_and_dtypes_keep_the_structure(self):
        net = Model()
        program = addend.compile(net).record(torch.rand(2, 3), others=[torch.rand(3, 3), torch.rand(5, 3)])
        x = torch.rand(4, 3)
        torch.testing.assert_close(program(x)["a"], net(x)["a"].detach())
        wide, x = program.to("float64"), x.double()
        torch.testing.assert_close(wide(x)["b"][1][0], x + 1)

    def test_sizes_are_learned_from_one_example(self):
        net = Model()
        for program in (addend.compile(net).record(X), addend.trace(net, X), addend.trace(net, X, check_trace=False)):
            x = torch.rand(4, 3)
            torch.testing.assert_close(program(x)["a"], net(x)["a"].detach())

    def test_learning_sizes_leaves_the_model_as_it_is(self):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
        program = addend.compile(net).record(torch.rand(3, 3))
        state = {name: tensor.clone() for name, tensor in net.state_dict().items()}
        generator = torch.get_rng_state()
        for count in (4, 5):
            x = torch.arange(3.0 * count).view(count, 3).sin()
            expected = nn.functional.batch_norm(net[0](x), None, None, net[1].weight, net[1].bias, training=True)
            torch.testing.assert_close(program(x), expected.detach())
        program.script_module()
        self.assertTrue(torch.equal(torch.get_rng_state(), generator))
        for name, tensor in net.state_dict().items():
            self.assertTrue(torch.equal(tensor, state[name]), name)

    def test_script_modules_in_memory(self):
        net = Model()
        before = set(os.listdir())
        module = addend.compile(net.encode).record(X).script_module()
        self.assertIsInstance(module, torch.jit.ScriptModule)
        self.assertTrue(torch.equal(module(X), net.encode(X)))
        expected = ["inner.bias", "inner.weight"]
        self.assertEqual(sorted(name for name, _ in module.named_parameters()), expected)
        self.assertEqual(set(os.listdir()), before)
        with self.assertRaises(addend.FailedPrecondition):
            addend.compile(lambda x: x if x.sum() > 0 else -x).record(X).script_module()


class Draws(nn.Module):
    """Draws from every generator, writes a buffer and a parameter, and counts."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
        self.scale = nn.Parameter(torch.ones(()))
        self.count = 0

    def forward(self, x):
        self.count += 1
        with torch.no_grad():
            self.calls += 1
            self.scale += 1
        return x * torch.rand(3) + random.random() + np.random.rand() + self.calls

    def left(self):
        return self.count, self.calls.item(), self.scale.item(), torch.rand(1).item(), random.random(), np.random.rand()


class TraceTest(unittest.TestCase):
    def test_programs_are_those_of_record(self):
        net = Model()
        for function in (net, net.forward, net.encode, lambda x: net.encode(x)):
            traced, recorded = silent(addend.trace, function, X), addend.compile(function).record(X)
            self.assertEqual(traced.names(), recorded.names())
            self.assertTrue(traced.check(X + 1).ok)

    def test_leaves_everything_as_one_call_does(self):
        def left(run):
            torch.manual_seed(3)
            random.seed(3)
            np.random.seed(3)
            model = Draws()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                run(model)
            return model.left()

        once = left(lambda model: model(X))
        for options in ({}, {"check_inputs": [X + 1, X + 2]}, {"check_trace": False}):
            self.assertEqual(left(lambda model: addend.trace(model, X, **options)), once)
        self.assertNotEqual(left(lambda model: None), once)

    def test_warns_of_what_differs(self):
        torch.manual_seed(0)
        cases = {
            "aten::rand draws random numbers": (lambda x: x * torch.rand(3), ()),
            "is the first that differs": (nn.Sequential(nn.Linear(3, 3), nn.Dropout()), ()),
            "a guard does not hold": (lambda x: x * 2 if x.sum() > 0 else x, [-X]),
            "overwrites its buffer 0.running_mean": (nn.Sequential(nn.BatchNorm1d(3)), ()),
        }
        for message, (function, others) in cases.items():
            example = torch.rand(4, 3) if isinstance(function, nn.Module) else X
            with self.subTest(message):
                with self.assertWarnsRegex(UserWarning, message) as caught:
                    addend.trace(function, example, check_inputs=others)
                self.assertEqual(os.path.basename(caught.filename), os.path.basename(__file__))
                silent(addend.trace, function, example, check_trace=False)
        silent(addend.trace, nn.Sequential(nn.Linear(3, 3), nn.Dropout()).eval(), X)

    def test_runs_the_model_twice(self):
        runs = []

        def function(x):
            runs.append(x)
            return x * 2

        addend.trace(function, X)
        self.assertEqual(len(runs), 2)
        addend.trace(function, X, check_trace=False)
        self.assertEqual(len(runs), 3)

    def test_arguments_by_name(self):
        program = silent(addend.trace, lambda x, y=None: x - y, X, example_kwarg_inputs={"y": X + 1})
        self.assertEqual(program.names("input"), ["x", "y"])
        one = {"x": X, "y": X}
        program = silent(addend.trace, lambda given: given["x"] - given["y"] + 1, {"x": X, "y": X + 1})
        self.assertTrue(torch.equal(program({"x": X + 1, "y": X}), one["x"] + 1 - one["y"] + 1))

    def test_several_methods(self):
        net = Model()
        traced = silent(addend.trace_module, net, {"forward": X, "encode": X, "decode": (torch.rand(1, 2),)})
        x, z = torch.rand(1, 3), torch.rand(1, 2)
        self.assertTrue(torch.equal(traced(x)["a"], net.encode(x)))
        self.assertTrue(torch.equal(traced.encode(x), net.encode(x)))
        self.assertTrue(torch.equal(traced["decode"](z), net.decode(z)))
        self.assertEqual(sorted(traced), ["decode", "encode", "forward"])
        self.assertEqual(traced.encode.names("parameter"), ["inner.weight", "inner.bias"])
        self.assertEqual(traced.encode.names("buffer"), ["shift"])
        with self.assertRaisesRegex(AttributeError, "no method missing"):
            traced.missing
        with self.assertRaisesRegex(addend.NotFound, "no method missing"):
            addend.trace_module(net, {"missing": X})
        with self.assertWarnsRegex(UserWarning, "a guard does not hold") as caught:
            net.branch = lambda x: x * 2 if x.sum() > 0 else x
            addend.trace_module(net, {"branch": X, "encode": X}, check_inputs=[{"branch": -X}, {"encode": X + 1}])
        self.assertEqual(os.path.basename(caught.filename), os.path.basename(__file__))


class MetaTest(unittest.TestCase):
    """Models without elements, which are known by their storages."""

    def test_programs_have_names_and_shapes(self):
        net, x = Model(), torch.rand(1, 3)
        expected = addend.compile(net).record(x)
        meta = Model().to("meta")
        for program in (addend.compile(meta).record(x.to("meta")), _recorded(meta, x.to("meta"))):
            for kind in ("parameter", "buffer", "result"):
                self.assertEqual(program.names(kind), expected.names(kind))
            self.assertEqual([one.shape for one in program.outputs], [one.shape for one in expected.outputs])
        self.assertEqual(addend.compile(meta).record(x.to("meta")).names("input"), ["x"])
        self.assertIn("# linear(x: f32[1, 3], inner.weight: f32[2, 3]", program.code(names=True).replace("input_0", "x"))

    def test_requirements_without_a_run(self):
        ran = []

        class Spectral(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = nn.Sequential(nn.Linear(3, 3), nn.Dropout())

            def forward(self, x):
                ran.append(x.device.type)
                return torch.igamma(self.inner(x), x)

        model = Spectral()
        found = addend.compile(model).requirements(X, meta=True)
        self.assertEqual(ran, ["meta"])
        self.assertEqual([(one.kind, one.message) for one in found], [
            (one.kind, one.message) for one in addend.compile(model).requirements(X)
        ])
        self.assertEqual({one.kind for one in found}, {"mode", "operator"})
        self.assertEqual({tensor.device.type for tensor in model.parameters()}, {"cpu"})
        self.assertEqual(addend.compile(Model().encode).requirements(X, meta=True), [])
        with self.assertRaisesRegex(TypeError, "leave meta out"):
            addend.compile(lambda x: x).requirements(X, meta=True)
        with self.assertRaisesRegex(RuntimeError, "shapes cannot be multiplied|must have same reduction dim"):
            addend.compile(Model()).requirements(torch.rand(1, 4), meta=True)


def _recorded(model, x):
    with addend.recording(x, model=model) as trace:
        found = model(trace.inputs[0])
        for tensor in (found["a"], found["b"][0], found["b"][1][0]):
            trace.output(tensor)
    return trace.program


class NamesTest(unittest.TestCase):
    def setUp(self):
        self.net = Model()

    def test_bound_methods_and_functions_keep_names(self):
        net, other = self.net, nn.Linear(2, 2)
        cases = [
            (net.forward, ["inner.weight", "inner.bias"], ["shift"]),
            (net.encode, ["inner.weight", "inner.bias"], ["shift"]),
            (
                lambda x: other(net.encode(x)),
                ["net.inner.weight", "net.inner.bias", "other.weight", "other.bias"],
                ["net.shift"],
            ),
        ]
        for function, parameters, buffers in cases:
            program = addend.compile(function).record(X)
            self.assertEqual(program.names("parameter"), parameters)
            self.assertEqual(program.names("buffer"), buffers)
            kinds = {one["name"]: one["kind"] for one in program.summary["values"] if one["dtype"] == "f32"}
            self.assertNotIn("constant", kinds.values())
        places = addend.compile(lambda x: other(net.encode(x))).record(X).code_record()["places"]
        self.assertEqual({place["module_path"] for place in places}, {"net.inner", "net", "other"})

    def test_probes_and_overrides_reach_modules_of_functions(self):
        net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
        results = addend.compile(lambda x: net(x), probes="net.1").decompose(addend.Input(X, 1))
        self.assertEqual(results.names, ["output", "net.1"])
        torch.testing.assert_close(results["net.1"].recovery.torch(), net[:2](X).detach())

    def test_methods_of_live_models(self):
        net = self.net
        model = addend.compile(net, preset="faithful")
        one = model.methods("encode")
        self.assertTrue(torch.equal(one.record(X)(X), net.encode(X)))
        torch.testing.assert_close(one(addend.Input(X, 1)).recovery.torch(), net.encode(X).detach())
        z = torch.rand(1, 2)
        both = model.methods("encode", "decode")
        program = both.record(X, z)
        self.assertEqual(program.names("input"), ["encode.x", "decode.z"])
        self.assertEqual(program.names("parameter"), ["inner.weight", "inner.bias"])
        scale = torch.rand(2)
        encoded, decoded = both.record(X, z, **{"decode.scale": scale})(X + 1, z, **{"decode.scale": scale + 1})
        self.assertTrue(torch.equal(encoded, net.encode(X + 1)))
        self.assertTrue(torch.equal(decoded, net.decode(z, scale + 1)))
        encoded, decoded = both(addend.Input(X, 1), z)
        self.assertEqual(encoded.numc, 3)
        with self.assertRaisesRegex(addend.NotFound, "no method missing"):
            model.methods("missing")
        with self.assertRaisesRegex(TypeError, "no method of encode, decode takes"):
            both.record(X, z, X)
        with self.assertRaisesRegex(ValueError, "each once"):
            model.methods("encode", "encode")


if __name__ == "__main__":
    unittest.main()
