"""Code tracing prints what runs in a block, in the layout of Program.code()."""

import contextlib
import io
import re
import threading
import unittest

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import addend


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, ids):
        hidden = self.embed(ids) * 2 + self.embed(ids).tanh()
        hidden[:, 0] += 1
        if hidden.sum() > 0:
            hidden = -hidden
        return self.head(hidden), torch.triu(torch.full((2, 2), -3.4, device=ids.device), diagonal=1)


IDS = torch.tensor([[1, 2, 3]])


class Fails(nn.Module):
    def __init__(self, error):
        super().__init__()
        self.error = error

    def forward(self, x):
        y = x.sin()
        if self.error is None:
            return y @ torch.zeros(7, 7)
        raise self.error


def traced(function, **options):
    """Runs a function, and returns what was printed meanwhile and the text of the trace."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), addend.code_tracing(**options) as trace:
        function()
    return printed.getvalue(), trace.text


def operators(text):
    return re.findall(r"# (\w+)[.(]\S*.*;", text)


class Calls(TorchDispatchMode):
    """The operators that PyTorch's own mode sees, which lies below autograd."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.append(function.overloadpacket.__name__)
        return function(*args, **(kwargs or {}))


class CodeTracingTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.net = Net()

    def test_is_the_text_of_a_program(self):
        many = ({"succinct": False}, {"color": True}, {"marks": True}, {"exclude": []}, {"include": ["*test.py"]})
        for options in ({}, *many):
            with self.subTest(options):
                scopes = [addend.recording(), addend.code_tracing(file=io.StringIO(), **options)]
                for scope in scopes:
                    with scope:
                        output = self.net(IDS)
                        if scope is scopes[0]:
                            scope.output(output[0])
                self.assertEqual(scopes[1].text, scopes[0].program.code(**options))
                self.assertEqual(scopes[1]._file.getvalue(), scopes[1].text)
                self.assertIn("code_tracing_test.py", scopes[1].text)

    def test_is_printed_while_the_model_runs(self):
        printed, text = traced(lambda: self.net(IDS))
        self.assertEqual(printed, text)
        self.assertEqual(operators(text)[:3], ["embedding", "mul", "embedding"])
        file = io.StringIO()
        with addend.code_tracing(file=file) as trace:
            x = IDS.float()
            self.assertEqual(operators(file.getvalue()), ["to"])
            x.sin().cos()
            self.assertEqual(operators(file.getvalue()), ["to", "sin", "cos"])
            self.assertEqual(trace.text, file.getvalue())

    def test_sees_the_operators_that_pytorch_sees(self):
        x, w = torch.rand(2, 3), torch.rand(3, 3)

        def runs():
            y = torch.mm(x, w).relu().mul(2)
            y[0] = y.sum(1, keepdim=True).exp()[0]
            return torch.cat([y.add_(1), x])

        with Calls() as calls, torch.no_grad():
            runs()
        with torch.no_grad():
            self.assertEqual(operators(traced(runs)[1]), calls.names)

    def test_what_was_reached_is_printed_where_the_block_raises(self):
        x = torch.rand(2, 3)
        for error in (None, KeyError("own"), RuntimeError("own"), KeyboardInterrupt()):
            with self.subTest(error=error):
                model, file = Fails(error), io.StringIO()
                with self.assertRaises(RuntimeError if error is None else type(error)) as caught:
                    with addend.code_tracing(file=file):
                        model(x)
                self.assertEqual(operators(file.getvalue()), ["sin"] if error is not None else ["sin", "zeros"])
                if error is not None:
                    self.assertIs(caught.exception, error)
                else:
                    self.assertIn("mat1 and mat2", str(caught.exception))
        self.assertEqual(operators(traced(lambda: x.cos())[1]), ["cos"], "the thread is free again")

    def test_meta(self):
        plain = traced(lambda: nn.Sequential(self.net.embed, self.net.head)(IDS))[1]
        net = Net().to("meta")
        text = traced(lambda: nn.Sequential(net.embed, net.head)(IDS.to("meta")))[1]
        self.assertIn("# linear(f32[1, 3, 4], f32[2, 4], f32[2]) -> f32[1, 3, 2];", plain)
        self.assertEqual(operators(text)[-2:], operators(plain))
        self.assertIn("-> f32[1, 3, 2];", text.splitlines()[-1])

    def test_changes_nothing(self):
        before = self.net(IDS)[0]
        state = torch.get_rng_state()
        results = []
        traced(lambda: results.append(self.net(IDS)[0]))
        self.assertTrue(torch.equal(results[0], before))
        self.assertTrue(torch.equal(torch.get_rng_state(), state))
        results[0].sum().backward()
        self.assertIsNotNone(self.net.head.weight.grad)
        self.assertIn("backward", traced(lambda: self.net(IDS)[0].sum().backward())[1])

    def test_empty_blocks_other_threads_and_use_again(self):
        self.assertEqual(traced(lambda: None), ("", ""))

        def elsewhere():
            thread = threading.Thread(target=lambda: torch.rand(3).sin())
            thread.start()
            thread.join()

        self.assertRegex(traced(elsewhere)[1], "^# the model gave work to another thread, .*\n$")
        trace = addend.code_tracing(file=io.StringIO())
        with trace:
            torch.rand(3).sin()
        with self.assertRaisesRegex(RuntimeError, "runs once"):
            with trace:
                pass
        with self.assertRaisesRegex(TypeError, "include is a list of patterns"):
            addend.code_tracing(include="*.py")


if __name__ == "__main__":
    unittest.main()
