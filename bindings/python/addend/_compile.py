"""Live models: Python code that is decomposed as it runs."""

from typing import Any, Callable, Dict, Optional, Sequence, Union

from ._cancellation import Cancellation
from ._context import Context, PolicyChoices, as_context
from ._input import Inside
from ._live_choices import UNSET, made
from ._modules import is_module
from ._traced_model import TracedModel
from ._unpack import Unpack


def compile(
    model: Callable[..., Any],
    *,
    probes: Union[str, Sequence[str]] = UNSET,
    outputs: Union[None, str, Sequence[str]] = UNSET,
    everything: bool = UNSET,
    direction: str = UNSET,
    inside: Union[None, Inside, Sequence[Inside]] = UNSET,
    memory: int = UNSET,
    cancellation: Optional[Cancellation] = UNSET,
    context: Optional[Context] = UNSET,
    verify_reference: bool = UNSET,
    **policy: Unpack[PolicyChoices],
) -> TracedModel:
    """Wraps a model so that calls of it decompose what they are given::

        model = addend.compile(model)
        output = model(addend.Input(x, dims=0))   # a Composition
        model.trace(False)
        output = model(x)                         # a tensor, as ever

    Nothing is converted: the model runs with its own control flow, in-place writes included. While a call runs,
    ``Tensor.numpy``, ``Tensor.tolist``, ``Tensor.__dlpack__``, ``Tensor.storage`` and ``to_dlpack`` tell of what they read,
    and starting a thread or giving work to a pool of threads tells that, since no operator does.

    Each call may make other choices than these. Those that are left out are as the model was compiled with, where it was
    compiled before, else as is said here.

    Args:
        model: a ``torch.nn.Module``, or any function that computes with PyTorch. What wraps a module is one itself, and
            stands wherever modules do: ``model.eval()``, ``model.to("cuda")``, ``model.state_dict()`` with the names of
            the module, ``torch.nn.Sequential(model)``. Called by a model that is decomposed or recorded itself, it is the
            plain module.
        probes: inner tensors that are wanted too, by default none; see `Model.decompose`.
        outputs: which of the model's results are decomposed, one name or several such as ``"output.logits"``; the others
            are tensors as ever. None, the default: all of them.
        everything: checks every operator, not only those that results depend on; by default False.
        direction: which way components are found, by default ``"auto"``; see `Model.decompose`.
        inside: tensors inside the model at which components begin, as for `Model.decompose`; None, the default: they
            begin at the inputs.
        memory: what parts and rows may take together, in bytes; 0, the default: any amount. See `Model.decompose`.
        cancellation: who may end the run; by default nobody.
        context: how to decompose.
        verify_reference: also runs the plain model on the baseline, from the same state, and the report's
            ``reference_error`` says how far the reference is from that; by default False.
        policy: choices of a `Context`, in place of one.
    """
    if not callable(model):
        raise TypeError("model must be callable, not %s" % type(model).__name__)
    as_context(None, compile, **policy)  # so that what is wrong is told now
    options: Dict[str, Any] = dict(policy)
    options.update(made(
        probes=probes, outputs=outputs, everything=everything, direction=direction, inside=inside,
        memory=memory, cancellation=cancellation, context=context, verify_reference=verify_reference,
    ))
    if isinstance(model, TracedModel):
        options = {**model._options, **options}
        model = model.model
    if not is_module(model):
        return TracedModel(model, options)
    from ._traced_module import TracedModule

    return TracedModule(model, options)
