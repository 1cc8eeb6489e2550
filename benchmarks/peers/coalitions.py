"""Shapley values estimated as KernelExplainer of SHAP does it: a weighted regression on runs of sampled coalitions.

Written from the published method (Lundberg and Lee 2017). What a coalition leaves out is the baseline's.
"""

import itertools
import math

import torch


def draw(numc, most):
    """Coalitions of components, bool [count, numc], and their weights; neither the empty nor the whole one is among them.

    Sizes that `most` has room for are taken whole, from the smallest and the largest inward. The rest is drawn at random,
    each coalition with its complement.
    """
    weights = {size: (numc - 1) / (size * (numc - size)) for size in range(1, numc)}
    missing = sum(weights.values())
    chosen, own = [], []
    for size in range(1, numc // 2 + 1):
        sizes = sorted({size, numc - size})
        count = sum(math.comb(numc, one) for one in sizes)
        weight = sum(weights[one] for one in sizes)
        # All sets of these sizes are taken, unless chance would draw fewer of them.
        if count > (most - sum(map(len, own))) * weight / missing * (1 + 1e-8):
            break
        chosen += [_all_of_size(numc, one) for one in sizes]
        own += [torch.full((count,), weight / count, dtype=torch.double)]
        missing -= sum(weights.pop(one) for one in sizes)
    if weights:
        pairs = (most - sum(map(len, own))) // 2
        sizes = torch.tensor(list(weights))
        shares = torch.tensor(list(weights.values()), dtype=torch.double)
        size = sizes[torch.multinomial(shares, pairs, replacement=True)]
        drawn = torch.rand(pairs, numc).argsort(1).argsort(1) < size.view(-1, 1)
        chosen += [drawn, ~drawn]
        own += [torch.full((2 * pairs,), missing / (2 * pairs), dtype=torch.double)]
    return torch.cat(chosen), torch.cat(own)


def fit(coalitions, weights, gains, whole):
    """The contributions that explain best what coalitions gained over the baseline, and sum to what the whole gained."""
    sets = coalitions.double()
    # The last contribution is what the others leave of the whole, so that the sum is no matter of the fit.
    design = sets[:, :-1] - sets[:, -1:]
    aims = gains.double() - sets[:, -1] * whole
    weighted = (design * weights.view(-1, 1)).T
    first = torch.linalg.solve(weighted @ design, weighted @ aims)
    return torch.cat([first, (whole - first.sum()).view(1)])


def _all_of_size(numc, size):
    members = torch.tensor(list(itertools.combinations(range(numc), size)))
    return torch.zeros(len(members), numc, dtype=torch.bool).scatter_(1, members, True)
