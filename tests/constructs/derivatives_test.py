"""Models that differentiate inside, places of what is true, and masks of the input's own."""

import os
import sys
import unittest

import torch
from torch import nn

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import addend  # noqa: E402
from table import of, table  # noqa: E402

SINGLE, DOUBLE = torch.float32, torch.float64


def numbers(*shape, seed=3):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=DOUBLE)


class Field(nn.Module):
    """The gradient of an energy by its first input: forces, but for the sign."""

    def __init__(self, energy):
        super().__init__()
        self.energy = energy

    def forward(self, x):
        with torch.enable_grad():
            x = x if x.requires_grad else x.requires_grad_()
            energy = self.energy(x)
            return torch.autograd.grad(energy.sum(), x, create_graph=True)[0]


class Flow(nn.Module):
    """The flow of a Hamiltonian: its gradient, turned."""

    def __init__(self, activation):
        super().__init__()
        self.field = Field(nn.Sequential(nn.Linear(4, 16), activation, nn.Linear(16, 16), activation, nn.Linear(16, 1)))

    def forward(self, x):
        by_place, by_momentum = self.field(x).chunk(2, -1)
        return torch.cat([by_momentum, -by_place], -1)


class OfWeight(nn.Module):
    """The gradient of something that bends by the weight of a layer before a norm."""

    def __init__(self, norm):
        super().__init__()
        self.layer, self.norm = nn.Linear(4, 4), norm

    def forward(self, x):
        with torch.enable_grad():
            given = self.norm(self.layer(x)).sin().sum()
            return torch.autograd.grad(given, self.layer.weight, create_graph=True)[0].flatten()


def of_layer(*layers):
    """Summed through something that bends, so that gradients that come in are not constant."""
    chain = nn.Sequential(*layers)
    return lambda: Field(lambda x: chain.double()(x).sin())


def of_function(function):
    return lambda: Field(lambda x: function(x).sin())


def of_recurrent(layer):
    return Field(lambda x: layer.double()(x)[0].sin())


def of_attention(layer):
    return Field(lambda x: layer.double()(x, x, x)[0].sin())


