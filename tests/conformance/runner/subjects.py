"""Requests of a case, in all the changed forms that laws need.

A subject is a variant with its tensors made. It gives the request of the case itself (`base`), the plain operator or
model on values, baselines or single components (`plain`), and the same question with the components mapped to others:
permuted, merged, with a component more that is zero (`mapped`).
"""

import math

from . import protocol
from .cases import baseline_tensor, to_number
from .protocol import Request
from .tensor import LONG_NAMES, Tensor, count, full, real_dtype, stack, strides

# Numbers that laws add up in another order are rounded to so many bits of the largest one: their sums are then exact in
# every order, and value, reference and all coefficients keep their bits.
_BITS = {"f64": 34, "f32": 14, "f16": 6, "bf16": 4}


def of(variant):
    if variant.verb in ("lifecycle", "memory", "read"):
        return OtherSubject(variant)
    if variant.verb in ("decompose", "run") or "model" in variant.case or "model_bytes" in variant.case:
        return ModelSubject(variant)
    return CallSubject(variant)


class Parts:
    """A composition by its tensors."""

    def __init__(self, components, reference, leftover):
        self.components = components
        self.reference = reference
        self.leftover = leftover  # None: zeros

    @property
    def numc(self):
        return self.components.shape[0]

    def value(self):
        """The sum, computed in float64."""
        rows = self.components.rows() + [self.reference] + ([] if self.leftover is None else [self.leftover])
        return self.reference.like([math.fsum(column) for column in zip(*[row.numbers for row in rows])])

    def rounded(self):
        tensors = [self.components, self.reference] + ([] if self.leftover is None else [self.leftover])
        return Parts(*(_on_a_grid(tensors) + [None])[:3])

    def mixed(self):
        """Every component with half of its neighbour's: components that share elements show more than a split gives."""
        rows = [row.numbers for row in self.components.rows()]
        if len(rows) < 2:
            return self
        numbers = []
        for row, following in zip(rows, rows[1:] + rows[:1]):
            numbers += [a / 2 + b / 2 if a != b else a for a, b in zip(row, following)]
        return Parts(self.components.like(numbers), self.reference, self.leftover)

    def mapped(self, places, numc):
        """Component i becomes a part of component places[i] of `numc`."""
        rows = [None] * numc
        for row, place in zip(self.components.rows(), places):
            old = rows[place]
            rows[place] = row if old is None else row.like([a + b for a, b in zip(old.numbers, row.numbers)])
        zero = full(self.reference.dtype, self.reference.shape, 0)
        components = stack([zero if row is None else row for row in rows]) if rows else self.components
        return Parts(components, self.reference, self.leftover)


class OtherSubject:
    """A verb that speaks of the language itself."""

    def __init__(self, variant):
        self.variant = variant
        self.tensors = {key: variant.tensor(tensor) for key, tensor in variant.case.get("tensors", {}).items()}

    def base(self):
        case = self.variant.case
        entries, tensors = {"steps": protocol.lines(case.get("steps", []))}, dict(self.tensors)
        for key, description in case.get("compositions", {}).items():
            own_entries, own_tensors = composition(key, description, self.variant)
            entries.update(own_entries)
            tensors.update(own_tensors)
        return Request(self.variant.verb, entries, tensors)


