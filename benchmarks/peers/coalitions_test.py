import itertools
import math
import unittest

import coalitions
import torch

BASELINE = torch.tensor([0.5, -1.0, 0.0, 2.0, 0.25, -0.5], dtype=torch.double)
X = torch.tensor([1.0, 2.0, -1.5, 0.5, 3.0, -2.0], dtype=torch.double)


def products(x):
    """Linear, and products of two, three and four features."""
    a, b, c, d, e, f = x.unbind(-1)
    return 3 * a - b + 0.5 * f + a * b - 2 * c * d + a * c * e + 0.25 * b * d * e * f


def exact_shapley(function, x, baseline):
    """Shapley values by definition: what a feature adds, over all sets of the others."""
    numc = len(x)
    values = []
    for one in range(numc):
        others = [other for other in range(numc) if other != one]
        value = 0.0
        for size in range(numc):
            share = 1 / (numc * math.comb(numc - 1, size))
            for members in itertools.combinations(others, size):
                without = baseline.clone()
                without[list(members)] = x[list(members)]
                with_it = without.clone()
                with_it[one] = x[one]
                value += share * float(function(with_it) - function(without))
        values.append(value)
    return torch.tensor(values, dtype=torch.double)


def sampled_shapley(function, x, baseline, most):
    sets, weights = coalitions.draw(len(x), most)
    start = function(baseline)
    gains = function(torch.where(sets, x, baseline)) - start
    return coalitions.fit(sets, weights, gains, function(x) - start)


class Coalitions(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def test_all_coalitions_give_exact_shapley_values(self):
        sets, weights = coalitions.draw(6, 2 * 6 + 2048)
        self.assertEqual(len(sets), 2**6 - 2)
        self.assertEqual(len(set(map(tuple, sets.tolist()))), 2**6 - 2)
        self.assertEqual(len(weights), len(sets))
        found = sampled_shapley(products, X, BASELINE, 2 * 6 + 2048)
        torch.testing.assert_close(found, exact_shapley(products, X, BASELINE), rtol=1e-10, atol=1e-10)

    def test_fewer_coalitions_come_near_and_keep_the_sum(self):
        exact = exact_shapley(products, X, BASELINE)
        found = torch.stack([sampled_shapley(products, X, BASELINE, 40) for _ in range(400)])
        sums = found.sum(1)
        torch.testing.assert_close(sums, exact.sum().expand_as(sums), rtol=1e-10, atol=1e-10)
        self.assertGreater(float((found[0] - exact).abs().max()), 1e-3)
        torch.testing.assert_close(found.mean(0), exact, rtol=0.05, atol=0.05)

    def test_a_linear_function_needs_no_luck(self):
        slopes = torch.randn(64, dtype=torch.double)
        x, baseline = torch.randn(2, 64, dtype=torch.double)
        found = sampled_shapley(lambda at: at @ slopes, x, baseline, 2 * 64 + 2048)
        torch.testing.assert_close(found, slopes * (x - baseline), rtol=1e-9, atol=1e-9)

    def test_sizes_are_taken_whole_from_outside_and_the_rest_in_pairs(self):
        sets, weights = coalitions.draw(64, 2 * 64 + 2048)
        self.assertEqual(len(sets), 2 * 64 + 2048)
        sizes = sets.sum(1)
        self.assertEqual(int((sizes == 1).sum()), 64)
        self.assertEqual(int((sizes == 63).sum()), 64)
        drawn = sets[128:]
        half = len(drawn) // 2
        self.assertTrue(torch.equal(drawn[:half], ~drawn[half:]))
        # All of them stand for all coalitions.
        kernel = sum(63 / (size * (64 - size)) for size in range(1, 64))
        self.assertAlmostEqual(float(weights.sum()), kernel, places=9)


if __name__ == "__main__":
    unittest.main()
