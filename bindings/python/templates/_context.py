"""How to decompose: a policy with what surrounds a run. Generated from bindings/python/templates/_context.py."""

import difflib
import inspect
import json
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, TypedDict, Union

from . import _native
from ._handle import Handle
from ._unpack import Unpack

Choice = Union[str, int, float, Iterable[str]]

# Levels of the C interface as those of the logging module.
_LOG_LEVELS = {_native.LOG_INFO: 20, _native.LOG_WARNING: 30}


class Context(Handle):
    """A policy with what surrounds a run. Immutable; threads may share one.

    Wherever a context is taken, the choices of a policy may be given as keyword arguments instead. They are explained
    in docs/policies.md; None stands for the default.

    Args:
        # policy: arguments
        overrides: other choices for an operator (``"aten::softmax"``) or a module path with all that is inside:
            ``{"encoder.layers.3": {"nonlinearity": "gradient"}}``.
        rules: for operators that have none, the principle of their rule: ``{"my_ops::smooth_abs": "pointwise"}``.
            ``"pointwise"``: elementwise in one tensor, bending on the scale of 1 (tanh); ``"pointwise_power"``: on the
            scale of its argument (sqrt); ``"pointwise_piecewise"``: with kinks (relu); ``"path"``: differentiable, and
            nothing else is known; ``"path_elementwise"``: elementwise in several tensors; ``"opaque"``: constant but
            for steps.
        log: called with a level of the `logging` module and a line of text, so that
            ``log=logging.getLogger("addend").log`` will do.
        progress: called with a stage (``"trace"``, ``"linearize"``, ``"sweep"``), the steps done, and all steps (0:
            not known). What it raises ends the run.
        detail: whether errors tell in their ``detail`` where in C++ they come from.
    """

    __slots__ = ()

    def __init__(
        self,
        *,
        # policy: parameters
        overrides: Optional[Mapping[str, Mapping[str, Choice]]] = None,
        rules: Optional[Mapping[str, str]] = None,
        log: Optional[Callable[[int, str], Any]] = None,
        progress: Optional[Callable[[str, int, int], Any]] = None,
        detail: bool = False,
    ):
        options = _native.context_options_create()
        policy: Dict[str, Any] = {
            # policy: values
        }
        _set_policy(options, policy, "")
        for selector, choices in (overrides or {}).items():
            _set_policy(options, choices, "@" + selector)
        if rules:
            _native.context_options_set_rules(options, _native_rules(rules))
        if log is not None:
            _require_callable("log", log)
            _native.options_set_log(options, lambda level, message: log(_LOG_LEVELS.get(level, level), message))
        if progress is not None:
            _require_callable("progress", progress)
        _native.options_set_progress(options, progress)
        _native.context_options_set_detail(options, bool(detail))
        super().__init__(_native.context_create(options))

    @property
    def policy(self) -> Dict[str, str]:
        """Every choice, as text, overrides included."""
        return json.loads(_native.context_policy(self._handle))

    def __repr__(self) -> str:
        return "Context(closed)" if self.closed else "Context(%s)" % self.policy


class PolicyChoices(TypedDict, total=False):
    """The choices of a `Context` as keyword arguments of other functions, which type checkers and editors then know."""

    # policy: fields
    overrides: Optional[Mapping[str, Mapping[str, Choice]]]
    rules: Optional[Mapping[str, str]]
    log: Optional[Callable[[int, str], Any]]
    progress: Optional[Callable[[str, int, int], Any]]
    detail: bool


# Names of the choices that make up a `Context`.
CHOICES = tuple(inspect.signature(Context.__init__).parameters)[1:]


def as_context(
    context: Optional[Context], function: Optional[Callable[..., Any]] = None, /, **choices: Unpack[PolicyChoices]
) -> Context:
    """The context that a function was given, or one of the keyword arguments that it was given instead. An error names
    the function and all its options."""
    require_options(choices, Context if function is None else function)
    if context is None:
        return Context(**choices)
    if not isinstance(context, Context):
        raise TypeError("context must be an addend.Context, not %s" % type(context).__name__)
    if choices:
        raise TypeError("%s: set it in the context, which was given too" % ", ".join(sorted(choices)))
    return context


def require_options(choices: Iterable[str], function: Callable[..., Any], further: Iterable[str] = ()) -> None:
    """Raises TypeError for a name that is neither an option of the function, nor a further one, nor a choice of a
    `Context`."""
    for name in choices:
        if name not in CHOICES:
            known = list(dict.fromkeys([*_options_of(function), *further, *CHOICES]))
            if name not in known:
                raise TypeError(_no_option(function.__name__, name, known))


def _no_option(function: str, name: str, known: List[str]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    meant = ": did you mean %s?" % near[0] if near else ""
    return "%s() has no option %s%s; its options are %s" % (function, name, meant, ", ".join(known))


def _options_of(function: Callable[..., Any]) -> List[str]:
    """The names of the arguments that may be left out."""
    parameters = inspect.signature(function).parameters.values()
    return [parameter.name for parameter in parameters if parameter.default is not parameter.empty]


def _set_policy(options: Any, choices: Mapping[str, Any], suffix: str) -> None:
    for key, choice in choices.items():
        if choice is not None:
            _native.context_options_set_policy(options, key + suffix, _text(choice))


def _native_rules(rules: Mapping[str, str]) -> Any:
    """Addend's own rules with some more."""
    native = _native.rules_create()
    for op, principle in rules.items():
        _native.rules_add(native, op, principle)
    return native


def _text(choice: Choice) -> str:
    if isinstance(choice, str):
        return choice
    if isinstance(choice, (int, float)):
        return repr(choice)
    return "+".join(choice) or "none"


def _require_callable(name: str, value: Any) -> None:
    if not callable(value):
        raise TypeError("%s must be callable, not %s" % (name, type(value).__name__))
