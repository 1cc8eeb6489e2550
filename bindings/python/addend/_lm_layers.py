"""What each layer of a decoder added to explained numbers, for `lm`.

A decoder's layers stand one behind the other, and each passes on what it was given plus what its blocks return. So what
the last layer passes on is a sum: what the first one was given (the embeddings), and what every block returned. What stands
behind the layers, a norm and a head as a rule, is linearized between the reference of that sum and its value, as ever, and
says what each term contributed. That is the direct contribution of a block: what it gave because later layers read it is
theirs.

Which blocks a layer adds up is not known by their names. It is found in the numbers: those that, added to what the layer was
given in one of the orders of doing so, make what it passes on, bit by bit.
"""

import itertools
import math
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ._input import Input
from ._live import tracing

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
        last: the last one.
        blocks: of all of them in their order, by their paths in the model.
    """

    first: Any
    last: Any
    blocks: List[Tuple[str, Any]]


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
        blocks += [("%s.%d.%s" % (path, number, name), block) for name, block in added]
    return Layers(stack[0], stack[-1], blocks)


class _Layer:
    """Watches a layer while the model runs.

    Attributes:
        is_link: whether it ran once, on what the layer before it passed on.
        added: the blocks that it adds up, with their names; None where there are no such.
        names: of the modules that it is made of.
    """

    def __init__(self, layer: Any, before: Optional["_Layer"]):
        self.is_link = False
        self.added: Optional[List[Tuple[str, Any]]] = None
        self.names = [name for name, _ in layer.named_children()]
        self._before = before
        self._runs = 0
        self._given: Any = None
        self._passed: Any = None
        self._returned: List[Tuple[Tuple[str, Any], Any]] = []
        self._hooks = [before_forward(layer, self._enter), layer.register_forward_hook(self._leave)]
        for name, block in layer.named_children():
            self._hooks.append(block.register_forward_hook(self._note(name)))

    def remove(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._given = self._passed = None

    def _enter(self, given: Any) -> None:
        self._runs += 1
        self._given = None if given is None else given.clone()  # it may be written over

    def _note(self, name: str) -> Callable[..., None]:
        def note(block: Any, _: Any, output: Any) -> None:
            tensor = first_tensor(output)
            if self._given is not None and tensor is not None and tensor.numel() == self._given.numel():
                self._returned.append(((name, block), tensor.reshape(self._given.shape).clone()))

        return note

    def _leave(self, _: Any, __: Any, output: Any) -> None:
        passed = first_tensor(output)
        begins = self._before is None or (self._before._passed is not None and _same(self._before._passed, self._given))
        self.is_link = self._runs == 1 and begins and passed is not None and self._given is not None
        if self.is_link and passed.shape == self._given.shape:
            self.added = _added(self._given, self._returned, passed)
        self._passed = None if passed is None else passed.clone()
        self._given = None
        self._returned = []
        if self._before is not None:
            self._before._passed = None


def _added(
    given: Any, returned: Sequence[Tuple[Tuple[str, Any], Any]], passed: Any
) -> Optional[List[Tuple[str, Any]]]:
    """Those of what blocks returned whose sum with what was given is what was passed on, as few as possible."""

    def is_sum(terms: Sequence[Any], of: Callable[[Any], Any]) -> bool:
        total = of(terms[0])
        for one in terms[1:]:
            total = total + of(one)
        return _same(total, of(passed))

    for count in range(_BLOCKS + 1):
        for some in itertools.combinations(returned, count):
            for terms in itertools.permutations([given, *(tensor for _, tensor in some)]):
                # Of one position first: nearly all others fail there.
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

        def ask(name: str) -> Callable[..., None]:
            def note(_: Any, __: Any, output: Any) -> None:
                if name in asked:
                    raise ValueError("%s runs several times, so that there are no contributions of layers" % name)
                asked.add(name)
                trace.output(first_tensor(output), name)

            return note

        hooks = [before_forward(layers.first, lambda given: trace.output(given, "embeddings"))]
        hooks += [block.register_forward_hook(ask(name)) for name, block in layers.blocks]
        hooks.append(layers.last.register_forward_hook(ask("whole")))
        try:
            with torch.no_grad():
                model(trace.inputs[0], **beside)
        finally:
            for hook in hooks:
                hook.remove()
    results = trace.results
    assert results is not None
    names = ["embeddings", *(name for name, _ in layers.blocks)]
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
    """What stands behind the layers, as a module that takes what the last one passes on. The model runs as ever on the
    ids; what its last layer gives is replaced.

    Args:
        model: all of it.
        layers: what `find_layers` found.
        ids: what the model runs on.
        beside: what it is given beside them.
    """
    import torch

    class Behind(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, passed: Any) -> Any:
            def replace(_: Any, __: Any, output: Any) -> Any:
                own = passed.to(first_tensor(output).dtype)
                return (own, *output[1:]) if isinstance(output, tuple) else own

            hook = layers.last.register_forward_hook(replace)
            try:
                return self.model(ids, **beside)
            finally:
                hook.remove()

    return Behind()


def before_forward(module: Any, see: Callable[[Any], None]) -> Any:
    """Lets a function see the first tensor of numbers that a module is given; the hook, to be removed."""

    def hook(_: Any, args: Any, kwargs: Any = None) -> None:
        see(first_tensor((*args, *(kwargs or {}).values())))

    try:
        return module.register_forward_pre_hook(hook, with_kwargs=True)
    except TypeError:  # PyTorch 1 has hooks of positional arguments only
        return module.register_forward_pre_hook(hook)


def first_tensor(given: Any) -> Any:
    """The first tensor of numbers in what a module was given or returned; None without one."""
    import torch

    if isinstance(given, torch.Tensor):
        return given if given.is_floating_point() else None
    if isinstance(given, dict):
        given = list(given.values())
    if isinstance(given, (list, tuple)):
        return next((one for one in map(first_tensor, given) if one is not None), None)
    return None
