"""Numbers of a distribution, softmax over the last dimension, along the straight line between two rows of logits."""

import math

NODES = 64


def softmax(logits):
    largest = max(logits)
    powers = [math.exp(x - largest) for x in logits]
    total = math.fsum(powers)
    return [p / total for p in powers]


def log_softmax(logits):
    largest = max(logits)
    shift = largest + math.log(math.fsum(math.exp(x - largest) for x in logits))
    return [x - shift for x in logits]


def _weighted(p, log_p):
    return p * log_p if p > 0 else 0.0


def _entropy(logits):
    return -math.fsum(map(_weighted, softmax(logits), log_softmax(logits)))


def _entropy_gradient(logits):
    h = _entropy(logits)
    return [-_weighted(p, log_p) - p * h for p, log_p in zip(softmax(logits), log_softmax(logits))]


def _probability_gradient(logits, c):
    p = softmax(logits)
    return [p[c] * ((k == c) - p[k]) for k in range(len(p))]


def _log_probability_gradient(logits, c):
    p = softmax(logits)
    return [(k == c) - p[k] for k in range(len(p))]


# Quantities by a target's word: the number in a row of logits, and its gradient. `c`: the class; entropies ignore it.
QUANTITIES = {
    "probability": (lambda logits, c: softmax(logits)[c], _probability_gradient),
    "log_probability": (lambda logits, c: log_softmax(logits)[c], _log_probability_gradient),
    "entropy": (lambda logits, c: _entropy(logits), lambda logits, c: _entropy_gradient(logits)),
}


def _gauss_legendre(count):
    """Nodes and weights on [0, 1]: roots of the Legendre polynomial by Newton's method."""
    rule = []
    for k in range(count):
        x = math.cos(math.pi * (k + 0.75) / (count + 0.5))
        for _ in range(100):
            before, now = 1.0, x
            for n in range(2, count + 1):
                before, now = now, ((2 * n - 1) * x * now - (n - 1) * before) / n
            slope = count * (x * now - before) / (x * x - 1)
            step = now / slope
            x -= step
            if abs(step) < 1e-16:
                break
        rule.append(((1 + x) / 2, 1 / ((1 - x * x) * slope * slope)))
    return rule


def mean_gradient(word, c, reference, value):
    """The mean of the gradient along the line from `reference` to `value`, both rows of logits."""
    gradient = QUANTITIES[word][1]
    means = [[] for _ in value]
    for share, weight in _gauss_legendre(NODES):
        between = [r + share * (v - r) for r, v in zip(reference, value)]
        for terms, g in zip(means, gradient(between, c)):
            terms.append(weight * g)
    return [math.fsum(terms) for terms in means]
