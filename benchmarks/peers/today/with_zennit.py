"""Zennit's composites of rules of LRP: a gradient whose layers were given other ones, seeded with the output itself."""

import importlib.metadata

import torch
from zennit.attribution import Gradient
from zennit.canonizers import SequentialMergeBatchNorm
from zennit.composites import EpsilonPlus, LayerMapComposite
from zennit.rules import Epsilon, Norm, Pass
from zennit.types import Activation, AvgPool, Linear

VERSION = importlib.metadata.version("zennit")


def epsilon(canonizers):
    return LayerMapComposite([(Activation, Pass()), (AvgPool, Norm()), (Linear, Epsilon())], canonizers=canonizers)


def epsilon_plus(canonizers):
    return EpsilonPlus(canonizers=canonizers)


def composite(made):
    def make(case):
        def explain(question):
            def seed(output):
                return output * torch.nn.functional.one_hot(torch.tensor([question.target]), output.shape[1])

            with Gradient(model=case.model, composite=made([SequentialMergeBatchNorm()])) as attributor:
                _, relevance = attributor(question.x.clone(), seed)
            return question.by_unit(relevance, "value")

        return explain

    return make


METHODS = {
    "zennit Epsilon": composite(epsilon),
    "zennit EpsilonPlus": composite(epsilon_plus),
}
