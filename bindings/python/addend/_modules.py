"""The modules of a model, what they hold, what they are asked to do otherwise, and where in them a thread is."""

import functools
import sys
import threading
import types
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from ._tensor import Tensor, as_tensor
from ._workers import Workers

Modules = List[Tuple[str, Any]]

_NOTHING = object()


def is_module(model: Any) -> bool:
    """Whether it is a ``torch.nn.Module``."""
    import torch

    return isinstance(model, torch.nn.Module)


def modules_of(model: Any) -> Modules:
    """The modules of a model with their paths, itself first. Those of a bound method are those of its module; those of a
    function, or of an object that is called, begin with the names of the variables, or attributes, that hold them."""
    if is_module(model):
        return list(model.named_modules())
    if isinstance(model, functools.partial):
        return modules_of(model.func)
    if is_module(getattr(model, "__self__", None)):
        return modules_of(model.__self__)
    found: Dict[int, Tuple[str, Any]] = {}
    for name, value in variables_of(model):
        for path, module in value.named_modules() if is_module(value) else ():
            found.setdefault(id(module), (name + "." + path if path else name, module))
    return list(found.values())


def variables_of(model: Any) -> List[Tuple[str, Any]]:
    """The variables that a function closes over, and the globals that it may name; of another object its attributes."""
    if not isinstance(model, types.FunctionType):
        own = getattr(model, "__dict__", None)
        return list(own.items()) if isinstance(own, dict) else []
    variables = []
    for name, cell in zip(model.__code__.co_freevars, model.__closure__ or ()):
        try:
            variables.append((name, cell.cell_contents))
        except ValueError:  # it is empty
            continue
    named = model.__globals__
    variables.extend((name, named[name]) for name in model.__code__.co_names if name in named)
    return variables


def unwrapped(model: Any) -> Any:
    """The model or function that ``torch.compile`` has wrapped; None where it has not."""
    import torch

    # Wrappers keep the wrapped object under one name for modules, and under another for functions.
    inner = getattr(model, "_orig_mod", None)
    if isinstance(model, torch.nn.Module):
        return inner if isinstance(inner, torch.nn.Module) else None
    inner = getattr(model, "_torchdynamo_orig_callable", None)
    return inner if callable(inner) else None


class _Declined:
    """Says no, and knows whether it was asked about a batch that is padded where nobody differentiates."""

    def __init__(self, module: Any) -> None:
        self.asked = False
        self._module = module

    def __bool__(self) -> bool:
        mask = sys._getframe(1).f_locals.get("src_key_padding_mask")
        self.asked = self.asked or (mask is not None and not _learns(self._module))
        return False


class SlowPaths:
    """Keeps modules, while it is installed, from short cuts whose tensors nobody can decompose: those that are nested,
    which ``torch.nn.TransformerEncoder`` makes of padded batches where nobody asks for gradients."""

    _SWITCHES = ("enable_nested_tensor", "use_nested_tensor")

    def __init__(self, modules: Modules):
        self._modules = modules
        self._before: List[Tuple[Any, str, Any]] = []
        self._declined: List[Tuple[str, _Declined]] = []

    def install(self) -> None:
        import torch

        for path, module in self._modules:
            if not isinstance(module, torch.nn.TransformerEncoder):
                continue
            declined = _Declined(module)
            for name in self._SWITCHES:
                before = module.__dict__.get(name)
                if before is True:
                    self._before.append((module, name, before))
                    setattr(module, name, declined)
            self._declined.append((path, declined))

    def remove(self) -> List[str]:
        """Puts everything back; notes of what was done otherwise."""
        while self._before:
            setattr(*self._before.pop())
        asked = [path or "the model" for path, declined in self._declined if declined.asked]
        self._declined.clear()
        if not asked:
            return []
        return [
            "%s ran without nested tensors: the same numbers, but where positions are padded, which those leave zero, "
            "it gives what its layers compute" % ", ".join(asked)
        ]


