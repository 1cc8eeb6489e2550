"""Whatever is asked of a live model is found in the one run that the call is: nothing is recorded to be run again."""

import collections
import copy
import pickle
import types
import unittest

import numpy as np
import torch
from torch import nn

import addend


class Masked(nn.Module):
    """Makes a tensor of its own while it runs, as causal masks are filled."""

    def __init__(self):
        super().__init__()
        self.scores = nn.Linear(4, 4)

    def forward(self, x):
        low = torch.tensor(torch.finfo(x.dtype).min)
        seen = torch.ones(4, 4, dtype=torch.bool).tril()
        return torch.where(seen, self.scores(x), low).softmax(-1) * torch.tensor([1.0, 2.0, 3.0, 4.0])


class Noisy(nn.Module):
    """Draws random numbers beside its input and through it, and remembers what it returned."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Dropout(0.5), nn.Linear(64, 2))
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        self.returned = self.layers(x + torch.randn(4))
        return self.returned


class Decoder(nn.Module):
    """Attends over the keys and values of earlier positions, and hands its own on."""

    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
        self.head = nn.Linear(4, 7)

    def forward(self, x, past=None):
        q, k, v = self.query(x), self.key(x), self.value(x)
        if past is not None:
            k, v = torch.cat([past["k"], k], 1), torch.cat([past["v"], v], 1)
        mixed = (q @ k.transpose(1, 2)).softmax(-1) @ v
        return {"logits": self.head(mixed), "past": {"k": k, "v": v}}


def assert_explains(test, explanation, value, rtol=1e-5):
    """The parts sum to what the model returned, on the scale of that."""
    scale = max(abs(value), 1e-3)
    test.assertAlmostEqual(explanation.value, value, delta=rtol * scale)
    total = sum(explanation.contributions) + explanation.reference + explanation.leftover
    test.assertLess(abs(total - value), rtol * scale)


class VerifyReferenceTest(unittest.TestCase):
    """Checks the reference against the model's output on the baseline, by a run of it from the same state."""

    def test_what_no_operator_tells(self):
        """An address in memory tells nobody what is read from it."""

        class Peeking(nn.Module):
            def forward(self, x):
                import ctypes

                first = ctypes.c_float.from_address(x.data_ptr()).value
                return {"y": x + (2.0 if first > 0 else 5.0)}

        traced = addend.compile(Peeking(), preset="faithful")
        source = addend.Input(torch.rand(1, 4) + 0.1, dims=1, baseline=0.0)
        self.assertEqual(traced.decompose(source).report["reference_is_model_on_baseline"], "yes")
        report = traced.decompose(source, verify_reference=True).report
        self.assertEqual(report["reference_is_model_on_baseline"], "no")
        self.assertAlmostEqual(report["reference_error"], 0.6, places=6)
        self.assertIn("not what the model gives on the baseline", report["notes"][0])
        self.assertIn("not what the model gives", traced.explain(source, verify_reference=True).report["notes"][0])

    def test_notes_tell_the_lines_of_what_derives_conditions(self):
        def masked(x):
            above = x > 0.5
            return x * above

        traced = addend.compile(masked)
        source = addend.Input(torch.rand(1, 8), dims=1, baseline=0.0)
        line = "one_run_test.py:%d" % (masked.__code__.co_firstlineno + 1)
        for notes in (traced.decompose(source).notes, traced.explain(source).report["notes"]):
            self.assertIn(line, [note for note in notes if note.startswith("conditions")][0])

    def test_state_and_draws_are_those_of_the_run(self):
        torch.manual_seed(5)
        model = Noisy()
        source = addend.Input(torch.rand(3, 4), dims=1, baseline=0.0)
        states = []
        for verify in (False, True):
            torch.manual_seed(9)
            results = addend.compile(model, preset="faithful", verify_reference=verify).decompose(source)
            states.append(torch.get_rng_state())
        self.assertEqual(results.report["reference_error"], 0)
        self.assertTrue(torch.equal(*states))

    def test_batch_norms_keep_what_the_run_left_them(self):
        model = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 2)).train()
        source = addend.Input(torch.rand(6, 4), dims=1, baseline=0.5)
        report = addend.compile(model).decompose(source, verify_reference=True).report
        self.assertLess(report["reference_error"], 1e-5)
        self.assertEqual(model[0].num_batches_tracked.item(), 1)

    def test_the_running_mean_of_a_batch_norm_is_a_baseline(self):
        model = nn.Sequential(nn.BatchNorm2d(3), nn.Conv2d(3, 2, 3)).eval()
        model[0].running_mean.copy_(torch.tensor([0.5, -1.0, 2.0]))
        source = addend.Input(torch.rand(1, 3, 5, 5), dims=(2, 3), baseline="buffer:0.running_mean")
        found = addend.compile(model).decompose(source, verify_reference=True)
        mean = model[0].running_mean.view(1, 3, 1, 1).expand(1, 3, 5, 5)
        np.testing.assert_allclose(found[0].reference, model(mean).detach(), atol=1e-5)
        self.assertLess(found.report["reference_error"], 1e-5)


class OneRunTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(3)

    def assert_agree(self, model, source, target, value, **choices):
        """decompose and explain find the same, forward and backward, and both what the model returned."""
        traced = addend.compile(model, preset="faithful")
        decomposed = traced.decompose(source, **choices).explain(target)
        found = traced.explain(source, targets=target, **choices)[0]
        np.testing.assert_allclose(found.contributions, decomposed.contributions, rtol=1e-4, atol=1e-6)
        self.assertAlmostEqual(found.reference, decomposed.reference, places=5)
        assert_explains(self, found, value)
        assert_explains(self, decomposed, value)

    def test_tensors_that_the_model_makes(self):
        model, x = Masked(), torch.rand(4, 4)
        source = addend.Input(x, dims=1, baseline=0)
        for context in (torch.enable_grad, torch.no_grad, torch.inference_mode):
            with context():
                self.assert_agree(model, source, (2, 1), float(model(x)[2, 1]))
        given = addend.attribute(model, x, target=1)
        inside = addend.compile(model, inside=addend.Inside("scores", dims=1))
        reference = addend.compile(model)(addend.Input(x, 1)).reference.torch()[:, 1]
        np.testing.assert_allclose(given.sum(1) + reference, model(x)[:, 1].detach(), rtol=1e-4)
        np.testing.assert_allclose(inside(x).recovery, model(x).detach(), rtol=1e-5, atol=1e-6)
        found = inside.explain(x, targets=(3, 2))
        assert_explains(self, found[0], float(model(x)[3, 2]))
        self.assertEqual(found.inside[0].shape, (1, 4, 4))

    def test_what_is_explained_is_what_the_model_returned(self):
        model, x = Noisy().train(), torch.ones(1, 4)
        traced = addend.compile(model)
        source = addend.Input(x, dims=1, baseline=0)
        values = set()
        for _ in range(3):
            found = traced.explain(source, targets=1)
            assert_explains(self, found[0], float(model.returned[0, 1]))
            self.assertIs(found.output, model.returned)
            values.add(found[0].value)
            results = traced.decompose(source)
            assert_explains(self, results.explain(1), float(model.returned[0, 1]))
            for notes in (found.notes, results.notes, results.output.notes):
                (note,) = [note for note in notes if "random numbers" in note]
                self.assertIn("aten::randn", note)
                self.assertIn("value and baseline see the same draws", note)
        self.assertEqual(len(values), 3)
        self.assertEqual(model.calls, 6)
        # The baseline sees the draws of the value: what differs is the input alone.
        torch.manual_seed(5)
        found = traced.explain(source, targets=1)
        torch.manual_seed(5)
        with torch.no_grad():
            self.assertAlmostEqual(found[0].reference, float(model(torch.zeros(1, 4))[0, 1]), places=5)
        # In evaluation dropout draws nothing.
        still = addend.compile(nn.Sequential(nn.Linear(4, 2), nn.Dropout(0.5)).eval()).decompose(source)
        self.assertFalse([note for note in still.notes if "random" in note])

    def test_inside_of_a_model_that_draws(self):
        model, x = Noisy().train(), torch.ones(1, 4)
        traced = addend.compile(model, inside=addend.Inside("layers.1", dims=1), preset="faithful")
        found = traced.explain(x, targets=1)
        assert_explains(self, found[0], float(model.returned[0, 1]))
        # Behind the tanh only dropout and a linear map follow: what a neuron gives is known.
        with torch.no_grad():
            neuron = int(np.argmax(np.abs(found[0].contributions)))
            weight = float(model.layers[3].weight[1, neuron])
        value = float(traced.decompose(x, probes="layers.1")["layers.1"].value.torch().abs().max())
        self.assertLess(abs(found[0].contributions[neuron]), abs(2 * weight) + 1e-6)
        self.assertGreater(value, 0)

    def test_buffers_are_written_once_for_a_split_inside(self):
        model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Linear(3, 2)).train()
        x = torch.randn(5, 3)
        once = copy.deepcopy(model)
        once(x)
        value = addend.compile(model, inside=addend.Inside("2", dims=1))(x)
        torch.testing.assert_close(model[1].running_mean, once[1].running_mean)
        self.assertEqual(int(model[1].num_batches_tracked), 1)
        np.testing.assert_allclose(value.recovery, copy.deepcopy(once)(x).detach(), rtol=1e-4, atol=1e-5)

    def test_components_keep_the_order_of_the_signature(self):
        class Two(nn.Module):
            def forward(self, image, text):
                return (image.sum(1) + 10 * text.sum(1)).tanh()

        given = {
            "text": addend.Input(torch.tensor([[0.1, 0.02]]), 1, baseline=0.0),
            "image": addend.Input(torch.tensor([[0.3, 0.4]]), 1, baseline=0.0),
        }
        model = addend.compile(Two(), preset="faithful")
        decomposed = model.decompose(**given).explain()
        found = model.explain(**given)
        self.assertEqual(decomposed.names, ["image: column 0", "image: column 1", "text: column 0", "text: column 1"])
        self.assertEqual(found[0].names, decomposed.names)
        np.testing.assert_allclose(found[0].contributions, decomposed.contributions, rtol=1e-5)
        # Text moves the sum ten times as much as its numbers say.
        np.testing.assert_allclose(
            np.array(found[0].contributions) / found[0].contributions[0], [1, 4 / 3, 10 / 3, 2 / 3], rtol=1e-4
        )
        np.testing.assert_allclose(found.inputs[1].numpy()[0, 0], found[0].contributions[2:], rtol=1e-5)

    def test_inputs_belong_to_what_they_are_given_for(self):
        # The second argument meets an operator first.
        def model(a, b, scale):
            return (b * 2).sum() + a.sum() * scale

        a, b = addend.Input(torch.tensor([1.0, 2.0]), 0), addend.Input(torch.tensor([10.0, 20.0, 30.0]), 0)
        found = addend.compile(model).explain(a, b, torch.tensor(3.0))
        np.testing.assert_allclose(found.inputs[0], [[3, 6]])
        np.testing.assert_allclose(found.inputs[1], [[20, 40, 60]])
        self.assertIsNone(found.inputs[2])
        unused = addend.compile(lambda a, b: b * 2).explain(a, b, targets=1)
        np.testing.assert_allclose(unused.inputs[0], [[0, 0]])
        np.testing.assert_allclose(unused.inputs[1], [[0, 40, 0]])

    def test_ids(self):
        embedding, head = nn.Embedding(9, 4), nn.Linear(4, 3)
        ids = torch.tensor([[3, 1, 4]])

        def model(x, ids):
            return head(embedding(ids).tanh() + x).sum(1)

        x = addend.Input(torch.randn(1, 3, 4), dims=2)
        tokens = addend.Input(ids, dims=1, baseline=0, names=["c", "a", "d"])
        traced = addend.compile(model, preset="faithful")
        decomposed, found = traced.decompose(x, tokens).explain(2), traced.explain(x, tokens, targets=2)
        np.testing.assert_allclose(found[0].contributions, decomposed.contributions, rtol=1e-4, atol=1e-6)
        self.assertEqual(found[0].names[4:], ["c", "a", "d"])
        np.testing.assert_allclose(found.inputs[1][0, 0], found[0].contributions[4:], rtol=1e-4, atol=1e-6)
        with torch.no_grad():
            own = (embedding(ids).tanh() - embedding(torch.zeros_like(ids)).tanh())[0] @ head.weight[2]
        np.testing.assert_allclose(found[0].contributions[4:], own, rtol=1e-3, atol=1e-5)


class ModesTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(4)

    def test_inference_mode(self):
        x = torch.rand(2, 3, 4)
        places = torch.tensor([[[0, 1], [1, 2], [3, 3]]]).expand(2, 3, 2)

        def write(x):
            y = torch.zeros(2, 3, 4)
            y[:, :2].copy_(x[:, 1:])
            y.mul_(x)
            return y

        with torch.inference_mode():
            weight = torch.rand(4, 4)
            cache = torch.rand(2, 1, 4)
        ways = {
            "gather": lambda x: x.gather(2, places),
            "index": lambda x: x[:, [2, 0]],
            "product with a weight": lambda x: x @ weight,
            "product of parts": lambda x: x @ x.transpose(1, 2),
            "quotient": lambda x: x / x.sum(-1, keepdim=True),
            "einsum": lambda x: torch.einsum("bij,bkj->bik", x, x),
            "where": lambda x: torch.where(x > 0.5, x, weight[0]),
            "convolution": lambda x: torch.conv1d(x, torch.ones(2, 3, 2)),
            "layer norm": lambda x: nn.functional.layer_norm(x, (4,)) * weight[0],
            "softmax": lambda x: x.softmax(-1),
            "writes": write,
            "a cache": lambda x: torch.cat([cache, x], 1).cumsum(1),
        }
        for name, model in ways.items():
            found = []
            for mode in (torch.no_grad, torch.inference_mode):
                with self.subTest(name, mode=mode.__name__), mode():
                    source = addend.Input(x.clone(), dims=1, baseline=0)
                    traced = addend.compile(model, preset="faithful")
                    composition = traced(source)
                    np.testing.assert_allclose(composition.recovery, model(x), rtol=1e-5, atol=1e-6)
                    last = [size - 1 for size in composition.shape]
                    explanation = traced.explain(source, targets=tuple(last))[0]
                    np.testing.assert_allclose(
                        explanation.contributions, composition.components.numpy()[(slice(None), *last)], atol=1e-5
                    )
                    found.append(explanation.contributions)
            self.assertEqual(len(found), 2)
            np.testing.assert_allclose(found[0], found[1], atol=1e-6, err_msg=name)

    def test_compositions_in_inference_mode(self):
        with torch.inference_mode():
            x = addend.Composition.diagonal(torch.tensor([1.0, 2.0]), 0)
            product = x.mul(x).softmax(-1)
        expected = torch.tensor([1.0, 4.0]).softmax(-1)
        np.testing.assert_allclose(product.recovery, expected, rtol=1e-6)

    def test_the_mode_stays_as_it_is(self):
        seen = []

        def model(x):
            seen.append((torch.is_inference_mode_enabled(), torch.is_grad_enabled(), (x * 2).is_inference()))
            return x * 2

        with torch.inference_mode():
            addend.compile(model)(addend.Input(torch.ones(2), 0))
            self.assertTrue(torch.is_inference_mode_enabled())
            self.assertTrue(torch.ones(1).is_inference())
        self.assertEqual(seen, [(True, False, True)])
        self.assertFalse(torch.ones(1).is_inference())

    def test_autocast_is_refused_at_entry(self):
        layer = nn.Linear(4, 2)
        source = addend.Input(torch.rand(3, 4), dims=1, baseline=0)
        calls = []

        def model(x):
            calls.append(x)
            return layer(x)

        traced = addend.compile(model)
        entries = {
            "call": lambda: traced(source),
            "decompose": lambda: traced.decompose(source),
            "explain": lambda: traced.explain(source, targets=(0, 0)),
            "attribute": lambda: addend.attribute(model, torch.rand(3, 4), target=0),
            "record": lambda: traced.record(torch.rand(3, 4)),
        }
        for name, entry in entries.items():
            with self.subTest(name), torch.autocast("cpu", dtype=torch.bfloat16):
                with self.assertRaisesRegex(addend.Error, "^autocast is on, which casts behind the operators"):
                    entry()
        self.assertEqual(calls, [])

        def inner(x):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return layer(x)

        with self.assertRaisesRegex(addend.Error, "aten::linear runs under autocast"):
            addend.compile(inner)(source)

    def test_wrappers_of_compiled_models(self):
        class Wrapper(nn.Module):  # keeps the model where torch.compile keeps it
            def __init__(self, model):
                super().__init__()
                self._orig_mod = model

            def forward(self, x):
                raise AssertionError("compiled code ran")

        model = nn.Linear(3, 2)
        compiled = torch.compile(model) if hasattr(torch, "compile") else Wrapper(model)
        x = torch.rand(1, 3)
        results = addend.compile(compiled).decompose(addend.Input(x, 1))
        np.testing.assert_allclose(results[0].recovery, model(x).detach(), rtol=1e-6)
        self.assertTrue([note for note in results.notes if "torch.compile wraps the model" in note])


class CallsTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(6)

    def test_what_is_passed_on_shares_one_axis(self):
        model = Decoder().eval()
        x, new = torch.randn(1, 3, 4), torch.randn(1, 1, 4)
        traced = addend.compile(model, preset="faithful")
        first = traced(addend.Input(x, 1, baseline=0))
        step = traced(addend.Input(new, 1, baseline=0), first["past"])
        whole = traced(addend.Input(torch.cat([x, new], 1), 1, baseline=0))
        self.assertEqual(step["logits"].numc, 4)
        expected = whole["logits"]
        np.testing.assert_allclose(step["logits"].value, expected.value.numpy()[:, 3:], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(step["logits"].reference, expected.reference.numpy()[:, 3:], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(
            step["logits"].components, expected.components.numpy()[:, :, 3:], rtol=1e-3, atol=1e-5
        )
        self.assertFalse([note for note in step["logits"].notes if "share the components" in note])
        # Other mappings, and compositions of other runs, which is said.
        mapping = collections.UserDict(first["past"])
        np.testing.assert_array_equal(
            traced(addend.Input(new, 1, baseline=0), mapping)["logits"].components, step["logits"].components
        )
        other = traced(addend.Input(x, 1, baseline=0))
        mixed = traced.decompose(addend.Input(new, 1, baseline=0), {"k": first["past"]["k"], "v": other["past"]["v"]})
        self.assertTrue([note for note in mixed.notes if "share the components from 0 on" in note])
        with self.assertRaisesRegex(TypeError, "mappingproxy cannot be given other values; pass a dict"):
            traced(addend.Input(new, 1, baseline=0), types.MappingProxyType(first["past"]))

    def test_outputs_and_targets_of_a_decoder(self):
        model = Decoder().eval()
        x = torch.randn(1, 3, 4)
        source = addend.Input(x, 1, baseline=0)
        traced = addend.compile(model, preset="faithful")
        results = traced.decompose(source, outputs="output.logits")
        self.assertEqual(results.names, ["output.logits"])
        self.assertIsInstance(results.output["past"]["k"], torch.Tensor)
        logits = model(x)["logits"].detach()
        best = int(logits[0, -1].argmax())
        self.assertEqual(results.explain().target, "[0, 2, %d]" % best)
        for at in (None, "output.logits"):
            found = traced.explain(source, at=at)
            self.assertEqual(found[0].target, "[0, 2, %d]" % best)
            assert_explains(self, found[0], float(logits[0, -1, best]), 1e-4)
        difference = traced.explain(source, targets="-1,2-0,-1,-4")[0]
        self.assertEqual(difference.target, "[0, 2, 2] minus [0, 2, 3]")
        self.assertAlmostEqual(difference.value, float(logits[0, 2, 2] - logits[0, 2, 3]), places=5)
        self.assertEqual(traced.explain(source, targets=(0, -2, -1))[0].target, "[0, 1, 6]")
        keys = traced.explain(source, at="output.past.k", targets=(0, 1, 1))[0]
        assert_explains(self, keys, float(model(x)["past"]["k"][0, 1, 1]), 1e-4)
        recorded = traced.record(x).model()
        self.assertEqual(recorded.decompose(source).names, ["output.logits", "output.past.k", "output.past.v"])
        chosen = recorded.decompose(source, outputs="output.past.k")
        self.assertEqual(chosen.names, ["output.past.k"])
        np.testing.assert_allclose(chosen[0].components, traced(source)["past"]["k"].components, rtol=1e-5, atol=1e-6)
        with self.assertRaisesRegex(ValueError, "no output.1 that is floating-point; it has output.logits, output.past.k"):
            recorded.decompose(source, outputs="output.1")
        with self.assertRaisesRegex(ValueError, "no output.scores that holds numbers; it has output.logits, output.past"):
            traced.decompose(source, outputs=["output.scores"])

    def test_choices_of_a_call(self):
        layer = nn.Sequential(nn.Linear(4, 3), nn.Tanh())
        source = addend.Input(torch.rand(1, 4), 1, baseline=0)
        traced = addend.compile(layer)
        for preset in ("fast", "faithful"):
            self.assertEqual(traced.decompose(source, preset=preset).report["preset"], preset)
            self.assertEqual(traced.explain(source, preset=preset).report["preset"], preset)
        rows = addend.attribute(layer, torch.rand(2, 4), target=0, preset="faithful")
        self.assertEqual(rows.shape, (2, 4))
        probed = traced.decompose(source, probes="0", context=addend.Context(preset="fast"))
        self.assertEqual(probed.names, ["output", "0"])
        inside = traced.decompose(source.value, inside=addend.Inside("0", 1))
        self.assertEqual(inside[0].numc, 3)

        # Names that the model has an argument for go to the model, not to Addend.
        def own(x, preset):
            return x * preset

        self.assertEqual(addend.compile(own)(addend.Input(torch.ones(1), 0), preset=3.0).value.tolist(), [3.0])
        with self.assertRaisesRegex(TypeError, r"compile\(\) has no option colour; its options are probes, "):
            addend.compile(layer, colour="red")

    def test_buffers_that_nobody_reads(self):
        class Holds(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(3, 2)
                self.register_buffer("heads", torch.eye(2).to_sparse(), persistent=False)

            def forward(self, x):
                return self.layer(x), x

        model, x = Holds(), torch.randn(4, 3)
        traced = addend.compile(model)
        np.testing.assert_allclose(traced(addend.Input(x, 1))[0].recovery, model(x)[0].detach(), rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(traced.record(x).replay(x)[0].torch(), model(x)[0].detach())
        self.assertEqual(traced.explain(addend.Input(x, 1), targets=(0, 1)).inputs[0].shape, (1, 4, 3))

    def test_padded_batches_of_transformer_encoders(self):
        layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)
        model = nn.TransformerEncoder(layer, 1).eval()
        x = torch.randn(2, 5, 8)
        padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
        traced = addend.compile(model, preset="faithful")
        for mode in (torch.no_grad, torch.inference_mode, torch.enable_grad):
            with mode():
                results = traced.decompose(addend.Input(x, dims=1, baseline=0), src_key_padding_mask=padding)
                whole = model(x, src_key_padding_mask=padding).detach()
            kept = ~padding.numpy()
            # The layers' own short cut approximates.
            np.testing.assert_allclose(results[0].recovery.numpy()[kept], whole.numpy()[kept], atol=1e-3)
            said = [note for note in results.notes if "without nested tensors" in note]
            self.assertEqual(len(said), 0 if mode is torch.enable_grad else 1)
        self.assertIs(model.enable_nested_tensor, True)
        with torch.no_grad():
            plain = traced.decompose(addend.Input(x, dims=1, baseline=0))
        self.assertFalse([note for note in plain.notes if "nested" in note])

    def test_explanations_are_values(self):
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
        source = addend.Input(torch.rand(1, 3), 1, baseline=0, names=["red", "green", "blue"])
        for explanation in (
            addend.compile(model).explain(source, targets="1-0")[0],
            addend.compile(model).decompose(source).explain(1),
        ):
            for same in (pickle.loads(pickle.dumps(explanation)), copy.copy(explanation), copy.deepcopy(explanation)):
                for name in (
                    "target value reference leftover recovery recovery_error conditioning mass contributions names"
                ).split():
                    self.assertEqual(getattr(same, name), getattr(explanation, name), name)
                self.assertEqual(same.top(), explanation.top())
                self.assertEqual(same.to_dict(), explanation.to_dict())
                self.assertEqual(same.to_html(), explanation.to_html())
                same.close()
            self.assertFalse(explanation.closed)
        for text in ("", "{}", "[1]", '{"targets": [{}]}'):
            with self.assertRaisesRegex(ValueError, "is no (explanation|JSON)"):
                addend._native.explanation_read(text)


if __name__ == "__main__":
    unittest.main()
