"""The state of a live model: what a run may leave for the next one, kept and put back."""

import collections
import functools
import random
import sys
import types
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from ._modules import is_module, modules_of, variables_of

# Attributes of modules that others set while a model runs: hooks, and what `_modules` has modules do otherwise.
_SET_BY_OTHERS = ("forward", "_compiled_call_impl", "enable_nested_tensor", "use_nested_tensor")
_PLAIN = (str, bytes, int, float, complex, bool, type(None), type, types.ModuleType, types.FunctionType, types.MethodType)
# How many objects are looked at; what lies behind is not put back, which comparing two runs tells.
_MOST = 100_000

_NOTHING = object()


class State:
    """What a run may change that the next one shall find as it was: generators of random numbers, and what the modules
    of the model hold, on any depth of lists, dictionaries and objects of the model's own package. Whatever a name or a
    place was bound to is bound to it again, and tensors and arrays get their elements back.

    What functions and other packages keep is not seen. Whoever relies on two runs compares them.

    Args:
        model: a ``torch.nn.Module``, or what calls one: a function, a method, a ``functools.partial``.
        parameters: whether parameters get their elements back, too, which takes their memory again.
    """

    def __init__(self, model: Any, parameters: bool = False):
        import torch

        self._torch = torch.get_rng_state()
        self._cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
        self._python = random.getstate()
        self._numpy = sys.modules["numpy"].random.get_state() if "numpy" in sys.modules else None
        self._parameters = parameters
        self._seen: Dict[int, Any] = {}  # as long as these live, nothing else has their identities
        self._holders: List[_Holder] = []
        self._tensors: List[_Kept] = []
        self._others: List[_Other] = []
        self._packages: Set[str] = set()
        modules = _modules_in(model)
        self._packages = {_package_of(module) for _, module in modules} - {"torch"}
        self._walk([(path, module) for path, module in modules])

    def restore(self) -> None:
        """Puts everything back."""
        import torch

        torch.set_rng_state(self._torch)
        if self._cuda:
            torch.cuda.set_rng_state_all(self._cuda)
        random.setstate(self._python)
        if self._numpy is not None:
            sys.modules["numpy"].random.set_state(self._numpy)
        for holder in self._holders:
            holder.restore()
        for kept in self._tensors:
            kept.restore()
        for other in self._others:
            other.restore()

    def difference(self) -> Optional[str]:
        """The name of something in the model that is another now; None where nothing is."""
        found = (one.difference() for one in (*self._holders, *self._tensors, *self._others))
        return next((name for name in found if name is not None), None)

    def _walk(self, found: List[Tuple[str, Any]]) -> None:
        import torch

        numpy = sys.modules.get("numpy")
        while found and len(self._seen) < _MOST:
            name, value = found.pop()
            if isinstance(value, _PLAIN) or id(value) in self._seen:
                continue
            self._seen[id(value)] = value
            if isinstance(value, torch.Tensor):
                if value.layout is torch.strided and not value.is_meta:
                    learned = isinstance(value, torch.nn.Parameter)
                    self._tensors.append(_Kept(name, value, self._parameters or not learned))
            elif isinstance(value, torch.jit.ScriptModule):
                self._hold(_Script(name, value), found)
            elif isinstance(value, torch.nn.Module):
                self._hold(_Attributes(name, value.__dict__), found)
            elif isinstance(value, (list, collections.deque, dict, set)):
                self._hold(_Container(name, value), found)
            elif isinstance(value, (tuple, frozenset)):
                found.extend((name, one) for one in value)
            elif numpy is not None and isinstance(value, numpy.ndarray):
                put = functools.partial(value.__setitem__, Ellipsis)
                self._others.append(_Other(name, value.copy, put))
            elif isinstance(value, torch.Generator):
                self._others.append(_Other(name, value.get_state, value.set_state))
            elif isinstance(value, random.Random) and not isinstance(value, random.SystemRandom):
                self._others.append(_Other(name, value.getstate, value.setstate))
            elif numpy is not None and isinstance(value, numpy.random.RandomState):
                self._others.append(_Other(name, value.get_state, value.set_state))
            elif numpy is not None and isinstance(value, numpy.random.Generator):
                bits = value.bit_generator
                put = functools.partial(setattr, bits, "state")
                self._others.append(_Other(name, functools.partial(getattr, bits, "state"), put))
            elif _package_of(value) in self._packages:
                own = getattr(value, "__dict__", None)
                if type(own) is dict:
                    self._hold(_Attributes(name, own), found)

    def _hold(self, holder: "_Holder", found: List[Tuple[str, Any]]) -> None:
        self._holders.append(holder)
        found.extend(holder.held())


