"""A testee of three operators in plain Python, honest or doctored: so that tests see checks pass and fail.

    toy.py [--doctor NAME]

Operators move every element by the secant of their function, which is the path rule: toy::affine (2 x + 1),
toy::square (x x) and toy::flip (the elements backwards). A model of any path is toy::affine of its input.
"""

import math
import os
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from runner import distribution, protocol, safetensors, subjects  # noqa: E402
from runner.tensor import Tensor, full, stack  # noqa: E402

FUNCTIONS = {"toy::affine": lambda x: 2 * x + 1, "toy::square": lambda x: x * x}
DERIVATIVES = {"toy::affine": lambda x: 2.0, "toy::square": lambda x: 2 * x}


class Refused(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Composition:
    def __init__(self, components, reference, leftover, value=None):
        self.components = components
        self.reference = reference
        self.leftover = leftover
        rows = components.rows() + [reference, leftover]
        total = reference.like([math.fsum(column) for column in zip(*[row.numbers for row in rows])])
        self.value = total if value is None else value

    def part(self, name):
        if name == "residual":
            return self.reference.like([a + b for a, b in zip(self.reference.numbers, self.leftover.numbers)])
        if name == "recovery":
            return Composition(self.components, self.reference, self.leftover).value
        return getattr(self, name)


class Toy:
    def __init__(self, doctor=None):
        self.doctor = doctor
        self.asked = 0
        self.fast_before = False
        self.lost = False
        self.exit_code = 0

    def respond(self, blob):
        """The answer's blob."""
        self.tensors, self.entries = safetensors.decode(blob)
        self.asked += 1
        self.out_tensors, self.out = {}, {"code": "OK"}
        verb = self.entries["verb"]
        try:
            getattr(self, "do_" + verb)()
        except Refused as error:
            self.out_tensors, self.out = {}, {"code": error.code, "message": str(error)}
        self.out["id"] = self.entries["id"]
        if self.doctor:
            getattr(Doctors, self.doctor)(self, verb)
        return safetensors.encode(self.out_tensors, self.out)

    def fail(self, code, message):
        self.out_tensors, self.out = {}, {"id": self.out["id"], "code": code, "message": message}

    # ---- verbs

    def do_hello(self):
        self.out.update(
            suite="1",
            language="toy",
            library_version="0",
            abi_version="1",
            libtorch_version="none",
            device="cpu",
            devices="cpu",
            dtypes="float64 float32 int64 uint8",
            features="models attribution directions distributions limits programs explain threads lifecycle share read operators",
        )

    def do_call(self):
        self.put("r", self.compute("call"))
        if self.entries.get("echo") == "1":
            for kind, _, key in protocol.fields(self.entries["args"], 3):
                if kind == "composition":
                    made = self.composition(key)
                    for part in ("components", "reference", "leftover"):
                        self.out_tensors["%s.%s" % (key, part)] = made.part(part)

    def do_run(self):
        self.put("r", self.compute("run"))

    def do_decompose(self):
        results = self.compute("decompose")
        self.put("r", results)
        self.out["report"] = protocol.lines([("failures", protocol.number(0.0))])
        for index, (_, target) in enumerate(protocol.fields(self.entries.get("explain", ""), 2)):
            self.explain("explanation.%d" % index, results[0], int(target))

    def do_attribute(self):
        (result,) = self.compute("decompose")
        for index, target in enumerate(protocol.unlines(self.entries["targets"])):
            if target[0].isdigit():
                self.explain("attribution.%d" % index, result, *(int(place) for place in target.split("-")))
            else:
                self.explain_distribution("attribution.%d" % index, result, target)

    def do_threads(self):
        for index in range(int(self.entries["count"])):
            self.put("t%dr" % index, self.compute(self.entries["inner_verb"]))

    def do_lifecycle(self):
        codes, objects = [], {}
        for step, *names in [line.split("\t") for line in self.entries["steps"].split("\n")]:
            code = "OK"
            if step == "make":
                objects[names[0]] = self.composition(names[0])
            elif step in ("read", "call") and names[-1] not in objects:
                code = "INVALID_ARGUMENT"
            elif step == "release":
                objects.pop(names[0], None)
            elif step == "live":
                code = str(len(objects))
            codes.append(code)
        self.out["codes"] = protocol.lines(codes)

    def do_memory(self):
        self.out_tensors.update(shared=self.tensors["after"], copied=self.tensors["data"])

    def do_read(self):
        try:
            tensors, _ = safetensors.decode(self.tensors["file"].raw)
        except safetensors.Malformed as error:
            raise Refused("INVALID_ARGUMENT", str(error)) from None
        self.out["names"] = protocol.lines(tensors)
        self.out_tensors.update(("file." + name, tensor) for name, tensor in tensors.items())

    def do_operators(self):
        known = [("toy::affine", "affine"), ("toy::square", "pointwise"), ("toy::flip", "view")]
        self.out["operators"] = protocol.lines(known)

    def do_stats(self):
        self.out["live"] = "0"

    def do_bye(self):
        pass

    # ---- computing

    def compute(self, verb):
        if verb == "call":
            op = self.entries.get("op", "")
            arguments = protocol.fields(self.entries.get("args", ""), 3)
            if op not in FUNCTIONS and op != "toy::flip":
                raise Refused("NOT_FOUND", "no operator %s" % op)
            if len(arguments) != 1:
                raise Refused("INVALID_ARGUMENT", "one argument, please")
            ((kind, _, key),) = arguments
            return [apply(op, self.composition(key) if kind == "composition" else self.tensors[key])]
        ((_, key),) = protocol.fields(self.entries["inputs"], 2)
        value = self.tensors[key + ".value"]
        if verb == "run":
            return [apply("toy::affine", value)]
        return [apply("toy::affine", self.input(key, value))]

    def composition(self, key):
        if self.entries[key + ".make"] == "tensors":
            components = self.tensors[key + ".components"]
            zero = full(components.dtype, components.shape[1:], 0)
            reference = self.tensors.get(key + ".reference", zero)
            return Composition(components, reference, self.tensors.get(key + ".leftover", zero))
        value = self.tensors[key + ".value"]
        dims = [int(dim) for dim in self.entries[key + ".dims"].split(",")]
        if any(not -len(value.shape) <= dim < len(value.shape) for dim in dims):
            raise Refused("INVALID_ARGUMENT", "no such dimension")
        reference = self.tensors.get(key + ".baseline", full(value.dtype, value.shape, 0))
        return self.split(value, reference, subjects.labels_along(value.shape, dims))

    def input(self, key, value):
        reference = self.tensors.get(key + ".baseline", full(value.dtype, value.shape, 0))
        if self.entries[key + ".split"] == "labels":
            labels = subjects.spread_labels(self.tensors[key + ".labels"], value.shape)
        else:
            labels = subjects.labels_along(value.shape, [int(dim) for dim in self.entries[key + ".dims"].split(",")])
        return self.split(value, reference, labels)

    @staticmethod
    def split(value, reference, labels):
        parts = subjects.split(value, reference, labels, -1)
        return Composition(parts.components, parts.reference, full(value.dtype, value.shape, 0), value)

    # ---- answering

    def put(self, prefix, results):
        entries = [] if "results" not in self.out else [self.out["results"]]
        for index, result in enumerate(results):
            key = "%s%d" % (prefix, index)
            if isinstance(result, Tensor):
                entries.append("tensor\toutput\t" + key)
                self.out_tensors[key] = result
                continue
            entries.append("composition\toutput\t" + key)
            for part in self.entries.get("parts", "components reference leftover value").split():
                self.out_tensors["%s.%s" % (key, part)] = result.part(part)
        self.out["results"] = "\n".join(entries)

    def explain(self, key, result, place, subtract=None):
        def at(tensor):
            return tensor.numbers[place] - (0 if subtract is None else tensor.numbers[subtract])

        contributions = [at(row) for row in result.components.rows()]
        numbers = [at(part) for part in (result.value, result.reference, result.leftover)]
        recovery = sum(contributions) + numbers[1] + numbers[2]
        ranked = sorted(range(len(contributions)), key=lambda index: -abs(contributions[index]))
        self.out[key + ".target"] = "[%d]" % place + ("" if subtract is None else " minus [%d]" % subtract)
        self.out[key + ".names"] = protocol.lines(str(index) for index in range(len(contributions)))
        self.out_tensors[key + ".numbers"] = Tensor("f64", (5,), numbers + [recovery, recovery - numbers[0]])
        self.out_tensors[key + ".contributions"] = Tensor("f64", (len(contributions),), contributions)
        self.out_tensors[key + ".ranked"] = Tensor("i64", (len(ranked),), ranked)

    def explain_distribution(self, key, result, target):
        word, _, place = target.partition(":")
        mean = distribution.mean_gradient(word, int(place or 0), result.reference.numbers, result.value.numbers)
        contributions = [sum(g * x for g, x in zip(mean, row.numbers)) for row in result.components.rows()]
        ends = [distribution.QUANTITIES[word][0](part.numbers, int(place or 0)) for part in (result.value, result.reference)]
        leftover = ends[0] - ends[1] - sum(contributions)
        self.out_tensors[key + ".numbers"] = Tensor("f64", (5,), ends + [leftover, ends[0], 0.0])
        self.out_tensors[key + ".contributions"] = Tensor("f64", (len(contributions),), contributions)


def flipped(tensor):
    return tensor.like(list(tensor.numbers)[::-1])


def apply(op, argument):
    if op == "toy::flip":
        if isinstance(argument, Tensor):
            return flipped(argument)
        components = stack([flipped(row) for row in argument.components.rows()])
        return Composition(components, *map(flipped, (argument.reference, argument.leftover, argument.value)))
    f, derivative = FUNCTIONS[op], DERIVATIVES[op]
    if isinstance(argument, Tensor):
        return argument.like([f(x) for x in argument.numbers])
    x, b = argument.value.numbers, argument.reference.numbers
    slopes = [(f(p) - f(q)) / (p - q) if abs(p - q) > 1e-6 else derivative((p + q) / 2) for p, q in zip(x, b)]

    def moved(tensor):
        return tensor.like([slope * number for slope, number in zip(slopes, tensor.numbers)])

    rows = [moved(row) for row in argument.components.rows()]
    value = argument.value.like([f(p) for p in x])
    return Composition(stack(rows), argument.reference.like([f(q) for q in b]), moved(argument.leftover), value)


# ---- doctors


def change(toy, ending, to, begin=""):
    """Numbers of the tensors whose names end so."""
    for name, tensor in toy.out_tensors.items():
        if name.endswith(ending) and name.startswith(begin):
            toy.out_tensors[name] = tensor.like(to(list(tensor.numbers)))


def first(by):
    return lambda numbers: [numbers[0] + by] + numbers[1:]


def up(numbers):
    """The first number that is not zero becomes its neighbour."""
    for index, x in enumerate(numbers):
        if x:
            (bits,) = struct.unpack("<q", struct.pack("<d", x))
            return numbers[:index] + [struct.unpack("<d", struct.pack("<q", bits + 1))[0]] + numbers[index + 1 :]
    return numbers


def computes(verb):
    return verb in ("call", "decompose", "threads")


def squares(toy):
    return toy.entries.get("op") == "toy::square"


class Doctors:
    """Each changes an answer a little, or what the program does about it."""

    def component_off(toy, verb):
        if computes(verb):
            change(toy, ".components", first(1e-3))

    def reference_off(toy, verb):
        if computes(verb):
            change(toy, ".reference", first(1e-3))
            change(toy, ".leftover", first(-1e-3))

    def reference_one_bit_off(toy, verb):
        if computes(verb):
            change(toy, ".reference", up)

    def leftover_instead(toy, verb):
        if computes(verb):
            change(toy, ".components", first(-1e-3))
            change(toy, ".leftover", first(1e-3))

    def component_one_bit_off(toy, verb):
        if computes(verb):
            change(toy, ".components", up)

    def by_position(toy, verb):
        """Later components get more."""
        if computes(verb):
            change(toy, ".components", lambda n: [x * (1 + 1e-3 * k) for k, x in enumerate(n)])

    def by_size(toy, verb):
        """Shares by magnitude, which do not add up when components do."""
        if computes(verb):
            change(toy, ".components", lambda n: [x * (1 + 1e-3 * abs(x)) for x in n])

    def by_count(toy, verb):
        """More, the more components there are."""
        if computes(verb):
            for name, tensor in toy.out_tensors.items():
                if name.endswith(".components"):
                    toy.out_tensors[name] = tensor.like([x * (1 + 1e-3 * tensor.shape[0]) for x in tensor.numbers])

    def never_zero(toy, verb):
        if computes(verb):
            change(toy, ".components", lambda n: [x or 1e-300 for x in n])

    def other_dtype(toy, verb):
        if computes(verb):
            for name, tensor in toy.out_tensors.items():
                if name.endswith(".leftover"):
                    other = "f32" if tensor.dtype == "f64" else "f64"
                    toy.out_tensors[name] = Tensor(other, tensor.shape, tensor.numbers)

    def other_shape(toy, verb):
        if computes(verb):
            for name, tensor in toy.out_tensors.items():
                if name.endswith(".leftover"):
                    toy.out_tensors[name] = Tensor(tensor.dtype, (1,) + tensor.shape, tensor.numbers)

    def value_off(toy, verb):
        if computes(verb):
            change(toy, ".value", first(1e-3))

    def residual_off(toy, verb):
        change(toy, ".residual", first(1e-3))

    def recovery_off(toy, verb):
        change(toy, ".recovery", first(1e-3))

    def drifting(toy, verb):
        """A bit more with every question."""
        if computes(verb):
            change(toy, ".components", lambda n: [x * (1 + 1e-15 * toy.asked) for x in n])

    def drifting_far(toy, verb):
        if computes(verb):
            change(toy, ".components", lambda n: [x * (1 + 1e-3 * toy.asked) for x in n])

    def remembers_policy(toy, verb):
        """After a question under another preset all answers differ."""
        if computes(verb):
            if toy.fast_before:
                change(toy, ".components", up)
            toy.fast_before = toy.fast_before or "fast" in toy.entries.get("policy", "")

    def one_thread_off(toy, verb):
        if verb == "threads":
            change(toy, ".components", up, begin="t5")

    def writes_arguments(toy, verb):
        change(toy, ".components", first(1.0), begin="c0")

    def forgives(toy, verb):
        toy.out["code"] = "OK"

    def other_error(toy, verb):
        if toy.out["code"] != "OK":
            toy.out["code"] = "UNKNOWN"

    def reports_failures(toy, verb):
        if "report" in toy.out:
            toy.out["report"] = protocol.lines([("failures", protocol.number(1.0))])

    def wrong_contribution(toy, verb):
        change(toy, ".contributions", first(0.5))

    def swept_off(toy, verb):
        change(toy, ".contributions", first(1e-9), begin="attribution")

    def second_target_off(toy, verb):
        change(toy, ".contributions", lambda n: n[:-1] + [n[-1] * (1 + 1e-6)], begin="attribution.1")

    def backward_off(toy, verb):
        if toy.entries.get("direction") == "backward":
            change(toy, ".components", first(1e-9))

    def backward_leftover_off(toy, verb):
        if toy.entries.get("direction") == "backward":
            change(toy, ".leftover", first(1e-9))

    def limit_off(toy, verb):
        if toy.entries.get("memory_limit"):
            change(toy, ".contributions", up, begin="attribution")

    def limit_far_off(toy, verb):
        if toy.entries.get("memory_limit"):
            change(toy, ".contributions", first(1e-3), begin="attribution")

    def program_off(toy, verb):
        if toy.entries.get("program"):
            change(toy, "", up, begin="r")

    def program_far_off(toy, verb):
        if toy.entries.get("program"):
            change(toy, "", first(1e-9), begin="r")

    def wrong_ranks(toy, verb):
        change(toy, ".ranked", lambda n: n[::-1])

    def wrong_code_of_a_step(toy, verb):
        if "codes" in toy.out:
            toy.out["codes"] = toy.out["codes"].replace("INVALID_ARGUMENT", "OK")

    def leaks(toy, verb):
        if "codes" in toy.out:
            toy.out["codes"] = toy.out["codes"].replace("0", "1")
        if "live" in toy.out:
            toy.out["live"] = "3"

    def does_not_share(toy, verb):
        if verb == "memory":
            toy.out_tensors["shared"] = toy.tensors["data"]

    def shares_copies(toy, verb):
        if verb == "memory":
            toy.out_tensors["copied"] = toy.tensors["after"]

    def reads_other_bits(toy, verb):
        if verb == "read":
            for name, tensor in toy.out_tensors.items():
                raw = bytes([tensor.raw[0] ^ 1]) + tensor.raw[1:]
                toy.out_tensors[name] = Tensor(tensor.dtype, tensor.shape, raw=raw)

    def forgets_a_result(toy, verb):
        if computes(verb):
            toy.out["results"] = ""

    def knows_more_operators(toy, verb):
        if verb == "operators":
            toy.out["operators"] += "\ntoy::cube\tpointwise"

    def dies(toy, verb):
        if computes(verb) and squares(toy):
            sys.stderr.write("the toy broke\n")
            sys.stderr.flush()
            os._exit(3)

    def loses_context(toy, verb):
        """A device that is lost over squares, and tells it with the next answer unless it is waited for."""
        lost_before = toy.lost
        toy.lost = toy.lost or (computes(verb) and squares(toy))
        if toy.lost if os.environ.get("CUDA_LAUNCH_BLOCKING") == "1" else lost_before:
            toy.fail("INTERNAL", "CUDA error: device-side assert triggered\nCompile with")

    def loses_context_in_a_crowd(toy, verb):
        """Only as the fifth request of a process."""
        toy.lost = toy.lost or toy.asked > 5
        if toy.lost and os.environ.get("CUDA_LAUNCH_BLOCKING") != "1":
            toy.fail("INTERNAL", "CUDA error: an illegal memory access was encountered")

    def single_precision(toy, verb):
        """A kernel of squares that computes in float32, whatever it is asked in."""
        if squares(toy):
            change(toy, "", lambda n: Tensor("f32", (len(n),), n).numbers, begin="r")

    def single_precision_and_more(toy, verb):
        Doctors.single_precision(toy, verb)
        if squares(toy):
            change(toy, ".components", first(1e-5))

    def half_precision(toy, verb):
        if squares(toy):
            change(toy, "", lambda n: Tensor("f16", (len(n),), n).numbers, begin="r")

    def coarse_float32(toy, verb):
        """A kernel of squares that is exact in float64 and rounds to 16 digits in float32."""
        if squares(toy) and "f32" in {tensor.dtype for tensor in toy.tensors.values()}:
            change(toy, "", lambda n: [math.ldexp(round(math.ldexp(x, 14)), -14) for x in n], begin="r")

    def no_kernel(toy, verb):
        if squares(toy):
            toy.fail("UNIMPLEMENTED", "Could not run 'toy::square' with arguments from the 'CUDA' backend. This could")

    def no_kernel_inside(toy, verb):
        """The plain operator is computed."""
        if squares(toy) and "composition" in toy.entries["args"]:
            Doctors.no_kernel(toy, verb)

    def no_kernel_of_float32(toy, verb):
        if squares(toy) and "f32" in {tensor.dtype for tensor in toy.tensors.values()}:
            toy.fail("INVALID_ARGUMENT", '"square_cuda" not implemented for \'Float\'')

    def wants_full_precision(toy, verb):
        """A GPU multiplies in TF32 unless its library is told otherwise."""
        if os.environ.get("NVIDIA_TF32_OVERRIDE") != "0" or "CUBLAS_WORKSPACE_CONFIG" not in os.environ:
            Doctors.half_precision(toy, verb)

    def hangs(toy, verb):
        if computes(verb) and squares(toy):
            time.sleep(3600)

    def babbles(toy, verb):
        """No safetensors."""
        if computes(verb) and squares(toy):
            sys.stdout.buffer.write(protocol.frame(b"0123456789abcdef"))
            sys.stdout.buffer.flush()

    def answers_another(toy, verb):
        if computes(verb) and squares(toy):
            toy.out["id"] = "0"

    def stays(toy, verb):
        if verb == "bye":
            time.sleep(3600)

    def ends_badly(toy, verb):
        if verb == "bye":
            toy.exit_code = 5


def main():
    toy = Toy(sys.argv[2] if sys.argv[1:2] == ["--doctor"] else None)
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    while True:
        length = source.read(4)
        if len(length) < 4:
            return 0
        sink.write(protocol.frame(toy.respond(source.read(int.from_bytes(length, "little")))))
        sink.flush()
        if toy.entries["verb"] == "bye":
            return toy.exit_code


if __name__ == "__main__":
    sys.exit(main())
