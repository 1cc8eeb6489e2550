"""Live models through the plain C interface: nothing but ctypes between PyTorch and the library.

usage: live_test.py LIBRARY
"""

import ctypes
import dataclasses
import sys
import unittest

import torch

addend = None
CAPSULE = b"dltensor"
FLOAT32 = 0x2002


def check(status):
    """Raises what a status says."""
    if not status:
        return
    addend.addend_status_message.restype = ctypes.c_char_p
    message = addend.addend_status_message(ctypes.c_void_p(status)).decode()
    code = addend.addend_status_code(ctypes.c_void_p(status))
    addend.addend_status_release(ctypes.c_void_p(status))
    raise RuntimeError(f"{code}: {message}")


def call(name, *arguments):
    """A function that returns a status."""
    function = getattr(addend, name)
    function.restype = ctypes.c_void_p
    check(function(*arguments))


def made(name, *arguments):
    """A function that returns a status and gives a handle in its last parameter."""
    out = ctypes.c_void_p()
    call(name, *arguments, ctypes.byref(out))
    return out


def from_torch(tensor):
    """A handle on the memory of a torch tensor."""
    capsule = torch.utils.dlpack.to_dlpack(tensor)
    ctypes.pythonapi.PyCapsule_GetPointer.restype = ctypes.c_void_p
    ctypes.pythonapi.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    ctypes.pythonapi.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer(capsule, CAPSULE)
    handle = made("addend_tensor_from_dlpack", ctypes.c_void_p(pointer), 0)
    ctypes.pythonapi.PyCapsule_SetName(capsule, b"used_dltensor")
    return handle


def to_torch(handle):
    """A torch tensor on the memory of a handle, which is released."""
    managed = ctypes.c_void_p()
    versioned = ctypes.c_int32()
    call("addend_tensor_to_dlpack", handle, 0, ctypes.byref(managed), ctypes.byref(versioned))
    addend.addend_tensor_release(handle)
    ctypes.pythonapi.PyCapsule_New.restype = ctypes.py_object
    ctypes.pythonapi.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return torch.utils.dlpack.from_dlpack(ctypes.pythonapi.PyCapsule_New(managed.value, CAPSULE, None))


class Decomposed:
    """The parts of one result."""

    def __init__(self, composition):
        self.components = to_torch(made("addend_composition_part", composition, 0))
        self.reference = to_torch(made("addend_composition_part", composition, 1))
        self.leftover = to_torch(made("addend_composition_part", composition, 2))
        addend.addend_composition_release(composition)

    @property
    def recovery(self):
        return self.components.sum(0) + self.reference + self.leftover


def decompose(run, value, baseline, outputs_of=lambda y: [y], dims=(1,), parameters=(), modules=(), probes=()):
    """Runs `run` on a copy of `value` with a trace open, and decomposes what it gives."""
    value = value.clone()
    request = made("addend_request_create")
    handle = from_torch(value)
    call("addend_request_add_input", request, b"x", handle)
    array = (ctypes.c_int64 * len(dims))(*dims)
    call("addend_request_split_dims", request, array, ctypes.c_size_t(len(dims)))
    other = from_torch(baseline)
    call("addend_request_set_baseline", request, other)
    for name, tensor in parameters:
        own = from_torch(tensor.detach())
        call("addend_request_add_parameter", request, name.encode(), own)
        addend.addend_tensor_release(own)
    for probe in probes:
        call("addend_request_add_probe", request, probe.encode())
    trace = made("addend_trace_begin", None, request)
    hooks = []
    for path, module in modules:
        hooks.append(
            module.register_forward_pre_hook(
                lambda m, i, path=path: call("addend_trace_set_module", trace, path.encode())
            )
        )
    try:
        output = run(value)
        for k, tensor in enumerate(outputs_of(output)):
            own = tensor if isinstance(tensor, ctypes.c_void_p) else from_torch(tensor.detach())
            call("addend_trace_add_output", trace, f"y{k}".encode(), own)
            addend.addend_tensor_release(own)
        results = made("addend_trace_end", trace)
    finally:
        for hook in hooks:
            hook.remove()
        addend.addend_trace_release(trace)
        for h in (handle, other):
            addend.addend_tensor_release(h)
        addend.addend_request_release(request)
    addend.addend_results_size.restype = ctypes.c_size_t
    found = [
        Decomposed(made("addend_results_composition", results, ctypes.c_size_t(k)))
        for k in range(addend.addend_results_size(results))
    ]
    addend.addend_results_release(results)
    return output, found


@dataclasses.dataclass
class Output:
    logits: torch.Tensor
    hidden: torch.Tensor


