"""`attribute` means what Captum means by the same names."""

import collections
import contextlib
import copy
import io
import os
import pickle
import sys
import tempfile
import unittest
import warnings
from typing import Dict, Optional, Tuple

import numpy as np
import torch
from torch import nn

import addend

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import formulas  # noqa: E402


def file_of(network, *args):
    """Returns a network as a model from a file."""
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

    @unittest.skipUnless(os.access("/proc/self/clear_refs", os.W_OK), "this system does not tell a peak of memory")
    def test_memory_grows_as_the_rows_do(self):
        def told(key):
            with open("/proc/self/status") as file:
                return next(int(line.split()[1]) * 1024 for line in file if line.startswith(key))

        def peak(run):
            held = told("VmRSS")
            with open("/proc/self/clear_refs", "w") as file:
                file.write("5")
            run()
            return told("VmHWM") - held

        x = torch.rand(8192, 4)
        square = 4 * len(x) ** 2  # one component for each row, of each row
        for model in self.each():
            self.assertLess(peak(lambda: model.attribute(x, target=1)), square / 4)
        self.assertLess(peak(lambda: addend.attribute(self.network, x, target=1)), square / 4)

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

    def test_a_target_is_a_whole_number(self):
        x, model = torch.ones(2, 3), torch.nn.Linear(3, 4)
        wrong = (1.0, (1.9,), [(0.5,), (1.5,)], torch.tensor([[0.7], [1.7]]), np.array([0.0, 1.0]))
        for target in wrong:
            with self.subTest(target=target), self.assertRaisesRegex(TypeError, "a target is a whole number"):
                addend.attribute(model, x, target=target)
        composition = addend.compile(model)(addend.Input(x, dims=1))
        with self.assertRaisesRegex(TypeError, r"a target is a whole number, a tuple of them, or text, not \(0, 1.5\)"):
            composition.explain((0, 1.5))
        self.assertEqual(composition.explain((np.int64(1), torch.tensor(2))), composition.explain((1, 2)))

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
            # Explaining log-probabilities equals explaining the outputs of a log_softmax behind the model.
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


class Masked(nn.Module):
    """The mean of the embeddings that are no padding: NaN where all is padding."""

    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(9, 4), nn.Linear(4, 2)

    def forward(self, ids):
        keep = (ids != 0).unsqueeze(-1).float()
        return self.head((self.embedding(ids) * keep).sum(1) / keep.sum(1))


