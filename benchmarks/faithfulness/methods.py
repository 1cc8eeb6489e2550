"""Contributions of a sample's units to the centred output of a class, by Addend and by what it is compared with.

A method is made for a subject, and called with a sample's number and a class; it gives one number for each unit.
`POLICIES` are the choices of Addend that are compared.
"""

import contextlib

import numpy
import torch

STEPS = 50
PERMUTATIONS = 20

POLICIES = {
    "Addend faithful": {"preset": "faithful"},
    "Addend faithful, gates by half": {"preset": "faithful", "content_first": "attention+normalizer+denominator"},
    "Addend faithful, attention by magnitude": {"preset": "faithful", "by_magnitude": "attention+gate"},
    "Addend faithful, by half": {"preset": "faithful", "content_first": "none"},
    "Addend faithful, content first": {"preset": "faithful", "by_magnitude": "none"},
    "Addend fast": {"preset": "fast"},
}
IN_SEGMENTS = {"Addend faithful, 4 segments": {"preset": "faithful", "segments": 4}}


class Addend:
    def __init__(self, subject, policy):
        self._subject = subject
        self._model = subject.addend_model()
        self._policy = policy

    def __call__(self, sample, target):
        result = self._model.decompose(self._subject.addend_input(sample), **self._policy)[0]
        return centred(result.components.torch()[:, 0], target).numpy()


class IntegratedGradients:
    """The gradient's mean over the line from the baseline, at Gauss-Legendre nodes, times the difference."""

    def __init__(self, subject):
        self._subject = subject
        nodes, weights = numpy.polynomial.legendre.leggauss(STEPS)
        self._nodes = torch.from_numpy((nodes + 1) / 2).float()
        self._weights = torch.from_numpy(weights / 2).float()

    def __call__(self, sample, target):
        baseline, difference = _line(self._subject, sample)
        nodes, weights = (vector.view([STEPS] + [1] * (difference.dim() - 1)) for vector in (self._nodes, self._weights))
        gradients = _gradients(self._subject, baseline + nodes * difference, target)
        return _by_unit(self._subject, sample, (weights * gradients).sum(0) * difference[0])


class IntegratedGradientsOfContent(IntegratedGradients):
    """Integrated gradients while every layer takes the attention weights of the whole sample, all along the line: only
    what attention lets through moves."""

    def __call__(self, sample, target):
        network = self._subject.model
        with torch.no_grad():
            _, layers = run_with_attention(network, self._subject.inputs[sample : sample + 1])
        with hooked(network, lambda layer, weights: layers[layer].expand_as(weights)):
            return super().__call__(sample, target)


class InputXGradient:
    """The gradient at the input, times the difference to the baseline."""

    def __init__(self, subject):
        self._subject = subject

    def __call__(self, sample, target):
        baseline, difference = _line(self._subject, sample)
        gradients = _gradients(self._subject, baseline + difference, target)
        return _by_unit(self._subject, sample, gradients[0] * difference[0])


class Occlusion:
    """The loss of output with one unit removed."""

    def __init__(self, subject):
        self._subject = subject

    def __call__(self, sample, target):
        units = self._subject.units(sample)
        kept = numpy.concatenate([numpy.ones((1, units), bool), ~numpy.eye(units, dtype=bool)])
        with torch.no_grad():
            outputs = centred(self._subject.model(self._subject.variants(sample, kept)), target)
        return (outputs[0] - outputs[1:]).numpy()


class SampledShapley:
    """The mean, over random orders of the units, of what the output gains when a unit joins those before it (Castro et
    al. 2009). Each order sums to the move, and so does the mean."""

    def __init__(self, subject, seed):
        self._subject = subject
        self._generator = numpy.random.default_rng(seed)

    def __call__(self, sample, target):
        units = self._subject.units(sample)
        orders = self._generator.permuted(numpy.tile(numpy.arange(units), (PERMUTATIONS, 1)), axis=1)
        joined = orders.argsort(1)[:, None, :] < numpy.arange(units + 1)[:, None]
        with torch.no_grad():
            variants = self._subject.variants(sample, joined.reshape(-1, units))
            outputs = centred(self._subject.model(variants).double(), target).view(PERMUTATIONS, units + 1)
        gains = outputs.diff(dim=1).numpy()
        return numpy.take_along_axis(gains, orders.argsort(1), 1).mean(0)


class AttentionRollout:
    """How attention flows from the last token, where the output is read, to each token (Abnar and Zuidema 2020): the
    product over layers of the mean of identity and attention, whose heads are averaged. Needs no target."""

    def __init__(self, subject):
        self._subject = subject

    def __call__(self, sample, target):
        with torch.no_grad():
            _, layers = run_with_attention(self._subject.model, self._subject.inputs[sample : sample + 1])
        flow = torch.eye(layers[0].shape[-1], dtype=torch.double)
        for weights in layers:
            flow = (weights[0].double().mean(0) + torch.eye(len(flow))) / 2 @ flow
        return flow[-1].numpy()


class Random:
    """Numbers without meaning: what a ranking is worth that knows nothing."""

    def __init__(self, subject, seed):
        self._subject = subject
        self._generator = numpy.random.default_rng(seed)

    def __call__(self, sample, target):
        return self._generator.standard_normal(self._subject.units(sample))


class CaptumIntegratedGradients:
    def __init__(self, subject, captum):
        self._subject = subject
        self._captum = captum.IntegratedGradients(lambda embedded, target: centred(subject.run_embedded(embedded), target))

    def __call__(self, sample, target):
        baseline, difference = _line(self._subject, sample)
        contributions = self._captum.attribute(
            baseline + difference, baselines=baseline, additional_forward_args=(target,), n_steps=STEPS
        )
        return _by_unit(self._subject, sample, contributions[0].detach())


def softmaxes(network):
    """One for each layer of attention."""
    return [module for module in network.modules() if isinstance(module, torch.nn.Softmax)]


def run_with_attention(network, inputs):
    """The outputs of a network, and the attention weights [samples, heads, from, to] of each of its layers."""
    layers = []
    with hooked(network, lambda layer, weights: layers.append(weights)):
        return network(inputs), layers


@contextlib.contextmanager
def hooked(network, change):
    """Lets `change` see the number of a layer and its attention weights, and give others in their place, or None."""
    hooks = [
        softmax.register_forward_hook(lambda module, inputs, weights, layer=layer: change(layer, weights))
        for layer, softmax in enumerate(softmaxes(network))
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def centred(outputs, target):
    """The output of one class above the mean of all; classes are the last dimension."""
    return outputs[..., target] - outputs.mean(-1)


def _line(subject, sample):
    """The start of the line to the sample, and its direction, both embedded, [1, ...]."""
    baseline = subject.embed(subject.baselines[sample : sample + 1])
    return baseline, subject.embed(subject.inputs[sample : sample + 1]) - baseline


def _gradients(subject, embedded, target):
    with torch.enable_grad():
        embedded = embedded.detach().requires_grad_()
        total = centred(subject.run_embedded(embedded), target).sum()
        return torch.autograd.grad(total, embedded)[0]


def _by_unit(subject, sample, contributions):
    """Sums over embeddings and over the elements of each unit."""
    labels = subject.labels[sample]
    flat = contributions.reshape(labels.numel(), -1).double().sum(-1)
    there = labels.reshape(-1) >= 0
    sums = torch.zeros(subject.units(sample), dtype=torch.double)
    return sums.index_add_(0, labels.reshape(-1)[there], flat[there]).numpy()
