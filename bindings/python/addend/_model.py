"""Models from TorchScript files."""

import os
from typing import Any, Dict, List, Optional, Sequence, Union

from . import _native
from ._cancellation import Cancellation
from ._composition import Composition
from ._context import Context, as_context
from ._dtype import to_code
from ._handle import Handle
from ._input import add_input, as_input, new_request
from ._results import Results


class Model(Handle):
    """A model from a file, on the CPU and in evaluation mode; `load_model` gives it. Threads may share one.

    Inputs are given in the order of `input_names`, or one dict by name. Each is an `Input`, a `Composition`, or a
    tensor or array, which has no components then.
    """

    __slots__ = ()

    @property
    def input_names(self) -> List[str]:
        """The arguments that the model takes, in order."""
        handle = self._handle
        return [_native.model_input_name(handle, index) for index in range(_native.model_num_inputs(handle))]

    def decompose(
        self,
        *inputs: Any,
        probes: Union[str, Sequence[str]] = (),
        everything: bool = False,
        cancellation: Optional[Cancellation] = None,
        context: Optional[Context] = None,
        **policy: Any,
    ) -> Results:
        """Runs the model and writes what it computes as sums of its causes.

        Args:
            inputs: what the model is given.
            probes: inner tensors that are wanted too: ``"layers.0.attention"`` (a module), ``"#28"`` (an operator by
                its number), ``"aten::gelu"`` or ``"aten::gelu:2"`` (by its name), ``"logits"`` (what a final softmax
                reads).
            everything: checks every operator, not only those that results depend on.
            cancellation: who may end the run.
            context: how to decompose.
            policy: choices of a `Context`, in place of one.

        Raises:
            Unimplemented: an operator has no rule; the payload says where it is.
            Cancelled: the run was ended.
            Error: a tracing failure: recovery and value differ, at the operator that the payload names.
        """
        chosen = as_context(context, policy)
        request = _request(inputs, probes, everything, cancellation)
        return Results(_native.model_decompose(chosen._handle, self._handle, request))

    def run(self, *inputs: Any, cancellation: Optional[Cancellation] = None) -> Results:
        """Runs the plain model: its tensors, without compositions."""
        return Results(_native.model_run(self._handle, _request(inputs, (), False, cancellation)))

    def shapley(self, *inputs: Any, cancellation: Optional[Cancellation] = None) -> Composition:
        """The exact Shapley values of the components for the first output: at most 16 components, which take 2**16
        runs. What decompositions are compared with."""
        request = _request(inputs, (), False, cancellation)
        return Composition._adopt(_native.model_shapley(self._handle, request))

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """The outputs that `decompose` gives: one, or a tuple of several."""
        results = self.decompose(*inputs, **options)
        outputs = [result for name, result in zip(results.names, results) if _is_output(name)]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def __repr__(self) -> str:
        return "Model(closed)" if self.closed else "Model(%s)" % ", ".join(self.input_names)


def load_model(source: Union[str, "os.PathLike[str]", bytes], dtype: Any = None) -> Model:
    """Loads a TorchScript file. It is a program: load only what you trust.

    Args:
        source: the path, or the bytes of the file.
        dtype: converts parameters and floating-point buffers.

    Raises:
        NotFound: there is no such file.
        InvalidArgument: it is no TorchScript, or cut off.
        Unimplemented: it holds compiled operations that tracing cannot see.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        return Model(_native.model_load_bytes(source, to_code(dtype)))
    return Model(_native.model_load(os.fspath(source), to_code(dtype)))


def _request(inputs: Sequence[Any], probes: Union[str, Sequence[str]], everything: bool, cancellation: Any) -> Any:
    request = new_request(probes, everything, cancellation)
    named: Dict[Optional[str], Any] = {}
    if len(inputs) == 1 and isinstance(inputs[0], dict):
        named = inputs[0]
        inputs = ()
    for name, value in [(None, value) for value in inputs] + list(named.items()):
        source = as_input(value)
        add_input(request, name, source, source.value)
    return request


def _is_output(name: Optional[str]) -> bool:
    return name is not None and (name == "output" or name.startswith("output."))
