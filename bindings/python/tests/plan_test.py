"""Plans: the bits of an attribution without a plan, or a refusal that says why."""

import os
import tempfile
import threading
import unittest
from typing import Dict

import numpy as np
import torch

import addend
from addend._native_tensor import dlpack_capsule

MODELS = "tests/conformance/models/"


class Cached(torch.nn.Module):
    """Makes a buffer in the first run."""

    def __init__(self):
        super().__init__()
        self.register_buffer("factor", None)

    def forward(self, x):
        if self.factor is None:
            self.factor = torch.full((6,), 2.0, dtype=torch.float64)
        return x * self.factor


def parts(attribution):
    return [list(explanation.contributions) for explanation in attribution]


class ReadsByDlpack(torch.nn.Module):
    def forward(self, x):
        return x * (int(np.from_dlpack(x.detach()).argmax()) + 1)


class Structured(torch.nn.Module):
    """Which input is which tells the factor."""

    def forward(self, u, v, k: float = 1.0, twice: bool = False):
        return (u - 2 * v) * k * (2.0 if twice else 1.0)


class OfDict(torch.nn.Module):
    def forward(self, given: Dict[str, torch.Tensor]):
        return given["u"] - 2 * given["v"]


def scripted(module):
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.pt")
        torch.jit.script(module.eval()).save(path)
        return addend.load_model(path)


class Reads(torch.nn.Module):
    def forward(self, x):
        if torch.allclose(x.relu(), x):
            return x * 3
        return x * 2


class Warns(torch.nn.Module):
    def forward(self, x):
        y = torch.empty(3)
        torch.mul(x, 2.0, out=y)  # resizes it, which LibTorch warns of in each run
        return y


