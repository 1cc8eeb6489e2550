"""Splits that start inside a model, beside plain PyTorch: the model is cut in two by hand, and its second half followed
from the baseline to the value with PyTorch's own gradients."""

import io
import unittest

import numpy as np
import torch
from torch import nn

import addend

HEADS = "aten::contiguous"


class Network(nn.Module):
    """An attention of two heads of three, and what mixes them. The second half is affine but for one tanh, for which the
    straight line through all of it is that of each operator."""

    def __init__(self):
        super().__init__()
        self.query = nn.Linear(6, 6)
        self.mix = nn.Linear(6, 5)
        self.output = nn.Linear(5, 3)

    def heads(self, x):
        query = self.query(x).reshape(-1, 2, 3).transpose(0, 1)
        weights = torch.softmax(torch.matmul(query, query.transpose(1, 2)), dim=-1)
        return torch.matmul(weights, query).transpose(0, 1).contiguous()

    def rest(self, heads):
        return self.output(torch.tanh(self.mix(heads.flatten(1))))

    def forward(self, x):
        return self.rest(self.heads(x))


class Shifted(Network):
    """Two arguments, two results."""

    def forward(self, x, shift):
        heads = self.heads(x)
        return {"logits": self.rest(heads) + shift, "best": self.rest(heads).argmax(1)}


def elements(half, value, baseline, steps=2000):
    """Contributions of each element of `value` to each output of `half` along the straight line, [*outputs, *value]."""
    baseline = torch.as_tensor(baseline, dtype=value.dtype).expand_as(value)
    total = 0
    for k in range(steps):
        point = baseline + (k + 0.5) / steps * (value - baseline)
        total = total + torch.autograd.functional.jacobian(half, point) / steps
    return total * (value - baseline)


class InsideTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(5)
        self.network = Network().double().eval()
        self.x = torch.randn(4, 6, dtype=torch.double)
        self.baseline = 0.1 * torch.randn(2, 3, dtype=torch.double)
        with torch.no_grad():
            self.value = self.network(self.x)
            self.heads = self.network.heads(self.x)
            self.reference = self.network.rest(self.baseline.expand_as(self.heads))
        self.expected = elements(self.network.rest, self.heads, self.baseline)  # [4, 3, 4, 2, 3]
        file = io.BytesIO()
        torch.jit.save(torch.jit.script(self.network), file)
        self.model = addend.load_model(file.getvalue())

    def inside(self, dims=1, **more):
        return addend.Inside(HEADS, dims, baseline=self.baseline, **more)

    def expect(self, actual, expected):
        np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), atol=1e-6)

    def test_is_the_second_half_of_the_model(self):
        self.assertGreater(self.expected.abs().max().item(), 0.05)
        results = self.model.decompose(self.x, inside=self.inside(names=["left"]), probes=[HEADS])
        output = results[0]
        self.expect(output.value, self.value)
        self.expect(output.reference, self.reference)
        self.expect(output.components, self.expected.sum((2, 4)).permute(2, 0, 1))
        self.expect(output.leftover, torch.zeros(4, 3))
        self.expect(results[HEADS].value, self.heads)
        explanation = results.explain((1, 2))
        self.assertEqual(explanation.names, ["left", "position 1"])
        told = explanation.to_dict()["inputs"][1]
        self.assertEqual((told["name"], told["inside"], told["shape"]), (HEADS, True, [4, 2, 3]))
        # Every neuron; the tensor is told by its number as well, and inputs by their names.
        first = min(check["index"] for check in results.report["checks"])

        def shape(number):
            return self.model.decompose(self.x, inside=self.inside(), probes="#%d" % number)[1].shape

        number = next(number for number in range(first, 0, -1) if shape(number) == (4, 2, 3))
        neurons = self.model({"x": self.x}, inside=[addend.Inside("#%d" % number, (-2, -1), baseline=self.baseline)])
        self.expect(neurons.components, self.expected.sum(2).flatten(2).permute(2, 0, 1))
        # A module, by labels: one column has none, and its value stays.
        labels = [0, 1, -1, 1, 0]
        with torch.no_grad():
            mixed = self.network.mix(self.heads.flatten(1))
        start = torch.where(torch.tensor(labels) < 0, mixed, torch.tensor(0.5, dtype=torch.double))
        own = elements(lambda m: self.network.output(torch.tanh(m)), mixed, start).sum(2)
        parts = self.model(self.x, inside=addend.Inside("mix", labels=labels, baseline=0.5, first_component=1))
        self.assertEqual(parts.numc, 3)
        self.expect(parts.components[0], torch.zeros(4, 3))
        self.expect(parts.components[1], own[..., [0, 4]].sum(-1))
        self.expect(parts.components[2], own[..., [1, 3]].sum(-1))

    def test_is_attributed_element_by_element(self):
        found = self.model.explain(self.x, inside=self.inside(), targets=["2,0", "3,1"])
        self.assertEqual(found.inputs, [None])
        self.assertEqual(found.inside[0].shape, (2, 4, 2, 3))
        self.expect(found.inside[0], torch.stack([self.expected[2, 0], self.expected[3, 1]]))
        self.expect([target.contributions for target in found], found.inside[0].numpy().sum((1, 3)))
        self.assertEqual(self.model.explain(addend.Input(self.x, 1), targets="0,0").inside, [])

    def test_attribute(self):
        rows = torch.stack([self.expected[row, 1, row] for row in range(4)])
        given, delta = self.model.attribute(self.x, inside=self.inside(), target=1, return_convergence_delta=True)
        self.assertIsInstance(given, torch.Tensor)
        self.expect(given, rows)
        self.expect(delta, torch.zeros(4))
        # All elements are attributed to, whether they are told to be split or not; the library is that of the inputs.
        whole = addend.Inside(HEADS, baseline=self.baseline)
        (given,) = self.model.attribute((self.x.numpy(),), inside=[whole], target=1)
        # Whatever gives them one by one; none is none.
        self.expect(self.model.attribute(self.x, inside=(one for one in (whole,)), target=1)[0], torch.as_tensor(given))
        self.expect(
            self.model.attribute(self.x, inside=[], target=1), self.model.attribute(self.x, target=1)
        )
        # All arguments are plain.
        self.expect(
            self.model.attribute((), inside=whole, target=1, additional_forward_args=self.x), torch.as_tensor(given)
        )
        self.assertIsInstance(given, np.ndarray)
        self.expect(given, rows)
        self.assertIsNone(whole.dims)
        self.expect(self.model.attribute({"x": self.x}, inside=whole, target=(1, 1), each_example=False)[0, 1], rows[1])
        with self.assertRaisesRegex(TypeError, "has its own"):
            self.model.attribute(self.x, 0, inside=whole)

    def test_live_models(self):
        network = Shifted().double().eval()
        network.load_state_dict(self.network.state_dict())
        shift = torch.randn(3, dtype=torch.double)
        model = addend.compile(network, inside=self.inside(), preset="faithful")
        results = model.decompose(self.x, shift=shift)
        self.assertEqual(list(results.output), ["logits", "best"])
        logits = results.output["logits"]
        self.expect(logits.value, self.value + shift)
        self.expect(logits.components, self.expected.sum((2, 4)).permute(2, 0, 1))
        self.assertTrue(torch.equal(results.output["best"], self.value.argmax(1)))
        self.expect(model(self.x, shift)["logits"].components, logits.components)
        self.expect(model.explain(self.x, shift, targets="2,0").inside[0][0], self.expected[2, 0])
        rows = torch.stack([self.expected[row, 1, row] for row in range(4)])
        self.expect(model.attribute(self.x, target=1, additional_forward_args=shift), rows)
        self.expect(addend.attribute(self.network, {"x": self.x}, target=1, inside=self.inside()), rows)

    def test_a_live_model_says_that_a_name_is_not_enough(self):
        live = addend.compile(lambda x: x + 1 + x)
        for ask in (live.decompose, live.explain):
            with self.assertRaisesRegex(ValueError, "the model calls aten::add 2 times; say which"):
                ask(self.x, inside=addend.Inside("aten::add", 0))

    def test_tells_what_does_not_fit(self):
        def refused(inside, value=self.x, error=ValueError):
            messages = []
            for ask in (self.model.decompose, self.model.explain):
                with self.assertRaises(error) as caught:
                    ask(value, inside=inside)
                messages.append(str(caught.exception))
            self.assertEqual(*messages)
            return messages[0]

        self.assertIn("nothing inside the model is called nowhere", refused(addend.Inside("nowhere", 0)))
        self.assertIn("does not call aten::conv2d", refused(addend.Inside("aten::conv2d", 0)))
        self.assertIn("split along dimensions or by labels", refused(addend.Inside(HEADS)))
        self.assertIn("of shape f64[4, 2, 3] has no dimension 3", refused(addend.Inside(HEADS, 3)))
        self.assertIn("labels of shape", refused(addend.Inside(HEADS, labels=[0, 1])))
        self.assertIn("a baseline of shape", refused(addend.Inside(HEADS, 1, baseline=np.zeros(4))))
        self.assertIn("the arguments are plain", refused(self.inside(), addend.Input(self.x, 1)))
        self.assertIn("the arguments are plain", refused(self.inside(), addend.Input(self.x, parts=self.x[None])))
        self.assertIn("depends on another", refused([self.inside(), addend.Inside("mix", 1)], error=addend.Error))
        self.assertIn("already", refused([self.inside(), self.inside()]))
        self.assertIn("not a str", refused(HEADS, error=TypeError))
        # Tensors that come before the split are refused.
        for ask in ({"probes": "query"}, {"probes": [HEADS, "aten::softmax"]}):
            with self.assertRaisesRegex(addend.InvalidArgument, "does not depend on what is split"):
                self.model.decompose(self.x, inside=self.inside(), **ask)
        with self.assertRaisesRegex(addend.InvalidArgument, "query does not depend on what is split"):
            self.model.explain(self.x, inside=self.inside(), targets="0,0", at="query")
        with self.assertRaisesRegex(TypeError, "pass inside=Inside"):
            self.model.decompose(self.x, self.inside())
        with self.assertRaisesRegex(TypeError, "in one way"):
            addend.Inside(HEADS, 1, labels=[0])
        with self.assertRaises(ValueError):
            addend.Inside(HEADS, 1, first_component=-1)
        self.assertEqual(repr(self.inside()), "Inside('aten::contiguous', split='dims')")


if __name__ == "__main__":
    unittest.main()
