"""Blocks of code in which the operators of a thread are recorded."""

import threading
import types
from typing import Any, Callable, List, Optional, Sequence, Tuple, Type

from . import _native
from ._errors import Code, Error, Unimplemented
from ._input import Input
from ._live_tensors import live_tensor
from ._modules import ModulePaths, Modules, SlowAttention, SlowPaths, Uncompiled, listing_module
from ._reads import Readings
from ._structure import map_leaves
from ._tensor import as_tensor
from ._workers import Workers

_HIGHER_ORDER = (
    "the model calls a higher-order operator of PyTorch (cond, while_loop, scan, map), which PyTorch compiles even where it "
    "is called as it is, so that its operators are not seen; save the model with torch.export.save and load the file with "
    "addend.load_model"
)
_ELSEWHERE = (
    "%s ran on another thread, where no operator is seen: only what LibTorch computes on the thread of the trace is; let "
    "the model run its modules one after the other"
)
_GIVEN_AWAY = (
    "the model gave work to another thread, where no operator is seen: what that computed from the inputs counts as a "
    "constant"
)
_LISTED = (
    "the TorchScript module %s takes a list of a tensor's elements, which no operator shows: the reference may be that of "
    "another branch"
)
UNCOMPILED = "torch.compile wraps %s, which ran as it is inside, uncompiled"


class _Running(threading.local):
    """Counts the runs of models on this thread, so that a traced model inside of another one runs as a plain model."""

    depth = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *exception: Any) -> None:
        self.depth -= 1


running = _Running()


class Block:
    """Records the operators that this thread runs between entering and leaving, with live copies of inputs. It can be
    entered once."""

    # Errors of the block behind which the recording is ended as well: PyTorch gives its errors this type.
    _ends_behind: Tuple[Type[BaseException], ...] = (RuntimeError,)

    def __init__(self, inputs: Sequence[Input], modules: Modules, request: Any):
        self.inputs: Tuple[Any, ...] = tuple(live_tensor(source.value) for source in inputs)
        self._request = request
        self._workers = Workers(self._give_away)
        self._modules = ModulePaths(modules, self._workers)
        self._slow_paths = SlowPaths(modules)
        self._slow_attention: Optional[SlowAttention] = None  # where one is installed around this
        self._uncompiled = Uncompiled(modules)
        self._listing = listing_module(modules)
        self._readings = Readings()
        self._notes: List[str] = []
        self._trace: Any = None
        self._count = 0

    def output(self, tensor: Any, name: Optional[str] = None) -> None:
        """Asks for a tensor that was computed in the block.

        Args:
            tensor: of PyTorch; of a trace that decomposes a floating-point one.
            name: of the result; ``"output"``, ``"output.1"`` and so on unless given.

        Raises:
            NotFound: nothing that was recorded gave it.
            Unimplemented: a module of the model ran on another thread.
        """
        if self._trace is None:
            raise ValueError("outputs are named inside of the with block")
        if name is None:
            name = "output.%d" % self._count if self._count else "output"
        self._require_one_thread()
        _native.trace_add_output(self._trace, name, as_tensor(tensor)._handle)
        self._count += 1

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[types.TracebackType],
    ) -> None:
        running.__exit__()
        self._modules.remove()
        self._workers.remove()
        notes = [*self._notes, *self._slow_paths.remove()]
        if self._slow_attention is not None:
            notes.extend(self._slow_attention.notes())
        self._uncompiled.remove()
        self._readings.remove()
        trace, self._trace = self._trace, None
        if error is None:
            self._require_one_thread()
            self._readings.read_given()
            self._end(trace, notes)
        elif _is_of_higher_order(error):
            trace = None  # ends it: this frame lives as long as the error
            raise Unimplemented(_HIGHER_ORDER) from error
        elif isinstance(error, self._ends_behind):
            _raise_own(lambda trace: self._end(trace, notes), trace, error)

    def _begin(self, trace: Any) -> None:
        self._trace = trace
        self._request = None
        self._slow_paths.install()
        wrapped = self._uncompiled.install()
        if wrapped:
            self._notes.append(UNCOMPILED % ", ".join(wrapped))
        self._modules.install(self._set_module, self._add_module_outputs)
        self._workers.install()
        self._readings.install()
        if self._listing is not None:
            self._tell_of_reads(_LISTED % (self._listing or "itself"))
        running.__enter__()

    def _give_away(self) -> None:
        """Work goes to another thread."""
        if _GIVEN_AWAY not in self._notes:
            self._tell_of_reads(_GIVEN_AWAY)

    def _tell_of_reads(self, note: str) -> None:
        """Something may read all of the inputs, and nobody sees what."""
        import torch

        self._notes.append(note)
        for live in self.inputs:
            if not live.is_meta:
                torch.ops.addend.elements_read_outside(live)

    def _require_one_thread(self) -> None:
        if self._modules.elsewhere is not None:
            raise Unimplemented(_ELSEWHERE % (self._modules.elsewhere or "the model"))

    def _require_new(self) -> None:
        if self._request is None:
            raise RuntimeError("a trace runs once; make another one")

    def _end(self, trace: Any, notes: Sequence[str]) -> None:
        raise NotImplementedError

    def _set_module(self, path: str) -> None:
        _native.trace_set_module(self._trace, path)

    def _add_module_outputs(self, path: str, output: Any) -> None:
        """Tells what a module has returned."""
        import torch

        if type(output) is torch.Tensor:  # as of nearly all modules
            _native.trace_add_module_output(self._trace, path, 0, _handle_of(output))
            return
        tensors: List[Any] = []

        def note(leaf: Any, _: str) -> Any:
            if isinstance(leaf, torch.Tensor):
                tensors.append(leaf)
            return leaf

        map_leaves(note, output, "")
        for index, tensor in enumerate(tensors or [None]):
            _native.trace_add_module_output(self._trace, path, index, _handle_of(tensor))


def _handle_of(tensor: Any) -> Any:
    """A handle of a tensor that a module returned, without an operator; None where it can have none."""
    try:
        return None if tensor is None else _native.tensor_from_torch(tensor)
    except (Error, RuntimeError, TypeError):
        return None


def _is_of_higher_order(error: BaseException) -> bool:
    """Whether PyTorch says that a higher-order operator does not run while operators are seen."""
    if isinstance(error, NotImplementedError):
        return "HigherOrderOperator" in str(error)
    kinds = [kind.__name__ for kind in type(error).__mro__]
    # From LibTorch 2.15 on, the operator has its functions compiled, which fails on what is seen.
    compiled = "TorchDynamoException" in kinds and "_higher_order_ops" in str(error)
    return compiled or "UncapturedHigherOrderOpError" in kinds


def _raise_own(end: Callable[[Any], None], trace: Any, error: BaseException) -> None:
    """Raises what the recording itself failed with, which PyTorch has turned into an error of its own."""
    try:
        end(trace)
    except Error as own:
        if str(own).startswith("no reason given"):
            # An error of Python within an operator, whose words LibTorch does not hand on: `error` has them.
            return
        # The error of an operator that the model called wrongly is the model's own: it stays as PyTorch words it.
        if own.code not in (Code.INVALID_ARGUMENT, Code.OUT_OF_RANGE):
            raise own from error