class _Holder:
    """Something with places that objects are bound to."""

    def held(self) -> List[Tuple[str, Any]]:
        """The objects with their names."""
        raise NotImplementedError

    def restore(self) -> None:
        raise NotImplementedError

    def difference(self) -> Optional[str]:
        raise NotImplementedError


class _Attributes(_Holder):
    """The attributes of an object."""

    def __init__(self, path: str, own: Dict[str, Any]):
        self._path, self._own = path, own
        self._before = {name: value for name, value in own.items() if not _is_of_others(name)}

    def held(self) -> List[Tuple[str, Any]]:
        # What a module registers has its own name in the model, not that of the dictionary that it stands in.
        return [
            (self._path if name in ("_parameters", "_buffers", "_modules") else _join(self._path, name), value)
            for name, value in self._before.items()
        ]

    def restore(self) -> None:
        own = self._own
        for name in [name for name in own if name not in self._before and not _is_of_others(name)]:
            del own[name]
        for name, value in self._before.items():
            if own.get(name, _NOTHING) is not value:
                own[name] = value

    def difference(self) -> Optional[str]:
        own = self._own
        for name in {**self._before, **own}:
            if not _is_of_others(name) and own.get(name, _NOTHING) is not self._before.get(name, _NOTHING):
                return _join(self._path, name)
        return None


class _Container(_Holder):
    """What a list or a dictionary holds."""

    def __init__(self, path: str, own: Any):
        self._path, self._own = path, own
        self._before: List[Any] = list(own.items() if isinstance(own, dict) else own)

    def held(self) -> List[Tuple[str, Any]]:
        items = self._before if isinstance(self._own, dict) else enumerate(self._before)
        return [(_join(self._path, str(key)), value) for key, value in items if not isinstance(value, _PLAIN)]

    def restore(self) -> None:
        if self.difference() is None:
            return
        self._own.clear()
        (self._own.update if isinstance(self._own, (dict, set)) else self._own.extend)(self._before)

    def difference(self) -> Optional[str]:
        if isinstance(self._own, set):
            return None if self._own == set(self._before) else self._path
        now = list(self._own.items() if isinstance(self._own, dict) else self._own)
        if not isinstance(self._own, dict):
            same = len(now) == len(self._before) and all(a is b for a, b in zip(now, self._before))
            return None if same else self._path
        if len(now) == len(self._before) and all(a[0] == b[0] and a[1] is b[1] for a, b in zip(now, self._before)):
            return None
        known, found = dict(self._before), dict(now)
        other = [key for key in {**known, **found} if known.get(key, _NOTHING) is not found.get(key, _NOTHING)]
        return _join(self._path, str(other[0])) if other else self._path


class _Script(_Holder):
    """What the methods of a TorchScript module read and assign of its attributes."""

    def __init__(self, path: str, module: Any):
        self._path, self._module = path, module._c
        names: Set[str] = set()
        for method in self._module._method_names():
            graph = self._module._get_method(method).graph
            for kind in ("prim::GetAttr", "prim::SetAttr"):
                names.update(node.s("name") for node in graph.findAllNodes(kind))
        self._before = {}
        for name in sorted(names):
            value = self._read(name)
            if value is not _NOTHING:
                self._before[name] = value

    def held(self) -> List[Tuple[str, Any]]:
        # Lists and dictionaries are copies, but their tensors are not.
        return [(_join(self._path, name), value) for name, value in self._before.items()]

    def restore(self) -> None:
        for name, value in self._before.items():
            if not _alike(self._read(name), value):
                self._module.setattr(name, value)

    def difference(self) -> Optional[str]:
        other = (name for name, value in self._before.items() if not _alike(self._read(name), value))
        return next((_join(self._path, name) for name in other), None)

    def _read(self, name: str) -> Any:
        """Nothing of what is no attribute of this module itself, and of modules, which have states of their own."""
        import torch

        if not self._module.hasattr(name):
            return _NOTHING
        value = self._module.getattr(name)
        return _NOTHING if isinstance(value, (torch.ScriptObject, torch._C.ScriptModule)) else value


