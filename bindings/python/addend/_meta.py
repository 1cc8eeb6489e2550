"""Copies of models on PyTorch's meta device, where tensors have no elements."""

import copy
import types
from typing import Any, Dict, Tuple

from ._modules import is_module, modules_of
from ._structure import map_leaves


def on_meta(model: Any, args: Any, kwargs: Any) -> Tuple[Any, Any, Any]:
    """A copy of a model, and the arguments of a call, without elements. Parameters are not copied on the way.

    Raises:
        TypeError: the model is neither a module nor a method of one.
    """
    if not is_module(model) and not (isinstance(model, types.MethodType) and is_module(model.__self__)):
        raise TypeError("only a torch.nn.Module can be copied to the meta device, and what holds it; leave meta out")
    memo: Dict[int, Any] = {}
    for _, module in modules_of(model):
        for tensor in (*module._parameters.values(), *module._buffers.values()):
            if tensor is not None:
                memo[id(tensor)] = _empty(tensor)
    args, kwargs = map_leaves(lambda leaf, _: _empty(leaf), (args, kwargs), "")
    return copy.deepcopy(model, memo), args, kwargs


def _empty(leaf: Any) -> Any:
    """A tensor without its elements; anything else as it is."""
    import torch

    if not isinstance(leaf, torch.Tensor):
        return leaf
    empty = leaf.detach().to("meta")
    if isinstance(leaf, torch.nn.Parameter):
        return torch.nn.Parameter(empty, requires_grad=leaf.requires_grad)
    return empty.requires_grad_(leaf.requires_grad)
