"""Ending a run from another thread, or after a time."""

import math
from typing import Optional

from . import _native
from ._errors import InvalidArgument
from ._handle import Handle


class Cancellation(Handle):
    """A switch that ends runs: from another thread, or after a time::

        cancellation = addend.Cancellation()
        threading.Timer(10, cancellation.cancel).start()
        model.decompose(x, cancellation=cancellation)   # raises addend.Cancelled after ten seconds
        model.decompose(x, cancellation=addend.Cancellation(timeout=10))   # the same

    Every run that holds it ends before its next operator, and so do runs that begin later.

    Args:
        timeout: how many seconds each run may take; None: any time.
    """

    __slots__ = ("timeout",)

    def __init__(self, timeout: Optional[float] = None) -> None:
        if timeout is not None and not 0 < timeout < math.inf:
            raise InvalidArgument("the timeout is %r; a number of seconds above 0 is expected" % (timeout,))
        super().__init__(_native.cancellation_create())
        self.timeout = timeout

    def cancel(self) -> None:
        """Ends the runs. On any thread, at any time."""
        _native.cancellation_cancel(self._handle)
