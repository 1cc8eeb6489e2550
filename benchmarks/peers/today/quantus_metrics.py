"""Metrics of Quantus for explanations of parts: its input is how far each part went its way from the baseline, all 1."""

import numpy
import quantus
import torch

VERSION = quantus.__version__
# Perturbed inputs of max-sensitivity, and how far each part may go beyond or stay behind.
DRAWS, RADIUS = 10, 0.05
RUNS = 100


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
            nr_runs=RUNS, subset_size=max(1, units // 4), perturb_baseline="black", abs=False, normalise=False, **common
        ),
        "monotonicity": quantus.MonotonicityCorrelation(
            nr_samples=1, features_in_step=1, perturb_baseline="black", abs=True, normalise=False, **common
        ),
        "max_sensitivity": quantus.MaxSensitivity(
            nr_samples=DRAWS, lower_bound=RADIUS, upper_bound=None, normalise=False, abs=False, **common
        ),
        "complexity": quantus.Complexity(abs=True, normalise=False, **common),
    }


def measure(explain, question, units):
    """What each metric says of one explanation; NaN where it fails.

    Args:
        explain: the method.
        units: the explanation of the question.
    """
    numpy.random.seed(0)
    x = numpy.ones((1, 1, question.units), dtype="float32")

    def again(model, inputs, targets, **options):
        return numpy.stack([
            explain(question.at(torch.from_numpy(numpy.asarray(row, "float32")))).units.numpy()[None] for row in inputs[:, 0]
        ])

    found = {}
    for name, metric in metrics(question.units).items():
        found[name] = float(metric(
            model=Moved(question).eval(), x_batch=x, y_batch=numpy.array([question.target]),
            a_batch=units.numpy().reshape(1, 1, -1), explain_func=again, channel_first=True, softmax=False,
        )[0])
    return found
