"""What is measured: Addend and its peers, each a function from a setting to the contributions of its components.

A maker takes a setting and the checkouts, and returns what is called again and again and timed, and what makes an Answer
of its result; or None where the method has no meaning. It may raise anything: what a peer says is the reason that is
reported. Networks are copied first, since some peers leave hooks in them.
"""

import copy
import io

import torch

import addend
from processes import Missing

IG_STEPS = 50

# Forward runs of this many inputs at once: more take more memory and are not faster on a CPU.
ABLATION_BATCH = 32


class Answer:
    """Contributions to the output in question.

    Attributes:
        contributions: one number for each component.
        recovery: what components and rest add up to, for each output; None for methods that explain one output only.
        aim: what contributions shall add up to: "difference" (the output's to that of the baseline) or "value".
    """

    def __init__(self, contributions, recovery=None, aim="difference"):
        self.contributions = contributions.detach().double().tolist()
        self.recovery = None if recovery is None else recovery[0].double().tolist()
        self.aim = aim


class Checkouts:
    """The modules of peers; None where no checkout was given."""

    def __init__(self, pydec=None, captum=None):
        self._modules = {"PyDec": pydec, "Captum": captum}

    def __getattr__(self, name):
        module = self._modules[{"pydec": "PyDec", "captum": "Captum"}[name]]
        if module is None:
            raise Missing("no checkout was given")
        return module


def plain(setting, checkouts):
    """The network itself: what everything is compared with."""
    return _without_gradients(lambda: setting.network(setting.input), None)


def plain_batch(setting, checkouts):
    """What a method takes at least that runs the network once for each component and once for the baseline."""
    batch = setting.input.expand(setting.numc + 1, *setting.input.shape[1:]).contiguous()
    return _without_gradients(lambda: setting.network(batch), None)


def addend_decompose(preset):
    def make(setting, checkouts):
        model = addend.compile(copy.deepcopy(setting.network), preset=preset)

        def run():
            split = addend.Input(setting.input, labels=setting.labels, baseline=0)
            return model.decompose(split)[0]

        def answer(result):
            return Answer(result.components.torch()[:, 0, setting.target], result.recovery.torch())

        return _without_gradients(run, answer)

    return make


def addend_attribute(preset):
    """One sweep back from the output in question; recording and references are in it."""

    def make(setting, checkouts):
        if not hasattr(addend.Model, "attribute"):
            raise Missing("this build of Addend has no attribute() in Python")
        script = io.BytesIO()
        torch.jit.save(torch.jit.trace(copy.deepcopy(setting.network), setting.input), script)
        model = addend.load_model(script.getvalue())
        options = {"baselines": setting.baseline, "target": setting.target, "preset": preset}
        return _elementwise(setting, model, **options)

    return make


def pydec(setting, checkouts):
    return _pydec(setting, checkouts.pydec, copy.deepcopy(setting.network))


def pydec_frozen_attention(setting, checkouts):
    """As the examples of PyDec change Transformers by hand: attention weights are constants. None without attention."""
    network = copy.deepcopy(setting.network)
    attentions = [module for module in network.modules() if hasattr(module, "weights")]
    if not attentions:
        return None
    for attention in attentions:
        attention.weights = lambda states, weights=attention.weights: weights(states.recovery)
    return _pydec(setting, checkouts.pydec, network)


def _pydec(setting, module, network):
    components = torch.arange(setting.numc).view([-1] + [1] * setting.input.dim())
    parts = setting.input * (setting.labels == components)

    def answer(output):
        return Answer(output.components[:, 0, setting.target], output.recovery)

    return _without_gradients(lambda: network(module.Composition(parts)), answer)


def deep_lift(setting, checkouts):
    method = checkouts.captum.DeepLift(copy.deepcopy(setting.network))
    return _elementwise(setting, method, baselines=setting.baseline, target=setting.target)


def lrp(setting, checkouts):
    return _elementwise(setting, checkouts.captum.LRP(copy.deepcopy(setting.network)), "value", target=setting.target)


def input_x_gradient(setting, checkouts):
    return _elementwise(setting, checkouts.captum.InputXGradient(copy.deepcopy(setting.network)), target=setting.target)


def integrated_gradients(setting, checkouts):
    method = checkouts.captum.IntegratedGradients(copy.deepcopy(setting.network))
    return _elementwise(setting, method, baselines=setting.baseline, target=setting.target, n_steps=IG_STEPS)


def feature_ablation(setting, checkouts):
    method = checkouts.captum.FeatureAblation(copy.deepcopy(setting.network))

    def answer(attributions):
        # Each element has the contribution of its whole component.
        flat = attributions.reshape(-1)
        labels = setting.labels.expand_as(setting.input).reshape(-1)
        return Answer(torch.zeros(setting.numc, dtype=flat.dtype).index_copy_(0, labels, flat))

    return _without_gradients(
        lambda: method.attribute(
            setting.input,
            baselines=setting.baseline,
            target=setting.target,
            feature_mask=setting.labels.expand_as(setting.input),
            perturbations_per_eval=ABLATION_BATCH,
        ),
        answer,
    )


def _elementwise(setting, method, aim="difference", **options):
    """A method with Captum's arguments, which gives each element of the input its own contribution."""

    def answer(attributions):
        flat = torch.as_tensor(attributions).detach().reshape(-1).double()
        labels = setting.labels.expand_as(setting.input).reshape(-1)
        return Answer(torch.zeros(setting.numc, dtype=torch.double).index_add_(0, labels, flat), aim=aim)

    return (lambda: method.attribute(setting.input, **options)), answer


def _without_gradients(run, answer):
    return torch.no_grad()(run), answer


# In the order of tables; the first part says whose it is.
METHODS = {
    "plain run": plain,
    "plain run, batch of N + 1": plain_batch,
    "Addend decompose, fast": addend_decompose("fast"),
    "Addend decompose, faithful": addend_decompose("faithful"),
    "Addend attribute, fast": addend_attribute("fast"),
    "Addend attribute, faithful": addend_attribute("faithful"),
    "PyDec": pydec,
    "PyDec, attention frozen by hand": pydec_frozen_attention,
    "Captum DeepLift": deep_lift,
    "Captum LRP": lrp,
    "Captum InputXGradient": input_x_gradient,
    "Captum IntegratedGradients, %d steps" % IG_STEPS: integrated_gradients,
    "Captum FeatureAblation": feature_ablation,
}
PLAIN = "plain run"
