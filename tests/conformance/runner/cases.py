"""Case files: loaded, checked against the schema, and spread over policies and dtypes."""

import fnmatch
import json
import os

from . import generator, safetensors, schema
from .tensor import Tensor, count, full, is_floating

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_LEVELS = ("required", "recommended", "optional")
_WORDS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


class CaseError(Exception):
    """A case file is wrong."""


class Variant:
    """One case under one policy with one dtype: what is executed."""

    def __init__(self, case, family, policy, dtype):
        self.case = case
        self.family = family
        self.policy = policy  # pairs of key and value, or None: no context
        self.dtype = dtype

    @property
    def name(self):
        """required.activation.relu_basic.faithful.f64"""
        level = self.case.get("level", "required").replace(":", "_")
        return ".".join([level, self.family.name, self.case["name"], self.policy_name, self.dtype])

    @property
    def policy_name(self):
        if self.policy is None:
            return "default"
        if len(self.policy) == 1 and self.policy[0][0] == "preset":
            return self.policy[0][1]
        return "+".join("%s=%s" % (key, value) for key, value in self.policy).replace(".", ",").replace("::", "/")

    @property
    def subject(self):
        """The name by which results are counted: the operator, the model, or the verb."""
        case = self.case
        if "op" in case:
            return case["op"]
        if "model" in case:
            return "model:" + os.path.splitext(os.path.relpath(self.family.path_of(case["model"]), ROOT))[0]
        return "verb:" + self.verb

    @property
    def verb(self):
        default = "decompose" if "model" in self.case or "model_bytes" in self.case else "call"
        return self.case.get("verb", default)

    @property
    def laws(self):
        return self.case.get("laws", [])

    @property
    def repeatable(self):
        """Whether two processes give the same numbers."""
        return self.case.get("repeatable", True)

    @property
    def draws(self):
        """Whether numbers of two processes have nothing in common. Where they are not repeatable but can be recovered,
        what is not repeated is rounding."""
        return not self.repeatable and "recovery" not in self.laws

    def features(self):
        """The features that a testee has to announce."""
        case = self.case
        needed = {
            "decompose": ["models"],
            "run": ["models"],
            "shapley": ["shapley"] + (["models"] if "model" in case else []),
            "lifecycle": ["lifecycle"],
            "memory": ["share"],
            "read": ["read"],
        }.get(self.verb, [])
        level = case.get("level", "required")
        if level.startswith("optional:"):
            needed = needed + [level.partition(":")[2]]
        if "explain" in case:
            needed = needed + ["explain"]
        if "cancel" in case or "stop_after" in case:
            needed = needed + ["stop"]
        return needed

    def dtypes(self):
        """The dtypes that a testee has to announce."""
        return {self.dtype} | set(_dtypes_in(self.case))

    def tensor(self, description):
        """The tensor that a description in the case means."""
        return self.family.tensor(description, self.dtype)


