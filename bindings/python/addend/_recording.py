"""Blocks of code that are kept as programs."""

from typing import Any, Optional, Sequence

from . import _native
from ._block import Block
from ._input import Input, as_input
from ._modules import modules_of, named_tensors
from ._program import Program
from ._request import new_request
from ._source_lines import SourceLines, caller
from ._tensor import as_tensor


def recording(*inputs: Any, model: Any = None, lines: bool = True) -> "Recording":
    """Keeps what PyTorch computes in a ``with`` block as a `Program`::

        with addend.recording(x, model=network) as trace:
            logits = network(trace.inputs[0])
            trace.output(logits)
        print(trace.program.code())

    Every operator that this thread calls is recorded, whoever calls it, and runs as ever.

    Args:
        inputs: tensors or arrays: the inputs of the program.
        model: a ``torch.nn.Module``, so that the program knows the names of its modules, parameters and buffers. Tensors
            that nobody named are constants of the program.
        lines: whether every operator knows the lines of Python that called it, which takes some microseconds.
    """
    return Recording([as_input(value) for value in inputs], [None] * len(inputs), model, lines)


class Recording(Block):
    """The block of `recording`. It belongs to the thread that enters it.

    Attributes:
        inputs: the live tensors, copies of what was given, in the same order: what the model has to be called with.
        program: the `Program`, once the block has ended. Its outputs are what `output` was given, in order.
    """

    def __init__(self, inputs: Sequence[Input], names: Sequence[Optional[str]], model: Any, lines: bool):
        request = new_request()
        modules = modules_of(model)
        super().__init__(inputs, modules, request)
        self.program: Optional[Program] = None
        self._lines = lines
        for name, live in zip(names, self.inputs):
            _native.request_add_input(request, name, as_tensor(live)._handle)
        for name, tensor, learned in named_tensors(modules):
            add = _native.request_add_parameter if learned else _native.request_add_buffer
            add(request, name, as_tensor(tensor)._handle)

    def __enter__(self) -> "Recording":
        self._require_new()
        lines = SourceLines(caller()) if self._lines else None
        self._begin(_native.trace_record(self._request, lines))
        return self

    def _end(self, trace: Any, notes: Sequence[str]) -> None:
        self.program = Program(_native.trace_end_program(trace))
