"""The generator of SPEC.md#generator: SplitMix64, uniform numbers of 24 bits, whole numbers by remainder."""

MASK = (1 << 64) - 1


def splitmix64(seed):
    state = seed & MASK
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        yield z ^ (z >> 31)


def uniform(count, low, high, seed, whole=False):
    draws = splitmix64(seed)
    if whole:
        return [int(low) + next(draws) % int(high - low) for _ in range(count)]
    return [low + (high - low) * ((next(draws) >> 40) * 2.0**-24) for _ in range(count)]