class _Uneven(int):
    """A number of heads that says that it is odd, which PyTorch has no fused attention for; it is the same otherwise.

    Attributes:
        asked: whether it was asked so where nobody differentiates.
    """

    asked = False
    learns: Callable[[], bool] = staticmethod(lambda: False)

    def __mod__(self, other: Any) -> int:
        if other != 2:
            return int(self) % other
        self.asked = self.asked or not self.learns()
        return 1


class SlowAttention:
    """Keeps ``torch.nn.MultiheadAttention``, while it is installed, from its fused path, which it takes in evaluation mode
    where nobody asks for gradients: one operator, in which no heads are seen. It is installed in a ``with`` block."""

    def __init__(self, modules: Modules):
        self._modules = modules
        self._before: List[Tuple[str, Any, int]] = []

    def __enter__(self) -> "SlowAttention":
        import torch

        for path, module in self._modules:
            heads = module.__dict__.get("num_heads")
            if isinstance(module, torch.nn.MultiheadAttention) and type(heads) is int:
                self._before.append((path, module, heads))
                module.num_heads = _Uneven(heads)
                module.num_heads.learns = functools.partial(_learns, module)
        return self

    def notes(self) -> List[str]:
        """Notes of what was done otherwise so far."""
        asked = [path or "the model" for path, module, _ in self._before if getattr(module.num_heads, "asked", False)]
        if not asked:
            return []
        said = "%s ran without PyTorch's fused attention, which shows no heads: the same but for rounding"
        return [said % ", ".join(asked)]

    def __exit__(self, *exception: Any) -> None:
        while self._before:
            _, module, heads = self._before.pop()
            module.num_heads = heads


def _learns(module: Any) -> bool:
    """Whether PyTorch follows what a module computes, to differentiate it."""
    import torch

    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in module.parameters())


class Uncompiled:
    """Runs modules, while it is installed, as they are inside of what ``torch.compile`` put around them: compiled code
    calls no operators that anybody could see."""

    def __init__(self, modules: Modules):
        self._modules = modules
        self._before: List[Tuple[Any, str, Any]] = []

    def install(self) -> List[str]:
        """The paths of the modules that run otherwise."""
        paths = []
        for path, module in self._modules:
            if "_orig_mod" in module._modules:  # a wrapper
                self._put(module, "forward", module._modules["_orig_mod"].__call__)
            elif module.__dict__.get("_compiled_call_impl") is not None:  # by its own method compile()
                self._put(module, "_compiled_call_impl", None)
            else:
                continue
            paths.append(path or "the model")
        return paths

    def remove(self) -> None:
        """Puts everything back."""
        while self._before:
            own, name, before = self._before.pop()
            if before is _NOTHING:
                del own[name]
            else:
                own[name] = before

    def _put(self, module: Any, name: str, value: Any) -> None:
        # Not by setattr: wrappers pass attributes on to what they wrap.
        own = module.__dict__
        self._before.append((own, name, own.get(name, _NOTHING)))
        own[name] = value


class ModulePaths:
    """Tells the path of the module that runs on the thread that installs it, while it is installed.

    Args:
        workers: who works for that thread.

    Attributes:
        elsewhere: the path of a module that one of these ran meanwhile; None where none did.
    """

    def __init__(self, modules: Modules, workers: Workers):
        self._modules = modules
        self._workers = workers
        self._hooks: List[Any] = []
        self.elsewhere: Optional[str] = None

    def install(self, tell: Callable[[str], None], returned: Callable[[str, Any], None]) -> None:
        """Begins to tell.

        Args:
            tell: takes the path of the module that runs from now on; empty outside.
            returned: takes the path of a module that has returned, and what it returned.
        """
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
            if threading.get_ident() != thread:
                if self._workers.here():  # anybody else may run the same model meanwhile
                    self.elsewhere = paths[id(module)]
                return
            running.append(module)
            tell(paths[id(module)])

        def leave(module: Any, _: Any, output: Any) -> None:
            if threading.get_ident() != thread:
                return
            path = paths[id(module)]
            if path:
                returned(path, output)
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
            hooks.register_module_forward_hook(
                lambda module, given, output: leave(module, given, output) if id(module) in left else None
            )
        )

    def remove(self) -> None:
        while self._hooks:
            self._hooks.pop().remove()


