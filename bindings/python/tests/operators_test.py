"""Operators that live models meet, and tensors that are unusual: fresh ones, empty ones, NaN and infinity."""

import unittest

import torch
from torch import nn
from torch.nn.utils import rnn

import addend


class OperatorsTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def check(self, function, *inputs, **policy):
        """Recovery and reference at every element, NaN and infinity included; returns the results."""
        results = addend.compile(function, preset="faithful", **policy).decompose(*inputs)
        with torch.no_grad():
            value = function(*[given.value for given in inputs])
        same = {"rtol": 1e-5, "atol": 1e-5, "equal_nan": True}
        torch.testing.assert_close(results[0].recovery.torch().detach(), value, **same)
        return results

    def test_fresh_tensors_go_through_composite_operators(self):
        linear = nn.Linear(4, 2)
        ways = {
            "expand_as": lambda y: y + torch.tensor(0.5).expand_as(y),
            "new_tensor": lambda y: y + y.new_tensor(0.5).expand_as(y),
            "view_as": lambda y: y + torch.tensor([[0.5, 0.2]]).view_as(y[:1]),
            "type_as": lambda y: y + torch.tensor([1, 2]).type_as(y) + torch.tensor([0.5, 0.2]).double().type_as(y),
            "broadcast_tensors": lambda y: sum(torch.broadcast_tensors(y, torch.tensor(0.5))),
            "distributions": lambda y: torch.distributions.Normal(y, 1.0, validate_args=False).log_prob(torch.ones(2)),
        }
        for name, way in ways.items():
            with self.subTest(name):
                x = torch.rand(3, 4)
                results = self.check(lambda x, way=way: way(linear(x)), addend.Input(x, 1))
                self.assertGreater(float(results[0].components.torch().abs().max()), 1e-3)

    def test_packed_sequences(self):
        lengths = torch.tensor([7, 4, 2])
        for cell in (nn.LSTM, nn.GRU, nn.RNN):
            for both_ways in (False, True):
                with self.subTest(cell.__name__, both_ways=both_ways):
                    network = cell(6, 5, num_layers=2, batch_first=True, bidirectional=both_ways).eval()

                    def run(x, network=network):
                        packed = rnn.pack_padded_sequence(x, lengths, batch_first=True)
                        return rnn.pad_packed_sequence(network(packed)[0], batch_first=True)[0]

                    x = torch.randn(3, 7, 6)
                    results = self.check(run, addend.Input(x, dims=1))
                    self.assertLess(float(results[0].leftover.torch().abs().max()), 1e-5)
                    # Elements behind the end of a sequence reach nothing.
                    self.assertEqual(float(results[0].components.torch()[4:, 1].abs().max()), 0)

    def test_indices_that_are_not_adjacent(self):
        x = torch.randn(3, 4, 5, 4)
        self.check(lambda x: x[:, [0, 1], :, [0, 1]], addend.Input(x, dims=0, baseline=torch.randn(3, 4, 5, 4)))
        self.check(lambda x: x[[0, 1], :, [0, 1]], addend.Input(x, dims=0, baseline=torch.randn(3, 4, 5, 4)))

    def test_empty_inputs_give_empty_results(self):
        network = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.LayerNorm(3), nn.Softmax(-1))
        for dims, numc in ((1, 4), (0, 0)):
            results = self.check(network, addend.Input(torch.zeros(0, 4), dims=dims))
            self.assertEqual(tuple(results[0].components.torch().shape), (numc, 0, 3))
        # An empty one beside another, and an empty result beside another.
        x = torch.randn(2, 4)
        joined = self.check(lambda x, y: torch.cat([x, y]), addend.Input(x, dims=1), addend.Input(torch.zeros(0, 4), 1))
        self.assertEqual(tuple(joined[0].components.torch().shape), (8, 2, 4))
        parts = addend.compile(lambda x: x.split([2, 0], 0)).decompose(addend.Input(x, dims=1))
        self.assertEqual([tuple(part.recovery.torch().shape) for part in parts], [(2, 4), (0, 4)])

    def test_nan_and_infinity_are_judged_where_they_arrive(self):
        x = torch.tensor([[1.0, float("nan"), 2.0], [float("inf"), 0.5, -1.0]])
        results = self.check(lambda x: x * 2 + 1, addend.Input(x, dims=1))
        self.assertIn("an input holds NaN or infinity, first at [0, 1]", " ".join(results.notes))
        self.check(lambda x: x.nan_to_num().clamp(-1, 3).exp(), addend.Input(x, dims=1))
        self.check(lambda x: x.nansum(1), addend.Input(x, dims=1))

    def test_infinite_results_are_leftover(self):
        entropy = self.check(torch.special.entr, addend.Input(torch.tensor([-0.5, 0.3, 2.0]), dims=0))
        self.assertEqual(float(entropy[0].leftover.torch()[0]), -float("inf"))
        self.assertIn("is NaN or infinite where its reference is not", " ".join(entropy.notes))
        explained = addend.compile(torch.special.entr, preset="faithful").explain(
            addend.Input(torch.tensor([-0.5, 0.3]), dims=0), targets=0
        )
        self.assertIn("is NaN or infinite where its reference is not", " ".join(explained.notes))
        for order in (-1, -2):
            norm = self.check(
                lambda x, order=order: torch.linalg.norm(x, order, dim=1),
                addend.Input(torch.tensor([[0.0, 1.0], [2.0, 3.0]]), dims=1, baseline=1.0),
            )
            self.assertGreater(float(norm[0].leftover.torch()[0].abs()), 0.1)
            self.assertLess(float(norm[0].leftover.torch()[1].abs()), 1e-5)
