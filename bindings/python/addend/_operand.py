"""Objects that operators take, as everything knows them that stands below the classes which users see."""

from typing import Any, Optional, Sequence


class Operand:
    """A tensor or a composition."""

    __slots__ = ()

    def _add_to(self, arguments: Any, name: Optional[str]) -> None:
        """Appends it to the native arguments of an operator."""
        raise NotImplementedError


class Composed(Operand):
    """A composition. `Composition` derives from it, and is what operators give: they ask the composition that they are
    given for one like it."""

    __slots__ = ()

    def _of_result(self, capsule: Any, roots: Any, given: Sequence["Composed"]) -> Any:
        """The composition of a native one that was computed from this.

        Args:
            capsule: the native composition.
            roots: those with which the graph begins that autograd follows.
            given: all compositions that it was computed from, whose notes hold for it too.
        """
        raise NotImplementedError
