"""Compositions as tensors of PyTorch: its functions, methods and modules take them; tensors of Addend compute as its do."""

import unittest

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import addend

X = torch.tensor(
    [[0.6853, 0.1793, -0.2301, 0.4074], [1.2410, -0.9032, 0.3307, 0.0511], [-0.4120, 0.7771, 0.1234, -1.5002]]
)
IMAGE = torch.linspace(-1, 1, 2 * 3 * 6 * 6).view(2, 3, 6, 6).sin()


def split(x):
    return addend.Composition.diagonal(x, dims=-1)


def seeded(make):
    torch.manual_seed(0)
    return make().eval()


# Functions that users write, on a tensor [3, 4].
FUNCTIONS = {
    "add": lambda x: torch.add(x, 2, alpha=3),
    "sub of a tensor": lambda x: X - x,
    "mul of both": lambda x: x * x,
    "div": lambda x: torch.div(x, 4),
    "mod": lambda x: x % 0.3,
    "floor division": lambda x: x // 0.3,
    "power of a number": lambda x: 2**x,
    "square": torch.square,
    "exp": torch.exp,
    "log1p": lambda x: torch.log1p(x * x),
    "rsqrt": lambda x: torch.rsqrt(x * x + 1),
    "clamp": lambda x: torch.clamp(x, min=-0.5, max=0.5),
    "round": torch.round,
    "sign": torch.sign,
    "atan2": lambda x: torch.atan2(x, X + 2),
    "hypot": lambda x: torch.hypot(x, X),
    "lerp": lambda x: torch.lerp(x, X, 0.3),
    "maximum": lambda x: torch.maximum(x, X.flip(0)),
    "matmul": lambda x: torch.matmul(X.t(), x),
    "operator @": lambda x: x @ x.T,
    "einsum": lambda x: torch.einsum("ij,kj->ik", x, X),
    "addmm": lambda x: torch.addmm(X @ X.t(), x, X.t(), beta=0.5),
    "outer": lambda x: torch.outer(x[0], X[1]),
    "tensordot": lambda x: torch.tensordot(x, X, dims=([1], [1])),
    "cat": lambda x: torch.cat([x, X, x], dim=1),
    "stack of keywords": lambda x: torch.stack(tensors=(x, x), dim=1),
    "hstack": lambda x: torch.hstack([x, X]),
    "split": lambda x: torch.split(x, 2, dim=1),
    "chunk": lambda x: torch.chunk(x, 2),
    "unbind": lambda x: torch.unbind(x, 1),
    "tensor_split": lambda x: torch.tensor_split(x, 3, dim=1),
    "where": lambda x: torch.where(x > 0, x, -x),
    "masked_fill": lambda x: torch.masked_fill(x, x > 0.2, 1.0),
    "gather": lambda x: torch.gather(x, 1, torch.tensor([[0, 2], [1, 1], [3, 0]])),
    "index_select": lambda x: torch.index_select(x, 1, torch.tensor([3, 0])),
    "take_along_dim": lambda x: torch.take_along_dim(x, torch.tensor([[1]]), dim=1),
    "tril": torch.tril,
    "roll": lambda x: torch.roll(x, shifts=1, dims=1),
    "rot90": torch.rot90,
    "kron": lambda x: torch.kron(x, torch.eye(2)),
    "cumsum": lambda x: torch.cumsum(x, dim=1),
    "cumprod": lambda x: torch.cumprod(x, dim=1),
    "sum in double": lambda x: torch.sum(x, dim=1, dtype=torch.float64),
    "mean": lambda x: x.mean(-1),
    "std": lambda x: torch.std(x, dim=1),
    "var_mean": lambda x: torch.var_mean(x, dim=1),
    "norm": torch.norm,
    "logsumexp": lambda x: torch.logsumexp(x, 1),
    "max": lambda x: torch.max(x, 0),
    "amin": lambda x: torch.amin(x, dim=1, keepdim=True),
    "median": lambda x: torch.median(x, dim=1),
    "sort": lambda x: torch.sort(x, dim=1, descending=True),
    "topk": lambda x: torch.topk(x, 2),
    "argmax": torch.argmax,
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: F.log_softmax(x, dim=1),
    "relu": F.relu,
    "gelu": lambda x: F.gelu(x, approximate="tanh"),
    "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "softplus": F.softplus,
    "normalize": F.normalize,
    "cosine_similarity": lambda x: F.cosine_similarity(x, X.flip(0)),
    "layer_norm": lambda x: F.layer_norm(x, (4,)),
    "pad": lambda x: F.pad(x, (1, 2)),
    "interpolate": lambda x: F.interpolate(x[None], scale_factor=2, mode="linear"),
    "cross_entropy": lambda x: F.cross_entropy(x, torch.tensor([0, 3, 1])),
    "mse_loss": lambda x: F.mse_loss(x, X.flip(0)),
    "cdist": lambda x: torch.cdist(x, X + 1),
    "fft": lambda x: torch.fft.rfft(x).real,
    "view": lambda x: x.view(2, 6),
    "reshape": lambda x: x.reshape(-1, 2),
    "permute": lambda x: x.permute(1, 0),
    "expand": lambda x: x[:, None].expand(3, 2, 4),
    "repeat": lambda x: x.repeat(2, 1),
    "flip": lambda x: x.flip(0, 1),
    "T": lambda x: x.T,
    "clone": lambda x: x.clone(),
    "detach": lambda x: x.detach(),
    "double": lambda x: x.double(),
    "to another": lambda x: x.to(X.double()),
    "type_as": lambda x: x.type_as(X.double()),
    "tile": lambda x: x.tile(2),
    "zeros_like": torch.zeros_like,
}

