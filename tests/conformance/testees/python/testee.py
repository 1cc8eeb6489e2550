#!/usr/bin/env python3
"""The testee of the conformance suite in Python: executes requests of PROTOCOL.md and expects nothing.

Tensors go through arrays of Python, so that what is tested is the face that users have.
"""

import array
import gc
import os
import struct
import sys
import tempfile
import threading

# Before LibTorch asks for it.
os.environ.setdefault("NVIDIA_TF32_OVERRIDE", "0")

import addend  # noqa: E402

DTYPES = "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64 complex128"
PARTS = "components reference leftover value"
REPORT = (
    "operators nodes worst_recovery_error worst_bracket failures absorbed absorbed_failures path_ruled "
    "stand_in_references unattributed"
).split()
# Type codes of Python's arrays, by dtype.
ARRAYS = {
    "uint8": "B",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "float32": "f",
    "float64": "d",
}
device = "cpu"


def in_memory(tensor):
    """Copies numbers into an array of one's own; gives the tensor itself if Python has no such array."""
    if tensor.dtype not in ARRAYS or tensor.size == 0:
        return tensor
    flat = array.array(ARRAYS[tensor.dtype], tensor.memoryview().tobytes())
    return memoryview(flat).cast("B").cast(ARRAYS[tensor.dtype], tensor.shape)


# ---- texts


def integers(text):
    return [int(number) for number in text.split(",") if number]


def number_of(digits):
    return struct.unpack(">d", bytes.fromhex(digits))[0]


def digits_of(number):
    return struct.pack(">d", number).hex()


class Frame:
    """A request."""

    def __init__(self, blob):
        self.file = addend.read_tensors(blob, "request")
        self.names = set(self.file)
        self.complex = set(self.lines("complex"))
        self.host = set(self.lines("host"))

    def text(self, key):
        return self.file.metadata(key) or ""

    def lines(self, key):
        text = self.text(key)
        return text.split("\n") if text else []

    def entries(self, key, fields):
        """The entries of a list, each with so many fields."""
        return [(line.split("\t") + [""] * fields)[:fields] for line in self.lines(key)]

    def integer(self, key, otherwise):
        text = self.text(key)
        return int(text) if text else otherwise

    def bytes(self, name):
        return self.file[name].memoryview().tobytes()

    def get(self, name):
        value = in_memory(self.file[name])
        if name in self.complex:
            value = addend.call("aten::view_as_complex", addend.as_tensor(value))
        return value if device == "cpu" or name in self.host else addend.as_tensor(value).to(device=device)

    def optional(self, name):
        return self.get(name) if name in self.names else None


class Answer:
    def __init__(self):
        self.texts = {"code": "OK"}
        self.tensors = {}

    def append(self, key, line):
        self.texts[key] = self.texts[key] + "\n" + line if key in self.texts else line

    def add(self, name, tensor):
        if tensor.dtype in ("complex64", "complex128"):
            self.append("complex", name)
            tensor = addend.call("aten::view_as_real", addend.call("aten::resolve_conj", tensor))
        self.tensors[name] = in_memory(tensor.to(device="cpu"))

    def add_results(self, prefix, results, names, parts):
        for index, (result, name) in enumerate(zip(results, names)):
            key = "%s%d" % (prefix, index)
            if isinstance(result, addend.Composition):
                self.append("results", "composition\t%s\t%s" % (name, key))
                for part in (parts or PARTS).split():
                    self.add("%s.%s" % (key, part), getattr(result, part))
            elif isinstance(result, addend.Tensor):
                self.append("results", "tensor\t%s\t%s" % (name, key))
                self.add(key, result)
            elif result is None:
                self.append("results", "none\t%s\t" % name)
            else:
                self.append("results", "number\t%s\t%s" % (name, digits_of(result)))

    def encode(self):
        return addend.encode_tensors(self.tensors, self.texts)


# ---- what requests speak of


def make_composition(frame, key):
    make = frame.text(key + ".make")
    if make == "tensors":
        parts = [frame.optional("%s.%s" % (key, part)) for part in ("components", "reference", "leftover")]
        return addend.Composition(*parts)
    value, baseline = frame.get(key + ".value"), frame.optional(key + ".baseline")
    numc = frame.integer(key + ".numc", -1)
    numc = None if numc == -1 else numc
    if make == "labels":
        return addend.Composition.from_labels(value, frame.get(key + ".labels"), baseline=baseline, numc=numc)
    dims, offset = integers(frame.text(key + ".dims")), frame.integer(key + ".offset", 0)
    return addend.Composition.diagonal(value, dims, baseline=baseline, offset=offset, numc=numc)


def make_context(frame):
    """None where nothing is chosen."""
    choices, overrides = {}, {}
    for key, value in frame.entries("policy", 2):
        field, at, selector = key.partition("@")
        (overrides.setdefault(selector, {}) if at else choices)[field] = value
    if overrides:
        choices["overrides"] = overrides
    if frame.text("stop_after"):
        left = [int(frame.text("stop_after"))]

        def progress(stage, done, total):
            left[0] -= 1
            if left[0] == 0:
                raise addend.Cancelled("the testee was told to stop")

        choices["progress"] = progress
    return addend.Context(**choices) if choices else None