class CallSubject:
    """An operator called by name."""

    def __init__(self, variant):
        self.variant = variant
        self.compositions = {}  # KEY -> (entries, tensors)
        self._explicit = {}
        self._arguments = []  # (kind, name, value) with tensors and texts beside it
        self._tensors = {}
        self._host = []  # names of tensors that stay on the CPU
        self._texts = {}
        for description in variant.case.get("args", []):
            self._add("", description)

    # ---- requests

    def base(self, parts=None, echo=False, policy=None, verb=None):
        tensors = dict(self._tensors)
        entries = {}
        for key, (own_entries, own_tensors) in self.compositions.items():
            entries.update(own_entries)
            tensors.update(own_tensors)
        return self._request(verb or self.variant.verb, self._arguments, entries, tensors, parts, echo, policy)

    def value(self):
        """The plain operator on the values."""
        return self._plain({key: self._value(key) for key in self.compositions})

    def reference(self):
        """The plain operator on the references."""
        return self._plain({key: self._reference(key) for key in self.compositions})

    def rows(self):
        """The plain operator on each component, then on leftovers, then on zeros; it takes explicit tensors."""
        explicit = [self.explicit(key) for key in self.compositions]
        numc = max((parts.numc for parts in explicit), default=0)
        zeros = {key: full(p.reference.dtype, p.reference.shape, 0) for key, p in zip(self.compositions, explicit)}
        requests = []
        for index in range(numc):
            given = {}
            for key, parts in zip(self.compositions, explicit):
                given[key] = parts.components.row(index) if index < parts.numc else zeros[key]
            requests.append(self._plain(given))
        leftovers = {k: zeros[k] if p.leftover is None else p.leftover for k, p in zip(self.compositions, explicit)}
        return requests + [self._plain(leftovers), self._plain(zeros)]

    @property
    def numc(self):
        return max((self.explicit(key).numc for key in self.compositions), default=0)

    def mapped(self, places, numc):
        """The case with explicit components, mixed a little, each of which becomes a part of another one."""
        return self._of_parts({key: self.explicit(key).rounded().mixed().mapped(places, numc) for key in self.compositions})

    def unmoved(self):
        """The case with every value at its reference."""
        still = {}
        for key in self.compositions:
            parts = self.explicit(key)
            components = full(parts.components.dtype, parts.components.shape, 0)
            still[key] = Parts(components, self._reference(key), None)
        return self._of_parts(still)

    def threads(self, count):
        request = self.base()
        entries = dict(request.entries, verb="threads", inner_verb=request.verb, count=str(count))
        return self._wrapped(request, entries)

    @staticmethod
    def _wrapped(request, entries):
        other = request.again("")
        other.entries = entries
        return other

    # ---- what compositions are

    def explicit(self, key):
        if key not in self._explicit:
            self._explicit[key] = self._parts(key)
        return self._explicit[key]

    def _parts(self, key):
        entries, tensors = self.compositions[key]
        if entries[key + ".make"] == "tensors":
            components = tensors[key + ".components"]
            zero = full(components.dtype, components.shape[1:], 0)
            return Parts(components, tensors.get(key + ".reference", zero), tensors.get(key + ".leftover"))
        value = tensors[key + ".value"]
        reference = tensors.get(key + ".baseline", full(value.dtype, value.shape, 0))
        numc = int(entries.get(key + ".numc", "-1"))
        if entries[key + ".make"] == "diagonal":
            labels = labels_along(value.shape, [int(dim) for dim in entries.get(key + ".dims", "").split(",") if dim])
            labels = [label + int(entries.get(key + ".offset", "0")) for label in labels]
        else:
            labels = spread_labels(tensors[key + ".labels"], value.shape)
        return split(value, reference, labels, numc)

    def _value(self, key):
        tensors = self.compositions[key][1]
        return tensors[key + ".value"] if key + ".value" in tensors else self.explicit(key).value()

    def _reference(self, key):
        entries, tensors = self.compositions[key]
        if entries[key + ".make"] == "tensors":
            components = tensors[key + ".components"]
            return tensors.get(key + ".reference", full(components.dtype, components.shape[1:], 0))
        if entries[key + ".make"] == "labels":
            return self.explicit(key).reference  # Elements without a label keep their value.
        value = tensors[key + ".value"]
        return tensors.get(key + ".baseline", full(value.dtype, value.shape, 0))

    # ---- making requests

    def _request(self, verb, arguments, entries, tensors, parts=None, echo=False, policy=None):
        variant = self.variant
        entries = dict(entries, op=variant.case.get("op", ""), args=protocol.lines(arguments))
        entries.update(self._texts, host=protocol.lines(self._host))
        choices = variant.policy if policy is None else policy
        if choices and verb != "shapley":
            entries["policy"] = protocol.lines(choices)
        if parts:
            entries["parts"] = " ".join(parts)
        if echo:
            entries["echo"] = "1"
        return Request(verb, entries, tensors)

    def _plain(self, given):
        arguments = [("tensor", name, value) if kind == "composition" else (kind, name, value)
                     for kind, name, value in self._arguments]
        return self._request("call", arguments, {}, dict(self._tensors, **given), policy=())

    def _of_parts(self, compositions):
        entries, tensors = {}, dict(self._tensors)
        for key, parts in compositions.items():
            entries[key + ".make"] = "tensors"
            tensors[key + ".components"] = parts.components
            tensors[key + ".reference"] = parts.reference
            if parts.leftover is not None:
                tensors[key + ".leftover"] = parts.leftover
        return self._request(self.variant.verb, self._arguments, entries, tensors)

    def _add(self, name, description):
        add = self._arguments.append
        if description is None:
            add(("none", name, ""))
        elif isinstance(description, bool):
            add(("bool", name, str(int(description))))
        elif isinstance(description, int):
            add(("i64", name, str(description)))
        elif isinstance(description, float):
            add(("f64", name, protocol.number(description)))
        elif isinstance(description, str):
            key = "text%d" % len(self._texts)
            # An entry that is absent is an empty one.
            self._texts[key] = description
            add(("str", name, key))
        elif isinstance(description, list):
            add(("i64s", name, ",".join(map(str, description))))
        elif "name" in description:
            self._add(description["name"], description["value"])
        elif "f64" in description:
            add(("f64", name, protocol.number(to_number(description["f64"]))))
        elif "dtype" in description:
            dtype = description["dtype"]
            add(("dtype", name, LONG_NAMES[self.variant.dtype if dtype == "case" else dtype]))
        elif "tensor" in description:
            key = "t%d" % len(self._tensors)
            self._tensors[key] = self.variant.tensor(description["tensor"])
            if description.get("device") == "cpu":
                self._host.append(key)
            add(("tensor", name, key))
        elif "list" in description:
            add(("list", name, ""))
            for element in description["list"]:
                self._add("", element)
            add(("end", "", ""))
        else:
            key = "c%d" % len(self.compositions)
            self.compositions[key] = composition(key, description["composition"], self.variant)
            add(("composition", name, key))


