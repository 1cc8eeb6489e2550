#!/usr/bin/env python3
"""Whole models in plain Python: what their components, references and leftovers have to be. SPEC.md#models.

    models.py --check ../../cases/models_*.json    fails where a case expects something else
    models.py --write ../../cases/models_*.json    renews the expectations of the cases that have some

Parameters are read from the TorchScript files and exported programs themselves, those of an ONNX model from the
TorchScript file that it was written from; every operator is one of this folder's.
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

import case_format
import case_reader
from composition import Composition, is_composition
from networks import NETWORKS, Ids, Network
from policy import parse
from tensor import Tensor, minus, plus, scaled, total, zip_map
from write_expected import close

# ---- Files

_ELEMENTS = {"FloatStorage": "f", "LongStorage": "q"}


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
        kind, element, key = identity[:3]
        if kind != "storage":
            raise ValueError(f"a parameter is no storage: {identity}")
        data = self._archive.read(f"{self._root}/data/{key}")
        return [number for (number,) in struct.iter_unpack("<" + element, data)]

    def find_class(self, module, name):
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _rebuild_tensor
        if module == "torch" and name in _ELEMENTS:
            return _ELEMENTS[name]
        if (module, name) == ("collections", "OrderedDict"):
            return dict
        if module == "torch.jit._pickle":  # build_intlist, restore_type_tag and the like
            return lambda value, *_: value
        if module.startswith("__torch__"):
            return type(name, (_Object,), {})
        raise ValueError(f"the model holds a {module}.{name}")


def _exported_parameters(archive, root):
    folder = f"{root}/data/weights/"
    parameters = {}
    for name, entry in json.loads(archive.read(folder + "model_weights_config.json"))["config"].items():
        meta = entry["tensor_meta"]
        letter = {5: "q", 7: "f"}[meta["dtype"]]
        data = [x for (x,) in struct.iter_unpack("<" + letter, archive.read(folder + entry["path_name"]))]
        sizes, strides = ([size["as_int"] for size in meta[key]] for key in ("sizes", "strides"))
        parameters[name] = _rebuild_tensor(data, meta["storage_offset"]["as_int"], sizes, strides)
    return parameters


def read_parameters(path):
    """The parameters of a TorchScript file or an exported program by their names: "layers.0.weight"."""
    with zipfile.ZipFile(path) as archive:
        if path.suffix == ".pt2":
            return _exported_parameters(archive, archive.namelist()[0].split("/")[0])
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


# ---- Inputs


def tensor_of(source, tensors):
    """A tensor as a case writes it; see case.schema.json."""
    return tensors[source[1:]] if isinstance(source, str) else case_reader.tensor(source)


def labels_of(source, shape, tensors):
    """The component of each element, counted from the input's first one; -1: none."""
    if "labels" in source:
        labels = tensor_of(source["labels"], tensors)
        if labels.shape == shape[: labels.rank]:  # else they broadcast
            labels = labels.reshape(labels.shape + (1,) * (len(shape) - labels.rank))
        return labels.expand(shape)
    dims = [d % len(shape) for d in source["dims"]]
    numbers = []
    for index in itertools.product(*map(range, shape)):
        number = 0
        for d in dims:
            number = number * shape[d] + index[d]
        numbers.append(number)
    return Tensor(shape, numbers)


def own_numc(source, tensors):
    """How many components an input has by itself."""
    split = source.get("split", {})
    if "parts" in split:
        return tensor_of(split["parts"], tensors).shape[0]
    return max(labels_of(split, tensor_of(source["value"], tensors).shape, tensors).data) + 1 if split else 0


def make_input(source, first, numc, ids, tensors):
    """A composition of numc components, of which the input's own begin at the first; ids, or a plain tensor."""
    value = tensor_of(source["value"], tensors)
    split = source.get("split", {})
    if not split:
        return Ids(value) if ids else value
    baseline = tensor_of(source.get("baseline", 0.0), tensors).expand(value.shape)
    if "parts" in split:
        parts = tensor_of(split["parts"], tensors)
        own = [parts.select(0, k) for k in range(parts.shape[0])]
        if "baseline" not in source:
            baseline = minus(value, total(own, value.shape))
        zeros = Tensor.full(value.shape, 0.0)
        return Composition([zeros] * first + own + [zeros] * (numc - first - len(own)), baseline)
    labels = labels_of(split, value.shape, tensors).map(lambda k: k + first if k >= 0 else k)
    reference = zip_map(lambda v, b, k: v if k < 0 else b, value, baseline, labels)
    if ids:
        return Ids(value, reference.map(int), labels, numc)
    move = minus(value, reference)
    return Composition([zip_map(lambda m, k: m if k == c else 0.0, move, labels) for c in range(numc)], reference)


