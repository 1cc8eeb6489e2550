"""Measures the cost of a call through the Python binding, and whether tensors are copied on the way."""

import timeit

import numpy as np
import torch

import addend
from addend import _native


def nanoseconds(function, count=200_000):
    """Nanoseconds of one call: the best of five rounds."""
    return min(timeit.repeat(function, number=count, repeat=5)) / count * 1e9


def copied(source_address, tensor, size):
    """The bytes that passing a tensor has copied: none, if its elements lie where they were."""
    return 0 if tensor.numpy().__array_interface__["data"][0] == source_address else size


def main():
    array = np.zeros((256, 1024), np.float32)
    live = torch.zeros(256, 1024)
    composition = addend.Composition.diagonal(np.ones(3, np.float32), 0)
    part = composition.components
    out = part.numpy().__array_interface__["data"][0]

    for name, function in [
        ("empty call of the native module", _native.abi_version),
        ("property of a composition (numc)", lambda: composition.numc),
        ("NumPy array in", lambda: addend.as_tensor(array)),
        ("PyTorch tensor in", lambda: addend.as_tensor(live)),
        ("NumPy array out", part.numpy),
        ("PyTorch tensor out", part.torch),
    ]:
        print("%-34s %8.0f ns" % (name, nanoseconds(function, 200_000 if "call" in name else 20_000)))
    for name, bytes_copied in [
        ("NumPy array in", copied(array.__array_interface__["data"][0], addend.as_tensor(array), array.nbytes)),
        ("PyTorch tensor in", copied(live.data_ptr(), addend.as_tensor(live), array.nbytes)),
        ("DLPack in", copied(out, addend.as_tensor(np.from_dlpack(part)), 36)),
        ("DLPack out", 0 if torch.from_dlpack(part).data_ptr() == out else 36),
    ]:
        print("%-34s %8d bytes copied" % (name, bytes_copied))


if __name__ == "__main__":
    main()
