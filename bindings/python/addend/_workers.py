"""Work that a model gives to other threads, where no operator is seen."""

import functools
import sys
import threading
from typing import Any, Callable, Dict, List

from ._patches import Patches

# Blocks that each thread runs, or works for, by thread.
_threads: Dict[int, List["Workers"]] = {}
_lock = threading.Lock()
_installed = 0
_patches = Patches()


class Workers:
    """Knows, from `install` to `remove`, who works for the thread that installs it: threads that it starts, and those of
    a pool, while they do what it has given the pool.

    Args:
        given: is called on that thread before it gives away any work.
    """

    def __init__(self, given: Callable[[], None]):
        self._given = given
        self._thread: Any = None

    def install(self) -> None:
        global _installed
        thread = threading.get_ident()
        with _lock:
            if not _installed:
                _patch()
            _installed += 1
            _threads[thread] = [*_threads.get(thread, ()), self]
        self._thread = thread

    def remove(self) -> None:
        global _installed
        thread, self._thread = self._thread, None
        if thread is None:
            return
        with _lock:
            _installed -= 1
            _set(thread, [one for one in _threads.get(thread, ()) if one is not self])
            if not _installed:
                _patches.take_back()

    def here(self) -> bool:
        """Whether this thread works for it."""
        return self in _threads.get(threading.get_ident(), ())

    def tell(self) -> None:
        """This thread gives away work."""
        if self._thread == threading.get_ident():
            self._given()


def _set(thread: int, blocks: List[Workers]) -> None:
    if blocks:
        _threads[thread] = blocks
    else:
        _threads.pop(thread, None)


def _patch() -> None:
    from concurrent.futures import ThreadPoolExecutor

    pools = [(ThreadPoolExecutor, "submit")]
    if "multiprocessing.pool" in sys.modules:
        pool = sys.modules["multiprocessing.pool"].ThreadPool
        pools.extend((pool, name) for name in ("apply_async", "_map_async", "imap", "imap_unordered"))
    for owner, name in pools:
        _patches.put(owner, name, _giving(getattr(owner, name)))
    _patches.put(threading.Thread, "start", _starting(threading.Thread.start))


def _giving(give: Callable[..., Any]) -> Callable[..., Any]:
    """A pool's method that is given a function."""

    @functools.wraps(give)
    def given(self: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
        thread = threading.get_ident()
        blocks = _threads.get(thread, [])
        if not blocks:
            return give(self, function, *args, **kwargs)
        for block in blocks:
            block.tell()
        with _lock:
            _set(thread, [])  # threads that the pool starts now work for others later
        try:
            return give(self, functools.partial(_work, blocks, function), *args, **kwargs)
        finally:
            with _lock:
                _set(thread, blocks)

    return given


def _starting(start: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(start)
    def started(self: threading.Thread) -> Any:
        blocks = _threads.get(threading.get_ident(), [])
        for block in blocks:
            block.tell()
        if blocks:
            run = self.run

            def work() -> None:
                del self.run  # type: ignore[method-assign]
                _work(blocks, run)

            self.run = work  # type: ignore[method-assign]
        return start(self)

    return started


def _work(blocks: List[Workers], function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    thread = threading.get_ident()
    with _lock:
        before = _threads.get(thread, [])
        _set(thread, [*before, *blocks])
    try:
        return function(*args, **kwargs)
    finally:
        with _lock:
            _set(thread, before)
