"""docs/from_captum.md: its programs run, its names exist, and its numbers are those of both sides."""

import copy
import os
import re
import sys
import unittest

import torch
from torch import nn

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import formulas  # noqa: E402
import page  # noqa: E402

TARGET = 1
# Names that Captum 0.9.0 exports: `__all__` of its packages.
PUBLIC = {
    "attr": """
        Attribution GradientAttribution PerturbationAttribution NeuronAttribution LayerAttribution IntegratedGradients
        DataLoaderAttribution DeepLift DeepLiftShap InputXGradient Saliency GuidedBackprop Deconvolution GuidedGradCam
        FeatureAblation FeaturePermutation Occlusion ShapleyValueSampling ShapleyValues LimeBase Lime LRP KernelShap
        LayerConductance LayerGradientXActivation LayerActivation LayerFeaturePermutation LayerFeatureAblation LLMAttribution
        LLMAttributionResult LLMGradientAttribution RemoteLLMAttribution RemoteLLMProvider VLLMProvider InternalInfluence
        InterpretableInput LayerGradCam LayerDeepLift LayerDeepLiftShap LayerGradientShap LayerIntegratedGradients LayerLRP
        NeuronConductance NeuronFeatureAblation NeuronGradient NeuronIntegratedGradients NeuronDeepLift NeuronDeepLiftShap
        NeuronGradientShap NeuronDeconvolution NeuronGuidedBackprop NoiseTunnel GradientShap ProductBaselines ImageMaskInput
        InterpretableEmbeddingBase TextTemplateInput TextTokenInput TokenReferenceBase visualization
        configure_interpretable_embedding_layer remove_interpretable_embedding_layer Summarizer CommonStats ClassSummarizer
        Mean StdDev MSE Var Min Max Sum Count StatValue SummarizerSingleTensor
    """,
    "concept": "CAV Concept ConceptInterpreter TCAV Classifier DefaultClassifier",
    "influence": """
        DataInfluence SimilarityInfluence TracInCPBase TracInCP TracInCPFast TracInCPFastRandProj NaiveInfluenceFunction
    """,
    "metrics": "infidelity infidelity_perturb_func_decorator sensitivity_max",
    "module": "BinaryConcreteStochasticGates GaussianStochasticGates StochasticGatesBase",
    "robust": "FGSM AttackComparator MinParamPerturbation Perturbation PGD",
}
# Half a unit in the last place of what the page shows, and float32.
SHOWN = 6e-5


def by_formula(name, network, x, baseline):
    """Computes as Captum's class does with its defaults: contributions, and their sum minus what it should be."""
    network = network.double()
    x, baseline = x.double(), baseline.double()
    start = baseline
    if name == "DeepLift":
        found = formulas.rescale(network, x, baseline, TARGET)
    elif name == "IntegratedGradients":
        found = formulas.integrated_gradients(network, x, baseline, TARGET, 50)
    elif name == "InputXGradient":
        found, start = formulas.input_times_gradient(network, x, TARGET), torch.zeros_like(x)
    elif name == "ShapleyValues":
        found = formulas.shapley(network, x, baseline, TARGET)
    else:
        assert name == "FeatureAblation", name
        found = formulas.ablation(network, x, baseline, TARGET)
    moved = formulas.output(network, x, TARGET) - formulas.output(network, start, TARGET)
    return found, found.sum() - moved[0]


class CaptumPageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.page = page.Page("docs/from_captum.md")

    def test_numbers(self):
        names = self.page.names
        rows = self.page.rows()
        self.assertEqual(len(rows), 5)
        for method, formula, formula_delta, ours, our_delta, call in rows:
            with self.subTest(method):
                found, delta = eval(call.strip("`"), names)
                network = nn.Sequential(*names["network"])
                expected, expected_delta = by_formula(method.strip("`"), network, names["x"], names["baseline"])
                network.float()
                rows_of = {
                    "formula": (expected, formula), "formula's delta": ([expected_delta], formula_delta),
                    "Addend": (found[0], ours), "Addend's delta": (delta.reshape(-1), our_delta),
                }
                for what, (computed, shown) in rows_of.items():
                    self.assertEqual(len(page.numbers(shown)), len(computed), "%s: %s" % (what, page.told(computed)))
                    for one, two in zip(computed, page.numbers(shown)):
                        self.assertAlmostEqual(float(one), two, delta=SHOWN, msg="%s: %s" % (what, page.told(computed)))
                # Both are the same method.
                torch.testing.assert_close(found[0].double(), expected.double(), atol=1e-4, rtol=0)
                self.assertAlmostEqual(float(delta), float(expected_delta), delta=1e-4)

    def test_the_first_call_is_complete(self):
        self.assertLess(abs(float(self.page.names["delta"])), 1e-6)

    def test_every_public_name_has_one_row(self):
        tables = self.page.text.split("## Methods")[1]
        rows = [page.cells(line)[0] for line in tables.splitlines() if line.startswith("| `")]
        told = [name for cell in rows for name in re.findall(r"`(\w+)`", cell)]
        for package, names in PUBLIC.items():
            for name in names.split():
                self.assertEqual(told.count(name), 1, "%s.%s" % (package, name))
        self.assertEqual(len(PUBLIC["attr"].split()), 75)

    def test_calls_of_layers_and_neurons(self):
        """The calls of the table run, on a model whose layer is called as there."""

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.Sequential(*[nn.Linear(6, 6) for _ in range(4)])
                self.head = nn.Linear(6, 2)

            def forward(self, x):
                return self.head(torch.tanh(self.layers(x)))

        torch.manual_seed(0)
        model = Model()
        names = {"addend": page.addend, "model": model, "n": 3, "x": torch.randn(1, 6), "background": torch.randn(3, 6)}
        names.update(row=torch.randn(6), noise=torch.randn(1, 6), start=torch.randn(1, 6), baseline=torch.zeros(1, 6))
        names.update(mask=torch.tensor([[0, 0, 1, 1, 2, 2]]))
        calls = [
            code for line in self.page.part("Methods").splitlines() if line.startswith("|") and "GradCam" not in line
            for code in re.findall(r"`(addend\.(?:attribute|compile)\(model[^`]*)`", line)
        ]
        self.assertGreater(len(calls), 12)
        for call in calls:
            with self.subTest(call):
                if "attribute(" in call and "target" not in call:
                    call = call[:-1] + ", target=1)"
                found = eval(call, names)
                self.assertIsNotNone(found)
        # The sum of what is attributed to a neuron is its move.
        call = next(call for call in calls if "expand" in call and "at=" in call)
        with torch.no_grad():
            moved = model.layers(names["x"])[0, 5] - model.layers(names["background"])[:, 5].mean()
        self.assertAlmostEqual(eval(call, names).mean(0).sum().item(), moved.item(), places=5)

    def test_what_is_said_of_each_layer_method(self):
        """Equal, near or none: by the published formulas, from zero as Captum begins."""
        for behind, smooth in ((nn.Tanh(), True), (nn.LayerNorm(5), False)):
            torch.manual_seed(3)

            class Model(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.layers = nn.ModuleDict({"3": nn.Sequential(nn.Linear(3, 5), nn.GELU())})
                    self.tail = nn.Sequential(nn.Linear(5, 5), behind, nn.GELU(), nn.Linear(5, 2))

                def forward(self, x):
                    return self.tail(self.layers["3"](x))

            model, x = Model(), torch.randn(1, 3)
            with torch.no_grad():
                model.layers["3"][0].weight.mul_(4)  # so that the line of the input is another than that of the layer
                start, value = model.layers["3"](0 * x), model.layers["3"](x)
            wide = copy.deepcopy(model).double()
            names = {"addend": page.addend, "model": model, "x": x, "start": start}
            found = {name: eval(self.call_of(name), names) for name in (
                "LayerIntegratedGradients", "LayerDeepLift", "LayerGradientXActivation")}
            ends = value.double(), start.double()
            integrated = formulas.integrated_gradients(wide.tail, *ends, TARGET, 100)
            close = {"atol": 2e-4, "rtol": 0}
            torch.testing.assert_close(found["LayerIntegratedGradients"][0].double(), integrated, atol=2e-3, rtol=0)
            product = formulas.input_times_gradient(wide.tail, value, TARGET)
            if smooth:
                torch.testing.assert_close(
                    found["LayerDeepLift"][0].double(), formulas.rescale(wide.tail, *ends, TARGET), **close
                )
                torch.testing.assert_close(found["LayerGradientXActivation"][0].double(), product, **close)
            else:
                self.assertGreater((found["LayerGradientXActivation"][0] - product).abs().max(), 1e-3)
            conductance = formulas.conductance(wide.layers["3"], wide.tail, x, 0 * x, TARGET)
            self.assertGreater((conductance - integrated).abs().max(), 1e-3)  # quadrature is exact to 1e-6
            self.assertAlmostEqual(conductance.sum().item(), integrated.sum().item(), places=5)
        self.assertEqual(self.call_of("LayerConductance"), "")

    def test_what_is_said_of_each_method_of_inputs(self):
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 5), nn.GELU(), nn.Linear(5, 2))
        x = torch.randn(1, 4)
        wide, zero = copy.deepcopy(model).double(), torch.zeros(1, 4).double()
        expected = {
            "IntegratedGradients": formulas.integrated_gradients(wide, x.double(), zero, TARGET, 100),
            "DeepLift": formulas.rescale(wide, x, zero, TARGET),
            "InputXGradient": formulas.input_times_gradient(wide, x, TARGET),
        }
        for name, formula in expected.items():
            call = self.call_of(name)[:-1] + ", target=1)"
            found = eval(call, {"addend": page.addend, "model": model, "x": x})
            torch.testing.assert_close(found[0].double(), formula, atol=2e-3, rtol=0, msg=name)

    def call_of(self, method):
        """The call that the page has for a method; empty where there is none."""
        return self.page.line_of(method, "Methods")[1].strip("`")

    def test_every_line_says_how_the_numbers_relate(self):
        lines = [page.cells(line) for line in self.page.part("Methods").splitlines() if line.startswith("| `")]
        self.assertGreater(len(lines), 30)
        for names, call, differs in lines:
            self.assertRegex(differs, "^(equal|near|other|none)[:, ]")
            self.assertEqual(call == "", differs.startswith("none"), names)

    def test_names(self):
        snippets = self.page.snippets()
        self.assertGreater(len(snippets), 15)
        for snippet in snippets:
            self.assertEqual(page.unknown_names(snippet), [], snippet)
        self.assertEqual(page.unknown_names("addend.nothing(x, no_option=1)"), ["addend.nothing", "no_option="])


if __name__ == "__main__":
    unittest.main()