TARGET = numbers(3, 4, seed=5)
PLACES = numbers(5, 3, seed=6)
TOLD = "a gradient reads what an operator saved for it: "
ACTIVATIONS = {
    name: getattr(nn, name)
    for name in ("Tanh", "Sigmoid", "Softplus", "GELU", "ELU", "SELU", "CELU", "SiLU", "Mish", "ReLU",
                 "ReLU6", "LeakyReLU", "Hardtanh", "Hardsigmoid", "Hardswish", "Softshrink", "Hardshrink", "PReLU",
                 "RReLU", "Tanhshrink")
}
FUNCTIONS = nn.functional
LAYERS = {
    "glu": (of_function(FUNCTIONS.glu), (3, 4)),
    "gelu by tanh": (of_function(lambda x: FUNCTIONS.gelu(x, approximate="tanh")), (3, 4)),
    "prelu of channels": (of_layer(nn.PReLU(4)), (3, 4)),
    "softmax": (of_function(lambda x: x.softmax(-1)), (3, 4)),
    "log_softmax": (of_function(lambda x: x.log_softmax(-1)), (3, 4)),
    "logit": (of_function(lambda x: torch.logit(x.sigmoid())), (3, 4)),
    "layer norm": (of_layer(nn.LayerNorm(4)), (3, 4)),
    "layer norm of planes": (of_layer(nn.LayerNorm((3, 4), elementwise_affine=False)), (2, 3, 4)),
    "group norm": (of_layer(nn.GroupNorm(2, 4)), (3, 4, 5)),
    "batch norm": (of_layer(nn.BatchNorm1d(4).eval()), (3, 4)),
    "convolution of one dimension": (of_layer(nn.Conv1d(4, 3, 2)), (2, 4, 5)),
    "convolution": (of_layer(nn.Conv2d(4, 3, 2, padding=1, stride=2)), (2, 4, 5, 5)),
    "convolution of groups": (of_layer(nn.Conv2d(4, 4, 2, groups=2, dilation=2)), (2, 4, 5, 5)),
    "transposed convolution": (of_layer(nn.ConvTranspose2d(4, 3, 2, stride=2)), (2, 4, 3, 3)),
    "average pool": (of_layer(nn.AvgPool2d(2)), (2, 3, 4, 4)),
    "adaptive average pool": (of_layer(nn.AdaptiveAvgPool2d(2)), (2, 3, 5, 5)),
    "bilinear upsampling": (of_layer(nn.Upsample(scale_factor=2, mode="bilinear")), (2, 3, 3, 4)),
    "bicubic upsampling": (of_layer(nn.Upsample(scale_factor=2, mode="bicubic")), (2, 3, 3, 4)),
    "nearest upsampling": (of_layer(nn.Upsample(scale_factor=2)), (2, 3, 4)),
    "reflection": (of_layer(nn.ReflectionPad2d(1)), (2, 3, 4, 4)),
    "replication": (of_layer(nn.ReplicationPad1d(1)), (2, 3, 4)),
    "slices": (of_function(lambda x: x[:, 1:3] * x[:, :2]), (3, 4)),
    "one place": (of_function(lambda x: x[:, 1] * x[:, 2].square()), (3, 4)),
    "a diagonal": (of_function(lambda x: x.diagonal().square()), (4, 4)),
    "windows": (of_function(lambda x: x.unfold(1, 2, 1).square()), (3, 6)),
    "squared error": (of_function(lambda x: FUNCTIONS.mse_loss(x, TARGET)), (3, 4)),
    "soft margin": (of_function(lambda x: FUNCTIONS.soft_margin_loss(x, TARGET.sign())), (3, 4)),
    "sums of products": (of_function(lambda x: torch.einsum("bij,bkj,bkl->bil", x, x, x)), (2, 3, 4)),
    "similarity": (of_function(lambda x: FUNCTIONS.cosine_similarity(x, x.roll(1, 0) * 2)), (3, 4)),
    "distance": (of_function(lambda x: FUNCTIONS.pairwise_distance(x, x.roll(1, 0) * 2)), (3, 4)),
    "recurrent cells": (lambda: of_recurrent(nn.RNN(4, 3)), (3, 2, 4)),
    "cells with memory": (lambda: of_recurrent(nn.LSTM(4, 3)), (3, 2, 4)),
    "attention": (lambda: of_attention(nn.MultiheadAttention(4, 2)), (3, 2, 4)),
    "cross entropy": (of_function(lambda x: FUNCTIONS.cross_entropy(x, torch.tensor([0, 1, 2]))), (3, 4)),
    "binary cross entropy": (of_function(
        lambda x: FUNCTIONS.binary_cross_entropy(x.sigmoid(), TARGET.sigmoid())), (3, 4)),
    "distances": (of_function(lambda x: torch.exp(-torch.cdist(x, PLACES))), (4, 3)),
    "products of attention": (of_function(lambda x: (x @ x.transpose(1, 2)).softmax(-1) @ x), (2, 3, 4)),
}


class Sums(unittest.TestCase):
    """Rules for every run: nothing is left over, the parts recover, and the reference is the model's."""

    def judge(self, model, value, baseline, dims=-1, **choices):
        torch.manual_seed(11)
        inputs = [addend.Input(value, dims=dims, baseline=baseline)]
        result = addend.compile(model, preset="faithful", **choices).decompose(*inputs)
        self.assertNotIn("failed", " ".join(result.notes))
        parts = result[result.names[0]]
        expected = model(value.clone()).detach()
        reference = model((torch.zeros_like(value) + baseline).clone()).detach()
        self.same(parts.recovery.torch(), expected, 1e-9, "recovery")
        self.same(parts.reference.torch(), reference, 1e-12, "reference")
        return parts, expected, reference

    def exact(self, model, value, baseline, **choices):
        parts, expected, reference = self.judge(model, value, baseline, **choices)
        components = parts.components.torch() if hasattr(parts.components, "torch") else parts.components
        self.same(components.sum(0) + reference, expected, 1e-8, "components and reference")

    def same(self, one, other, bound, what):
        size = max(float(other.abs().max()), 1.0)
        self.assertLessEqual(float((one - other).abs().max()), bound * size, what)


