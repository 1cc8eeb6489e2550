"""Ending a run from another thread."""

from . import _native
from ._handle import Handle


class Cancellation(Handle):
    """A switch that ends runs from another thread::

        cancellation = addend.Cancellation()
        threading.Timer(10, cancellation.cancel).start()
        model.decompose(x, cancellation=cancellation)   # raises addend.Cancelled after ten seconds

    Every run that holds it ends before its next operator, and so do runs that begin later.
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(_native.cancellation_create())

    def cancel(self) -> None:
        """Ends the runs. On any thread, at any time."""
        _native.cancellation_cancel(self._handle)
