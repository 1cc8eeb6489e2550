"""The samples of the documents that Addend was made from, in their own spelling where Python allows it.

docs/seeds.md has each sentence of these documents. The samples of variable tracing are in pydec_test.py.
"""

import contextlib
import inspect
import io
import json
import os
import re
import runpy
import subprocess
import tempfile
import unittest
import warnings

import numpy as np
import torch
from torch import nn

import addend
from addend import code_tracing as TracingMode
from addend import pydec

PROGRAM = os.environ.get("ADDEND_PROGRAM")


class AutoTracingTest(unittest.TestCase):
    def test_sample(self):
        example = runpy.run_path("docs/examples/autotracing.py")
        torch.manual_seed(0)
        model = example["MyModel"]()
        printed = io.StringIO()
        torch.manual_seed(1)
        with contextlib.redirect_stdout(printed):
            example["autotracing"](model)
        torch.manual_seed(1)
        input = torch.rand((4,))
        with torch.no_grad():
            residual = model(torch.zeros(4))
            expected = [model(row) - residual for row in torch.diag(input)]  # the model is affine
            expected += [residual, model(input), model(input)]
        heads = ["composition %d:" % k for k in range(4)] + ["residual:"]
        lines = printed.getvalue().splitlines()
        self.assertEqual(lines[0:10:2], heads)
        found = [[float(number) for number in re.findall(r"-?\d+\.\d+", line)] for line in lines[1:10:2] + lines[10:]]
        torch.testing.assert_close(torch.tensor(found), torch.stack(expected), rtol=0, atol=2e-4)
        self.assertEqual(["grad_fn" in line for line in lines[10:]], [False, True])


class VariableTracingTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.network = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 4))
        self.x = torch.rand(3, 16)

    def test_operators(self):
        c = pydec.diagonal_init(pydec.zeros(self.x.size(), c_num=16), self.x, dim=-1)
        cases = {
            "add": (pydec.add(c, c), self.x + self.x),
            "mul": (pydec.mul(c, 2), self.x * 2),
            "mean": (pydec.mean(c, -1), self.x.mean(-1)),
            "round": (pydec.round(c), self.x.round()),
        }
        for name, (found, expected) in cases.items():
            torch.testing.assert_close(found.recovery.torch(), expected, msg=name)
        rounded = cases["round"][0]
        expected = torch.diag_embed(self.x.round()).permute(2, 0, 1)
        torch.testing.assert_close(rounded.components.torch(), expected, msg="a step belongs to what crosses it")
        self.assertFalse(rounded.leftover.torch().any())

    def test_each_operator_is_compared_with_the_model(self):
        results = addend.compile(self.network).decompose(addend.Input(self.x, dims=1))
        checks = sorted(results.report["checks"], key=lambda check: check["index"])
        self.assertEqual([check["operator"] for check in checks], ["aten::linear", "aten::relu", "aten::linear"])
        for check in checks:
            self.assertTrue(check["ok"])
            self.assertLess(check["recovery_error"], check["tolerance"])

    def test_failures(self):
        """No sum in float32 is as good as the tolerance that is asked for."""
        given = addend.Input(self.x, dims=1)
        first = r"tracing failure: the parts of aten::linear .* \(op #0, 0, uses 0.weight, 0.bias\)"
        with self.assertRaisesRegex(addend.Error, first):
            addend.compile(self.network, tolerance=1e-30)(given)
        warned = addend.compile(self.network, tolerance=1e-30, on_failure="warn").decompose(given)
        self.assertRegex(" ".join(warned.notes), "tracing failure")
        self.assertGreater(warned.report["failures"], 0)
        absorbed = addend.compile(self.network, tolerance=1e-30, on_failure="absorb").decompose(given)
        self.assertGreater(absorbed.report["absorbed_failures"], 0)
        self.assertTrue(absorbed[0].leftover.torch().any())
        torch.testing.assert_close(absorbed[0].recovery.torch(), self.network(self.x).detach())


class SimpleCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 64, 3, padding=1)
        self.relu = nn.ReLU()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        x = self.conv(x)
        x = self.relu(x)
        x = self.pool(x)
        x = x.flatten(1)
        x = self.fc(x)
        return x


class MultiInputModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.image_encoder = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.metadata_encoder = nn.Linear(100, 4)
        self.classifier = nn.Linear(8, 2)

    def forward(self, image, metadata):
        x = self.image_encoder(image)
        y = self.metadata_encoder(metadata)
        return self.classifier(torch.cat([x, y], dim=1))


class ModelTracingTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def test_graph(self):
        model = SimpleCNN()
        model.eval()
        dummy_input = torch.randn(1, 3, 224, 224)
        graph = addend.trace(model, (dummy_input,)).graph()

        kinds = {kind: [node for node in graph["nodes"] if node["kind"] == kind] for kind in ("input", "call", "output")}
        operators = ["conv2d", "relu", "adaptive_avg_pool2d", "flatten", "linear"]
        self.assertEqual([node["name"] for node in kinds["call"]], operators)
        self.assertEqual([node["name"] for node in kinds["input"]], ["x"])
        parameters = [node["name"] for node in graph["nodes"] if node["kind"] == "parameter"]
        self.assertEqual(parameters, [name for name, _ in model.named_parameters()])
        # Data flows from the input through one operator after the other to the output.
        names = {node["id"]: node["name"] for node in graph["nodes"]}
        edges = [(names[edge["from"]], names[edge["to"]]) for edge in graph["edges"]]
        line = ["x", *operators, kinds["output"][0]["name"]]
        for edge in zip(line, line[1:]):
            self.assertIn(edge, edges)
        self.assertFalse({end for _, end in edges} & {"x", *parameters}, "inputs and parameters compute nothing")
        self.assertNotIn(line[-1], {start for start, _ in edges})
        place = {node["id"]: k for k, node in enumerate(graph["nodes"])}
        for edge in graph["edges"]:
            self.assertLess(place[edge["from"]], place[edge["to"]], "nodes are in topological order")
        # Arguments of an operator: tensors by name, and what else it was called with.
        convolution = {argument["name"]: argument for argument in kinds["call"][0]["arguments"]}
        self.assertEqual(convolution["weight"]["tensors"][0]["value"], "conv.weight")
        self.assertEqual(convolution["bias"]["tensors"][0]["value"], "conv.bias")
        chosen = {name: convolution[name]["value"] for name in ("stride", "padding", "dilation", "groups")}
        self.assertEqual(chosen, {"stride": [1, 1], "padding": [1, 1], "dilation": [1, 1], "groups": 1})

    def test_node_io(self):
        """Recorded once, run on other batches: values of all nodes."""
        model = SimpleCNN().eval()
        program = addend.trace(model, torch.randn(1, 3, 16, 16))
        for batch in torch.randn(3, 1, 3, 16, 16):
            node_io = program.replay(batch, every_value=True)
            with torch.no_grad():
                expected = {"conv2d": model.conv(batch), "relu": model.conv(batch).relu(), "output": model(batch)}
            for name, value in expected.items():
                self.assertTrue(torch.equal(node_io[name].torch(), value), name)

    def test_several_inputs(self):
        model = MultiInputModel().eval()
        dummy_image = torch.randn(1, 3, 32, 32)
        dummy_metadata = torch.randn(1, 100)
        program = addend.trace(model, (dummy_image, dummy_metadata))
        self.assertEqual(program.names("input"), ["image", "metadata"])
        image, metadata = torch.randn(1, 3, 32, 32), torch.randn(1, 100)
        self.assertTrue(torch.equal(program(image, metadata), model(image, metadata)))

    def test_sequence_lengths(self):
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).eval()
        program = addend.trace(layer, torch.randn(1, 128, 32))
        for length in (256, 64, 1):
            real_input = torch.randn(1, length, 32)
            with torch.no_grad():
                torch.testing.assert_close(program(real_input), layer(real_input))
        with self.assertRaisesRegex(addend.InvalidArgument, "sizes from 1 to 256 were tried"):
            program(torch.randn(1, 257, 32))

    def test_inputs_that_do_not_fit_are_told_before_a_run(self):
        program = addend.trace(MultiInputModel().eval(), (torch.randn(1, 3, 8, 8), torch.randn(1, 100)))
        image, metadata = torch.randn(1, 3, 8, 8), torch.randn(1, 100)
        cases = {
            r"f32\[1, 4, 8, 8\], recorded was f32\[1, 3, 8, 8\]": (torch.randn(1, 4, 8, 8), metadata),
            r"f64\[1, 3, 8, 8\], recorded was f32": (image.double(), metadata),
            "image is on meta, recorded was cpu": (image.to("meta"), metadata),
            "takes 2 inputs, not 1": (image,),
        }
        for message, given in cases.items():
            (unmet,) = program.requirements(*given)
            self.assertTrue(unmet.error)
            self.assertRegex(unmet.message, message)
        self.assertEqual(program.requirements(image, metadata), [])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 1, 3)
        self.unread = nn.Linear(2, 2)

    def forward(self, x):
        return self.conv(x)

    def other(self, x):
        raise AssertionError("only forward is traced")


