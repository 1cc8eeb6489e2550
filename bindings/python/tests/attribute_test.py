"""`attribute` means what Captum means by the same names."""

import collections
import io
import unittest
import warnings

import numpy as np
import torch
from torch import nn

import addend


def file_of(network, *args):
    """The same network as a model from a file."""
    file = io.BytesIO()
    torch.jit.save(torch.jit.trace(network, args), file)
    return addend.load_model(file.getvalue())


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(3, 4), nn.Linear(2, 4)
        self.head = nn.Linear(4, 3)

    def forward(self, left, right):
        return self.head(torch.tanh(self.left(left) + self.right(right)))


class CaptumTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(3)
        self.network = nn.Sequential(nn.Linear(4, 6), nn.GELU(), nn.Linear(6, 3))
        self.x, self.baseline = torch.randn(5, 4), torch.rand(1, 4)
        self.models = {"live": addend.compile(self.network), "file": file_of(self.network, self.x)}

    def each(self, name="model"):
        for kind, model in self.models.items():
            with self.subTest(kind):
                yield model

    def test_delta_is_the_sum_minus_the_difference(self):
        targets = [0, 1, 2, 1, 0]
        with torch.no_grad():
            moved = self.network(self.x) - self.network(self.baseline)
        for model in self.each():
            # Which leaves something over.
            found, delta = model.attribute(self.x, self.baseline, targets, None, True, nonlinearity="gradient")
            expected = found.sum(1) - moved[range(5), targets]
            self.assertGreater(expected.abs().min(), 1e-3)
            torch.testing.assert_close(delta, expected, rtol=1e-3, atol=1e-5)
            self.assertEqual((delta.dtype, delta.shape), (found.dtype, (5,)))
            array, arrays = model.attribute(
                self.x.numpy(), self.baseline.numpy(), targets, None, True, nonlinearity="gradient"
            )
            self.assertEqual((array.dtype, arrays.dtype), (np.float32, np.float32))
            np.testing.assert_allclose(arrays, delta)

    def test_one_input_in_several_places_is_attributed_to_in_each(self):
        x = torch.tensor([[1.0, 2, 3]])
        source = addend.Input(x, dims=1, baseline=0 * x)
        model = addend.compile(lambda a, c: a * c + a)
        (first, second), delta = model.attribute((source, source), target=1, return_convergence_delta=True)
        self.assertEqual((first.tolist(), second.tolist()), ([[0, 4, 0]], [[0, 2, 0]]))
        self.assertEqual(delta.tolist(), [0])
        by_name = model.attribute({"a": source, "c": source}, target=1)
        self.assertEqual((by_name["a"].tolist(), by_name["c"].tolist()), ([[0, 4, 0]], [[0, 2, 0]]))

    def test_a_target_is_needed_where_there_is_a_choice(self):
        message = (
            r"target is needed: the output is \[5, 3\], 3 elements for each example. target=0 explains the first of "
            'them, a list gives each example its own, and target="top1" the largest'
        )
        best = self.network(self.x).argmax(1)
        for model in self.each():
            with self.assertRaisesRegex(ValueError, message):
                model.attribute(self.x)
            with self.assertRaisesRegex(ValueError, r"output is \[1, 3\], 3 elements. target=\(0, 0\) explains"):
                model.attribute(self.x[:1], each_example=False)
            with self.assertRaisesRegex(ValueError, r"\[5, 3\] has more than one largest element"):
                model.attribute(self.x, each_example=False)
            self.assertTrue(torch.equal(model.attribute(self.x, target="top1"), model.attribute(self.x, target=best)))
        with self.assertRaisesRegex(ValueError, "target is needed"):
            addend.attribute(self.network, self.x)

    def test_targets_are_what_a_softmax_says(self):
        x, baseline = self.x[:1], self.baseline
        texts = ["log_probability:2", "probability:top1", "entropy", "sum:0-1+log_probability:0"]
        logits = self.network(x)[0].detach().double()
        logs = logits.log_softmax(0)
        values = [logs[2], logs.max().exp(), -(logs.exp() * logs).sum(), logits[0] - logits[1] + logs[0]]
        for model in self.each():
            split = addend.Input(x, dims=1, baseline=baseline)
            found = model.explain(split, targets=texts)
            results = model.decompose(split)
            for text, value, explanation in zip(texts, values, found):
                self.assertAlmostEqual(explanation.value, value.item(), places=5)
                self.assertAlmostEqual(explanation.recovery, explanation.value, places=5)
                other = results.explain(text)
                self.assertEqual(explanation.target, other.target)
                np.testing.assert_allclose(explanation.contributions, other.contributions, atol=1e-5)
            self.assertEqual(found[0].target, "log-probability of [0, 2]")
            self.assertEqual(found.to_dict()["targets"][3]["target"], "sum:0,0-0,1+log_probability:0,0")
            # The same as behind a log_softmax of the model's own.
            own = model.attribute(x, baseline, "log_probability:2", each_example=False)
            behind = addend.compile(nn.Sequential(self.network, nn.LogSoftmax(1)))
            torch.testing.assert_close(own, behind.attribute(x, baseline, 2, each_example=False), rtol=1e-4, atol=1e-6)

    def test_a_continuation_is_the_sum_of_its_ids(self):
        network = nn.Sequential(nn.Embedding(7, 4), nn.Tanh(), nn.Linear(4, 7))
        ids = torch.tensor([[1, 5, 2, 6, 3]])
        with torch.no_grad():
            logs = network(ids)[0].log_softmax(-1)
        whole, first, second = addend.compile(network).explain(
            addend.Input(ids, dims=1, baseline=0),
            targets=["continuation:6,3", "log_probability:2,6", "log_probability:3,3"],
        )
        self.assertAlmostEqual(whole.value, (logs[2, 6] + logs[3, 3]).item(), places=5)
        np.testing.assert_allclose(
            whole.contributions, np.add(first.contributions, second.contributions), rtol=1e-5, atol=1e-6
        )

    def test_the_only_element_needs_no_target(self):
        wide, flat = nn.Linear(4, 1), nn.Sequential(nn.Linear(4, 1), nn.Flatten(0))
        for network in (wide, flat):
            linear = network if network is wide else network[0]
            expected = (self.x - 0.5) * linear.weight.detach()
            for model in (network, file_of(network, self.x)):
                torch.testing.assert_close(addend.attribute(model, self.x, 0.5), expected)
        alone = addend.attribute(lambda x: x.sum(), self.x, each_example=False)
        torch.testing.assert_close(alone, self.x[None])

    def test_what_captum_needs_is_taken_and_answered(self):
        for model in self.each():
            expected = model.attribute(self.x, target=1)
            for name, value in {
                "n_steps": 50, "method": "gausslegendre", "internal_batch_size": 8, "perturbations_per_eval": 4,
                "n_samples": 25, "show_progress": False,
            }.items():
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    found = model.attribute(self.x, target=1, **{name: value})
                self.assertTrue(torch.equal(found, expected))
                (warning,) = caught
                self.assertIn("attribute() needs no %s: " % name, str(warning.message))
                self.assertEqual(warning.filename, __file__)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            addend.attribute(self.network, self.x, target=1, n_steps=50)
        self.assertEqual([warning.filename for warning in caught], [__file__])

    def test_what_captum_has_otherwise_is_refused_with_the_way(self):
        for model in self.each():
            for name, way in {
                "abs": "take abs", "sliding_window_shapes": "feature_mask", "neuron_selector": "at=SELECTOR",
                "nt_samples": "average", "attribute_to_layer_input": "addend.Inside",
            }.items():
                with self.assertRaisesRegex(TypeError, "has no option %s: .*%s" % (name, way)):
                    model.attribute(self.x, target=1, **{name: 1})

    def test_unknown_options_name_all_there_are(self):
        for model in self.each():
            with self.assertRaisesRegex(
                TypeError,
                r"attribute\(\) has no option nonlinearty: did you mean nonlinearity\?; its options are .*"
                "feature_mask, .*each_example, .*preset, segments, nonlinearity, ",
            ):
                model.attribute(self.x, target=1, nonlinearty="gradient")
        with self.assertRaisesRegex(TypeError, r"decompose\(\) has no option probe: did you mean probes\?; .*inside, "):
            self.models["file"].decompose(addend.Input(self.x, 1), probe="0")
        with self.assertRaisesRegex(TypeError, r"explain\(\) has no option target: did you mean targets\?"):
            self.models["file"].explain(addend.Input(self.x, 1), target=1)
        with self.assertRaisesRegex(TypeError, r"tracing\(\) has no option everthing: did you mean everything\?"):
            addend.tracing(self.x, everthing=True)
        with self.assertRaisesRegex(TypeError, r"compile\(\) has no option presets: did you mean preset\?"):
            addend.compile(self.network, presets="fast")

    def test_a_feature_mask_groups_elements(self):
        mask = torch.tensor([[7, 0, 7, 2]])
        for model in self.each():
            each = model.attribute(self.x, self.baseline, target=1)
            found = model.attribute(self.x, self.baseline, target=1, feature_mask=mask)
            both = each[:, 0] + each[:, 2]
            torch.testing.assert_close(found, torch.stack([both, each[:, 1], both, each[:, 3]], 1))
            for same in (mask[0], mask.expand(5, 4), mask.to(torch.int32)):
                self.assertTrue(torch.equal(model.attribute(self.x, self.baseline, target=1, feature_mask=same), found))
            array = model.attribute(self.x.numpy(), self.baseline.numpy(), target=1, feature_mask=mask.numpy())
            np.testing.assert_allclose(array, found)
            own = model.attribute(addend.as_tensor(self.x), self.baseline, target=1, feature_mask=[7, 0, 7, 2])
            self.assertIsInstance(own, addend.Tensor)
            np.testing.assert_array_equal(own, found)
            _, delta = model.attribute(self.x, self.baseline, 1, None, True, feature_mask=mask, preset="fast")
            _, plain = model.attribute(self.x, self.baseline, 1, None, True, preset="fast")
            torch.testing.assert_close(delta, plain)
            whole = model.attribute(self.x, self.baseline, [(2, 1)], each_example=False, feature_mask=mask)
            torch.testing.assert_close(whole[0, 2], found[2])
        # The number of a group is the component that labels make.
        labelled = addend.Input(self.x[:1], labels=[[2, 0, 2, 1]], baseline=self.baseline)
        contributions = self.models["live"].explain(labelled, targets=1)[0].contributions
        np.testing.assert_allclose([found[0, 1], found[0, 3], found[0, 0]], contributions, rtol=1e-4, atol=1e-6)

    def test_groups_reach_over_all_inputs(self):
        network = Pair()
        left, right = torch.randn(5, 3), torch.randn(5, 2)
        masks = torch.tensor([[0, 1, 1]]), torch.tensor([[1, 2]])
        for model in (addend.compile(network), file_of(network, left, right)):
            one, two = model.attribute((left, right), target=0)
            first, second = model.attribute((left, right), target=0, feature_mask=masks)
            shared = one[:, 1] + one[:, 2] + two[:, 0]
            torch.testing.assert_close(first, torch.stack([one[:, 0], shared, shared], 1))
            torch.testing.assert_close(second, torch.stack([shared, two[:, 1]], 1))
            some = model.attribute((left, right), target=0, feature_mask=(None, masks[1]))
            self.assertTrue(torch.equal(some[0], one) and torch.equal(some[1], two))
            named = model.attribute(
                {"right": right, "left": left}, target=0, feature_mask={"left": masks[0], "right": masks[1]}
            )
            torch.testing.assert_close([named["left"], named["right"]], [first, second])

    def test_a_feature_mask_that_does_not_fit(self):
        model = self.models["live"]
        inside = addend.Inside("0", dims=1)
        for mask, message, options in (
            ([[0, 1, 2]], r"feature_mask is \[1, 3\], which does not broadcast to the input \[5, 4\]", {}),
            ([0.0, 1.0, 2.0, 3.0], "feature_mask holds integers, .*not float32", {}),
            ([0, -1, 2, 3], "feature_mask holds -1; groups are counted from 0", {}),
            ((self.x.long(), self.x.long()), "there are 2 values of feature_mask for 1 inputs", {}),
            ([0, 1, 2, 3], "feature_mask is for inputs", {"inside": inside}),
        ):
            with self.assertRaisesRegex((TypeError, ValueError), message):
                model.attribute(self.x, target=1, feature_mask=mask, **options)
        with self.assertRaisesRegex(TypeError, "there are 2 inputs; give values of feature_mask for each"):
            addend.attribute(Pair(), (torch.rand(2, 3), torch.rand(2, 2)), target=1, feature_mask=torch.tensor([0]))

    def test_mappings_of_any_class(self):
        network = Pair()
        left, right = torch.randn(5, 3), torch.randn(5, 2)
        inputs = collections.UserDict(right=right, left=left)
        baselines = collections.UserDict(left=0.5)
        for model in (addend.compile(network), file_of(network, left, right)):
            found = model.attribute(inputs, baselines, target=1)
            expected = model.attribute((left, right), (0.5, None), target=1)
            self.assertEqual(list(found), ["right", "left"])
            self.assertTrue(torch.equal(found["left"], expected[0]) and torch.equal(found["right"], expected[1]))


if __name__ == "__main__":
    unittest.main()
