"""The state of a live model: what a run may leave for the next one, kept and put back."""

import array
import collections
import collections.abc
import functools
import random
import sys
import types
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

from ._modules import is_module, modules_of, variables_of

# Attributes of modules that others set while a model runs: hooks, and what `_modules` has modules do otherwise.
_SET_BY_OTHERS = ("forward", "_compiled_call_impl", "enable_nested_tensor", "use_nested_tensor")
_FUNCTIONS = (types.FunctionType, types.MethodType)
_PLAIN = (str, bytes, int, float, complex, bool, type(None), type, types.ModuleType)
# Packages beside a model's own whose objects are nothing but what they hold.
_HOLDERS = ("argparse", "collections", "types")
# How many objects are looked at; what lies behind is not put back, which comparing two runs tells.
_MOST = 100_000
# How many bytes of tensors that are hardly ever state are kept: of parameters that need no gradient, in which a model may
# keep means of what it met, but which are all the weights of another, and of gradients. The smallest ones go first.
_MOST_BYTES = 1 << 26

_NOTHING = object()

# Kinds that derive from others here stand before these.
_CONTAINERS = (collections.OrderedDict, dict, collections.deque, list, set)


class State:
    """Saves the state that a run may change, so that the next run finds it unchanged: generators of random numbers, and
    the attributes of the model's modules, at any depth of lists, dictionaries and objects of the model's own package.
    Names and places are bound again to what they were bound to, and tensors and arrays get their elements back.

    Generators are also found among the arguments of a call, and in the variables that the functions of the model close over
    or name. Whatever else functions and other packages keep is not seen. Whoever relies on two runs compares them.

    Args:
        model: a ``torch.nn.Module``, or what calls one: a function, a method, a ``functools.partial``, an object.
        parameters: whether all parameters get their elements back, too, which takes their memory again; without it those
            that need no gradient do, up to 64 MiB of them.
        given: arguments of the model, whose generators belong to the state.
    """

    def __init__(self, model: Any, parameters: bool = False, given: Any = ()):
        import torch

        self._torch = torch.get_rng_state()
        self._cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
        self._python = random.getstate()
        self._numpy = sys.modules["numpy"].random.get_state() if "numpy" in sys.modules else None
        self._seen: Dict[int, Any] = {}  # as long as these live, nothing else has their identities
        self._holders: List[_Holder] = []
        self._tensors: List[_Kept] = []
        self._others: List[_Other] = []
        self._functions: List[Any] = []
        self._slots: Dict[type, Dict[str, Any]] = {}  # of all kinds that have attributes
        modules = _modules_in(model)
        owners = _owners_in(model)
        held = [*owners, *(module for _, module in modules)]
        self._packages: Set[str] = set(map(_package_of, held)) - {"torch", "builtins"}
        tensors: List[Tuple[str, Any]] = []
        self._walk([*(("", owner) for owner in owners), *modules], tensors)
        self._keep(tensors, parameters)
        for _, module in modules:
            hooks = (module._forward_pre_hooks, module._forward_hooks)
            self._functions.extend([*hooks[0].values(), *hooks[1].values(), module.__dict__.get("forward")])
        self._find_generators([model, given, *self._functions, *_held_by_classes(list(self._slots))])

    def restore(self) -> None:
        """Puts everything back; what fails there fails when all the rest is back."""
        failed: List[Exception] = []
        for put in (self._restore_default_generators, *(one.restore for one in self._parts())):
            try:
                put()
            except Exception as error:
                failed.append(error)
        if failed:
            raise failed[0]

    def difference(self) -> Optional[str]:
        """The name of something in the model that is another now; None where nothing is."""
        found = (one.difference() for one in self._parts())
        return next((name for name in found if name is not None), None)

    def _parts(self) -> List[Any]:
        return [*self._holders, *self._tensors, *self._others]

    def _restore_default_generators(self) -> None:
        import torch

        torch.set_rng_state(self._torch)
        if self._cuda:
            torch.cuda.set_rng_state_all(self._cuda)
        random.setstate(self._python)
        if self._numpy is not None:
            sys.modules["numpy"].random.set_state(self._numpy)

    def _walk(self, found: List[Tuple[str, Any]], tensors: List[Tuple[str, Any]]) -> None:
        """Looks at all that is found, and at what that holds.

        Args:
            tensors: gets the dense ones.
        """
        import torch

        numpy = sys.modules.get("numpy")
        while found and len(self._seen) < _MOST:
            name, value = found.pop()
            if isinstance(value, (*_FUNCTIONS, functools.partial)):
                self._functions.append(value)
            if _is_plain(value) or isinstance(value, _FUNCTIONS) or id(value) in self._seen:
                continue
            self._seen[id(value)] = value
            if isinstance(value, torch.Tensor):
                if torch.nn.parameter.is_lazy(value) or value.layout is not torch.strided or value.is_meta:
                    continue
                tensors.append((name, value))
                self._hold_attributes(name, value, found)
                if value.is_leaf and value.grad is not None:
                    found.append((_join(name, "grad"), value.grad))
            elif isinstance(value, torch.jit.ScriptModule):
                self._hold(_Script(name, value), found)
            elif isinstance(value, torch.nn.Module):
                self._hold_attributes(name, value, found)
            elif isinstance(value, _CONTAINERS):
                self._hold(_Container(name, value), found)
                self._hold_attributes(name, value, found)
            elif isinstance(value, (tuple, frozenset)):
                found.extend((name, one) for one in value)
            elif isinstance(value, (bytearray, array.array)):
                put = functools.partial(value.__setitem__, slice(None))
                self._others.append(_Other(name, functools.partial(value.__getitem__, slice(None)), put))
            elif numpy is not None and isinstance(value, numpy.ndarray):
                put = functools.partial(value.__setitem__, Ellipsis)
                self._others.append(_Other(name, value.copy, put))
            elif _is_generator(value):
                self._others.append(_generator(name, value))
            elif _package_of(value) in self._packages or _package_of(value) in _HOLDERS:
                self._hold_attributes(name, value, found)

    def _hold_attributes(self, name: str, value: Any, found: List[Tuple[str, Any]]) -> None:
        """Holds what the attributes of an object are bound to, those in slots too."""
        kind = type(value)
        if kind in _CONTAINERS:  # and nothing that derives from one
            return
        own = getattr(value, "__dict__", None)
        if type(own) is dict:
            self._hold(_Attributes(name, own), found)
        if kind not in self._slots:
            self._slots[kind] = _slots_of(kind)
        if self._slots[kind]:
            self._hold(_Attributes(name, _Slots(value, self._slots[kind])), found)

    def _hold(self, holder: "_Holder", found: List[Tuple[str, Any]]) -> None:
        self._holders.append(holder)
        found.extend(holder.held())

    def _keep(self, tensors: List[Tuple[str, Any]], parameters: bool) -> None:
        """Keeps tensors: the elements of all that no optimizer is to learn."""
        import torch

        gradients = {id(tensor.grad) for _, tensor in tensors if tensor.is_leaf and tensor.grad is not None}
        wanted = {
            id(tensor)
            for _, tensor in tensors
            if parameters or not (isinstance(tensor, torch.nn.Parameter) or id(tensor) in gradients)
        }
        left = _MOST_BYTES
        perhaps = [tensor for _, tensor in tensors if id(tensor) not in wanted and not tensor.requires_grad]
        for tensor in sorted(perhaps, key=_bytes_of):
            left -= _bytes_of(tensor)
            if left < 0:
                break
            wanted.add(id(tensor))
        for name, tensor in tensors:
            self._tensors.append(_Kept(name, tensor, id(tensor) in wanted))

    def _find_generators(self, found: List[Any]) -> None:
        """Keeps the generators that values hold, or that functions among them name."""
        looked: Dict[int, Any] = {}
        while found and len(looked) < _MOST:
            value = found.pop()
            if id(value) in looked:
                continue
            looked[id(value)] = value
            if _is_generator(value):
                if id(value) not in self._seen:
                    self._seen[id(value)] = value
                    self._others.append(_generator("a generator", value))
            elif isinstance(value, functools.partial):
                found.extend((value.func, *value.args, *value.keywords.values()))
            elif isinstance(value, types.MethodType):
                found.extend((value.__self__, value.__func__))
            elif isinstance(value, types.FunctionType):
                found.extend(_named_by(value))
            elif _is_plain(value) or is_module(value) or id(value) in self._seen:
                continue
            elif isinstance(value, (*_CONTAINERS, tuple, frozenset)):
                found.extend(_held_by(value, _kind_of(value)))
            elif _package_of(value) in self._packages or _package_of(value) in _HOLDERS:
                own = getattr(value, "__dict__", None)
                found.extend(own.values() if type(own) is dict else ())
                found.extend(_Slots(value, _slots_of(type(value))).values())


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

    def __init__(self, path: str, own: Any):
        self._path, self._own = path, own
        self._before = {name: value for name, value in own.items() if not _is_of_others(name)}

    def held(self) -> List[Tuple[str, Any]]:
        # Registered members of a module have the module's path in the model, not that of the dictionary that holds
        # them.
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


