"""Deletion and insertion AOPC: how well a ranking of the parts of an input says what the model uses.

A score is the centred output of the predicted class, v = z[c] - mean(z). For a ranking, v is measured with the best
parts removed (deletion) and with only the best parts there (insertion), at fixed fractions of the parts. AOPC is the
area between the curve and its start. Everything is divided by the mean of v(input) - v(baseline), so that 1 is what the
whole input is worth; rankings that remove evidence against the class last can exceed 1.
"""

import numpy

FRACTIONS = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)


def counts(units):
    """How many of the units each fraction means."""
    return [int(fraction * units + 0.5) for fraction in FRACTIONS]


def ranking(contributions):
    """The units, the largest contribution first; equal ones stay in their order."""
    return numpy.argsort(-numpy.asarray(contributions), kind="stable")


def kept_units(contributions):
    """Which units are there, bool[2, fractions, units]: first with the best ones removed, then with only the best."""
    order = ranking(contributions)
    kept = numpy.zeros((2, len(FRACTIONS), len(order)), bool)
    for row, count in enumerate(counts(len(order))):
        kept[0, row, order[count:]] = True
        kept[1, row, order[:count]] = True
    return kept


def area(values):
    """Of a curve over FRACTIONS, by trapezoids; the last dimension is the curve's."""
    values = numpy.asarray(values, float)
    widths = numpy.diff(FRACTIONS)
    return ((values[..., 1:] + values[..., :-1]) / 2 * widths).sum(-1)


def aopc(scores):
    """Deletion and insertion AOPC, and what the input is worth, all in units of the score.

    Args:
        scores: v of what `kept_units` says, [..., 2, fractions].

    Returns:
        [..., 3]. Nothing removed is the input, everything removed the baseline.
    """
    scores = numpy.asarray(scores, float)
    deleted, inserted = scores[..., 0, :], scores[..., 1, :]
    whole, empty = deleted[..., :1], inserted[..., :1]
    return numpy.stack([area(whole - deleted), area(inserted - empty), (whole - empty)[..., 0]], -1)


def faithfulness(samples):
    """The mean of deletion and insertion in units of the mean gap; deletion; insertion.

    Args:
        samples: what `aopc` gives, [..., samples, 3].

    Returns:
        [..., 3].
    """
    mean = numpy.asarray(samples).mean(-2)
    deletion, insertion = mean[..., 0] / mean[..., 2], mean[..., 1] / mean[..., 2]
    return numpy.stack([(deletion + insertion) / 2, deletion, insertion], -1)


def draws(samples, number, seed):
    """Rows of bootstrap draws [number, samples], to be shared by what shall be compared in pairs."""
    return numpy.random.default_rng(seed).integers(samples, size=(number, samples))


def interval(values):
    """The middle 95 % of bootstrap values."""
    low, high = numpy.percentile(values, [2.5, 97.5])
    return [float(low), float(high)]


def completeness_error(sums, gaps):
    """What contributions fail to explain: the mean of |sum - gap| over the mean of |gap|."""
    sums, gaps = numpy.asarray(sums, float), numpy.asarray(gaps, float)
    return float(numpy.abs(sums - gaps).mean() / numpy.abs(gaps).mean())