def composition(key, description, variant):
    """Entries and tensors that make the composition KEY."""
    entries, tensors = {}, {}
    if "components" in description:
        entries[key + ".make"] = "tensors"
        for part in ("components", "reference", "leftover"):
            if part in description:
                tensors["%s.%s" % (key, part)] = variant.tensor(description[part])
        return entries, tensors
    value = tensors[key + ".value"] = variant.tensor(description["value"])
    if "baseline" in description:
        tensors[key + ".baseline"] = baseline_tensor(description["baseline"], value, variant.tensor)
    if "dims" in description["split"]:
        entries[key + ".make"] = "diagonal"
        entries[key + ".dims"] = ",".join(map(str, description["split"]["dims"]))
        entries[key + ".offset"] = str(description.get("offset", 0))
    else:
        entries[key + ".make"] = "labels"
        tensors[key + ".labels"] = _integers(variant, description["split"]["labels"])
    entries[key + ".numc"] = str(description.get("numc", -1))
    return entries, tensors


class ModelSubject:
    """A model from a file."""

    def __init__(self, variant):
        self.variant = variant
        self.inputs = []
        for description in variant.case.get("inputs", []):
            self.inputs.append(_Input(description, variant))
        first = 0
        for source in self.inputs:
            first = source.place(first)

    def base(self, parts=None, echo=False, policy=None, verb=None):
        entries, tensors = {}, {}
        names = []
        for index, source in enumerate(self.inputs):
            key = "x%d" % index
            names.append((source.name, key))
            source.put(key, entries, tensors)
        return self._request(verb or self.variant.verb, names, entries, tensors, parts, policy)

    def attribution(self, targets, limit=None):
        """A request for what each component gives to some numbers of the first output. `limit`: of memory, in bytes."""
        request = self.base(verb="attribute")
        entries = dict(request.entries, targets=protocol.lines((target,) for target in targets))
        if limit is not None:
            entries["memory_limit"] = str(limit)
        return Request("attribute", entries, request.tensors)

    def directed(self, direction):
        """Decomposed with components that go forward or come back. Only results: what comes back is a sweep for each of
        the numbers of a probe."""
        request = self.base(verb="decompose")
        return Request("decompose", dict(request.entries, direction=direction, probes=""), request.tensors)

    @staticmethod
    def recorded(request):
        """The request for a program that was recorded of the model, saved and loaded."""
        return Request(request.verb, dict(request.entries, program="1"), request.tensors)

    def value(self):
        return self._plain([source.value for source in self.inputs])

    def reference(self):
        return self._plain([source.reference() for source in self.inputs])

    @property
    def numc(self):
        return max([source.first + source.numc for source in self.inputs if source.labels or source.parts], default=0)

    def mapped(self, places, numc):
        """Every input with its components by labels (or parts) that count on the axis that all inputs share."""
        return self._split([source.mapped(places, numc) for source in self.inputs])

    def unmoved(self):
        """Every split input at its baseline."""
        return self._split([source.unmoved() for source in self.inputs])

    def threads(self, count):
        request = self.base()
        return CallSubject._wrapped(
            request, dict(request.entries, verb="threads", inner_verb=request.verb, count=str(count))
        )

    def _split(self, sources):
        entries, tensors, names = {}, {}, []
        for index, (source, (own_entries, own_tensors)) in enumerate(zip(self.inputs, sources)):
            key = "x%d" % index
            names.append((source.name, key))
            entries.update(("%s.%s" % (key, name), text) for name, text in own_entries.items())
            tensors.update(("%s.%s" % (key, name), tensor) for name, tensor in own_tensors.items())
        return self._request("decompose", names, entries, tensors)

    def _plain(self, values):
        names = [(source.name, "x%d" % index) for index, source in enumerate(self.inputs)]
        entries = {"x%d.split" % index: "plain" for index in range(len(values))}
        tensors = {"x%d.value" % index: value for index, value in enumerate(values)}
        return self._request("run", names, entries, tensors, policy=())

    def _request(self, verb, names, entries, tensors, parts=None, policy=None):
        case = self.variant.case
        entries = dict(entries, inputs=protocol.lines(names))
        if "model" in case:
            entries["model"] = self.variant.family.path_of(case["model"])
        else:
            tensors = dict(tensors, model=self.variant.tensor(dict(_as_object(case["model_bytes"]), dtype="u8")))
        entries["model_dtype"] = LONG_NAMES[self.variant.dtype]
        choices = self.variant.policy if policy is None else policy
        if verb in ("decompose", "attribute") and choices:
            entries["policy"] = protocol.lines(choices)
        if verb == "decompose":
            if parts:
                entries["parts"] = " ".join(parts)
            entries["probes"] = protocol.lines(case.get("probes", []))
            entries["everything"] = "1" if case.get("everything") else ""
            explained = [(wanted.get("name", ""), wanted["target"]) for wanted in case.get("explain", [])]
            entries["explain"] = protocol.lines(explained)
            entries["cancel"] = "1" if case.get("cancel") else ""
            entries["stop_after"] = str(case.get("stop_after", ""))
        return Request(verb, entries, tensors)


