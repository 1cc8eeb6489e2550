"""The policy of a case, from the keys of the C interface. SPEC.md#policies."""

import dataclasses
import math
import re

COEFFICIENTS = frozenset({"attention", "normalizer", "denominator"})
CONTENT_FIRST = COEFFICIENTS | {"gate"}
DEFAULTS = {"hybrid": 0.15, "hybrid_threshold": 0.15, "sign": 0.4, "sign_threshold": 0.4, "norm": math.inf}


@dataclasses.dataclass(frozen=True)
class Policy:
    fast: bool = False
    nonlinearity: str = "path"
    threshold: float = 0.15
    bias: str = "residual"
    bias_number: float = 0.0
    freeze: frozenset = frozenset()
    content_first: frozenset = frozenset()
    by_magnitude: frozenset = frozenset()
    anchor: str = "baseline"
    missing_rule: str = "error"
    overrides: tuple = ()  # of (selector, key, value), in their order
    given: tuple = ()  # what it was made from

    def frozen(self, marks):
        return bool(self.freeze & marks)

    def leads(self, marks):
        """Whether a factor moves before the content that it multiplies: SPEC.md#content-first."""
        return not self.frozen(marks) and bool(self.content_first & marks)

    def weights(self, marks):
        """The weights of the content's share where a leading factor grows and elsewhere; none where content takes all:
        SPEC.md#by-magnitude."""
        kinds = self.content_first & marks
        if not kinds or kinds - self.by_magnitude:
            return None
        return (1.5, 1.5) if "attention" in kinds else (1.5, 5.0)

    def inner(self):
        """Inside a fused operator: its parts follow the path rule, and its constant is paid as a whole."""
        return dataclasses.replace(self, nonlinearity="path", bias="residual", overrides=())

    def of(self, op):
        """The choices for one operator, "aten::softmax" or "aten::max.dim"."""
        if not self.overrides:
            return self
        choices = dict(self.given)
        name = op.split(".")[0]
        # An in-place form is also found by the name of the functional one.
        names = (op, name, name[:-1]) if name.endswith("_") else (op, name)
        for selector, key, value in self.overrides:
            if selector in names:
                choices[key] = value
        return parse(choices)


def _kinds(text):
    return frozenset(re.split(r"[+,]", text)) - {"none"}


def _choice(text):
    match = re.fullmatch(r"(\w+)(?:\((.*)\))?", str(text))
    return match.group(1), None if match.group(2) is None else float(match.group(2))


def parse(choices):
    """From {"preset": "faithful", "bias": "hybrid(0.2)", "freeze@aten::softmax": "attention"}."""
    plain = {key: value for key, value in choices.items() if "@" not in key}
    overrides = tuple((key.split("@")[1], key.split("@")[0], value) for key, value in choices.items() if "@" in key)
    fast = plain.get("preset", "auto") == "fast"  # auto: every composition brings a reference, so faithful
    nonlinearity, threshold = _choice(plain.get("nonlinearity", "path"))
    bias, bias_number = _choice(plain.get("bias", "residual"))
    freeze = plain.get("freeze", "preset")
    if freeze == "preset":
        kinds = COEFFICIENTS if fast else frozenset()
    else:
        kinds = _kinds(freeze)
    content_first = plain.get("content_first")
    return Policy(
        fast=fast,
        nonlinearity=nonlinearity,
        threshold=0.15 if threshold is None else threshold,
        bias=bias,
        bias_number=DEFAULTS.get(bias, 0.0) if bias_number is None else bias_number,
        freeze=kinds,
        content_first=CONTENT_FIRST if content_first is None else _kinds(content_first),
        by_magnitude=_kinds(plain.get("by_magnitude", "gate+activation")),
        anchor=plain.get("anchor", "baseline"),
        missing_rule=plain.get("missing_rule", "error"),
        overrides=overrides,
        given=tuple(plain.items()),
    )
