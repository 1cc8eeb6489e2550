"""Blocks of code that are decomposed as they run."""

from typing import Any, Optional, Sequence, Union

from ._cancellation import Cancellation
from ._context import Context, PolicyChoices, as_context
from ._modules import KnownTensors, modules_of
from ._request import new_request
from ._trace_block import Trace
from ._traced_model import TracedModel
from ._unpack import Unpack


def tracing(
    *inputs: Any,
    model: Any = None,
    probes: Union[str, Sequence[str]] = (),
    everything: bool = False,
    memory: int = 0,
    direction: str = "auto",
    cancellation: Optional[Cancellation] = None,
    context: Optional[Context] = None,
    **policy: Unpack[PolicyChoices],
) -> Trace:
    """Decomposes what PyTorch computes in a ``with`` block::

        with addend.tracing(addend.Input(x, dims=0)) as trace:
            logits = model(trace.inputs[0])
            trace.output(logits, "logits")
        print(trace.results["logits"])

    Every operator that this thread calls is recorded, whoever calls it, and runs as ever.

    Args:
        inputs: each an `Input`, a `Composition`, or a tensor or array, which has no components then.
        model: a ``torch.nn.Module``, so that reports, probes and policies know the names of its modules and parameters.
        probes: inner tensors that are wanted too; see `Model.decompose`.
        everything: checks every operator, not only those that results depend on.
        memory: what parts and rows may take together, in bytes; see `Model.decompose`.
        direction: which way components are found; see `Model.decompose`.
        cancellation: who may end the run.
        context: how to decompose.
        policy: choices of a `Context`, in place of one.
    """
    chosen = as_context(context, tracing, **policy)
    request = new_request(probes, cancellation, everything=everything, memory=memory, direction=direction)
    known = model._known if isinstance(model, TracedModel) else KnownTensors()
    modules = modules_of(model.model if isinstance(model, TracedModel) else model)
    return Trace(inputs, [None] * len(inputs), modules, known, request, chosen)