class JitTraceTest(unittest.TestCase):
    def test_defaults_are_those_of_pytorch(self):
        theirs = inspect.signature(torch.jit.trace).parameters
        for function in (addend.trace, addend.trace_module):
            ours = inspect.signature(function).parameters
            for name in ("check_trace", "check_tolerance"):
                self.assertEqual(ours[name].default, theirs[name].default)
        for name in ("func", "example_inputs", "check_inputs", "example_kwarg_inputs"):
            self.assertIn(name, inspect.signature(addend.trace).parameters)

    def test_modules(self):
        model = Net()
        forward_input = torch.rand(1, 1, 3, 3)
        traced = torch.jit.trace(model, forward_input)
        read = {name for name, _ in model.named_parameters() if not name.startswith("unread")}
        for func in (model.forward, model):
            module = addend.trace(func, forward_input).script_module()
            self.assertIsInstance(module, torch.jit.ScriptModule)
            self.assertEqual({name for name, _ in module.named_parameters()}, read)
            self.assertEqual({name for name, _ in module.named_modules()}, {"", "conv"})
            self.assertEqual(module.code.split("\n")[:2], traced.code.split("\n")[:2])  # def forward(self, x: Tensor)
            self.assertIn("aten::conv2d", str(module.graph))
            x = torch.rand(1, 1, 3, 3)
            self.assertTrue(torch.equal(module(x), traced(x)))
        self.assertEqual({name.partition(".")[0] for name, _ in traced.named_parameters()}, {"conv", "unread"})

    def test_other_dtypes_are_asked_for(self):
        traced_foo = addend.trace(lambda x, y: 2 * x + y, (torch.rand(3), torch.rand(3)))
        x, y = torch.rand(3).double(), torch.rand(3).double()
        with self.assertRaisesRegex(addend.InvalidArgument, r"x is f64\[3\], recorded was f32\[3\]"):
            traced_foo(x, y)
        self.assertTrue(torch.equal(traced_foo.to("float64")(x, y), 2 * x + y))

    def test_inputs_have_no_gradients(self):
        """Gradients by the recorded input are refused, as torch.jit.trace refuses them; a model may differentiate by a
        tensor of its own."""

        def slope(x):
            return torch.autograd.grad((x * x * x).sum(), x)[0]

        x = torch.rand(3, requires_grad=True)
        for trace in (torch.jit.trace, addend.trace):
            with self.assertRaisesRegex(RuntimeError, "does not require grad"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                trace(slope, (x,))
        program = addend.trace(lambda x: slope(x.detach().requires_grad_()), x.detach())
        torch.testing.assert_close(program(x.detach() + 1), slope(x + 1))


def decorated(func):
    def wrapper(self, *args, **kwargs):
        output = func(self, *args, **kwargs)
        return output

    return wrapper


class ScaledEmbedding(nn.Embedding):
    def __init__(self, *args):
        super().__init__(*args)
        self.register_buffer("embed_scale", torch.tensor(2.0))

    def forward(self, input_ids):
        return super().forward(input_ids) * self.embed_scale.to(self.weight.dtype)


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed_tokens = ScaledEmbedding(2000, 256, 0)

    @decorated
    def forward(self, input_ids, past):
        inputs_embeds = self.embed_tokens(input_ids)
        cache_position = torch.arange(
            past, past + input_ids.shape[1], device=inputs_embeds.device
        )  # fmt: skip
        causal_mask = self._update_causal_mask(
            inputs_embeds, cache_position
        )  # fmt: skip
        return inputs_embeds, causal_mask

    def _update_causal_mask(self, x, cache_position):
        causal_mask = torch.full(
            (3, 33), fill_value=torch.finfo(x.dtype).min, dtype=x.dtype, device=x.device
        )  # fmt: skip
        causal_mask = torch.triu(causal_mask, diagonal=1)
        return causal_mask


# The expected print: "|" and "v" stand for the bar and the arrow, and places of lines are left out.
LANGUAGE = """
out = model(**example_kwargs)  # in test_sample:
| v
| output = func(self, *args, **kwargs)  # in wrapper:
| | v
| | inputs_embeds = self.embed_tokens(input_ids)  # in forward:
| | | v
| | | return super().forward(input_ids) * self.embed_scale.to(self.weight.dtype)  # in forward:
| | | | # embedding(bf16[2000, 256], i64[2, 3], 0) -> bf16[2, 3, 256];
| | | | # to.dtype(bf16[], torch.bfloat16) -> bf16[];
| | | | # mul.Tensor(bf16[2, 3, 256], bf16[]) -> bf16[2, 3, 256];
| | cache_position = torch.arange(  # in forward:
| | | # arange.start(30, 33, device=meta, pin_memory=False) -> i64[3];
| | causal_mask = self._update_causal_mask(  # in forward:
| | | v
| | | causal_mask = torch.full(  # in _update_causal_mask:
| | | | # full([3, 33], -3.3895313892515355e+38, dtype=torch.bfloat16, device=meta, pin_memory=False) -> bf16[3, 33];
| | | causal_mask = torch.triu(causal_mask, diagonal=1)  # in _update_causal_mask:
| | | | # triu(bf16[3, 33], 1) -> bf16[3, 33];
"""


class CodeTracingTest(unittest.TestCase):
    def test_sample(self):
        model = Language().to(torch.bfloat16).to("meta")
        example_kwargs = {"input_ids": torch.zeros(2, 3, dtype=torch.long, device="meta"), "past": 30}
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), TracingMode(succinct=True, color=True):
            out = model(**example_kwargs)
        self.assertEqual([tuple(tensor.shape) for tensor in out], [(2, 3, 256), (3, 33)])
        text = printed.getvalue()
        self.assertIn("\x1b[", text)
        text = re.sub("\x1b\\[[0-9;]*m", "", text)
        self.assertRegex(text, r"  # \S*seeds_test\.py:\d+ in wrapper:")
        text = re.sub(r"# \S*seeds_test\.py:\d+ in", "# in", text)
        self.assertEqual(text, LANGUAGE[1:].replace("|", "\u2502").replace(" v\n", " \u2b07\ufe0f\n"))


    def test_lines_of_libraries(self):
        @contextlib.contextmanager
        def nothing():
            yield

        printed = io.StringIO()
        with TracingMode(file=printed):
            nothing()(torch.sin)(torch.rand(3))
        self.assertRegex(printed.getvalue(), r"# \S*contextlib\.py:\d+ in inner:\n.* # sin\(f32\[3\]\) -> f32\[3\];\n")


