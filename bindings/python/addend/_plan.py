"""Attributions made ready for many rows."""

import sys
from typing import Any

from . import _native
from ._attribution import Attribution
from ._errors import FailedPrecondition, InvalidArgument
from ._handle import Handle
from ._modules import ModelState
from ._request import new_model_request
from ._tensor import Tensor, as_tensor


class Plan(Handle):
    """An attribution made ready for many inputs of one kind; `Model.plan` gives it. Threads may share one.

    It gives what `Model.explain` would give, bit for bit, or refuses.
    """

    __slots__ = ("_state",)
    _INSTEAD = "make it where it is used; threads may share one"

    def __init__(self, capsule: Any, model: Any = None):
        """`model`: a live one, which the native library does not know."""
        super().__init__(capsule)
        self._state = None if model is None else ModelState(model)

    def attribute(self, *inputs: Any, cancellation: Any = None) -> Attribution:
        """Attributes the plan's targets for other inputs.

        Args:
            inputs: what the model is given, in the order of `Model.plan`, or one dict by name; of a live model, what was
                an `Input` there. How they are split is the plan's; everything else, inputs without components, numbers,
                text, None, and how they are nested, is as it was.
            cancellation: who may end the run.

        Raises:
            InvalidArgument: an input has another size or dtype, is not finite, or has no components and is another; or
                the arguments are made up of them in another way.
            FailedPrecondition: the model would take another branch, or its parameters were written.
        """
        self._require_unchanged()
        return Attribution(_native.plan_attribute(self._handle, new_model_request([inputs], cancellation=cancellation)))

    def attribute_into(self, *inputs: Any, contributions: Any, sums: Any = None, cancellation: Any = None) -> None:
        """Attributes as `attribute` does, into the caller's arrays and without objects for the result.

        Args:
            inputs: as for `attribute`.
            contributions: float64, contiguous, ``[targets, components]``: an array of NumPy, a tensor of PyTorch on the
                CPU, or whatever else has a buffer that may be written.
            sums: the same ``[targets, 3]``, which gets value, reference and leftover of each target.
            cancellation: who may end the run.

        Raises:
            InvalidArgument: as for `attribute`; or an array is of another size or dtype, or may not be written.
        """
        self._require_unchanged()
        room = _room(contributions, "contributions")
        more = None if sums is None else _room(sums, "sums")
        request = new_model_request([inputs], cancellation=cancellation)
        _native.plan_attribute_into(self._handle, request, room._handle, None if more is None else more._handle)

    def _require_unchanged(self) -> None:
        difference = None if self._state is None else self._state.difference()
        if difference is not None:
            raise FailedPrecondition("%s since the plan was made; make another plan of the model" % difference)


def _room(value: Any, name: str) -> Tensor:
    """A tensor over the memory of what is to be written."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        writable = not value.is_neg()  # which would be copied
    else:
        try:
            view = memoryview(value)
        except (TypeError, ValueError):
            writable = False
        else:
            writable = view.c_contiguous and not view.readonly
    if not writable:
        raise InvalidArgument(
            "%s is a %s without contiguous memory that may be written; give an array of NumPy or a tensor of PyTorch"
            % (name, type(value).__name__)
        )
    return as_tensor(value)
