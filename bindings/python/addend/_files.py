"""Tensors in files."""

import os
import stat
from typing import Any, Iterator, List, Mapping, Optional, Union

from . import _native
from ._errors import InvalidArgument
from ._handle import Handle
from ._tensor import Tensor, as_tensor


class TensorFile(Handle, Mapping[str, Tensor]):
    """The tensors of a file by their names; `read_tensors` gives it. That of a ``.npy`` file is called ``""``."""

    __slots__ = ()

    def metadata(self, key: str) -> Optional[str]:
        """The text that the file's metadata has under a key; None if there is no such key."""
        return _native.tensor_file_metadata(self._handle, key)

    def __getitem__(self, name: str) -> Tensor:
        return Tensor(_native.tensor_file_tensor(self._handle, name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return _native.tensor_file_size(self._handle)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and super().__contains__(name)

    def __repr__(self) -> str:
        return "TensorFile(closed)" if self.closed else "TensorFile(%s)" % ", ".join(map(repr, self))

    def _names(self) -> List[str]:
        handle = self._handle
        return [_native.tensor_file_name(handle, index) for index in range(_native.tensor_file_size(handle))]


def read_file(path: Union[str, "os.PathLike[str]"]) -> bytes:
    """The bytes of a regular file, as many as it has now. Raises InvalidArgument for what may have no end, a pipe or a
    device, without waiting for it, and OSError for what cannot be read."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise InvalidArgument("cannot read %s: it is no regular file; write its content to one" % os.fspath(path))
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(status.st_size)
    finally:
        os.close(descriptor)


def read_tensors(source: Union[str, "os.PathLike[str]", bytes], name: str = "bytes") -> TensorFile:
    """Reads a ``.safetensors`` or ``.npy`` file.

    Args:
        source: the path, or the bytes of the file.
        name: what messages call the bytes.

    Raises:
        NotFound: there is no such file.
        InvalidArgument: it is none of these, or cut off.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        return TensorFile(_native.tensor_file_decode(source, name))
    return TensorFile(_native.tensor_file_read(os.fspath(source)))


def write_tensors(
    path: Union[str, "os.PathLike[str]"], tensors: Mapping[str, Any], metadata: Mapping[str, str] = {}
) -> None:
    """Writes a ``.safetensors`` file, all of it or nothing."""
    _native.tensor_file_write(_new_file(tensors, metadata), os.fspath(path))


def encode_tensors(tensors: Mapping[str, Any], metadata: Mapping[str, str] = {}) -> bytes:
    """The bytes that `write_tensors` would write; `read_tensors` takes them."""
    return _native.tensor_file_encode(_new_file(tensors, metadata))


def _new_file(tensors: Mapping[str, Any], metadata: Mapping[str, str]) -> Any:
    file = _native.tensor_file_create()
    for name, tensor in tensors.items():
        _native.tensor_file_add(file, name, as_tensor(tensor)._handle)
    for key, value in metadata.items():
        _native.tensor_file_set_metadata(file, key, value)
    return file
