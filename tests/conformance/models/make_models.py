#!/usr/bin/env python3
"""Writes the TorchScript models of the conformance suite and their inputs beside this script; see README.md."""

import io
import json
import os
import struct
import sys
import warnings
import zipfile
from pathlib import Path

import torch

import architectures

FOLDER = Path(__file__).resolve().parent

# TorchScript writes the constants of a class in the order of a Python set, so that even a file with the same weights
# depends on the hash seed of the process.
FIXED_ENVIRONMENT = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}

_SAFETENSORS_TYPES = {torch.float32: "F32", torch.int64: "I64"}

# Tensor data in a TorchScript archive starts at multiples of this many bytes.
_ARCHIVE_ALIGNMENT = 64

LARGEST_FILE = 60 * 1024


def write_safetensors(path, tensors):
    header = {}
    chunks = []
    end = 0
    for name, tensor in tensors.items():
        data = tensor.contiguous().numpy().tobytes()
        header[name] = {
            "dtype": _SAFETENSORS_TYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [end, end + len(data)],
        }
        chunks.append(data)
        end += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # so that the tensors start 8-byte aligned
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(chunks))


def write_torchscript(path, model):
    """Without the debug records, which hold the absolute path of every source file and which nothing needs."""
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(model.eval()), buffer)
    with zipfile.ZipFile(buffer) as source, zipfile.ZipFile(path, "w") as target:
        for record in source.infolist():
            if not record.filename.endswith(".debug_pkl"):
                _store(target, record.filename, source.read(record), record.compress_type)
    if path.stat().st_size > LARGEST_FILE:
        raise SystemExit(f"{path.name} has {path.stat().st_size} bytes, more than {LARGEST_FILE}")


def _store(archive, name, data, compression):
    """Appends a record whose data starts at an aligned offset."""
    record = zipfile.ZipInfo(name)  # its date is the fixed 1980-01-01
    record.compress_type = compression  # LibTorch compresses source texts
    fixed_part = 30 + len(name.encode()) + 4  # local header, name, header of the padding
    padding = -(archive.fp.tell() + fixed_part) % _ARCHIVE_ALIGNMENT
    record.extra = b"FB" + struct.pack("<H", padding) + b"Z" * padding
    archive.writestr(record, data)


def parts_of(value, baseline, count, generator):
    """Components that sum to value - baseline, exactly: all are small multiples of 1/64."""
    steps = (value - baseline) * 64
    shares = [torch.randint(-40, 41, value.shape, generator=generator).float() for _ in range(count - 1)]
    return torch.stack(shares + [steps - sum(shares)]) / 64


def grid(shape, generator):
    """Numbers from -2 to 2 in steps of 1/64: every sum and difference of a few of them is exact in float32."""
    return torch.randint(-128, 129, shape, generator=generator).float() / 64


