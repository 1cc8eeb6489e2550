"""Numbers that cases name by a seed; SPEC.md fixes them."""

from .tensor import Tensor, count, is_floating

_MASK = 0xFFFFFFFFFFFFFFFF


class SplitMix64:
    def __init__(self, seed):
        self.state = seed & _MASK

    def next(self):
        """64 bits."""
        self.state = (self.state + 0x9E3779B97F4A7C15) & _MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)


def uniform(dtype, shape, low, high, seed):
    """A tensor of numbers in [low, high): 24 random bits each; whole numbers where the dtype has no others."""
    generator = SplitMix64(seed)
    if is_floating(dtype):
        parts = 2 if dtype.startswith("c") else 1
        numbers = [low + (high - low) * ((generator.next() >> 40) * 2.0**-24) for _ in range(parts * count(shape))]
    else:
        numbers = [int(low) + generator.next() % int(high - low) for _ in range(count(shape))]
    return Tensor(dtype, shape, numbers)
