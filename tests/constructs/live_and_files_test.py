"""PyTorch's own tools and modes around a model: tensors made in passing, modes, files, recordings, calls."""

import math
import os
import sys
import tempfile
import time
import unittest
import warnings

import numpy
import torch
from torch import nn
from torch.nn.utils import rnn

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import addend  # noqa: E402
from case import Case, Split  # noqa: E402
from laws import apart, notes_of  # noqa: E402
from table import of, table  # noqa: E402


def numbers(seed=1, *shape):
    torch.manual_seed(seed)
    return torch.randn(*(shape or (3, 4)))


class Layer(nn.Module):
    """A layer, and something done with what it gives."""

    def __init__(self, way):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.way = way

    def forward(self, x):
        return self.way(self.layer(x), x)


def of_layer(construct, variant, way, **choices):
    choices.setdefault("other", lambda: [numbers(2)])
    return Case(construct, variant, lambda: Layer(way), lambda: [Split(numbers(), 1)], **choices)


MADE = {
    "a list": lambda y, x: y * torch.tensor([2, 3, 4, 5]),
    "a number": lambda y, x: y * torch.tensor(2.0),
    "new_tensor": lambda y, x: y * x.new_tensor([2.0, 3.0, 4.0, 5.0]),
    "as_tensor": lambda y, x: y + torch.as_tensor([2.0, 3.0, 4.0, 5.0]),
    "full": lambda y, x: y * torch.full((4,), 2.0),
    "from_numpy": lambda y, x: y * torch.from_numpy(numpy.arange(4, dtype="f4")),
    "the lowest number": lambda y, x: torch.where(
        torch.ones(3, 4, dtype=torch.bool).tril(), y, torch.tensor(torch.finfo(y.dtype).min)
    ).softmax(-1),
    "of another type": lambda y, x: y + torch.tensor([1, 2, 3, 4]).to(y.dtype),
}

VIEWS = {
    "expand_as": lambda y, x: y + torch.tensor(0.5).expand_as(y),
    "zeros, expand_as": lambda y, x: y + torch.zeros(()).expand_as(y),
    "new_tensor, expand_as": lambda y, x: y * x.new_tensor(0.5).expand_as(y),
    "cast, expand_as": lambda y, x: y + torch.tensor(0.5).double().float().expand_as(y),
    "view_as": lambda y, x: y * torch.tensor([[0.5, 0.2, 1.0, 2.0]]).view_as(y[:1]),
    "reshape_as": lambda y, x: y * torch.arange(12.0).reshape_as(y),
    "type_as": lambda y, x: y * torch.tensor([1, 2, 3, 4]).type_as(x),
    "transposed": lambda y, x: y * torch.tensor([[0.5], [0.2], [1.0], [2.0]]).T,
    "broadcast_to": lambda y, x: y + torch.tensor(0.5).broadcast_to(3, 4),
    "broadcast_tensors, parts and plain": lambda y, x: sum(torch.broadcast_tensors(y, torch.ones(3, 1))),
    "broadcast_tensors, a number": lambda y, x: sum(torch.broadcast_tensors(y, torch.tensor(0.5))),
    "broadcast_tensors, both parts": lambda y, x: sum(torch.broadcast_tensors(y, y[:, :1].tanh())),
    "expand_as of parts": lambda y, x: y[:, :1].expand_as(y) * x,
    "view_as of parts": lambda y, x: y.t().contiguous().view_as(y) * x,
}


def merged(x):
    """Heads become part of the batch, as in Bloom."""
    return x.view(x.shape[0], 6, 2, 4).transpose(1, 2).reshape(x.shape[0] * 2, 6, 4)


def mixed_with_its_copy(x):
    turned = x.transpose(0, 1)
    return turned.exp() + turned.contiguous() * turned


def written_in_place(x):
    y = (x + 1).relu_()
    return merged(y).mul_(0.5) * 2


def products_of_heads(x):
    q = merged(x)
    return torch.einsum("bid,bjd->bij", q, q) * 0.5


