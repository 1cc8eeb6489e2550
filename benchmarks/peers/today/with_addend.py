"""Addend's own attributions: one run, recorded, and one sweep back from the output."""

import addend

VERSION = addend.__version__


def attribution(**policy):
    def make(case):
        model = addend.compile(case.model, **policy)

        def explain(question):
            return question.by_unit(model.attribute(question.x, question.baseline, question.target))

        return explain

    return make


METHODS = {
    "Addend faithful": attribution(preset="faithful"),
    "Addend faithful, gates too": attribution(
        preset="faithful", content_first="attention+normalizer+denominator+gate"
    ),
    "Addend fast": attribution(preset="fast"),
}
