"""Methods that are measured: Addend and its peers, each a function from a setting to contributions of components.

A maker takes a setting and the checkouts, and returns a Method; or None where the method has no meaning. It may raise
anything: what a peer says is the reason that is reported. Networks are copied first, since some peers leave hooks in them.
"""

import copy
import io

import torch

import addend
import coalitions
from processes import Missing

IG_STEPS = 50
# Sampled coalitions for N components: KernelExplainer's default is 2 N and this many.
COALITIONS = 2048

# Runs of this many inputs at once: more take more memory and are not faster on a CPU.
ABLATION_BATCH = 32
IG_BATCH = 1024
# Coalitions run as many at once as there is room for in this many elements.
COALITION_ELEMENTS = 2**20


class Method:
    """How a setting is explained.

    Attributes:
        run: what is called again and again and timed.
        answer: makes an Answer of what it returns; None where there is nothing to explain.
        counted: the same on the network itself, so that its runs can be counted; `run` where that calls it already.
    """

    def __init__(self, run, answer=None, counted=None):
        self.run = run
        self.answer = answer
        self.counted = counted or run


class Answer:
    """Contributions to the outputs in question.

    Attributes:
        contributions: for each row one number for each component.
        recovery: what components and rest add up to, for each output of each row; None for methods that explain one output
            only.
        aim: what contributions shall add up to: "difference" (the output's to that of the baseline) or "value".
    """

    def __init__(self, contributions, recovery=None, aim="difference"):
        self.contributions = contributions.detach().double().tolist()
        self.recovery = None if recovery is None else recovery.double().flatten().tolist()
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
    return _without_gradients(lambda: setting.network(setting.input))


def plain_batch(setting, checkouts):
    """The least work of a method that runs the network once for each component and once for the baseline."""
    batch = setting.input.repeat_interleave(setting.numc + 1, 0)
    return _without_gradients(lambda: setting.network(batch))


def addend_decompose(preset):
    def make(setting, checkouts):
        model = addend.compile(copy.deepcopy(setting.network), preset=preset)

        def run():
            split = addend.Input(setting.input, labels=setting.labels, baseline=0)
            return model.decompose(split)[0]

        def answer(result):
            return Answer(setting.of_targets(result.components.torch()).T, result.recovery.torch())

        return _without_gradients(run, answer)

    return make


def addend_attribute(preset, **choices):
    """One sweep back from the outputs in question; recording is in it, and so are references that are not kept."""

    def make(setting, checkouts):
        options = {"baselines": setting.baseline, "target": setting.targets, "preset": preset}
        method = _elementwise(setting, _scripted(setting), **options, **choices)
        method.counted = _counted(setting, options)
        return method

    return make


def addend_plan(preset, every_output=False):
    """An attribution that was made ready for such rows, into memory that is there: of the outputs in question, or of all."""

    def make(setting, checkouts):
        outputs = setting.output.size(1)
        asked = range(outputs) if every_output else setting.targets
        plan = _scripted(setting).plan(
            addend.Input(setting.input, labels=setting.labels, baseline=0),
            targets=list(map(str, asked)), each_example=True, every_target=every_output, preset=preset,
        )
        rows = len(setting.input)
        found = torch.empty(rows * outputs if every_output else rows, setting.numc, dtype=torch.float64)

        def answer(contributions):
            if not every_output:
                return Answer(contributions)
            return Answer(setting.of_targets(contributions.view(outputs, rows, -1).permute(2, 1, 0)).T)

        def run():
            plan.attribute_into(setting.input, contributions=found)
            return found

        # The plan goes through the operators of one run.
        options = {"baselines": setting.baseline, "target": setting.targets, "preset": preset}
        return Method(run, answer, _counted(setting, options))

    return make


def _scripted(setting):
    """The network as a file of TorchScript that was loaded."""
    script = io.BytesIO()
    torch.jit.save(torch.jit.trace(copy.deepcopy(setting.network), setting.input), script)
    return addend.load_model(script.getvalue())


def _counted(setting, options):
    """The attribution of the live network, whose runs can be counted."""
    return _elementwise(setting, addend.compile(copy.deepcopy(setting.network)), **options).run


def pydec(setting, checkouts):
    return _pydec(setting, checkouts.pydec, copy.deepcopy(setting.network))


