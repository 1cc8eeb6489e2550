"""The example models that classify, with held-out samples, each sample divided into the units that are ranked, and a baseline."""

import json
from pathlib import Path

import numpy
import torch

import addend

MODELS = Path(__file__).resolve().parents[2] / "docs" / "examples" / "models"


class Subject:
    """A model, its samples, what they are divided into, and where contributions begin.

    Args:
        name: what results call it.
        what: the units, in words.
        start: the baseline, in words.
        model: gives the outputs [samples, classes] of inputs [samples, ...].
        inputs: [samples, ...].
        labels: the unit of each element of an input, int64[samples, ...], maybe of leading dimensions only; -1: none.
        baseline: the input without any unit, [samples, ...] or [1, ...]; what belongs to no unit stays as it is.
        classes: the true ones, int64[samples].
        file: the model as TorchScript, if there is one; else Addend sees `model` run.
        natural: what removed parts become in a second measurement: the natural baseline, where this one is another.
    """

    def __init__(self, name, what, start, model, inputs, labels, baseline, classes, file=None, natural=None):
        self.name = name
        self.what = what
        self.start = start
        self.model = model
        self.inputs = inputs
        self.labels = labels
        wide = labels.view(labels.shape + (1,) * (inputs.dim() - labels.dim()))
        self.baselines = torch.where(wide < 0, inputs, baseline)
        self.natural = None if natural is None else torch.where(wide < 0, inputs, natural)
        self.classes = classes
        self._file = file

    def addend_model(self):
        return addend.load_model(self._file) if self._file else addend.compile(self.model)

    def addend_input(self, sample):
        row = slice(sample, sample + 1)
        return addend.Input(self.inputs[row], labels=self.labels[row], baseline=self.baselines[row])

    def embed(self, inputs):
        """Tensors for which gradients are taken, [samples, ...] or with dimensions behind the input's."""
        return inputs

    def run_embedded(self, embedded):
        """The outputs [samples, classes] for what `embed` gives."""
        return self.model(embedded)

    def units(self, sample):
        return int(self.labels[sample].max()) + 1

    def variants(self, sample, kept, baselines=None):
        """The sample with only the kept units, bool[..., units], the others as in its baseline: [rows, ...]."""
        labels, whole = self.labels[sample], self.inputs[sample]
        there = torch.from_numpy(numpy.ascontiguousarray(kept).reshape(-1, kept.shape[-1]))
        mask = there[:, labels.clamp(min=0)] | (labels < 0)
        mask = mask.view(mask.shape + (1,) * (whole.dim() - labels.dim()))
        return torch.where(mask, whole, (self.baselines if baselines is None else baselines)[sample])


class Ids(Subject):
    """A model of text, from the mask token: gradients are taken of embeddings."""

    def embed(self, inputs):
        return self.model.embedding(inputs)

    def run_embedded(self, embedded):
        return _behind_embedding(self.model, embedded)


def all_subjects(samples):
    """The three example models that classify, from their natural baselines and from others; text by character and by word."""
    yield from _table(samples)
    yield from _image(samples)
    yield from _text(samples)


def _table(samples):
    held = _HeldOut("breast_cancer", samples)
    mean = torch.from_numpy(numpy.load(MODELS / "breast_cancer" / "baseline.npy")).view(1, -1)
    for start, baseline, natural in (("mean row", mean, None), ("zero", torch.zeros_like(mean), mean)):
        yield Subject(
            "breast_cancer", "30 columns", start, held.model, held.inputs, held.labels, baseline, held.classes,
            held.file, natural,
        )


def _image(samples):
    held = _HeldOut("digits", samples)
    black = torch.zeros_like(held.inputs[:1])
    yield Subject(
        "digits", "64 pixels", "black, zero", held.model, held.inputs, held.labels, black, held.classes, held.file
    )


def _text(samples):
    """Padding is the mask token, and belongs to no unit."""
    held = _HeldOut("language", samples)
    words = held.take("segments")
    characters = held.labels.masked_fill(words < 0, -1)
    mask = torch.full_like(held.inputs[:1], int(json.loads(held.tensors.metadata("mask_token"))))
    embedded = held.model.embedding(held.inputs)
    zero = torch.zeros_like(embedded[:1])
    mean = embedded[words >= 0].mean(0).expand_as(zero)
    for name, what, labels in (("language", "characters", characters), ("language, words", "words", words)):
        yield Ids(name, what, "mask token", held.model, held.inputs, labels, mask, held.classes, held.file)
        for start, baseline in (("zero embeddings", zero), ("mean embeddings", mean)):
            yield Subject(
                name, what, start, lambda states: _behind_embedding(held.model, states),
                embedded, labels, baseline, held.classes, natural=held.model.embedding(mask),
            )


def _behind_embedding(model, embedded):
    states = model.layers(embedded + model.position)
    return model.output(model.norm(states).mean(1))


class _HeldOut:
    """A model with its samples; each element of an input is a unit."""

    def __init__(self, folder, samples):
        self.file = MODELS / folder / "model.pt"
        self.model = torch.jit.load(str(self.file)).eval()
        for parameter in self.model.parameters():
            parameter.requires_grad_(False)
        self.tensors = addend.read_tensors(MODELS / folder / "heldout.safetensors")
        self._rows = _spread(self.tensors["input"].shape[0], samples)
        self.inputs = self.take("input")
        self.classes = self.take("label")
        self.labels = torch.arange(self.inputs[0].numel()).view(self.inputs[:1].shape).expand(self.inputs.shape)

    def take(self, key):
        return self.tensors[key].torch()[self._rows].clone()


def _spread(rows, wanted):
    """Evenly spread row numbers: files are ordered by class."""
    if wanted >= rows:
        return torch.arange(rows)
    return torch.arange(wanted) * rows // wanted