class _Input:
    def __init__(self, description, variant):
        self.description = description
        self.variant = variant
        self.name = description.get("name", "")
        self.value = variant.tensor(description["value"])
        self.split = description.get("split", {})
        self.first = 0
        self.labels = None  # of every element, from 0
        self.parts = None
        self.given_labels = None
        if "dims" in self.split:
            self.labels = labels_along(self.value.shape, self.split["dims"])
        elif "labels" in self.split:
            self.given_labels = _integers(variant, self.split["labels"])
            self.labels = spread_labels(self.given_labels, self.value.shape)
        elif "parts" in self.split:
            self.parts = variant.tensor(self.split["parts"])
        if self.labels is not None:
            self.numc = max(self.labels, default=-1) + 1
        else:
            self.numc = self.parts.shape[0] if self.parts else 0

    def place(self, first):
        """Settles where the components begin; returns where those of the next input do."""
        self.first = self.description.get("first_component", first)
        if self.labels is None and self.parts is None:
            return first
        return self.first + self.numc

    def put(self, key, entries, tensors):
        tensors[key + ".value"] = self.value
        kind = next(iter(self.split), "plain")
        entries[key + ".split"] = kind
        if kind == "dims":
            entries[key + ".dims"] = ",".join(map(str, self.split["dims"]))
        elif kind == "labels":
            tensors[key + ".labels"] = self.given_labels
        elif kind == "parts":
            tensors[key + ".parts"] = self.parts
        baseline = self.description.get("baseline")
        if isinstance(baseline, (int, float)) and not isinstance(baseline, bool):
            entries[key + ".baseline_number"] = protocol.number(baseline)
        elif baseline is not None:
            tensors[key + ".baseline"] = self.variant.tensor(baseline)
        if "first_component" in self.description:
            entries[key + ".first"] = str(self.description["first_component"])
        entries[key + ".names"] = protocol.lines(self.description.get("names", []))

    def baseline(self):
        description = self.description.get("baseline")
        value = self.value
        if description is None:
            return full(value.dtype, value.shape, 0)
        return baseline_tensor(description, value, self.variant.tensor)

    def reference(self):
        """The tensor that the operators run on beside the value."""
        if self.labels is not None:
            baseline = self.baseline().numbers
            numbers = [b if label >= 0 else x for x, b, label in zip(self.value.numbers, baseline, self.labels)]
            return self.value.like(numbers)
        if self.parts is not None:
            rows = [row.numbers for row in self.parts.rows()]
            return self.value.like([x - math.fsum(column) for x, *column in zip(self.value.numbers, *rows)])
        return self.value

    def mapped(self, places, numc):
        """Entries and tensors by their names behind KEY."""
        if self.labels is not None:
            labels = [places[self.first + label] if label >= 0 else -1 for label in self.labels]
            return self._labelled(self.value, labels)
        if self.parts is not None:
            own = places[self.first : self.first + self.numc]
            zero = full(self.parts.dtype, self.parts.shape[1:], 0)
            parts = Parts(self.parts, zero, None).mapped(own, numc)
            return {"split": "parts", "first": "0"}, {"value": self.value, "parts": parts.components}
        return {"split": "plain"}, {"value": self.value}

    def unmoved(self):
        if self.labels is not None:
            labels = [self.first + label if label >= 0 else -1 for label in self.labels]
            return self._labelled(self.reference(), labels)
        if self.parts is not None:
            parts = full(self.parts.dtype, self.parts.shape, 0)
            entries = {"split": "parts", "first": str(self.first)}
            return entries, {"value": self.reference(), "parts": parts}
        return {"split": "plain"}, {"value": self.value}

    def _labelled(self, value, labels):
        tensors = {"value": value, "labels": Tensor("i64", value.shape, labels), "baseline": self.baseline()}
        return {"split": "labels", "first": "0"}, tensors


