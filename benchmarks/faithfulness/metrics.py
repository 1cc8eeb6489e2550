"""How well contributions say what a model uses: by removing parts, and by causes that are known.

By removing parts: deletion and insertion AOPC of a ranking. A score is the centred output of the predicted class,
v = z[c] - mean(z). For a ranking, v is measured with the best parts removed (deletion) and with only the best parts there
(insertion), at fixed fractions of the parts. AOPC is the area between the curve and its start. Everything is divided by the
mean of |v(input) - v(baseline)|, so that 1 is what whole inputs are worth where they speak for their class; rankings that
remove evidence against it last can exceed 1. By causes that are known: see `found`.
"""

import numpy

# The roles of units where causes are known; see `truths`.
CANNOT_MATTER, CAUSE, POINTER, QUESTION, FRAME = range(5)
# Names of the numbers that `found` gives.
FOUND = ("cause_first", "cause_or_pointer_first", "needed_first", "on_causes", "on_what_cannot_matter", "largest_of_these")
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
    """The area under a curve over FRACTIONS, by trapezoids; the last dimension is the curve's."""
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
    """The mean of deletion and insertion in units of the mean |gap|; deletion; insertion.

    Args:
        samples: what `aopc` gives, [..., samples, 3].

    Returns:
        [..., 3].
    """
    samples = numpy.asarray(samples)
    unit = numpy.abs(samples[..., 2]).mean(-1)
    deletion, insertion = (samples[..., column].mean(-1) / unit for column in (0, 1))
    return numpy.stack([(deletion + insertion) / 2, deletion, insertion], -1)


def draws(samples, number, seed):
    """Rows of bootstrap draws [number, samples], to be shared by what shall be compared in pairs."""
    return numpy.random.default_rng(seed).integers(samples, size=(number, samples))


def interval(values):
    """The middle 95 % of bootstrap values."""
    low, high = numpy.percentile(values, [2.5, 97.5])
    return [float(low), float(high)]


def leftover(contributions, gaps):
    """Share that contributions fail to explain: mean |gap - sum| over mean |gap|, for one array each sample."""
    return float(_missing(contributions, gaps).mean() / numpy.abs(gaps).mean())


def share(value):
    """A share in words: what is only rounding or quadrature, and what makes no sense, is told by its power of ten."""
    return "%.1f %%" % (100 * value) if 5e-4 <= value < 10 else "%.0e" % value


def conditioning(contributions, gaps):
    """How much cancels: the mean over samples of all magnitudes, the leftover's among them, over the mean of |gap|."""
    masses = numpy.array([numpy.abs(row).sum() for row in contributions]) + _missing(contributions, gaps)
    return float(masses.mean() / numpy.abs(gaps).mean())


def _missing(contributions, gaps):
    return numpy.abs(numpy.asarray(gaps, float) - [numpy.sum(row) for row in contributions])


def found(contributions, roles):
    """How well contributions of one sample tell causes that are known.

    Args:
        contributions: one for each unit.
        roles: of each unit; where several are causes, all of them have to be found.

    Returns:
        Numbers by name. The question is left out where it is asked who comes first among causes and pointers, and is
        there in all shares. NaN where there is no unit that cannot matter.
    """
    values, roles = numpy.asarray(contributions, float), numpy.asarray(roles)
    sizes, idle = numpy.abs(values), roles == CANNOT_MATTER
    without_question = ranking(numpy.where(roles == QUESTION, -numpy.inf, values))
    best = without_question[: (roles == CAUSE).sum()]
    needed = numpy.isin(roles, (CAUSE, POINTER, QUESTION))
    whole, largest = sizes.sum(), sizes.max()
    if whole == 0:
        return dict.fromkeys(FOUND, 0.0)
    return dict(zip(FOUND, map(float, (
        (roles[best] == CAUSE).all(),
        numpy.isin(roles[best], (CAUSE, POINTER)).all(),
        needed[ranking(values)[: needed.sum()]].mean(),
        sizes[(roles == CAUSE) | (roles == POINTER)].sum() / whole,
        sizes[idle].sum() / whole if idle.any() else numpy.nan,
        sizes[idle].max() / largest if idle.any() else numpy.nan,
    ))))


def mean_found(contributions, roles):
    """The means over samples of what `found` says of each, without NaN."""
    entries = [found(*pair) for pair in zip(contributions, roles)]
    return {key: float(numpy.nanmean([entry[key] for entry in entries])) for key in FOUND}
