"""Random operations on handles that are live and on handles that were released behind Python's back, as another library
in the process would by mistake. Each tensor holds a number of its own, so that a handle that reaches another owner's
tensor is seen. ADDEND_OPERATIONS says how many operations."""

import ctypes
import os
import random
import unittest

import addend

OPERATIONS = int(os.environ.get("ADDEND_OPERATIONS", "20000"))
MOST = 500  # of each sort at once

_library = ctypes.CDLL(os.path.join(os.path.dirname(addend.__file__), "libaddend.so.1"))
_library.addend_tensor_release.argtypes = [ctypes.c_void_p]
_library.addend_tensor_release.restype = None
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_pointer.restype = ctypes.c_void_p


def address(tensor):
    return _pointer(tensor._handle, b"addend_tensor")


class HandlesTest(unittest.TestCase):
    def setUp(self):
        self.random = random.Random(20261123)
        self.made = 0
        self.live = []  # pairs of a tensor and its number
        self.stale = []  # tensors whose handle was released, and does not know it
        self.closed = []

    def one_of(self, members):
        return members[self.random.randrange(len(members))]

    def drop_one(self, members):
        """Drops an object, which is then collected, and so releases its handle once more."""
        place = self.random.randrange(len(members))
        members[place], members[-1] = members[-1], members[place]
        return members.pop()

    def make(self):
        self.made += 1
        self.live.append((addend.as_tensor([self.made]), self.made))

    def release_behind_its_back(self):
        tensor, _ = self.drop_one(self.live)
        _library.addend_tensor_release(address(tensor))
        self.stale.append(tensor)

    def close(self):
        tensor, number = self.drop_one(self.live)
        self.assertEqual(tensor.item(), number)
        tensor.close()
        self.closed.append(tensor)

    def use_stale(self):
        tensor = self.one_of(self.stale)
        with self.assertRaisesRegex(addend.InvalidArgument, "tensor was released"):
            tensor.to("int64")
        with self.assertRaises(addend.InvalidArgument):
            addend.Composition(tensor)
        _library.addend_tensor_release(address(tensor))

    def use_closed(self):
        with self.assertRaisesRegex(ValueError, "closed"):
            self.one_of(self.closed).to("int64")

    def step(self):
        choice = self.random.randrange(100)
        if choice < 30 or not self.live:
            self.make()
        elif choice < 55:
            tensor, number = self.one_of(self.live)
            self.assertEqual(tensor.item(), number)
        elif choice < 65:
            self.release_behind_its_back()
        elif choice < 75:
            self.close()
        elif choice < 90 and self.stale:
            self.use_stale()
        elif self.closed:
            self.use_closed()
        for members in (self.live, self.stale, self.closed):
            if len(members) > MOST:
                self.drop_one(members)

    def test_released_handles_reach_no_other_owner(self):
        for _ in range(OPERATIONS):
            self.step()
        for tensor, number in self.live:
            self.assertEqual(tensor.item(), number)
