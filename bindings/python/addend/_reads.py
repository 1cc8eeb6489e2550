"""Elements that leave PyTorch without an operator: NumPy, lists, pickles and other storages read the memory of a tensor,
and transformed functions (torch.func, functorch) compute with it where no operator is seen."""

import functools
import sys
import threading
from typing import Any, Callable, Dict, List, Tuple

from ._patches import Patches

# Blocks that record, by thread. While there are any, calls of the functions in `_readers` are reported.
_threads: Dict[int, List["Readings"]] = {}
_lock = threading.Lock()
_patches = Patches()
_NAMES = ("numpy", "tolist", "__dlpack__")
# Functions that give a tensor to a transformed one, by module; before PyTorch 2 these are a package of their own.
_TRANSFORMS = {
    "functorch._src.vmap": "_add_batch_dim",
    "functorch._src.eager_transforms": "_wrap_for_grad",
    "torch._functorch.vmap": "_add_batch_dim",
    "torch._functorch.eager_transforms": "_wrap_for_grad",
}


class Readings:
    """Makes what this thread reads of tensors part of what is recorded, from `install` to `remove`.

    ``numpy.asarray(x)``, ``numpy.from_dlpack(x)``, ``x.numpy()``, ``x.tolist()``, ``x.storage()``, by which tensors are
    pickled and deep-copied too, and ``torch.utils.dlpack.to_dlpack(x)`` become calls of ``addend::elements_read_outside``,
    whose result is compared when the program is replayed. What ``torch.func.vmap``, ``grad`` and their kin are given is read
    by `read_given`: while such a function runs, it would take that call for one of its own.
    """

    def __init__(self) -> None:
        self._thread: Any = None
        self._given: List[Any] = []

    def install(self) -> None:
        thread = threading.get_ident()
        with _lock:
            if not _threads:
                _patch()
            _threads[thread] = [*_threads.get(thread, ()), self]
        self._thread = thread

    def remove(self) -> None:
        thread, self._thread = self._thread, None
        if thread is None:
            return
        with _lock:
            _threads[thread] = [one for one in _threads[thread] if one is not self]
            if not _threads[thread]:
                del _threads[thread]
            if not _threads:
                _patches.take_back()

    def give(self, tensor: Any) -> None:
        """A transformed function is given a tensor."""
        self._given.append(tensor)

    def read_given(self) -> None:
        """Makes all that transformed functions were given part of what is recorded."""
        import torch

        given, self._given = self._given, []
        for tensor in given:
            torch.ops.addend.elements_read_outside(tensor)


def _readers() -> List[Tuple[Any, str]]:
    """Functions that read elements: methods of tensors, and functions of a tensor."""
    import torch

    # untyped_storage, where it exists, is what storage() calls.
    storage = "untyped_storage" if hasattr(torch.Tensor, "untyped_storage") else "storage"
    # torch.to_dlpack stays, for Addend itself reads by it.
    return [*((torch.Tensor, name) for name in (*_NAMES, storage)), (torch.utils.dlpack, "to_dlpack")]


def _patch() -> None:
    for owner, name in _readers():
        _patches.put(owner, name, _telling(getattr(owner, name)))
    for module, name in _TRANSFORMS.items():
        if hasattr(sys.modules.get(module), name):
            _patches.put(sys.modules[module], name, _giving(getattr(sys.modules[module], name)))


def _telling(read: Callable[..., Any]) -> Callable[..., Any]:
    import torch

    @functools.wraps(read)
    def tell(self: Any, *args: Any, **kwargs: Any) -> Any:
        if threading.get_ident() in _threads and not _is_fake(self):
            torch.ops.addend.elements_read_outside(self)
        return read(self, *args, **kwargs)

    tell.untold = read  # type: ignore[attr-defined]
    return tell


def _giving(wrap: Callable[..., Any]) -> Callable[..., Any]:
    import torch

    @functools.wraps(wrap)
    def give(self: Any, *args: Any, **kwargs: Any) -> Any:
        blocks = _threads.get(threading.get_ident())
        # A tensor without memory belongs to another transformed function, which was given what is inside.
        if blocks and not _is_fake(self) and torch._C._has_storage(self):
            blocks[-1].give(self)
        return wrap(self, *args, **kwargs)

    return give


def _is_fake(tensor: Any) -> bool:
    """Whether it has no elements: PyTorch's compilers run models on fake tensors, and look at the sizes of their storages."""
    fakes = sys.modules.get("torch._subclasses.fake_tensor")
    return fakes is not None and isinstance(tensor, fakes.FakeTensor)


def untold(method: Any) -> Callable[..., Any]:
    """A tensor's method, or what is behind it while it tells: for what Addend itself reads."""
    read = getattr(method, "untold", None)
    return method if read is None else functools.partial(read, method.__self__)
