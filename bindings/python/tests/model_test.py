"""Models and tensors from files."""

import hashlib
import io
import json
import logging
import math
import os
import pathlib
import signal
import tempfile
import threading
import unittest

import numpy as np
import torch

import addend

DIGITS = "docs/examples/models/digits/"


class Pair(torch.nn.Module):
    """Two named inputs, two outputs."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 2)

    def forward(self, left, right):
        return self.layer(left) + right, right.argmax()


def script(module):
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(module.eval()), file)
    return file.getvalue()


def slow_model():
    """So many operators that a run takes seconds."""

    class Slow(torch.nn.Module):
        def forward(self, x):
            for _ in range(3000):
                x = torch.tanh(x)
            return x

    return addend.load_model(script(Slow()))


class DecomposeTest(unittest.TestCase):
    def setUp(self):
        self.image = addend.read_tensors(DIGITS + "sample.safetensors")["input"]

    def test_components_sum_to_what_the_baseline_changes(self):
        model = addend.load_model(DIGITS + "model.pt")
        network = torch.jit.load(DIGITS + "model.pt").eval()
        results = model.decompose(addend.Input(self.image, (2, 3), baseline=0), preset="faithful", probes=["aten::relu:1"])
        output = results[0]
        with torch.no_grad():
            expected, baseline = network(self.image.torch()), network(torch.zeros(1, 1, 8, 8))
        self.assertEqual(results.names, ["output", "aten::relu:1"])
        self.assertEqual((output.numc, output.shape), (64, (1, 10)))
        np.testing.assert_allclose(output.value, expected, atol=1e-5)
        np.testing.assert_allclose(output.recovery, expected, atol=1e-4)
        np.testing.assert_allclose(output.reference, baseline, atol=1e-5)
        np.testing.assert_allclose(output.components.numpy().sum(0), expected - baseline, atol=1e-4)
        self.assertEqual(results["aten::relu:1"].numc, 64)
        self.assertLess(results.number("worst_recovery_error"), 1e-4)
        self.assertEqual(results.report["operators"], results.number("operators"))
        self.assertTrue(np.isnan(results.number("no such number")))
        self.assertEqual(results.report["policy"]["preset"], "faithful")
        explanation = results.explain("top1")
        self.assertEqual(explanation.target, "[0, %d]" % expected.argmax())
        self.assertAlmostEqual(explanation.value, expected.max().item(), places=4)
        difference = results.explain("0,8-0,3")
        self.assertAlmostEqual(difference.value, (expected[0, 8] - expected[0, 3]).item(), places=4)
        with self.assertRaises(KeyError):
            results["no such result"]
        with self.assertRaises(IndexError):
            results[2]
        self.assertEqual(results[-1].shape, results[1].shape)
        self.assertEqual(len(list(results)), 2)

    def test_tells_the_digest_of_a_file_and_of_a_folder(self):
        def digest(path):
            with open(path, "rb") as file:
                return hashlib.sha256(file.read()).hexdigest()

        path = DIGITS + "model.pt"
        self.assertEqual(addend.Model.sha256(path), digest(path))
        self.assertEqual(addend.Model.sha256(pathlib.Path(path)), digest(path))
        with tempfile.TemporaryDirectory() as folder:
            addend.load_model(path).record(self.image).save(folder)
            names = ("program.json", "weights.safetensors")
            listed = "".join("%s  %s\n" % (digest(os.path.join(folder, name)), name) for name in names)
            self.assertEqual(addend.Model.sha256(folder), hashlib.sha256(listed.encode()).hexdigest())
        with self.assertRaises(addend.NotFound):
            addend.Model.sha256("/nowhere")

    def test_keeps_references_and_stays_within_memory(self):
        model = addend.load_model(DIGITS + "model.pt")
        for baseline in (0, 0, 0.5, 0):
            image = addend.Input(self.image, (2, 3), baseline=baseline)
            expected, kept = model.decompose(image)[0], model.decompose(image, keep_references=True)[0]
            np.testing.assert_array_equal(kept.reference, expected.reference)
            np.testing.assert_array_equal(kept.components, expected.components)
            back = model.explain(image, targets="8", keep_references=True).inputs[0]
            np.testing.assert_array_equal(back, model.explain(image, targets="8").inputs[0])
        model.forget_references()
        groups = model.decompose(image, memory=1 << 20)[0]
        np.testing.assert_allclose(groups.components, expected.components, atol=1e-4)
        with self.assertRaisesRegex(ValueError, "allow more memory"):
            model.decompose(image, memory=100)
        with self.assertRaisesRegex(ValueError, "negative"):
            model.decompose(image, memory=-1)

    def test_takes_baselines_by_a_word_and_verifies_references(self):
        model = addend.load_model(DIGITS + "model.pt")
        pixels = np.asarray(self.image)
        with tempfile.TemporaryDirectory() as folder:
            rows = os.path.join(folder, "rows.npy")
            np.save(rows, np.concatenate([pixels, pixels * 3, pixels * 8]))
            wanted = {
                "mean": np.full_like(pixels, pixels.mean()),
                "mean:" + rows: pixels * 4,
                "median:" + rows: pixels * 3,
            }
            for word, baseline in wanted.items():
                found = model.decompose(addend.Input(self.image, (2, 3), baseline=word), verify_reference=True)
                given = model.decompose(addend.Input(self.image, (2, 3), baseline=baseline))
                np.testing.assert_allclose(found[0].reference, given[0].reference, atol=1e-4)
                self.assertLess(found.report["reference_error"], 1e-5)
                self.assertIsNone(given.report["reference_error"])
        with self.assertRaisesRegex(ValueError, "there is no such word"):
            model.decompose(addend.Input(self.image, (2, 3), baseline="grey"))

    def test_both_directions_give_the_same(self):
        model = addend.load_model(DIGITS + "model.pt")
        image = addend.Input(self.image, (2, 3), baseline=0.5)
        found = {way: model.decompose(image, direction=way) for way in ("forward", "backward", "auto")}
        self.assertEqual(found["forward"].report["direction"], "forward")
        self.assertEqual(found["backward"].report["direction"], "backward")
        for results in found.values():
            np.testing.assert_allclose(results[0].components, found["forward"][0].components, atol=1e-4)
            np.testing.assert_allclose(results[0].leftover, found["forward"][0].leftover, atol=1e-4)
        with self.assertRaisesRegex(ValueError, "auto, forward or backward, not sideways"):
            model.decompose(image, direction="sideways")
        with self.assertRaisesRegex(addend.FailedPrecondition, "cannot be found backward"):
            model.decompose(image, direction="backward", nonlinearity="abs_affine")

    def test_inputs_go_by_name(self):
        module = Pair()
        model = addend.load_model(script(module))
        self.assertEqual(model.input_names, ["left", "right"])
        left, right = torch.randn(3), torch.randn(2)
        for given in [(addend.Input(left, 0), right), ({"right": right, "left": addend.Input(left, 0)},)]:
            total = model.decompose(*given)["output"]
            np.testing.assert_allclose(total.components, (module.layer.weight * left).t().detach(), atol=1e-6)
        plain = model.run(left, right)
        self.assertIsInstance(plain[0], addend.Tensor)
        np.testing.assert_allclose(plain[0], module(left, right)[0].detach(), atol=1e-6)

    def test_shapley_values_are_complete(self):
        module = Pair()
        left, right = torch.randn(3), torch.randn(2)
        shapley = addend.load_model(script(module)).shapley(addend.Input(left, 0), right)
        np.testing.assert_allclose(shapley.components, (module.layer.weight * left).t().detach(), atol=1e-5)
        np.testing.assert_allclose(shapley.recovery, module(left, right)[0].detach(), atol=1e-5)

    def test_integer_outputs_stay_tensors(self):
        right = torch.randn(2)
        outputs = addend.load_model(script(Pair()))(addend.Input(torch.randn(3), 0), right)
        self.assertIsInstance(outputs, tuple)
        self.assertEqual(int(outputs[1]), int(right.argmax()))

    def test_eight_threads_compute_the_same_bits_as_one(self):
        model = addend.load_model(DIGITS + "model.pt")
        images = [addend.Input(self.image.numpy() * (k + 1) / 8, (2, 3), baseline=0) for k in range(8)]
        expected = [model(image).components.numpy() for image in images]
        found = [None] * 8

        def work(k):
            found[k] = model(images[k]).components.numpy()

        threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        np.testing.assert_array_equal(found, expected)

    def test_models_from_bytes_are_converted(self):
        model = addend.load_model(script(torch.nn.Linear(3, 2)), dtype="float64")
        output = model(addend.Input(np.ones(3), 0))
        self.assertEqual(output.dtype, "float64")

    def test_copies(self):
        model = addend.load_model(script(torch.nn.Linear(3, 2)))
        wide = model.to("cpu", "float64")
        self.assertEqual(wide(addend.Input(np.ones(3), 0)).dtype, "float64")
        self.assertEqual(model.to("cpu").run(np.ones(3, np.float32))[0].dtype, "float32")
        with self.assertRaises(addend.Error):
            model.to("abacus")

    def test_labels_and_parts_split_too(self):
        model = addend.load_model(script(torch.nn.Identity()))
        x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        for source, expected in [
            (addend.Input(x, 0), [[[1, 2], [0, 0]], [[0, 0], [3, 4]]]),
            (addend.Input(x, labels=[[0, 1], [1, -1]]), [[[1, 0], [0, 0]], [[0, 2], [3, 0]]]),
            (addend.Input(x, parts=x[None] / 2), [[[0.5, 1], [1.5, 2]]]),
            (addend.Input(x, (0,), baseline=[[1.0, 1.0]], first_component=1), [[[0, 0], [0, 0]], [[0, 1], [0, 0]], [[0, 0], [2, 3]]]),
        ]:
            np.testing.assert_array_equal(model(source).components, expected)
        with self.assertRaisesRegex(TypeError, "dims and labels"):
            addend.Input(x, 0, labels=[0, 1])

    def test_policy_or_context(self):
        model = addend.load_model(script(torch.nn.Tanh()))
        x = addend.Input(torch.tensor([1.0]), 0, baseline=0.25)
        context = addend.Context(nonlinearity="gradient")
        np.testing.assert_array_equal(
            model(x, context=context).components, model(x, nonlinearity="gradient").components
        )
        with self.assertRaisesRegex(TypeError, "segments"):
            model(x, context=context, segments=2)
        with self.assertRaisesRegex(TypeError, "addend.Context"):
            model(x, context="fast")
        with self.assertRaisesRegex(TypeError, "no_such_choice"):
            model(x, no_such_choice=1)

    def test_wrong_choices_are_explained(self):
        for choices in [{"preset": "slow"}, {"segments": 0}, {"freeze": ["everything"]}, {"tolerance": "wide"}]:
            (field,) = choices
            with self.subTest(choices=choices), self.assertRaisesRegex(addend.InvalidArgument, field):
                addend.Context(**choices)

    def test_policies_are_text(self):
        self.assertEqual(addend.Context(freeze=[]).policy["freeze"], "none")
        self.assertEqual(addend.Context(freeze={"attention"}).policy["freeze"], "attention")
        self.assertEqual(addend.Context(content_first=[]).policy["content_first"], "none")
        self.assertEqual(addend.Context(content_first=["attention", "gate"]).policy["content_first"], "attention+gate")
        self.assertEqual(addend.Context(conditions="baseline").policy["conditions"], "baseline")


    def test_closed_models_say_so(self):
        model = addend.load_model(script(torch.nn.Tanh()))
        x = addend.Input(torch.ones(2), 0)
        results = model.decompose(x)
        model.close()
        for ask in (lambda: model(x), lambda: model.input_names, lambda: model.record(torch.ones(2))):
            with self.assertRaisesRegex(ValueError, "Model is closed"):
                ask()
        self.assertEqual(results[0].numc, 2)
        results.close()
        with self.assertRaisesRegex(ValueError, "Results is closed"):
            results.explain()


class CallbackTest(unittest.TestCase):
    def setUp(self):
        self.model = addend.load_model(script(torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh())))
        self.x = addend.Input(torch.randn(3), 0)

    def test_progress_is_heard_on_the_thread_that_runs(self):
        seen, threads = [], set()

        def progress(stage, done, total):
            seen.append(stage)
            threads.add(threading.get_ident())

        self.model.decompose(self.x, progress=progress)
        self.assertEqual(list(dict.fromkeys(seen)), ["trace", "linearize", "sweep"])
        self.assertEqual(threads, {threading.get_ident()})

    def test_what_progress_throws_reaches_the_caller(self):
        class Mine(Exception):
            pass

        def progress(stage, done, total):
            if stage == "sweep":
                raise Mine("enough")

        with self.assertRaisesRegex(Mine, "enough"):
            self.model.decompose(self.x, progress=progress)
        with self.assertRaisesRegex(Mine, "enough"):
            addend.compile(torch.tanh, progress=progress)(self.x)

        def early(stage, done, total):
            raise Mine("at once")

        with self.assertRaisesRegex(Mine, "at once"):
            addend.compile(torch.tanh, progress=early)(self.x)
        self.assertIsInstance(self.model(self.x), addend.Composition)

    def test_log_tells_what_a_reader_should_know(self):
        with self.assertLogs("addend.test", logging.INFO) as logs:
            self.model.decompose(self.x, log=logging.getLogger("addend.test").log)
        self.assertIn("no baseline was given", logs.output[0])
        self.assertTrue(any("preset auto" in line for line in logs.output), logs.output)

    def test_contexts_let_go_of_their_listeners(self):
        import gc
        import weakref

        class Progress:
            def __call__(self, *arguments):
                pass

        progress = Progress()
        watch = weakref.ref(progress)
        context = addend.Context(progress=progress, log=progress)
        self.model.decompose(self.x, context=context)
        del progress
        gc.collect()
        self.assertIsNotNone(watch())
        del context
        gc.collect()
        self.assertIsNone(watch())

    def test_not_callable(self):
        with self.assertRaisesRegex(TypeError, "progress"):
            addend.Context(progress=5)


class CancelTest(unittest.TestCase):
    def test_another_thread_ends_runs(self):
        model = slow_model()
        cancellation = addend.Cancellation()
        started = threading.Event()
        timer = threading.Thread(target=lambda: (started.wait(), cancellation.cancel()))
        timer.start()
        with self.assertRaises(addend.Cancelled) as caught:
            model.decompose(
                addend.Input(torch.randn(100), 0),
                cancellation=cancellation,
                progress=lambda stage, done, total: started.set() if done >= 10 else None,
            )
        timer.join()
        self.assertEqual(caught.exception.code, addend.Code.CANCELLED)
        with self.assertRaises(addend.Cancelled):
            model.decompose(addend.Input(torch.randn(3), 0), cancellation=cancellation)
        with self.assertRaises(addend.Cancelled):
            addend.compile(torch.tanh, cancellation=cancellation)(addend.Input(torch.randn(3), 0))

    def test_a_time_ends_runs(self):
        x = addend.Input(torch.randn(100), 0)
        model = slow_model()
        self.assertIsNotNone(model.explain(x, targets=["0"], cancellation=addend.Cancellation(timeout=3600)))
        short = addend.Cancellation(timeout=1e-9)
        live = addend.compile(lambda x: x.tanh().exp(), cancellation=short)
        runs = (
            lambda: model.decompose(x, cancellation=short),
            lambda: model.explain(x, targets=["0"], cancellation=short),
            lambda: live(x),
        )
        for run in runs:
            with self.assertRaisesRegex(addend.Cancelled, "longer than its timeout of 1e-09 s"):
                run()
        for wrong in (0, -1, math.nan, math.inf):
            with self.assertRaisesRegex(addend.InvalidArgument, "a number of seconds above 0"):
                addend.Cancellation(timeout=wrong)

    def test_a_live_model_is_cancelled_within(self):
        cancellation = addend.Cancellation()

        def model(x):
            for step in range(100):
                x = x.tanh()
                if step == 5:
                    cancellation.cancel()
            self.fail("the model ran to its end")

        with self.assertRaises(addend.Cancelled):
            addend.compile(model, cancellation=cancellation)(addend.Input(torch.randn(3), 0))

    def test_control_c(self):
        model = slow_model()
        timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            while True:
                model.decompose(addend.Input(torch.randn(100), 0))
        timer.join()

    def test_other_threads_run_meanwhile(self):
        model = slow_model()
        done = threading.Event()
        counted = []

        def count():
            while not done.is_set():
                counted.append(1)
                done.wait(0.001)

        thread = threading.Thread(target=count)
        thread.start()
        model.decompose(addend.Input(torch.randn(1000), 0))
        done.set()
        thread.join()
        self.assertGreater(len(counted), 10)


class FileTest(unittest.TestCase):
    def test_tensor_files_keep_what_they_are_given(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "t\u00e9nsors.safetensors")
            addend.write_tensors(path, {"a": torch.ones(2), "b": np.int64([3])}, {"kind": "table"})
            with addend.read_tensors(path) as file:
                self.assertEqual(dict(file.items()).keys(), {"a", "b"})
                self.assertEqual(file["b"].tolist(), [3])
                self.assertEqual((file.metadata("kind"), file.metadata("nothing")), ("table", None))
                self.assertIn("a", file)
                self.assertNotIn("c", file)
                with self.assertRaises(KeyError):
                    file["c"]
            with open(path, "rb") as raw:
                data = raw.read()
            self.assertEqual(addend.read_tensors(data)["a"].tolist(), [1, 1])
            self.assertEqual(addend.encode_tensors({"a": torch.ones(2), "b": np.int64([3])}, {"kind": "table"}), data)
            header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
            self.assertEqual(header["b"]["dtype"], "I64")

    def test_damaged_tensor_files_are_refused(self):
        data = addend.encode_tensors({"a": torch.ones(2), "b": np.int64([3])})
        for size in range(len(data)):
            with self.subTest(size=size), self.assertRaisesRegex(addend.InvalidArgument, "cut"):
                addend.read_tensors(data[:size], "cut")

    def test_npy(self):
        file = io.BytesIO()
        np.save(file, np.float32([[1, 2]]))
        tensors = addend.read_tensors(file.getvalue())
        np.testing.assert_array_equal(tensors[""], [[1, 2]])

    def test_no_file(self):
        for read in (addend.read_tensors, addend.load_model):
            with self.assertRaisesRegex(addend.NotFound, "no/such/file"):
                read("no/such/file")

    def test_damaged_models_are_refused(self):
        data = script(torch.nn.Linear(2, 2))
        for broken in (b"", b"PK", data[:100], data[: len(data) // 2], data[:-30], bytes(len(data))):
            with self.subTest(size=len(broken)), self.assertRaises(addend.InvalidArgument):
                addend.load_model(broken)
        with tempfile.TemporaryDirectory() as folder, self.assertRaises(addend.Error):
            addend.load_model(folder)