class Where(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Linear(3, 2), nn.Linear(3, 2)

    def forward(self, x):
        return torch.where(x[:, :1] > 0, self.one(x), 10 + self.other(x))


class If(Where):
    def forward(self, x):
        return self.one(x) if x[0, 0] > 0 else 10 + self.other(x)


class Constant(Where):
    """Has a branch on which nothing depends on the input."""

    def forward(self, x):
        return self.one(x) if x[0, 0] > 0 else torch.tensor([[3.0, 4.0]])


class Harmonic(nn.Module):
    def forward(self, x):
        return 3 / (1 / x).sum(1, keepdim=True).expand(-1, 2)


@contextlib.contextmanager
def told():
    """The warnings of Addend in a block, each time that one is issued."""
    notes = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    notes += [str(one.message) for one in caught if issubclass(one.category, addend.AddendWarning)]


class NotesTest(unittest.TestCase):
    """Notes of a run on its numbers reach callers of `attribute` as warnings."""

    def setUp(self):
        torch.manual_seed(0)
        self.x, self.baseline = torch.tensor([[1.3, 2.0, 3.0]]), torch.tensor([[-1.0, 0.0, 0.0]])

    def expect(self, network, model, x, baseline, beginning, **options):
        """A warning that begins so, and a delta from the outputs of the network itself."""
        with told() as notes:
            found, delta = model.attribute(x, baseline, 1, return_convergence_delta=True, **options)
        self.assertTrue([note for note in notes if note.startswith(beginning)], notes)
        with torch.no_grad():
            moved = network(x) - network(baseline.expand(x.shape))
        torch.testing.assert_close(delta, found.flatten(1).sum(1) - moved[:, 1], rtol=1e-4, atol=1e-5, equal_nan=True)
        return delta

    def test_attributions_that_cancel(self):
        """Cancellation is judged of the numbers that are returned, be they elements, groups of them or a tensor
        inside."""

        def difference(x):
            return 1e4 * x[:, :1] - 1e4 * x[:, 1:2] + 0.01 * x[:, 2:].tanh()

        x = torch.tensor([[0.5, 0.5, 1.0]])
        model = addend.compile(difference)
        apart, together = torch.tensor([[0, 1, 2]]), torch.tensor([[0, 0, 1]])
        inside = addend.Inside("0", baseline=0)
        chain = addend.compile(nn.Sequential(nn.Tanh(), nn.Linear(3, 1, bias=False)))
        with torch.no_grad():
            chain.model[1].weight.copy_(torch.tensor([[1e4, -1e4, 0.01]]))
        for cancel, ask in (
            (True, lambda: model.attribute(x, 0.0)),
            (True, lambda: model.attribute(x, 0.0, feature_mask=apart)),
            (False, lambda: model.attribute(x, 0.0, feature_mask=together)),
            (False, lambda: model.attribute(x, torch.tensor([[0.5, 0.5, 0.0]]))),
            (False, lambda: model.attribute(torch.tensor([[0.5, 0.1, 1.0]]), 0.0)),
            (True, lambda: model.attribute(torch.cat([x, x]), 0.0)),
            (True, lambda: chain.attribute(x, inside=inside)),
        ):
            with told() as notes:
                ask()
            self.assertEqual(len([note for note in notes if note.startswith("ill-conditioned: ")]), cancel, notes)

    def test_conditions_that_are_others_on_the_baseline(self):
        conditions = "conditions or indices depend on the input"
        for network, x, baseline, beginning in (
            (Where(), self.x, self.baseline, conditions),
            (If(), self.x, self.baseline, "the model reads numbers that depend on the input"),
            (Constant(), self.x, self.baseline, "the model reads numbers that depend on the input"),
            (Harmonic(), self.x, 0 * self.baseline, "not finite on the baseline"),
            (Masked(), torch.tensor([[3, 5, 0, 0]]), torch.zeros(1, 4, dtype=torch.long), conditions),
        ):
            with self.subTest(type(network).__name__):
                delta = self.expect(network, addend.compile(network), x, baseline, beginning)
                self.assertFalse(delta.abs().max() < 0.1)
                if not isinstance(network, If) and not isinstance(network, Constant):  # which a trace would not show
                    self.expect(network, file_of(network, x), x, baseline, beginning)
                scripted = io.BytesIO()
                torch.jit.save(torch.jit.script(network), scripted)
                self.expect(network, addend.load_model(scripted.getvalue()), x, baseline, beginning)

    def test_a_run_on_the_baseline_is_told(self):
        network = Where()
        for model in (addend.compile(network), file_of(network, self.x)):
            with told() as notes:
                model.attribute(self.x, self.baseline, 1, verify_reference=True)
            self.assertIn("the reference is not what the model gives on the baseline: ", notes[0])

    def test_rows_that_influence_each_other(self):
        torch.manual_seed(1)
        rows = torch.rand(5, 3)
        network = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2)).train()
        before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
        with told() as notes:
            _, delta = addend.attribute(network, rows, 0.0, 1, return_convergence_delta=True)
        self.assertIn("the examples influence each other: aten::batch_norm", notes[0])
        self.assertIn("Put the model into evaluation mode", notes[0])
        self.assertGreater(delta.abs().max(), 0.1)
        # A plain run follows the batch once, and so did this.
        once = nn.Sequential(*map(copy.deepcopy, network))
        once.load_state_dict(before)
        once(rows)
        torch.testing.assert_close(network.state_dict(), once.state_dict())
        for function in (lambda x: (x / x.abs().max()).sum(1), lambda x: x.cumsum(0).sum(1)):
            with told() as notes:
                addend.attribute(function, rows, 0.25)
            self.assertIn("the examples influence each other", notes[0])

    def test_numbers_that_are_none(self):
        network = nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 2))
        x = torch.tensor([[1.0, float("nan"), 2.0]])
        self.expect(
            network, addend.compile(network), x, torch.zeros(1, 3), "an input holds NaN or infinity, first at [0, 1]"
        )

    def test_a_run_of_which_all_is_right_is_silent(self):
        network = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
        same = Where()
        for model in (addend.compile(network), file_of(network, self.x), addend.compile(same), file_of(same, self.x)):
            with told() as notes:
                _, delta = model.attribute(self.x, abs(self.baseline), 1, return_convergence_delta=True)
                model.attribute(self.x, abs(self.baseline), 1, verify_reference=True)
            self.assertEqual(notes, [])
            self.assertLess(delta.abs().max(), 1e-6)

    def test_a_place_of_a_program_is_told_once(self):
        network = nn.Sequential(nn.Linear(3, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 2))
        model = addend.compile(network, nonlinearity="gradient")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            for row in torch.randn(6, 1, 3):
                model.attribute(row, 0.5, 1)
            self.assertEqual(len({str(one.message).split(":")[0] for one in caught}), len(caught))
            first = len(caught)
            for row in torch.randn(6, 1, 3):
                model.attribute(row, 0.5, 1)
        self.assertGreater(first, 0)
        self.assertGreater(len(caught), first)
        self.assertEqual({one.filename for one in caught}, {__file__})
        self.assertEqual({one.category for one in caught}, {addend.AddendWarning})
        with warnings.catch_warnings():
            warnings.simplefilter("error", addend.AddendWarning)
            with self.assertRaisesRegex(addend.AddendWarning, "conditions or indices"):
                addend.attribute(Where(), self.x, self.baseline, 1)

    def test_the_model_runs_on_the_baseline_where_provenance_does_not_know(self):
        for network, options, calls in (
            # A model whose output on the baseline is not the reference runs on the input again, to compare two runs.
            (nn.Linear(3, 2), {}, 1), (Where(), {}, 2), (Where(), {"verify_reference": True}, 3),
        ):
            seen = []
            hook = network.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0].clone()))
            with told():
                addend.attribute(network, self.x, self.baseline, 1, return_convergence_delta=True, **options)
            self.assertEqual(len(seen), calls)
            if calls > 1:
                torch.testing.assert_close(seen[1], self.baseline)
            hook.remove()

    def test_the_run_on_the_baseline_sees_the_same_draws(self):
        def noisy(x):
            return torch.where(x[:, :1] > 0, x, 10 + 3 * x) * torch.rand(3)

        torch.manual_seed(5)
        factor = torch.rand(3)
        after = torch.rand(1)
        torch.manual_seed(5)
        with told() as notes:
            found, delta = addend.attribute(noisy, self.x, self.baseline, 1, return_convergence_delta=True)
        self.assertEqual(torch.rand(1), after)
        self.assertIn("random numbers are drawn", " ".join(notes))
        moved = (self.x[0, 1] - (10 + 3 * self.baseline[0, 1])) * factor[1]
        torch.testing.assert_close(delta, (found.sum() - moved).reshape(1))

    def test_words_and_other_targets_have_the_same_delta(self):
        network, rows = Where(), torch.tensor([[-1.0, 0.5, 2.0], [-3.0, 1.5, 0.0]])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rows.npy")
            np.save(path, rows.numpy())
            with torch.no_grad():
                start, end = network(rows.mean(0, keepdim=True)), network(self.x)
            for model in (addend.compile(network), file_of(network, self.x)):
                for target, move in (
                    ("1-0", (end - start)[0] @ torch.tensor([-1.0, 1.0])),
                    ("log_probability:0", (end.log_softmax(1) - start.log_softmax(1))[0, 0]),
                    ("top1", (end - start)[0, end.argmax()]),
                ):
                    with told():
                        found, delta = model.attribute(
                            self.x, "mean:" + path, target, return_convergence_delta=True, preset="faithful"
                        )
                    torch.testing.assert_close(delta, (found.sum() - move).reshape(1), rtol=1e-4, atol=1e-5)

    def test_a_delta_from_a_reference_says_so(self):
        network = nn.Sequential(Where(), nn.Linear(2, 2))
        with told() as notes:
            addend.attribute(network, self.x, self.baseline, 1, at="0", return_convergence_delta=True)
        self.assertIn("the delta is measured from the reference", notes[-1])

    def test_explanations_show_their_notes(self):
        model = addend.compile(Where())
        split = addend.Input(self.x, dims=1, baseline=self.baseline)
        results = model.decompose(split)
        beginning = "conditions or indices depend on the input"
        for explanation in (model.explain(split, targets=1)[0], results.explain("1"), results[0].explain("1")):
            for one in (explanation, pickle.loads(pickle.dumps(explanation)), copy.copy(explanation)):
                self.assertEqual(len([note for note in one.notes if note.startswith(beginning)]), 1)
                self.assertIn("preset auto: faithful, because a baseline was given", one.notes)
                self.assertIn("WARNING: " + beginning, str(one))
                self.assertNotIn("preset auto", str(one))
        quiet = addend.compile(nn.Linear(3, 2)).explain(split, targets=1)[0]
        self.assertNotIn("WARNING", str(quiet))


