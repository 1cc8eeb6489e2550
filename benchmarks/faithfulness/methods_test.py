import unittest

import numpy
import torch
from torch import nn

import methods
import networks


class Game:
    """A subject whose output of class 0 is a sum over units and over pairs of units; that of class 1 is its negative."""

    def __init__(self, single, pairs):
        self.inputs = torch.ones(1, len(single))
        self._single, self._pairs = torch.tensor(single), torch.tensor(pairs)

    def model(self, units):
        value = units @ self._single + ((units @ self._pairs) * units).sum(-1)
        return torch.stack([value, -value], -1)

    def units(self, sample):
        return len(self._single)

    def variants(self, sample, kept):
        return torch.from_numpy(kept).float()


class SampledShapley(unittest.TestCase):
    def test_without_pairs_every_order_is_exact(self):
        game = Game([1.0, -2.0, 4.0], [[0.0] * 3] * 3)
        numpy.testing.assert_allclose(methods.SampledShapley(game, 1)(0, 0), [1, -2, 4])
        numpy.testing.assert_allclose(methods.SampledShapley(game, 1)(0, 1), [-1, 2, -4])

    def test_the_sum_is_exact_and_a_pair_is_shared_by_half(self):
        game = Game([1.0, 0.0, 0.0], [[0.0, 0.0, 0.0], [0.0, 0.0, 8.0], [0.0, 0.0, 0.0]])
        method = methods.SampledShapley(game, 2)
        drawn = numpy.array([method(0, 0) for _ in range(50)])
        numpy.testing.assert_allclose(drawn.sum(1), 9)
        numpy.testing.assert_allclose(drawn[:, 0], 1)
        # 1000 orders: the standard error of a share of 8 is 4 / sqrt(1000).
        numpy.testing.assert_allclose(drawn.mean(0), [1, 4, 4], atol=0.5)


class Given(nn.Module):
    """Two layers whose attention weights are given, one with two heads."""

    def __init__(self, *layers):
        super().__init__()
        self.layers = [torch.tensor(layer).log() for layer in layers]
        self.softmaxes = nn.ModuleList(nn.Softmax(-1) for _ in layers)

    def forward(self, inputs):
        for softmax, scores in zip(self.softmaxes, self.layers):
            softmax(scores[None])
        return inputs


class AttentionRollout(unittest.TestCase):
    def test_product_of_layers(self):
        subject = Game([0.0, 0.0], [[0.0] * 2] * 2)
        # Heads are averaged to [[1, 0], [0.5, 0.5]]; the second layer pays half of the rest to itself.
        subject.model = Given([[[1.0, 0.0], [0.25, 0.75]], [[1.0, 0.0], [0.75, 0.25]]], [[[1.0, 0.0], [1.0, 0.0]]])
        # (A + I) / 2 is [[1, 0], [0.25, 0.75]], then [[1, 0], [0.5, 0.5]]: 0.5 + 0.5 * 0.25 and 0.5 * 0.75.
        numpy.testing.assert_allclose(methods.AttentionRollout(subject)(0, 0), [0.625, 0.375], rtol=1e-6)

    def test_weights_of_the_decoder_are_causal_and_all_of_it(self):
        task = type("Task", (), {"tokens": 5, "units": 4, "classes": 3})
        network = networks.Decoder(task, width=8, heads=2, layers=3).eval()
        inputs = network.embed(torch.tensor([[1, 2, 3, 4]]))
        outputs, layers = methods.run_with_attention(network, inputs)
        self.assertEqual([tuple(weights.shape) for weights in layers], [(1, 2, 4, 4)] * 3)
        for weights in layers:
            self.assertTrue(torch.allclose(weights.sum(-1), torch.ones(1, 2, 4)))
            self.assertEqual(float(weights.triu(1).abs().max()), 0)
        self.assertEqual(len(methods.run_with_attention(network, inputs)[1]), 3)
        torch.testing.assert_close(outputs, network(inputs))


class Product(nn.Module):
    """One layer: the first token's attention to both tokens, by their first numbers, times their second numbers."""

    def __init__(self):
        super().__init__()
        self.softmax = nn.Softmax(-1)

    def forward(self, states):
        value = (self.softmax(states[:, None, None, :, 0])[:, 0, 0] * states[..., 1]).sum(-1)
        return torch.stack([value, -value], -1)


class IntegratedGradientsOfContent(unittest.TestCase):
    def test_attention_is_the_samples(self):
        subject = Game([0.0, 0.0], [[0.0] * 2] * 2)
        subject.model = subject.run_embedded = Product()
        subject.inputs = torch.tensor([[[0.0, 4.0], [float(numpy.log(3)), 8.0]]])
        subject.baselines, subject.embed = torch.zeros_like(subject.inputs), lambda inputs: inputs
        subject.labels = torch.tensor([[0, 1]])
        # Attention is 1/4 and 3/4.
        numpy.testing.assert_allclose(methods.IntegratedGradientsOfContent(subject)(0, 0), [1, 6], rtol=1e-5)
        free = methods.IntegratedGradients(subject)(0, 0)
        numpy.testing.assert_allclose(free.sum(), 7, rtol=1e-5)
        self.assertGreater(abs(free[0] - 1), 0.1)


if __name__ == "__main__":
    unittest.main()
