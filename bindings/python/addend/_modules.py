"""The modules of a model, what they hold, and where in them a thread is."""

import threading
from typing import Any, Callable, Dict, Iterator, List, Tuple

from ._tensor import Tensor, as_tensor

Modules = List[Tuple[str, Any]]


def modules_of(model: Any) -> Modules:
    """The modules of a model with their paths, itself first; none of what is no ``torch.nn.Module``."""
    import torch

    return list(model.named_modules()) if isinstance(model, torch.nn.Module) else []


class ModulePaths:
    """Tells the path of the module that runs on the thread that installs it, while it is installed."""

    def __init__(self, modules: Modules):
        self._modules = modules
        self._hooks: List[Any] = []

    def install(self, tell: Callable[[str], None]) -> None:
        if not self._modules:
            return
        from torch.jit import ScriptModule

        submodules = [(path, module) for path, module in self._modules if not isinstance(module, ScriptModule)]
        paths = {id(module): path for path, module in submodules}
        if not paths:
            return
        from torch.nn.modules import module as hooks

        # Hooks run on every thread and for every module: each trace listens to its own thread and model only.
        thread = threading.get_ident()
        running: List[Any] = []

        def enter(module: Any, *_: Any) -> None:
            if threading.get_ident() == thread:
                running.append(module)
                tell(paths[id(module)])

        def leave(module: Any, *_: Any) -> None:
            if threading.get_ident() != thread:
                return
            # A module that raised never left: those inside of this one go too.
            while running and running.pop() is not module:
                pass
            tell(paths[id(running[-1])] if running else "")

        # One pair of hooks for all modules is there at once, where a pair for each takes longer than a small model. It
        # runs before a module's own hooks, and what those compute belongs to the module: one that has hooks behind its
        # forward is left by a hook of its own.
        left = set(paths)
        for _, module in submodules:
            if module._forward_hooks:
                left.discard(id(module))
                self._hooks.append(module.register_forward_hook(leave))
        self._hooks.append(
            hooks.register_module_forward_pre_hook(lambda module, *_: enter(module) if id(module) in paths else None)
        )
        self._hooks.append(
            hooks.register_module_forward_hook(lambda module, *_: leave(module) if id(module) in left else None)
        )

    def remove(self) -> None:
        while self._hooks:
            self._hooks.pop().remove()


def named_tensors(modules: Modules) -> Iterator[Tuple[str, Any, bool]]:
    """Parameters and buffers, by the names that they have in the model, and whether they are learned."""
    for learned in (True, False):
        seen = set()
        for path, submodule in modules:
            for name, tensor in (submodule._parameters if learned else submodule._buffers).items():
                if tensor is None or id(tensor) in seen:
                    continue
                seen.add(id(tensor))
                yield (path + "." + name if path else name), tensor, learned


class KnownTensors:
    """Handles of a model's tensors, from one run to the next: made anew, they take longer than a small operator."""

    def __init__(self) -> None:
        self._known: Dict[int, Tuple[Any, Any, Tensor]] = {}

    def handles(self, modules: Modules) -> Iterator[Tuple[str, Tensor]]:
        """What `named_tensors` gives, as tensors of Addend."""
        known = {}
        for name, tensor, _ in named_tensors(modules):
            if tensor.is_conj() or tensor.is_neg():  # a copy, which writes would not reach
                yield name, as_tensor(tensor)
                continue
            memory = (tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype)
            entry = self._known.get(id(tensor))
            if entry is None or entry[0] is not tensor or entry[1] != memory:
                entry = (tensor, memory, as_tensor(tensor))
            known[id(tensor)] = entry
            yield name, entry[2]
        self._known = known
