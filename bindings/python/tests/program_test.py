"""Recorded programs, and attributions."""

import io
import math
import os
import tempfile
import unittest
from typing import Dict, List, Optional, Tuple

import numpy as np
import torch

import addend

DIGITS = "docs/examples/models/digits/"


def script(module):
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(module.eval()), file)
    return file.getvalue()


def load(module, dtype=None):
    return addend.load_model(script(module), dtype)


class Branch(torch.nn.Module):
    def forward(self, x):
        if bool(x.sum() > 0):
            return x.relu() * 2
        return x.tanh()


class Steps(torch.nn.Module):
    """Sizes in its arguments follow those of the input."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 4)

    def forward(self, x):
        return self.layer(x).view(x.size(0), 4 * x.size(1))


class Pair(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.left = torch.nn.Linear(3, 2)
        self.right = torch.nn.Linear(4, 2)

    def forward(self, left, right):
        return torch.tanh(self.left(left)) + self.right(right), self.left(left)


class Nested(torch.nn.Module):
    """Takes everything but a plain tensor; has other methods than forward()."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 2)

    def forward(
        self,
        pair: Tuple[torch.Tensor, torch.Tensor],
        masks: Dict[str, torch.Tensor],
        steps: List[Tuple[torch.Tensor, int]],
        weights: List[float],
        scale: float = 1.0,
        bias: Optional[torch.Tensor] = None,
        mode: str = "each",
        extra: Optional[Dict[str, List[torch.Tensor]]] = None,
    ):
        out = self.encode(pair[0]) * masks["keep"] - torch.tanh(pair[1]) * masks["drop"]
        for step, times in steps:
            out = out + step * times * weights[0]
        if bias is not None:
            out = out + bias
        if extra is not None:
            for more in extra["more"]:
                out = out + more
        out = out * scale
        return out.sum(0) if mode == "sum" else out

    @torch.jit.export
    def encode(self, x):
        return self.layer(x).sigmoid()

    @torch.jit.export
    def decode(self, y):
        return y @ self.layer.weight


class ProgramTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.network = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.ReLU(), torch.nn.Linear(5, 2))
        self.x = torch.randn(2, 3)

    def test_replays_the_same_bits(self):
        program = load(self.network).record(self.x)
        other = torch.randn(2, 3)
        with torch.no_grad():
            expected = self.network(other)
        results = program.replay(other)
        self.assertEqual(results.names, ["output"])
        self.assertTrue(torch.equal(results[0].torch(), expected))
        self.assertEqual(program.num_operators, 3)
        self.assertEqual(program.outputs, [("output", addend.DType.float32, (2, 2))])
        self.assertEqual(program.names("input"), ["input"])
        self.assertEqual(sorted(program.names("parameter")), ["0.bias", "0.weight", "2.bias", "2.weight"])
        self.assertEqual(repr(program), "Program(input: 3 operators)")
        # At another size it learns what follows it, while the model is there.
        other = torch.randn(4, 3)
        with torch.no_grad():
            self.assertTrue(torch.equal(program.replay(other)[0].torch(), self.network(other)))
        with self.assertRaisesRegex(addend.InvalidArgument, "dimension 0 of input is 400, but sizes from 1 to 9 were tried"):
            program.replay(torch.randn(400, 3))
        with tempfile.TemporaryDirectory() as folder:
            program.save(folder)
            with self.assertRaisesRegex(addend.InvalidArgument, r"\[4, 3\]"):
                addend.Program.load(folder).replay(other)

    def test_gives_inner_values_by_name(self):
        program = load(self.network).record(self.x)
        results = program.replay(self.x, values="relu")
        with torch.no_grad():
            self.assertTrue(torch.equal(results["relu"].torch(), self.network[:2](self.x)))
        everything = program.replay(self.x, every_value=True)
        self.assertEqual(everything.names[1:], program.names())

    def test_learns_sizes_from_others(self):
        model = load(Steps())
        program = model.record(torch.randn(2, 4, 3), others=[torch.randn(3, 5, 3), torch.randn(4, 7, 3)])
        self.assertEqual([(d["input"], d["dim"]) for d in program.summary["free"]], [("x", 0), ("x", 1)])
        x = torch.randn(5, 2, 3)
        self.assertTrue(torch.equal(program.replay(x)[0].torch(), model.run(x)[0].torch()))

    def test_stops_where_a_number_that_left_the_tensors_is_another(self):
        model = load(Branch())
        x = torch.tensor([1.0, 2.0, -0.5])
        program = model.record(x)
        self.assertEqual([guard["kind"] for guard in program.summary["guards"]], ["number"])
        with self.assertRaises(addend.FailedPrecondition):
            program.replay(-x)
        wrong = program.replay(-x, guards=False)[0].torch()
        self.assertTrue(torch.equal(wrong, (-x).relu() * 2))
        check = program.check(-x)
        self.assertFalse(check.ok)
        self.assertIn(("guard", 0), [(finding.kind, finding.input_set) for finding in check.findings if finding.error])
        self.assertTrue(load(self.network).record(self.x).check(self.x * 2, tolerance=0.0).ok)
        self.assertTrue(load(Pair()).check_trace(torch.randn(1, 3), torch.randn(1, 4)).ok)

    def test_is_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program")
            load(self.network).record(self.x).save(path)
            self.assertEqual(sorted(os.listdir(path)), ["program.json", "weights.safetensors"])
            program = addend.Program.load(path)
        with torch.no_grad():
            self.assertTrue(torch.equal(program.replay(self.x)[0].torch(), self.network(self.x)))
        with self.assertRaisesRegex(ValueError, "record the model again"):
            program.check()
        with self.assertRaises(addend.NotFound):
            addend.Program.load("/nowhere")

    def test_damaged_files_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            load(self.network).record(self.x).save(folder)
            for name in ("program.json", "weights.safetensors"):
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    whole = file.read()
                for size in (0, 1, 9, len(whole) // 2, len(whole) - 2):
                    with open(path, "wb") as file:
                        file.write(whole[:size])
                    with self.subTest(name=name, size=size), self.assertRaises(addend.InvalidArgument):
                        addend.Program.load(folder)
                with open(path, "wb") as file:
                    file.write(whole)
            addend.Program.load(folder)

    def test_stands_for_the_model(self):
        model = load(self.network)
        program = model.record(self.x).model()
        split = addend.Input(self.x, dims=1, baseline=0.5)
        expected, found = model.decompose(split)[0], program.decompose(split)[0]
        np.testing.assert_array_equal(found.components, expected.components)
        self.assertEqual(program.input_names, model.input_names)

    def test_is_read_as_code(self):
        program = load(self.network).record(self.x)
        text = program.code()
        self.assertIn("# linear(f32[2, 3], f32[5, 3], f32[5]) -> f32[2, 5];", text)
        self.assertIn("input: f32[2, 3]", program.code(names=True))
        self.assertIn("\x1b[", program.code(color=True))
        timed = program.code(numbers={"time": ("seconds", [0.5, None, math.nan]), "score": [1, 2, 3]})
        self.assertIn("[time 500.0 ms | score 1]", timed)
        record = program.code_record(numbers={"score": [1, 2, 3]})
        self.assertEqual([call["numbers"] for call in record["calls"]], [[1], [2], [3]])
        with self.assertRaises(addend.InvalidArgument):
            program.code(numbers={"score": [1]})
        with self.assertRaises(TypeError):
            program.code(include="*.py")

    def test_is_read_as_a_graph(self):
        program = load(self.network).record(self.x)
        graph = program.graph()
        kinds = [node["kind"] for node in graph["nodes"]]
        self.assertEqual((kinds.count("call"), kinds.count("parameter"), kinds.count("output")), (3, 4, 1))
        names = [node["name"] for node in graph["nodes"]]
        self.assertIn(
            (names.index("linear"), names.index("relu")), [(edge["from"], edge["to"]) for edge in graph["edges"]]
        )
        self.assertTrue(program.dot().startswith("digraph"))
        self.assertNotIn("0.weight", program.dot())
        self.assertIn("0.weight", program.dot(sources=True))
        page = program.html("<script>", numbers={"score": [1, 2, 3]})
        self.assertIn("</html>", page)
        self.assertIn("\\u003cscript>", page)

    def test_closed_programs_say_so(self):
        program = load(self.network).record(self.x)
        program.close()
        self.assertEqual(repr(program), "Program(closed)")
        with self.assertRaises(ValueError):
            program.code()


class AttributionTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        network = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 4)).double()
        self.network = network
        self.model = load(network)
        self.x = torch.randn(6, 3, dtype=torch.float64)

    def expected(self, row, target):
        """Expected numbers, from a decomposition of one example alone."""
        output = self.model.decompose(addend.Input(self.x[row : row + 1], dims=1))[0]
        return output.components.torch()[:, 0, target], output.leftover.torch()[0, target]

    def test_gives_each_example_a_target_of_its_own(self):
        targets = [0, 1, 2, 3, 1, 0]
        found, delta = self.model.attribute(self.x, target=targets, return_convergence_delta=True)
        self.assertIsInstance(found, torch.Tensor)
        self.assertEqual((found.shape, found.dtype, delta.shape), (self.x.shape, self.x.dtype, (6,)))
        for row, target in enumerate(targets):
            components, leftover = self.expected(row, target)
            torch.testing.assert_close(found[row], components, rtol=1e-10, atol=1e-12)
            self.assertAlmostEqual(delta[row].item(), -leftover.item(), places=12)
        with torch.no_grad():
            gone = self.network(self.x) - self.network(torch.zeros_like(self.x))
        total = found.sum(1) - delta
        torch.testing.assert_close(total, gone[range(6), targets], rtol=1e-10, atol=1e-12)
        for same in (torch.tensor(targets), np.array(targets)):
            self.assertTrue(torch.equal(self.model.attribute(self.x, target=same), found))

    def test_gives_each_example_every_target(self):
        every = self.model.explain(
            addend.Input(self.x, dims=1), targets=[0, 2], each_example=True, every_target=True
        )
        self.assertEqual((len(every), tuple(every.inputs[0].shape)), (12, (2, 6, 3)))
        for k, target in enumerate((0, 2)):
            for row in range(6):
                components, leftover = self.expected(row, target)
                torch.testing.assert_close(every.inputs[0].torch()[k, row], components, rtol=1e-10, atol=1e-12)
                self.assertAlmostEqual(every[6 * k + row].leftover, leftover.item(), places=12)
        with self.assertRaisesRegex(addend.InvalidArgument, "every_target is for examples"):
            self.model.explain(addend.Input(self.x, dims=1), targets=[(0, 1)], every_target=True)

    def test_one_target_for_all(self):
        found = self.model.attribute(self.x, target=2)
        for row in range(6):
            torch.testing.assert_close(found[row], self.expected(row, 2)[0], rtol=1e-10, atol=1e-12)
        self.assertTrue(torch.equal(self.model.attribute(self.x, target=(2,)), found))
        difference = self.model.attribute(self.x, target="2-1")
        torch.testing.assert_close(difference, found - self.model.attribute(self.x, target=1), rtol=1e-9, atol=1e-12)
        with torch.no_grad():
            best = self.network(self.x).argmax(1)
        top = self.model.attribute(self.x, target="top1")
        self.assertTrue(torch.equal(top, self.model.attribute(self.x, target=best)))

    def test_several_targets(self):
        found = self.model.attribute(self.x, target=[(0, 2), (4, 1)], each_example=False)
        self.assertEqual(found.shape, (2, 6, 3))
        torch.testing.assert_close(found[1, 4], self.expected(4, 1)[0], rtol=1e-10, atol=1e-12)
        self.assertTrue(torch.equal(found[1, :4], torch.zeros(4, 3, dtype=torch.float64)))

    def test_has_a_tensor_for_each_input(self):
        model = load(Pair())
        left, right = torch.randn(2, 3), torch.randn(2, 4)
        both = model.attribute((left, right), target=1)
        self.assertIsInstance(both, tuple)
        self.assertEqual([part.shape for part in both], [left.shape, right.shape])
        named = model.attribute({"right": right, "left": left}, target=1)
        self.assertEqual(list(named), ["right", "left"])
        self.assertTrue(torch.equal(named["left"], both[0]) and torch.equal(named["right"], both[1]))
        arrays = model.attribute([left.numpy(), right.numpy()], target=1)
        self.assertIsInstance(arrays, list)
        self.assertIsInstance(arrays[0], np.ndarray)
        np.testing.assert_array_equal(arrays[1], both[1])
        only = model.attribute(left, target=1, additional_forward_args=right)
        # The right input no longer moves, so all of its part is gone, and that of the left one is what it was: a sum.
        torch.testing.assert_close(only, both[0], rtol=1e-5, atol=1e-6)
        fixed = model.attribute({"left": left, "right": addend.Input(right)}, target=1)
        self.assertIsNone(fixed["right"])
        self.assertTrue(torch.equal(fixed["left"], only))
        # Linear in the right input: the attributions are weight * (input - baseline).
        baseline = torch.full((1, 4), 0.25)
        moved = model.attribute((left, right), baselines=(None, baseline), target=1)
        shifted = model.attribute((left, right - baseline), target=1)
        torch.testing.assert_close(moved[1], shifted[1], rtol=1e-4, atol=1e-6)
        second = model.attribute((left, right), target=0, at="output.1")
        self.assertTrue(torch.equal(second[1], torch.zeros_like(right)))

    def test_refuses_what_it_cannot_explain(self):
        with self.assertRaisesRegex(ValueError, "2 baselines for 1 inputs"):
            self.model.attribute(self.x, baselines=(0, 0))
        with self.assertRaises(addend.InvalidArgument):
            self.model.attribute(self.x, target=7)
        with self.assertRaises(addend.InvalidArgument):
            self.model.attribute(self.x, target=[1, 2])
        with self.assertRaises(addend.FailedPrecondition):
            self.model.attribute(self.x, target=0, bias="abs")
        with self.assertRaises(TypeError):
            self.model.attribute({"input": self.x}, baselines=(0,))
        with self.assertRaises(TypeError):
            self.model.attribute({"input": self.x}, additional_forward_args=self.x)
        with self.assertRaisesRegex(ValueError, "nowhere"):
            self.model.attribute({"input": self.x}, baselines={"nowhere": 0})

    def test_finds_backward_what_decomposing_finds_forward(self):
        model = addend.load_model(DIGITS + "model.pt")
        image = addend.read_tensors(DIGITS + "sample.safetensors")["input"]
        split = addend.Input(image, (2, 3), baseline=0)
        found = model.explain(split, targets=["8", (0, 3)], operators=True)
        decomposed = model.decompose(split)
        self.assertEqual((len(found), found.inputs[0].shape), (2, (2, 1, 1, 8, 8)))
        for explanation, target in zip(found, ("8", "3")):
            expected = decomposed.explain(target)
            self.assertEqual(explanation.target, expected.target)
            np.testing.assert_allclose(explanation.contributions, expected.contributions, atol=1e-5)
            self.assertEqual(explanation.names, expected.names)
        self.assertEqual(found.leftovers, [explanation.leftover for explanation in found])
        self.assertEqual(found[-1].target, "[0, 3]")
        with self.assertRaises(IndexError):
            found[2]
        self.assertEqual(len(found.operators[0]["passed"]), 2)
        self.assertEqual(model.explain(split).operators, [])
        np.testing.assert_array_equal(found.value, model.run(image)[0])
        self.assertEqual(found.report["operators"], found.number("operators"))
        self.assertTrue(any("preset auto" in note for note in found.notes))
        self.assertIn("</html>", found.to_html())
        self.assertEqual(len(found.to_dict()["targets"]), 2)
        self.assertEqual(repr(found), "Attribution([0, 8], [0, 3])")
        found.close()
        self.assertEqual(repr(found), "Attribution(closed)")

    def test_of_a_program(self):
        program = self.model.record(self.x)
        self.assertTrue(torch.equal(addend.attribute(program, self.x, target=1), self.model.attribute(self.x, target=1)))
        self.assertTrue(
            torch.equal(addend.attribute(self.model, self.x, target=1), self.model.attribute(self.x, target=1))
        )

    def test_progress_ends_the_run(self):
        class Enough(Exception):
            pass

        def stop(stage, done, total):
            if stage == "sweep":
                raise Enough

        with self.assertRaises(Enough):
            self.model.attribute(self.x, target=0, progress=stop)
        cancellation = addend.Cancellation()
        cancellation.cancel()
        with self.assertRaises(addend.Cancelled):
            self.model.explain(addend.Input(self.x, 1), targets=(0, 0), cancellation=cancellation)


