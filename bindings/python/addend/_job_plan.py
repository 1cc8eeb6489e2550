"""The part of a job's plan that Python itself reads; the library checks all of the plan."""

import json
import operator
from typing import Any, Dict, Mapping, Tuple

from . import _native
from ._errors import FailedPrecondition, InvalidArgument
from ._files import read_file

_ENDING = ".json"

# Results that are wrong, in one message.
_MOST_TOLD = 20


def checked_plan(path: str) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """The document of a plan that the library has found whole, and what `Job.status` tells of it. Raises what that does."""
    status = json.loads(_native.job_status(path))
    return read_plan(path), status


def require_own_results(path: str, status: Mapping[str, Any]) -> None:
    """Raises FailedPrecondition where the results that lie beside a plan are damaged, differ or are another plan's."""
    wrong = status["wrong"]
    if not wrong:
        return
    told = wrong[:_MOST_TOLD] + ["and %d more" % (len(wrong) - _MOST_TOLD)] * (len(wrong) > _MOST_TOLD)
    raise FailedPrecondition(
        "%s\nRemove what is wrong from %s/shards and run those shards again" % ("\n".join(told), results_folder(path))
    )


def shard_number(shard: Any, shards: int) -> int:
    """The number of one of so many shards. Raises InvalidArgument for one that there is not."""
    try:
        number = operator.index(shard)
    except TypeError:
        raise TypeError("a shard is a whole number, not %r" % (shard,)) from None
    if not 0 <= number < shards:
        raise InvalidArgument("there is no shard %d: the plan has %d, from 0" % (number, shards))
    return number


def read_plan(path: str) -> Dict[str, Any]:
    """The document. Raises InvalidArgument for another one."""
    content = read_file(path)
    try:
        plan = json.loads(content.decode("utf-8"))
    except ValueError as error:
        raise InvalidArgument("%s is no plan of a job: %s" % (path, error)) from None
    if not isinstance(plan, dict) or plan.get("format") != "addend.job":
        raise InvalidArgument("%s is no plan of a job" % path)
    return plan


def results_folder(path: str) -> str:
    """``rows.out`` for ``rows.json``."""
    return (path[: -len(_ENDING)] if path.endswith(_ENDING) else path) + ".out"
