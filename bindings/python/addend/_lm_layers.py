"""Contributions of each layer of a decoder to explained numbers, for `lm`.

A decoder's layers run one after the other, and each passes on what it was given plus what its blocks return. So the
last layer passes on a sum: the embeddings that the first one was given, and the output of every block. The modules
behind the layers, usually a norm and a head, are linearized between the reference of that sum and its value, as any
model is, which gives the contribution of each term. It is the direct contribution of a block: what it adds because
later layers read it is counted as theirs.

The blocks that a layer adds up are not found by their names, but by numbers: added to what the layer was given, in one
of the possible orders, their outputs make what it passes on, bit by bit.
"""

import copy
import functools
import itertools
import math
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ._input import Input
from ._tracing import tracing

# How many blocks a layer adds up at most.
_BLOCKS = 3

_NEEDED = "layers=True needs a live torch.nn.Module whose layers stand in a torch.nn.ModuleList"
_NO_SUM = (
    "layer %s.%d passes on something else than what it was given plus what its blocks return (%s), so that there are no "
    "contributions of layers"
)


class Layers(NamedTuple):
    """Layers whose blocks add up.

    Attributes:
        first: the first layer.
        given: the place of what it is given and adds to, among the tensors of numbers in its arguments.
        last: the last one.
        passed: the place of what it passes on, among the tensors in what it returns.
        blocks: of all of them in their order: the path in the model, the block, and the place of what is added.
    """

    first: Any
    given: int
    last: Any
    passed: int
    blocks: List[Tuple[str, Any, int]]


class Terms(NamedTuple):
    """The terms of what the last layer passed on.

    Attributes:
        layers: whose terms they are.
        names: what gave them: ``"embeddings"``, and the paths of the blocks.
        whole: what the last layer passed on, in the precision of the moves.
        moves: value minus reference of each, ``[terms + 1, *shape]``; the last one is what rounding made of the sum.
        precision: half of the digits that the model computes with at most, from which on numbers are others.
    """

    layers: Layers
    names: List[str]
    whole: Any
    moves: Any
    precision: float


def find_layers(model: Any, run: Callable[[], Any]) -> Layers:
    """The layers of a model that `run` calls.

    Raises:
        ValueError: there are none, or one does not add up what its blocks return.
    """
    import torch

    if not isinstance(model, torch.nn.Module):
        raise ValueError(_NEEDED)
    stacks = [(name, list(one)) for name, one in model.named_modules() if isinstance(one, torch.nn.ModuleList) and len(one)]
    seen: Dict[Any, _Layer] = {}
    for _, stack in stacks:
        before = None
        for layer in stack:
            before = seen[layer] = _Layer(layer, before)
    try:
        with torch.no_grad():
            run()
    finally:
        for layer in seen.values():
            layer.remove()
    chains = [(name, stack) for name, stack in stacks if all(seen[layer].is_link for layer in stack)]
    if not chains:
        raise ValueError(_NEEDED + ", and run once each, on what the one before it passed on")
    path, stack = max(chains, key=lambda chain: len(chain[1]))
    blocks = []
    for number, layer in enumerate(stack):
        added = seen[layer].added
        if added is None:
            raise ValueError(_NO_SUM % (path, number, ", ".join(seen[layer].names) or "none"))
        blocks += [("%s.%d.%s" % (path, number, name), block, place) for name, block, place in added]
    first, last = seen[stack[0]], seen[stack[-1]]
    return Layers(stack[0], first.given, stack[-1], last.passed, blocks)


