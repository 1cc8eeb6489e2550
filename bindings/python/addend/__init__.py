"""Explains neural networks by arithmetic that can be checked.

Addend writes every tensor of a running network as a sum of its causes::

    import addend

    model = addend.compile(torch_model)                    # or addend.load_model("model.pt")
    output = model(addend.Input(x, dims=0, baseline=mean))
    print(output.explain("top1"))

The components and the residual of ``output`` add up to what the model computed, and that is checked.
"""

import importlib
from typing import TYPE_CHECKING, Any, List

from . import _load  # noqa: F401  # isort: skip: before everything that is native
from . import _native, ops
from ._arguments import Plain
from ._attribute import attribute
from ._attribution import Attribution
from ._audit import AuditLog
from ._call import Operator, call, operators, shapley
from ._cancellation import Cancellation
from ._code_tracing import CodeTracing, code_tracing
from ._compile import compile as compile  # exported by this spelling alone
from ._composition import Composition
from ._config import show_config
from ._context import Context
from ._dtype import DType
from ._errors import (
    Cancelled,
    Code,
    Error,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    OutOfRange,
    ResourceExhausted,
    Unimplemented,
)
from ._explanation import Contribution, Explanation
from ._files import TensorFile, encode_tensors, read_tensors, write_tensors
from ._handle import Scope, scope
from ._input import Input, Inside
from ._job_results import JobResults
from ._jobs import Job
from ._model import Model, load_model
from ._notes import AddendWarning
from ._plan import Plan
from ._program import Program, ProgramOutput
from ._reasons import Concepts, Interactions, Reasons
from ._recording import Recording, recording
from ._records import Decision, Finding, Reason, Requirement, TraceCheck
from ._results import Results
from ._tensor import Tensor, as_tensor
from ._trace import Programs, trace, trace_module
from ._trace_block import Trace
from ._traced_model import TracedModel
from ._tracing import tracing
from ._using import Using, using
from ._words import Words, words

if TYPE_CHECKING:
    from . import dask, lm, plots, pydec

__version__: str = _native.version()
libtorch_version: str = _native.libtorch_version()


def set_num_threads(count: int) -> None:
    """How many threads LibTorch computes with, here and in everything else of this process."""
    _native.set_num_threads(count)


def __getattr__(name: str) -> Any:
    """Imports `dask`, `lm`, `plots` and `pydec` where they are first used."""
    if name in ("dask", "lm", "plots", "pydec"):
        return importlib.import_module("." + name, __name__)
    raise AttributeError("module %r has no attribute %r" % (__name__, name))


def __dir__() -> List[str]:
    return sorted({*globals(), *__all__})


# Without `compile`, which `from addend import *` would put in the place of Python's own, and without `pydec` and `plots`,
# which need PyTorch and matplotlib.
__all__ = [
    "AddendWarning",
    "Attribution",
    "AuditLog",
    "Cancellation",
    "Cancelled",
    "Code",
    "CodeTracing",
    "Composition",
    "Concepts",
    "Context",
    "Contribution",
    "DType",
    "Decision",
    "Error",
    "Explanation",
    "FailedPrecondition",
    "Finding",
    "Input",
    "Inside",
    "Interactions",
    "InvalidArgument",
    "Job",
    "JobResults",
    "Model",
    "NotFound",
    "Operator",
    "OutOfRange",
    "Plain",
    "Plan",
    "Program",
    "ProgramOutput",
    "Programs",
    "Reason",
    "Reasons",
    "Recording",
    "Requirement",
    "ResourceExhausted",
    "Results",
    "Scope",
    "Tensor",
    "TensorFile",
    "Trace",
    "TraceCheck",
    "TracedModel",
    "Unimplemented",
    "Using",
    "Words",
    "as_tensor",
    "attribute",
    "call",
    "code_tracing",
    "dask",
    "encode_tensors",
    "libtorch_version",
    "lm",
    "load_model",
    "operators",
    "ops",
    "read_tensors",
    "recording",
    "scope",
    "set_num_threads",
    "shapley",
    "show_config",
    "trace",
    "trace_module",
    "tracing",
    "using",
    "words",
    "write_tensors",
]
