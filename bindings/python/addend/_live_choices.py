"""Choices of Addend in calls of live models, which stand beside the models' own arguments."""

from typing import Any, Dict, Optional, Sequence, Tuple, Union

from . import _request_options
from ._context import CHOICES, Context, as_context
from ._live_call import parameters_of
from ._request import new_request

# Choices of decompositions, and those of any question; a `Context` has all others.
OF_DECOMPOSE = ("probes", "outputs", *_request_options.OF_DECOMPOSE)
OF_ANY = ("inside", "cancellation", "context", *_request_options.OF_ANY)


class _Unset:
    """The type of `UNSET`."""

    def __repr__(self) -> str:
        return "UNSET"


# The default of a choice that a call need not make: it then is what `compile` was told.
UNSET: Any = _Unset()


def made(**choices: Any) -> Dict[str, Any]:
    """The choices that a call makes."""
    return {name: value for name, value in choices.items() if value is not UNSET}


def separated(model: Any, kwargs: Dict[str, Any]) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """Keyword arguments of a call: choices of Addend, and arguments of the model, which has the names first."""
    own = parameters_of(model)
    names = {name for name in (*OF_DECOMPOSE, *OF_ANY, *CHOICES) if name not in own}
    chosen = {name: value for name, value in kwargs.items() if name in names}
    return chosen, {name: value for name, value in kwargs.items() if name not in names}


def for_files(chosen: Dict[str, Any], taken: Sequence[str]) -> Dict[str, Any]:
    """The choices that a model from a file takes: some of Addend, and those of a policy."""
    return {name: value for name, value in chosen.items() if name in taken or name in CHOICES}


def names_of(outputs: Union[None, str, Sequence[str]]) -> Optional[Sequence[str]]:
    """The outputs that a choice names; None: all."""
    return (outputs,) if isinstance(outputs, str) else outputs


def request_of(chosen: Dict[str, Any]) -> Tuple[Any, Context]:
    """A native request and the context of a call's choices."""
    chosen = dict(chosen)
    options = {key: chosen.pop(key) for key in _request_options.OF_TRACE if key in chosen}
    request = new_request(chosen.pop("probes", ()), chosen.pop("cancellation", None), **options)
    return request, as_context(chosen.pop("context", None), **chosen)
