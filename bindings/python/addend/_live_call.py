"""Calls of live models: their arguments, by the names that the models give them."""

import copy
import inspect
from collections.abc import Mapping
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

from ._block import running
from ._composition import Composition
from ._dtypes_apart import dtypes_apart
from ._errors import Error, InvalidArgument
from ._input import Input, as_inputs
from ._live_tensors import live_tensor
from ._methods import Methods
from ._request import as_arguments
from ._shared import SharedMemory
from ._state import State
from ._structure import map_leaves


class LiveCall:
    """A call of a model.

    Attributes:
        args: as they were given, and so are `kwargs`.
        given: what is traced in its arguments, each object once, in the order of the model's own arguments: of type
            `Input` or `Composition`, or with `everything` tensors too.
        names: what the model calls them: ``"x"``, ``"masks.0"``.
        places: of each in `given`, by its identity.
        tensors: for every tensor in the arguments its place in `given`; None where it is plain.
    """

    def __init__(self, model: Any, args: Any, kwargs: Any, everything: bool = False):
        import torch

        self.args, self.kwargs = args, kwargs
        self.model = model
        self._arguments, self._call = named_arguments(model, args, kwargs)
        self.given: List[Any] = []
        self.names: List[Optional[str]] = []
        self.places: Dict[int, int] = {}  # one live tensor for each object, wherever it is passed
        self._memory = SharedMemory()
        self.tensors: List[Optional[int]] = []
        seen: Set[int] = set()

        def find(leaf: Any, path: str) -> Any:
            traced = isinstance(leaf, (Input, Composition)) or (everything and isinstance(leaf, torch.Tensor))
            if id(leaf) in seen or not (traced or isinstance(leaf, torch.Tensor)):
                return leaf
            seen.add(id(leaf))
            value = leaf if isinstance(leaf, torch.Tensor) else leaf.value
            self._memory.add(path, value, len(self.given) if traced else None)
            if traced:
                self.places[id(leaf)] = len(self.given)
                self.given.append(leaf)
                self.names.append(path)
            self.tensors.append(self.places.get(id(leaf)))
            return leaf

        map_leaves(find, self._arguments, "")

    def arguments_with(self, live: Sequence[Any]) -> Any:
        """The arguments with live tensors for what is given."""
        return map_leaves(
            lambda leaf, path: live[self.places[id(leaf)]] if id(leaf) in self.places else leaf, self._arguments, ""
        )

    def run(self, arguments: Any) -> Any:
        """Calls the model.

        Raises:
            InvalidArgument: it fails as it is of another dtype than what it is given.
        """
        with running:
            try:
                return self._call(arguments)
            except RuntimeError as error:
                apart = None if isinstance(error, Error) else dtypes_apart(self.model, arguments, error)
                if apart is None:
                    raise
                raise InvalidArgument(apart) from error

    def state(self) -> State:
        """The state of the model, and of what it is given, as it is now."""
        return State(self.model, given=(self.args, self.kwargs))

    def inputs(self) -> List[Any]:
        """Live tensors of what is given."""
        return [live_tensor(source.value) for source in as_inputs(self.given)]

    def written(self, live: Sequence[Any]) -> Optional[str]:
        """Returns a note if arguments share memory and the run with these live tensors wrote one of them, else None."""
        return self._memory.written(live)


def plain(leaf: Any, path: str) -> Any:
    if isinstance(leaf, (Input, Composition)):
        return live_tensor(leaf.value)
    return leaf


def example_of(given: Any) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    return ((), dict(given)) if isinstance(given, Mapping) else (tuple(as_arguments(given)), {})


def copied(arguments: Any) -> Any:
    """Arguments that a run may change in the place of the given ones; where they cannot be copied, those. Generators stay
    the same ones: whoever copies puts them back."""
    import torch

    known: Dict[int, Any] = {}

    def add(leaf: Any, path: str) -> Any:
        if isinstance(leaf, torch.Generator):  # not every PyTorch copies them
            known[id(leaf)] = leaf
        return leaf

    map_leaves(add, arguments, "")
    try:
        return copy.deepcopy(arguments, known)
    except Exception:
        return arguments


def parameters_of(model: Any) -> Set[str]:
    """The names of the arguments that the model itself has."""
    try:
        return set(inspect.signature(getattr(model, "forward", model)).parameters)
    except (TypeError, ValueError):
        return set()


def takes_by_name(model: Any, inputs: Any, further: Any) -> bool:
    """Whether inputs are a mapping that the model takes by the names of its arguments, and not as one argument."""
    if not isinstance(inputs, Mapping):
        return False
    if isinstance(model, Methods):
        return True
    more = further if isinstance(further, (tuple, list)) else () if further is None else (further,)
    try:
        signature = inspect.signature(getattr(model, "forward", model))
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*more, **inputs)
        return True
    except TypeError:
        pass
    try:
        signature.bind(inputs, *more)
        return False
    except TypeError:
        return True  # the model says itself what is wrong


def bound_arguments(model: Any, args: Any, kwargs: Any) -> Dict[str, Any]:
    """The arguments of a call by the names that the model gives them."""
    return named_arguments(model, args, kwargs)[0]


def named_arguments(model: Any, args: Any, kwargs: Any) -> Tuple[Dict[str, Any], Callable[[Any], Any]]:
    """The arguments of a call by the names that the model gives them, and the call with others in their places."""
    if isinstance(model, Methods):
        return model.arguments(args, kwargs), model.call
    function = getattr(model, "forward", model)
    try:
        signature = inspect.signature(function)
        bound = signature.bind(*args, **kwargs)
    except (TypeError, ValueError):
        # The model says itself what is wrong, if anything is.
        named = {"input_%d" % index: value for index, value in enumerate(args)}
        named.update(kwargs)
        return named, lambda given: model(
            *[given["input_%d" % index] for index in range(len(args))], **{key: given[key] for key in kwargs}
        )

    def call(given: Any) -> Any:
        bound.arguments.update(given)
        return model(*bound.args, **bound.kwargs)

    return dict(bound.arguments), call
