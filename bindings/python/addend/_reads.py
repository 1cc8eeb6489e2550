"""Elements that leave PyTorch without an operator: NumPy and lists read the memory of a tensor."""

import functools
import threading
from typing import Any, Callable, Dict

# By thread: how many blocks there record. While there are any, the methods of `_NAMES` tell of their calls.
_threads: Dict[int, int] = {}
_lock = threading.Lock()
_before: Dict[str, Any] = {}  # what somebody else had put in their place
_NAMES = ("numpy", "tolist", "__dlpack__")


class Readings:
    """Makes what this thread reads of tensors part of what is recorded, from `install` to `remove`.

    ``numpy.asarray(x)``, ``numpy.from_dlpack(x)``, ``x.numpy()`` and ``x.tolist()`` become calls of ``addend::elements_read_outside``, whose result
    is compared when the program is replayed.
    """

    def __init__(self) -> None:
        self._thread: Any = None

    def install(self) -> None:
        thread = threading.get_ident()
        with _lock:
            if not _threads:
                _patch()
            _threads[thread] = _threads.get(thread, 0) + 1
        self._thread = thread

    def remove(self) -> None:
        thread, self._thread = self._thread, None
        if thread is None:
            return
        with _lock:
            _threads[thread] -= 1
            if not _threads[thread]:
                del _threads[thread]
            if not _threads:
                _unpatch()


def _patch() -> None:
    import torch

    for name in _NAMES:
        if name in torch.Tensor.__dict__:
            _before[name] = torch.Tensor.__dict__[name]
        setattr(torch.Tensor, name, _telling(getattr(torch.Tensor, name)))


def _unpatch() -> None:
    import torch

    for name in _NAMES:
        if name in _before:
            setattr(torch.Tensor, name, _before.pop(name))
        else:
            delattr(torch.Tensor, name)  # what PyTorch has is inherited


def _telling(read: Callable[..., Any]) -> Callable[..., Any]:
    import torch

    @functools.wraps(read)
    def tell(self: Any, *args: Any, **kwargs: Any) -> Any:
        if threading.get_ident() in _threads:
            torch.ops.addend.elements_read_outside(self)
        return read(self, *args, **kwargs)

    tell.untold = read  # type: ignore[attr-defined]
    return tell


def untold(method: Any) -> Callable[..., Any]:
    """A tensor's method, or what is behind it while it tells: for what Addend itself reads."""
    read = getattr(method, "untold", None)
    return method if read is None else functools.partial(read, method.__self__)
