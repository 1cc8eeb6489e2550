"""Traced models of modules, which are modules themselves. Imports PyTorch."""

import functools
import types
from typing import Any, Callable, Dict

import torch

from ._modules import is_module
from ._traced_model import TracedModel

# Methods that PyTorch and others call on the modules inside of a module, beside its public ones.
_ASKED_OF_MODEL = (
    "__dir__",
    "_apply",
    "_load_from_state_dict",
    "_named_members",
    "_register_load_state_dict_pre_hook",
    "_register_state_dict_hook",
    "_save_to_state_dict",
)


class TracedModule(TracedModel, torch.nn.Module):
    """A `TracedModel` of a ``torch.nn.Module``, and one itself: it stands wherever modules do.

    Whatever a module is asked is asked of the wrapped one: its mode, parameters, buffers, submodules and state dict, by
    the names that they have there, so that a state dict of the one loads into the other, also inside of a larger module.
    What gives back the module itself (``eval()``, ``to()``) gives back the wrapper. Attributes that are set are set on the
    wrapped module. Hooks of calls alone are the wrapper's: they see what it is given and what it returns.
    """

    def __init__(self, model: Any, options: Dict[str, Any]):
        torch.nn.Module.__init__(self)
        self.__dict__.update(TracedModel(model, options).__dict__)

    __call__ = torch.nn.Module.__call__
    forward = TracedModel.__call__

    def _of(self, model: Any) -> TracedModel:
        return (TracedModule if is_module(model) else TracedModel)(model, dict(self._options))

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__ or "model" not in self.__dict__:
            object.__setattr__(self, name, value)
        else:
            setattr(self.model, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self.model, name)

    def __setstate__(self, state: Dict[str, Any]) -> None:
        torch.nn.Module.__init__(self)
        self.__dict__.update(state)


def _attribute_of_model(name: str) -> property:
    """An attribute of every module, which is the wrapped one's."""

    def put(self: TracedModule, value: Any) -> None:
        if "model" in self.__dict__:  # not while Module.__init__ gives the wrapper its own
            setattr(self.model, name, value)

    return property(lambda self: getattr(self.model, name), put)


def _method_of_model(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of every module, which the wrapped one answers."""

    @functools.wraps(method)
    def ask(self: TracedModule, *args: Any, **kwargs: Any) -> Any:
        answer = getattr(self.model, name)(*args, **kwargs)
        return self if answer is self.model else answer

    return ask


def _is_of_model(name: str) -> bool:
    """Whether the wrapped module answers a method, and not the wrapper: calls and the hooks around them are its own."""
    if name in vars(TracedModel) or "forward" in name or "backward" in name:
        return False
    return name in _ASKED_OF_MODEL or not name.startswith("_")


for _name in ("training", "_parameters", "_buffers", "_modules"):
    setattr(TracedModule, _name, _attribute_of_model(_name))
for _name, _method in vars(torch.nn.Module).items():
    if isinstance(_method, types.FunctionType) and _is_of_model(_name):
        setattr(TracedModule, _name, _method_of_model(_name, _method))
