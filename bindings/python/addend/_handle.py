"""Objects of the native library, and scopes that close them."""

import contextvars
import copy
import weakref
from typing import Any, Optional, TypeVar

_Self = TypeVar("_Self", bound="Handle")
_Kept = TypeVar("_Kept")

_current_scope: "contextvars.ContextVar[Optional[Scope]]" = contextvars.ContextVar("addend.scope", default=None)


class Handle:
    """An object of the native library.

    It is released when nobody refers to it any more. ``close()``, a ``with`` statement and `scope` release it sooner;
    it can then no longer be used, but views of its memory stay good. May be used by any number of threads.
    """

    __slots__ = ("_capsule", "__weakref__")

    # Advice in the error that refuses pickling: what to do instead.
    _INSTEAD = "make it where it is used"
    # The name of the object in messages, if it is not that of the class.
    _NAME: Optional[str] = None

    def __init__(self, capsule: Any):
        # Owns the native object. Calls that are under way keep their own reference to it, so that closing while another
        # thread is in one is safe.
        self._capsule = capsule
        scope = _current_scope.get()
        if scope is not None:
            scope._members[id(self)] = self

    @property
    def _handle(self) -> Any:
        if self._capsule is None:
            raise ValueError("this %s is closed" % (self._NAME or type(self).__name__))
        return self._capsule

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._capsule is None

    def close(self) -> None:
        """Releases the native object now; more than once does no harm."""
        self._capsule = None

    def __copy__(self: _Self) -> _Self:
        """Another object on the native one, which never changes."""
        twin: _Self = object.__new__(type(self))
        Handle.__init__(twin, self._capsule)
        for cls in type(self).__mro__:
            for name in getattr(cls, "__slots__", ()):
                if name not in Handle.__slots__ and hasattr(self, name):
                    setattr(twin, name, getattr(self, name))
        return twin

    def __deepcopy__(self: _Self, memo: Any) -> _Self:
        return copy.copy(self)

    def __reduce__(self) -> Any:
        raise TypeError("a %s belongs to its process and is not pickled: %s" % (type(self).__name__, self._INSTEAD))

    def __enter__(self: _Self) -> _Self:
        self._handle
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()


class Scope:
    """Closes what is created inside; see `scope`."""

    def __init__(self) -> None:
        self._members: "weakref.WeakValueDictionary[int, Handle]" = weakref.WeakValueDictionary()
        self._token: Optional[contextvars.Token] = None

    def keep(self, handle: _Kept) -> _Kept:
        """Lets an object outlive the scope, and returns it."""
        self._members.pop(id(handle), None)
        return handle

    def __enter__(self) -> "Scope":
        if self._token is not None:
            raise RuntimeError("this scope is open already; make another one with addend.scope()")
        self._token = _current_scope.set(self)
        return self

    def __exit__(self, *exception: Any) -> None:
        assert self._token is not None
        _current_scope.reset(self._token)
        self._token = None
        for handle in list(self._members.values()):
            handle.close()
        self._members.clear()


def scope() -> Scope:
    """A scope that closes every object of Addend that its ``with`` block creates, except those it is told to keep::

        with addend.scope() as scope:
            hidden = x.linear(weight, bias)
            y = scope.keep(hidden.relu())

    Python frees objects by itself; a scope does it at a known place, also where something still refers to them. It
    holds for the thread or task that opened it.
    """
    return Scope()
