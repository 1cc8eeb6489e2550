"""Attribution methods by their published formulas, without Addend: what pages compare with.

A model here is a function of rows, ``[n, features]`` to ``[n, outputs]``; a target is an index of its last dimension.
Everything is float64.
"""

import itertools
import math

import numpy
import torch
from torch import nn


def output(model, rows, target):
    with torch.no_grad():
        return model(rows.double())[:, target]


def gradients(model, rows, target):
    rows = rows.double().detach().requires_grad_()
    return torch.autograd.grad(model(rows)[:, target].sum(), rows)[0]


def integrated_gradients(model, x, baseline, target, steps=50):
    """Sundararajan, Taly, Yan 2017, by Gauss-Legendre quadrature."""
    nodes, weights = numpy.polynomial.legendre.leggauss(steps)
    at = torch.tensor((nodes + 1) / 2)[:, None]
    slopes = gradients(model, baseline + at * (x - baseline), target)
    return (torch.tensor(weights / 2)[:, None] * slopes).sum(0) * (x - baseline)[0]


def conductance(head, tail, x, baseline, target, steps=100):
    """Dhamdhere, Sundararajan, Yan 2018: what flows through each element of a layer on the line of the input."""
    nodes, weights = numpy.polynomial.legendre.leggauss(steps)
    at = torch.tensor((nodes + 1) / 2)[:, None]
    x, baseline = x.double(), baseline.double()
    rows = baseline + at * (x - baseline)
    moves = torch.autograd.functional.jvp(head, (rows,), ((x - baseline).expand_as(rows),))[1]
    return (torch.tensor(weights / 2)[:, None] * gradients(tail, head(rows), target) * moves).sum(0).detach()


def input_times_gradient(model, x, target):
    """Shrikumar et al. 2016."""
    return (gradients(model, x, target) * x)[0]


def rescale(network, x, baseline, target):
    """DeepLIFT's Rescale rule (Shrikumar, Greenside, Kundaje 2017) for a sequence of linear and elementwise layers."""
    layers, value, reference = [], x.double(), baseline.double()
    with torch.no_grad():
        for layer in network:
            before, before_reference = value, reference
            value, reference = layer(value), layer(reference)
            if isinstance(layer, nn.Linear):
                layers.append(("linear", layer.weight))
            else:
                layers.append(("elementwise", (value - reference) / (before - before_reference)))
        multipliers = torch.zeros(1, value.shape[1], dtype=torch.float64)
        multipliers[0, target] = 1
        for kind, factor in reversed(layers):
            multipliers = multipliers @ factor if kind == "linear" else multipliers * factor
    return (multipliers * (x - baseline))[0]


def coalitions(model, x, baseline, target):
    """The output where the features of a subset are those of `x`, and the others those of the baseline."""
    count = x.shape[1]
    subsets = [frozenset(s) for size in range(count + 1) for s in itertools.combinations(range(count), size)]
    chosen = torch.tensor([[k in subset for k in range(count)] for subset in subsets])
    return dict(zip(subsets, output(model, torch.where(chosen, x, baseline), target)))


def shapley(model, x, baseline, target):
    """Shapley 1953: the sum over all subsets."""
    values = coalitions(model, x, baseline, target)
    count = x.shape[1]
    shares = []
    for k in range(count):
        without = [subset for subset in values if k not in subset]
        weights = [
            math.factorial(len(s)) * math.factorial(count - len(s) - 1) / math.factorial(count) for s in without
        ]
        shares.append(sum(w * (values[s | {k}] - values[s]) for w, s in zip(weights, without)))
    return torch.stack(shares)


def ablation(model, x, baseline, target):
    """The loss of the output when one feature is set to its baseline."""
    values = coalitions(model, x, baseline, target)
    everything = frozenset(range(x.shape[1]))
    return torch.stack([values[everything] - values[everything - {k}] for k in sorted(everything)])