class _Kept:
    """A tensor, the memory that it has, and what is written there.

    Args:
        elements: whether these are put back.
    """

    def __init__(self, name: str, tensor: Any, elements: bool):
        self._name, self._tensor = name, tensor
        self._memory = tensor.detach()
        self._before = self._memory.clone() if elements else None

    def restore(self) -> None:
        import torch

        if not self._has_memory():
            self._tensor.data = self._memory
        # Batch norms write theirs without counting it.
        if self._before is None or torch.equal(self._tensor, self._before):
            return
        with torch.inference_mode(self._tensor.is_inference()), torch.no_grad():  # in this order: the one ends the other
            self._tensor.copy_(self._before)

    def difference(self) -> Optional[str]:
        import torch

        same = self._has_memory() and (self._before is None or torch.equal(self._tensor, self._before))
        return None if same else self._name

    def _has_memory(self) -> bool:
        own, other = self._tensor, self._memory
        return (own.data_ptr(), own.dtype, own.shape, own.stride()) == (
            other.data_ptr(),
            other.dtype,
            other.shape,
            other.stride(),
        )


class _Other:
    """An array, or a generator of random numbers.

    Args:
        read: gives a copy of what it holds.
        put: makes it hold that again.
    """

    def __init__(self, name: str, read: Callable[[], Any], put: Callable[[Any], Any]):
        self._name, self._read, self._put = name, read, put
        self._before = read()

    def restore(self) -> None:
        self._put(self._before)

    def difference(self) -> Optional[str]:
        return None if _equal(self._read(), self._before) else self._name


def _modules_in(model: Any) -> List[Tuple[str, Any]]:
    """The modules that a model is or calls, each with its path."""
    found, seen, modules = [model], set(), []
    while found and len(seen) < 100:
        value = found.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if is_module(value):
            modules.extend(modules_of(value))
        elif isinstance(value, functools.partial):
            found.extend((value.func, *value.args, *value.keywords.values()))
        elif isinstance(value, types.MethodType):
            found.extend((value.__self__, value.__func__))
        elif isinstance(value, types.FunctionType):
            closed = value.__code__.co_freevars
            found.extend(one for name, one in variables_of(value) if name in closed or is_module(one))
        elif isinstance(value, (list, tuple)) and len(value) < 100:
            found.extend(value)
        elif value is model and isinstance(getattr(value, "__dict__", None), dict):
            found.extend(value.__dict__.values())
    return modules


def _is_of_others(name: str) -> bool:
    return name in _SET_BY_OTHERS or "_hooks" in name


def _package_of(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def _join(path: str, name: str) -> str:
    return path + "." + name if path else name


def _equal(one: Any, other: Any) -> bool:
    """Whether two copies of what an array or a generator holds are the same, bit by bit."""
    import torch

    numpy = sys.modules.get("numpy")
    if type(one) is not type(other):
        return False
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if numpy is not None and isinstance(one, numpy.ndarray):
        return (one.dtype, one.shape) == (other.dtype, other.shape) and one.tobytes() == other.tobytes()
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(_equal, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(map(_equal, one.values(), other.values()))
    return bool(one == other)


def _alike(one: Any, other: Any) -> bool:
    """Whether two values from TorchScript are the same; it makes its lists anew for whoever asks."""
    import torch

    if one is other:
        return True
    if type(one) is not type(other) or isinstance(one, torch.Tensor):
        return False
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(map(_alike, one.values(), other.values()))
    return bool(one == other)
