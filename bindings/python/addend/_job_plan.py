"""What Python itself reads of the plan of a job; the library checks all of it."""

import json
from typing import Any, Dict

from ._errors import InvalidArgument

_ENDING = ".json"


def read_plan(path: str) -> Dict[str, Any]:
    """The document. Raises InvalidArgument for another one."""
    with open(path, encoding="utf-8") as file:
        try:
            plan = json.load(file)
        except ValueError as error:
            raise InvalidArgument("%s is no plan of a job: %s" % (path, error)) from None
    if not isinstance(plan, dict) or plan.get("format") != "addend.job":
        raise InvalidArgument("%s is no plan of a job" % path)
    return plan


def results_folder(path: str) -> str:
    """``rows.out`` for ``rows.json``."""
    return (path[: -len(_ENDING)] if path.endswith(_ENDING) else path) + ".out"