class Derivatives(Sums):
    @of("flow of a Hamiltonian")
    def test_flow(self):
        for name, activation in ACTIVATIONS.items():
            for baseline in (0.0, 0.3):
                with self.subTest(name, baseline=baseline):
                    torch.manual_seed(2)
                    self.exact(Flow(activation()).double().eval(), numbers(3, 4), baseline)

    @of("gradients of layers")
    def test_layers(self):
        for name, (make, shape) in LAYERS.items():
            with self.subTest(name):
                torch.manual_seed(2)
                self.exact(make(), numbers(*shape), numbers(*shape, seed=4))

    @of("gradients of layers")
    def test_replays_have_the_gradients_of_their_own_inputs(self):
        """Tensors that an operator saves for its gradient are no constants of the program."""
        for name, (make, shape) in LAYERS.items():
            with self.subTest(name):
                torch.manual_seed(2)
                model, other = make(), numbers(*shape, seed=4)
                program = addend.compile(model).record(numbers(*shape))
                replayed = program.replay(other)
                self.same(replayed[replayed.names[0]].torch(), model(other.clone()).detach(), 1e-12, "replay")

    @of("gradients of layers")
    def test_what_only_the_forward_operator_knows_is_told(self):
        """A gradient by a parameter begins at nothing that the model was given or computed: the norm is seen whole."""
        for norm in (nn.GroupNorm(1, 4), nn.LayerNorm(4)):
            with self.subTest(norm):
                torch.manual_seed(2)
                model, value = OfWeight(norm).double(), numbers(3, 4)
                compiled = addend.compile(model, preset="faithful")
                asked = addend.Input(value, dims=-1, baseline=numbers(3, 4, seed=4))
                self.assertIn(TOLD, " ".join(compiled.decompose(asked).notes))
                self.assertIn(TOLD, " ".join(compiled.explain(asked, targets=["0"]).notes))
                compared = compiled.decompose(asked, verify_reference=True)
                self.assertIn("the reference is not what the model gives", " ".join(compared.notes))
                program = compiled.record(value)
                self.assertIn(TOLD, " ".join(program.replay(value).notes))
                asked = addend.Input(value, dims=-1, baseline=numbers(3, 4, seed=4))
                recorded = program.model().decompose(asked)
                self.assertIn(TOLD, " ".join(recorded.notes))
                for results in (
                    compiled.decompose(asked),
                    compiled.explain(asked, targets=["0"]),
                    recorded,
                    program.model().explain(asked, targets=["0"]),
                ):
                    self.assertEqual(results.report["reference_is_model_on_baseline"], "unknown")
                    self.assertIn("saved for it", results.report["reference_reason"])
                self.assertEqual(compared.report["reference_is_model_on_baseline"], "no")

    @of("gradients of layers")
    def test_a_reference_that_may_be_wrong_is_not_that_of_the_model(self):
        """Wherever the note stands and nothing was verified, the report does not know, as for a gated cell."""
        torch.manual_seed(2)
        model, value = of_recurrent(nn.GRU(4, 3, batch_first=True)), numbers(3, 2, 4)
        compiled = addend.compile(model, preset="faithful")
        asked = addend.Input(value, dims=-1, baseline=0.3)
        for results in (compiled.decompose(asked), compiled.explain(asked, targets="0,0,0")):
            said = TOLD in " ".join(results.notes)
            off = (compiled.decompose(asked)[0].reference.torch() - model(torch.full_like(value, 0.3)).detach()).abs().max()
            self.assertEqual(said, float(off) > 1e-9)
            self.assertEqual(results.report["reference_is_model_on_baseline"], "unknown" if said else "yes")

    @of("gradients of layers")
    def test_gradients_without_a_rule_are_refused_with_advice(self):
        model = of_function(FUNCTIONS.logsigmoid)()
        with self.assertRaisesRegex(addend.Error, "no composition rule for aten::log_sigmoid_backward.*missing_rule=absorb"):
            self.judge(model, numbers(3, 4), 0.1)

    @of("gradients of layers")
    def test_a_seed_is_nothing_that_an_operator_saved(self):
        seeded = torch.tensor([[1.0, 2.0, 3.0, 4.0]], dtype=DOUBLE)

        def of_seed(x):
            with torch.enable_grad():
                x = x if x.requires_grad else x.requires_grad_()
                return torch.autograd.grad(x.sin(), x, seeded.expand_as(x), create_graph=True)[0]

        own = addend.compile(of_seed, preset="faithful").decompose(addend.Input(numbers(3, 4), dims=-1))
        self.assertNotIn(TOLD, " ".join(own.notes))

    @of("gradients of layers")
    def test_second_gradients_of_what_bends_at_once(self):
        """LibTorch keeps no memory for the zeros that the gradient of a sign is."""
        for name, function in {"abs": lambda x: (x.abs() * x).sin(), "softsign": lambda x: FUNCTIONS.softsign(x) * x}.items():
            with self.subTest(name):
                first = of_function(function)()

                def second(x):
                    with torch.enable_grad():
                        x = x if x.requires_grad else x.requires_grad_()
                        return torch.autograd.grad(first(x).sum(), x, create_graph=True)[0]

                value = numbers(3, 4)
                self.judge(second, value, value / 2)

    @of("gradients of layers")
    def test_gradients_by_weights(self):
        """A step of learning inside the model: gradients by what is not the input."""
        torch.manual_seed(2)
        weight, kernel = numbers(2, 4), numbers(3, 2, 2, 2)

        def by_weight(x):
            with torch.enable_grad():
                own = weight.clone().requires_grad_()
                return torch.autograd.grad(torch.tanh(x @ own.t()).square().sum(), own, create_graph=True)[0]

        def by_kernel(x):
            with torch.enable_grad():
                own = kernel.clone().requires_grad_()
                return torch.autograd.grad(torch.conv2d(x, own, padding=1).sin().sum(), own, create_graph=True)[0]

        self.exact(by_weight, numbers(3, 4), 0.1)
        self.exact(by_kernel, numbers(2, 2, 4, 4), 0.1)


