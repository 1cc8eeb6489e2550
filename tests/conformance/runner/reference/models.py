#!/usr/bin/env python3
"""Whole models in plain Python: what their components, references and leftovers have to be. SPEC.md#models.

    models.py --check ../../cases/models_*.json    fails where a case expects something else
    models.py --write ../../cases/models_*.json    renews the expectations of the cases that have some

Parameters are read from the TorchScript files themselves, and every operator is one of this folder's.
"""

import argparse
import itertools
import json
import math
import pickle
import struct
import sys
import zipfile
from pathlib import Path

import activation  # noqa: F401: registers its operators
import product  # noqa: F401
from composition import Composition, map_linear
from policy import parse
from registry import call
from tensor import Tensor, minus, plus, scaled, total, zip_map

# ---- Files


class _Object:
    """Whatever TorchScript keeps: a module with what it is made of."""

    def __setstate__(self, state):
        self.__dict__.update(state)


def _rebuild_tensor(storage, offset, size, strides, *_):
    def element(index):
        return storage[offset + sum(i * s for i, s in zip(index, strides))]

    return Tensor(size, [element(index) for index in itertools.product(*map(range, size))])


class _Unpickler(pickle.Unpickler):
    """Makes tensors of Python floats, plain objects of modules, and nothing else."""

    def __init__(self, archive, root):
        super().__init__(archive.open(f"{root}/data.pkl"))
        self._archive = archive
        self._root = root

    def persistent_load(self, identity):
        kind, storage_type, key = identity[:3]
        if kind != "storage" or storage_type is not float:
            raise ValueError(f"a parameter is no float32 storage: {identity}")
        data = self._archive.read(f"{self._root}/data/{key}")
        return [number for (number,) in struct.iter_unpack("<f", data)]

    def find_class(self, module, name):
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _rebuild_tensor
        if (module, name) == ("torch", "FloatStorage"):
            return float
        if (module, name) == ("collections", "OrderedDict"):
            return dict
        if module == "torch.jit._pickle":  # build_intlist and the like
            return list
        if module.startswith("__torch__"):
            return type(name, (_Object,), {})
        raise ValueError(f"the model holds a {module}.{name}")


def read_parameters(path):
    """The parameters of a TorchScript file by their names: "layers.0.weight"."""
    with zipfile.ZipFile(path) as archive:
        module = _Unpickler(archive, archive.namelist()[0].split("/")[0]).load()
    parameters = {}

    def walk(part, prefix):
        for name, entry in vars(part).items():
            if isinstance(entry, Tensor):
                parameters[prefix + name] = entry
            elif isinstance(entry, _Object):
                walk(entry, f"{prefix}{name}.")

    walk(module, "")
    return parameters


def read_tensors(path):
    """The tensors of a safetensors file, as far as model inputs need them."""
    blob = path.read_bytes()
    (size,) = struct.unpack_from("<Q", blob)
    header = json.loads(blob[8 : 8 + size])
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            letter = {"F32": "f", "I64": "q"}[entry["dtype"]]
            tensors[name] = Tensor(entry["shape"], [x for (x,) in struct.iter_unpack("<" + letter, blob[begin:end])])
    return tensors


# ---- Models: of a policy, parameters and an input, what they compute, and what is inside


def linear(policy, parameters, name, x):
    return call(policy, "aten::linear", x, parameters[name + ".weight"], parameters[name + ".bias"])


def relu(policy, x):
    return call(policy, "aten::relu", x)