class _Slots(collections.abc.MutableMapping):
    """The attributes of an object that are in slots, as a dictionary of them.

    Args:
        places: of all slots by their names, whether something is in them or not; `_slots_of` gives them.
    """

    def __init__(self, owner: Any, places: Dict[str, Any]):
        self._owner, self._places = owner, places

    def __getitem__(self, name: str) -> Any:
        try:
            return self._places[name].__get__(self._owner, type(self._owner))
        except AttributeError:
            raise KeyError(name) from None

    def __setitem__(self, name: str, value: Any) -> None:
        self._places[name].__set__(self._owner, value)

    def __delitem__(self, name: str) -> None:
        self._places[name].__delete__(self._owner)

    def __iter__(self) -> Iterator[str]:
        return iter([name for name in self._places if self.get(name, _NOTHING) is not _NOTHING])

    def __len__(self) -> int:
        return len(list(iter(self)))


def _slots_of(kind: type) -> Dict[str, Any]:
    """The places of slots by their names, of a class and those that it derives from."""
    return {
        name: place
        for one in reversed(kind.__mro__)
        if "__slots__" in vars(one)
        for name, place in vars(one).items()
        if isinstance(place, types.MemberDescriptorType)
    }


class _Container(_Holder):
    """A list or a dictionary, and its elements. Classes that derive from one may do otherwise what they are asked (a counter
    adds up), so that it is read and written as the kind that it derives from."""

    def __init__(self, path: str, own: Any):
        self._path, self._own = path, own
        self._kind = _kind_of(own)
        self._before = _held_by(own, self._kind)

    def held(self) -> List[Tuple[str, Any]]:
        items = self._before if isinstance(self._own, dict) else enumerate(self._before)
        return [(_join(self._path, str(key)), value) for key, value in items if not _is_plain(value)]

    def restore(self) -> None:
        if self.difference() is None:
            return
        kind = self._kind
        kind.clear(self._own)
        if isinstance(self._own, dict):
            for key, value in self._before:
                kind.__setitem__(self._own, key, value)
        else:
            (kind.update if kind is set else kind.extend)(self._own, self._before)

    def difference(self) -> Optional[str]:
        now = _held_by(self._own, self._kind)
        if isinstance(self._own, set):
            return None if set(now) == set(self._before) else self._path
        if not isinstance(self._own, dict):
            same = len(now) == len(self._before) and all(a is b for a, b in zip(now, self._before))
            return None if same else self._path
        if len(now) == len(self._before):
            for (key, value), (key_before, before) in zip(now, self._before):
                # Sets compare keys as dictionaries do: tensors by what object they are.
                if value is not before or not (key is key_before or {key} == {key_before}):
                    break
            else:
                return None
        known, found = dict(self._before), dict(now)
        other = [key for key in {**known, **found} if known.get(key, _NOTHING) is not found.get(key, _NOTHING)]
        return _join(self._path, str(other[0])) if other else self._path


