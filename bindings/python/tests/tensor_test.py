"""Tensors in and out without copies."""

import array
import gc
import sys
import unittest
import weakref

import numpy as np
import torch

import addend


def address(array):
    return array.__array_interface__["data"][0]


class FromPythonTest(unittest.TestCase):
    def test_numpy_is_shared(self):
        source = np.arange(6, dtype=np.float32).reshape(2, 3)
        tensor = addend.as_tensor(source)
        self.assertEqual(address(tensor.numpy()), address(source))
        source[1, 2] = 42
        self.assertEqual(tensor[1, 2].item(), 42)

    def test_torch_is_shared(self):
        source = torch.arange(6.0).reshape(2, 3)
        tensor = addend.as_tensor(source)
        self.assertEqual(tensor.torch().data_ptr(), source.data_ptr())
        source[1, 2] = 42
        self.assertEqual(tensor[1, 2].item(), 42)

    def test_the_buffer_protocol_is_shared(self):
        source = array.array("d", [1, 2, 3])
        tensor = addend.as_tensor(source)
        self.assertEqual((tensor.dtype, tensor.shape), ("float64", (3,)))
        source[1] = 42
        self.assertEqual(tensor.tolist(), [1, 42, 3])
        with self.assertRaises(BufferError, msg="the exporter does not know that its memory is in use"):
            source.append(4)
        tensor.close()
        source.append(4)

    def test_strides_are_kept(self):
        source = np.arange(24, dtype=np.int64).reshape(4, 6)
        for view in (source.T, source[1:3, ::2], source[:, 3], np.broadcast_to(source[0], (3, 6))):
            tensor = addend.as_tensor(view)
            np.testing.assert_array_equal(tensor, view)
        transposed = addend.as_tensor(source.T)
        source[3, 5] = -1
        self.assertEqual(transposed[5, 3].item(), -1)

    def test_strides_and_bytes_are_those_of_numpy(self):
        array = np.arange(6, dtype=np.float64).reshape(2, 3)
        for given in (array, array.T, array[:, 1:], np.zeros(())):
            tensor = addend.as_tensor(given)
            self.assertEqual((tensor.strides, tensor.nbytes), (given.strides, given.nbytes))

    def test_strides_that_tensors_do_not_have_are_copied(self):
        source = np.arange(6, dtype=np.float32)
        np.testing.assert_array_equal(addend.as_tensor(source[::-1]), source[::-1])
        records = np.zeros(3, dtype=[("flag", "u1"), ("number", "<f4")])
        records["number"] = [1, 2, 3]
        np.testing.assert_array_equal(addend.as_tensor(records["number"]), [1, 2, 3])

    def test_all_dtypes(self):
        for dtype in (np.uint8, np.int8, np.int16, np.int32, np.int64, np.float16, np.float32, np.float64, np.bool_,
                      np.complex64, np.complex128):
            with self.subTest(dtype=dtype.__name__):
                source = np.array([[1, 0], [1, 1]], dtype)
                tensor = addend.as_tensor(source)
                self.assertEqual(tensor.dtype, np.dtype(dtype).name)
                self.assertEqual(tensor.numpy().dtype, dtype)
                np.testing.assert_array_equal(tensor, source)
                torch.testing.assert_close(tensor.torch(), torch.from_numpy(source))
                self.assertEqual(addend.as_tensor(torch.from_numpy(source)).dtype, tensor.dtype)

    def test_bfloat16_comes_from_torch(self):
        tensor = addend.as_tensor(torch.tensor([1.5, 2]).bfloat16())
        self.assertEqual(tensor.dtype, "bfloat16")
        self.assertEqual(tensor.tolist(), [1.5, 2])
        with self.assertRaisesRegex(TypeError, "float32"):
            tensor.numpy()
        np.testing.assert_array_equal(tensor.to("float32"), [1.5, 2])

    def test_read_only_arrays(self):
        source = np.ones(3, np.float32)
        source.flags.writeable = False
        self.assertEqual(address(addend.as_tensor(source).numpy()), address(source))

    def test_parameters_and_conjugates(self):
        self.assertEqual(addend.as_tensor(torch.nn.Parameter(torch.ones(2))).tolist(), [1, 1])
        np.testing.assert_array_equal(addend.as_tensor(torch.tensor([1 + 2j]).conj()), [1 - 2j])

    def test_numbers_and_lists(self):
        for value, dtype, shape in [
            (2.5, "float32", ()),
            (3, "int64", ()),
            (True, "bool", ()),
            ([[1, 2.5], [3, 4]], "float32", (2, 2)),
            ([True, False], "bool", (2,)),
            ([], "float32", (0,)),
            ([[], []], "float32", (2, 0)),
        ]:
            tensor = addend.as_tensor(value)
            self.assertEqual((tensor.dtype, tensor.shape), (dtype, shape))
            np.testing.assert_array_equal(tensor, np.asarray(value))

    def test_what_is_no_tensor(self):
        for value in (None, "text", object(), {"a": 1}, [1, "two"], np.array(["text"]), np.array([object()]),
                      np.array([1], ">f8"), torch.float32):
            with self.subTest(value=value), self.assertRaises(TypeError):
                addend.as_tensor(value)
        with self.assertRaisesRegex(ValueError, "the same lengths"):
            addend.as_tensor([[1], [1, 2]])
        # NumPy's own, by its buffers or, in newer ones, by DLPack: it hands out no memory of times.
        with self.assertRaises((BufferError, addend.InvalidArgument)):
            addend.as_tensor(np.array([1], "datetime64[s]"))

    def test_memory_lives_as_long_as_the_tensor(self):
        class Watched(np.ndarray):
            pass

        source = np.ones(3, np.float32).view(Watched)
        watch = weakref.ref(source)
        tensor = addend.as_tensor(source)
        del source
        gc.collect()
        self.assertIsNotNone(watch())
        composition = addend.Composition.diagonal(tensor, 0)
        tensor.close()
        del composition
        gc.collect()
        self.assertIsNone(watch())