class _Layer:
    """Watches a layer while the model runs.

    Attributes:
        is_link: whether it ran once, on what the layer before it passed on.
        given: the place of that among the tensors that it is called with, in whatever order and by whatever name.
        passed: the place of what it passes on among the tensors that it returns: the first of the same shape.
        added: the blocks that it adds up, with their names and places; None where there are no such.
        names: of the modules that it is made of.
    """

    def __init__(self, layer: Any, before: Optional["_Layer"]):
        self.is_link = False
        self.given = self.passed = 0
        self.added: Optional[List[Tuple[str, Any, int]]] = None
        self.names = [name for name, _ in layer.named_children()]
        self._before = before
        self._runs = 0
        self._given: List[Any] = []
        self._passed: Any = None
        self._returned: List[Tuple[Tuple[str, Any, int], Any]] = []
        self._hooks = [before_forward(layer, self._enter), layer.register_forward_hook(self._leave)]
        for name, block in layer.named_children():
            self._hooks.append(block.register_forward_hook(self._note(name)))

    def remove(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._given, self._passed = [], None

    def _enter(self, given: List[Any]) -> None:
        self._runs += 1
        self._given = [tensor.clone() for tensor in given]  # they may be written over

    def _note(self, name: str) -> Callable[..., None]:
        def note(block: Any, _: Any, output: Any) -> None:
            sizes = {tensor.numel() for tensor in self._given}
            for place, tensor in enumerate(tensors_in(output)):
                if tensor.numel() in sizes:
                    self._returned.append(((name, block, place), tensor.clone()))
                    return

        return note

    def _leave(self, _: Any, __: Any, output: Any) -> None:
        passed = None
        shapes = [tensor.shape for tensor in self._given]
        for place, tensor in enumerate(tensors_in(output)):
            if tensor.shape in shapes:
                self.passed, passed = place, tensor
                break
        # Candidates for the layer's input: tensors that equal what the layer before passed on; for the first layer, any
        # tensor of the passed shape.
        places = [
            place
            for place, tensor in enumerate(self._given)
            if passed is not None
            and tensor.shape == passed.shape
            and (self._before is None or _same(self._before._passed, tensor))
        ]
        self.is_link = self._runs == 1 and bool(places)
        for place in places if self.is_link else ():
            given = self._given[place]
            returned = [(block, one.reshape(given.shape)) for block, one in self._returned if one.numel() == given.numel()]
            self.given, self.added = place, _added(given, returned, passed)
            if self.added is not None:
                break
        self._passed = None if passed is None else passed.clone()
        self._given = []
        self._returned = []
        if self._before is not None:
            self._before._passed = None


def _added(
    given: Any, returned: Sequence[Tuple[Tuple[str, Any, int], Any]], passed: Any
) -> Optional[List[Tuple[str, Any, int]]]:
    """The tensors, as few as possible, that blocks returned and that add up with what was given to what was passed on."""

    def is_sum(terms: Sequence[Any], of: Callable[[Any], Any]) -> bool:
        total = of(terms[0])
        for one in terms[1:]:
            total = total + of(one)
        return _same(total, of(passed))

    for count in range(_BLOCKS + 1):
        for some in itertools.combinations(returned, count):
            for terms in itertools.permutations([given, *(tensor for _, tensor in some)]):
                # One position is compared first: nearly all others fail there.
                if is_sum(terms, lambda tensor: tensor[..., -1:, :]) and is_sum(terms, lambda tensor: tensor):
                    return [block for block, _ in some]
    return None


def _same(one: Any, other: Any) -> bool:
    import torch

    return one is not None and other is not None and one.dtype == other.dtype and torch.equal(one, other)


def terms_of(model: Any, layers: Layers, source: Input, beside: Dict[str, Any], options: Dict[str, Any]) -> Terms:
    """The terms in a run on ids, each with its reference.

    Args:
        source: the ids, with their baseline.
        beside: what the model is given beside them.
        options: as `tracing` takes them.
    """
    import torch

    with tracing(source, model=model, **options) as trace:

        asked = set()

        def ask(name: str, place: int) -> Callable[..., None]:
            def note(_: Any, __: Any, output: Any) -> None:
                if name in asked:
                    raise ValueError("%s runs several times, so that there are no contributions of layers" % name)
                asked.add(name)
                trace.output(tensors_in(output)[place], name)

            return note

        hooks = [before_forward(layers.first, lambda given: trace.output(given[layers.given], "embeddings"))]
        hooks += [block.register_forward_hook(ask(name, place)) for name, block, place in layers.blocks]
        hooks.append(layers.last.register_forward_hook(ask("whole", layers.passed)))
        try:
            with torch.no_grad():
                model(trace.inputs[0], **beside)
        finally:
            for hook in hooks:
                hook.remove()
    results = trace.results
    assert results is not None
    names = ["embeddings", *(name for name, _, _ in layers.blocks)]
    whole = results["whole"].value.torch()
    rows = torch.float64 if whole.dtype == torch.float64 else torch.float32

    def move(name: str) -> Any:
        value, reference = results[name].value.torch(), results[name].reference.torch()
        return (value.to(rows) - reference.to(rows)).reshape(whole.shape)

    moves = torch.stack([move(name) for name in names])
    rounding = (move("whole") - moves.sum(0))[None]
    # Norms in single precision are common in models that are in double otherwise.
    precision = math.sqrt(max(torch.finfo(whole.dtype).eps, torch.finfo(torch.float32).eps))
    return Terms(layers, names, whole.to(rows), torch.cat([moves, rounding]), precision)


def behind(model: Any, layers: Layers, ids: Any, beside: Dict[str, Any]) -> Any:
    """Makes a module of the part of the model behind the layers, which takes what the last layer passes on. The model
    itself runs on the ids as always; the output of its last layer is replaced.

    Args:
        model: the whole model.
        layers: the layers that `find_layers` found.
        ids: the ids that the model runs on.
        beside: the model's arguments beside the ids.
    """
    import torch

    class Behind(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, passed: Any) -> Any:
            def replace(_: Any, __: Any, output: Any) -> Any:
                return _with_tensor(output, layers.passed, passed)

            hook = layers.last.register_forward_hook(replace)
            try:
                return self.model(ids, **beside)
            finally:
                hook.remove()

    return Behind()


def before_forward(module: Any, see: Callable[[List[Any]], None]) -> Any:
    """Lets a function see the tensors of numbers that a module is called with, by position and by name; the hook, to be
    removed."""

    def hook(_: Any, args: Any, kwargs: Any = None) -> None:
        see(tensors_in((args, kwargs or {})))

    try:
        return module.register_forward_pre_hook(hook, with_kwargs=True)
    except TypeError:  # PyTorch 1 has hooks of positional arguments only
        return _Before(module, hook)


class _Before:
    """Stands before a module's forward until it is removed."""

    def __init__(self, module: Any, hook: Callable[..., None]):
        own, self._module = module.forward, module
        self._had = module.__dict__.get("forward")

        @functools.wraps(own)
        def forward(*args: Any, **kwargs: Any) -> Any:
            hook(module, args, kwargs)
            return own(*args, **kwargs)

        # Not by setattr: wrappers pass attributes on to what they wrap.
        module.__dict__["forward"] = forward

    def remove(self) -> None:
        if self._had is None:
            self._module.__dict__.pop("forward", None)
        else:
            self._module.__dict__["forward"] = self._had


def tensors_in(given: Any) -> List[Any]:
    """The tensors of numbers in what a module was given or returned, on any depth."""
    import torch

    if isinstance(given, torch.Tensor):
        return [given] if given.is_floating_point() else []
    if isinstance(given, dict):
        given = list(given.values())
    if isinstance(given, (list, tuple)):
        return [tensor for one in given for tensor in tensors_in(one)]
    return []


def _with_tensor(output: Any, place: int, tensor: Any) -> Any:
    """Replaces the tensor in one place of `tensors_in` in the output of a module; the new one takes the old one's
    dtype."""
    import torch

    seen = itertools.count()

    def other(one: Any) -> Any:
        if isinstance(one, torch.Tensor):
            return tensor.to(one.dtype) if one.is_floating_point() and next(seen) == place else one
        if isinstance(one, dict):
            twin = copy.copy(one)
            for key, value in one.items():
                twin[key] = other(value)
            return twin
        if isinstance(one, tuple):
            made = [other(value) for value in one]
            return type(one)(*made) if hasattr(one, "_fields") else tuple(made)
        return [other(value) for value in one] if isinstance(one, list) else one

    return other(output)