def inputs(generator):
    """The tensors that go with each model: its inputs by the names of its arguments, and what splits them."""
    table = grid((2, 6), generator)
    table_baseline = grid((1, 6), generator)
    yield "mlp", architectures.Mlp, {
        "table": table,
        "baseline": table_baseline,
        "labels": torch.tensor([0, 1, 1, 2, -1, 0]),
        "parts": parts_of(table, table_baseline, 3, generator),
    }

    grey = grid((1, 1, 8, 8), generator)
    quadrants = torch.arange(2).repeat_interleave(4)[:, None] * 2 + torch.arange(2).repeat_interleave(4)
    yield "relu_network", architectures.ReluNetwork, {
        "image": grey,
        "baseline": grid((1, 1, 8, 8), generator),
        "labels": quadrants,
    }

    yield "cnn", architectures.Cnn, {
        "image": grid((2, 3, 8, 8), generator),
        "baseline": grid((1, 3, 1, 1), generator),
        "labels": quadrants,
    }

    sequence = grid((2, 5, 4), generator)
    sequence_baseline = grid((4,), generator)
    steps = torch.tensor([0, 0, 1, -1, 2]).repeat(2, 1)
    yield "lstm", architectures.Lstm, {"sequence": sequence, "baseline": sequence_baseline, "labels": steps}
    yield "gru", architectures.Gru, {"sequence": sequence, "baseline": sequence_baseline, "labels": steps}

    yield "transformer_encoder", architectures.TransformerEncoder, {
        "tokens": torch.randint(1, 12, (2, 7), generator=generator),
        "baseline": torch.tensor([0, 0, 0, 0, 0, 0, 11]),
        "labels": torch.tensor([[0, 0, 1, 1, 1, 2, -1], [0, 1, 1, 2, 2, 2, -1]]),
    }

    yield "transformer_decoder", architectures.TransformerDecoder, {
        "tokens": torch.randint(1, 10, (1, 5), generator=generator),
        "memory": grid((1, 4, 12), generator),
        "memory_baseline": grid((12,), generator),
        "labels": torch.tensor([[0, 1, 1, 2, 2]]),
    }

    yield "unet", architectures.UNet, {
        "image": grey,
        "baseline": grid((1, 1, 8, 8), generator),
        "labels": quadrants,
    }

    yield "mixed", architectures.Mixed, {
        "table": grid((2, 4), generator),
        "table_baseline": grid((4,), generator),
        "image": grid((2, 1, 6, 6), generator),
        "tokens": torch.randint(1, 9, (2, 5), generator=generator),
        "labels": torch.tensor([[0, 1, 1, 2, -1], [0, 0, 1, 2, 2]]),
    }

    up = grid((2, 6), generator).abs() + 1
    yield "awkward", architectures.Awkward, {
        "table": up,
        "same_branch": up / 2,
        "other_branch": -up,
        "down": -up,
        "parts": parts_of(up, up / 2, 2, generator),
    }

    yield "nested", architectures.Nested, {"table": grid((2, 5), generator), "baseline": grid((5,), generator)}

    yield "structured", architectures.Structured, {
        "table": grid((2, 4), generator),
        "memory": grid((2, 4), generator),
        "keep": grid((2, 3), generator),
        "drop": grid((2, 3), generator),
        "step_0": grid((2, 3), generator),
        "step_1": grid((2, 3), generator),
        "bias": grid((3,), generator),
    }

    yield "heads", architectures.Heads, {"table": grid((4, 6), generator), "baseline": grid((2, 3), generator)}


def draw(model):
    """Every parameter and running statistic anew: copied layers differ, and nothing is zero or one as in fresh ones."""
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            if tensor.dim() > 1:
                tensor.copy_(torch.randn_like(tensor) / max(1.0, tensor[0].numel() / 2) ** 0.5)
            elif "bias" in name:
                tensor.copy_(0.3 * torch.randn_like(tensor))
            else:
                tensor.copy_(1 + 0.3 * torch.randn_like(tensor))
        for name, tensor in model.named_buffers():
            if name.endswith("running_mean"):
                tensor.copy_(0.3 * torch.randn_like(tensor))
            elif name.endswith("running_var"):
                tensor.copy_(0.5 + torch.rand_like(tensor))
    return model


def main():
    warnings.filterwarnings("ignore", "'batch_first' was found in ScriptModule constants")
    if any(os.environ.get(name) != value for name, value in FIXED_ENVIRONMENT.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **FIXED_ENVIRONMENT})
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    generator = torch.Generator().manual_seed(20240601)
    for number, (name, architecture, tensors) in enumerate(inputs(generator)):
        # A seed of its own: a model that is added or changed leaves the others as they are.
        torch.manual_seed(20240601 + number)
        model = draw(architecture())
        write_torchscript(FOLDER / f"{name}.pt", model)
        if hasattr(model, "expectations"):
            with torch.no_grad():
                tensors = {**tensors, **model.expectations(tensors)}
        write_safetensors(FOLDER / f"{name}.safetensors", tensors)
        print(f"{name}: {(FOLDER / (name + '.pt')).stat().st_size} bytes")


if __name__ == "__main__":
    main()