class Block(torch.nn.Module):
    """Branches on the data, writes in place, reads a buffer, and returns a dictionary."""

    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(3, 4)
        self.register_buffer("shift", torch.full((4,), 0.25))

    def forward(self, x, mask=None):
        h = self.fc(x).relu()
        if bool(h.sum() > 1e6):
            h = h * 0
        h += self.shift
        if mask is not None:
            h = h * mask["keep"]
        return {"hidden": h, "best": h.argmax(-1)}


class ModelArgumentsTest(unittest.TestCase):
    """Nested arguments, plain values and other methods; programs in another form."""

    def setUp(self):
        torch.manual_seed(0)
        self.network = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.ReLU(), torch.nn.Linear(5, 2))
        self.x = torch.randn(2, 3)

    def nested_arguments(self, dtype=torch.float32, **more):
        def draw(*shape):
            return torch.randn(*shape, dtype=dtype)

        masks = {"keep": draw(2, 2), "drop": draw(2, 2)}
        steps = [(draw(2, 2), 2), (draw(2, 2), -1)]
        return {"pair": (draw(2, 3), draw(2, 2)), "masks": masks, "steps": steps, "weights": [0.5, 2.0], **more}

    def assert_bits(self, found, expected):
        torch.testing.assert_close(found.torch(), expected, rtol=0, atol=0, equal_nan=True)

    def test_models_take_nested_arguments(self):
        network = Nested()
        model = load(network)
        draw = torch.randn
        variants = [
            self.nested_arguments(),
            self.nested_arguments(scale=0.25, bias=torch.randn(2), mode="sum"),
            self.nested_arguments(scale=1.0, bias=None, mode="each", extra={"more": [draw(2, 2), draw(2)]}),
            self.nested_arguments(scale=float("inf"), bias=None, mode="sum", extra={"more": []}),
        ]
        for given in variants:
            with torch.no_grad():
                expected = network(**given)
            asked = {**given, "weights": addend.Plain(given["weights"])}
            self.assert_bits(model.run(asked)[0], expected)
            program = model.record(asked)
            self.assert_bits(program.replay(asked)[0], expected)
            self.assert_bits(program.model().run(asked)[0], expected)
            self.assertTrue(program.check(asked).ok)
            self.assertEqual(model.requirements(asked), [])
            self.assertEqual(program.requirements(asked), [])
        # Inputs by position, with the rest left out.
        first = variants[0]
        asked = (first["pair"], first["masks"], first["steps"], addend.Plain(first["weights"]))
        with torch.no_grad():
            self.assert_bits(model.record(*asked).replay(*asked)[0], network(**first))
        program = model.record(*asked)
        with self.assertRaisesRegex(addend.InvalidArgument, "weights.*2.5"):
            program.replay(*asked[:3], addend.Plain([2.5, 2.0]))
        with tempfile.TemporaryDirectory() as folder:
            program.save(folder)
            self.assertTrue(torch.equal(addend.Program.load(folder).replay(*asked)[0].torch(), network(**first)))

    def test_nested_inputs_are_decomposed(self):
        network = Nested().double()
        given = self.nested_arguments(torch.float64, scale=0.5)
        (step, times), other = given["steps"]
        asked = {**given, "weights": addend.Plain(given["weights"])}
        asked["steps"] = [(addend.Input(step, 1), times), other]
        asked["pair"] = (addend.Input(given["pair"][0], 1), given["pair"][1])
        with torch.no_grad():
            expected = network(**given)
        model = load(network)
        composition = model.decompose(asked)[0]
        self.assertEqual(composition.numc, 3 + 2)
        torch.testing.assert_close(composition.recovery.torch(), expected)
        # A step goes straight to its own column: times * weights[0] * scale of it.
        share = composition.components.torch()[3:]
        for column in range(2):
            own = torch.zeros(2, 2, dtype=torch.float64)
            own[:, column] = step[:, column] * times * 0.5 * 0.5
            torch.testing.assert_close(share[column], own)
        found = model.explain(asked, targets="1,0")
        passed = found.inputs[0].torch()[0].sum() + found.inputs[4].torch()[0].sum()
        torch.testing.assert_close(passed, composition.components.torch().sum(0)[1, 0])

    def test_other_arguments_are_refused(self):
        model = load(Nested())
        given = self.nested_arguments()
        loop = []
        loop.append(loop)
        for weights, error in ((2**63, ValueError), ({1: 2.0}, TypeError), (addend.Plain(self.x), TypeError),
                               (object(), TypeError), ([object()], TypeError), (loop, RecursionError),
                               ((["a"], {"b": set()}), TypeError)):
            with self.subTest(weights=weights), self.assertRaises(error):
                model.run({**given, "weights": weights})
        with self.assertRaisesRegex(addend.InvalidArgument, "no argument unknown"):
            model.run({**given, "unknown": 1})
        with self.assertRaisesRegex(addend.InvalidArgument, "the model fails"):
            model.run(1.5, None)
        with self.assertRaisesRegex(addend.InvalidArgument, "lacks the argument scale, which comes before bias"):
            model.run({**given, "weights": addend.Plain([0.5]), "bias": None})
        deep = 1.0
        for _ in range(200):
            deep = (deep,)
        with self.assertRaisesRegex(addend.InvalidArgument, "too deeply"):
            model.run(self.x, deep)

    def test_other_methods_than_forward(self):
        network = Nested()
        model = load(network)
        x, y = torch.randn(4, 3), torch.randn(4, 2)
        with torch.no_grad():
            self.assert_bits(model.methods("encode").run(x)[0], network.encode(x))
            both = model.methods("encode", "decode")
            self.assertEqual(both.input_names, ["encode.x", "decode.y"])
            program = both.record(x, y)
            replayed = program.replay({"decode.y": y, "encode.x": x})
            self.assert_bits(replayed[0], network.encode(x))
            self.assert_bits(replayed[1], network.decode(y))
        with self.assertRaises(addend.NotFound):
            model.methods("missing")
        with self.assertRaises(addend.Unimplemented):
            program.model().methods("encode")
        for names, error in (((), addend.NotFound), (("",), addend.NotFound), (("encode,decode",), TypeError),
                             ((3,), TypeError)):
            with self.subTest(names=names), self.assertRaises(error):
                model.methods(*names)

    def test_programs_run_in_another_dtype(self):
        program = load(self.network).record(self.x)
        double = self.x.double()
        with torch.no_grad():
            expected = self.network.double()(double)
        self.assert_bits(program.to("float64").replay(double)[0], expected)
        self.assert_bits(program.to(torch.float64).replay(double)[0], expected)
        with self.assertRaises(addend.InvalidArgument):
            program.to(np.dtype("float64")).replay(self.x)
        for dtype in (torch.int64, None):
            with self.assertRaises(addend.InvalidArgument):
                program.to(dtype)

    def test_programs_are_exported(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "exported.pt")
            load(self.network).record(self.x).export_torchscript(path)
            plain = torch.jit.load(path)
            other = torch.randn(2, 3)
            with torch.no_grad():
                self.assertTrue(torch.equal(plain(other), self.network(other)))
            self.assertEqual(sorted(name for name, _ in plain.named_parameters()), sorted(self.network.state_dict()))
            with self.assertRaises(addend.FailedPrecondition):
                load(Branch()).record(self.x.abs()).export_torchscript(path)
            with self.assertRaises(addend.NotFound):
                load(self.network).record(self.x).export_torchscript(os.path.join(folder, "no", "such.pt"))

    def test_programs_are_replayed_out_of_place(self):
        class Writes(torch.nn.Module):
            def forward(self, x):
                y = x * 2
                y[0].add_(1)
                return y.mul_(3)

        model = load(Writes())
        program = model.record(self.x)
        other = torch.randn(2, 3)
        self.assert_bits(program.replay(other, out_of_place=True)[0], Writes()(other))
        self.assertTrue(program.check(other, out_of_place=True).ok)

    def test_what_is_missing_is_told_before_a_run(self):
        class Drops(torch.nn.Module):
            def forward(self, x, mask):
                return torch.dropout(x, 0.5, True) * mask

        model = load(Drops())
        few = model.requirements(self.x)
        self.assertEqual([unmet.kind for unmet in few], ["input", "mode"])
        self.assertTrue(few[0].error)
        self.assertRegex(few[0].message, "takes 2 inputs")
        self.assertIn("aten::dropout", few[1].message)
        self.assertIn("program_test.py", few[1].position)
        program = load(self.network).record(self.x)
        self.assertEqual(program.requirements(self.x), [])
        (shape,) = program.requirements(torch.randn(5, 3), context=addend.Context())
        self.assertRegex(shape.message, r"f32\[5, 3\], recorded was f32\[2, 3\]")


class LiveProgramTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(2)
        self.network = Block()
        self.x = torch.randn(2, 3)

    def test_becomes_a_program(self):
        with addend.recording(self.x, model=self.network) as trace:
            hidden = self.network(trace.inputs[0])["hidden"]
            trace.output(hidden)
        program = trace.program
        self.assertEqual(program.names("input"), ["input_0"])
        self.assertEqual(sorted(program.names("parameter")), ["fc.bias", "fc.weight"])
        self.assertEqual(program.names("buffer"), ["shift"])
        other = torch.randn(2, 3)
        with torch.no_grad():
            self.assertTrue(torch.equal(program.replay(other)[0].torch(), self.network(other)["hidden"]))
        self.assertEqual([guard["kind"] for guard in program.summary["guards"]], ["number"])
        with self.assertRaises(addend.FailedPrecondition):
            program.replay(other.abs() * 1e9 * torch.sign(self.network.fc.weight.detach().sum(0)))
        with self.assertRaisesRegex(ValueError, "record the model again"):
            program.check()

    def test_a_call_becomes_a_program(self):
        keep = torch.tensor([1.0, 0.0, 1.0, 1.0])
        program = addend.compile(self.network).record(self.x, mask={"keep": keep})
        self.assertEqual(program.names("input"), ["x", "mask.keep"])
        with torch.no_grad():
            expected = self.network(self.x, {"keep": 1 - keep})
        results = program.replay(self.x, 1 - keep)
        self.assertEqual(results.names, ["output.hidden", "output.best"])
        self.assertTrue(torch.equal(results[0].torch(), expected["hidden"]))
        self.assertTrue(torch.equal(results[1].torch(), expected["best"]))
        with tempfile.TemporaryDirectory() as folder:
            program.save(folder)
            again = addend.Program.load(folder).replay({"x": self.x, "mask.keep": 1 - keep})
        self.assertTrue(torch.equal(again[0].torch(), expected["hidden"]))

    def test_operators_stand_under_the_lines_that_called_them(self):
        program = addend.compile(self.network).record(self.x)
        text = program.code()
        lines = text.split("\n")
        self.assertRegex(lines[0], r"^program = addend\.compile\(self\.network\)\.record\(self\.x\)  # .*test\.py:\d+ in test_operators_stand")
        self.assertEqual(lines[1], "\u2502 \u2b07\ufe0f")
        self.assertRegex(lines[2], r"^\u2502 h = self\.fc\(x\)\.relu\(\)  # .*test\.py:\d+ in forward:$")
        self.assertEqual(lines[3], "\u2502 \u2502 # linear(f32[2, 3], f32[4, 3], f32[4]) -> f32[2, 4];")
        self.assertEqual(lines[4], "\u2502 \u2502 # relu(f32[2, 4]) -> f32[2, 4];")
        self.assertNotIn("torch/nn", text)
        self.assertIn("packages/torch/nn", program.code(exclude=[]))
        self.assertNotIn("addend/_", program.code(exclude=[]))
        # Without the succinct form a line comes again for each of its expressions.
        self.assertGreater(program.code(succinct=False).count("h = self.fc(x).relu()"), 1)
        record = program.code_record()
        frame = record["places"][record["calls"][1]["place"]]["frames"][-1]
        self.assertEqual((frame["text"], frame["function"]), ("h = self.fc(x).relu()", "forward"))
        if hasattr((lambda: 0).__code__, "co_positions"):
            marked = frame["text"][frame["column"] : frame["column"] + frame["length"]]
            self.assertEqual(marked, "self.fc(x).relu()")
        plain = addend.compile(self.network).record(self.x, lines=False)
        self.assertIn("fc  # module:", plain.code())
        self.assertNotIn("in forward", plain.code())

    def test_meets_what_fails(self):
        class Wrong(torch.nn.Module):
            def forward(self, x):
                return x @ x

        with self.assertRaisesRegex(RuntimeError, "mat1 and mat2|cannot be multiplied"):
            addend.compile(Wrong()).record(self.x)
        with self.assertRaisesRegex(ValueError, "no tensor"):
            addend.compile(lambda: 0).record()
        with self.assertRaisesRegex(ValueError, "no tensor"):
            addend.compile(lambda x: x.sum().item()).record(self.x)
        with self.assertRaisesRegex(addend.InvalidArgument, "no output"):
            with addend.recording(self.x) as trace:
                trace.inputs[0].sin()
        with self.assertRaises(addend.FailedPrecondition):
            with addend.recording(self.x) as trace:
                addend.compile(self.network).record(self.x)
        with self.assertRaises(RuntimeError):
            with trace:
                pass
        self.assertEqual(addend.compile(self.network).record(self.x).names("input"), ["x"])

    def test_attribute_as_of_a_file(self):
        network = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 4)).double()
        x = torch.randn(6, 3, dtype=torch.float64)
        expected, expected_delta = load(network).attribute(x, 0.5, [0, 1, 2, 3, 1, 0], None, True)
        found, delta = addend.attribute(network, x, 0.5, [0, 1, 2, 3, 1, 0], None, True)
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-14)
        torch.testing.assert_close(delta, expected_delta, rtol=1e-9, atol=1e-14)
        fast = addend.attribute(network, x, target=1, preset="fast")
        torch.testing.assert_close(fast, load(network).attribute(x, target=1, preset="fast"), rtol=1e-12, atol=1e-14)
        explained = addend.compile(network).explain(addend.Input(x[:1], 1, names=["a", "b", "c"]), targets=["1", "2-1"])
        decomposed = addend.compile(network).decompose(addend.Input(x[:1], 1)).explain("1")
        np.testing.assert_allclose(explained[0].contributions, decomposed.contributions, rtol=1e-10)
        self.assertEqual(explained[0].names, ["a", "b", "c"])

    def test_attribute_structures(self):
        pair = Pair()
        left, right = torch.randn(2, 3), torch.randn(2, 4)
        model = addend.compile(pair)
        both = model.attribute((left, right), target=1)
        expected = load(pair).attribute((left, right), target=1)
        self.assertEqual((len(both), len(expected)), (2, 2))
        for part, other in zip(both, expected):
            torch.testing.assert_close(part, other, rtol=1e-5, atol=1e-6)
        named = model.attribute({"right": right, "left": left}, target=1)
        self.assertEqual(list(named), ["right", "left"])
        self.assertTrue(torch.equal(named["right"], both[1]) and torch.equal(named["left"], both[0]))
        only = model.attribute(left, target=1, additional_forward_args=right)
        torch.testing.assert_close(only, both[0], rtol=1e-5, atol=1e-6)
        mask = {"keep": torch.ones(4)}
        hidden = addend.compile(self.network).attribute(self.x, target=2, additional_forward_args=(mask,))
        torch.testing.assert_close(hidden, addend.attribute(self.network, self.x, target=2))