class Places(Sums):
    @of("places of what is true")
    def test_where_of_one_argument(self):
        base = numbers(12)
        functions = {
            "elements": lambda x: x[torch.where(x > 0)],
            "of integers": lambda x: x[torch.where((x > 0).long())],
            "rows": lambda x: x.new_zeros(3).index_add(0, torch.where(x.view(3, 4) > 0)[0], x[x > 0]),
            "numbers": lambda x: x * torch.where(x.view(3, 4))[0].sum(),
        }
        # The baseline has the same true elements, so that the reference is what the model gives there.
        for name, function in functions.items():
            for value in (base, base.abs() + 0.1):
                for grad in (True, False):
                    with self.subTest(name, grad=grad), torch.set_grad_enabled(grad):
                        self.judge(function, value, value / 2, dims=0)

    @of("dimensions by name")
    @unittest.skipUnless(hasattr(torch.Tensor, "refine_names"), "PyTorch 2.15 has no named dimensions any more")
    def test_named_dimensions(self):
        functions = {
            "sum": lambda x: x.refine_names("N", "C").sum("C").rename(None),
            "mean": lambda x: x.refine_names("N", "C").mean("N").rename(None),
            "softmax": lambda x: x.refine_names("N", "C").softmax("N").rename(None),
            "max": lambda x: x.refine_names("N", "C").max("N")[0].rename(None),
        }
        for name, function in functions.items():
            with self.subTest(name):
                try:
                    self.judge(function, numbers(3, 4), 0.1)
                except addend.Error as error:
                    self.assertRegex(str(error), "name|rule", name)


class Attend(nn.Module):
    """Attention over positions of which some are masked by the input itself."""

    def __init__(self, low, way):
        super().__init__()
        self.low, self.way = low, way
        self.score = nn.Linear(4, 1)

    def forward(self, x, seen):
        scores = self.score(x).squeeze(-1)
        if self.way == "filled":
            scores = scores.masked_fill(seen == 0, self.low)
        elif self.way == "chosen":
            scores = torch.where(seen == 0, torch.full_like(scores, self.low), scores)
        else:
            scores = scores + (seen == 0).to(scores.dtype) * self.low
        return (scores.softmax(-1).unsqueeze(-1) * x).sum(1)


SEEN = torch.tensor([[1.0, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 0], [0, 1, 1, 0, 1, 1]])
OTHER = torch.tensor([[0.0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1], [1, 0, 0, 1, 1, 0]])


