"""Calls the library by addend_api.json alone, as a generated binding would: where it says that a pointer may be NULL the
library takes NULL, and everywhere else it names the parameter.

usage: api_calls_test.py API LIBRARY
"""

import ctypes
import json
import os
import sys
import tempfile
import unittest

API = LIBRARY = None
MODEL = b"docs/examples/models/digits/model.pt"
SAMPLE = b"docs/examples/models/digits/sample.safetensors"
INVALID_ARGUMENT = 3

NUMBERS = {"int32_t": ctypes.c_int32, "uint32_t": ctypes.c_uint32, "int64_t": ctypes.c_int64, "size_t": ctypes.c_size_t,
           "double": ctypes.c_double}
# Arguments where NULL is not given: any other text is "x", any other number 1.
TEXTS = {"path": SAMPLE, "target": b"top1", "key": b"preset", "options": b"{}", "op": b"aten::relu", "principle": b"path",
         "direction": b"auto", "word": b"mean", "methods": b"forward", "name": b"input", "value": b"auto"}
KNOWN = {"size": 4, "dtype": 0x2002, "index": 0}
# Functions of which some parameter is memory in a layout of its own; NULL alone is tried.
LAYOUTS = {"addend_tensor_from_dlpack": {"managed"}, "addend_rules_add_callbacks": {"callbacks"}}


def type_of(name):
    return NUMBERS.get(name, ctypes.c_char_p if name == "const char*" else None if name == "void" else ctypes.c_void_p)


@ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
def no_program(payload, example, inputs, num_inputs, out_program):
    return 1


class Client:
    """A client as a generator of bindings would write it."""

    def __init__(self, api, path):
        self.library = ctypes.CDLL(path)
        self.functions = {function["name"]: function for function in api["functions"]}
        self.kinds = {one["name"]: one["kind"] for one in api["types"]}
        self.released = {one["name"]: one["release"] for one in api["types"] if one["kind"] == "handle"}
        for name, function in self.functions.items():
            native = getattr(self.library, name)
            native.restype = type_of(function["returns"]["type"])
            native.argtypes = [type_of(parameter["type"]) for parameter in function["parameters"]]

    def __call__(self, name, *arguments):
        """(code, message) where the function gives a status, otherwise what it returns."""
        result = getattr(self.library, name)(*arguments)
        if self.functions[name]["returns"]["type"] != "addend_status*":
            return result
        outcome = (self.library.addend_status_code(result), self.library.addend_status_message(result).decode())
        self.library.addend_status_release(result)
        return outcome

    def made(self, name, *arguments):
        """The handle that a function gives in its last parameter."""
        out = ctypes.c_void_p()
        code, message = self(name, *arguments, ctypes.byref(out))
        assert code == 0, message
        return out.value


class CallsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(API, encoding="utf-8") as file:
            cls.api = json.load(file)
        cls.client = Client(cls.api, LIBRARY)

    def request(self):
        made = self.client.made("addend_request_create")
        file = self.client.made("addend_tensor_file_read", SAMPLE)
        image = self.client.made("addend_tensor_file_tensor", file, b"input")
        dims = (ctypes.c_int64 * 2)(2, 3)
        for outcome in (self.client("addend_request_add_input", made, None, image),
                        self.client("addend_request_split_dims", made, dims, 2)):
            self.assertEqual(outcome, (0, ""))
        self.client("addend_tensor_release", image)
        self.client("addend_tensor_file_release", file)
        return made

    def handle(self, kind):
        """A live handle of a type."""
        if kind == "addend_trace":
            return self.client.made("addend_trace_begin", None, self.request())
        made = getattr(self, kind[len("addend_"):], None)
        if made is not None:
            return made()
        model = ("addend_model_load", MODEL, 0)
        if kind == "addend_status":
            return self.client.library.addend_tensor_file_read(b"/nowhere", ctypes.byref(ctypes.c_void_p()))
        if kind == "addend_string":
            return self.client.made("addend_context_policy", None)
        if kind in ("addend_cancellation", "addend_arguments", "addend_rules", "addend_tensor_file", "addend_context_options"):
            return self.client.made(kind + "_create")
        if kind == "addend_context":
            return self.client.made("addend_context_create", self.handle("addend_context_options"))
        if kind == "addend_tensor":
            return self.client.made("addend_tensor_copy", (ctypes.c_float * 2)(1, 2), 8, 0x2002, (ctypes.c_int64 * 2)(1, 2), 2)
        if kind == "addend_audit_log":  # a file of its own each time: it is locked
            descriptor, path = tempfile.mkstemp()
            os.close(descriptor)
            self.addCleanup(os.remove, path)
            return self.client.made("addend_audit_log_open", path.encode(), None)
        if kind == "addend_job":
            folder = tempfile.TemporaryDirectory()
            self.addCleanup(folder.cleanup)
            plan = os.path.join(folder.name, "plan.json").encode()
            options = json.dumps({"inputs": [SAMPLE.decode()]}).encode()
            self.client("addend_string_release", self.client.made("addend_job_plan", None, plan, MODEL, self.request(), options))
            return self.client.made("addend_job_open", plan)
        if kind == "addend_composition":
            return self.client.made("addend_composition_from_tensors", self.handle("addend_tensor"), None, None, 0)
        if kind == "addend_explanation":
            return self.client.made("addend_composition_explain", self.handle("addend_composition"), b"top1")
        if kind == "addend_concepts":
            return self.client.made("addend_concepts_read", b'{"format": "addend.concepts", "version": 1}')
        if kind == "addend_model":
            return self.client.made(*model)
        run = {
            "addend_results": "addend_model_decompose",
            "addend_attribution": "addend_model_attribute",
            "addend_plan": "addend_model_plan",
        }.get(kind)
        arguments = (None,) if run else ()
        return self.client.made(run or "addend_model_record", *arguments, self.client.made(*model), self.request())

    def argument(self, parameter):
        kind, name = parameter["type"], parameter["name"]
        if parameter["direction"] == "out":
            return ctypes.byref(ctypes.c_void_p())
        if kind in NUMBERS:
            return 1.0 if kind == "double" else KNOWN.get(name, 1)
        if kind == "const char*":
            return TEXTS.get(name, b"x")
        if kind == "const int64_t*":
            return ctypes.cast((ctypes.c_int64 * 1)(1), ctypes.c_void_p)
        if kind == "addend_record_fn":
            return ctypes.cast(no_program, ctypes.c_void_p)
        if kind.endswith("_fn") or name == "payload":
            return None
        if "void*" in kind or name == "callbacks":
            return ctypes.cast(ctypes.create_string_buffer(256), ctypes.c_void_p)
        return self.handle(kind.replace("const ", "").rstrip("*"))

    def outcome(self, function, null):
        """The outcome of a call whose parameter `null` is NULL."""
        arguments = [None if p["name"] == null else self.argument(p) for p in function["parameters"]]
        outcome = self.client(function["name"], *arguments)
        for parameter, argument in zip(function["parameters"], arguments):  # a trace that is open stops the next
            if "addend_trace*" in parameter["type"]:
                self.client("addend_trace_release", argument)
            if parameter["type"] == "addend_trace**" and argument is not None and outcome[0] == 0:
                self.client("addend_trace_release", argument._obj)
        return outcome

    def pointers(self):
        """(function, parameter) of every pointer of a function that gives a status, and can be called from outside."""
        for function in self.api["functions"]:
            types = [p["type"].replace("const ", "").rstrip("*") for p in function["parameters"]]
            if function["returns"]["type"] != "addend_status*" or any(self.client.kinds.get(t) == "opaque" for t in types):
                continue
            for parameter in function["parameters"]:
                if "nullable" in parameter or parameter["direction"] == "out":
                    if parameter["name"] in LAYOUTS.get(function["name"], {parameter["name"]}):
                        yield function, parameter

    def test_null_is_refused_where_it_is_not_allowed(self):
        tried = 0
        for function, parameter in self.pointers():
            if parameter.get("nullable"):
                continue
            with self.subTest(function=function["name"], parameter=parameter["name"]):
                code, message = self.outcome(function, parameter["name"])
                self.assertEqual((code, parameter["name"] + " is NULL" in message), (INVALID_ARGUMENT, True), message)
                tried += 1
        self.assertGreater(tried, 150)

    def test_null_is_taken_where_it_is_allowed(self):
        tried = 0
        for function, parameter in self.pointers():
            if not parameter.get("nullable"):
                continue
            with self.subTest(function=function["name"], parameter=parameter["name"]):
                code, message = self.outcome(function, parameter["name"])
                self.assertNotIn(parameter["name"] + " is NULL", message)
                tried += 1
        self.assertGreater(tried, 20)

    def test_releasing_null_does_nothing(self):
        for release in self.client.released.values():
            self.client(release, None)


if __name__ == "__main__":
    API, LIBRARY = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
