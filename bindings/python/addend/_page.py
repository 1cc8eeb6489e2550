"""Pages and pictures: where they are written, and how notebooks show pages."""

import html
import os
from typing import Union

Path = Union[None, str, "os.PathLike[str]"]


def written(page: str, path: Path) -> str:
    """The page or picture, which is written to a file too if a path is given."""
    if path is not None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(page)
    return page


def framed(page: str, height: int = 32) -> str:
    """The page in a frame of its own, as a cell of a notebook shows it: its scripts draw it, and reach nothing else. height:
    in em."""
    return '<iframe srcdoc="%s" style="width: 100%%; height: %dem; border: 0" sandbox="allow-scripts"></iframe>' % (
        html.escape(page),
        height,
    )