class BaselinesTest(unittest.TestCase):
    """Without baselines attributions begin at zero, as Captum's do."""

    def test_integrated_gradients_from_zero(self):
        torch.manual_seed(1)
        network = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3))
        x = torch.randn(2, 4)
        wide = copy.deepcopy(network).double()
        rows = x.double()[:, None]
        expected = torch.stack([formulas.integrated_gradients(wide, row, 0 * row, 1, 400) for row in rows])
        for model in (addend.compile(network), file_of(network, x)):
            with told() as notes:
                found, delta = model.attribute(x, target=1, return_convergence_delta=True)
            self.assertEqual(notes, [])
            self.assertLess(delta.abs().max(), 1e-5)
            self.assertTrue(torch.equal(found, model.attribute(x, 0, target=1)))
            apart = [
                (model.attribute(x, target=1, segments=count).double() - expected).abs().max() for count in (1, 16, 256)
            ]
            self.assertLess(apart[2], 3e-3)
            self.assertLess(apart[2], apart[1] / 8)
            self.assertLess(apart[1], apart[0])

    def test_ids_have_no_zero(self):
        network = nn.Sequential(nn.Embedding(7, 3), nn.Flatten(), nn.Linear(9, 2))
        ids = torch.tensor([[1, 2, 3]])
        for model in (addend.compile(network), file_of(network, ids)):
            with told() as notes:
                model.attribute(ids, target=1)
            self.assertRegex(notes[0], "^no baseline was given: token 0 for ")
            with told() as notes:
                model.attribute(ids, 0, target=1)
            self.assertEqual(notes, [])

    def test_an_input_has_its_own(self):
        x = torch.tensor([[1.0, 2, 3]])
        square = addend.compile(lambda x: (x * x).sum(1))
        own = addend.Input(x, dims=1, baseline=1)
        self.assertEqual(square.attribute(own).tolist(), [[0, 3, 8]])
        self.assertEqual(square.attribute(addend.Input(x, dims=1), 1).tolist(), [[0, 3, 8]])
        self.assertEqual(square.attribute(addend.Input(x, dims=1)).tolist(), [[1, 4, 9]])
        with self.assertRaisesRegex(TypeError, "an addend.Input that has its own"):
            square.attribute(own, 0)

    def test_inside_a_model_it_is_not_what_captum_takes(self):
        torch.manual_seed(0)
        network = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))
        with told() as notes:
            addend.attribute(network, torch.rand(1, 3), target=1, inside=addend.Inside("1"))
        self.assertRegex(notes[0], "^no baseline was given: zero for 1, inside the model")
        with told() as notes:
            addend.attribute(network, torch.rand(1, 3), target=1, inside=addend.Inside("1", baseline=0))
        self.assertEqual(notes, [])


