"""Arguments that share memory, of which a traced call has copies that do not."""

from typing import Any, List, NamedTuple, Optional, Sequence

from ._tensor import as_tensor


class _Argument(NamedTuple):
    name: str
    place: Optional[int]  # among the live tensors; None: the model is given it as it is
    tensor: Any
    begin: int
    end: int
    version: Optional[int]


class SharedMemory:
    """Arguments that share memory, so that the model itself would see in one of them what it writes into another."""

    def __init__(self) -> None:
        self._arguments: List[_Argument] = []

    def add(self, name: str, value: Any, place: Optional[int]) -> None:
        """An argument. `place`: of the live copy that the model is given; None where it is given the value itself."""
        import torch

        tensor = value if isinstance(value, torch.Tensor) else as_tensor(value).torch()
        if tensor.layout is not torch.strided or tensor.numel() == 0 or tensor.is_meta:
            return
        begin = tensor.data_ptr()
        last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
        end = begin + (last + 1) * tensor.element_size()
        self._arguments.append(_Argument(name, place, tensor, begin, end, _version(tensor)))

    def written(self, live: Sequence[Any]) -> Optional[str]:
        """Returns a note on the call with these live tensors that has ended, if it wrote shared memory; else None."""
        for k, one in enumerate(self._arguments):
            for other in self._arguments[:k]:
                if (one.place is None and other.place is None) or not _overlap(one, other):
                    continue
                for argument in (other, one):
                    if _is_written(argument, live):
                        return (
                            "%s and %s share memory, and the model writes %s: it was given copies, so that it does not "
                            "see in the one what it writes into the other" % (other.name, one.name, argument.name)
                        )
        return None


def _overlap(one: _Argument, other: _Argument) -> bool:
    import torch

    if one.begin >= other.end or other.begin >= one.end:
        return False
    size = one.tensor.element_size()
    if other.tensor.element_size() != size or (one.begin - other.begin) % size != 0:
        return True  # at least their bytes lie among each other
    # Elements that lie among each other, such as columns, may be none of both.
    first = min(one.begin, other.begin)
    taken = torch.zeros((max(one.end, other.end) - first) // size, dtype=torch.bool)
    mine, others = (
        taken.as_strided(argument.tensor.shape, argument.tensor.stride(), (argument.begin - first) // size)
        for argument in (one, other)
    )
    mine.fill_(True)
    return bool(others.any())


def _is_written(argument: _Argument, live: Sequence[Any]) -> bool:
    if argument.place is None:
        return argument.version is not None and _version(argument.tensor) != argument.version
    own = live[argument.place]
    version = _version(own)
    return version > 0 if version is not None else not bool((own == argument.tensor).all())


def _version(tensor: Any) -> Optional[int]:
    """How often it was written; None where PyTorch does not count that."""
    return None if tensor.is_inference() else tensor._version