def traced(function, *args):
    """A file of what torch.jit.trace makes of a function."""

    class Module(torch.nn.Module):
        def forward(self, *args):
            return function(*args)

    file = io.BytesIO()
    torch.jit.save(torch.jit.trace(Module(), args, check_trace=False), file)
    return addend.load_model(file.getvalue())


def halves(x):
    batch, time, width = x.size()
    return x.view(batch, time, width // 2, 2).sum(-1) / time


def between_constants(x):
    t = torch.linspace(0.0, 1.0, 4)
    assert (t[1:] > t[:-1]).all()
    return x * t


def classes(x, i):
    return x * torch.nn.functional.one_hot(i, 4)


def lowest(x):
    low = torch.tensor(torch.finfo(x.dtype).min)
    return torch.where(torch.ones(4, 4).tril().bool(), x, low).softmax(-1)


def causal(x):
    position = torch.arange(x.size(1))
    return x.masked_fill(position[None, :] > position[:, None], -1e9).softmax(-1)


SQUARES = (torch.randn(4, 4), torch.randn(4, 4))
ROWS = (torch.randn(3, 4), torch.randn(3, 4))
# Constructs of models, with two inputs each: their recordings freeze nothing that elements tell.
CONSTRUCTS = {
    "sizes": (halves, (torch.randn(2, 3, 4),), (torch.randn(2, 3, 4),)),
    "comparison of constants": (between_constants, ROWS[:1], ROWS[1:]),
    "one_hot with classes": (
        classes,
        (torch.randn(2, 4), torch.tensor([1, 3])),
        (torch.randn(2, 4), torch.tensor([0, 2])),
    ),
    "torch.tensor of numbers": (lambda x: x * torch.tensor([2.0, 3.0, 4.0, 5.0]), ROWS[:1], ROWS[1:]),
    "torch.tensor of integers": (lambda x: x * torch.tensor([2, 3, 4, 5]), ROWS[:1], ROWS[1:]),
    "torch.tensor of one": (lambda x: x * torch.tensor(2.0), ROWS[:1], ROWS[1:]),
    "new_tensor": (lambda x: x * x.new_tensor([2.0, 3.0, 4.0, 5.0]), ROWS[:1], ROWS[1:]),
    "as_tensor": (lambda x: x * torch.as_tensor([2.0, 3.0, 4.0, 5.0]), ROWS[:1], ROWS[1:]),
    "from_numpy": (lambda x: x * torch.from_numpy(np.ones(4, "f4")), ROWS[:1], ROWS[1:]),
    "full": (lambda x: x * torch.full((4,), 2.0), ROWS[:1], ROWS[1:]),
    "lowest number": (lowest, SQUARES[:1], SQUARES[1:]),
    "causal mask": (causal, SQUARES[:1], SQUARES[1:]),
    "detach_": (lambda x: (x * 2).detach_().view(12) + 1, ROWS[:1], ROWS[1:]),
    "number of a constant": (lambda x: x * float(torch.arange(4).max()), ROWS[:1], ROWS[1:]),
    "NumPy of a constant": (lambda x: x * float(torch.arange(4).numpy().max()), ROWS[:1], ROWS[1:]),
    "list of a constant": (lambda x: x[:, torch.tensor([0, 2]).tolist()], ROWS[:1], ROWS[1:]),
}


class ConstructsTest(unittest.TestCase):
    def assert_same(self, found, expected, name):
        self.assertEqual(found.dtype, expected.dtype, name)
        self.assertTrue(torch.equal(found, expected), name)

    def assert_holds(self, program, function, examples, name):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "exported.pt")
            program.export_torchscript(path)
            exported = torch.jit.load(path)
        for example in examples:
            expected = function(*example)
            self.assert_same(program.replay(*example)[0].torch(), expected, name)
            self.assert_same(exported(*example), expected, name)

    def test_live_recordings_replay_and_export(self):
        for name, (function, first, second) in CONSTRUCTS.items():
            with self.subTest(name):
                self.assert_holds(addend.compile(function).record(*first), function, (first, second), name)

    def test_files_replay_and_export(self):
        for name, (function, first, second) in CONSTRUCTS.items():
            with self.subTest(name):
                self.assert_holds(traced(function, *first).record(*first), function, (first, second), name)

    def test_recordings_are_attributed(self):
        for name in ("torch.tensor of numbers", "new_tensor", "lowest number"):
            function, first, _ = CONSTRUCTS[name]
            results = addend.compile(function, preset="faithful").decompose(addend.Input(first[0], 1))
            attribution = addend.compile(function).record(*first).model().explain(
                addend.Input(first[0], 1), targets="0,0", preset="faithful"
            )
            self.assertAlmostEqual(attribution[0].value, float(function(*first)[0, 0]), places=5)
            self.assertLess(
                float((results[0].recovery.torch() - function(*first)).abs().max()), 1e-5, name
            )

    def test_sizes_of_traced_files_follow_the_input(self):
        example = torch.randn(2, 3, 4)
        program = traced(halves, example).record(example, others=[torch.randn(5, 3, 4), torch.randn(3, 6, 4)])
        x = torch.randn(7, 2, 4)
        self.assert_same(program.replay(x)[0].torch(), halves(x), "halves")

    def test_numbers_of_traced_files_take_no_part_in_promotion(self):
        def waves(x, t):
            return x + (t[:, None] * torch.exp(torch.arange(4) * -3.07)[None, :]).sin()

        x, t = torch.randn(2, 4), torch.tensor([3, 7])
        found = traced(waves, x, t).decompose(addend.Input(x, dims=1), t, preset="faithful")[0].value.torch()
        self.assert_same(found, waves(x, t), "waves")

    def test_what_numpy_and_lists_read_stops_a_replay(self):
        def top(x):
            return x.roll(int(torch.topk(x.abs().mean(0), 1)[1].numpy()[0]), 1)

        reads = {
            "numpy": lambda x: x * float(x.detach().numpy().mean()),
            "asarray": lambda x: x * float(np.asarray(x.sum(0)).max()),
            "index": top,
            "tolist": lambda x: x * x[0].tolist()[0],
            "half": lambda x: x * x.bfloat16()[0].tolist()[0],
        }
        x = torch.rand(4, 3)
        other = -x[:, [2, 0, 1]]
        for name, function in reads.items():
            with self.subTest(name):
                program = addend.compile(function).record(x)
                self.assert_same(program.replay(x)[0].torch(), function(x), name)
                with self.assertRaises(addend.FailedPrecondition) as caught:
                    program.replay(other)
                self.assertIn("elements_read_outside", str(caught.exception))
                self.assertIn("program_test.py", str(caught.exception))
                with tempfile.TemporaryDirectory() as folder, self.assertRaises(addend.FailedPrecondition):
                    program.export_torchscript(os.path.join(folder, "exported.pt"))
        self.assertNotIn("numpy", torch.Tensor.__dict__)  # nothing is left behind
        self.assertNotIn("tolist", torch.Tensor.__dict__)

    def test_sparse_operands_are_refused_by_name(self):
        def product(x, a):
            return torch.spmm(a.to_sparse(), x)

        x, a = torch.randn(4, 3), torch.eye(4)
        model = traced(product, x, a)
        for inputs in ((addend.Input(x, dims=0), a), (x, addend.Input(a, dims=0))):
            with self.assertRaisesRegex(addend.Error, "aten::[a-z_]*(mm|sparse)"):
                model.decompose(*inputs)