class Slow(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(128, 128)

    def forward(self, x):
        for _ in range(100):
            x = self.layer(x).tanh()
        return x


class Ids(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(5, 3)

    def forward(self, ids):
        return self.table(ids).sum(1)


class PlanTest(unittest.TestCase):
    def setUp(self):
        self.model = addend.load_model(MODELS + "awkward.pt", dtype="float64")
        tables = addend.read_tensors(MODELS + "awkward.safetensors")
        self.row = np.asarray(tables["same_branch"], dtype=np.float64)
        self.other = np.asarray(tables["other_branch"], dtype=np.float64)

    def asked(self, row):
        return addend.Input(row, dims=1, baseline=0.25)

    def test_numbers_beside_tensors_without_dimensions(self):
        """LibTorch wraps such a number as float64, which has no say in the dtype of the result."""
        torch.manual_seed(0)
        layer = torch.nn.Linear(6, 3)

        def network(x):
            y = x / (x.norm() + 1e-6)
            return layer(y) + y.square().sum() * 0.3

        x = torch.randn(1, 6)
        model = addend.compile(network)

        def asked():
            return addend.Input(x, dims=1, baseline=0.5)

        found = model.explain(asked(), targets="0,0")[0]
        self.assertAlmostEqual(found.recovery, network(x)[0, 0].item(), places=5)
        plan = model.plan(asked(), targets="0,0")
        other = torch.randn(1, 6)
        for row in (x, other):
            one = plan.attribute(row)[0]
            again = model.explain(addend.Input(row, dims=1, baseline=0.5), targets="0,0")[0]
            self.assertEqual(one.contributions, again.contributions)
            self.assertAlmostEqual(one.value, network(row)[0, 0].item(), places=5)
        limited = model.explain(asked(), targets="0,0", memory=100)[0]
        self.assertEqual(limited.contributions, found.contributions)

    def test_gives_the_same_bits(self):
        for targets in ("0,1", ["0,0", "0,1-0,0"]):
            plan = self.model.plan(self.asked(self.row), targets=targets)
            for factor in (1, 0.5, 2):
                expected = self.model.explain(self.asked(self.row * factor), targets=targets)
                found = plan.attribute(self.row * factor)
                self.assertEqual(found, expected)
                self.assertEqual(parts(found), parts(expected))
                self.assertTrue(np.array_equal(np.asarray(found.inputs[0]), np.asarray(expected.inputs[0])))

    def test_writes_into_arrays(self):
        plan = self.model.plan(self.asked(self.row), targets="0,1")
        contributions, sums = np.zeros((1, 6)), np.zeros((1, 3))
        plan.attribute_into(self.row * 0.5, contributions=contributions, sums=sums)
        expected = self.model.explain(self.asked(self.row * 0.5), targets="0,1")[0]
        self.assertEqual(list(contributions[0]), list(expected.contributions))
        self.assertEqual(list(sums[0]), [expected.value, expected.reference, expected.leftover])
        with self.assertRaisesRegex(addend.InvalidArgument, "contributions is f64"):
            plan.attribute_into(self.row, contributions=sums)

    def test_keeps_the_structure_of_arguments(self):
        model = scripted(Structured())
        rng = np.random.RandomState(0)
        a, b, c = (rng.rand(1, 4).astype(np.float32) for _ in range(3))

        def split(value):
            return addend.Input(value, dims=1, baseline=0.25)

        plan = model.plan({"u": split(a), "v": split(b), "k": 3.0}, targets="0,1")
        expected = model.explain({"u": split(c), "v": split(b), "k": 3.0}, targets="0,1")
        for row in ({"u": c, "v": b, "k": 3.0}, {"k": 3.0, "v": b, "u": c}):
            self.assertEqual(parts(plan.attribute(row)), parts(expected))
        self.assertEqual(parts(plan.attribute(c, b, 3.0)), parts(expected))
        for row in (
            {"u": c, "v": b, "k": 5.0},
            {"u": c, "v": b, "k": None},
            {"u": c, "v": b},
            {"u": c, "v": b, "k": 3.0, "twice": True},
            {"u": c, "v": b, "k": 3.0, "other": 1},
            {"u": (c,), "v": b, "k": 3.0},
            {"u": c, "k": 3.0},
        ):
            with self.subTest(sorted(row)), self.assertRaises(addend.InvalidArgument):
                plan.attribute(row)
        with self.assertRaisesRegex(addend.InvalidArgument, "k is none that the plan was made with"):
            model.plan(split(a), split(b), targets="0,1").attribute(c, b, 3.0)
        with self.assertRaisesRegex(addend.InvalidArgument, "k is .*; the plan was made with"):
            model.plan(split(a), split(b), 0.0, targets="0,1").attribute(c, b, -0.0)
        model = scripted(OfDict())
        plan = model.plan({"given": {"u": split(a), "v": split(b)}}, targets="0,1")
        expected = model.explain({"given": {"u": split(c), "v": split(b)}}, targets="0,1")
        self.assertEqual(parts(plan.attribute({"given": {"u": c, "v": b}})), parts(expected))
        # A model may go through them in their order.
        for row in ({"v": b, "u": c}, {"u": c, "w": b}, {"u": c}):
            with self.subTest(row), self.assertRaises(addend.InvalidArgument):
                plan.attribute({"given": row})

    def test_sees_every_number_that_is_read(self):
        model = scripted(Reads())
        row = np.array([[1, 2, 3, 4]], dtype=np.float32)
        plan = model.plan(addend.Input(row, dims=1, baseline=0), targets="0,1")
        with self.assertRaisesRegex(addend.FailedPrecondition, "allclose .* another number"):
            plan.attribute(-row)
        explained = model.explain(addend.Input(row, dims=1, baseline=-1), targets="0,1")
        self.assertEqual(explained.report["reference_is_model_on_baseline"], "unknown")
        self.assertTrue(any("reads numbers" in note for note in explained.notes), explained.notes)

    def test_writes_into_nothing_that_is_not_to_be_written(self):
        plan = self.model.plan(self.asked(self.row), targets="0,1")
        other = self.model.explain(self.asked(self.row), targets="0,1")
        fixed = np.zeros((1, 6))
        fixed.flags.writeable = False
        unchanged = bytes(48)
        reversed_ = np.zeros((1, 6))[:, ::-1]
        refused = [fixed, memoryview(unchanged), memoryview(unchanged).cast("d", (1, 6)), reversed_]
        for room in [*refused, other.inputs[0], [[0.0] * 6]]:
            with self.subTest(type(room).__name__):
                before = np.array(room)
                with self.assertRaisesRegex(addend.InvalidArgument, "contributions is a .* that may be written"):
                    plan.attribute_into(self.row, contributions=room)
                self.assertTrue(np.array_equal(np.array(room), before))
        negative = torch.zeros(1, 6, dtype=torch.complex128).conj().imag
        with self.assertRaisesRegex(addend.InvalidArgument, "contributions is a Tensor without"):
            plan.attribute_into(self.row, contributions=negative)
        with self.assertRaisesRegex(addend.InvalidArgument, "sums is a ndarray without"):
            plan.attribute_into(self.row, contributions=np.zeros((1, 6)), sums=reversed_[:, :3])
        tensor = torch.zeros(1, 6, dtype=torch.float64)
        plan.attribute_into(self.row, contributions=tensor)
        self.assertEqual(tensor[0].tolist(), list(other[0].contributions))

    def test_sends_warnings_to_the_log(self):
        lines = []
        context = addend.Context(log=lambda level, text: lines.append(text))
        model = scripted(Warns())
        row = np.ones((1, 4), dtype=np.float32)
        plan = model.plan(addend.Input(row, dims=1, baseline=0.25), targets="0,1", context=context)
        for run in (
            lambda: plan.attribute(row),
            lambda: plan.attribute_into(row, contributions=np.zeros((1, 4))),
        ):
            lines.clear()
            run()
            self.assertTrue(any("resized" in line for line in lines), lines)

    def test_can_be_cancelled(self):
        model = scripted(Slow())
        rows = np.random.RandomState(0).rand(300, 128).astype(np.float32)
        stages = []
        context = addend.Context(progress=lambda stage, done, total: stages.append((stage, done, total)))
        plan = model.plan(
            addend.Input(rows[:1], dims=1, baseline=0.3), targets="1", each_example=True, context=context
        )
        for rows in (rows[:1], rows[:2]):
            stages.clear()
            plan.attribute(rows)
            self.assertGreater(sum(stage == "trace" for stage, _, _ in stages), 200)

    def test_says_what_explain_says_of_wrong_ids(self):
        model = scripted(Ids())
        ids = np.array([[1, 2, 3]])
        plan = model.plan(addend.Input(ids, dims=1, baseline=0), targets="0,1")
        messages = []
        for run in (
            lambda: model.explain(addend.Input(ids + 3, dims=1, baseline=0), targets="0,1"),
            lambda: plan.attribute(ids + 3),
        ):
            with self.assertRaises(addend.InvalidArgument) as caught:
                run()
            messages.append(caught.exception.message)
        self.assertEqual(messages[0], messages[1])

    def test_refuses_other_sizes_branches_and_numbers(self):
        plan = self.model.plan(self.asked(self.row), targets="0,1")
        with self.assertRaisesRegex(addend.InvalidArgument, "the plan is for f64"):
            plan.attribute(np.zeros((3, 6)))
        with self.assertRaisesRegex(addend.InvalidArgument, "the plan is for f64"):
            plan.attribute(self.row.astype(np.float32))
        with self.assertRaisesRegex(addend.FailedPrecondition, "does not hold for this input"):
            plan.attribute(self.other)
        with self.assertRaisesRegex(addend.InvalidArgument, "NaN or infinity"):
            plan.attribute(self.row * np.nan)
        with self.assertRaisesRegex(ValueError, "closed"):
            plan.close()
            plan.attribute(self.row)

    def test_takes_other_numbers_of_examples(self):
        model = addend.load_model(MODELS + "mlp.pt", dtype="float64")
        rows = np.asarray(addend.read_tensors(MODELS + "mlp.safetensors")["table"], dtype=np.float64)
        plan = model.plan(addend.Input(rows, dims=1, baseline=0.1), targets="1", each_example=True)
        for count in (1, 2, 5):
            batch = np.tile(rows, (3, 1))[:count] * 1.5
            expected = model.explain(addend.Input(batch, dims=1, baseline=0.1), targets="1", each_example=True)
            self.assertEqual(parts(plan.attribute(batch)), parts(expected))

    def test_a_baseline_of_a_file_or_a_buffer_stays(self):
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = torch.nn.Linear(6, 2)
                self.register_buffer("usual", torch.full((6,), 0.25))

            def forward(self, x):
                return self.linear(x).tanh()

        torch.manual_seed(0)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path, rows = folder.name + "/net.pt", folder.name + "/rows.npy"
        torch.jit.save(torch.jit.script(Net()), path)
        np.save(rows, np.full((3, 6), 0.25, np.float32))
        model, row = addend.load_model(path), np.arange(6, dtype=np.float32)[None]
        expected = model.explain(addend.Input(row, dims=1, baseline=0.25), targets="0,1")[0].contributions
        for baseline in ("mean:" + rows, "buffer:usual"):
            plan = model.plan(addend.Input(row, dims=1, baseline=baseline), targets="1", each_example=True)
            if baseline.startswith("mean"):
                np.save(rows, np.ones((3, 6), np.float32))
            for count in (1, 2):  # the second is another size, which is recorded then
                found = plan.attribute(np.repeat(row, count, 0))
                self.assertEqual(found[0].contributions, expected)

    def test_live_models(self):
        torch.manual_seed(0)
        module = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)).double().eval()
        live = addend.compile(module)
        plan = live.plan(addend.Input(torch.from_numpy(self.row), dims=1, baseline=0.25), targets="0,1")
        for factor in (1, 0.5):
            row = torch.from_numpy(self.row * factor)
            expected = live.explain(addend.Input(row, dims=1, baseline=0.25), targets="0,1")
            found = plan.attribute(row)
            self.assertEqual(parts(found), parts(expected))
            self.assertEqual(found[0].value, module(row)[0, 1].item())
        with torch.no_grad():
            module[0].weight.mul_(2)
        with self.assertRaisesRegex(addend.FailedPrecondition, "0.weight was written or replaced since the plan was made"):
            plan.attribute(row)
        plan = live.plan(addend.Input(row, dims=1, baseline=0.25), targets="0,1")
        module[0].weight = torch.nn.Parameter(module[0].weight.detach().clone())
        with self.assertRaisesRegex(addend.FailedPrecondition, "0.weight was written or replaced since the plan was made"):
            plan.attribute(row)

    def test_live_models_that_became_others(self):
        def planned(module):
            return addend.compile(module).plan(addend.Input(row, dims=1, baseline=0.25), targets="0,1")

        def data(module):
            module[0].weight.data = module[0].weight.data * 2

        def remake(module):
            module[0].weight = torch.nn.Parameter(module[0].weight.detach().clone())

        def buffers(module):
            module[2].running_mean = module[2].running_mean + 1

        def last(module):
            module._modules["1"] = module._modules.pop("1")

        row = torch.from_numpy(self.row)
        changes = {
            "3 was written or replaced": lambda module: module.__setitem__(3, torch.nn.Linear(8, 3).double()),
            "4 was written or replaced": lambda module: module.append(torch.nn.Linear(3, 3).double()),
            "0.weight was written or replaced": data,
            "0.weight was": remake,
            "2.running_mean was": buffers,
            "1 was given another mode": lambda module: module[1].train(),
            "1 was given .* other hooks": lambda module: module[1].register_forward_hook(lambda *_: None),
            "0 was given .* other hooks": lambda module: module[0].register_forward_pre_hook(lambda *_: None),
            "0.weight was written or": lambda module: module.float(),
            "the order of what the model holds": last,
            "0.bias was written or replaced": lambda module: setattr(module[0], "bias", None),
        }
        for message, change in changes.items():
            torch.manual_seed(0)
            module = torch.nn.Sequential(
                torch.nn.Linear(6, 8), torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 3)
            )
            plan = planned(module.double().eval())
            plan.attribute(row)
            change(module)
            with self.subTest(message), self.assertRaisesRegex(addend.FailedPrecondition, "^" + message):
                plan.attribute(row)
            with self.subTest(message), self.assertRaisesRegex(addend.FailedPrecondition, "since the plan was made"):
                plan.attribute_into(row, contributions=np.zeros((1, 6)))

    def test_live_models_made_for_inference(self):
        module = Cached().eval()
        row = torch.from_numpy(self.row)
        with torch.inference_mode():
            module(row)
        self.assertTrue(module.factor.is_inference())
        live = addend.compile(module)
        with torch.no_grad():
            plan = live.plan(addend.Input(row, dims=1, baseline=0.25), targets="0,1")
            expected = live.explain(addend.Input(row * 0.5, dims=1, baseline=0.25), targets="0,1")
            self.assertEqual(parts(plan.attribute(row * 0.5)), parts(expected))

    def test_live_models_that_read_by_dlpack(self):
        live = addend.compile(ReadsByDlpack())
        row = torch.tensor([[1.0, 2, 3, 4]])
        plan = live.plan(addend.Input(row, dims=1, baseline=torch.tensor([[0.0, 0, 0, 1]])), targets="0,1")
        with self.assertRaisesRegex(addend.FailedPrecondition, "elements_read_outside"):
            plan.attribute(row.flip(1))

        # Memory that Addend itself shares this way, as it does on a GPU, does not count as read by the model.
        def shares(x):
            dlpack_capsule(x.detach())
            return x * 2

        report = addend.compile(shares).explain(addend.Input(row, dims=1, baseline=0.5), targets="0,1").report
        self.assertEqual(report["reference_is_model_on_baseline"], "yes")

    def test_live_models_that_hide_something_are_refused(self):
        class Hides(torch.nn.Module):
            def forward(self, x):
                return x * torch.from_numpy(np.tanh(x.detach().numpy()))

        class Draws(torch.nn.Module):
            def forward(self, x):
                return torch.nn.functional.dropout(x, 0.5, training=True)

        class Counts(torch.nn.BatchNorm1d):
            pass

        row = torch.from_numpy(self.row)
        for module in (Hides(), Draws(), Counts(6).double().train()):
            live = addend.compile(module)
            # Elements that are read outside are seen, and have to be as they were.
            with self.subTest(type(module).__name__), self.assertRaises(addend.FailedPrecondition):
                live.plan(addend.Input(row, dims=1, baseline=0.25), targets="0,1").attribute(row * 0.5)

    def test_threads_share_one(self):
        plan = self.model.plan(self.asked(self.row), targets="0,1")
        expected = parts(self.model.explain(self.asked(self.row * 0.5), targets="0,1"))
        found = []

        def run():
            for _ in range(20):
                found.append(parts(plan.attribute(self.row * 0.5)))

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [expected] * 80)


if __name__ == "__main__":
    unittest.main()