MODULES = {
    "linear": (lambda: nn.Linear(4, 3), X),
    "linear of one row": (lambda: nn.Linear(4, 3), X[0]),
    "sequence": (lambda: nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.LayerNorm(5), nn.Linear(5, 2), nn.Softmax(-1)), X),
    "gelu": (nn.GELU, X),
    "batch norm": (lambda: nn.BatchNorm1d(4), X),
    "group norm": (lambda: nn.GroupNorm(3, 3), IMAGE),
    "conv1d": (lambda: nn.Conv1d(3, 2, 3, padding=1, padding_mode="circular"), X[None]),
    "conv2d": (lambda: nn.Conv2d(3, 2, 3), IMAGE),
    "conv transpose": (lambda: nn.ConvTranspose2d(3, 2, 3, stride=2), IMAGE),
    "max pool": (lambda: nn.MaxPool2d(2), IMAGE),
    "adaptive pool": (lambda: nn.AdaptiveAvgPool2d(2), IMAGE),
    "pixel shuffle": (lambda: nn.PixelUnshuffle(2), IMAGE),
    "bilinear upsampling": (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), IMAGE),
    "encoder layer": (lambda: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), X[None]),
    "flatten": (nn.Flatten, IMAGE),
    "dropout": (lambda: nn.Dropout(0.5), X),
}


def leaves(value):
    return [leaf for item in value for leaf in leaves(item)] if isinstance(value, (list, tuple)) else [value]


