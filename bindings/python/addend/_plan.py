"""Attributions made ready for many rows."""

from typing import Any, Sequence

from . import _native
from ._attribution import Attribution
from ._errors import FailedPrecondition
from ._handle import Handle
from ._modules import Modules, named_tensors
from ._tensor import as_tensor


class Plan(Handle):
    """An attribution made ready for many inputs of one kind; `Model.plan` gives it. Threads may share one.

    It gives what `Model.explain` would give, bit for bit, or refuses.
    """

    __slots__ = ("_modules", "_tensors")
    _INSTEAD = "make it where it is used; threads may share one"

    def __init__(self, capsule: Any, modules: Modules = ()):
        """`modules`: of a live model."""
        super().__init__(capsule)
        self._modules = modules
        # The native library sees their memory, but not how often it was written.
        self._tensors = [(name, tensor, tensor._version) for name, tensor, _ in named_tensors(modules)] if modules else []

    def attribute(self, *inputs: Any, cancellation: Any = None) -> Attribution:
        """Attributes the plan's targets for other inputs.

        Args:
            inputs: what the model is given, in the order of `Model.plan`, or one dict by name; of a live model, what was
                an `Input` there. How they are split is the plan's; inputs without components are as they were.
            cancellation: who may end the run.

        Raises:
            InvalidArgument: an input has another size or dtype, is not finite, or has no components and is another.
            FailedPrecondition: the model would take another branch, or its parameters were written.
        """
        self._require_unwritten()
        return Attribution(_native.plan_attribute(self._handle, _request(inputs, cancellation)))

    def attribute_into(self, *inputs: Any, contributions: Any, sums: Any = None, cancellation: Any = None) -> None:
        """The same into arrays of the caller's, which makes no objects of the result.

        Args:
            inputs: as for `attribute`.
            contributions: float64, contiguous, ``[targets, components]``.
            sums: the same ``[targets, 3]``, which gets value, reference and leftover of each target.
            cancellation: who may end the run.
        """
        self._require_unwritten()
        # Both share the memory of what was given.
        room = as_tensor(contributions)
        more = None if sums is None else as_tensor(sums)
        _native.plan_attribute_into(
            self._handle, _request(inputs, cancellation), room._handle, None if more is None else more._handle
        )

    def _require_unwritten(self) -> None:
        if not self._modules:
            return
        now = [(tensor, tensor._version) for _, tensor, _ in named_tensors(self._modules)]
        for (name, tensor, version), (own, writes) in zip(self._tensors, now):
            if own is not tensor or writes != version:
                raise FailedPrecondition("%s was written since the plan was made; make another plan of the model" % name)
        if len(now) != len(self._tensors):
            raise FailedPrecondition("the model has other parameters than when the plan was made; make another plan")


def _request(inputs: Sequence[Any], cancellation: Any) -> Any:
    from ._model import new_model_request

    return new_model_request([inputs], cancellation=cancellation)