class Branching(torch.nn.Module):
    """Branches on its data, writes in place, takes a dict and gives a dataclass."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(6, 8)
        self.norm = torch.nn.LayerNorm(8)
        self.last = torch.nn.Linear(8, 3)

    def forward(self, batch):
        x = self.first(batch["x"])
        if x.sum() > 0:
            x = torch.tanh(x)
        else:
            x = torch.nn.functional.gelu(x)
        x[:, 0] *= 2
        x += 1
        hidden = self.norm(x)
        buffer = torch.zeros_like(hidden)
        buffer.copy_(hidden)
        return Output(logits=self.last(buffer), hidden=hidden)


class LiveTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        self.x = torch.randn(2, 6)
        self.b = torch.randn(2, 6)

    def expect(self, decomposed, value, reference, leftover=1e-5):
        torch.testing.assert_close(decomposed.recovery, value.detach(), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(decomposed.reference, reference.detach(), rtol=1e-5, atol=1e-5)
        self.assertLess(decomposed.leftover.abs().max().item(), leftover)
        self.assertGreater(decomposed.components.abs().max().item(), 1e-3)

    def test_a_linear_layer_has_the_parts_that_arithmetic_gives(self):
        layer = torch.nn.Linear(6, 4)
        output, (y,) = decompose(layer, self.x, self.b)
        # Expected by hand: component i is (x_i - b_i) times column i of the weight.
        expected = torch.einsum("bi,oi->ibo", self.x - self.b, layer.weight.detach())
        torch.testing.assert_close(y.components, expected, rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(y.reference, layer(self.b).detach(), rtol=1e-6, atol=1e-6)
        self.assertTrue(output.requires_grad)  # the model ran as ever

    def test_a_model_with_branch_writes_dict_and_dataclass(self):
        for shift in (-3.0, 3.0):  # both branches
            model = Branching()
            model.first.bias.data += shift
            x = {"x": self.x}
            plain = model(x)
            output, (logits, hidden) = decompose(
                lambda value: model({"x": value}), self.x, self.b, lambda y: [y.logits, y.hidden]
            )
            self.assertIsInstance(output, Output)
            self.assertTrue(torch.equal(output.logits, plain.logits))
            # The reference is that of the branch taken.
            taken = self.x @ model.first.weight.T + model.first.bias
            act = torch.tanh if taken.sum() > 0 else torch.nn.functional.gelu
            r = act(model.first(self.b)).detach().clone()
            r[:, 0] *= 2
            r += 1
            r = model.norm(r)
            self.expect(hidden, plain.hidden, r)
            self.expect(logits, plain.logits, model.last(r))

    def test_outputs_that_are_views(self):
        layer = torch.nn.Linear(6, 4)
        _, (row, whole) = decompose(layer, self.x, self.b, lambda y: [y[1, 1:], y.t()])
        self.assertEqual(list(row.components.shape), [6, 3])
        torch.testing.assert_close(row.components, whole.components[:, 1:, 1], rtol=0, atol=0)

    def test_inputs_that_the_model_writes(self):
        def run(value):
            value.mul_(2)
            return value * value

        _, (y,) = decompose(run, self.x, self.b)
        self.expect(y, (2 * self.x) ** 2, (2 * self.b) ** 2)

    def test_probes_by_module(self):
        model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))
        _, (y, inner) = decompose(
            model,
            self.x,
            self.b,
            parameters=model.named_parameters(),
            modules=[(path, m) for path, m in model.named_modules() if path],
            probes=["1"],
        )
        self.expect(inner, torch.tanh(model[0](self.x)), torch.tanh(model[0](self.b)))
        self.expect(y, model(self.x), model(self.b))

    def test_what_is_no_output_is_told(self):
        with self.assertRaisesRegex(RuntimeError, "5: no operator of the trace has met the memory of y0"):
            numbers = (ctypes.c_float * 1)(1.0)
            one = (ctypes.c_int64 * 1)(1)
            other = made(
                "addend_tensor_copy", numbers, ctypes.c_size_t(4), FLOAT32, one, ctypes.c_size_t(1)
            )
            decompose(torch.relu, self.x, self.b, lambda y: [other])
        addend.addend_tensor_release(other)

    def test_an_operator_without_rule_ends_the_trace_with_its_name(self):
        with self.assertRaisesRegex(RuntimeError, "no composition rule for aten::"):
            decompose(lambda x: torch.geqrf(x)[0], self.x, self.b)
        # The thread is free again.
        self.test_a_linear_layer_has_the_parts_that_arithmetic_gives()

    def test_nothing_is_left(self):
        addend.addend_debug_live.restype = ctypes.c_int64
        for kind in range(1, 16):
            self.assertEqual(addend.addend_debug_live(kind), 0, kind)


if __name__ == "__main__":
    addend = ctypes.CDLL(sys.argv.pop(1))
    unittest.main()
