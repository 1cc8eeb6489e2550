"""docs/from_captum.md beside Captum: for each line of the page, whether the numbers are equal, near or other.

ADDEND_CAPTUM names a checkout of Captum, as the benchmarks have; without it, one that is installed is taken.
"""

import contextlib
import copy
import importlib.util
import inspect
import io
import os
import re
import sys
import types
import unittest
import warnings
from pathlib import Path

import torch
from torch import nn

import addend

_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE), str(_HERE.parents[2] / "benchmarks")]

import captum_page_test  # noqa: E402
import checkouts  # noqa: E402
import page  # noqa: E402

TARGET = 1
STEPS = 200
# How far numbers that are equal may be apart, as a share of the largest.
EXACT = 1e-5
LIMIT = 1e-4  # of segments and steps
COARSE = 2e-2  # of 64 segments of a model that is not elementwise
DRAWN = 0.03  # of twenty thousand draws
DRAWS = 20000


def find_captum():
    """The module captum.attr of a checkout, or of what is installed; None without either."""
    folder = os.environ.get("ADDEND_CAPTUM")
    if folder:
        return checkouts.captum(folder)
    if importlib.util.find_spec("captum") is None:
        return None
    import captum.attr

    return captum.attr


class Model(nn.Module):
    """Elementwise or not, before and behind the layer that the page names."""

    def __init__(self, before=nn.Tanh, behind=nn.Tanh):
        super().__init__()
        torch.manual_seed(3)
        self.layers = nn.ModuleDict({"3": nn.Sequential(nn.Linear(4, 6), before())})
        self.tail = nn.Sequential(nn.Linear(6, 6), behind(), nn.Linear(6, 2))
        with torch.no_grad():
            self.layers["3"][0].weight.mul_(2)  # so that methods differ

    def forward(self, x):
        return self.tail(self.layers["3"](x))

    @property
    def layer(self):
        return self.layers["3"]


class Plain(nn.Module):
    """Whose layer has no activation of its own."""

    def __init__(self, activation=nn.Tanh):
        super().__init__()
        torch.manual_seed(4)
        self.layers = nn.ModuleDict({"3": nn.Linear(4, 6)})
        self.tail = nn.Sequential(activation(), nn.Linear(6, 5), activation(), nn.Linear(5, 2))

    def forward(self, x):
        return self.tail(self.layers["3"](x))

    @property
    def layer(self):
        return self.layers["3"]


class Image(nn.Module):
    def __init__(self, pooled):
        super().__init__()
        torch.manual_seed(5)
        self.features = nn.Sequential(nn.Conv2d(1, 3, 3), nn.Tanh())
        self.head = nn.Linear(3 if pooled else 48, 2)
        self.pooled = pooled

    def forward(self, x):
        found = self.features(x)
        return self.head(found.mean((2, 3)) if self.pooled else torch.tanh(found).flatten(1))


class Norm(nn.LayerNorm):
    def __init__(self):
        super().__init__(6)