class FarMasks(unittest.TestCase):
    @of("masks of the input's own")
    def test_masks_of_the_baseline(self):
        for dtype in (SINGLE, DOUBLE):
            for low in (-1e4, -1e8, -1e9, -2e10, -1e12, torch.finfo(dtype).min):
                for way in ("filled", "chosen", "added"):
                    for name, other in (("all masked", 0.0), ("others masked", OTHER), ("none masked", 1.0)):
                        for backward in (False, True):
                            with self.subTest(dtype=dtype, low=low, way=way, baseline=name, backward=backward):
                                # The lowest number that there is swallows scores, and a row that sees nothing else
                                # at one end moves by what is lost: refused, not guessed.
                                if low == torch.finfo(dtype).min and name == "all masked" and not backward:
                                    with self.assertRaisesRegex(addend.Error, "tracing failure.*softmax"):
                                        self.follow(low, way, other, dtype, backward)
                                    continue
                                self.follow(low, way, other, dtype, backward)

    def follow(self, low, way, other, dtype, backward):
        torch.manual_seed(7)
        model = Attend(low, way).to(dtype)
        x, seen = numbers(3, 6, 4).to(dtype), SEEN.to(dtype)
        base = other if isinstance(other, float) else other.to(dtype)
        compiled = addend.compile(model, preset="faithful", conditions="baseline")
        inputs = [addend.Input(x, dims=1, baseline=0.0), addend.Input(seen, dims=1, baseline=base)]
        expected = model(x, seen).detach()
        reference = model(torch.zeros_like(x), torch.zeros_like(seen) + base).detach()
        bound = 1e-5 if dtype == SINGLE else 1e-10
        if backward:
            number = addend.compile(lambda a, b: model(a, b).sum(), preset="faithful", conditions="baseline")
            told = number.explain(*inputs)
            self.assertNotIn("failed", " ".join(told.notes))
            return
        result = compiled.decompose(*inputs)
        self.assertNotIn("failed", " ".join(result.notes))
        parts = result[result.names[0]]
        self.assertTrue(bool(torch.isfinite(parts.recovery.torch()).all()))
        self.assertLessEqual(float((parts.recovery.torch() - expected).abs().max()), bound)
        self.assertLessEqual(float((parts.reference.torch() - reference).abs().max()), bound)

    @of("masks of the input's own")
    def test_masks_of_one_end_in_single_precision(self):
        """Each end masks other keys, so that a score moves by all of the mask."""
        torch.manual_seed(0)
        score = nn.Linear(4, 1)
        for low in (-50.0, -1e3, -3e3, -1e4, -65504.0, -1e5, -1e6, -1e9):
            for seed in range(3):
                with self.subTest(low=low, seed=seed):
                    def model(x, seen):
                        scores = score(x).squeeze(-1) + (1 - seen) * low
                        return (scores.softmax(-1)[..., None] * x).sum(1)

                    x, seen, other = numbers(3, 6, 4, seed=seed).float(), SEEN.float(), OTHER.float()
                    inputs = [addend.Input(x, dims=1, baseline=0.0), addend.Input(seen, dims=1, baseline=other)]
                    result = addend.compile(model, preset="faithful").decompose(*inputs)
                    self.assertNotIn("off", " ".join(result.notes))
                    recovered = result[result.names[0]].recovery.torch()
                    self.assertLessEqual(float((recovered - model(x, seen).detach()).abs().max()), 1e-5)

    @of("constants paid beside masks")
    def test_bias_and_causal_masks(self):
        for dtype in (SINGLE, DOUBLE):
            lowest = torch.finfo(dtype).min
            for low in (-1e4, -1e9, -1e30, lowest, float("-inf")):
                ways = {
                    "added": lambda s, m, low=low: s + torch.zeros_like(s).masked_fill(m, low),
                    "filled": lambda s, m, low=low: s.masked_fill(m, low),
                    "chosen": lambda s, m, low=low: torch.where(m, torch.full_like(s, low), s),
                    "added in a product": lambda s, m, low=low: torch.addmm(
                        torch.zeros_like(s).masked_fill(m, low), s, torch.eye(5, dtype=s.dtype)),
                }
                for way, hide in ways.items():
                    for bias in ("residual", "abs", "sign", "hybrid", "norm", "hybrid_threshold", "sign_threshold"):
                        with self.subTest(dtype=dtype, low=low, way=way, bias=bias):
                            self.pay(hide, bias, dtype)

    def pay(self, hide, bias, dtype):
        layer = nn.Linear(4, 4).to(dtype)

        def model(x):
            scores = x @ x.t()
            hidden = torch.ones(5, 5, dtype=torch.bool).triu(1)
            return layer(hide(scores, hidden).softmax(-1) @ x)

        x = numbers(5, 4, seed=1).to(dtype)
        result = addend.compile(model, preset="faithful", bias=bias).decompose(addend.Input(x, dims=0, baseline=0.1))
        self.assertNotIn("failed", " ".join(result.notes))
        parts = result[result.names[0]]
        recovered = parts.recovery.torch()
        self.assertTrue(bool(torch.isfinite(recovered).all()))
        self.assertLessEqual(float((recovered - model(x)).abs().max()), 1e-4 if dtype == SINGLE else 1e-9)


Table = table("derivatives and far masks", [], [Derivatives, Places, FarMasks])


if __name__ == "__main__":
    unittest.main()
