"""Metrics of Quantus for explanations of parts: its input is how far each part went its way from the baseline, all 1."""

import numpy
import quantus
import torch

from questions import NotFor

VERSION = quantus.__version__
# Perturbed inputs of max-sensitivity, and how far each part may go beyond or stay behind.
DRAWS, RADIUS = 5, 0.05
RUNS = 50


class Moved(torch.nn.Module):
    """The model as a function of how far each part went: [rows, 1, parts]."""

    def __init__(self, question):
        super().__init__()
        self.question = question

    def forward(self, weights):
        return self.question.model(self.question.moved(weights[:, 0].float()))


def metrics(units):
    common = {"disable_warnings": True, "display_progressbar": False}
    return {
        "faithfulness_correlation": quantus.FaithfulnessCorrelation(
            nr_runs=RUNS, subset_size=max(1, units // 4), perturb_baseline=0.0, abs=False, normalise=False, **common
        ),
        "monotonicity": quantus.MonotonicityCorrelation(
            nr_samples=1, features_in_step=1, perturb_baseline=0.0, abs=True, normalise=False, **common
        ),
        "max_sensitivity": quantus.MaxSensitivity(
            nr_samples=DRAWS, lower_bound=RADIUS, upper_bound=None, normalise=False, abs=False, **common
        ),
        "complexity": quantus.Complexity(abs=True, normalise=False, **common),
    }


def measure(explain, question, units, again):
    """Numbers by the names of the metrics, for one explanation.

    Args:
        explain: the method.
        units: the explanation of the question.
        again: whether the method may be asked again, of other inputs, which max-sensitivity does.
    """
    numpy.random.seed(0)
    # The correlation of a single row fails in Quantus, so that there are two of each.
    x = numpy.ones((2, 1, question.units), dtype="float32")
    own = numpy.stack(2 * [units.numpy()[None]])

    def explained(model, inputs, targets, **options):
        rows = torch.from_numpy(numpy.asarray(inputs[:, 0], "float32"))
        return numpy.stack([explain(question.at(row)).units.numpy()[None] for row in rows])

    found = {}
    for name, metric in metrics(question.units).items():
        rows = slice(0, 1 if name == "max_sensitivity" else 2)
        if name == "max_sensitivity" and not again:
            continue
        try:
            found[name] = float(metric(
                model=Moved(question).eval(), x_batch=x[rows], y_batch=numpy.array(2 * [question.target])[rows],
                a_batch=own[rows], explain_func=explained, channel_first=True, softmax=False,
            )[0])
        except NotFor:
            pass
    return found
