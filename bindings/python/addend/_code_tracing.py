"""Source lines of a block of code with the operators that they call, printed while PyTorch computes."""

import sys
from typing import Any, Iterable, List, Optional, Sequence, TextIO

from . import _native
from ._block import Block
from ._program import code_options
from ._request import new_request
from ._source_lines import SourceLines, caller


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

    It is the text of `Program.code`, and each operator is printed once it has finished. Nothing has to be named. Where
    the block raises, what was reached is there, and the error goes on. A model on the meta device shows the shapes of a
    large one without its memory. What ``torch.compile`` has compiled calls no operators, and is not seen.

    Args:
        succinct: as for `Program.code`, and so are the others.
        file: where it is printed; ``sys.stdout`` unless given.
    """
    return CodeTracing(file, code_options(succinct, color, False, marks, include, exclude, None))


class CodeTracing(Block):
    """The block of `code_tracing`. It belongs to the thread that enters it.

    Attributes:
        text: what was printed so far.
    """

    _ends_behind = (BaseException,)

    def __init__(self, file: Optional[TextIO], options: str):
        super().__init__([], [], new_request())
        self._file = file
        self._options = options
        self._lines: List[str] = []

    @property
    def text(self) -> str:
        return "".join(self._lines)

    def __enter__(self) -> "CodeTracing":
        self._require_new()
        lines = SourceLines(caller())
        trace = _native.trace_record(self._request, lines)
        _native.trace_show_code(trace, self._options, self._show)
        self._begin(trace)
        return self

    def _end(self, trace: Any, notes: Sequence[str]) -> None:
        for note in notes:
            self._show(0, "# %s\n" % note)

    def _show(self, level: int, lines: str) -> None:
        self._lines.append(lines)
        file = sys.stdout if self._file is None else self._file
        file.write(lines)
        file.flush()
