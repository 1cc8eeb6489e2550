"""Other methods of a live model than forward."""

import inspect
from typing import Any, Callable, Dict, Sequence, Tuple

from ._errors import NotFound


def method_of(model: Any, name: str) -> Callable[..., Any]:
    """A method of a model.

    Raises:
        NotFound: it has none of that name.
    """
    method = getattr(model, name, None)
    if not callable(method):
        raise NotFound("the model has no method %s" % name)
    return method


class Methods:
    """Several methods of a model, which run one after the other.

    Args:
        names: of the methods, each once.
    """

    def __init__(self, model: Any, names: Sequence[str]):
        if not names or len(set(names)) < len(names):
            raise ValueError("name one method or several, each once, not %r" % (tuple(names),))
        # __self__ holds the model, as that of a bound method does, so that the modules are found.
        self.__self__ = model
        self._methods = [(name, method_of(model, name)) for name in names]

    def __call__(self, *args: Any, **kwargs: Any) -> Tuple[Any, ...]:
        return self.call(self.arguments(args, kwargs))

    def arguments(self, args: Sequence[Any], kwargs: Dict[str, Any]) -> Dict[str, Any]:
        """The arguments by names such as ``"encode.x"``, which they may have already. Those without a name are what the
        methods have no default for, in order."""
        rest = list(args)
        found: Dict[str, Any] = {}
        for name, method in self._methods:
            for parameter in inspect.signature(method).parameters.values():
                key = name + "." + parameter.name
                if key in kwargs:
                    found[key] = kwargs[key]
                elif rest and parameter.default is parameter.empty:
                    found[key] = rest.pop(0)
        unknown = [*rest, *(key for key in kwargs if key not in found)]
        if unknown:
            raise TypeError("no method of %s takes the argument %r" % (", ".join(dict(self._methods)), unknown[0]))
        return found

    def call(self, given: Dict[str, Any]) -> Tuple[Any, ...]:
        """Runs the methods on what `arguments` gave, or on others in their places."""
        return tuple(
            method(**{key[len(name) + 1 :]: value for key, value in given.items() if key.startswith(name + ".")})
            for name, method in self._methods
        )
