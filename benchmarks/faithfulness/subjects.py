"""The example models with held-out samples, each sample divided into the units that are ranked."""

import json
from pathlib import Path

import numpy
import torch

import addend

MODELS = Path(__file__).resolve().parents[2] / "docs" / "examples" / "models"


class Subject:
    """A model, its samples, and what they are divided into.

    Attributes:
        name: what results call it.
        what: the units, in words.
        model: the TorchScript module.
        file: what `addend.load_model` takes.
        inputs: [samples, ...].
        labels: the unit of each element of an input, int64[samples, ...]; -1: it belongs to none.
        baseline: the input without any unit, [1, ...].
        classes: the true ones, int64[samples].
    """

    def __init__(self, name, folder, what, samples):
        self.name = name
        self.what = what
        self.file = MODELS / folder / "model.pt"
        self.model = torch.jit.load(str(self.file)).eval()
        for parameter in self.model.parameters():
            parameter.requires_grad_(False)
        tensors = addend.read_tensors(MODELS / folder / "heldout.safetensors")
        self._tensors = tensors
        self._rows = _spread(tensors["input"].shape[0], samples)
        self.inputs = self._take("input")
        self.classes = self._take("label")
        self.baseline = torch.zeros_like(self.inputs[:1])
        self.labels = torch.arange(self.inputs[0].numel()).view(self.inputs[:1].shape).expand(self.inputs.shape)

    def _take(self, key):
        return self._tensors[key].torch()[self._rows].clone()

    def embed(self, inputs):
        """What gradients are taken of, [samples, ...] or with dimensions behind the input's."""
        return inputs

    def run_embedded(self, embedded):
        """The outputs [samples, classes] for what `embed` gives."""
        return self.model(embedded)

    def units(self, sample):
        return int(self.labels[sample].max()) + 1

    def variants(self, sample, kept):
        """The sample with only the kept units, bool[..., units], the others as in the baseline: [rows, ...]."""
        labels = self.labels[sample]
        there = torch.from_numpy(numpy.ascontiguousarray(kept).reshape(-1, kept.shape[-1]))
        mask = there[:, labels.clamp(min=0)] | (labels < 0)
        return torch.where(mask, self.inputs[sample], self.baseline[0])


class Table(Subject):
    def __init__(self, samples):
        super().__init__("breast_cancer", "breast_cancer", "30 columns", samples)
        self.baseline = torch.from_numpy(numpy.load(MODELS / "breast_cancer" / "baseline.npy")).view(1, -1)


class Image(Subject):
    def __init__(self, samples):
        super().__init__("digits", "digits", "64 pixels", samples)


class Text(Subject):
    """Padding is the mask token, and so belongs to the baseline: no unit."""

    def __init__(self, samples, by_word):
        name, what = ("language, words", "words") if by_word else ("language", "characters")
        super().__init__(name, "language", what, samples)
        segments = self._take("segments")
        mask = int(json.loads(self._tensors.metadata("mask_token")))
        self.baseline = torch.full_like(self.inputs[:1], mask)
        self.labels = segments if by_word else self.labels.masked_fill(segments < 0, -1)

    def embed(self, inputs):
        return self.model.embedding(inputs)

    def run_embedded(self, embedded):
        states = self.model.layers(embedded + self.model.position)
        return self.model.output(self.model.norm(states).mean(1))


def all_subjects(samples):
    """The three example models; text twice, by character and by word."""
    yield Table(samples)
    yield Image(samples)
    yield Text(samples, by_word=False)
    yield Text(samples, by_word=True)


def _spread(rows, wanted):
    """Evenly spread row numbers: files are ordered by class."""
    if wanted >= rows:
        return torch.arange(rows)
    return torch.arange(wanted) * rows // wanted
