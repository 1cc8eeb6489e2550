"""Writes the samples of PyTorch's operator database as TorchScript, with what PyTorch computes for them.

    generate.py OUT

OUT is one file: the length of an index (8 bytes, little endian), the index (JSON: PyTorch's version and the entries),
and TorchScript archives one behind the other. Each archive holds one call: its forward() takes the buffers in0, in1, ... and gives what the buffers out0,
out1, ... hold. Everything that is no tensor is a constant of the call. Complex inputs go in as pairs of real numbers.
"""

import io
import json
import random
import sys
import types
import warnings

# The database imports a test framework that it does not need for samples.
sys.modules["expecttest"] = types.SimpleNamespace(ACCEPT=False, TestCase=object)

import numpy  # noqa: E402
import torch  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

SAMPLES = 5
MAX_NUMEL = 20000
# Functions whose results depend on a generator, or on memory that nobody has written.
RANDOM = {
    "bernoulli", "normal", "normal.number_mean", "nn.functional.dropout", "nn.functional.dropout2d",
    "nn.functional.dropout3d", "nn.functional.feature_alpha_dropout.with_train", "nn.functional.rrelu",
    "nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d", "svd_lowrank", "pca_lowrank",
    "nn.functional._scaled_dot_product_attention", "nn.functional.scaled_dot_product_attention",
    "nn.functional.alpha_dropout", "nn.functional.multi_head_attention_forward",
}
# PyTorch 1.13 cannot trace these as the database calls them.
SPELLED = {"fill": lambda x, value: x.clone().fill_(float(value))}


def flatten(value, leaves):
    """Replaces tensors by their position in `leaves`."""
    if isinstance(value, torch.Tensor):
        leaves.append(value)
        return _Leaf(len(leaves) - 1)
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        parts = [flatten(v, leaves) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        return {k: flatten(v, leaves) for k, v in value.items()}
    return value


def unflatten(value, leaves):
    if isinstance(value, _Leaf):
        return leaves[value.index]
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        parts = [unflatten(v, leaves) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        return {k: unflatten(v, leaves) for k, v in value.items()}
    return value


class _Leaf:
    def __init__(self, index):
        self.index = index


def tensors_of(value):
    leaves = []
    flatten(value, leaves)
    return leaves


def has_empty(sample):
    return any(t.numel() == 0 for t in tensors_of([sample.input, *sample.args, *sample.kwargs.values()]))


class Call(torch.nn.Module):
    """One call of an operator on tensors."""

    def __init__(self, op, arguments, keywords, complex_inputs, kind):
        super().__init__()
        self._call = (op, arguments, keywords, complex_inputs, kind)

    def forward(self, *tensors):
        op, arguments, keywords, complex_inputs, kind = self._call
        leaves = [torch.view_as_complex(t) if c else t for t, c in zip(tensors, complex_inputs)]
        if kind == "inplace":
            leaves = [leaves[0].clone()] + leaves[1:]
        arguments = unflatten(arguments, leaves)
        keywords = unflatten(keywords, leaves)
        if kind == "out":
            keywords = dict(keywords, out=torch.empty(0, dtype=torch.float64))
        results = tensors_of(op(*arguments, **keywords))
        return results[0] if len(results) == 1 else tuple(results)


def write(op, sample, kind, function):
    leaves = []
    arguments = flatten([sample.input] + list(sample.args), leaves)
    keywords = flatten(dict(sample.kwargs), leaves)
    leaves = [t.detach() for t in leaves]
    if not leaves or sum(t.numel() for t in leaves) > MAX_NUMEL:
        return None
    complex_inputs = [t.is_complex() for t in leaves]
    inputs = [torch.view_as_real(t.resolve_conj()) if c else t for t, c in zip(leaves, complex_inputs)]
    inputs = [t.clone() for t in inputs]
    module = Call(function, arguments, keywords, complex_inputs, kind)
    with torch.no_grad():
        torch.manual_seed(1)
        results = module(*[t.clone() for t in inputs])
        results = [results] if isinstance(results, torch.Tensor) else list(results)
        if not any(r.is_floating_point() or r.is_complex() for r in results):
            return None
        dense = all(r.layout == torch.strided for r in results)
        for k, tensor in enumerate(inputs):
            module.register_buffer("in%d" % k, tensor)
        for k, tensor in enumerate(results if dense else []):
            module.register_buffer("out%d" % k, tensor.resolve_conj().resolve_neg().clone())
        torch.manual_seed(1)
        traced = torch.jit.trace(module, tuple(t.clone() for t in inputs), check_trace=False)
    blob = io.BytesIO()
    torch.jit.save(traced, blob)
    # A file does not tell the overload: max(x, out=y) comes back as max(x, y).
    blob.seek(0)
    with torch.no_grad():
        again = tensors_of(torch.jit.load(blob)(*[t.clone() for t in inputs]))
    if [t.shape for t in again] != [t.shape for t in results]:
        raise ValueError("the file computes something else")
    return blob.getvalue(), len(inputs), len(results) if dense else 0


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    index = []
    blobs = []
    offset = 0
    entries = [op for op in op_db if op.supports_autograd and torch.float64 in op.dtypes]
    for op in entries:
        name = op.name + ("." + op.variant_test_name if op.variant_test_name else "")
        # The database draws tensors from PyTorch, and numbers (margins, eps) from Python and numpy. With this seed a
        # margin of cosine_embedding_loss lies between zero and what the sample reaches: a loss that is zero at both.
        torch.manual_seed(0)
        random.seed(1)
        numpy.random.seed(1)
        entry = {"name": name, "random": name in RANDOM, "calls": [], "problems": []}
        index.append(entry)
        samples = list(op.sample_inputs("cpu", torch.float64, requires_grad=False))
        # Those with empty tensors last, one of them at least.
        samples.sort(key=has_empty)
        step = max(1, -(-len(samples) // SAMPLES))
        chosen = samples[::step]
        chosen += [] if any(has_empty(s) for s in chosen) else [s for s in samples if has_empty(s)][:1]
        written = 0
        # `kind` and the function that it calls; the spellings get the first samples only.
        for kind, function, some in [
            ("functional", SPELLED.get(name, op.op), chosen),
            ("inplace", op.inplace_variant if op.supports_inplace_autograd else None, chosen[:2]),
            ("out", op.op if op.supports_out else None, chosen[:2]),
        ]:
            if function is None:
                continue
            for number, sample in enumerate(some):
                if kind == "inplace" and (sample.broadcasts_input or not isinstance(sample.input, torch.Tensor)):
                    continue
                try:
                    made = write(op, sample, kind, function)
                except Exception as error:  # noqa: BLE001: whatever PyTorch cannot trace is listed
                    entry["problems"].append("%s %d: %s" % (kind, number, str(error).strip().split("\n")[0][:160]))
                    continue
                if made is None:
                    continue
                blob, inputs, outputs = made
                entry["calls"].append({"kind": kind, "sample": number, "offset": offset, "size": len(blob),
                                       "inputs": inputs, "outputs": outputs})
                blobs.append(blob)
                offset += len(blob)
                written += 1
    version = ".".join(torch.__version__.split(".")[:2])
    text = json.dumps({"version": version, "entries": index}).encode()
    with open(sys.argv[1], "wb") as out:
        out.write(len(text).to_bytes(8, "little"))
        out.write(text)
        for blob in blobs:
            out.write(blob)


if __name__ == "__main__":
    main()