class LiveCheckTest(unittest.TestCase):
    def setUp(self):
        self.layer = torch.nn.Linear(4, 2)
        self.x = torch.rand(3, 4)

    def test_a_live_recording_is_checked(self):
        program = addend.compile(self.layer).record(self.x)
        self.assertTrue(program.check().ok)
        self.assertTrue(program.check(torch.rand(3, 4)).ok)
        self.assertTrue(addend.compile(self.layer).check_trace(self.x, others=[torch.rand(3, 4)]).ok)

    def test_a_check_leaves_the_model_as_it_was(self):
        model = torch.nn.Sequential(self.layer, torch.nn.BatchNorm1d(2), torch.nn.Dropout())
        before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        other = torch.rand(3, 4)
        generator = torch.get_rng_state()
        addend.compile(model).check_trace(self.x, others=[other])
        self.assertTrue(torch.equal(torch.get_rng_state(), generator))
        for name, tensor in model.state_dict().items():
            self.assertTrue(torch.equal(tensor, before[name]), name)

    def test_a_program_stays_what_it_is(self):
        constant = torch.ones(2)
        model = torch.nn.Sequential(self.layer, torch.nn.BatchNorm1d(2)).eval()
        traced = addend.compile(lambda x: model(x) * constant)
        for program in (addend.compile(model).record(self.x), traced.record(self.x)):
            expected = program.replay(self.x)[0].torch().clone()
            with torch.no_grad():
                model[0].weight.data.mul_(3)
                model[1].running_mean.add_(1)
                constant.mul_(5)
            self.assertTrue(torch.equal(program.replay(self.x)[0].torch(), expected))

    def test_a_branch_is_found(self):
        check = addend.compile(Branch()).check_trace(torch.ones(2, 3), others=[-torch.ones(2, 3)])
        self.assertFalse(check.ok)
        errors = {finding.kind: finding for finding in check.findings if finding.error}
        self.assertEqual(errors["guard"].input_set, 0)
        self.assertIn("program_test.py", errors["guard"].position)

    def test_state_of_its_own_is_found(self):
        count = []

        def model(x):
            count.append(1)
            return x * len(count)

        self.assertFalse(addend.compile(model).check_trace(self.x).ok)

    def test_errors_of_the_model_come_through(self):
        def model(x):
            raise KeyError("mine")

        with self.assertRaises(KeyError):
            addend.compile(model).check_trace(self.x)

    def test_sizes_are_learned(self):
        def model(x, *, scale=2):
            return (x.reshape(x.size(0), -1) * scale).view(x.size(0), 2 * x.size(1), 2) / x.size(1)

        program = addend.compile(model).record(
            torch.rand(2, 3, 4), others=[torch.rand(5, 3, 4), {"x": torch.rand(2, 6, 4)}], scale=2
        )
        x = torch.rand(4, 5, 4)
        self.assertTrue(torch.equal(program.replay(x)[0].torch(), model(x)))
        self.assertTrue(program.check(torch.rand(2, 3, 4)).ok)

    def test_requirements(self):
        self.assertEqual(addend.compile(self.layer).requirements(self.x), [])
        dropping = torch.nn.Sequential(self.layer, torch.nn.Dropout()).train()
        self.assertEqual([unmet.kind for unmet in addend.compile(dropping).requirements(self.x)], ["mode"])


if __name__ == "__main__":
    unittest.main()