class _Script(_Holder):
    """The attributes of a TorchScript module that its methods read or assign."""

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
        """Reads an attribute; _NOTHING if the module itself does not have it, or if it is an object of TorchScript
        (modules have states of their own)."""
        import torch

        if not self._module.hasattr(name):
            return _NOTHING
        value = self._module.getattr(name)
        return _NOTHING if isinstance(value, (torch.ScriptObject, torch._C.ScriptModule)) else value


class _Kept:
    """A tensor, the memory that it has, what is written there, whether it asks for a gradient, and which it has.

    Args:
        elements: whether these are put back.
    """

    def __init__(self, name: str, tensor: Any, elements: bool):
        self._name, self._tensor = name, tensor
        self._memory = tensor.detach()
        self._before = _each_once(self._memory).clone() if elements else None
        self._learns = tensor.requires_grad
        self._gradient = tensor.grad if tensor.is_leaf else None

    def restore(self) -> None:
        import torch

        tensor = self._tensor
        if not self._has_memory():
            tensor.data = self._memory
        # Batch norms write theirs without counting it.
        if not self._has_elements():
            # In this order: the one ends the other.
            with torch.inference_mode(tensor.is_inference()), torch.no_grad():
                _each_once(tensor).copy_(self._before)
        if not self._has_gradient():
            tensor.requires_grad_(self._learns)
            tensor.grad = self._gradient

    def difference(self) -> Optional[str]:
        same = self._has_memory() and self._has_elements() and self._has_gradient()
        return None if same else self._name

    def _has_memory(self) -> bool:
        own, other = self._tensor, self._memory
        return (own.data_ptr(), own.dtype, own.shape, own.stride()) == (
            other.data_ptr(),
            other.dtype,
            other.shape,
            other.stride(),
        )

    def _has_elements(self) -> bool:
        import torch

        return self._before is None or torch.equal(_each_once(self._tensor), self._before)

    def _has_gradient(self) -> bool:
        own = self._tensor
        # Tensors that an operator gave have theirs from there.
        return not own.is_leaf or (own.requires_grad is self._learns and own.grad is self._gradient)


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
        if self.difference() is not None:  # an array may refuse to be written
            self._put(self._before)

    def difference(self) -> Optional[str]:
        return None if _equal(self._read(), self._before) else self._name