def channels_last(x):
    image = x.view(-1, 6, 2, 4).permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    return nn.functional.conv2d(image, torch.ones(1, 6, 1, 1)) * 0.5


def one_channel_last(x):
    return nn.functional.conv2d(x.unsqueeze(1).to(memory_format=torch.channels_last), torch.ones(1, 1, 3, 3)) + 1


VIEWS_AT_SOME_SIZES = {
    "reshape": merged,
    "reshape, a number": lambda x: merged(x) * 0.5,
    "reshape, a tensor": lambda x: merged(x) + torch.ones(4),
    "reshape, clone": lambda x: merged(x).clone() * 0.5,
    "contiguous": lambda x: x.transpose(1, 2).contiguous() * 0.5,
    "contiguous of a batch in the middle": lambda x: x.transpose(0, 1).contiguous() * 0.5,
    "contiguous beside what it copies": mixed_with_its_copy,
    "softmax": lambda x: merged(x).softmax(-1) * 0.5,
    "flatten": lambda x: x.permute(0, 2, 1).flatten(0, 1) * 0.5,
    "written in place": written_in_place,
    "einsum": products_of_heads,
    "channels last": channels_last,
    "one channel last": one_channel_last,
    "the view itself": lambda x: x.transpose(0, 1).contiguous(),
    "numpy": lambda x: merged(x) * torch.from_numpy(numpy.ones(4, dtype="f4")),
}


class Called(nn.Module):
    """A function as a module."""

    def __init__(self, way):
        super().__init__()
        self.way = way

    def forward(self, x):
        return self.way(x)


def log_probability(kind, *parameters, **options):
    # PyTorch's compiler turns these checks off for good when somebody first uses it.
    torch.distributions.Distribution.set_default_validate_args(True)
    return getattr(torch.distributions, kind)(*parameters, **options).log_prob(torch.ones(4))


DISTRIBUTIONS = {
    "normal": lambda y, x: log_probability("Normal", y, 1.0),
    "normal, unchecked": lambda y, x: log_probability("Normal", y, 1.0, validate_args=False),
    "gamma": lambda y, x: log_probability("Gamma", y.exp(), 1.0, validate_args=False),
    "student": lambda y, x: log_probability("StudentT", y.exp() + 2, y, 1.0, validate_args=False),
}
# They look at what they are given, and would raise an error.
CHECKED = {"normal": "depends on elements", "student": "depends on elements"}


def many(y, x):
    """Operators that serving code runs under inference mode."""
    places = torch.tensor([[0, 1, 1, 3]]).expand(3, 4)
    z = torch.where(y > -9, y, x).gather(1, places) @ x.t()
    kept = torch.zeros(3, 3)
    kept[:, 1:].copy_(z[:, :2])
    return torch.cat([kept.cumsum(1), z.softmax(-1)], 1).index_select(1, torch.tensor([5, 0, 2]))


def inner_autocast(y, x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return nn.functional.linear(y, torch.ones(2, 4))


def half():
    return torch.autocast("cpu", dtype=torch.bfloat16)


class SparseBuffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)
        self.register_buffer("heads", torch.eye(2).to_sparse(), persistent=False)

    def forward(self, x):
        return self.layer(x)


class SparseProduct(nn.Module):
    def forward(self, x, a):
        return torch.spmm(a.to_sparse(), x)


