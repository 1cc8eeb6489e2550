"""The call of a live model that a program was recorded from: what is given and returned has the form that it had there."""

import numbers
import sys
from typing import Any, Callable, Dict, List, Sequence

from ._structure import Place, filled, map_leaves
from ._tensor import Tensor

# Types that a model may return beside tensors and that no run computes.
_NOT_COMPUTED = (str, bytes, type(None))


class RecordedCall:
    """How a model was called and what it returned, with a `Place` for each tensor.

    Args:
        bind: the arguments of a call by the names that the model gives them.
        arguments: those of the recording.
        returned: what the model returned.
    """

    def __init__(self, bind: Callable[[Sequence[Any], Dict[str, Any]], Dict[str, Any]], arguments: Any, returned: Any):
        self._bind = bind
        self._arguments = leaves_of(arguments)
        self._returned = returned

    def inputs(self, args: Sequence[Any], kwargs: Dict[str, Any]) -> List[Any]:
        """The inputs of the program where the model would be called with these arguments.

        Raises:
            ValueError: a tensor is missing; something that is no tensor is another than in the recording; or what was one
                tensor there are two.
        """
        given = leaves_of(self._bind(args, kwargs))
        unknown = [path for path in given if path not in self._arguments]
        if unknown:
            raise ValueError("%s was not given when the program was recorded; record it so" % unknown[0])
        found: Dict[int, Any] = {}
        names: Dict[int, str] = {}
        for path, recorded in self._arguments.items():
            if not isinstance(recorded, Place):
                if path in given and not _same(given[path], recorded):
                    raise ValueError("%s was %r when the program was recorded; record it again" % (path, recorded))
                continue
            if path not in given:
                raise ValueError("%s is missing, which the program was recorded with" % path)
            value = found.setdefault(recorded.index, given[path])
            name = names.setdefault(recorded.index, path)
            if not _same(value, given[path]):
                raise ValueError(
                    "%s and %s were one tensor when the program was recorded; record it with two" % (name, path)
                )
        return [found[index] for index in sorted(found)]

    def require_computed(self) -> None:
        """Raises ValueError where the model returned something that no run of the program computes."""
        map_leaves(_require_computed, self._returned, "output")

    def output(self, results: Sequence[Any]) -> Any:
        """The model's output, with the results of a run in place of its tensors."""
        return filled(self._returned, results)


def leaves_of(structure: Any) -> Dict[str, Any]:
    """The leaves of tuples, lists, dicts and dataclasses, by the names of their places."""
    found: Dict[str, Any] = {}

    def add(leaf: Any, path: str) -> Any:
        found[path] = leaf
        return leaf

    map_leaves(add, structure, "")
    return found


def as_given(results: Sequence[Any], given: Any) -> List[Any]:
    """Results of a run, as tensors of PyTorch where something that was given is one."""
    torch = sys.modules.get("torch")
    if torch is None or not any(isinstance(leaf, torch.Tensor) for leaf in leaves_of(given).values()):
        return list(results)
    return [result.torch() if isinstance(result, Tensor) else result for result in results]


def _same(one: Any, other: Any) -> bool:
    torch = sys.modules.get("torch")
    if one is other:
        return True
    if torch is not None and isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    try:
        return bool(one == other)
    except (TypeError, ValueError, RuntimeError):  # arrays, which compare element by element
        return False


def _require_computed(leaf: Any, path: str) -> Any:
    if isinstance(leaf, (Place, *_NOT_COMPUTED)):
        return leaf
    raise ValueError(
        "the model returned %s = %s, which is no tensor, so that no run of the program computes it; replay() gives the "
        "tensors alone" % (path, repr(leaf) if isinstance(leaf, numbers.Number) else "a " + type(leaf).__name__)
    )