class Positions(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.p = nn.Embedding(10, 4), nn.Embedding(16, 4)

    def forward(self, ids):
        return (self.e(ids) + self.p(torch.arange(ids.shape[1]))).mean(1)


class Pooled(nn.Module):
    """Attention whose results are averaged by hand."""

    def __init__(self):
        super().__init__()
        self.q = nn.Linear(8, 8)

    def forward(self, x):
        b, n, c = x.shape
        h = self.q(x).reshape(b, n, 2, c // 2).transpose(1, 2)
        w = (h @ h.transpose(-1, -2) / n**0.5).softmax(-1)
        return (w @ h).sum(2).reshape(b, -1) / n


class Mean(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(3, 2)

    def forward(self, x):
        return self.l(x).sum(0) / x.size(0)


class SizesTest(unittest.TestCase):
    """Files of one example at other sizes: right, or refused with a sentence."""

    def test_files_of_one_example(self):
        torch.manual_seed(0)
        cases = {
            "mean of rows": (lambda x: x.sum(0) / x.shape[0], torch.ones(2, 3), torch.ones(4, 3), True),
            "flatten": (lambda x: x.reshape(x.shape[0], -1), torch.ones(2, 3), torch.ones(4, 3), True),
            "positions": (Positions(), torch.tensor([[1]]), torch.tensor([[1, 2, 3]]), True),
            "attention of more examples": (Pooled(), torch.rand(1, 4, 8), torch.rand(3, 4, 8), True),
            "first half": (lambda x: x[:, : x.shape[1] // 2].sum(1), torch.ones(1, 4), torch.ones(1, 8), True),
            # The root of a size.
            "attention of more tokens": (Pooled(), torch.rand(1, 4, 8), torch.rand(1, 6, 8), False),
        }
        for name, (model, small, large, follows) in cases.items():
            with self.subTest(name), torch.no_grad():
                exported = addend.compile(model).record(small).script_module()
                torch.testing.assert_close(exported(small), model(small))
                if follows:
                    torch.testing.assert_close(exported(large), model(large))
                else:
                    with self.assertRaisesRegex(torch.jit.Error, "record with inputs of several sizes"):
                        exported(large)


@unittest.skipIf(PROGRAM is None, "ADDEND_PROGRAM names no program")
class CommandLineTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.model = Mean().eval()
        torch.jit.script(self.model).save(self.path("m.pt"))
        self.inputs = [torch.rand(count, 3) for count in (2, 4, 5)]
        for count, x in zip("xyz", self.inputs):
            np.save(self.path(count + ".npy"), x.numpy())

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_program(self, *arguments):
        done = subprocess.run([os.path.abspath(PROGRAM), *arguments], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_files_follow_sizes(self):
        said = self.run_program("trace", "m.pt", "--input", "x.npy", "--export", "plain.pt")
        self.assertIn("dimension 0 of x may have other sizes, from 1 to 9", said)
        exported = torch.jit.load(self.path("plain.pt"))
        for x in self.inputs:
            torch.testing.assert_close(exported(x), self.model(x))

    def test_programs_learn_sizes(self):
        further = ["--with", "y.npy", "--with", "z.npy"]
        said = self.run_program("trace", "m.pt", "--input", "x.npy", *further, "--save", "prog")
        self.assertIn("dimension 0 of x may have other sizes, from 1 to 10", said)
        document = json.loads(self.run_program("decompose", "prog", "--input", "y.npy", "--target", "1", "--json"))
        self.assertAlmostEqual(document["targets"][0]["value"], self.model(self.inputs[1])[1].item(), places=5)


if __name__ == "__main__":
    unittest.main()
