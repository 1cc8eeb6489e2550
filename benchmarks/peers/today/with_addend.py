"""Addend's own attributions: one run, recorded, and one sweep back from the output; and the same ones by plans."""

import functools

import addend

VERSION = addend.__version__


def attribution(**policy):
    def make(case):
        model = addend.compile(case.model, **policy)

        def explain(question):
            return question.by_unit(model.attribute(question.x, question.baseline, question.target))

        return explain

    return make


def plan(**policy):
    """Attributions made ready, once for each output."""

    def make(case):
        model = addend.compile(case.model, **policy)

        @functools.lru_cache
        def ready(target):
            elements = addend.Input(case.inputs[:1], dims=range(case.inputs.dim()), baseline=case.baseline)
            return model.plan(elements, targets=[(0, target)])

        def explain(question):
            return question.by_unit(ready(question.target).attribute(question.x).inputs[0].torch())

        return explain

    return make


METHODS = {
    "Addend faithful": attribution(preset="faithful"),
    "Addend faithful, by a plan": plan(preset="faithful"),
    "Addend faithful, gates by half": attribution(preset="faithful", content_first="attention+normalizer+denominator"),
    "Addend faithful, attention by magnitude": attribution(preset="faithful", by_magnitude="attention+gate"),
    "Addend fast": attribution(preset="fast"),
}