def make_arguments(frame, compositions):
    """Those by position, those by name."""
    positional, named = [], {}
    lists = []
    for kind, name, value in frame.entries("args", 3):
        if kind == "end":
            lists.pop()
            continue
        if kind == "composition":
            compositions[value] = made = make_composition(frame, value)
            value = made
        elif kind == "list":
            value = []
        else:
            value = ARGUMENTS[kind](frame, value)
        if lists:
            lists[-1].append(value)
        elif name:
            named[name] = value
        else:
            positional.append(value)
        if kind == "list":
            lists.append(value)
    return positional, named


ARGUMENTS = {
    "tensor": lambda frame, value: addend.as_tensor(frame.get(value)),
    "i64": lambda frame, value: int(value),
    "i64s": lambda frame, value: integers(value),
    "f64": lambda frame, value: number_of(value),
    "bool": lambda frame, value: value == "1",
    "str": lambda frame, value: frame.text(value),
    "dtype": lambda frame, value: addend.DType(value),
    "none": lambda frame, value: None,
}


# The model of the last request, by path and dtype: the next one is often about the same.
last_model = {}


def there(model):
    return model if device == "cpu" else model.to(device)


def load_model(frame):
    name = (frame.text("model"), frame.text("model_dtype"))
    if "model" not in frame.names and name in last_model:
        return last_model[name]
    source = frame.bytes("model") if "model" in frame.names else frame.text("model")
    model = there(addend.load_model(source, frame.text("model_dtype") or None))
    if "model" not in frame.names:
        last_model.clear()
        last_model[name] = model
    return model


def make_inputs(frame):
    """The arguments of a model: inputs by position, or a dictionary of named ones. A name that comes again has no place
    in the same dictionary, and gets another."""
    positional, named = [], []
    for name, key in frame.entries("inputs", 2):
        split = frame.text(key + ".split")
        options = {}
        if split == "dims":
            options["dims"] = integers(frame.text(key + ".dims"))
        elif split != "plain":
            options[split] = frame.get("%s.%s" % (key, split))
        number = frame.text(key + ".baseline_number")
        options["baseline"] = number_of(number) if number else frame.optional(key + ".baseline")
        if frame.text(key + ".first"):
            options["first_component"] = frame.integer(key + ".first", 0)
        source = addend.Input(frame.get(key + ".value"), names=frame.lines(key + ".names"), **options)
        if not name:
            positional.append(source)
        elif named and name not in named[-1]:
            named[-1][name] = source
        else:
            named.append({name: source})
    return positional or named


def load_or_record(frame, inputs):
    """The model, or a program of it that was a folder in between."""
    model = load_model(frame)
    if frame.text("program") != "1":
        return model
    with tempfile.TemporaryDirectory() as folder:
        model.record(*inputs).save(folder)
        return addend.Program.load(folder).model()


def prepare(verb, frame, compositions):
    """Prepares a call or a decomposition once; the function that is returned computes: results, names."""
    context = make_context(frame)
    if verb == "call":
        positional, named = make_arguments(frame, compositions)
        op = frame.text("op")

        def compute():
            results = addend.call(op, *positional, context=context, **named)
            results = results if isinstance(results, tuple) else (results,)
            return results, [""] * len(results)

        return compute
    inputs = make_inputs(frame)
    model = load_or_record(frame, inputs)
    options = {}
    if frame.text("cancel") == "1":
        options["cancellation"] = addend.Cancellation()
        options["cancellation"].cancel()
    if verb == "decompose":
        options.update(
            probes=frame.lines("probes"),
            everything=frame.text("everything") == "1",
            direction=frame.text("direction") or "auto",
            context=context,
        )

    def compute():
        results = getattr(model, verb)(*inputs, **options)
        return results, [name or "" for name in results.names]

    return compute


# ---- verbs


def hello(frame, answer):
    global device
    device = frame.text("device")
    addend.set_num_threads(frame.integer("threads", 1))
    addend.as_tensor([1.0]).to(device=device)
    answer.texts.update(
        suite="1",
        language="python",
        library_version=addend.__version__,
        abi_version=str(addend._native.abi_version()),
        libtorch_version=addend.libtorch_version,
        device=device,
        devices="cpu" if device == "cpu" else "cpu " + device,
        dtypes=DTYPES,
        features="models attribution directions distributions limits programs shapley explain threads lifecycle share stop read operators",
        about="Python\t" + sys.version.split()[0],
    )


def execute(frame, answer):
    verb = frame.text("verb")
    compositions = {}
    results, names = prepare(verb, frame, compositions)()
    answer.add_results("r", results, names, frame.text("parts"))
    if frame.text("echo") == "1":
        for key, composition in compositions.items():
            for part in ("components", "reference", "leftover"):
                answer.add("%s.%s" % (key, part), getattr(composition, part))
    if verb == "decompose":
        for key in REPORT:
            answer.append("report", "%s\t%s" % (key, digits_of(results.number(key))))
        answer.texts["notes"] = "\n".join(results.notes)
        for index, (name, target) in enumerate(frame.entries("explain", 2)):
            add_explanation(answer, "explanation.%d" % index, results.explain(target, name or None))


