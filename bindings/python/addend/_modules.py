"""Where in a model a thread is."""

import threading
from typing import Any, Callable, Iterator, List, Optional, Tuple


class ModulePaths:
    """Tells the path of the module that runs on the thread that installs it, while it is installed."""

    def __init__(self, model: Any):
        self._model = model
        self._hooks: List[Any] = []

    def install(self, tell: Callable[[str], None]) -> None:
        # Hooks run on every thread that uses the model: each trace listens to its own thread only.
        thread = threading.get_ident()
        running: List[Tuple[Any, str]] = []

        def enter(path: str) -> Callable[..., None]:
            def hook(module: Any, *_: Any) -> None:
                if threading.get_ident() == thread:
                    running.append((module, path))
                    tell(path)

            return hook

        def leave(module: Any, *_: Any) -> None:
            if threading.get_ident() != thread:
                return
            # A module that raised never left: those inside of this one go too.
            while running and running.pop()[0] is not module:
                pass
            tell(running[-1][1] if running else "")

        for path, module in _submodules(self._model):
            self._hooks.append(module.register_forward_pre_hook(enter(path)))
            self._hooks.append(module.register_forward_hook(leave))

    def remove(self) -> None:
        while self._hooks:
            self._hooks.pop().remove()


def named_tensors(model: Any) -> Iterator[Tuple[str, Any, bool]]:
    """Parameters and buffers, by the names that they have in the model, and whether they are learned."""
    module = _module_of(model)
    if module is not None:
        for name, tensor in module.named_parameters():
            yield name, tensor, True
        for name, tensor in module.named_buffers():
            yield name, tensor, False


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