def named_tensors(modules: Modules) -> Iterator[Tuple[str, Any, bool]]:
    """Parameters and buffers, by the names that they have in the model, and whether they are learned. Sparse ones are
    left out: they have no memory to be known by."""
    import torch

    for learned in (True, False):
        seen = set()
        for path, submodule in modules:
            for name, tensor in (submodule._parameters if learned else submodule._buffers).items():
                if tensor is None or tensor.layout != torch.strided or id(tensor) in seen:
                    continue
                seen.add(id(tensor))
                yield (path + "." + name if path else name), tensor, learned


class ModelState:
    """A snapshot of a model, by which later changes are noticed: of its modules and their order, kinds, modes and
    hooks, and of their parameters and buffers, as objects, by where their elements lie and by how often these were
    written.

    Plain attributes of modules are not seen, and neither are the tensors that a function computes with beside its modules,
    nor what is written past PyTorch's count, as through ``.data``.
    """

    def __init__(self, model: Any):
        self._before = [(path, module, _state_of(module)) for path, module in modules_of(model)]
        # Objects that are kept alive, so that no new object gets the identity of one of them.
        self._held = [
            list(held.values())
            for _, module, _ in self._before
            for held in (module._parameters, module._buffers, module._forward_pre_hooks, module._forward_hooks)
        ]

    def difference(self) -> Optional[str]:
        """The first difference from the snapshot, as the beginning of a sentence; None if there is none."""
        for path, module, before in self._before:
            now = _state_of(module)
            if now != before:
                return _difference(path, before, now)
        return None


def _state_of(module: Any) -> Tuple[Any, ...]:
    # For each row of a plan: what is not there costs nothing.
    held = module._parameters
    parameters = [(name, tensor if tensor is None else _tensor_state(tensor)) for name, tensor in held.items()]
    held = module._buffers
    buffers = [(name, tensor if tensor is None else _tensor_state(tensor)) for name, tensor in held.items()] if held else []
    held = module._modules
    modules = [(name, id(child)) for name, child in held.items()] if held else []
    before, behind = module._forward_pre_hooks, module._forward_hooks
    hooks = [id(hook) for hook in (*before.values(), None, *behind.values())] if before or behind else []
    return parameters, buffers, modules, (type(module), module.training, hooks)


def _tensor_state(tensor: Any) -> Tuple[Any, ...]:
    version = 0 if tensor.is_inference() else tensor._version
    place = tensor.data_ptr() if tensor.layout is sys.modules["torch"].strided else 0
    return id(tensor), version, place, tensor.dtype, tensor.shape


def _difference(path: str, before: Tuple[Any, ...], now: Tuple[Any, ...]) -> str:
    if before[3] != now[3]:
        return "%s was given another mode, other hooks or another class" % (path or "the model")
    for own, other in zip(before[:3], now[:3]):
        known, found = dict(own), dict(other)
        for name in {**known, **found}:
            if name not in known or name not in found or known[name] != found[name]:
                return "%s was written or replaced" % (path + "." + name if path else name)
    return "the order of what %s holds was changed" % (path or "the model")


def listing_module(modules: Modules) -> Optional[str]:
    """The path of a TorchScript module whose forward calls ``tolist()``, which reads memory where Python's is a method
    that can tell of it; None where there is none."""
    torch = sys.modules.get("torch")
    scripts = [] if torch is None else [own for own in modules if isinstance(own[1], torch.jit.ScriptModule)]
    scanned: List[str] = []
    for path, module in scripts:
        if any(not above or path.startswith(above + ".") for above in scanned):
            continue  # its calls are in the graph of the module above
        try:
            graph = module.inlined_graph
        except (AttributeError, RuntimeError):
            continue  # it has no forward
        if graph.findAllNodes("prim::tolist"):
            return path
        scanned.append(path)
    return None


class KnownTensors:
    """Handles of a model's tensors, from one run to the next: made anew, they take longer than a small operator."""

    def __init__(self) -> None:
        self._known: Dict[int, Tuple[Any, Any, Tensor]] = {}

    def handles(self, modules: Modules) -> Iterator[Tuple[str, Tensor]]:
        """The tensors of `named_tensors`, as tensors of Addend."""
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