class FunctionsTest(unittest.TestCase):
    def check(self, function, *given):
        """Checks that a function gives for compositions what it gives for the tensors that they stand for."""
        compositions = [split(x) for x in given]
        expected, found = function(*given), function(*compositions)
        self.assertIs(type(found), type(expected) if isinstance(expected, (list, tuple)) else type(found))
        expected, found = leaves(expected), leaves(found)
        self.assertEqual(len(found), len(expected))
        for own, tensor in zip(found, expected):
            if not tensor.is_floating_point():
                self.assertIsInstance(own, torch.Tensor)
                self.assertTrue(torch.equal(own, tensor))
                continue
            self.assertIsInstance(own, addend.Composition)
            self.assertEqual(own.numc, compositions[0].numc)
            self.assertEqual((own.shape, str(own.dtype)), (tuple(tensor.shape), str(tensor.dtype).partition(".")[2]))
            torch.testing.assert_close(own.recovery.torch(), tensor, rtol=1e-5, atol=1e-5)
            torch.testing.assert_close(own.value.torch(), tensor, rtol=1e-5, atol=1e-5)
        return found

    def test_recover_what_pytorch_computes(self):
        for name, function in FUNCTIONS.items():
            with self.subTest(name), torch.no_grad():
                self.check(function, X)

    def test_modules_recover_what_pytorch_computes(self):
        for name, (make, x) in MODULES.items():
            with self.subTest(name), torch.no_grad():
                self.check(seeded(make), x)

    def test_modules_give_what_they_give_as_models(self):
        attention = seeded(lambda: nn.MultiheadAttention(4, 2, batch_first=True))

        def written_out(x):
            return torch.softmax(x @ x.transpose(-1, -2) / 2, -1) @ x

        cases = {name: (seeded(make), x) for name, (make, x) in MODULES.items()}
        cases.update({"attention": (lambda x: attention(x, x, x)[0], X[None]), "written out": (written_out, X[None])})
        for name, (module, x) in cases.items():
            with self.subTest(name):
                c = split(x)
                own, model = module(c), addend.compile(module)(c)
                for part in ("components", "reference", "leftover"):
                    torch.testing.assert_close(
                        getattr(own, part).torch(), getattr(model, part).torch(), rtol=1e-4, atol=1e-6
                    )

    def test_functions_give_what_methods_give(self):
        # Something is left over already: a constant that is drawn instead would be the reference's.
        with addend.using(nonlinearity="gradient"):
            c = torch.exp(split(X)) + split(X)
        self.assertGreater(float(c.leftover.abs().max()), 0.5)
        for name in ("relu", "exp", "softmax", "tanh", "sum"):
            arguments = (-1,) if name == "softmax" else ()
            own, method = getattr(torch, name)(c, *arguments), getattr(c, name)(*arguments)
            for part in ("components", "reference", "leftover"):
                torch.testing.assert_close(getattr(own, part).torch(), getattr(method, part).torch(), rtol=0, atol=0)

    def test_parts_along_a_dimension_are_asked_for_as_of_tensors(self):
        composition, size = split(X), X.shape[1]
        for args, named in (
            ((2,), {}),
            ((2, 1), {}),
            (([1, size - 1], 1), {}),
            (((1, size - 1), -1), {}),
            ((), {"split_size": [1, 0, size - 1], "dim": 1}),
            ((torch.Size([size - 1, 1]),), {"dim": 1}),
        ):
            with self.subTest(args=args, **named):
                expected, found = X.split(*args, **named), composition.split(*args, **named)
                self.assertEqual(len(found), len(expected))
                for one, plain in zip(found, expected):
                    torch.testing.assert_close(one.recovery.torch(), plain)
                    torch.testing.assert_close(one.components.torch().sum(0) + one.residual.torch(), plain)

    def test_what_has_no_components_is_plain(self):
        c = split(X)
        self.assertEqual(c.size(), X.size())
        self.assertEqual((c.size(1), c.dim(), c.numel(), c.is_floating_point(), c.is_cuda), (4, 2, 12, True, False))
        self.assertIs(torch.equal(c, X), True)
        self.assertIs(torch.allclose(c, X), True)
        self.assertAlmostEqual(c.sum().item(), float(X.sum()), places=6)
        self.assertTrue(torch.equal(torch.isnan(c), torch.isnan(X)))
        self.assertTrue(torch.equal(c > X.mean(), X > X.mean()))

    def test_policies(self):
        c = split(X)
        with addend.using(nonlinearity="gradient") as context:
            own = torch.exp(c)
            self.assertEqual(context.policy["nonlinearity"], "gradient")
        expected = c.exp(context=context)
        self.assertTrue(torch.equal(own.components, expected.components))
        self.assertTrue(torch.equal(own.leftover, expected.leftover))
        self.assertFalse(torch.equal(own.components, torch.exp(c).components))
        with self.assertRaisesRegex(TypeError, "using.*no option nonlinarity: did you mean nonlinearity"):
            addend.using(nonlinarity="gradient")

    def test_failures_are_told(self):
        c = split(torch.eye(3) + 1)
        with self.assertRaisesRegex(addend.Unimplemented, "no composition rule for aten::igamma"):
            torch.igamma(c, c)
        with self.assertRaisesRegex(addend.InvalidArgument, "has 2 components, but argument .* has 4"):
            torch.add(split(X), addend.Composition(torch.zeros(2, 3, 4)))
        with self.assertRaisesRegex(AttributeError, "neither Composition nor torch.Tensor has an attribute 'nothing'"):
            c.nothing
        for name in ("numpy", "tolist", "data", "storage"):
            with self.assertRaisesRegex(AttributeError, r"take that of c.recovery.torch\(\)"):
                getattr(c, name)


