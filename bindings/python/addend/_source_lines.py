"""The lines of Python that call an operator."""

import linecache
import os
import sys
import types
from typing import Any, Dict, List, Optional, Tuple

# File, line, function, text, and where in the text the expression is that runs (-1, 0: not known).
SourceLine = Tuple[str, int, str, str, int, int]

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def caller() -> Optional[types.FrameType]:
    """The innermost frame that is not ours."""
    frame: Optional[types.FrameType] = sys._getframe(1)
    while frame is not None and is_own(frame):
        frame = frame.f_back
    return frame


class SourceLines:
    """Gives the lines from a frame of the caller's on to the one that runs, outermost first; ours are left out."""

    def __init__(self, outermost: Optional[types.FrameType]):
        self._outermost = outermost
        self._lines: Dict[Tuple[Any, int], SourceLine] = {}

    def __call__(self) -> List[SourceLine]:
        lines: List[SourceLine] = []
        frame: Optional[types.FrameType] = sys._getframe(1)
        while frame is not None:
            if not is_own(frame):
                lines.append(self._line(frame))
            elif frame.f_code.co_name == "tell":
                lines.clear()  # a reading was told of: what stands inside is how
                while frame.f_back is not None and frame.f_back.f_globals.get("__name__") == "torch._tensor":
                    frame = frame.f_back  # Tensor.__array__(), which asarray() calls
            if frame is self._outermost:
                break
            frame = frame.f_back
        lines.reverse()
        return lines

    def _line(self, frame: types.FrameType) -> SourceLine:
        key = (frame.f_code, frame.f_lasti)
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = _describe(frame)
        return line


def is_own(frame: types.FrameType) -> bool:
    """Whether it is a frame of this package."""
    return frame.f_code.co_filename.startswith(_HERE)


def level_of_caller() -> int:
    """How far above the function that warns, which calls this, the caller of this library is: a `stacklevel`."""
    level = 1
    frame = sys._getframe(1)
    while frame.f_back is not None and is_own(frame):
        frame = frame.f_back
        level += 1
    return level


def _describe(frame: types.FrameType) -> SourceLine:
    code = frame.f_code
    number = frame.f_lineno or 0
    source = linecache.getline(code.co_filename, number, frame.f_globals).rstrip()
    text = source.lstrip()
    column, length = _expression(frame, number, source)
    # Columns count bytes, and indentation has one for each character.
    column -= len(source) - len(text)
    size = len(text.encode("utf-8", "replace"))
    if not 0 <= column < size:
        column, length = -1, 0
    return _shown(code.co_filename), number, code.co_name, text, column, min(length, size - column)


def _expression(frame: types.FrameType, number: int, source: str) -> Tuple[int, int]:
    """The position on its line at which the running expression begins, and its length there; (-1, 0) if unknown."""
    positions = getattr(frame.f_code, "co_positions", None)  # from Python 3.11 on
    if positions is None:
        return -1, 0
    for index, (line, last, begin, end) in enumerate(positions()):
        if index != frame.f_lasti // 2:
            continue
        if line != number or begin is None or end is None:
            return -1, 0
        return begin, (end if last == line else len(source.encode("utf-8", "replace"))) - begin
    return -1, 0


def _shown(file: str) -> str:
    """Relative to the working directory where it is inside of it."""
    here = os.getcwd() + os.sep
    return file[len(here) :] if file.startswith(here) else file
