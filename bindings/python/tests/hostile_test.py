"""Whatever is passed, an exception comes back: never a crash, and never a wrong answer."""

import gc
import unittest

import numpy as np
import torch

import addend
from addend import _native

X = addend.Composition.diagonal([1.0, 2.0, 3.0], 0)
# Exceptions that an argument that makes no sense may raise.
EXPECTED = (addend.Error, TypeError, ValueError, OverflowError, IndexError)


class NativeTest(unittest.TestCase):
    """The private module is reached by mistake only, but mistakes must not crash either."""

    JUNK = (None, 5, -1, 2**70, 1.5, "text", "\udc80", "nul\0", b"bytes", [], [1, "two"], object(), X, X._handle)

    def test_every_function_with_junk(self):
        skipped = {"set_num_threads"}  # it would do as told
        functions = [name for name in dir(_native) if callable(getattr(_native, name)) and name not in skipped]
        functions = [name for name in functions if not name.startswith(("_", "SWIG", "Swig"))]
        self.assertGreater(len(functions), 80)
        for name in functions:
            function = getattr(_native, name)
            for count in range(6):
                for junk in self.JUNK:
                    try:
                        function(*[junk] * count)
                    except EXPECTED + (NotImplementedError, MemoryError, SystemError) as error:
                        self.assertNotIsInstance(error, SystemError, "%s left no exception" % name)

    def test_handles_are_not_mixed_up(self):
        request = _native.request_create()
        with self.assertRaisesRegex(TypeError, "expected an addend_tensor, got PyCapsule"):
            _native.tensor_num_dims(request)
        with self.assertRaisesRegex(TypeError, "expected an addend_composition, got int"):
            _native.composition_numc(42)


