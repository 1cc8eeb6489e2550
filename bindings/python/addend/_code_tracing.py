"""What PyTorch computes in a block of code, printed as source lines with the operators that they call."""

import sys
from typing import Any, Iterable, Optional, Sequence, TextIO

from . import _native
from ._input import new_request
from ._live import Block
from ._program import code_options
from ._source_lines import SourceLines, caller
from ._tensor import as_tensor


def code_tracing(
    *,
    succinct: bool = True,
    color: bool = False,
    marks: bool = False,
    include: Iterable[str] = (),
    exclude: Optional[Iterable[str]] = None,
    file: Optional[TextIO] = None,
) -> "CodeTracing":
    """Prints what PyTorch computes in a ``with`` block, each operator under the source lines that called it::

        with addend.code_tracing(color=True):
            model(*args, **kwargs)

    It is the text of `Program.code`. Nothing has to be named. Where the block raises, what was reached is printed, and
    the error goes on. A model on the meta device shows the shapes of a large one without its memory. What
    ``torch.compile`` has compiled calls no operators, and is not seen.

    Args:
        succinct: as for `Program.code`, and so are the others.
        file: where it is printed; ``sys.stdout`` unless given.
    """
    return CodeTracing(file, code_options(succinct, color, False, marks, include, exclude, None))


class CodeTracing(Block):
    """The block of `code_tracing`. It belongs to the thread that enters it.

    Attributes:
        text: what was printed, once the block has ended.
    """

    _ends_behind = (BaseException,)

    def __init__(self, file: Optional[TextIO], options: str):
        request = new_request((), False, None)
        super().__init__([], [], request)
        self.text = ""
        self._file = file
        self._options = options
        # A program has an input and an output.
        self._nothing = as_tensor([0.0])
        _native.request_add_input(request, None, self._nothing._handle)

    def __enter__(self) -> "CodeTracing":
        self._require_new()
        lines = SourceLines(caller())
        self._begin(_native.trace_record(self._request, lines))
        return self

    def _end(self, trace: Any, notes: Sequence[str]) -> None:
        _native.trace_add_output(trace, "output", self._nothing._handle)
        code = _native.program_code_text(_native.trace_end_program(trace), self._options)
        self.text = code + "".join("# %s\n" % note for note in notes)
        file = sys.stdout if self._file is None else self._file
        file.write(self.text)
        file.flush()
