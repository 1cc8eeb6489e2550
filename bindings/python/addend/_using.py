"""The context of a block of code."""

import contextvars
from typing import Any, Optional

from ._context import Context, PolicyChoices, as_context
from ._unpack import Unpack

_current: "contextvars.ContextVar[Optional[Context]]" = contextvars.ContextVar("addend.context", default=None)


class Using:
    """The block of `using`."""

    def __init__(self, context: Context):
        self._context = context
        self._token: Optional[contextvars.Token] = None

    def __enter__(self) -> Context:
        if self._token is not None:
            raise RuntimeError("this block is open already; make another one with addend.using(...)")
        self._token = _current.set(self._context)
        return self._context

    def __exit__(self, *exception: Any) -> None:
        assert self._token is not None
        _current.reset(self._token)
        self._token = None


def using(context: Optional[Context] = None, **policy: Unpack[PolicyChoices]) -> Using:
    """The context of what is called on compositions in a ``with`` block: operators, and functions and modules of PyTorch,
    which have no argument for one::

        with addend.using(nonlinearity="gradient"):
            y = network(x)    # x: a Composition

    It holds for the thread or task that opened it. A context that a call is given itself comes before it. Models that
    `compile` wraps, and `tracing`, have contexts of their own.

    Args:
        context: how to decompose.
        policy: choices of a `Context`, in place of one.
    """
    return Using(as_context(context, using, **policy))


def current_context() -> Optional[Context]:
    """The context of the innermost block; None outside of all."""
    return _current.get()