class Family:
    """A case file."""

    def __init__(self, path, content):
        self.path = path
        self.name = content["family"]
        self.spec = content.get("spec", "")
        self.cases = content["cases"]
        self._data = {}
        if "data" in content:
            with open(self.path_of(content["data"]), "rb") as file:
                self._data, _ = safetensors.decode(file.read())

    def path_of(self, path):
        """A path that is given from the folder of the file."""
        return os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(self.path)), path))

    def tensor(self, description, dtype):
        if isinstance(description, str) and description.startswith("@"):
            try:
                tensor = self._data[description[1:]]
            except KeyError:
                raise CaseError("%s: the data has no %s" % (self.path, description)) from None
            return Tensor(dtype, tensor.shape, tensor.numbers) if is_floating(tensor.dtype) else tensor
        if isinstance(description, dict) and "uniform" in description:
            own = description.get("dtype", dtype)
            wanted = description["uniform"]
            return generator.uniform(own, wanted["shape"], wanted["low"], wanted["high"], wanted["seed"])
        shape, own = None, None
        if isinstance(description, dict):
            shape, own, description = description.get("shape"), description.get("dtype"), description["data"]
        flat = []
        nested = _flatten(description, flat)
        if own is None:
            own = "bool" if flat and all(isinstance(number, bool) for number in flat) else dtype
        numbers = [to_number(number) for number in flat]
        if shape is None:
            shape = nested[:-1] if own.startswith("c") else nested
        length = count(shape) * (2 if own.startswith("c") else 1)
        if len(numbers) != length:
            raise CaseError("%s: %d numbers for %s%s" % (self.path, len(numbers), own, list(shape)))
        if not is_floating(own):
            numbers = [int(number) for number in numbers]
        return Tensor(own, shape, numbers)

    def variants(self):
        for case in self.cases:
            if "superseded_by" in case:
                continue
            policies = case.get("policies", [case.get("policy", {})])
            for choices in policies:
                policy = [("preset", choices)] if isinstance(choices, str) else list(choices.items()) or None
                for dtype in case.get("dtypes", ["f64", "f32"]):
                    yield Variant(case, self, policy, dtype)


def to_number(value):
    if isinstance(value, str):
        return _WORDS[value] if value in _WORDS else float.fromhex(value)
    return value


def baseline_tensor(description, value, tensor_of):
    """A baseline of the shape and dtype of a value; one number stands for many. None: zeros."""
    if description is None:
        return full(value.dtype, value.shape, 0)
    if isinstance(description, (int, float)) or (isinstance(description, str) and not description.startswith("@")):
        return full(value.dtype, value.shape, to_number(description))
    from .tensor import broadcast

    return broadcast(tensor_of(description), value.shape)


def load(patterns, folders):
    """The families in files whose names fit one of the patterns, folder by folder in the order of their names."""
    with open(os.path.join(ROOT, "case.schema.json"), encoding="utf-8") as file:
        rules = json.load(file)
    families = []
    for folder in folders:
        for path in _paths(folder):
            name = os.path.relpath(path, folder)[: -len(".json")]
            if any(fnmatch.fnmatch(name, pattern) for pattern in patterns):
                families.append(read(path, rules))
    names = {}
    for family in families:
        for case in family.cases:
            place = (family.name, case["name"])
            if place in names:
                raise CaseError("%s.%s is in %s and in %s" % (place + (names[place], family.path)))
            names[place] = family.path
    return families


def read(path, rules):
    with open(path, encoding="utf-8") as file:
        try:
            content = json.load(file)
        except ValueError as error:
            raise CaseError("%s is no JSON: %s" % (path, error)) from None
    wrong = schema.problems(content, rules)
    if wrong:
        raise CaseError("%s does not fit case.schema.json:\n  %s" % (path, "\n  ".join(wrong[:10])))
    return Family(path, content)


def _paths(folder):
    for place, folders, files in os.walk(folder):
        folders.sort()
        for file in sorted(files):
            if file.endswith(".json"):
                yield os.path.join(place, file)


def selected(variant, level):
    """Whether a level (required, recommended or all) includes a variant."""
    own = variant.case.get("level", "required").partition(":")[0]
    return level == "all" or _LEVELS.index(own) <= _LEVELS.index(level)


def _flatten(value, numbers):
    """Appends the numbers of nested lists; returns the shape."""
    if not isinstance(value, list):
        numbers.append(value)
        return []
    shapes = [_flatten(element, numbers) for element in value]
    if any(shape != shapes[0] for shape in shapes):
        raise CaseError("nested lists of different lengths: %r" % value)
    return [len(shapes)] + (shapes[0] if shapes else [])


def _dtypes_in(value):
    if isinstance(value, dict):
        if isinstance(value.get("dtype"), str) and value["dtype"] != "case":
            yield value["dtype"]
        for item in value.values():
            yield from _dtypes_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from _dtypes_in(item)
