"""SHAP's explainers of PyTorch models, and two that know only a function of which parts are there."""

import functools

import numpy
import shap
import torch

from questions import Explanation, OneOutput

VERSION = shap.__version__
# Rows that a function of parts is run on at once.
AT_ONCE = 64


def gradients(name, **options):
    """An explainer of a module, made once for each output."""

    def make(case):
        @functools.lru_cache
        def explainer(target):
            return getattr(shap, name)(OneOutput(case.model, target), case.baseline)

        def explain(question):
            found = explainer(question.target).shap_values(question.x, **options)
            return question.by_unit(numpy.asarray(found).reshape(question.x.shape))

        return explain

    return make


def present(question):
    """The output as a function of which parts are there."""

    def function(rows):
        rows = torch.from_numpy(numpy.asarray(rows, dtype="float32"))
        with torch.no_grad():
            return torch.cat([question.outputs(question.moved(some)) for some in rows.split(AT_ONCE)]).numpy()

    return function


def kernel(case):
    def explain(question):
        explainer = shap.KernelExplainer(present(question), numpy.zeros((1, question.units)))
        return Explanation(explainer.shap_values(numpy.ones((1, question.units)), silent=True)[0])

    return explain


def permutation(case):
    def explain(question):
        masker = shap.maskers.Independent(numpy.zeros((1, question.units)))
        explainer = shap.PermutationExplainer(present(question), masker, seed=0)
        return Explanation(explainer(numpy.ones((1, question.units)), silent=True).values[0])

    return explain


# Compiles what the explainer needs, once, before any process is copied.
shap.PermutationExplainer(
    lambda rows: rows.sum(1), shap.maskers.Independent(numpy.zeros((1, 3))), seed=0
)(numpy.ones((1, 3)), silent=True)

METHODS = {
    # Its own check of the sum would stop it; the page has the sum.
    "SHAP DeepExplainer": gradients("DeepExplainer", check_additivity=False),
    "SHAP GradientExplainer": gradients("GradientExplainer", rseed=0),
    "SHAP KernelExplainer": kernel,
    "SHAP PermutationExplainer": permutation,
}
