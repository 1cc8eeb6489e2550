"""Kinds of models: what the table in docs/python.md says works or is refused does so here."""

import collections
import concurrent.futures
import copy
import dataclasses
import io
import multiprocessing.pool
import pickle
import re
import tempfile
import threading
import unittest
from typing import List

import numpy as np
import torch
from torch import nn
from torch.nn.utils import prune
from torch.utils.checkpoint import checkpoint

import addend

SEEN = {}  # the verdict that a test shows, by the kind


def shows(kind, verdict):
    """Marks the test of one row of the table."""

    def mark(test):
        SEEN[kind] = verdict
        return test

    return mark


def small():
    return nn.Sequential(collections.OrderedDict(first=nn.Linear(4, 6), bend=nn.Tanh(), last=nn.Linear(6, 3)))


class Autocast(nn.Module):
    """Multiplies under autocast, or under one that is off, as models do that need the digits."""

    enabled: torch.jit.Final[bool]

    def __init__(self, enabled):
        super().__init__()
        self.enabled = enabled

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.enabled):
            product = x @ x.t()
        return product.float()


def under_autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        product = x @ x.t()
    return product.float()


class CallsAutocast(nn.Module):
    def forward(self, x):
        return under_autocast(x)


class Cache:
    """Keys and values, as decoders keep them."""

    def __init__(self):
        self.layers = []

    def update(self, state):
        self.layers.append(state)
        return state


@dataclasses.dataclass
class Output:
    logits: torch.Tensor
    past: Cache = None
    loss: torch.Tensor = None


class Decoder(nn.Module):
    """Ids and a mask by keyword, a dataclass with a cache object as output."""

    def __init__(self):
        super().__init__()
        self.embedding, self.mix, self.head = nn.Embedding(11, 6), nn.Linear(6, 6), nn.Linear(6, 5)

    def forward(self, input_ids=None, attention_mask=None, use_cache=True):
        hidden = self.embedding(input_ids)
        score = self.mix(hidden) @ hidden.transpose(-1, -2)
        seen = attention_mask[:, None, :].bool() & torch.ones(score.shape[-2:], dtype=torch.bool).tril()
        hidden = score.masked_fill(~seen, torch.finfo(score.dtype).min).softmax(-1) @ hidden
        cache = Cache() if use_cache else None
        return Output(self.head(cache.update(hidden) if cache else hidden), cache)


class Adapted(nn.Module):
    """A linear layer with an adapter of low rank beside it, as PEFT has them."""

    def __init__(self, base, rank=2):
        super().__init__()
        self.base = base
        self.down, self.up = nn.Linear(base.in_features, rank, bias=False), nn.Linear(rank, base.out_features, bias=False)

    def forward(self, x):
        return self.base(x) + 0.5 * self.up(self.down(x))


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.tanh() * 2

    @staticmethod
    def backward(ctx, grad):
        return grad


class Stored(nn.Module):
    """Stands for what ``torch.compile`` returns where PyTorch has none: a wrapper whose forward nobody can see into."""

    def __init__(self, model):
        super().__init__()
        self._orig_mod = model
        self.__dict__["forward"] = self.compiled

    def compiled(self, *args, **kwargs):
        raise AssertionError("compiled code ran")


def wrapped(model):
    return torch.compile(model) if hasattr(torch, "compile") else Stored(model)


class KindsTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(8)
        self.x = torch.randn(2, 4)

    def explained(self, model, x=None, rtol=1e-4, **options):
        """The results, after a look at value and sum."""
        x = self.x if x is None else x
        results = addend.compile(model, **options).decompose(addend.Input(x, dims=1, baseline=0))
        with torch.no_grad():
            expected = model(x).detach().float()
        for part in (results[0].value, results[0].recovery):
            np.testing.assert_allclose(part.to("float32"), expected, rtol=rtol, atol=rtol)
        self.assertGreater(results[0].numc, 1)
        found = addend.attribute(model, x, target=0, **options)
        self.assertEqual(found.shape, x.shape)
        return results

    @shows("`torch.nn.Module`, and any function that computes with PyTorch", "tested")
    def test_modules_and_functions(self):
        self.explained(small())
        self.explained(lambda x: (x * 2).relu() @ torch.ones(4, 3))

    @shows("models of Hugging Face transformers", "tested")
    def test_shape_of_transformers(self):
        model = Decoder().eval()
        ids = torch.tensor([[1, 4, 9, 2]])
        mask = torch.tensor([[1, 1, 1, 0]])
        split = addend.Input(ids, dims=1, baseline=0)
        output = addend.compile(model, outputs="output.logits")(input_ids=split, attention_mask=mask)
        self.assertIsInstance(output, Output)
        self.assertIsInstance(output.past, Cache)
        with torch.no_grad():
            expected = model(ids, mask).logits
        np.testing.assert_allclose(output.logits.recovery, expected, rtol=1e-4, atol=1e-5)
        self.assertIsNone(output.loss)

    @shows("TorchScript modules, files or live", "tested")
    def test_torchscript(self):
        self.explained(torch.jit.script(small()))
        self.explained(nn.Sequential(torch.jit.trace(small(), self.x), nn.ReLU()))

    @shows("`torch.fx.GraphModule`", "tested")
    def test_graph_modules(self):
        self.explained(torch.fx.symbolic_trace(small()))

    @shows("weights in bfloat16", "tested")
    def test_bfloat16(self):
        results = self.explained(small().bfloat16(), self.x.bfloat16(), rtol=0.05)
        self.assertEqual((results[0].dtype, results[0].components.dtype), ("bfloat16", "float32"))

    @shows("weights in float16", "as LibTorch")
    def test_float16(self):
        model, x = small().half(), self.x.half()
        try:
            model(x)
        except RuntimeError as error:  # older LibTorchs have no such operators on the CPU, which is what is said
            with self.assertRaisesRegex(RuntimeError, re.escape(str(error).split("\n")[0])):
                addend.compile(model)(addend.Input(x, 1))
        else:
            self.explained(model, x, rtol=0.02)

    @shows("adapters (LoRA), written with modules", "tested")
    def test_adapters(self):
        model = small()
        model.first = Adapted(model.first)
        self.explained(model)

    @shows("weight norm, pruning, parametrizations", "tested")
    def test_parametrizations(self):
        model = small()
        nn.utils.weight_norm(model.first)
        nn.utils.parametrizations.orthogonal(model.last)
        self.explained(model)
        model = small()
        prune.l1_unstructured(model.first, "weight", 0.5)
        self.explained(model)

    @shows("hooks that change what modules give", "tested")
    def test_hooks(self):
        model = small()
        model.bend.register_forward_hook(lambda module, args, output: output * 3)
        self.explained(model)

    @shows("activation checkpointing, `torch.autograd.Function`", "tested")
    def test_checkpoints_and_functions_of_autograd(self):
        model = small()
        self.explained(lambda x: checkpoint(model, x, use_reentrant=True))
        self.explained(lambda x: checkpoint(model, x, use_reentrant=False))
        self.explained(lambda x: Doubled.apply(model(x)))

    @shows("dropout and batch norm in training mode", "tested, with notes")
    def test_training_mode(self):
        model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Dropout(0.5)).train()
        results = addend.compile(model).decompose(addend.Input(self.x, 1, baseline=0))
        np.testing.assert_allclose(results[0].recovery, results[0].value, atol=1e-4)
        self.assertTrue([note for note in results.notes if "random" in note], results.notes)

    @shows("`nn.DataParallel` with one replica", "tested")
    def test_data_parallel(self):
        self.explained(nn.DataParallel(small()))

    @shows("`DistributedDataParallel`", "tested")
    def test_distributed_data_parallel(self):
        if not torch.distributed.is_available():
            self.skipTest("this PyTorch is built without torch.distributed")
        with tempfile.TemporaryDirectory() as folder:
            torch.distributed.init_process_group("gloo", init_method="file://%s/peers" % folder, rank=0, world_size=1)
            try:
                self.explained(nn.parallel.DistributedDataParallel(small()))
            finally:
                torch.distributed.destroy_process_group()

    @shows("models and submodules under `torch.compile`", "tested, run uncompiled")
    def test_compiled_submodules(self):
        model = small()
        expected = addend.compile(small_like(model)).decompose(addend.Input(self.x, 1, baseline=0))
        outer = wrapped(model)
        inner = nn.Sequential(wrapped(model[:2]), model[2])
        own = nn.Sequential(model[0], nn.Sequential(model[1], model[2]))
        # Module.compile() leaves this attribute behind, which Module.__call__ then runs.
        own[1].__dict__["_compiled_call_impl"] = lambda *args: self.fail("compiled code ran")
        for network, name in ((outer, "the model"), (inner, "0"), (own, "1")):
            with self.subTest(name):
                before = dict(network[0].__dict__ if network is inner else network.__dict__)
                results = addend.compile(network).decompose(addend.Input(self.x, 1, baseline=0))
                np.testing.assert_array_equal(results[0].components, expected[0].components)
                self.assertIn("torch.compile wraps %s, which ran as it is inside, uncompiled" % name, results.notes)
                program = addend.compile(network).record(self.x)
                np.testing.assert_array_equal(program.replay(self.x)[0], expected[0].value)
                # All is as it was.
                after = network[0].__dict__ if network is inner else network.__dict__
                self.assertEqual({key: after[key] for key in before}.keys(), before.keys())
        self.assertIsNotNone(own[1].__dict__["_compiled_call_impl"])
        if not hasattr(torch, "compile"):
            with self.assertRaisesRegex(AssertionError, "compiled code ran"):
                inner(self.x)

    @shows("`torch.cond`, `while_loop`, `scan`, `map` inside a model", "refused")
    def test_higher_order_operators(self):
        # Stand-in for an exception that PyTorch's versions raise where a model calls one of these operators; this
        # version has none of it.
        class UncapturedHigherOrderOpError(RuntimeError):
            pass

        def refuses(error):
            def model(x):
                raise error

            return model

        no_rule = NotImplementedError("There was no rule registered for HigherOrderOperator cond and mode")
        for error in (UncapturedHigherOrderOpError("Got graph break"), no_rule):
            with self.assertRaisesRegex(addend.Unimplemented, "torch.export.save") as caught:
                addend.compile(refuses(error))(addend.Input(torch.randn(3), 0))
            self.assertIs(caught.exception.__cause__, error)
        try:
            addend.compile(refuses(no_rule))(addend.Input(torch.randn(3), 0))
        except addend.Unimplemented:
            output = addend.compile(lambda x: x * 2)(addend.Input(torch.ones(1), 0))
        self.assertEqual(output.recovery.item(), 2, "the trace has ended while its error is at hand")
        with self.assertRaisesRegex(NotImplementedError, "^mine$") as caught:
            addend.compile(refuses(NotImplementedError("mine")))(addend.Input(torch.randn(3), 0))
        self.assertNotIsInstance(caught.exception, addend.Error)

    @shows("threads that the model starts", "refused")
    def test_lists_in_torchscript(self):
        class Smallest(nn.Module):
            def forward(self, x: torch.Tensor):
                listed: List[float] = x.view(-1).tolist()
                return x * sorted(listed)[0]

        class Around(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = torch.jit.script(Smallest())

            def forward(self, x):
                return self.inner(x) + 1

        source = addend.Input(self.x, 1, baseline=self.x.flip(1) - 2)
        for model, name in ((torch.jit.script(Smallest()), "itself"), (Around(), "inner")):
            for results in (addend.compile(model).decompose(source), addend.compile(model).explain(source, targets="0,1")):
                self.assertEqual(results.report["reference_is_model_on_baseline"], "unknown")
                self.assertIn("the TorchScript module %s takes a list" % name, "\n".join(results.notes))
            with self.assertRaises(addend.FailedPrecondition):
                addend.compile(model).plan(source, targets="0,1")
        results = addend.compile(torch.jit.script(small())).decompose(source)
        self.assertEqual(results.report["reference_is_model_on_baseline"], "yes")

    def test_threads(self):
        model = small()

        def elsewhere_of(function, x):
            given = []
            thread = threading.Thread(target=lambda: given.append(function(x)))
            thread.start()
            thread.join()
            return given[0]

        def elsewhere(x):
            return elsewhere_of(model, x)

        with self.assertRaisesRegex(addend.Unimplemented, r"model\.\w+ ran on another thread"):
            addend.compile(elsewhere)(addend.Input(self.x, 1))
        message = "only what LibTorch computes on the thread of the trace is seen, not what other threads or compiled code"
        with self.assertRaisesRegex(addend.NotFound, message):
            addend.compile(lambda x: elsewhere_of(torch.tanh, x))(addend.Input(self.x, 1))

        class Threaded(nn.Module):
            def __init__(self, run):
                super().__init__()
                self.inner = model
                self.run = run

            def forward(self, x):
                return x[:, :3] + self.run(x)

        source = addend.Input(self.x, 1, baseline=0)
        with concurrent.futures.ThreadPoolExecutor(1) as pool, multiprocessing.pool.ThreadPool(1) as other:
            ways = {
                "thread": elsewhere,
                "executor": lambda x: pool.submit(model, x).result(),
                "map": lambda x: list(pool.map(model, [x]))[0],
                "pool": lambda x: other.apply(model, (x,)),
                "map of a pool": lambda x: other.map(model, [x])[0],
            }
            for name, run in ways.items():
                traced = addend.compile(Threaded(run))
                calls = {
                    "decompose": lambda: traced(source),
                    "explain": lambda: traced.explain(source, targets="0,1"),
                    "attribute": lambda: traced.attribute(self.x, target=1),
                    "record": lambda: traced.record(self.x),
                }
                for call, refused in calls.items():
                    with self.subTest(name, call=call):
                        with self.assertRaisesRegex(addend.Unimplemented, "^inner.last ran on another thread, where no"):
                            refused()
                with self.subTest(name, call="plan"), self.assertRaises(addend.FailedPrecondition):
                    traced.plan(source, targets="0,1")
            # A function that a thread runs says no name; nobody can tell what it computes.
            traced = addend.compile(lambda x: x + pool.submit(lambda: x.detach() * 10).result())
            results = traced.decompose(source)
            self.assertEqual(results.report["reference_is_model_on_baseline"], "unknown")
            notes = "\n".join(results.notes)
            self.assertIn("the model gave work to another thread", notes)
            self.assertIn("kinds_test.py", notes)
            with self.assertRaisesRegex(addend.FailedPrecondition, "elements_read_outside"):
                traced.record(self.x).replay(self.x + 1)
        self.assertEqual(threading.Thread.start.__module__, "threading")
        # Another thread may run the same model meanwhile.
        beside = addend.compile(lambda x: model(x) + elsewhere_of(torch.tanh, x).sum() * 0)
        results = beside.decompose(addend.Input(self.x, 1))
        self.assertEqual(len(results), 1)
        with self.assertRaisesRegex(addend.Unimplemented, r"model\.\w+ ran on another thread"):
            addend.compile(lambda x: model(x) + elsewhere(x).detach().sum() * 0)(addend.Input(self.x, 1))
        asked, answered = threading.Event(), threading.Event()

        def other_user():
            asked.wait(60)
            model(self.x)
            answered.set()

        def waits(x):
            asked.set()
            answered.wait(60)
            return model(x)

        thread = threading.Thread(target=other_user)
        thread.start()
        results = addend.compile(Threaded(waits)).decompose(source)
        thread.join()
        self.assertTrue(answered.is_set())
        self.assertEqual(results.report["reference_is_model_on_baseline"], "yes")

    @shows("autocast", "refused")
    def test_autocast(self):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            with self.assertRaisesRegex(addend.FailedPrecondition, "autocast is on, .*leave it, and convert the model"):
                addend.compile(small())(addend.Input(self.x, 1))
            with self.assertRaisesRegex(addend.FailedPrecondition, "autocast is on"):
                with addend.tracing(addend.Input(self.x, 1)):
                    self.fail("the block ran")

    def test_files_that_enter_autocast(self):
        def loaded(model):
            file = io.BytesIO()
            torch.jit.save(torch.jit.script(model), file)
            return addend.load_model(file.getvalue())

        for model in (Autocast(True), nn.Sequential(nn.Linear(4, 4), Autocast(True)), CallsAutocast()):
            with self.assertRaisesRegex(addend.Unimplemented, "autocast, which casts behind the operators; save it without"):
                loaded(model)
        # One that is off is none.
        self.assertTrue(torch.equal(loaded(Autocast(False)).run(self.x)[0].torch(), self.x @ self.x.t()))

    @shows("quantized weights", "refused")
    def test_quantized(self):
        model = torch.quantization.quantize_dynamic(small(), {nn.Linear}, dtype=torch.qint8)
        with self.assertRaisesRegex(addend.Error, r"quantized::linear_dynamic"):
            addend.compile(model)(addend.Input(self.x, 1))

    @shows("sparse and nested tensors", "refused")
    def test_sparse(self):
        with self.assertRaisesRegex(addend.Error, "(?=.*aten::).*not dense"):
            addend.compile(lambda x: torch.sparse.mm(torch.eye(2).to_sparse(), x))(addend.Input(self.x, 1))

    @shows("NumPy in the middle of a model", "told in a note")
    def test_numpy_in_the_middle(self):
        def model(x):
            return x + torch.from_numpy(np.tanh((x * 2).detach().numpy()))

        results = addend.compile(model).decompose(addend.Input(self.x, 1, baseline=0))
        self.assertTrue([note for note in results.notes if "numpy" in note.lower() or "read" in note], results.notes)

    def test_memory_that_no_operator_filled(self):
        def saved(x):
            file = io.BytesIO()
            torch.save(x.detach(), file)
            file.seek(0)
            return torch.load(file)

        def copied(x):
            own = torch.zeros_like(x)
            own.storage().copy_(x.clone().storage())
            return own

        dlpack = torch.utils.dlpack
        ways = {
            "dlpack": lambda x: dlpack.from_dlpack(dlpack.to_dlpack(x.detach())),
            "pickle": lambda x: pickle.loads(pickle.dumps(x.detach())),
            "save": saved,
            "copy": lambda x: copy.deepcopy(x.detach()),
            "storage": copied,
        }
        for name, way in ways.items():
            with self.subTest(name):
                traced = addend.compile(lambda x: x + 10 * way(x))
                results = traced.decompose(addend.Input(self.x, 1, baseline=0))
                self.assertEqual(results.report["reference_is_model_on_baseline"], "unknown")
                self.assertIn("the model reads numbers that depend on the input", "\n".join(results.notes))
                with self.assertRaisesRegex(addend.Error, "elements_read_outside|an argument that is a Storage"):
                    traced.record(self.x).replay(self.x + 1)
        self.assertIs(dlpack.to_dlpack, torch.to_dlpack)  # nothing is left behind

    @shows("models of other libraries", "refused")
    def test_other_libraries(self):
        class Forest:
            def predict(self, x):
                return x

        with self.assertRaisesRegex(TypeError, "model must be callable, not Forest"):
            addend.compile(Forest())


def small_like(model):
    other = small()
    other.load_state_dict(model.state_dict())
    return other


class TableTest(unittest.TestCase):
    def test_the_table_says_what_is_tested(self):
        with open("docs/python.md", encoding="utf-8") as file:
            table = file.read().split("## Kinds of models")[1].split("\n## ")[0]
        rows = re.findall(r"^\| (.+?) \| \*{0,2}(.+?)\*{0,2} \|", table, re.MULTILINE)
        told = {kind: verdict for kind, verdict in rows if kind != "kind"}
        self.assertEqual({kind: verdict for kind, verdict in told.items() if verdict != "unknown"}, SEEN)
        self.assertIn("unknown", told.values())


if __name__ == "__main__":
    unittest.main()