def make_inputs(case, names, tensors):
    """In the order of the network's arguments."""
    sources = case["inputs"]
    if any("name" in source for source in sources):
        sources = sorted(sources, key=lambda source: names.index(source["name"]))
    firsts, numc = [], 0
    for source in sources:
        own = own_numc(source, tensors)
        firsts.append(source.get("first_component", numc) if own else 0)
        numc = max(numc, firsts[-1] + own)
    return [
        make_input(source, first, numc, name == "tokens", tensors)
        for name, source, first in zip(names, sources, firsts)
    ]


# ---- Cases


def segmented(run, x, pieces):
    """The line from reference to value in pieces, each linearized by itself. SPEC.md#segments"""
    results = []
    for k in range(pieces):
        begin = plus(x.reference, scaled(x.move, k / pieces))
        results += run([Composition([scaled(c, 1 / pieces) for c in x.components], begin)])
    components = [total([r.components[c] for r in results], results[0].shape) for c in range(x.numc)]
    leftover = total([r.leftover for r in results], results[0].shape)
    return Composition(components, results[0].reference, leftover)


def shapley(run, x):
    """Exact Shapley values: every subset of the components, the reference always present."""
    everyone = range(x.numc)
    values = {}
    for count in range(x.numc + 1):
        for members in itertools.combinations(everyone, count):
            (values[members],) = run([total([x.components[k] for k in members] + [x.reference], x.shape)])
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
    """The results that a case has to give under the choices of a policy."""
    model_path = path.parent / case["model"]
    network, names = NETWORKS[model_path.stem]
    tensors = read_tensors(path.parent / data)
    if model_path.suffix == ".onnx":
        model_path = model_path.with_name(network.__name__ + ".pt")
    net = Network(parse(choices), read_parameters(model_path))
    inputs = make_inputs(case, names, tensors)

    def run(given):
        return network(net, *given)

    if case.get("verb") == "shapley":
        results = [shapley(run, *inputs)]
    elif "segments" in choices:
        results = [segmented(run, *inputs, int(choices["segments"]))]
    else:
        results = run(inputs) + [net.inside[probe] for probe in case.get("probes", [])]
    return {"outputs": [written(result) for result in results]}


def written(result):
    if not is_composition(result):
        return {"tensor": {"dtype": "i64", "data": nested(result.shape, result.data)}}
    components = Tensor((result.numc, *result.shape), [x for c in result.components for x in c.data])
    parts = {"components": components, "reference": result.reference, "leftover": result.leftover}
    return {name: nested(part.shape, part.data) for name, part in parts.items()}


def nested(shape, data):
    if not shape:
        return data[0] + type(data[0])(0)  # no negative zeros
    step = len(data) // shape[0]
    return [nested(shape[1:], data[k * step : (k + 1) * step]) for k in range(shape[0])]


def choices_of(case):
    policies = case.get("policies", [{}])
    return [{"preset": p} if isinstance(p, str) else p for p in policies]


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
            # Others know their numbers from elsewhere.
            if "expect" not in case or Path(case["model"]).stem not in NETWORKS:
                continue
            answers = [expected(path, document["data"], case, choices) for choices in choices_of(case)]
            if not all(close(answer, answers[0]) for answer in answers):
                wrong.append(f"{path.name}: {case['name']} expects different numbers of its policies")
            elif arguments.check and not close(case["expect"], answers[0]):
                wrong.append(f"{path.name}: {case['name']} expects something else")
            case["expect"] = answers[0]
            count += 1
        if arguments.write:
            path.write_text(case_format.text(document), encoding="utf-8")
    if count == 0:
        wrong.append("no case expects anything")
    print("\n".join(wrong + [f"{count} expectations, {len(wrong)} wrong"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
