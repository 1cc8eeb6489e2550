"""Cases as JSON into arguments of the reference, and its results back. SPEC.md#composition, #splits."""

import itertools
import math

from composition import Composition, is_composition
from generator import uniform
from tensor import Tensor, minus, numel, positions


def number(x):
    if isinstance(x, str):
        special = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
        return special[x] if x in special else float.fromhex(x)
    return x


def tensor(spec):
    if isinstance(spec, dict) and "uniform" in spec:
        drawn = spec["uniform"]
        whole = spec.get("dtype", "")[:1] in ("i", "u")
        return Tensor(drawn["shape"], uniform(numel(drawn["shape"]), drawn["low"], drawn["high"], drawn["seed"], whole))
    if isinstance(spec, dict):
        flat = Tensor.nested(spec["data"])
        shape = spec.get("shape", flat.shape)
        data = [number(x) for x in flat.data]
        if spec.get("dtype") == "bool":
            data = [bool(x) for x in data]
        return Tensor(shape, data)
    nested = Tensor.nested(spec)
    return Tensor(nested.shape, [number(x) for x in nested.data])


def indicator(shape, keep, value):
    return Tensor(shape, [v if keep(i) else 0.0 for i, v in zip(positions(shape), value.data)])


def composition(spec):
    if "components" in spec:
        parts = tensor(spec["components"])
        reference = tensor(spec["reference"]) if "reference" in spec else Tensor.full(parts.shape[1:], 0.0)
        leftover = tensor(spec["leftover"]) if "leftover" in spec else None
        return Composition([parts.select(0, k) for k in range(parts.shape[0])], reference, leftover)
    value = tensor(spec["value"])
    baseline = tensor(spec["baseline"]).expand(value.shape) if "baseline" in spec else Tensor.full(value.shape, 0.0)
    split = spec["split"]
    if "parts" in split:
        parts = tensor(split["parts"])
        rows = [parts.select(0, k) for k in range(parts.shape[0])]
        rest = Tensor(value.shape, [math.fsum([v] + [-r.data[k] for r in rows]) for k, v in enumerate(value.data)])
        return Composition(rows, rest, None, value=value)
    move = minus(value, baseline)
    if "dims" in split:
        dims = [d % value.rank for d in split["dims"]]
        count = math.prod(value.shape[d] for d in dims)
        offset = spec.get("offset", 0)

        def label(index):
            flat = 0
            for d in dims:
                flat = flat * value.shape[d] + index[d]
            return flat + offset

        numc = spec.get("numc", offset + count)
        rows = [indicator(value.shape, lambda i, k=k: label(i) == k, move) for k in range(numc)]
        return Composition(rows, baseline, None, value=value)
    labels = tensor(split["labels"])
    rank = labels.rank
    of = lambda index: labels.at(tuple(0 if s == 1 else i for s, i in zip(labels.shape, index[:rank])))
    numc = spec.get("numc", max(labels.data) + 1)
    rows = [indicator(value.shape, lambda i, k=k: of(i) == k, move) for k in range(numc)]
    # Elements of no component are in the reference with their value.
    reference = Tensor(value.shape, [v if of(i) < 0 else b for i, v, b in zip(positions(value.shape), value.data, baseline.data)])
    return Composition(rows, reference, None, value=value)


class Named:
    def __init__(self, name, value):
        self.name = name
        self.value = value


def argument(spec):
    if not isinstance(spec, dict):
        return spec
    if "composition" in spec:
        return composition(spec["composition"])
    if "tensor" in spec:
        return tensor(spec["tensor"])
    if "list" in spec:
        return [argument(x) for x in spec["list"]]
    if "f64" in spec:
        return number(spec["f64"])
    if "dtype" in spec:
        return spec["dtype"]
    return Named(spec["name"], argument(spec["value"]))


# ---- results

DIGITS = 13


def rounded(x, scale):
    """The digits of a number that a float64 knows beside numbers of a size."""
    if math.isnan(x):
        return "NaN"
    if math.isinf(x):
        return "Infinity" if x > 0 else "-Infinity"
    if abs(x) <= scale * 1e-13:
        return 0.0
    return float(f"{x:.{DIGITS}g}")


def nested(t, scale):
    if not t.shape:
        return rounded(float(t.data[0]), scale)
    if len(t.shape) == 1:
        return [rounded(float(x), scale) for x in t.data]
    step = numel(t.shape[1:])
    return [nested(Tensor(t.shape[1:], t.data[k * step : (k + 1) * step]), scale) for k in range(t.shape[0])]


def in_json(t, scale):
    if 0 in t.shape:
        return {"shape": list(t.shape), "data": []}
    return nested(t, scale)


def plain_json(t):
    if all(isinstance(x, (int, bool)) for x in t.data):
        dtype = "bool" if any(isinstance(x, bool) for x in t.data) else "i64"
        return {"shape": list(t.shape), "data": list(t.data), "dtype": dtype}
    return in_json(t, size_of([t]))


def size_of(tensors):
    return max([abs(x) for t in tensors for x in t.data if math.isfinite(x)], default=0.0)


def result_json(result):
    if not is_composition(result):
        return {"tensor": plain_json(result)}
    scale = size_of(result.components + [result.reference, result.leftover])
    shape = (result.numc,) + result.shape
    parts = Tensor(shape, itertools.chain.from_iterable(c.data for c in result.components))
    return {
        "components": in_json(parts, scale),
        "reference": in_json(result.reference, scale),
        "leftover": in_json(result.leftover, scale),
    }