class ToPythonTest(unittest.TestCase):
    def setUp(self):
        self.tensor = addend.Composition.diagonal(np.float32([1, 2, 3]), 0).components

    def test_all_views_are_one_memory(self):
        pointer = address(self.tensor.numpy())
        self.assertEqual(address(np.asarray(self.tensor)), pointer)
        self.assertEqual(address(np.from_dlpack(self.tensor)), pointer)
        self.assertEqual(self.tensor.torch().data_ptr(), pointer)
        self.assertEqual(torch.from_dlpack(self.tensor).data_ptr(), pointer)
        self.assertEqual(address(np.asarray(self.tensor.memoryview())), pointer)

    def test_views_outlive_the_tensor(self):
        views = [self.tensor.numpy(), self.tensor.torch(), self.tensor.memoryview(), np.from_dlpack(self.tensor)]
        self.tensor.close()
        self.tensor = None
        gc.collect()
        scratch = [np.full(9, -1, np.float32) for _ in range(100)]  # would land in freed memory
        for view in views:
            np.testing.assert_array_equal(view, np.diag([1, 2, 3]))
        del scratch

    def test_views_are_read_only(self):
        with self.assertRaises(ValueError):
            self.tensor.numpy()[0, 0] = 5
        with self.assertRaises(TypeError):
            self.tensor.memoryview()[0, 0] = 5

    def test_capsules(self):
        gc.collect()  # what earlier tests left must not go while this one counts
        live = addend._native.debug_live(addend._native.HANDLE_DLPACK)
        unused = self.tensor.__dlpack__()
        self.assertEqual(addend._native.debug_live(addend._native.HANDLE_DLPACK), live + 1)
        del unused
        self.assertEqual(addend._native.debug_live(addend._native.HANDLE_DLPACK), live)
        capsule = self.tensor.__dlpack__()
        again = addend.Tensor(addend._native.tensor_from_dlpack(capsule))
        self.assertEqual(address(again.numpy()), address(self.tensor.numpy()))
        with self.assertRaisesRegex(ValueError, "unused capsule"):
            addend._native.tensor_from_dlpack(capsule)
        versioned = self.tensor.__dlpack__(max_version=(1, 0))
        self.assertIn("dltensor_versioned", repr(versioned))
        np.testing.assert_array_equal(addend.Tensor(addend._native.tensor_from_dlpack(versioned)), self.tensor)
        self.assertEqual(self.tensor.__dlpack_device__(), (1, 0))
        with self.assertRaises(BufferError):
            self.tensor.__dlpack__(dl_device=(2, 0))

    def test_a_tensor_of_numpy_converts(self):
        np.testing.assert_array_equal(np.asarray(self.tensor, dtype=np.float64), np.diag([1.0, 2, 3]))
        copy = np.array(self.tensor)
        copy[0, 0] = 9
        self.assertEqual(self.tensor[0, 0].item(), 1)

    def test_not_contiguous(self):
        tensor = addend.as_tensor(np.arange(6, dtype=np.float32).reshape(2, 3).T)
        np.testing.assert_array_equal(tensor.numpy(), [[0, 3], [1, 4], [2, 5]])
        self.assertEqual(tensor.tolist(), [[0, 3], [1, 4], [2, 5]])

    def test_empty(self):
        tensor = addend.as_tensor(np.zeros((2, 0), np.float32))
        self.assertEqual(tensor.numpy().shape, (2, 0))
        self.assertEqual(tensor.torch().shape, (2, 0))
        self.assertEqual(tensor.memoryview().nbytes, 0)

    def test_one_number(self):
        tensor = self.tensor[1, 1]
        self.assertEqual((float(tensor), int(tensor), bool(tensor), tensor.item()), (2.0, 2, True, 2.0))
        with self.assertRaisesRegex(ValueError, "has 9"):
            float(self.tensor)
        with self.assertRaises(TypeError):
            len(tensor)

    def test_closed_tensors_say_so(self):
        self.tensor.close()
        for ask in (lambda: self.tensor.shape, lambda: self.tensor.tolist(), lambda: self.tensor.numpy()):
            with self.assertRaisesRegex(ValueError, "Tensor is closed"):
                ask()

    def test_prints_as_pytorch_does(self):
        self.assertEqual(repr(addend.as_tensor([1.0, 2.5])), repr(torch.tensor([1.0, 2.5])))

    @unittest.skipIf(sys.version_info < (3, 12), "classes have __buffer__ from Python 3.12 on")
    def test_memoryview(self):
        self.assertEqual(memoryview(self.tensor).tolist(), self.tensor.tolist())