def attribute(frame, answer):
    inputs = make_inputs(frame)
    model = load_or_record(frame, inputs)
    told = model.explain(
        *inputs,
        targets=frame.lines("targets"),
        memory=frame.integer("memory_limit", 0),
        context=make_context(frame),
    )
    for index in range(len(told)):
        add_explanation(answer, "attribution.%d" % index, told[index])


def add_explanation(answer, key, told):
    numbers = [told.value, told.reference, told.leftover, told.recovery, told.recovery_error]
    answer.texts[key + ".target"] = told.target
    answer.tensors[key + ".numbers"] = array.array("d", numbers)
    answer.tensors[key + ".contributions"] = array.array("d", told.contributions)
    answer.tensors[key + ".ranked"] = array.array("q", [one.component for one in told.top()])
    answer.texts[key + ".names"] = "\n".join(told.names)


def shapley(frame, answer):
    if frame.text("op"):
        positional, named = make_arguments(frame, {})
        values = addend.shapley(frame.text("op"), *positional, **named)
    else:
        values = load_model(frame).shapley(*make_inputs(frame))
    answer.add_results("r", [values], [""], frame.text("parts"))


def threads(frame, answer):
    compute = prepare(frame.text("inner_verb"), frame, {})
    found = [None] * frame.integer("count", 1)

    def work(index):
        try:
            found[index] = compute()
        except Exception as error:
            found[index] = error

    workers = [threading.Thread(target=work, args=(index,)) for index in range(len(found))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for index, result in enumerate(found):
        if isinstance(result, Exception):
            raise result
        answer.add_results("t%dr" % index, *result, frame.text("parts"))


def live():
    """How many handles are alive. Reference counts and a collection release at once, on this thread: none comes later."""
    gc.collect()
    return addend._native.debug_live(0)


def lifecycle(frame, answer):
    objects = {}
    last_model.clear()
    before = live()
    for step, *names in frame.entries("steps", 4):
        code = "OK"
        try:
            if step == "make":
                objects[names[0]] = make_composition(frame, names[0])
            elif step == "call":
                objects[names[0]] = addend.call(names[1], objects[names[2]])
            elif step == "read":
                objects[names[0]].components
            elif step == "release":
                objects[names[0]].close()
            elif step == "release_elsewhere":
                worker = threading.Thread(target=objects[names[0]].close)
                worker.start()
                worker.join()
            else:
                code = str(live() - before)
        except Exception as error:
            code = code_of(error)
        answer.append("codes", code)


def memory(frame, answer):
    data = frame.file["data"]
    numbers = array.array("d", frame.bytes("data"))
    shared, copied = (
        addend.as_tensor(memoryview(one).cast("B").cast("d", data.shape)) for one in (numbers, numbers[:])
    )
    numbers[:] = array.array("d", frame.bytes("after"))
    answer.add("shared", shared)
    answer.add("copied", copied)


def read(frame, answer):
    file = addend.read_tensors(frame.bytes("file"))
    answer.texts["names"] = "\n".join(file)
    for name in file:
        answer.add("file." + name, file[name])


def operators(frame, answer):
    answer.texts["operators"] = "\n".join("%s\t%s" % (op.name, op.kind) for op in addend.operators())


VERBS = {
    "hello": hello,
    "call": execute,
    "run": execute,
    "decompose": execute,
    "attribute": attribute,
    "shapley": shapley,
    "threads": threads,
    "lifecycle": lifecycle,
    "memory": memory,
    "read": read,
    "operators": operators,
    "stats": lambda frame, answer: None,
    "bye": lambda frame, answer: None,
}


def code_of(error):
    if isinstance(error, addend.Error):
        return error.code.name
    return "INVALID_ARGUMENT" if isinstance(error, (TypeError, ValueError, KeyError)) else "UNKNOWN"


def respond(blob):
    """The answer, and whether it is the last one."""
    frame = Frame(blob)
    identity, verb = frame.text("id"), frame.text("verb")
    answer = Answer()
    try:
        if verb in VERBS:
            VERBS[verb](frame, answer)
        else:
            answer.texts.update(code="PROTOCOL", message="no verb is called " + verb)
    except Exception as error:
        answer = Answer()
        answer.texts.update(code=code_of(error), message=str(error))
        for key in ("op", "module_path"):
            if getattr(error, "payload", {}).get(key):
                answer.append("payload", "%s\t%s" % (key, error.payload[key]))
    if verb == "stats":
        del frame
        last_model.clear()
        answer.texts["live"] = str(live())
    answer.texts["id"] = identity
    return answer.encode(), verb == "bye"


def main():
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    while True:
        length = source.read(4)
        if len(length) < 4:
            return 0
        answer, last = respond(source.read(int.from_bytes(length, "little")))
        sink.write(len(answer).to_bytes(4, "little") + answer)
        sink.flush()
        if last:
            return 0


if __name__ == "__main__":
    sys.exit(main())