class Nested(nn.Module):
    def forward(self, first: Tuple[torch.Tensor, torch.Tensor], second: Dict[str, torch.Tensor]):
        return (first[0] + 2 * first[1] + 3 * second["x"]).sum(1)


class Named(nn.Module):
    def forward(self, both: Dict[str, torch.Tensor]):
        return (both["x"] + 2 * both["y"]).sum(1)


class Optionals(nn.Module):
    def forward(self, x, extra: Optional[torch.Tensor] = None, mask: Optional[torch.Tensor] = None):
        y = x.sum(1)
        if extra is not None:
            y = y + extra.sum(1)
        if mask is not None:
            y = y * mask[:, 0]
        return y


def scripted(network):
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(network), file)
    return addend.load_model(file.getvalue())


class StructuresTest(unittest.TestCase):
    """Inputs and outputs of other shapes than one row for each example of each tensor."""

    def setUp(self):
        torch.manual_seed(2)
        self.a, self.b, self.c = torch.rand(2, 3), torch.rand(2, 3), torch.rand(2, 3)

    def test_tuples_and_dicts(self):
        for model in (addend.compile(Nested()), scripted(Nested())):
            (one, two), named = model.attribute(((self.a, self.b), {"x": self.c}))
            for found, factor, value in ((one, 1, self.a), (two, 2, self.b), (named["x"], 3, self.c)):
                torch.testing.assert_close(found, factor * value)
            baselines = ((self.b, None), {"x": 0.5})
            (one, two), named = model.attribute(((self.a, self.b), {"x": self.c}), baselines)
            for found, expected in ((one, self.a - self.b), (two, 2 * self.b), (named["x"], 3 * (self.c - 0.5))):
                torch.testing.assert_close(found, expected)
            (one, two), named = model.attribute(((self.a, self.b), {"x": self.c}), (0.5, 0.25))
            for found, expected in ((one, self.a - 0.5), (two, 2 * (self.b - 0.5)), (named["x"], 3 * (self.c - 0.25))):
                torch.testing.assert_close(found, expected)
            by_name = model.attribute({"second": {"x": self.c}, "first": (self.a, self.b)})
            torch.testing.assert_close(by_name["second"]["x"], 3 * self.c)
            torch.testing.assert_close(by_name["first"][1], 2 * self.b)
            masks = ((torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1])), {"x": torch.tensor([2, 2, 2])})
            (one, two), named = model.attribute(((self.a, self.b), {"x": self.c}), feature_mask=masks)
            torch.testing.assert_close(one[:, 0], self.a[:, 0] + self.a[:, 1] + 2 * self.b[:, 0])
            torch.testing.assert_close(named["x"], 3 * self.c.sum(1, keepdim=True).expand(2, 3))
            for baselines, message in (
                (((0.5,), 0), "there are 1 baselines for 2 inputs"),
                ((0, {"z": 0}), "there are baselines for z, which are no inputs"),
                ((0, (0,)), "inputs are a dict, so several baselines are one too"),
                (({"x": 0}, 0), "in the structure of the inputs"),
            ):
                with self.assertRaisesRegex((TypeError, ValueError), message):
                    model.attribute(((self.a, self.b), {"x": self.c}), baselines)

    def test_a_dict_that_is_one_argument(self):
        for model in (addend.compile(Named()), scripted(Named())):
            for found in (
                model.attribute({"x": self.a, "y": self.b}),
                model.attribute({"both": {"x": self.a, "y": self.b}})["both"],
                model.attribute(({"x": self.a, "y": self.b},))[0],
            ):
                torch.testing.assert_close([found["x"], found["y"]], [self.a, 2 * self.b])

    def test_none_and_plain_values(self):
        for model in (addend.compile(Optionals()), scripted(Optionals())):
            one, none, mask = model.attribute((self.a, None, self.b[:, :1]), nonlinearity="gradient")
            self.assertIsNone(none)
            with torch.no_grad():
                value = self.a.sum(1) * self.b[:, 0]
            torch.testing.assert_close(one.sum(1) + mask[:, 0], value)
        power = addend.attribute(lambda x, exponent: (x**exponent).sum(1), (self.a, 2))
        torch.testing.assert_close(power, (self.a**2, None))
        with self.assertRaisesRegex(TypeError, "none of the inputs is a tensor"):
            addend.attribute(lambda x: x, (None, 3))

    def test_outputs_of_one_number(self):
        for model in (addend.compile(lambda x: (x**2).sum()), file_of(Squares(), self.a)):
            found, delta = model.attribute(self.a, return_convergence_delta=True)
            torch.testing.assert_close(found, self.a**2)
            self.assertEqual(delta.shape, (1,))
            self.assertLess(delta.abs().max(), 1e-6)
        with self.assertRaisesRegex(ValueError, "output, as of a node of a graph, target is its whole index, a tuple"):
            addend.attribute(lambda x: x.t() @ x, self.a)

    def test_one_node_of_a_graph(self):
        edges = torch.tensor([[0.0, 1], [1, 0.5]])
        weight = torch.rand(3, 4)

        def graph(x):
            return edges @ x @ weight

        found, delta = addend.attribute(graph, self.a, target=(1, 2), return_convergence_delta=True)
        torch.testing.assert_close(found, edges[1][:, None] * self.a * weight[:, 2])
        self.assertLess(delta.abs().max(), 1e-6)
        with self.assertRaisesRegex(addend.InvalidArgument, "target 5,2 does not fit"):
            addend.attribute(graph, self.a, target=(5, 2))


class Squares(nn.Module):
    def forward(self, x):
        return (x**2).sum()


if __name__ == "__main__":
    unittest.main()