class Decoder(nn.Module):
    """A layer of causal attention."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.embed, self.query, self.head = nn.Embedding(12, 6), nn.Linear(6, 6), nn.Linear(6, 12)

    def forward(self, input_ids, attention_mask=None, use_cache=False):
        x = self.embed(input_ids)
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        weights = (self.query(x) @ x.transpose(1, 2)).masked_fill(later, float("-inf")).softmax(-1)
        return types.SimpleNamespace(logits=self.head(torch.tanh(x + weights @ x)))


class Tokenizer:
    """Each number is a token."""

    def __call__(self, text, **_):
        found = list(re.finditer(r"\d+", text))
        return {"input_ids": [int(one.group()) for one in found], "offset_mapping": [one.span() for one in found]}

    def encode(self, text, return_tensors=None, add_special_tokens=True):
        ids = [int(word) for word in text.split()]
        return torch.tensor([ids]) if return_tensors else ids

    def decode(self, ids):
        return " ".join(map(str, torch.as_tensor(ids).reshape(-1).tolist()))

    def convert_ids_to_tokens(self, ids):
        return [str(one) for one in ids]

    def convert_tokens_to_ids(self, tokens):
        return [int(one) for one in tokens]


CASES = {}


def line(*names):
    """A test of the line of the page that has these names."""

    def mark(test):
        CASES.update(dict.fromkeys(names, test.__name__))
        return test

    return mark


@unittest.skipIf(find_captum() is None, "skipped: there is no Captum; ADDEND_CAPTUM names a checkout")
class CaptumTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.attr = find_captum()
        cls.page = page.Page("docs/from_captum.md")

    def setUp(self):
        caught = warnings.catch_warnings()
        caught.__enter__()
        self.addCleanup(caught.__exit__, None, None, None)
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        self.x, self.baseline = torch.randn(3, 4), torch.randn(1, 4) / 2
        self.background = torch.randn(3, 4)
        self.mask = torch.tensor([[0, 0, 1, 1]])

    def method(self, name, *args):
        """A method of Captum, which says much on standard error."""
        if not hasattr(self.attr, name):
            self.skipTest("this Captum has no %s" % name)
        return getattr(self.attr, name)(*args)

    def by_page(self, name, model, part="Methods", **names):
        """The result of the call on the page, on `x` unless another is given."""
        call = self.page.line_of(name, part)[1].strip("`")
        if "attribute(" in call and "target" not in call:
            call = call[:-1] + ", target=1)"
        own = {"addend": addend, "model": model, "x": self.x, "mask": self.mask, "baseline": self.baseline}
        return eval(call, {**own, **names})

    def start(self, model, baseline=None):
        with torch.no_grad():
            return model.layer(self.baseline if baseline is None else baseline)

    def apart(self, ours, theirs):
        """How far two tensors are apart, as a share of the largest number."""
        self.assertEqual(ours.shape, theirs.shape)
        return ((ours - theirs).abs().max() / theirs.abs().max()).item()

    def equal(self, ours, theirs, share=EXACT):
        self.assertLess(self.apart(ours, theirs), share)

    def other(self, ours, theirs):
        self.assertGreater(self.apart(ours, theirs), 0.01)

    def near(self, ours, theirs):
        """Closer than a fifth, and not equal."""
        self.assertGreater(self.apart(ours, theirs), 0.001)
        self.assertLess(self.apart(ours, theirs), 0.2)

    def mean(self, rows):
        return rows.mean(0, keepdim=True)

    # ---- methods of inputs

    def test_every_line_with_a_method_has_a_case(self):
        lines = [page.cells(own) for own in self.page.part("Methods").splitlines() if own.startswith("| `")]
        asked = {
            name for names, _, differs in lines if not differs.startswith("none") for name in re.findall(r"`(\w+)`", names)
        }
        self.assertEqual(asked, set(CASES))
        for name, test in CASES.items():
            self.assertIn('"%s"' % name, inspect.getsource(getattr(type(self), test)))

    def test_names(self):
        import captum

        told = set(captum_page_test.PUBLIC["attr"].split())
        if captum.__version__ == "0.9.0":
            self.assertEqual(told, set(self.attr.__all__))
        self.assertGreater(len(told & set(self.attr.__all__)), 50)

    @line("IntegratedGradients")
    def test_integrated_gradients(self):
        for model in (Model(), Model(behind=Norm), Model(nn.GELU, nn.Sigmoid)):
            theirs = self.method("IntegratedGradients", model).attribute(self.x, target=TARGET, n_steps=STEPS)
            self.equal(self.by_page("IntegratedGradients", model), theirs, COARSE)
            finer = addend.attribute(model, self.x, target=TARGET, segments=512, content_first="none")
            self.equal(finer, theirs, LIMIT)

    @line("DeepLift")
    def test_deep_lift(self):
        for before, behind in ((nn.Tanh, nn.ReLU), (nn.Sigmoid, nn.ELU)):
            theirs = self.method("DeepLift", Model(before, behind)).attribute(self.x, target=TARGET)
            self.equal(self.by_page("DeepLift", Model(before, behind)), theirs)
        theirs = self.method("DeepLift", Model(behind=Norm)).attribute(self.x, target=TARGET)
        self.other(self.by_page("DeepLift", Model(behind=Norm)), theirs)

    @line("DeepLiftShap", "GradientShap")
    def test_means_over_a_background(self):
        one = {"x": self.x[:1], "background": self.background, "n": 3}
        theirs = self.method("DeepLiftShap", Model()).attribute(self.x[:1], self.background, target=TARGET)
        self.equal(self.mean(self.by_page("DeepLiftShap", Model(), **one)), theirs)
        method = self.method("GradientShap", Model())
        theirs = method.attribute(self.x[:1], self.background, target=TARGET, n_samples=DRAWS)
        self.equal(self.mean(self.by_page("GradientShap", Model(), **one)), theirs, DRAWN)

    @line("InputXGradient")
    def test_input_times_gradient(self):
        theirs = self.method("InputXGradient", Model()).attribute(self.x.clone(), target=TARGET)
        self.equal(self.by_page("InputXGradient", Model()), theirs)
        theirs = self.method("InputXGradient", Model(behind=Norm)).attribute(self.x.clone(), target=TARGET)
        self.other(self.by_page("InputXGradient", Model(behind=Norm)), theirs)

    @line("LRP")
    def test_lrp(self):
        for kind in (nn.ReLU, nn.Tanh):
            theirs = self.method("LRP", Model(kind, kind)).attribute(self.x, target=TARGET)
            self.equal(self.by_page("LRP", Model(kind, kind)), theirs, LIMIT)

    @line("FeatureAblation", "Occlusion")
    def test_ablation(self):
        ablation = self.method("FeatureAblation", Model())
        self.other(
            self.by_page("FeatureAblation", Model()), ablation.attribute(self.x, target=TARGET, feature_mask=self.mask)
        )
        linear = nn.Linear(4, 2)
        theirs = self.method("FeatureAblation", linear).attribute(self.x, target=TARGET, feature_mask=self.mask)
        self.equal(self.by_page("FeatureAblation", linear), theirs)
        # Windows of one element are groups of one.
        alone = {"mask": torch.arange(4)[None]}
        theirs = self.method("Occlusion", linear).attribute(self.x, (1,), target=TARGET)
        self.equal(self.by_page("Occlusion", linear, **alone), theirs)
        theirs = self.method("Occlusion", Model()).attribute(self.x, (1,), target=TARGET)
        self.other(self.by_page("Occlusion", Model(), **alone), theirs)

    @line("ShapleyValues", "ShapleyValueSampling", "KernelShap")
    def test_shapley_values(self):
        x = self.x[:1]
        parts = self.by_page("ShapleyValues", Model(), x=x)
        ours = parts.components.torch()[:, 0, TARGET][None]
        self.equal(ours, self.method("ShapleyValues", Model()).attribute(x, self.baseline, target=TARGET))
        for name, draws in (("ShapleyValueSampling", 500), ("KernelShap", 2000)):
            with self.subTest(name):
                if name == "KernelShap" and importlib.util.find_spec("sklearn") is None:
                    self.skipTest("skipped: KernelShap needs scikit-learn")
                theirs = self.method(name, Model()).attribute(x, self.baseline, target=TARGET, n_samples=draws)
                self.equal(ours, theirs, DRAWN)

    @line("Lime", "LimeBase")
    def test_lime(self):
        if importlib.util.find_spec("sklearn") is None:
            self.skipTest("skipped: Lime needs scikit-learn")
        for name in ("Lime", "LimeBase"):
            self.assertTrue(issubclass(getattr(self.attr, "Lime"), getattr(self.attr, name)))
        theirs = self.method("Lime", Model()).attribute(self.x[:1], target=TARGET, feature_mask=self.mask, n_samples=500)
        self.other(self.by_page("Lime", Model(), x=self.x[:1]), theirs)

    @line("NoiseTunnel")
    def test_noise_tunnel(self):
        x, scale, draws = self.x[:1], 0.3, 2000
        tunnel = self.method("NoiseTunnel", self.attr.IntegratedGradients(Model()))
        theirs = tunnel.attribute(x, nt_type="smoothgrad", nt_samples=draws, stdevs=scale, target=TARGET, n_steps=20)
        found = self.by_page("NoiseTunnel", Model(), x=x.expand(draws, -1), noise=scale * torch.randn(draws, 4))
        self.equal(self.mean(found), theirs, DRAWN)

    # ---- layers

    @line("LayerIntegratedGradients")
    def test_layer_integrated_gradients(self):
        for behind in (nn.Tanh, Norm):
            model = Model(behind=behind)
            method = self.method("LayerIntegratedGradients", model, model.layer)
            theirs = method.attribute(self.x, self.baseline, target=TARGET, n_steps=STEPS)
            found = self.by_page("LayerIntegratedGradients", model, start=self.start(model))
            self.equal(found, theirs, COARSE)
            if behind is nn.Tanh:
                self.equal(found, theirs, LIMIT)
            # Without the start zero is taken, which is another question.
            self.other(self.by_page("LayerIntegratedGradients", model, start=0), theirs)

    @line("LayerDeepLift")
    def test_layer_deep_lift(self):
        for behind, judge in ((nn.Tanh, self.equal), (nn.ReLU, self.equal), (Norm, self.other)):
            model = Model(behind=behind)
            theirs = self.method("LayerDeepLift", model, model.layer).attribute(self.x, self.baseline, target=TARGET)
            model = Model(behind=behind)
            judge(self.by_page("LayerDeepLift", model, start=self.start(model)), theirs)

    @line("LayerGradientXActivation")
    def test_layer_gradient_times_activation(self):
        for behind, judge in ((nn.Tanh, self.equal), (Norm, self.other)):
            model = Model(behind=behind)
            theirs = self.method("LayerGradientXActivation", model, model.layer).attribute(self.x, target=TARGET)
            judge(self.by_page("LayerGradientXActivation", model), theirs)

    def test_there_is_no_layer_conductance(self):
        """But its sums are those of integrated gradients of the layer, from the same ends."""
        model = Model()
        method = self.method("LayerConductance", model, model.layer)
        theirs = method.attribute(self.x, self.baseline, target=TARGET, n_steps=STEPS, method="gausslegendre")
        found = self.by_page("LayerIntegratedGradients", model, start=self.start(model))
        self.other(found, theirs)
        self.equal(found.sum(1), theirs.sum(1), COARSE)
        self.assertEqual(self.page.line_of("LayerConductance", "Methods")[1], "")

    @line("LayerDeepLiftShap", "LayerGradientShap")
    def test_means_of_a_layer_over_a_background(self):
        def ours(name, model):
            rows = self.start(model, self.background)
            return self.mean(torch.cat([self.by_page(name, model, x=self.x[:1], row=row) for row in rows]))

        model = Model()
        theirs = self.method("LayerDeepLiftShap", model, model.layer).attribute(self.x[:1], self.background, TARGET)
        self.equal(ours("LayerDeepLiftShap", Model()), theirs)
        for model, judge in ((Plain(), lambda *pair: self.equal(*pair, DRAWN)), (Model(), self.near)):
            method = self.method("LayerGradientShap", model, model.layer)
            theirs = method.attribute(self.x[:1], self.background, target=TARGET, n_samples=DRAWS)
            judge(ours("LayerGradientShap", model), theirs)

    @line("LayerLRP")
    def test_layer_lrp(self):
        for kind in (nn.ReLU, nn.Tanh):
            model = Plain(kind)
            theirs = self.method("LayerLRP", model, model.layer).attribute(self.x, target=TARGET)
            self.equal(self.by_page("LayerLRP", Plain(kind)), theirs, LIMIT)

    @line("LayerFeatureAblation")
    def test_layer_feature_ablation(self):
        for behind, judge in ((nn.Identity, self.equal), (nn.Tanh, self.other)):
            model = Model(behind=behind)
            method = self.method("LayerFeatureAblation", model, model.layer)
            theirs = method.attribute(self.x, layer_baselines=self.start(model), target=TARGET)
            judge(self.by_page("LayerFeatureAblation", model, start=self.start(model)), theirs)

    @line("LayerGradCam")
    def test_grad_cam(self):
        x = torch.randn(2, 1, 6, 6)
        for pooled, judge in ((True, self.equal), (False, self.other)):
            model = Image(pooled)
            theirs = self.method("LayerGradCam", model, model.features).attribute(x, target=TARGET)
            judge(self.by_page("LayerGradCam", model, x=x).sum(1, keepdim=True), theirs)

    @line("LayerActivation")
    def test_layer_activation(self):
        model = Model()
        theirs = self.method("LayerActivation", model, model.layer).attribute(self.x)
        probed = self.by_page("LayerActivation", model).decompose(addend.Input(self.x, dims=1))
        self.equal(probed["layers.3"].value.torch(), theirs)

    # ---- neurons

    @line("NeuronIntegratedGradients", "NeuronDeepLift")
    def test_neurons(self):
        model = Model()
        method = self.method("NeuronIntegratedGradients", model, model.layer)
        theirs = method.attribute(self.x, 5, n_steps=STEPS)
        self.equal(self.by_page("NeuronIntegratedGradients", model), theirs, LIMIT)
        theirs = self.method("NeuronDeepLift", model, model.layer).attribute(self.x, 5)
        self.equal(self.by_page("NeuronDeepLift", Model()), theirs)

    @line("NeuronDeepLiftShap", "NeuronGradientShap")
    def test_means_of_a_neuron_over_a_background(self):
        one = {"x": self.x[:1], "background": self.background, "n": 3}
        model = Model()
        theirs = self.method("NeuronDeepLiftShap", model, model.layer).attribute(self.x[:1], 5, self.background)
        self.equal(self.mean(self.by_page("NeuronDeepLiftShap", Model(), **one)), theirs)
        model = Model()
        method = self.method("NeuronGradientShap", model, model.layer)
        theirs = method.attribute(self.x[:1], 5, self.background, n_samples=DRAWS)
        self.equal(self.mean(self.by_page("NeuronGradientShap", model, **one)), theirs, DRAWN)

    @line("NeuronFeatureAblation")
    def test_neuron_feature_ablation(self):
        for before, judge in ((nn.Identity, self.equal), (nn.Tanh, self.other)):
            model = Model(before=before)
            method = self.method("NeuronFeatureAblation", model, model.layer)
            theirs = method.attribute(self.x, 5, feature_mask=self.mask)
            judge(self.by_page("NeuronFeatureAblation", model), theirs)

    # ---- language models and ids

    def of_prompt(self, kind, **options):
        """Attributions by a method of Captum for each token of the continuation, by token of the prompt."""
        tokenizer = Tokenizer()
        text = self.attr.TextTokenInput("1 5 7 2", tokenizer, baselines=0)
        with contextlib.redirect_stderr(io.StringIO()):
            theirs = kind(tokenizer).attribute(text, target=torch.tensor([3, 9]), **options).token_attr
        return theirs.detach()

    @line("LLMGradientAttribution", "LLMAttribution")
    def test_language_models(self):
        model = Decoder().eval()
        own = {"prompt": [1, 5, 7, 2], "continuation": [3, 9], "tokenizer": None}
        call = self.page.line_of("LLMGradientAttribution", "Methods")[1].strip("`")[:-1] + ", baseline=0)"
        ours = torch.tensor(eval(call, {"addend": addend, "model": model, **own}).matrix)
        layer = self.method("LayerIntegratedGradients", model, model.embed)
        theirs = self.of_prompt(lambda words: self.method("LLMGradientAttribution", layer, words), n_steps=STEPS)
        # For the first generated token both explain the same number, from the same baseline.
        self.near(ours[0, :4], theirs[0].to(ours.dtype))
        self.assertAlmostEqual(ours[0].sum().item(), theirs[0].sum().item(), places=4)
        self.assertGreater(ours[1, 4].abs().item(), 1e-2)  # what the first one gave to the second
        ablation = self.method("FeatureAblation", model)
        theirs = self.of_prompt(lambda words: self.method("LLMAttribution", ablation, words), use_cached_outputs=False)
        call = self.page.line_of("LLMAttribution", "Methods")[1].strip("`")[:-1] + ", baseline=0)"
        ours = torch.tensor(eval(call, {"addend": addend, "model": model, **own}).matrix)
        self.other(ours[:, :4], theirs.to(ours.dtype))

    def test_ids_have_what_their_embeddings_have(self):
        network = Decoder()
        ids = torch.tensor([[1, 5, 7, 2]])

        def model(ids):
            return network(ids).logits[:, -1]

        layer = self.method("LayerIntegratedGradients", model, network.embed)
        theirs = layer.attribute(ids, torch.zeros_like(ids), target=TARGET, n_steps=STEPS).sum(-1)
        source = addend.Input(ids, labels=torch.arange(4)[None], baseline=0)
        (found,) = addend.compile(model).explain(source, targets=TARGET, segments=256, content_first="none")
        self.equal(torch.tensor(found.contributions)[None], theirs, LIMIT)

    # ---- arguments

    def test_targets(self):
        method = self.method("IntegratedGradients", Model())
        for target in (1, torch.tensor(1), torch.tensor([1]), [0, 1, 0], torch.tensor([0, 1, 0])):
            theirs = method.attribute(self.x, self.baseline, target=target, n_steps=STEPS)
            self.equal(addend.attribute(Model(), self.x, self.baseline, target, segments=64), theirs, LIMIT)
        wide = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Unflatten(1, (2, 3)))
        method = self.method("IntegratedGradients", wide)
        for target in ((1, 2), [(0, 1), (1, 2), (0, 0)]):
            theirs = method.attribute(self.x, self.baseline, target=target, n_steps=STEPS)
            self.equal(addend.attribute(wide, self.x, self.baseline, target, segments=64), theirs, LIMIT)
        for narrow in (lambda x: x[:, 0] * x[:, 1], lambda x: (x[:, 0] * x[:, 1])[:, None]):
            theirs = self.method("IntegratedGradients", narrow).attribute(self.x, n_steps=STEPS)
            self.equal(addend.attribute(narrow, self.x, segments=64), theirs, LIMIT)

    def test_baselines(self):
        method = self.method("IntegratedGradients", Model())
        for baselines in (None, 0, 1, 0.5, self.baseline, self.background, (self.baseline,), (0.5,)):
            theirs = method.attribute(self.x, baselines, target=TARGET, n_steps=STEPS)
            self.equal(addend.attribute(Model(), self.x, baselines, TARGET, segments=64), theirs, LIMIT)

    def test_several_inputs_and_further_arguments(self):
        first, second = nn.Linear(4, 5), nn.Linear(3, 5)

        def model(x, y, nothing=None, scale=1.0, mask=None):
            found = torch.tanh(first(x) + second(y)) * scale
            return found if mask is None else found * mask

        y = torch.randn(3, 3)
        method = self.method("IntegratedGradients", model)
        for baselines in (None, (0, 1), (self.baseline, 0.5), (0.5, y.roll(1, 0))):
            theirs = method.attribute((self.x, y), baselines, target=TARGET, n_steps=STEPS)
            found = addend.attribute(model, (self.x, y), baselines, TARGET, segments=64)
            self.assertIsInstance(found, tuple)
            for pair in zip(found, theirs):
                self.equal(*pair, LIMIT)
        for further in (y, (y,), (y, None, 2.0, torch.rand(3, 1))):
            theirs = method.attribute(self.x, target=TARGET, additional_forward_args=further, n_steps=STEPS)
            self.equal(addend.attribute(model, self.x, None, TARGET, further, segments=64), theirs, LIMIT)
        (found,) = addend.attribute(Model(), (self.x,), target=TARGET, segments=64)  # a tuple of one stays one
        (theirs,) = self.method("IntegratedGradients", Model()).attribute((self.x,), target=TARGET, n_steps=STEPS)
        self.equal(found, theirs, LIMIT)

    def test_the_delta(self):
        """The delta of attributions that miss something is the one that Captum computes."""
        found, delta = addend.attribute(Model(), self.x, self.baseline, TARGET, None, True, nonlinearity="gradient")
        method = self.method("IntegratedGradients", Model())
        theirs = method.compute_convergence_delta(found, self.baseline, self.x, target=TARGET)
        self.assertGreater(theirs.abs().min().item(), 1e-3)
        self.equal(delta, theirs)
        for name in ("IntegratedGradients", "DeepLift"):
            result = self.method(name, Model()).attribute(
                self.x, self.baseline, target=TARGET, return_convergence_delta=True
            )
            own = addend.attribute(Model(), self.x, self.baseline, TARGET, None, True)
            self.assertEqual((own[1].shape, own[1].dtype), (result[1].shape, result[1].dtype))
            self.assertLess(own[1].abs().max().item(), 1e-5)

    def test_what_is_taken_changes_nothing(self):
        method = self.method("IntegratedGradients", Model())
        options = {"n_steps": STEPS, "method": "gausslegendre", "internal_batch_size": 4}
        theirs = method.attribute(self.x, target=TARGET, **options)
        self.equal(addend.attribute(Model(), self.x, target=TARGET, segments=64, **options), theirs, LIMIT)

    def test_numbers_side_by_side(self):
        """Those of the table at the top."""
        names = self.page.names
        for row in self.page.rows():
            name = row[0].strip("`")
            with self.subTest(name):
                given = [names["x"]] if name == "InputXGradient" else [names["x"], names["baseline"]]
                if name == "InputXGradient":
                    given[0] = given[0].clone()
                theirs = self.method(name, copy.deepcopy(names["network"])).attribute(*given, target=TARGET)
                for shown in (row[1], row[3]):
                    torch.testing.assert_close(
                        torch.tensor(page.numbers(shown)), theirs[0].detach(), atol=captum_page_test.SHOWN, rtol=0
                    )


if __name__ == "__main__":
    unittest.main()
