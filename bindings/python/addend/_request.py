"""Native requests: what a model is given, and what it is asked."""

import numbers
from typing import Any, List, Optional, Sequence, Union

from . import _native
from ._arguments import described
from ._cancellation import Cancellation
from ._input import Input, Inside, as_inputs, require_names
from ._request_options import FLAGS
from ._target import Target, as_target
from ._tensor import as_tensor


def new_request(
    probes: Union[str, Sequence[str]] = (), cancellation: Optional[Cancellation] = None, **options: Any
) -> Any:
    """A native request without inputs."""
    request = _native.request_create()
    for probe in (probes,) if isinstance(probes, str) else probes:
        _native.request_add_probe(request, probe)
    set_options(request, **options)
    if cancellation is not None:
        _native.request_set_cancellation(request, cancellation._handle)
        set_options(request, timeout=cancellation.timeout or 0)
    return request


def new_model_request(
    examples: Sequence[Sequence[Any]],
    probes: Union[str, Sequence[str]] = (),
    cancellation: Optional[Cancellation] = None,
    insides: Sequence[Inside] = (),
    **options: Any,
) -> Any:
    """A native request with what a model is given, once or several times, and what is split inside it."""
    request = new_request(probes, cancellation, **options)
    for index, arguments in enumerate(examples):
        if index > 0:
            _native.request_next_example(request)
        _add_arguments(request, arguments)
    for source in insides:
        add_inside(request, source)
    return request


def as_arguments(example: Any) -> Sequence[Any]:
    """One example among others: a tuple or list of what a model is given, or the only input."""
    return example if isinstance(example, (tuple, list)) else (example,)


def _add_arguments(request: Any, arguments: Sequence[Any]) -> None:
    """Adds the arguments of a model in their order, or one mapping of them by name."""
    tensors, structure = described(arguments)
    for (name, _), source in zip(tensors, as_inputs([value for _, value in tensors])):
        add_input(request, name, source, source.value)
    if structure is not None:
        _native.request_set_structure(request, structure)


def add_input(request: Any, name: Optional[str], source: Input, value: Any) -> None:
    """Adds an input, with `value` for its own one.

    Raises:
        ValueError: it has another number of components than of names.
    """
    require_names(name, source)
    _native.request_add_input(request, name, as_tensor(value)._handle)
    _describe_last(request, source)


def add_inside(request: Any, source: Inside) -> None:
    """Adds a tensor inside the model."""
    _native.request_add_inside(request, source.selector)
    _describe_last(request, source)


def _describe_last(request: Any, source: Union[Input, Inside]) -> None:
    if source.dims is not None:
        _native.request_split_dims(request, source.dims)
    elif source.labels is not None:
        _native.request_split_labels(request, as_tensor(source.labels)._handle)
    elif source.parts is not None:
        _native.request_split_parts(request, as_tensor(source.parts)._handle)
    if isinstance(source.baseline, numbers.Real):
        _native.request_set_baseline_number(request, float(source.baseline))
    elif isinstance(source.baseline, str):
        _native.request_set_baseline_word(request, source.baseline)
    elif source.baseline is not None:
        _native.request_set_baseline(request, as_tensor(source.baseline)._handle)
    elif getattr(source, "baselines", None) is not None:
        _native.request_set_baselines(request, as_tensor(source.baselines)._handle)
    if source.first_component is not None:
        _native.request_set_first_component(request, source.first_component)
    for component_name in source.names:
        _native.request_add_name(request, str(component_name))


def add_outputs(request: Any, outputs: Union[str, Sequence[str]]) -> None:
    for name in (outputs,) if isinstance(outputs, str) else outputs:
        _native.request_add_output(request, name)


def add_targets(request: Any, targets: Any, **options: Any) -> None:
    """Adds what `Model.explain` is asked."""
    for target in _target_list(targets):
        _native.request_add_target(request, as_target(target))
    set_options(request, **options)


def explained(at: Optional[str], outputs: Union[None, str, Sequence[str]]) -> Optional[str]:
    """The tensor that is explained: the first of several outputs that are named, whatever the model gives first."""
    if at is not None or outputs is None or isinstance(outputs, str) or len(outputs) < 2:
        return at
    return outputs[0]


def _target_list(targets: Any) -> List[Target]:
    """None: the largest element. A list, an array or a tensor holds several targets; a number, a text or a tuple is
    one."""
    if targets is None:
        return ["top1"]
    if isinstance(targets, (str, int, tuple)):
        return [targets]
    if hasattr(targets, "tolist"):  # arrays and tensors
        targets = targets.tolist()
    if not hasattr(targets, "__iter__"):
        return [targets]
    return [tuple(target) if isinstance(target, list) else target for target in targets]


def set_options(request: Any, **options: Any) -> None:
    """Sets options; None: as they are."""
    for key, value in options.items():
        if value is not None:
            _native.request_set_option(request, key, str(bool(value)).lower() if key in FLAGS else str(value))