def labels_along(shape, dims):
    """The label of every element where each position along some dimensions is a component."""
    chosen = [dim + len(shape) if dim < 0 else dim for dim in dims]
    if any(not 0 <= dim < len(shape) for dim in chosen):
        return [-1] * count(shape)  # To be refused: laws make nothing of it.
    steps = [0] * len(shape)
    for dim, step in zip(chosen, strides([shape[dim] for dim in chosen])):
        steps[dim] = step
    labels = [0]
    for extent, step in zip(shape, steps):
        labels = [label + k * step for label in labels for k in range(extent)]
    return labels


def spread_labels(labels, shape):
    """Labels of the value's shape, of its leading dimensions, or that broadcast to it, for every element."""
    from .tensor import broadcast

    own = labels.shape
    if own == tuple(shape[: len(own)]):
        labels = Tensor(labels.dtype, own + (1,) * (len(shape) - len(own)), raw=labels.raw)
    try:
        return [int(label) for label in broadcast(labels, shape).numbers]
    except ValueError:
        return [-1] * count(shape)  # To be refused.


def split(value, reference, labels, numc):
    """Components by labels: value minus reference where the label is the component's."""
    numc = max(labels, default=-1) + 1 if numc < 0 else numc
    moves = [x - b if x != b else 0.0 for x, b in zip(value.numbers, reference.numbers)]
    width = 2 if value.dtype.startswith("c") else 1
    owners = [label for label in labels for _ in range(width)]
    rows = [[move if owner == row else 0.0 for move, owner in zip(moves, owners)] for row in range(numc)]
    components = Tensor(value.dtype, (numc,) + value.shape, [number for row in rows for number in row])
    kept = [b if owner >= 0 else x for x, b, owner in zip(value.numbers, reference.numbers, owners)]
    return Parts(components, value.like(kept), None)


def _on_a_grid(tensors):
    finite = [abs(number) for tensor in tensors for number in tensor.numbers if math.isfinite(number)]
    largest = max(finite, default=0)
    bits = _BITS.get(real_dtype(tensors[0].dtype))
    if largest == 0 or bits is None:
        return tensors
    quantum = math.ldexp(1.0, math.frexp(largest)[1] - bits)
    if quantum == 0:
        return tensors

    def rounded(number):
        return round(number / quantum) * quantum if math.isfinite(number) else number

    return [tensor.like([rounded(number) for number in tensor.numbers]) for tensor in tensors]


def _integers(variant, description):
    """A tensor of int64, unless the description itself names another dtype."""
    if isinstance(description, str) or (isinstance(description, dict) and "dtype" in description):
        return variant.tensor(description)
    return variant.tensor(dict(_as_object(description), dtype="i64"))


def _as_object(description):
    return description if isinstance(description, dict) else {"data": description}
