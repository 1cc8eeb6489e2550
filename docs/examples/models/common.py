"""Seeds, file formats and a training loop that the training scripts share."""

import io
import json
import random
import struct
import zipfile
from pathlib import Path

import numpy
import torch
from torch import nn

FOLDER = Path(__file__).resolve().parent

# Names of the element types in a safetensors header.
_SAFETENSORS_TYPES = {"float32": "F32", "int64": "I64"}

# Tensor data in a TorchScript archive starts at multiples of this many bytes.
_ARCHIVE_ALIGNMENT = 64


def make_deterministic(seed):
    """One thread and fixed seeds: the same packages then give the same weights."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    random.seed(seed)
    numpy.random.seed(seed)
    torch.manual_seed(seed)


def write_safetensors(path, tensors, metadata):
    """Writes named float32 / int64 tensors and a table of strings as safetensors."""
    header = {"__metadata__": dict(metadata)}
    chunks = []
    end = 0
    for name, tensor in tensors.items():
        array = numpy.ascontiguousarray(tensor.detach().cpu().numpy())
        data = array.astype(array.dtype.newbyteorder("<")).tobytes()
        header[name] = {
            "dtype": _SAFETENSORS_TYPES[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [end, end + len(data)],
        }
        chunks.append(data)
        end += len(data)
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # so that the tensors start 8-byte aligned
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(chunks))


def as_json(value):
    """Metadata values are strings; lists travel in them as JSON."""
    return json.dumps(value, ensure_ascii=False)


def write_metrics(path, metrics):
    path.write_text(json.dumps(metrics, indent=2) + "\n", encoding="utf-8")


def write_torchscript(path, model):
    """Scripts the model in eval mode and saves it without debug records.

    torch.jit.save() stores the absolute path of every Python source file in
    `*.debug_pkl` records. They would make the bytes depend on where this
    folder lies, and nothing needs them to load or run the model.
    """
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(model.eval()), buffer)
    with zipfile.ZipFile(buffer) as source, zipfile.ZipFile(path, "w") as target:
        for record in source.infolist():
            if not record.filename.endswith(".debug_pkl"):
                _store_aligned(target, record.filename, source.read(record))


def _store_aligned(archive, name, data):
    """Appends an uncompressed record whose data starts at an aligned offset."""
    record = zipfile.ZipInfo(name)  # its date is the fixed 1980-01-01
    fixed_part = 30 + len(name.encode()) + 4  # local header, name, header of the padding
    padding = -(archive.fp.tell() + fixed_part) % _ARCHIVE_ALIGNMENT
    record.extra = b"FB" + struct.pack("<H", padding) + b"Z" * padding
    archive.writestr(record, data)


def count_parameters(model):
    return sum(parameter.numel() for parameter in model.parameters())


@torch.no_grad()
def predict(model, inputs, batch_size=256):
    """The logits of all inputs, in eval mode."""
    model.eval()
    return torch.cat([model(batch) for batch in inputs.split(batch_size)])


def accuracy(logits, labels):
    return (logits.argmax(dim=1) == labels).double().mean().item()


def fit(model, inputs, labels, *, epochs, batch_size, learning_rate, weight_decay, seed):
    """Plain cross-entropy training with AdamW and a cosine learning rate."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=learning_rate, weight_decay=weight_decay
    )
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    model.train()
    for _ in range(epochs):
        for rows in torch.randperm(len(labels), generator=generator).split(batch_size):
            loss = nn.functional.cross_entropy(model(inputs[rows]), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()


def nearest_confidence(logits, labels, wanted_label, confidence):
    """The row of one class, correctly classified, with about this probability.

    A sample that the model is neither certain about nor guessing makes the
    more interesting example.
    """
    probability = logits.softmax(dim=1)[:, wanted_label]
    usable = (labels == wanted_label) & (logits.argmax(dim=1) == wanted_label)
    distance = (probability - confidence).abs().masked_fill(~usable, 2.0)
    return int(distance.argmin())


def write_products(name, model, heldout, sample, metadata, sample_metadata, metrics):
    """Writes the files which every model has, and reports their sizes."""
    folder = FOLDER / name
    folder.mkdir(exist_ok=True)
    write_torchscript(folder / "model.pt", model)
    write_safetensors(folder / "heldout.safetensors", heldout, metadata)
    write_safetensors(folder / "sample.safetensors", sample, sample_metadata)
    write_metrics(folder / "metrics.json", metrics)
    print(f"{name}: {json.dumps(metrics)}")
    for path in sorted(folder.iterdir()):
        print(f"  {path.name}: {path.stat().st_size} bytes")
