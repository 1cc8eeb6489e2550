"""Which number is explained."""

import operator
from typing import Tuple, Union

Target = Union[str, int, Tuple[int, ...]]


def as_target(target: Target) -> str:
    """In the words of the C interface."""
    if isinstance(target, str):
        return target
    try:
        if hasattr(target, "__index__"):
            return str(operator.index(target))
        return ",".join(str(operator.index(index)) for index in target) or "()"
    except TypeError:
        raise TypeError("a target is a whole number, a tuple of them, or text, not %r" % (target,)) from None
