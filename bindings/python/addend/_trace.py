"""Traces in the spelling of ``torch.jit``."""

import warnings
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple

from ._compile import compile
from ._live_record import record_checked
from ._program import Program
from ._records import TraceCheck
from ._request import as_arguments
from ._traced_model import TracedModel

# Findings that are no errors, but may be one at the next call.
_WARNED_OF = ("random", "state")


def trace(
    func: Callable[..., Any],
    example_inputs: Any = (),
    *,
    example_kwarg_inputs: Optional[Mapping[str, Any]] = None,
    check_trace: bool = True,
    check_inputs: Sequence[Any] = (),
    check_tolerance: float = 1e-5,
) -> Program:
    """Records a model, and compares the program with it, as ``torch.jit.trace`` does::

        traced = addend.trace(network, x)
        y = traced(other)

    `TracedModel.record` records without comparing, which takes one run of the model; this takes a second run, a replay,
    and for the time of the call copies of what the model holds. The model, its buffers and the generators of random
    numbers are left as one call leaves them.

    Args:
        func: a ``torch.nn.Module``, a method of one, or any function that computes with PyTorch.
        example_inputs: what it is called with: a tuple or list of its arguments, or the only one.
        example_kwarg_inputs: what it is given by name.
        check_trace: whether the program is compared with the model. Where it is not the model, and where the model draws
            random numbers or writes its own tensors, that is a warning, which names the operator.
        check_inputs: further inputs to compare with, each like `example_inputs`, or a dict of arguments by name. Only
            these show what depends on the input.
        check_tolerance: how far results may differ, relative.
    """
    named = dict(example_kwarg_inputs or {})
    program, check = _traced(compile(func), example_inputs, named, check_trace, check_inputs, check_tolerance)
    _warn(check)
    return program


def trace_module(
    mod: Any,
    inputs: Mapping[str, Any],
    *,
    check_trace: bool = True,
    check_inputs: Sequence[Mapping[str, Any]] = (),
    check_tolerance: float = 1e-5,
) -> "Programs":
    """Records several methods of a module, each as `trace` does::

        traced = addend.trace_module(network, {"forward": x, "encode": y})
        traced(x), traced.encode(y)

    Args:
        mod: a ``torch.nn.Module``.
        inputs: for each method what it is called with, as `trace` takes it.
        check_trace: as for `trace`, and so are the others.
        check_inputs: further inputs, each for some of the methods.
    """
    programs = Programs()
    for name, example in inputs.items():
        others = [own[name] for own in check_inputs if name in own]
        programs[name], check = _traced(compile(mod).methods(name), example, {}, check_trace, others, check_tolerance)
        _warn(check)
    return programs


class Programs(Dict[str, Program]):
    """Programs by the names of the methods that they were recorded from. Each is an attribute, too, and ``forward`` is
    what a call runs."""

    def __getattr__(self, name: str) -> Program:
        if name not in self:
            raise AttributeError("no method %s was recorded" % name)
        return self[name]

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        return self.forward(*inputs, **named)


def _traced(
    model: TracedModel, example: Any, named: Dict[str, Any], check: bool, others: Sequence[Any], tolerance: float
) -> Tuple[Program, Optional[TraceCheck]]:
    args = tuple(as_arguments(example))
    if not check:
        return model.record(*args, **named), None
    options = {"tolerance": tolerance, "strict": False, "out_of_place": False}
    return record_checked(model.model, args, named, True, others, **options)


def _warn(check: Optional[TraceCheck]) -> None:
    """Warns the caller of the caller."""
    for finding in () if check is None else check.findings:
        if finding.error or finding.kind in _WARNED_OF:
            place = " (%s)" % finding.position if finding.position not in finding.message else ""
            warnings.warn("the trace may not be the model: %s%s" % (finding.message, place), stacklevel=3)