def conv2d(policy, parameters, name, x, stride, padding):
    """As a matrix product: each output position reads its patch of the input."""
    weight = parameters[name + ".weight"]
    channels, _, kernel, _ = weight.shape
    samples, _, height, width = x.shape
    size = [(side + 2 * padding - kernel) // stride + 1 for side in (height, width)]

    def patches(t):
        data = []
        for sample, i, j in itertools.product(range(samples), *map(range, size)):
            for channel, di, dj in itertools.product(range(t.shape[1]), range(kernel), range(kernel)):
                row, column = i * stride + di - padding, j * stride + dj - padding
                inside = 0 <= row < height and 0 <= column < width
                data.append(t.at((sample, channel, row, column)) if inside else 0.0)
        return Tensor((samples, *size, t.shape[1] * kernel * kernel), data)

    flat = weight.reshape((channels, -1))
    result = call(policy, "aten::linear", map_linear(policy, x, patches), flat, parameters[name + ".bias"])
    return map_linear(policy, result, lambda t: t.permute((0, 3, 1, 2)))


def avg_pool2d(policy, x, kernel):
    samples, channels, height, width = x.shape
    blocks = (samples, channels, height // kernel, kernel, width // kernel, kernel)
    return map_linear(policy, x, lambda t: scaled(t.reshape(blocks).sum((3, 5)), 1 / kernel**2))


def mlp(policy, parameters, x):
    inside = {}
    for layer in range(5):
        x = relu(policy, x) if layer % 2 else linear(policy, parameters, f"layers.{layer}", x)
        inside[f"layers.{layer}"] = inside[f"#{layer}"] = x
    inside["aten::relu:0"], inside["aten::relu:1"] = inside["layers.1"], inside["layers.3"]
    inside["logits"] = x
    return x, inside


def relu_network(policy, parameters, x):
    inside = {}
    inside["first"] = x = conv2d(policy, parameters, "first", x, 1, 1)
    inside["aten::avg_pool2d"] = x = avg_pool2d(policy, relu(policy, x), 2)
    inside["second"] = x = conv2d(policy, parameters, "second", x, 2, 0)
    x = relu(policy, x)
    flat = (x.shape[0], math.prod(x.shape[1:]))
    inside["output"] = x = linear(policy, parameters, "output", map_linear(policy, x, lambda t: t.reshape(flat)))
    return x, inside


MODELS = {"mlp": mlp, "relu_network": relu_network}

# ---- Inputs


def tensor_of(source, tensors):
    """A tensor as a case writes it; see case.schema.json."""
    if isinstance(source, str):
        return tensors[source[1:]]
    if isinstance(source, dict):
        flat = Tensor.nested(source["data"])
        return flat.reshape(source["shape"]) if "shape" in source else flat
    return Tensor.nested(source)


def spread_labels(labels, shape):
    """Labels have the shape of the value or of its leading dimensions, or they broadcast to it."""
    if labels.shape == shape[: labels.rank]:
        labels = labels.reshape(labels.shape + (1,) * (len(shape) - labels.rank))
    return labels.expand(shape)


def split_input(source, tensors):
    """The composition of one input."""
    value = tensor_of(source["value"], tensors)
    split = source["split"]
    baseline = tensor_of(source.get("baseline", 0.0), tensors).expand(value.shape)
    first = source.get("first_component", 0)
    empty = [Tensor.full(value.shape, 0.0)] * first
    if "parts" in split:
        parts = tensor_of(split["parts"], tensors)
        components = [parts.select(0, k) for k in range(parts.shape[0])]
        if "baseline" not in source:
            baseline = minus(value, total(components, value.shape))
        return Composition(empty + components, baseline)
    if "labels" in split:
        labels = spread_labels(tensor_of(split["labels"], tensors), value.shape)
    else:
        dims = [d % value.rank for d in split["dims"]]
        sizes = [value.shape[d] for d in dims]
        places = itertools.product(*map(range, value.shape))
        numbers = []
        for index in places:
            number = 0
            for d, size in zip(dims, sizes):
                number = number * size + index[d]
            numbers.append(number)
        labels = Tensor(value.shape, numbers)
    reference = zip_map(lambda v, b, own: v if own < 0 else b, value, baseline, labels)
    move = minus(value, reference)
    count = max(labels.data) + 1
    components = [zip_map(lambda m, own: m if own == k else 0.0, move, labels) for k in range(count)]
    return Composition(empty + components, reference)


# ---- Cases


def segmented(model, policy, parameters, x, pieces):
    """The line from reference to value in pieces, each linearized by itself. SPEC.md#segments"""
    results = []
    for k in range(pieces):
        begin = plus(x.reference, scaled(x.move, k / pieces))
        results.append(model(policy, parameters, Composition([scaled(c, 1 / pieces) for c in x.components], begin))[0])
    components = [total([r.components[c] for r in results], results[0].shape) for c in range(x.numc)]
    leftover = total([r.leftover for r in results], results[0].shape)
    return Composition(components, results[0].reference, leftover)


def shapley(model, policy, parameters, x):
    """Exact Shapley values: every subset of the components, the reference always present."""
    def run(members):
        return model(policy, parameters, total([x.components[k] for k in members] + [x.reference], x.shape))[0]

    everyone = range(x.numc)
    values = {s: run(s) for n in range(x.numc + 1) for s in itertools.combinations(everyone, n)}
    components = []
    for k in everyone:
        gains = []
        for members, value in values.items():
            if k not in members:
                joined = values[tuple(sorted(members + (k,)))]
                weight = 1 / (x.numc * math.comb(x.numc - 1, len(members)))
                gains.append(scaled(minus(joined, value), weight))
        components.append(total(gains, gains[0].shape))
    return Composition(components, values[()])


def expected(path, data, case, choices):
    """What a case has to give under the choices of a policy."""
    model_path = path.parent / case["model"]
    model = MODELS[model_path.stem]
    tensors = read_tensors(path.parent / data)
    (source,) = case["inputs"]
    x = split_input(source, tensors)
    parameters = read_parameters(model_path)
    policy = parse(choices)
    if case.get("verb") == "shapley":
        results = [shapley(model, policy, parameters, x)]
    elif "segments" in choices:
        results = [segmented(model, policy, parameters, x, int(choices["segments"]))]
    else:
        result, inside = model(policy, parameters, x)
        results = [result] + [inside[probe] for probe in case.get("probes", [])]
    return {"outputs": [
        {"components": nested([result.numc, *result.shape], [e for c in result.components for e in c.data]),
         "reference": nested(result.shape, result.reference.data),
         "leftover": nested(result.shape, result.leftover.data)}
        for result in results
    ]}


def nested(shape, data):
    if not shape:
        return data[0] + 0.0  # no negative zeros
    step = len(data) // shape[0]
    return [nested(shape[1:], data[k * step : (k + 1) * step]) for k in range(shape[0])]


def choices_of(case):
    policies = case.get("policies", [{}])
    return [{"preset": p} if isinstance(p, str) else p for p in policies]


def differs(a, b):
    if isinstance(a, dict):
        return a.keys() != b.keys() or any(differs(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) != len(b) or any(differs(x, y) for x, y in zip(a, b))
    return not math.isclose(a, b, rel_tol=1e-11, abs_tol=1e-12)


def as_text(document):
    """A case file with one line for each entry of a case."""
    head = [f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in document.items() if k != "cases"]
    cases = []
    for case in document["cases"]:
        lines = [f"      {json.dumps(k)}: {json.dumps(v)}" for k, v in case.items()]
        cases.append("    {\n" + ",\n".join(lines) + "\n    }")
    return "{\n" + ",\n".join(head) + ',\n  "cases": [\n' + ",\n".join(cases) + "\n  ]\n}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--check", action="store_true")
    mode.add_argument("--write", action="store_true")
    parser.add_argument("files", nargs="+", type=Path)
    arguments = parser.parse_args()
    count = 0
    wrong = []
    for path in arguments.files:
        document = json.loads(path.read_text(encoding="utf-8"))
        for case in document["cases"]:
            if "expect" not in case:
                continue
            answers = [expected(path, document["data"], case, choices) for choices in choices_of(case)]
            if any(differs(answer, answers[0]) for answer in answers):
                wrong.append(f"{path.name}: {case['name']} expects different numbers of its policies")
            elif arguments.check and differs(answers[0], case["expect"]):
                wrong.append(f"{path.name}: {case['name']} expects something else")
            case["expect"] = answers[0]
            count += 1
        if arguments.write:
            path.write_text(as_text(document), encoding="utf-8")
    if count == 0:
        wrong.append("no case expects anything")
    print("\n".join(wrong + [f"{count} expectations, {len(wrong)} wrong"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