def _is_plain(value: Any) -> bool:
    """Whether it holds nothing. What functions hold is looked at aside."""
    return isinstance(value, _PLAIN)


def _kind_of(container: Any) -> Any:
    """The container of Python that one is, or derives from."""
    return next(kind for kind in (*_CONTAINERS, tuple, frozenset) if isinstance(container, kind))


def _held_by(container: Any, kind: Any) -> List[Any]:
    """The elements of a container of a kind, of dictionaries keys with values."""
    return list(kind.items(container) if isinstance(container, dict) else kind.__iter__(container))


def _is_generator(value: Any) -> bool:
    """Whether it gives random numbers, and has a state that can be put back."""
    import torch

    numpy = sys.modules.get("numpy")
    if isinstance(value, random.Random):
        return not isinstance(value, random.SystemRandom)
    if isinstance(value, torch.Generator):
        return True
    return numpy is not None and isinstance(value, (numpy.random.RandomState, numpy.random.Generator))


def _generator(name: str, value: Any) -> _Other:
    """The state of a generator, by the methods that its kind has."""
    if isinstance(value, random.Random):
        return _Other(name, value.getstate, value.setstate)
    bits = getattr(value, "bit_generator", None)
    if bits is not None:
        return _Other(name, functools.partial(getattr, bits, "state"), functools.partial(setattr, bits, "state"))
    return _Other(name, value.get_state, value.set_state)


def _held_by_classes(derived: List[type]) -> List[Any]:
    """Functions, also those behind properties, and other values that classes hold which are not PyTorch's or Python's."""
    found = []
    for kind in {kind: None for own in derived for kind in own.__mro__}:
        if kind.__module__.partition(".")[0] in ("torch", "builtins", *_HOLDERS):
            continue
        for value in vars(kind).values():
            function = getattr(value, "__func__", value) if isinstance(value, (staticmethod, classmethod)) else value
            found.append(function.fget if isinstance(function, property) else function)
    return found


def _named_by(function: types.FunctionType) -> List[Any]:
    """The generators and the containers of them among what a function may read that it was not given: what it closes
    over, its defaults, the globals that it names, and what it names in modules."""
    names: Set[str] = set()
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        names.update(code.co_names)
        codes.extend(one for one in code.co_consts if isinstance(one, types.CodeType))
    found = [value for _, value in variables_of(function)]
    found.extend(function.__globals__[name] for name in names if name in function.__globals__)
    found.extend(function.__defaults__ or ())
    found.extend((function.__kwdefaults__ or {}).values())
    for value in list(found):
        if isinstance(value, types.ModuleType):
            found.extend(vars(value)[name] for name in names if name in vars(value))
    # Functions of others name what is no model's.
    own = function.__module__
    return [one for one in found if not isinstance(one, types.FunctionType) or one.__module__ == own]


def _each_once(tensor: Any) -> Any:
    """A tensor without the dimensions along which its elements are the same memory, as those that expand() gave."""
    for dim, (size, stride) in enumerate(zip(tensor.shape, tensor.stride())):
        if size > 1 and stride == 0:
            tensor = tensor.narrow(dim, 0, 1)
    return tensor


def _bytes_of(tensor: Any) -> int:
    return tensor.numel() * tensor.element_size()


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


def _owners_in(model: Any) -> List[Any]:
    """The objects, beside modules, that a model is a call or a method of."""
    found, owners = [model], []
    while found:
        value = found.pop()
        if isinstance(value, functools.partial):
            found.append(value.func)
        elif isinstance(value, types.MethodType):
            found.append(value.__self__)
        elif not (is_module(value) or isinstance(value, (*_PLAIN, *_FUNCTIONS)) or _package_of(value) == "addend"):
            owners.append(value)
    return owners


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