class FaceTest(unittest.TestCase):
    def test_arguments_that_do_not_fit(self):
        model = addend.compile(torch.tanh)
        big = 2**62
        for call in [
            lambda: addend.Composition([1.0], [1.0, 2.0]),
            lambda: addend.Composition(5.0),
            lambda: addend.Composition(None),
            lambda: addend.Composition([[1, 2]]),
            lambda: addend.Composition("text"),
            lambda: addend.Composition.diagonal([1.0], 1),
            lambda: addend.Composition.diagonal([1.0], [0, 0]),
            lambda: addend.Composition.diagonal([1.0], 2**80),
            lambda: addend.Composition.diagonal([1.0], 0.5),
            lambda: addend.Composition.diagonal([1.0], 0, numc=0),
            lambda: addend.Composition.diagonal([1.0], 0, numc=big),
            lambda: addend.Composition.diagonal([1.0], 0, offset=-5),
            lambda: addend.Composition.diagonal([1.0], 0, offset=big),
            lambda: addend.Composition.diagonal([1.0], 0, baseline=[1.0, 2.0]),
            lambda: addend.Composition.from_labels([1.0, 2.0], [0, 5], numc=2),
            lambda: addend.Composition.from_labels([1.0, 2.0], [0.5, 1.0]),
            lambda: addend.Composition.from_labels([1.0, 2.0], [0, big]),
            lambda: X.explain("no target"),
            lambda: X.explain(7),
            lambda: X.explain("\0"),
            lambda: X.explain((0, 0, 0)),
            lambda: X.select_components([9]),
            lambda: X.select_components([0.5]),
            lambda: X.expand([big, 3]),
            lambda: X.repeat([big]),
            lambda: X.reshape([-7]),
            lambda: X.softmax("last"),
            lambda: addend.call("", X),
            lambda: addend.call("aten::", X),
            lambda: addend.call("\udc80", X),
            lambda: addend.call(5, X),
            lambda: addend.call("aten::exp"),
            lambda: addend.call("aten::exp", X, X, X),
            lambda: addend.call("aten::exp", X, no_such=1),
            lambda: addend.call("aten::cat", [X, [X]]),
            lambda: addend.call("aten::pow", X, 2**70),
            lambda: addend.Context(overrides={"aten::exp": {"no_such": "choice"}}),
            lambda: addend.Context(overrides={"": {"preset": "fast"}}),
            lambda: addend.Context(tolerance="\0"),
            lambda: addend.load_model(5),
            lambda: addend.load_model("a\0b"),
            lambda: addend.read_tensors("\udc80"),
            lambda: addend.write_tensors("/no/such/folder/x.safetensors", {"a": [1.0]}),
            lambda: addend.write_tensors("/tmp/x.safetensors", {5: [1.0]}),
            lambda: addend.set_num_threads(0),
            lambda: model(addend.Input(torch.ones(2), 5)),
            lambda: model(addend.Input(torch.ones(2), labels=[0, 1, 0])),
            lambda: model(addend.Input(torch.ones(2), parts=torch.ones(2, 3))),
            lambda: model(addend.Input(torch.ones(2), 0, baseline=torch.ones(3))),
            lambda: model(addend.Input(torch.ones(2), 0, first_component=-3)),
            lambda: model(addend.Input("text", 0)),
            lambda: addend.compile(torch.tanh, probes="no.such.module")(addend.Input(torch.ones(2), 0)),
            lambda: addend.compile(torch.tanh, no_such=1)(addend.Input(torch.ones(2), 0)),
            lambda: addend.Results(5)[0],
            lambda: addend.Tensor(X._handle).shape,
        ]:
            with self.subTest(line=call.__code__.co_firstlineno), self.assertRaises(EXPECTED) as caught:
                call()
            text = str(caught.exception)
            self.assertNotIn("\n", text)
            self.assertNotEqual(text, "")

    def test_messages_give_both_numbers(self):
        with self.assertRaisesRegex(addend.InvalidArgument, r"2.*3|3.*2"):
            addend.Composition.diagonal([1.0, 2.0], 0, baseline=[1.0, 2.0, 3.0])

    def test_layouts_that_tensors_do_not_have(self):
        overlapping = np.lib.stride_tricks.as_strided(np.arange(9, dtype=np.float32), (3, 3), (4, 4))
        np.testing.assert_array_equal(addend.as_tensor(overlapping), overlapping)
        unaligned = np.frombuffer(bytes(range(13)), np.uint8)[1:].view(np.float32)
        np.testing.assert_array_equal(addend.as_tensor(unaligned), unaligned)
        sparse = torch.eye(3).to_sparse()
        with self.assertRaises(EXPECTED + (RuntimeError,)):
            addend.as_tensor(sparse)
        empty = addend.as_tensor(torch.empty(3, device="meta"))
        self.assertEqual((empty.shape, str(empty.device)), ((3,), "meta"))
        with self.assertRaises(EXPECTED + (RuntimeError, NotImplementedError)):
            empty.numpy()

    def test_a_dlpack_that_lies(self):
        class Lies:
            def __dlpack__(self, **options):
                return "no capsule"

        with self.assertRaisesRegex(ValueError, "capsule"):
            addend.as_tensor(Lies())

    def test_nan_and_infinity_pass(self):
        x = addend.Composition.diagonal([float("nan"), float("inf"), 1.0], 0)
        np.testing.assert_array_equal((x * 2).recovery.numpy()[2:], [2])

    def test_exceptions_of_python(self):
        for kind, base in [
            (addend.InvalidArgument, ValueError),
            (addend.OutOfRange, IndexError),
            (addend.NotFound, KeyError),
            (addend.Unimplemented, NotImplementedError),
            (addend.ResourceExhausted, MemoryError),
            (addend.Cancelled, RuntimeError),
            (addend.FailedPrecondition, RuntimeError),
        ]:
            self.assertTrue(issubclass(kind, base) and issubclass(kind, addend.Error))
            self.assertEqual(str(kind("what to do")), "what to do")

    def test_exceptions_are_pickled(self):
        import pickle

        with self.assertRaises(addend.NotFound) as caught:
            addend.call("aten::no_such", X)
        error = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((type(error), str(error), error.code), (addend.NotFound, str(caught.exception), 5))

    def test_detail_is_given_where_it_is_asked_for(self):
        for detail in (False, True):
            with self.assertRaises(addend.NotFound) as caught:
                addend.call("aten::no_such", X, context=addend.Context(detail=detail))
            self.assertEqual(caught.exception.detail != "", detail)

    def test_memory_that_there_is_not(self):
        x = addend.Composition.diagonal([1.0, 2.0], 0)
        with self.assertRaises(addend.Error):
            x.repeat([2**40])
        gc.collect()