class WritesTest(unittest.TestCase):
    def test_functions_that_write_put_a_new_composition_there(self):
        c = split(X)
        self.assertIs(torch.relu_(c), c)
        torch.testing.assert_close(c.recovery.torch(), X.relu())
        self.assertIs(F.leaky_relu(c, inplace=True), c)
        c[:, 1] = 7
        c[0] = c[1] * 2
        expected = X.relu()
        expected[:, 1] = 7
        expected[0] = expected[1] * 2
        torch.testing.assert_close(c.recovery.torch(), expected)
        self.assertIs(c.t_(), c)
        c.mul_(2)
        torch.testing.assert_close(c.recovery.torch(), 2 * expected.t())

    def test_writes_into_views_are_followed(self):
        def function(x):
            y = torch.relu(x).clone()
            y[:, 0] = y[:, 1] * 2
            y.view(-1)[3:5].mul_(3)
            y.t()[2].add_(1)
            first, _ = y.split(2, dim=1)
            first[1].zero_()
            return y.squeeze_().unsqueeze_(0)

        class Run(nn.Module):
            forward = staticmethod(function)

        c = split(X)
        # One call of the whole function, which runs on tensors in the place of compositions.
        own = torch.overrides.handle_torch_function(function, (c,), c)
        torch.testing.assert_close(own.recovery.torch(), function(X), rtol=1e-6, atol=1e-6)
        self.assertTrue(torch.equal(c.recovery, X))
        model = addend.compile(Run())(c)
        torch.testing.assert_close(own.components.torch(), model.components.torch(), rtol=1e-6, atol=1e-6)

    def test_what_shares_a_written_composition_keeps_it(self):
        c = split(X)
        view, copy = c[0], c.clone()
        c.add_(1)
        self.assertTrue(torch.equal(view.recovery, X[0]))
        self.assertTrue(torch.equal(copy.recovery, X))

    def test_plain_tensors_have_no_room(self):
        c = split(X)
        for write in (lambda t: t.add_(c), lambda t: t.copy_(c), lambda t: t.__setitem__(0, c[0])):
            plain = torch.zeros(3, 4)
            with self.assertRaisesRegex(addend.InvalidArgument, r"no room for components.*addend.compile\(function\)\(c\)"):
                write(plain)
            self.assertTrue(torch.equal(plain, torch.zeros(3, 4)))

    def test_parts_are_written(self):
        error = torch.full((3, 4), 0.25)

        def by_elements(c):
            c.residual[:] += error

        def as_a_whole(c):
            c.residual += error

        def by_pytorch(c):
            c.residual.torch()[:] += error

        def of_the_leftover(c):
            c.leftover[:] += error

        def of_the_reference(c):
            c.reference.torch().add_(0.25)

        def of_a_component(c):
            c.component(1)[:] += error

        for write in (by_elements, as_a_whole, by_pytorch, of_the_leftover, of_the_reference, of_a_component):
            with self.subTest(write.__name__):
                c = split(X)
                write(c)
                torch.testing.assert_close(c.recovery.torch(), X + error)
                torch.testing.assert_close(c.value.torch(), X + error)
                torch.testing.assert_close(torch.exp(c).recovery.torch(), (X + error).exp())

    def test_tensors_of_the_residual_stay_good(self):
        c = split(X)
        residual = c.residual.torch()
        residual += 1
        torch.testing.assert_close(c.recovery.torch(), X + 1)
        residual += 1
        torch.testing.assert_close(c.recovery.torch(), X + 2)
        c.relu_()  # another composition: the tensor belongs to the old one
        residual += 1
        torch.testing.assert_close(c.recovery.torch(), (X + 2).relu())

    def test_what_is_computed_from_parts_is_not_written(self):
        c = split(X)
        for part in (c.recovery, c.value):
            with self.assertRaisesRegex(TypeError, "write components, reference, leftover or residual"):
                part[:] = 0
        with self.assertRaisesRegex(TypeError, "keep it in a variable"):
            split(X).residual[:] = 0

    def test_half_types_stay(self):
        c = split(X.half()).mul(2)
        c.residual[:] += 1.0
        self.assertEqual(c.dtype, "float16")
        torch.testing.assert_close(c.recovery.torch().half(), 2 * X.half() + 1, rtol=1e-3, atol=1e-3)


