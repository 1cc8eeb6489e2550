"""`addend.attribute`, for models of every kind."""

from typing import Any, Optional, Sequence, Union

from ._cancellation import Cancellation
from ._compile import compile
from ._context import Context, PolicyChoices
from ._input import Inside
from ._live_choices import UNSET, made
from ._model import Model
from ._program import Program
from ._traced_model import TracedModel
from ._unpack import Unpack


def attribute(
    model: Any,
    inputs: Any,
    baselines: Any = None,
    target: Any = None,
    additional_forward_args: Any = None,
    return_convergence_delta: bool = False,
    *,
    feature_mask: Any = None,
    inside: Union[None, Inside, Sequence[Inside]] = UNSET,
    each_example: bool = True,
    at: Optional[str] = None,
    outputs: Union[None, str, Sequence[str]] = UNSET,
    memory: int = UNSET,
    keep_references: bool = UNSET,
    verify_reference: bool = UNSET,
    cancellation: Optional[Cancellation] = UNSET,
    context: Optional[Context] = UNSET,
    **policy: Unpack[PolicyChoices],
) -> Any:
    """Computes what each element of the inputs contributed to the target; see `Model.attribute`, whose arguments these
    are.

    Args:
        model: a `Model`, a `Program`, or a live model: a ``torch.nn.Module`` or any function that computes with PyTorch,
            or what `compile` made of one, whose choices hold for what is left out here. Live models keep no references.
    """
    if isinstance(model, Program):
        model = model.model()
    asked = model if isinstance(model, (Model, TracedModel)) else compile(model)
    own = made(
        inside=inside, outputs=outputs, memory=memory, keep_references=keep_references,
        verify_reference=verify_reference, cancellation=cancellation, context=context,
    )
    return asked.attribute(
        inputs,
        baselines,
        target,
        additional_forward_args,
        return_convergence_delta,
        feature_mask=feature_mask,
        each_example=each_example,
        at=at,
        **own,
        **policy,
    )
