"""Heads of attention and experts by name, beside plain PyTorch: behind the attention or the experts these models are
linear, so that what a part gives is what the model loses without it."""

import copy
import io
import unittest

import numpy as np
import torch
from torch import nn

import addend


class Written(nn.Module):
    """Attention with key and value heads that serve several query heads each, written out."""

    def __init__(self, project=True, keys=2):
        super().__init__()
        self.query, self.key, self.value = nn.Linear(8, 8), nn.Linear(8, 2 * keys), nn.Linear(8, 2 * keys)
        self.drop = nn.Dropout(0.1)
        self.keys = keys
        if project:
            self.out = nn.Linear(8, 8)

    def forward(self, x):
        batch, steps, _ = x.shape
        query = self.query(x).view(batch, steps, 4, 2).transpose(1, 2)
        key, value = [
            layer(x).view(batch, steps, self.keys, 2).transpose(1, 2).repeat_interleave(4 // self.keys, 1)
            for layer in (self.key, self.value)
        ]
        weights = self.drop(torch.softmax(query @ key.transpose(-1, -2) / 2**0.5, -1))
        mixed = (weights @ value).transpose(1, 2).reshape(batch, steps, 8)
        return self.drop(self.out(mixed)) if hasattr(self, "out") else mixed


class Multiplied(nn.Module):
    """A projection as GPT-2 has it: one product of all rows, the bias first."""

    def __init__(self):
        super().__init__()
        self.attention = Written(project=False)
        self.weight, self.bias = nn.Parameter(torch.randn(8, 8)), nn.Parameter(torch.randn(8))

    def forward(self, x):
        mixed = self.attention(x)
        return torch.addmm(self.bias, mixed.view(-1, 8), self.weight).view(mixed.shape)


class Torch(nn.Module):
    def __init__(self, batch_first, need_weights):
        super().__init__()
        self.inner = nn.MultiheadAttention(8, 4, batch_first=batch_first)
        self.need_weights = need_weights

    def forward(self, x):
        return self.inner(x, x, x, need_weights=self.need_weights)[0]


class Layers(nn.Module):
    def __init__(self, attention):
        super().__init__()
        self.layers = nn.ModuleList([nn.ModuleDict({"first": nn.Linear(8, 8), "attn": attention})])
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        x = torch.tanh(self.layers[0]["first"](x))
        return self.head((x + self.layers[0]["attn"](x)).mean(1))


def without_columns(model, weight, columns):
    """A copy of a model in which a projection reads zero in some columns."""
    model = copy.deepcopy(model)
    with torch.no_grad():
        weight(model)[:, columns] = 0
    return model


class Router(nn.Module):
    """A mixture of experts, two for each token."""

    def __init__(self, experts):
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.mlp = nn.ModuleDict({"gate": nn.Linear(6, 5), "experts": experts})
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        x = torch.tanh(self.first(x))
        weights, chosen = torch.softmax(self.mlp["gate"](x), -1).topk(2, -1)
        return self.head(x + self.route(x, weights, chosen)).mean(0)


class Modules(Router):
    """Each expert a module of its own."""

    def __init__(self):
        super().__init__(nn.ModuleList(nn.Sequential(nn.Linear(6, 4), nn.GELU(), nn.Linear(4, 6)) for _ in range(5)))

    def route(self, x, weights, chosen):
        mixed = torch.zeros_like(x)
        for k, expert in enumerate(self.mlp["experts"]):
            token, place = torch.where(chosen == k)
            if len(token):
                mixed = mixed.index_add(0, token, expert(x[token]) * weights[token, place, None])
        return mixed


class Slices(nn.Module):
    """The weights of all experts in two parameters, as transformers has them from version 5 on."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Parameter(torch.randn(5, 4, 6)), nn.Parameter(torch.randn(5, 6, 4))

    def forward(self, x, weights, chosen):
        mixed = torch.zeros_like(x)
        for k in range(5):
            token, place = torch.where(chosen == k)
            if len(token):
                hidden = nn.functional.gelu(nn.functional.linear(x[token], self.up[k]))
                mixed.index_add_(0, token, nn.functional.linear(hidden, self.down[k]) * weights[token, place, None])
        return mixed


class Packed(Router):
    def __init__(self):
        super().__init__(Slices())

    def route(self, x, weights, chosen):
        return self.mlp["experts"](x, weights, chosen)


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])

    def forward(self, x):
        return self.experts[0](x) + 2 * self.experts[1](self.experts[0](x * 3) + 1)


class NamedPartsTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(7)
        self.x = torch.randn(1, 5, 8, dtype=torch.double)
        self.tokens = torch.randn(4, 6, dtype=torch.double)

    def expect(self, actual, expected):
        np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), atol=1e-12)

    def expect_heads(self, network, weight, where="layers.0.attn", heads=True):
        """Each head gives what is lost where the projection does not read it."""
        network = network.double().eval()
        losses = [
            (network(self.x) - without_columns(network, weight, slice(2 * h, 2 * h + 2))(self.x)).detach()[0]
            for h in range(4)
        ]
        live = addend.compile(network)
        results = live.decompose(self.x, inside=addend.Inside(where, heads=heads, baseline=0))
        self.assertEqual(results.explain(0).names, ["head %d" % h for h in range(4)])
        self.expect(results[0].components[:, 0], torch.stack(losses))
        found = live.explain(self.x, inside=addend.Inside(where, heads=heads, baseline=0), targets="0,1")
        self.expect(found[0].contributions, [loss[1] for loss in losses])
        self.assertEqual(found[0].names, ["head %d" % h for h in range(4)])
        return found

    def test_heads_of_modules(self):
        self.expect_heads(Layers(Written()), lambda model: model.layers[0]["attn"].out.weight)
        self.expect_heads(Layers(Written()), lambda model: model.layers[0]["attn"].out.weight, heads=4)
        for batch_first in (True, False):
            for need_weights in (True, False):
                with self.subTest(batch_first=batch_first, need_weights=need_weights):
                    self.expect_heads(
                        Layers(Torch(batch_first, need_weights)),
                        lambda model: model.layers[0]["attn"].inner.out_proj.weight,
                    )
        network = Layers(Multiplied())

        class Turned:
            """Columns of the projection are rows of this one."""

            def __init__(self, model):
                self.weight = model.layers[0]["attn"].weight

            def __setitem__(self, place, value):
                self.weight[place[1]] = value

        self.expect_heads(network, Turned)
        # The attention's module gives the heads here, as nothing is projected behind it.
        self.expect_heads(network, Turned, where="layers.0.attn.attention")

    def test_heads_where_nobody_asks_for_gradients(self):
        # PyTorch computes attention by one operator there, which shows no heads.
        def attention(need_weights):
            return Layers(Torch(True, need_weights)), "layers.0.attn", lambda model: model.layers[0]["attn"].inner

        def encoder():
            layer = nn.TransformerEncoderLayer(8, 4, 16, dropout=0.0, batch_first=True)
            return nn.Sequential(layer), "0.self_attn", lambda model: model[0].self_attn

        for name, make in {
            "weights": lambda: attention(True),
            "no weights": lambda: attention(False),
            "an encoder": encoder,
        }.items():
            network, where, module = make()
            network = network.double().eval()
            inside = addend.Inside(where, heads=True, baseline=0)
            followed = addend.compile(network).explain(self.x, inside=inside, targets=(0,) * network(self.x).dim())
            self.assertNotIn("fused", " ".join(followed.notes))
            for frozen, follow in ((True, True), (False, False), (True, False)):
                with self.subTest(name, frozen=frozen, follow=follow), torch.set_grad_enabled(follow):
                    network.requires_grad_(not frozen)
                    live = addend.compile(network)
                    found = live.explain(self.x, inside=inside, targets=(0,) * network(self.x).dim())
                    self.expect(found[0].contributions, followed[0].contributions)
                    self.expect(found.value, network(self.x))
                    self.assertRegex(" ".join(found.notes), "^.*%s.* ran without PyTorch's fused attention" % where)
                    results = live.decompose(self.x, inside=inside)
                    self.expect(results.explain((0,) * network(self.x).dim()).contributions, followed[0].contributions)
                    self.assertIs(type(module(network).num_heads), int)
            if name != "an encoder":
                self.expect_heads(network, lambda model: module(model).out_proj.weight, where)
        with torch.no_grad():
            recorded = addend.compile(network).record(self.x).model()
            with self.assertRaisesRegex(ValueError, "one operator, which shows no heads; .* ask with gradients enabled"):
                recorded.explain(self.x, inside=inside, targets=(0, 0, 0))

    @unittest.skipUnless(hasattr(nn.functional, "scaled_dot_product_attention"), "needs PyTorch 2")
    def test_heads_of_fused_attention(self):
        class Fused(Written):
            def forward(self, x):
                parts = [layer(x).view(1, -1, 4, 2).transpose(1, 2) for layer in (self.query, self.key, self.value)]
                return self.out(nn.functional.scaled_dot_product_attention(*parts).transpose(1, 2).flatten(2))

        self.expect_heads(Layers(Fused(keys=4)), lambda model: model.layers[0]["attn"].out.weight)

    def test_heads_of_operators(self):
        network = Layers(Written())

        def weight(model):
            return model.layers[0]["attn"].out.weight

        self.expect_heads(network, weight, where="aten::matmul:1", heads=4)
        self.expect_heads(network, weight, where="aten::reshape", heads=4)

    def test_files_and_several(self):
        network = Layers(Written()).double().eval()
        file = io.BytesIO()
        torch.jit.save(torch.jit.trace(network, self.x), file)
        inside = addend.Inside("layers.0.attn", heads=True, baseline=0)
        live = addend.compile(network).explain(self.x, inside=inside, targets="0,2")[0]
        model = addend.load_model(file.getvalue())
        # A traced file has the paths of the modules.
        found = model.explain(self.x, inside=inside, targets="0,2")[0]
        self.assertEqual(found.names, live.names)
        self.expect(found.contributions, live.contributions)
        self.expect(model.decompose(self.x, inside=inside).explain((0, 2)).contributions, live.contributions)
        names = addend.Inside("layers.0.attn", heads=4, baseline=0, names=["left", "right"])
        self.assertEqual(model.explain(self.x, inside=names)[0].names, ["left", "right", "component 2", "component 3"])
        self.assertEqual(inside.heads, True)  # what was given stays as it is
        two = nn.ModuleList([nn.MultiheadAttention(8, 2, batch_first=True), nn.MultiheadAttention(8, 4, batch_first=True)])
        both = addend.compile(lambda x: (two[0](x, x, x)[0] + two[1](x, x, x)[0]).mean(1)).explain
        self.assertRaises(ValueError, both, self.x.float(), inside=inside)  # a function has no paths
        parallel = nn.Module()
        parallel.two = two
        parallel.forward = lambda x: (two[0](x, x, x)[0] + two[1](x, x, x)[0]).mean(1)
        found = addend.compile(parallel).explain(
            self.x.float(), inside=[addend.Inside("two.%d" % k, heads=True) for k in range(2)], targets=(0, 0)
        )
        self.assertEqual(
            found[0].names, ["two.0: head 0", "two.0: head 1"] + ["two.1: head %d" % h for h in range(4)]
        )
        # Attributed element by element, as any tensor inside.
        elements = addend.attribute(network, self.x, target=2, inside=inside)
        self.expect(elements.reshape(-1, 4, 2).sum((0, 2)), live.contributions)

    def expect_experts(self, network, silence):
        network = network.double().eval()
        found = addend.compile(network).explain(
            self.tokens, inside=addend.Inside("mlp.experts", experts=True, baseline=0), targets=1
        )
        weights = torch.softmax(network.mlp["gate"](torch.tanh(network.first(self.tokens))), -1)
        used = set(weights.topk(2, -1)[1].unique().tolist())
        self.assertEqual(found[0].names, ["expert %d" % k for k in sorted(used)])
        for contribution, k in zip(found[0].contributions, sorted(used)):
            other = copy.deepcopy(network)
            with torch.no_grad():
                silence(other, k)
                self.assertAlmostEqual(contribution, (network(self.tokens) - other(self.tokens))[1].item(), 12)

    def test_experts(self):
        def silence(model, k):
            model.mlp["experts"][k][2].weight.zero_()
            model.mlp["experts"][k][2].bias.zero_()

        network = Modules()
        self.expect_experts(network, silence)
        self.expect_experts(Packed(), lambda model, k: model.mlp["experts"].down[k].zero_())
        # With another baseline, and names.
        inside = addend.Inside("mlp.experts", experts=True, names=["a", "b", "c", "d", "e"], first_component=2)
        found = addend.compile(network).decompose(self.tokens, inside=inside)
        self.assertEqual(found.explain(0).names[2:], [n for n in found.explain(0).names if n in "abcde"])
        with self.assertRaisesRegex(TypeError, "explain\\(\\) has all of them"):
            addend.attribute(network, self.tokens, inside=inside, target=0)

    def test_what_passed_through_experts(self):
        """Relevance that passes through an expert is what the output moves by through it alone, along the line of the
        path rule."""
        network = Modules().double().eval()
        found = addend.compile(network, preset="faithful").explain(
            addend.Input(self.tokens, dims=0, baseline=0), targets=[0, 1], operators=True
        )
        passed = found.passed("mlp.experts.*")
        last = {}
        for one in found.operators:
            for path in passed:
                if one["module_path"] == path + ".2":
                    last[path] = one["passed"]
        self.assertEqual(passed, last)
        self.assertEqual(found.passed("head"), {"head": found.passed("*")["head"]})
        # Everything passes through the head: mean comes behind it.
        moved = [sum(one.contributions) for one in found]
        self.expect(found.passed("head")["head"], moved)
        # A module that is called twice has both; here the model is linear, and each share is a product.
        twice = Twice().double()
        row = torch.randn(1, 4, dtype=torch.double)
        found = addend.compile(twice).explain(addend.Input(row, dims=1, baseline=0), targets=(0, 0), operators=True)
        with torch.no_grad():
            first, second = twice.experts[0].weight, twice.experts[1].weight
            inner = (2 * second @ first @ (3 * row[0]))[0].item()
            self.expect(found.passed("experts.*")["experts.0"], [(first @ row[0])[0].item() + inner])
            self.expect(found.passed("experts.1")["experts.1"], [inner])
        with self.assertRaisesRegex(ValueError, "nothing passes through a module called nowhere"):
            found.passed("nowhere")
        with self.assertRaisesRegex(ValueError, "operators=True"):
            addend.compile(twice).explain(addend.Input(row, dims=1), targets=(0, 0)).passed("*")

    def test_tells_what_does_not_fit(self):
        def refused(*args, network=Layers(Written()).double().eval(), x=self.x, error=ValueError, **kwargs):
            with self.assertRaises(error) as caught:
                addend.compile(network).explain(x, inside=addend.Inside(*args, **kwargs), targets=0)
            return str(caught.exception)

        self.assertIn("nothing inside the model is called nowhere", refused("nowhere", heads=True))
        self.assertIn("has no attention", refused("head", heads=True))
        self.assertIn("has not 3 heads in dimension 1", refused("aten::matmul:1", heads=3))
        self.assertIn("not that of 3 heads", refused("layers.0.attn", heads=3))
        self.assertIn("the model calls aten::matmul 2 times", refused("aten::matmul", heads=4))
        self.assertIn("has no experts", refused("head", experts=True))
        two = nn.Sequential(Written(), Written()).double().eval()
        self.assertIn("more than one attention", refused("", network=two, heads=True))
        twice = Twice().double()
        row = torch.randn(1, 4, dtype=torch.double)
        self.assertIn("runs several times", refused("experts", network=twice, x=row, experts=True))
        for wrong in ({"dims": 1, "heads": 2}, {"experts": True, "labels": [0]}, {"heads": "four"}, {"heads": 1.5}):
            with self.assertRaises(TypeError):
                addend.Inside("layers", **wrong)
        with self.assertRaisesRegex(TypeError, "heads=8 says"):
            addend.Inside("aten::matmul:1", heads=True)
        with self.assertRaisesRegex(TypeError, "neither a module"):
            addend.Inside("#3", heads=4)
        self.assertEqual(repr(addend.Inside("a", heads=True)), "Inside('a', split='heads')")
        # A file whose run changes the next one is not run once more to look for heads.
        file = io.BytesIO()
        torch.jit.save(torch.jit.script(Counting()), file)
        with self.assertRaisesRegex(addend.Unimplemented, "would change the next one"):
            addend.load_model(file.getvalue()).explain(torch.ones(1, 2), inside=addend.Inside("", heads=2), targets=0)

    def test_a_live_model_is_left_as_one_run_leaves_it(self):
        network = Layers(Written()).double().train()
        network.register_buffer("calls", torch.zeros(()))
        plain = network.forward

        def forward(x):
            network.calls += 1
            return plain(x)

        network.forward = forward
        before = torch.get_rng_state()
        output = network(self.x)
        drawn = torch.rand(1)
        network.calls.zero_()
        torch.set_rng_state(before)
        inside = addend.Inside("layers.0.attn", heads=True, baseline=0)
        found = addend.compile(network).explain(self.x, inside=inside, targets=(0, 0))
        self.assertEqual((network.calls.item(), torch.rand(1)), (1, drawn))
        self.expect(found.value, output.detach())


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls.add_(1)
        return torch.softmax(x, -1) * self.calls


if __name__ == "__main__":
    unittest.main()
