"""Questions to methods: how much each part of one input contributed to one output of a model, from a baseline."""

import torch


class Case:
    """A model with samples.

    Attributes:
        title: what results call it.
        model: a module that gives the outputs [rows, outputs] of inputs [rows, ...], parameters frozen.
        inputs: [samples, ...]; of models of text the embeddings.
        baseline: the input without any part, [1, ...].
        labels: of each sample the part of each element, int64, maybe of leading dimensions only; -1: none, where an input
            is its baseline.
        targets: of each sample the output that is explained.
        roles: of each part, where causes are known; see `truths`.
        decoder: for models of transformers that continue a text, the model itself and the ids of the samples.
    """

    def __init__(self, title, model, inputs, baseline, labels, targets, roles=None, decoder=None):
        self.title = title
        self.model = model
        self.inputs = inputs
        self.baseline = baseline
        self.labels = labels
        self.targets = targets
        self.roles = roles
        self.decoder = decoder

    def question(self, sample):
        own = slice(sample, sample + 1)
        return Question(
            self.model, self.inputs[own], self.baseline, self.targets[sample], self.labels[sample],
            None if self.decoder is None else self.decoder.of(sample),
        )


class Decoder:
    def __init__(self, model, ids):
        self.model = model
        self.ids = ids

    def of(self, sample):
        return Decoder(self.model, self.ids[sample : sample + 1])


class Question:
    """One input, its baseline and one output; attributes as those of a case."""

    def __init__(self, model, x, baseline, target, labels, decoder=None):
        self.model = model
        self.x = x
        self.baseline = baseline
        self.target = target
        self.labels = labels
        self.decoder = decoder
        self.units = int(labels.max()) + 1

    @property
    def mask(self):
        """The part of each element in the shape of x; elements of no part have one of their own, the last."""
        labels = torch.where(self.labels < 0, self.units, self.labels)
        wide = labels.view(labels.shape + (1,) * (self.x.dim() - 1 - labels.dim()))
        return wide.expand(self.x.shape[1:]).contiguous()[None]

    def moved(self, weights):
        """The input where each part went its share of the way from the baseline: [rows, ...] of weights [rows, units]."""
        weights = torch.cat([weights, weights.new_ones(len(weights), 1)], 1)
        return self.baseline + weights[:, self.mask[0]] * (self.x - self.baseline)

    def at(self, weights):
        """A question of another input, where each part went its share of the way; of numbers, not of a text."""
        return Question(self.model, self.moved(weights[None]), self.baseline, self.target, self.labels)

    def outputs(self, x):
        """The output in question, [rows]."""
        return self.model(x)[:, self.target]

    def move(self):
        with torch.no_grad():
            value, start = self.outputs(self.x), self.outputs(self.baseline)
        return float(value), float(start)

    def by_unit(self, contributions, aim="difference"):
        """The sums over the elements of each part, of contributions in the shape of the input."""
        contributions = torch.as_tensor(contributions).detach()
        flat = contributions.reshape(self.x.shape).double().flatten()
        sums = torch.zeros(self.units + 1, dtype=torch.double).index_add_(0, self.mask.flatten(), flat)
        return Explanation(sums[:-1], float(sums[-1]), aim)

    def one_each(self, contributions):
        """Contributions of the parts, where each element has that of its whole part."""
        flat = torch.as_tensor(contributions).detach().double().expand(self.x.shape).flatten()
        found = torch.zeros(self.units + 1, dtype=torch.double).index_copy_(0, self.mask.flatten(), flat)
        return Explanation(found[:-1])


class Explanation:
    """Contributions.

    Attributes:
        units: of each part.
        outside: of what belongs to no part.
        aim: what they shall add up to: "difference" (the output's to that of the baseline) or "value".
        of_units: False: `units` are other parts than those of the question, such as layers.
    """

    def __init__(self, units, outside=0.0, aim="difference", of_units=True):
        self.units = torch.as_tensor(units).detach().double()
        self.outside = outside
        self.aim = aim
        self.of_units = of_units


class OneOutput(torch.nn.Module):
    """A model that has nothing but one of its outputs, [rows, 1]."""

    def __init__(self, model, target):
        super().__init__()
        self.model = model
        self.target = target

    def forward(self, x):
        return self.model(x)[:, self.target : self.target + 1]


class NotFor(Exception):
    """A method has nothing for such a model; the text says what it is for."""