class Packed(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.cell = cell(6, 5, batch_first=True)

    def forward(self, x):
        packed = rnn.pack_padded_sequence(x, torch.tensor([4, 2]), batch_first=True)
        return rnn.pad_packed_sequence(self.cell(packed)[0], batch_first=True)[0]


class Sinusoids(nn.Module):
    """The time embedding of diffusion models: in a file, a number times a range."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x, t):
        scale = math.log(10000) / 3
        frequencies = torch.exp(torch.arange(4) * -scale)
        angles = t[:, None] * frequencies[None, :]
        return (x + self.layer(torch.cat((angles.sin(), angles.cos()), -1))).tanh()


class Sizes(nn.Module):
    def forward(self, x):
        b, t, d = x.size()
        halves = x.view(b, t, d // 2, 2)
        return (halves * halves.size(0)).tanh().sum(-1) + torch.arange(t)[:, None]


class Constants(nn.Module):
    def forward(self, x):
        t = torch.linspace(0.0, 1.0, 4)
        assert (t[1:] > t[:-1]).all()
        return x * t


class KnownClasses(nn.Module):
    def forward(self, x, ids):
        return (x * nn.functional.one_hot(ids, 4)).tanh()


class Nested(nn.Module):
    def __init__(self, depth, width=2):
        super().__init__()
        parts = [nn.Linear(4, 4), nn.Tanh()] if depth == 0 else [Nested(depth - 1, width) for _ in range(width)]
        self.parts = nn.ModuleList(parts)

    def forward(self, x):
        for part in self.parts:
            x = part(x)
        return x


class MakesNested(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("kept", torch.tensor([[True] * 5, [True] * 3 + [False] * 2]))

    def forward(self, x):
        return torch._nested_tensor_from_mask(x, self.kept).to_padded_tensor(0.0)


class Encoder(nn.Module):
    """A batch that is padded, where nobody asks for gradients."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)

    def forward(self, x, padding):
        # Padded positions are zero with nested tensors, and something else without.
        return self.encoder(x, src_key_padding_mask=padding).masked_fill(padding[..., None], 0.0)


CASES = [
    *[of_layer("tensors made in forward", name, way) for name, way in MADE.items()],
    *[of_layer("views as another tensor has them", name, way) for name, way in VIEWS.items()],
    *[of_layer("distributions", name, way, export=CHECKED.get(name, ""), file_export="")
      for name, way in DISTRIBUTIONS.items()],
    of_layer("inference mode", "", many, mode=torch.inference_mode),
    of_layer("inference mode", "tensors made in forward", MADE["the lowest number"], mode=torch.inference_mode),
    of_layer("inference mode", "no gradients", many, mode=torch.no_grad),
    of_layer("autocast", "around a call", lambda y, x: y, mode=half,
             refused="^autocast is on, which casts behind the operators"),
    of_layer("autocast", "inside of the model", inner_autocast, refused="aten::linear runs under autocast"),
    Case("nested tensors", "", Encoder,
         lambda: [Split(numbers(3, 2, 5, 8), 1), torch.tensor([[False] * 5, [False] * 3 + [True] * 2])],
         lambda: [numbers(4, 2, 5, 8), torch.tensor([[False] * 5, [False] * 3 + [True] * 2])], mode=torch.no_grad,
         file=None, no_file="a traced file has the nested tensors that the live model is kept from",
         notes="without nested tensors", same=1e-3, recovery=1e-3, agreement=1e-3),
    Case("sparse buffers", "", SparseBuffer, lambda: [Split(numbers(), 1)], lambda: [numbers(2)]),
    Case("packed sequences", "an LSTM", lambda: Packed(nn.LSTM), lambda: [Split(numbers(5, 2, 4, 6), 1)],
         lambda: [numbers(6, 2, 4, 6)]),
    Case("packed sequences", "a GRU", lambda: Packed(nn.GRU), lambda: [Split(numbers(5, 2, 4, 6), 1)],
         lambda: [numbers(6, 2, 4, 6)]),
    Case("numbers in traced files", "", Sinusoids, lambda: [Split(numbers(7, 2, 8), 1), torch.tensor([3, 7])],
         lambda: [numbers(8, 2, 8), torch.tensor([1, 9])]),
    Case("sizes in traced files", "", Sizes, lambda: [Split(numbers(9, 2, 3, 4), 2)], lambda: [numbers(1, 2, 3, 4)]),
    Case("conditions on constants", "", Constants, lambda: [Split(numbers(), 1)], lambda: [numbers(2)]),
    Case("one-hot vectors of known size", "", KnownClasses, lambda: [Split(numbers(), 1), torch.tensor([1, 3, 0])],
         lambda: [numbers(2), torch.tensor([0, 2, 3])]),
    Case("deeply nested modules", "", lambda: Nested(3), lambda: [Split(numbers(), 1)], lambda: [numbers(2)]),
]


def saved(folder, module, *args):
    path = os.path.join(folder, "model.pt")
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.jit.trace(module.eval(), args, check_trace=False).save(path)
    return path


class FilesTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)

    @of("sparse products")
    def test_products_with_sparse_tensors_are_refused_and_named(self):
        x, a = torch.randn(4, 3), torch.eye(4)
        with tempfile.TemporaryDirectory() as folder:
            model = addend.load_model(saved(folder, SparseProduct(), x, a))
            torch.testing.assert_close(torch.as_tensor(model.run(x, a)[0].torch()), x)
            refused = {
                "decompose": lambda: model.decompose(addend.Input(x, 0), a),
                "explain": lambda: model.explain(addend.Input(x, 0), a, targets=[(0, 0)]),
                "record": lambda: model.record(x, a),
                "live": lambda: addend.compile(SparseProduct()).decompose(addend.Input(x, 0), a),
                "live record": lambda: addend.compile(SparseProduct()).record(x, a),
            }
            for name, call in refused.items():
                with self.subTest(name), self.assertRaisesRegex(addend.Error, "(?=.*aten::).*not dense"):
                    call()
            # A dense operand in the same product is taken.
            parts = addend.compile(torch.mm, preset="faithful")(a, addend.Input(x, 0))
            self.assertLessEqual(apart(parts.recovery.torch(), x), 1e-6)

    @of("nested tensors")
    @unittest.skipUnless(hasattr(torch, "_nested_tensor_from_mask"), "PyTorch makes no nested tensor of a mask")
    def test_nested_tensors_are_refused_and_named(self):
        x = torch.randn(2, 5, 8)
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = os.path.join(folder, "model.pt")
            torch.jit.script(MakesNested()).save(path)
            file, live = addend.load_model(path), addend.compile(MakesNested())
            source = addend.Input(x, 1)
            for name, call in {
                "file": lambda: file.decompose(source),
                "record": lambda: file.record(x),
                "live": lambda: live.decompose(source),
                "live explain": lambda: live.explain(source, targets=[(0, 0, 0)]),
                "live record": lambda: live.record(x),
            }.items():
                with self.subTest(name), self.assertRaisesRegex(addend.Error, "(?=.*aten::).*not dense"):
                    call()

    @of("sizes in traced files")
    def test_files_learn_sizes(self):
        with tempfile.TemporaryDirectory() as folder:
            model = addend.load_model(saved(folder, Sizes(), torch.randn(2, 3, 4)))
            program = model.record(torch.randn(2, 3, 4), others=[torch.randn(5, 3, 4), torch.randn(3, 3, 4)])
            x = torch.randn(7, 3, 4)
            torch.testing.assert_close(program.replay(x)[0].torch(), Sizes()(x))

    @of("sizes learned from live calls")
    def test_live_models_learn_sizes(self):
        network = Sizes()
        others = [torch.randn(5, 3, 4), torch.randn(3, 3, 4)]
        program = addend.compile(network).record(torch.randn(2, 3, 4), others=others)
        x = torch.randn(7, 3, 4)
        torch.testing.assert_close(program.replay(x)[0].torch(), network(x))

    @of("sizes learned from live calls")
    def test_sizes_of_memory_that_nothing_reads_are_learned(self):
        """Scores of attention are often made in memory without content, with a beta of zero."""
        # Small products multiply that content by zero in LibTorch 1.13, and NaN may be there.
        for given in (lambda x: torch.empty(x.shape[0], x.shape[1], x.shape[1]), lambda x: torch.empty(1, 1, 1)):
            def scores(x):
                return torch.baddbmm(given(x), x, x.transpose(1, 2), beta=0, alpha=0.5).softmax(-1) @ x

            others = [torch.randn(3, 6, 64), torch.randn(4, 7, 64)]
            program = addend.compile(scores).record(torch.randn(2, 6, 64), others=others)
            x = torch.randn(5, 8, 64)
            torch.testing.assert_close(program.replay(x)[0].torch(), scores(x))

    @of("views that are copies at other sizes")
    def test_sizes_are_learned_from_batches_of_one(self):
        for name, way in VIEWS_AT_SOME_SIZES.items():
            for sizes in ((1, 2, 3), (2, 3, 4), (2, 1, 3), (3, 1)):
                with self.subTest(name, sizes=sizes), tempfile.TemporaryDirectory() as folder:
                    module = Called(way)
                    examples = [torch.randn(size, 6, 8) for size in sizes]
                    programs = {"live": addend.compile(module).record(examples[0], others=examples[1:])}
                    found = addend.compile(module).check_trace(examples[0], others=examples[1:])
                    self.assertFalse([one for one in found.findings if one.kind in ("constant", "value")], found)
                    if "numpy" not in name:
                        model = addend.load_model(saved(folder, module, examples[0]))
                        programs["file"] = model.record(examples[0], others=examples[1:])
                    for size in (1, 2, 3, 5, 1, 8):
                        x = torch.randn(size, 6, 8)
                        expected = module(x)
                        for kind, program in programs.items():
                            with self.subTest(kind, size=size):
                                self.assertTrue(torch.equal(program.replay(x)[0].torch(), expected))

    @of("names that are no identifiers")
    def test_exports_of_any_names_can_be_loaded(self):
        for name in ("in", "class", "lambda", "None", "print", "self", "inputs", "0", "a-b", "\u00e9", "in_", "import"):
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                module = nn.Sequential()
                module.add_module(name, nn.Linear(4, 4))
                module.add_module("in_" if name != "in_" else "in", nn.Linear(4, 4))
                module[0].register_buffer(name, torch.randn(4))
                x, path = torch.randn(2, 4), os.path.join(folder, "exported.pt")
                addend.compile(module).record(torch.randn(2, 4)).export_torchscript(path)
                self.assertTrue(torch.equal(torch.jit.load(path)(x), module(x)))

    @of("deeply nested modules")
    def test_recording_costs_alike_however_modules_nest(self):
        def cost(module):
            x = torch.zeros(1, 4)
            with tempfile.TemporaryDirectory() as folder:
                model = addend.load_model(saved(folder, module, x))
                operators = model.record(x).num_operators
                best = math.inf
                for _ in range(3):
                    begin = time.process_time()
                    model.record(x)
                    best = min(best, time.process_time() - begin)
                return best / operators

        flat, nested = cost(Nested(1, 128)), cost(Nested(7, 2))  # of 256 operators each
        self.assertLess(nested / flat, 8)


class CallsTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)

    @of("wrappers of compiled models")
    def test_wrapped_models_run_as_they_are_inside(self):
        network, x = nn.Linear(4, 2), torch.rand(3, 4)
        if hasattr(torch, "compile"):
            compiled = torch.compile(network)
        else:

            class Wrapper(nn.Module):
                def __init__(self, model):
                    super().__init__()
                    self._orig_mod = model

            compiled = Wrapper(network)
        results = addend.compile(compiled, preset="faithful").decompose(addend.Input(x, 1))
        self.assertLessEqual(apart(results[0].recovery.torch(), network(x)), 1e-6)
        self.assertIn("torch.compile wraps the model", notes_of(results))

    @of("checks of live recordings")
    def test_live_recordings_are_checked_as_files_are(self):
        network, x = nn.Sequential(nn.Linear(4, 3), nn.Tanh()), torch.rand(2, 4)
        model = addend.compile(network)
        program = model.record(x)
        for found in (program.check(), program.check(torch.rand(2, 4)), model.check_trace(x)):
            self.assertTrue(found.ok)
            self.assertEqual(found.findings, [])
        self.assertEqual(model.requirements(x), [])
        with torch.no_grad():
            network[0].weight.mul_(2)
        self.assertFalse(program.check().findings, "the model is recorded again, as it is now")
        with tempfile.TemporaryDirectory() as folder:
            program.save(folder)
            with self.assertRaisesRegex(ValueError, "was loaded"):
                addend.Program.load(folder).check()

        def branches(x):
            return x * 2 if x.sum() > 0 else x * 3

        found = addend.compile(branches).check_trace(x, others=[-x])
        self.assertFalse(found.ok)
        self.assertIn("guard", {finding.kind for finding in found.findings if finding.error})

    @of("arguments in lists")
    def test_programs_take_arguments_as_the_model_does(self):
        def model(pair, scale):
            return pair[0].tanh() * scale["by"] + pair[1]

        a, b, by = torch.rand(3), torch.rand(3), torch.rand(3)
        program = addend.compile(model).record([a, b], {"by": by})
        for given in (([b, a], {"by": a}), ([a, b], {"by": b})):
            replayed = program.replay(*given)[0].torch()
            torch.testing.assert_close(replayed, model(*given))

    @of("targets nobody gave")
    def test_the_largest_element_is_explained_where_it_is_clear_which(self):
        network = nn.Linear(4, 5)
        model = addend.compile(network, preset="faithful")
        for shape, place in (((4,), ()), ((1, 4), (0,)), ((1, 3, 4), (0, 2))):
            x = torch.rand(*shape)
            value = network(x)[place].max().item()
            for explanation in (model.explain(addend.Input(x, -1))[0], model.decompose(addend.Input(x, -1)).explain()):
                self.assertAlmostEqual(explanation.value, value, places=5)
        with self.assertRaisesRegex(addend.InvalidArgument, "more than one largest element"):
            model.explain(addend.Input(torch.rand(2, 4), 1))
        rows = model.explain(addend.Input(torch.rand(2, 4), 1), each_example=True)
        self.assertEqual(len(rows), 2)

    @of("notes of compositions")
    def test_what_a_call_returns_has_the_notes_of_its_run(self):
        model = addend.compile(lambda x: {"steps": x.floor() + x, "drawn": x + torch.rand(3)}, preset="faithful")
        results = model.decompose(addend.Input(torch.rand(3) + 1, 0))
        self.assertIn("random numbers are drawn", notes_of(results))
        self.assertIn("no baseline was given", notes_of(results))
        self.assertEqual(list(results.output), ["steps", "drawn"])
        for composition in results.output.values():
            self.assertEqual(composition.notes, results.notes)

    @of("several outputs")
    def test_outputs_that_no_component_reaches_leave_the_others(self):
        table = torch.rand(4, 3)

        def model(x):
            return {"reached": (2 * x).tanh(), "ended": nn.functional.embedding(x.argmax(1), table)}

        x = torch.tensor([[0.1, 0.9, 0.3, 0.2]])
        compiled = addend.compile(model, preset="faithful")
        source = addend.Input(x, 1, baseline=0.5)
        results = compiled.decompose(source)
        self.assertLessEqual(apart(results["output.reached"].recovery.torch(), model(x)["reached"]), 1e-6)
        self.assertIn("aten::argmax", notes_of(results))
        self.assertEqual(len(results.explain((0, 1), "output.reached").contributions), 4)
        for explain in (
            lambda: results.explain((0, 1), "output.ended"),
            lambda: compiled.explain(source, targets=[(0, 1)], at="output.ended"),
        ):
            ended = "no component reaches output.ended: .* aten::argmax"
            with self.assertRaisesRegex(addend.FailedPrecondition, ended):
                explain()


Cases = table("live and files", CASES, [FilesTest, CallsTest])


if __name__ == "__main__":
    unittest.main()
