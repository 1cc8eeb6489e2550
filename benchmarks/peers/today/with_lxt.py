"""AttnLRP of LXT: gradient times input, of classes of transformers that it gave other gradients."""

import importlib
import importlib.metadata

from lxt.efficient import monkey_patch

from questions import NotFor

VERSION = importlib.metadata.version("lxt")


def attn_lrp(case):
    network = getattr(case.model, "model", None)
    if not type(network).__module__.startswith("transformers."):
        raise NotFor("for models of transformers, torchvision")
    monkey_patch(importlib.import_module(type(network).__module__))

    def explain(question):
        x = question.x.clone().requires_grad_()
        question.outputs(x).sum().backward()
        return question.by_unit(x * x.grad, "value")

    return explain


METHODS = {"LXT AttnLRP": attn_lrp}
