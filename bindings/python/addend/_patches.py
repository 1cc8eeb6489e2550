"""Attributes of others in whose place something of Addend's stands for a while."""

from typing import Any, List, Tuple


class Patches:
    """Attributes of modules and classes that were replaced, until `take_back`. It is not locked."""

    def __init__(self) -> None:
        self._before: List[Tuple[Any, str, Any]] = []

    def put(self, owner: Any, name: str, value: Any) -> None:
        """Puts a value in the place of ``owner.name``."""
        self._before.append((owner, name, owner.__dict__.get(name)))
        setattr(owner, name, value)

    def take_back(self) -> None:
        """Puts back what was there, the last first."""
        while self._before:
            owner, name, before = self._before.pop()
            if before is None:
                delattr(owner, name)  # it was inherited
            else:
                setattr(owner, name, before)
