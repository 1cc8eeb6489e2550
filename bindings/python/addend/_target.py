"""Which number is explained."""

from typing import Tuple, Union

Target = Union[str, int, Tuple[int, ...]]


def as_target(target: Target) -> str:
    """In the words of the C interface."""
    if isinstance(target, str):
        return target
    if isinstance(target, int):
        return str(target)
    return ",".join(str(int(index)) for index in target) or "()"
