"""Where in a model a thread is."""

import threading
from typing import Any, Callable, Iterator, List, Optional, Tuple


class ModulePaths:
    """Tells the path of the module that runs on the thread that installs it, while it is installed."""

    def __init__(self, model: Any):
        self._model = model
        self._hooks: List[Any] = []

    def install(self, tell: Callable[[str], None]) -> None:
        paths = {id(module): path for path, module in _submodules(self._model)}
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
        for _, module in _submodules(self._model):
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


def named_tensors(model: Any) -> Iterator[Tuple[str, Any, bool]]:
    """Parameters and buffers, by the names that they have in the model, and whether they are learned."""
    module = _module_of(model)
    if module is None:
        return
    modules = list(module.named_modules())
    for learned in (True, False):
        seen = set()
        for path, submodule in modules:
            for name, tensor in (submodule._parameters if learned else submodule._buffers).items():
                if tensor is None or id(tensor) in seen:
                    continue
                seen.add(id(tensor))
                yield (path + "." + name if path else name), tensor, learned


def _submodules(model: Any) -> Iterator[Tuple[str, Any]]:
    module = _module_of(model)
    if module is None:
        return
    import torch

    for path, submodule in module.named_modules():
        if not isinstance(submodule, torch.jit.ScriptModule):
            yield path, submodule


def _module_of(model: Any) -> Optional[Any]:
    import torch

    return model if isinstance(model, torch.nn.Module) else None