def pydec_frozen_attention(setting, checkouts):
    """PyDec with constant attention weights, as its examples change Transformers by hand. None without attention."""
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
        return Answer(setting.of_targets(output.components).T, output.recovery)

    return _without_gradients(lambda: network(module.Composition(parts)), answer)


def deep_lift(setting, checkouts):
    method = checkouts.captum.DeepLift(copy.deepcopy(setting.network))
    return _elementwise(setting, method, baselines=setting.baseline, target=setting.targets)


def lrp(setting, checkouts):
    return _elementwise(setting, checkouts.captum.LRP(copy.deepcopy(setting.network)), "value", target=setting.targets)


def input_x_gradient(setting, checkouts):
    return _elementwise(setting, checkouts.captum.InputXGradient(copy.deepcopy(setting.network)), target=setting.targets)


def integrated_gradients(setting, checkouts):
    method = checkouts.captum.IntegratedGradients(copy.deepcopy(setting.network))
    options = {"baselines": setting.baseline, "target": setting.targets, "n_steps": IG_STEPS}
    return _elementwise(setting, method, internal_batch_size=IG_BATCH, **options)


def feature_ablation(setting, checkouts):
    method = checkouts.captum.FeatureAblation(copy.deepcopy(setting.network))

    def answer(attributions):
        # Each element has the contribution of its whole component.
        flat = attributions.flatten(1)
        return Answer(flat.new_zeros(len(flat), setting.numc).index_copy_(1, _flat_labels(setting), flat))

    return _without_gradients(
        lambda: method.attribute(
            setting.input,
            baselines=setting.baseline,
            target=setting.targets,
            feature_mask=setting.labels.expand_as(setting.input),
            perturbations_per_eval=ABLATION_BATCH,
        ),
        answer,
    )


def kernel_shap(setting, checkouts):
    """The method of SHAP's KernelExplainer: each row has coalitions of its own, which the network runs in batches."""
    network = copy.deepcopy(setting.network)
    at_once = max(1, COALITION_ELEMENTS // setting.baseline.numel())

    def run():
        start = network(setting.baseline)[0]
        wholes = setting.of_targets(network(setting.input) - start).double()
        found = []
        for x, target, whole in zip(setting.input.split(1), setting.targets, wholes):
            sets, weights = coalitions.draw(setting.numc, 2 * setting.numc + COALITIONS)
            outputs = [
                network(torch.where(part[:, setting.labels[0]], x, setting.baseline)) for part in sets.split(at_once)
            ]
            gains = torch.cat(outputs)[:, target] - start[target]
            found.append(coalitions.fit(sets, weights, gains, whole))
        return torch.stack(found)

    return _without_gradients(run, Answer)


def _elementwise(setting, method, aim="difference", **options):
    """A method with Captum's arguments, which gives each element of the input its own contribution."""

    def answer(attributions):
        flat = torch.as_tensor(attributions).detach().flatten(1).double()
        return Answer(flat.new_zeros(len(flat), setting.numc).index_add_(1, _flat_labels(setting), flat), aim=aim)

    return Method(lambda: method.attribute(setting.input, **options), answer)


def _flat_labels(setting):
    return setting.labels.expand_as(setting.baseline).reshape(-1)


def _without_gradients(run, answer=None):
    return Method(torch.no_grad()(run), answer)


# In the order of tables; the first part says whose it is.
METHODS = {
    "plain run": plain,
    "plain run, batch of N + 1": plain_batch,
    "Addend decompose, fast": addend_decompose("fast"),
    "Addend decompose, faithful": addend_decompose("faithful"),
    "Addend attribute, fast": addend_attribute("fast"),
    "Addend attribute, faithful": addend_attribute("faithful"),
    "Addend attribute, faithful, kept": addend_attribute("faithful", keep_references=True),
    "Addend plan, faithful": addend_plan("faithful"),
    "Addend plan, faithful, all outputs": addend_plan("faithful", every_output=True),
    "PyDec": pydec,
    "PyDec, attention frozen by hand": pydec_frozen_attention,
    "Captum DeepLift": deep_lift,
    "Captum LRP": lrp,
    "Captum InputXGradient": input_x_gradient,
    "Captum IntegratedGradients, %d steps" % IG_STEPS: integrated_gradients,
    "Captum FeatureAblation": feature_ablation,
    "Kernel SHAP by hand, 2 N + %d runs" % COALITIONS: kernel_shap,
}
PLAIN = "plain run"