class TensorTest(unittest.TestCase):
    def setUp(self):
        self.tensor = split(X).recovery

    def test_computes_as_pytorch_does(self):
        y = X.flip(0) + 2
        cases = [
            lambda t: t + y, lambda t: y + t, lambda t: t - y, lambda t: y - t, lambda t: t * 2, lambda t: 2 * t,
            lambda t: t / y, lambda t: 1 / t, lambda t: t // 0.3, lambda t: t % 0.3, lambda t: t**2, lambda t: 2**t,
            lambda t: t @ y.T, lambda t: y.T @ t, lambda t: -t, lambda t: +t, abs, lambda t: t == y, lambda t: t != y,
            lambda t: t < 0.2, lambda t: 0.2 < t, lambda t: t <= y, lambda t: t >= y, lambda t: (t > 0) & (t < 1),
            lambda t: ~(t > 0), lambda t: (t - X).abs() < 1e-6, lambda t: t.max(), lambda t: t.softmax(-1),
            torch.relu, lambda t: torch.cat([t, y]), lambda t: F.linear(y, t), lambda t: torch.stack([t, t]), lambda t: t.T,
        ]  # fmt: skip
        for number, case in enumerate(cases):
            with self.subTest(number):
                found, expected = case(self.tensor), case(X)
                self.assertIs(type(found), torch.Tensor)
                self.assertTrue(torch.equal(found, expected))
        self.assertTrue(torch.allclose(self.tensor, X))
        self.assertTrue(torch.equal(self.tensor - self.tensor, torch.zeros(3, 4)))

    def test_computes_as_numpy_does_beside_its_arrays(self):
        array = X.numpy()
        for found in (self.tensor - array, array - self.tensor):
            self.assertIsInstance(found, np.ndarray)
            np.testing.assert_array_equal(found, np.zeros((3, 4)))
        self.assertTrue((self.tensor == array).all())

    def test_gradients_pass_to_the_other(self):
        y = X.clone().requires_grad_()
        ((y - self.tensor) ** 2 + y * self.tensor).sum().backward()
        self.assertTrue(torch.equal(y.grad, X))

    def test_beside_compositions(self):
        c = split(X)
        for found in (self.tensor + c, c + self.tensor, torch.add(self.tensor, c)):
            self.assertIsInstance(found, addend.Composition)
            torch.testing.assert_close(found.recovery.torch(), 2 * X)
        self.assertEqual(torch.where(c > 0, c, self.tensor).numc, 4)

    def test_is_known_by_its_identity(self):
        other = split(X).recovery
        self.assertEqual(len({self.tensor, other, self.tensor}), 2)
        self.assertIs(self.tensor == None, False)  # noqa: E711: as PyTorch says it


class GraphTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.network = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2)).double()

    def test_gradients_are_those_of_pytorch(self):
        network = self.network
        for name, call in (("function by function", network), ("as a model", addend.compile(network))):
            with self.subTest(name):
                x = X[0].double().requires_grad_()
                y = X[0].double().requires_grad_()
                (call(addend.Composition(torch.diag(x), in_graph=True)).recovery ** 2).sum().backward()
                (network(y) ** 2).sum().backward()
                torch.testing.assert_close(x.grad, y.grad)

    def test_gradients_of_every_part(self):
        for part in ("components", "reference", "leftover", "residual", "recovery", "value"):
            with self.subTest(part):

                def read(components, reference):
                    c = addend.Composition(components, reference, in_graph=True)
                    return getattr(self.network(c) * 2, part).torch()

                given = torch.diag(X[0].double()), X[1].double()
                self.assertTrue(torch.autograd.gradcheck(read, [tensor.requires_grad_() for tensor in given]))

    def test_a_recovery_that_is_off_is_told(self):
        """Whoever computed it: the parts are too large for float32 where a large mean is taken away late."""
        x = 2000 + X * 5e-4
        for mean, is_off in ((2000, True), (1000, False)):
            c = (split(x) - mean) / 5e-4
            gap = (c.value.torch() - c.recovery.torch()).abs() / c.value.torch().abs().amax(-1, keepdim=True)
            self.assertEqual(gap.max().item() > 1e-3 or gap.isnan().any().item(), is_off)
            told = [note for note in c.warnings if note.startswith("recovery is off: the parts of output at ")]
            self.assertEqual(len(told), is_off, c.warnings)
            if is_off:
                row, column = divmod(gap.argmax().item(), 4)
                self.assertIn("output at %d,%d " % (row, column), told[0])
                self.assertIn("WARNING: " + told[0], repr(c))
                self.assertEqual(c.notes, c.warnings)
        scalar = split(X).sum()
        empty = split(X)[:0]
        for c in (split(X), split(X).tanh(), scalar, empty, split(torch.zeros(2, 3)), split(X).to("float64") * 2):
            self.assertEqual((c.notes, c.warnings), ([], []))

    def test_models_compare_dtypes_and_devices_as_of_tensors(self):
        c, cpu = split(X), torch.device("cpu")
        for own in (c, c.recovery):
            self.assertTrue(own.dtype == torch.float32 and torch.float32 == own.dtype)
            self.assertTrue(own.dtype != torch.float64 and own.dtype in (torch.float16, torch.float32))
            self.assertTrue(own.dtype == X.dtype and own.dtype == np.dtype("float32") and own.dtype == "float32")
            self.assertFalse(own.dtype == torch.int32 or own.dtype == torch.strided or own.dtype is None)
            self.assertTrue(own.device == cpu and cpu == own.device and own.device == "cpu")
            self.assertTrue(own.device != torch.device("cuda:0") and own.device != torch.device("meta"))
            self.assertEqual((own.device.type, own.device.index), (cpu.type, cpu.index))
        self.assertEqual(len({c.dtype, "float32"}), 1)

    def test_component(self):
        c = addend.Composition(torch.diag(X[0]), in_graph=True)
        torch.exp(c).component(2).torch().sum().backward()
        self.assertEqual(tuple(c.components.torch().grad.shape), (4, 4))
        self.assertGreater(float(c.components.torch().grad[2].abs().max()), 0)

    def test_prints_what_autograd_follows(self):
        c = addend.Composition(torch.diag(X[0].double()), in_graph=True)
        self.assertEqual(repr(self.network(c)).count("grad_fn="), 5)
        self.assertNotIn("grad_fn", repr(self.network(c).detach()))
        plain = addend.Composition(torch.diag(X[0]))
        self.assertNotIn("grad_fn", repr(plain))

    def test_ends_where_it_is_asked_to(self):
        c = addend.Composition(torch.diag(X[0]), in_graph=True)
        self.assertTrue(torch.tanh(c).requires_grad)
        self.assertTrue(torch.tanh(c).recovery.torch().requires_grad)
        self.assertFalse(c.detach().requires_grad)
        self.assertFalse(torch.detach(c).recovery.torch().requires_grad)
        with torch.no_grad():
            self.assertFalse(torch.tanh(c).requires_grad)
        with self.assertRaisesRegex(TypeError, "cut the composition off autograd's graph"):
            c.residual[:] += 1
        with self.assertRaisesRegex(addend.Unimplemented, "no gradient passes"):
            torch.sort(c)


if __name__ == "__main__":
    unittest.main()
