"""A module's name means what the module returned, in probes, `at=` and splits inside the model.

The oracle is a forward hook of PyTorch. A name that means several tensors is an error that lists them.
"""

import copy
import os
import re
import tempfile
import unittest
import warnings

import torch
from torch import nn

import addend


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.MultiheadAttention(4, 2, batch_first=True)
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        given, weights = self.inner(x, x, x)
        return self.head(given)


class Several(nn.Module):
    """Returns what is used, nothing, and what is not used."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        hidden = self.layer(x)
        return torch.relu(hidden), None, {"also": torch.tanh(hidden)}


class OfSeveral(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Several()
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        return self.head(self.inner(x)[0])


class Statistic(nn.Module):
    """Keeps a mean, after it has computed what it returns."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        given = self.layer(x).tanh()
        self.mean.copy_(given.detach().mean(dim=(0, 1)))
        return given


class OfStatistic(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Statistic()
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        return self.head(self.inner(x))


class LastState(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.LSTM(4, 5, batch_first=True)
        self.head = nn.Linear(5, 3)

    def forward(self, x):
        _, (hidden, _) = self.inner(x)
        return self.head(hidden[-1])


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(2, 3), nn.Tanh())
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        left = self.inner(x[..., :2])
        return self.head(torch.cat([left, self.inner(x[..., 2:])], -1))


class Both(nn.Module):
    """Both tensors of the module are used."""

    def __init__(self):
        super().__init__()
        self.inner = nn.GRU(4, 5, batch_first=True)
        self.head = nn.Linear(5, 3)

    def forward(self, x):
        steps, last = self.inner(x)
        return self.head(steps + last.transpose(0, 1))


class Swapped(nn.Module):
    """Returns in another order than it computes."""

    def forward(self, x):
        first = x * 2
        second = first.tanh()
        return second, first


class Named(nn.Module):
    """Has a method with the name that traced files give a second call."""

    def forward(self, x):
        return x.sin()

    @torch.jit.export
    def forward1(self, x):
        return x.exp()


@torch.jit.interface
class OneTensor(nn.Module):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        pass


def through(module: OneTensor, x: torch.Tensor) -> torch.Tensor:
    return module.forward(x)


class Methods(nn.Module):
    """Calls another method of a module than forward()."""

    def __init__(self):
        super().__init__()
        self.inner, self.head = Named(), nn.Linear(4, 3)

    def forward(self, x):
        return self.head(self.inner.forward1(self.inner(x)))


class InFunction(nn.Module):
    """Gives a module to a function that calls it."""

    inner: OneTensor

    def __init__(self):
        super().__init__()
        self.inner, self.head = nn.Tanh(), nn.Linear(4, 3)

    def forward(self, x):
        return self.head(through(self.inner, self.inner(x)))


X = torch.tensor([[[0.5, -1.0, 2.0, 0.1], [0.3, 0.2, -0.7, 1.0], [1.5, 0.1, 0.0, -0.4]]])


def flattened(returned):
    if isinstance(returned, torch.Tensor):
        return [returned]
    own = returned.values() if isinstance(returned, dict) else returned or ()
    return [tensor for one in own for tensor in flattened(one)]


def hooked(net):
    """The outputs of the module `inner` in each of its calls."""
    seen = []
    handle = net.inner.register_forward_hook(lambda module, given, returned: seen.append(flattened(returned)))
    with torch.no_grad():
        net(X)
    handle.remove()
    return seen


class ModuleOutputsTest(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore")
        torch.manual_seed(1)

    def models(self, net):
        yield "live", addend.compile(net)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.pt")
            torch.jit.trace(net, X, check_trace=False).save(path)
            yield "traced file", addend.load_model(path)
        yield "program", addend.compile(net).record(X).model()

    def scripted(self, net):
        """The doors of a scripted file: the file, its program, and that program from a file."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.pt")
            torch.jit.script(net).save(path)
            model = addend.load_model(path)
            yield "scripted file", model
            yield "program of a scripted file", model.record(X).model()
            path = os.path.join(folder, "program")
            model.record(X).save(path)
            yield "saved program of a scripted file", addend.Program.load(path).model()

    def told(self, net, script=True):
        """The doors that see what modules return: a live model, its program, that program from a file, and the same of a
        scripted file."""
        for door, model in self.models(net):
            if door != "traced file":
                yield door, model
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program")
            addend.compile(net).record(X).save(path)
            yield "saved program", addend.Program.load(path).model()
        if script:
            yield from self.scripted(net)

    def probed(self, model, name):
        return model.decompose(addend.Input(X, dims=1, baseline=0.25), probes=[name])[name]

    def test_what_is_used_is_meant(self):
        for kind, which in ((Attention, 0), (OfSeveral, 0), (OfStatistic, 0), (LastState, 1)):
            net = kind().eval()
            want = hooked(net)[0][which]
            for door, model in self.models(net):
                with self.subTest(kind.__name__, door=door):
                    found = self.probed(model, "inner")
                    torch.testing.assert_close(found.value.torch(), want)
                    torch.testing.assert_close(found.recovery.torch(), want, atol=1e-5, rtol=1e-5)
                    explained = model.explain(addend.Input(X, dims=1, baseline=0.25), targets="0,0,1", at="inner")
                    self.assertAlmostEqual(explained[0].value, want[0, 0, 1].item(), places=5)

    def test_splits_inside_begin_there(self):
        for kind in (OfSeveral, OfStatistic):
            net = kind().eval()
            want = hooked(net)[0][0]
            head = net.head
            for door, model in self.models(net):
                with self.subTest(kind.__name__, door=door):
                    found = model.explain(X, inside=addend.Inside("inner", dims=2), targets="0,1,2")
                    # The head is linear.
                    parts = (want[0, 1] * head.weight[2]).tolist()
                    for a, b in zip(found[0].contributions, parts):
                        self.assertAlmostEqual(a, b, places=5)

    def test_several_calls_are_counted(self):
        net = Twice().eval()
        want = [returned[0] for returned in hooked(net)]
        for door, model in self.models(net):
            with self.subTest(door=door):
                with self.assertRaisesRegex(addend.InvalidArgument, r"inner@0 \(.*inner@1 \("):
                    self.probed(model, "inner")
                for k in range(2):
                    torch.testing.assert_close(self.probed(model, "inner@%d" % k).value.torch(), want[k])
                with self.assertRaisesRegex(addend.InvalidArgument, "inner is called 2 times"):
                    self.probed(model, "inner@2")
                results = model.decompose(addend.Input(X, dims=1, baseline=0.25), probes=["inner@*", "head"])
                self.assertEqual(results.names, ["output", "inner@0", "inner@1", "head"])
                for k in range(2):
                    torch.testing.assert_close(results["inner@%d" % k].value.torch(), want[k])
                    torch.testing.assert_close(results["inner@%d" % k].recovery.torch(), want[k])
                # One tensor is explained, and at one a split begins.
                for ask in (
                    lambda: model.explain(addend.Input(X, dims=1, baseline=0.25), targets="0,0,1", at="inner@*"),
                    lambda: model.explain(X, inside=addend.Inside("inner@*", dims=2), targets="0,1,2"),
                ):
                    with self.assertRaisesRegex(addend.InvalidArgument, r"inner@0 \(.*inner@1 \("):
                        ask()

    def test_calls_with_nothing_between_are_counted(self):
        class Again(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = nn.Linear(4, 4)

            def forward(self, x):
                return self.inner(self.inner(x))

        net = Again().eval()
        want = [returned[0] for returned in hooked(net)]
        for door, model in self.models(net):
            with self.subTest(door=door):
                with self.assertRaisesRegex(addend.InvalidArgument, r"inner@0 \(.*inner@1 \("):
                    self.probed(model, "inner")
                for k in range(2):
                    torch.testing.assert_close(self.probed(model, "inner@%d" % k).value.torch(), want[k])

    def test_several_tensors_are_counted(self):
        net = Both().eval()
        steps, last = hooked(net)[0]
        for door, model in self.told(net):
            with self.subTest(door=door):
                with self.assertRaisesRegex(addend.InvalidArgument, r"inner:0 \(.*inner:1 \("):
                    self.probed(model, "inner")
                found = [self.probed(model, "inner:%d" % k).value.torch() for k in range(2)]
                torch.testing.assert_close(found[0], steps)
                torch.testing.assert_close(found[1], last)
                with self.assertRaisesRegex(addend.InvalidArgument, "no floating-point tensor number 2 is known to leave inner"):
                    self.probed(model, "inner:2")
                results = model.decompose(addend.Input(X, dims=1, baseline=0.25), probes=["inner:*"])
                self.assertEqual(results.names, ["output", "inner:0", "inner:1"])
                for k in range(2):
                    torch.testing.assert_close(results["inner:%d" % k].value.torch(), found[k])

    def test_the_number_is_that_of_the_returned_tensor(self):
        class Net(nn.Module):
            def __init__(self, used):
                super().__init__()
                self.inner, self.head, self.used = Swapped(), nn.Linear(4, 3), used

            def forward(self, x):
                second, first = self.inner(x)
                if self.used == 0:
                    return self.head(second)
                if self.used == 1:
                    return self.head(first)
                return self.head(second + first)

        for used in (0, 1, 2):
            net = Net(used).eval()
            want = hooked(net)[0]
            for door, model in self.told(net):
                with self.subTest(used=used, door=door):
                    for k in range(2):
                        torch.testing.assert_close(self.probed(model, "inner:%d" % k).value.torch(), want[k])
                    if used < 2:
                        torch.testing.assert_close(self.probed(model, "inner").value.torch(), want[used])

    def test_what_was_returned_is_known_however_it_was_made(self):
        class Keeps(nn.Module):
            """Returns its input, and keeps a penalty."""

            def forward(self, x):
                self.penalty = (x**2).mean()
                return x

        class Unused(nn.Module):
            def forward(self, x):
                x.exp()
                return x

        class Part(nn.Module):
            def forward(self, x):
                return x[..., :4]

        class Dropped(nn.Dropout):
            pass

        class Bare(nn.Module):
            """The model's own product and sum read the parameters of a module."""

            def __init__(self):
                super().__init__()
                self.inner, self.head = nn.Linear(4, 4), nn.Linear(4, 3)

            def forward(self, x):
                return self.head(self.inner(x) * self.inner.bias + self.inner.weight[0])

        class Chain(nn.Module):
            def __init__(self, inner):
                super().__init__()
                self.first, self.inner, self.head = nn.Linear(4, 4), inner, nn.Linear(4, 3)

            def forward(self, x):
                return self.head(self.inner(self.first(x)))

        class Elsewhere(nn.Module):
            """Ends in a module that is registered under another path as well."""

            def __init__(self):
                super().__init__()
                self.last = nn.Linear(4, 4)
                self.inner = nn.Sequential(nn.Tanh(), self.last)
                self.head = nn.Linear(4, 3)

            def forward(self, x):
                return self.head(self.inner(x))

        nets = [Chain(kind) for kind in (Keeps(), Unused(), Part(), Dropped(), nn.Identity(), nn.ReLU(inplace=True))]
        for net in (*nets, Bare(), Elsewhere()):
            net.eval()
            want = hooked(net)[0][0].clone()
            scripts = not isinstance(net.inner, (Keeps, Unused)) and not isinstance(net, Bare)
            for door, model in self.told(net, scripts):
                with self.subTest(type(getattr(net, "inner")).__name__, net=type(net).__name__, door=door):
                    torch.testing.assert_close(self.probed(model, "inner").value.torch(), want)
                    explained = model.explain(addend.Input(X, dims=1, baseline=0.25), targets="0,0,1", at="inner")
                    self.assertAlmostEqual(explained[0].value, want[0, 0, 1].item(), places=5)

    def test_blocks_that_repeat_with_nothing_between_are_counted(self):
        class Residual(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)

            def forward(self, x):
                return x + self.layer(x).tanh()

        class Shared(nn.Module):
            def __init__(self, inner):
                super().__init__()
                self.inner, self.head = inner, nn.Linear(4, 3)

            def forward(self, x):
                return self.head(self.inner(self.inner(self.inner(x))))

        for inner in (Residual(), nn.Sequential(nn.Linear(4, 4), nn.Tanh()), nn.Tanh()):
            net = Shared(inner).eval()
            want = [returned[0] for returned in hooked(net)]
            for door, model in self.told(net):
                with self.subTest(type(inner).__name__, door=door):
                    with self.assertRaisesRegex(addend.InvalidArgument, r"inner@0 \(.*inner@2 \("):
                        self.probed(model, "inner")
                    for k in range(3):
                        torch.testing.assert_close(self.probed(model, "inner@%d" % k).value.torch(), want[k])

    def test_every_door_means_the_same_tensor_of_a_recurrence(self):
        for kind in (nn.GRU, nn.RNN, nn.LSTM):
            net = Both()
            net.inner = kind(4, 5, batch_first=True)
            net.forward = lambda x, net=net: net.head(net.inner(x)[0])
            net.eval()
            want = hooked(net)[0][0]
            for door, model in self.told(net, script=False):
                with self.subTest(kind.__name__, door=door):
                    torch.testing.assert_close(self.probed(model, "inner:0").value.torch(), want)
                    found = model.explain(X, inside=addend.Inside("inner:0", dims=2), targets="0,1,2")
                    parts = (want[0, 1] * net.head.weight[2]).tolist()
                    for a, b in zip(found[0].contributions, parts):
                        self.assertAlmostEqual(a, b, places=5)

    def test_a_module_that_returns_no_numbers_has_no_tensor(self):
        class Chooses(nn.Module):
            def forward(self, x):
                return x.exp().argmax(-1)

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner, self.head = Chooses(), nn.Linear(4, 3)

            def forward(self, x):
                return self.head(x * self.inner(x)[..., None])

        for door, model in self.told(Net().eval()):
            with self.subTest(door=door):
                with self.assertRaisesRegex(addend.InvalidArgument, "no floating-point tensor is known to leave inner"):
                    self.probed(model, "inner")

    def test_a_file_that_does_not_say_the_order_is_not_asked_for_a_number(self):
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner, self.head = Swapped(), nn.Linear(4, 3)

            def forward(self, x):
                second, first = self.inner(x)
                return self.head(first * second)

        net = Net().eval()
        want = hooked(net)[0]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.pt")
            torch.jit.trace(net, X, check_trace=False).save(path)
            file = addend.load_model(path)
            for model in (file, file.record(X).model()):
                for name in ("inner", "inner:0", "inner:1", "inner:*", "inner@0"):
                    with self.assertRaisesRegex(addend.InvalidArgument, r"#\d+ \(aten::mul .*#\d+ \(aten::tanh ") as caught:
                        self.probed(model, name)
                named = {op: number for number, op in re.findall(r"(#\d+) \(aten::(\w+)", str(caught.exception))}
                torch.testing.assert_close(self.probed(model, named["tanh"]).value.torch(), want[0])
                torch.testing.assert_close(self.probed(model, named["mul"]).value.torch(), want[1])

    def test_calls_of_a_traced_module_are_not_mistaken_for_one(self):
        class TwiceRead(nn.Module):
            """Both calls give several tensors."""

            def __init__(self):
                super().__init__()
                self.inner, self.head = nn.LSTM(4, 4, batch_first=True), nn.Linear(4, 3)

            def forward(self, x):
                steps, state = self.inner(x)
                return self.head(self.inner(steps, state)[0])

        class Skips(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer, self.calls = nn.Linear(4, 4), 0

            def forward(self, x):
                self.calls += 1
                return x if self.calls % 3 == 2 else self.layer(x)

        class OfSkips(nn.Module):
            """The second of three calls returns its input."""

            def __init__(self):
                super().__init__()
                self.inner, self.head = Skips(), nn.Linear(4, 3)

            def forward(self, x):
                self.inner.calls = 0
                return self.head(self.inner(self.inner(self.inner(x))))

        for kind in (TwiceRead, OfSkips):
            net = kind().eval()
            want = [returned[0] for returned in hooked(net)]
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "model.pt")
                torch.jit.trace(net, X, check_trace=False).save(path)
                file = addend.load_model(path)
                for model in (file, file.record(X).model()):
                    with self.subTest(kind.__name__):
                        with self.assertRaises(addend.InvalidArgument):
                            self.probed(model, "inner")
                        for k, tensor in enumerate(want):
                            try:
                                found = self.probed(model, "inner@%d" % k).value.torch()
                            except addend.InvalidArgument as error:
                                self.assertRegex(str(error), r"its operators give #\d+|gives several tensors")
                            else:
                                torch.testing.assert_close(found, tensor)
                        with self.assertRaisesRegex(addend.InvalidArgument, "is called %d times" % len(want)):
                            self.probed(model, "inner@%d" % len(want))

    def test_methods_and_functions_of_a_scripted_file(self):
        for door, model in self.told(Methods().eval()):
            with self.subTest(door=door):
                torch.testing.assert_close(self.probed(model, "inner").value.torch(), X.sin())
        for door, model in self.scripted(InFunction().eval()):
            with self.subTest(door=door):
                results = model.decompose(addend.Input(X, dims=1, baseline=0.25), probes=["inner@*"])
                self.assertEqual(results.names, ["output", "inner@0", "inner@1"])
                torch.testing.assert_close(results["inner@0"].value.torch(), X.tanh())
                torch.testing.assert_close(results["inner@1"].value.torch(), X.tanh().tanh())

    def test_what_is_not_called_is_not_taken_for_its_last_operator(self):
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.blocks = nn.ModuleList([nn.Linear(4, 4), nn.Tanh()])
                self.inner = nn.Linear(4, 3)

            def forward(self, x):
                for block in self.blocks:
                    x = block(x)
                return self.inner(x)

        for door, model in self.told(Net().eval()):
            with self.subTest(door=door):
                with self.assertRaisesRegex(addend.InvalidArgument, r"known to leave blocks; its operators give #1 \("):
                    self.probed(model, "blocks")

    def test_a_module_with_the_name_of_an_output(self):
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.output, self.logits, self.head = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 3)

            def forward(self, x):
                return self.head(self.logits(self.output(x).tanh()).tanh()).softmax(-1)

        net = Net().eval()
        want = {"output": net.output(X), "logits": net.logits(net.output(X).tanh())}
        for door, model in self.told(net):
            with self.subTest(door=door):
                with self.assertRaisesRegex(addend.InvalidArgument, "output@0 is what the module returned"):
                    self.probed(model, "output")
                for name in ("output@0", "output:0", "output@*", "logits@0", "logits:0", "logits:*"):
                    module = name[:6]
                    results = model.decompose(addend.Input(X, dims=1, baseline=0.25), probes=[name])
                    torch.testing.assert_close(results[1].value.torch(), want[module])
                    self.assertEqual(len(set(results.names)), 2)
                with self.assertRaisesRegex(addend.InvalidArgument, r"logits is what aten::linear \(.*: logits@0"):
                    self.probed(model, "logits")

    def test_the_only_tensor_that_a_file_kept_has_no_number(self):
        class Pair(nn.Module):
            def __init__(self):
                super().__init__()
                self.one, self.other = nn.Linear(4, 4), nn.Linear(4, 4)

            def forward(self, x):
                return self.one(x), self.other(x)

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.pair, self.head = Pair(), nn.Linear(4, 3)

            def forward(self, x):
                return self.head(self.pair(x)[1])

        net = Net().eval()
        for door, model in self.models(net):
            with self.subTest(door=door):
                torch.testing.assert_close(self.probed(model, "pair").value.torch(), net.pair.other(X))
                for number in (0, 1):
                    if door == "traced file":
                        with self.assertRaisesRegex(addend.InvalidArgument, "the order in which pair returns its tensors"):
                            self.probed(model, "pair:%d" % number)
                    else:
                        found = self.probed(model, "pair:%d" % number)
                        torch.testing.assert_close(found.value.torch(), net.pair(X)[number])

    def test_modules_of_one_class_are_told_once(self):
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer, self.inner = nn.Linear(4, 4), nn.LSTM(4, 4, batch_first=True)

            def forward(self, x):
                return self.inner(self.layer(x).tanh())[0]

        block = Block().eval()
        traced = torch.jit.trace(block, X)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.pt")
            torch.jit.script(nn.Sequential(traced, copy.deepcopy(traced))).save(path)
            model = addend.load_model(path)
        for name, want in (("0.layer", block.layer(X)), ("1.layer", block.layer(block(X))), ("1.inner", block(block(X)))):
            with self.subTest(name):
                torch.testing.assert_close(self.probed(model, name).value.torch(), want)

    def test_a_module_called_logits_that_gives_the_scores(self):
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.logits = nn.Linear(4, 1)

            def forward(self, x):
                return self.logits(x).squeeze(-1).sigmoid()

        net = Net().eval()
        for door, model in self.told(net):
            with self.subTest(door=door):
                torch.testing.assert_close(self.probed(model, "logits").value.torch(), net.logits(X).squeeze(-1))

    def test_an_output_has_not_the_name_of_a_module_that_is_called_twice(self):
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = nn.Linear(4, 4)

            def forward(self, x):
                return {"inner": self.inner(self.inner(x).tanh()).exp()}

        net = Net().eval()
        for name, selector in (("inner@0", net.inner(X)), ("output.inner", net(X)["inner"])):
            torch.testing.assert_close(self.probed(addend.compile(net), name).value.torch(), selector)
        with self.assertRaisesRegex(addend.InvalidArgument, r"name one: inner@0 .*the model's output is output\.inner"):
            self.probed(addend.compile(net), "inner")

    def test_what_a_split_takes_along_is_told(self):
        """A module that gives back what it was given is not told from what goes around it; one with one reader is."""

        class Net(nn.Module):
            def __init__(self, inner, around):
                super().__init__()
                self.first, self.inner, self.head = nn.Linear(4, 4), inner, nn.Linear(4, 3)
                self.around = around

            def forward(self, x):
                hidden = self.first(x)
                given = self.head(self.inner(hidden))
                return given + hidden[..., :3] if self.around else given

        for inner, is_given in ((nn.Dropout(), True), (nn.Identity(), True), (nn.Flatten(2), True), (nn.ReLU(), False)):
            for around in (True, False):
                net = Net(inner, around).eval()
                found = addend.compile(net).explain(
                    X, inside=addend.Inside("inner", dims=2, baseline=0), targets=["0,0,0"]
                )
                told = [note for note in found.warnings if note.startswith("inner returns its own input")]
                self.assertEqual(len(told), is_given and around, (inner, around, found.warnings))

    def test_a_tensor_of_an_operator_has_a_number(self):
        class Net(nn.Module):
            def forward(self, x):
                return x.max(-1)[0].exp() + x.split(2, -1)[1].sum(-1)

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.pt")
            torch.jit.trace(Net(), X, check_trace=False).save(path)
            for model in (addend.compile(Net()), addend.load_model(path)):
                with self.assertRaisesRegex(addend.InvalidArgument, "is called inner") as caught:
                    self.probed(model, "inner")
                number = int(re.search(r"#0 to #(\d+)", str(caught.exception)).group(1)) - 2
                torch.testing.assert_close(self.probed(model, "#%d:1" % number).value.torch(), X.split(2, -1)[1])
                wrong = r"#%d:2 is no floating-point tensor; .*aten::split.* gives 2 tensors" % number
                with self.assertRaisesRegex(addend.InvalidArgument, wrong):
                    self.probed(model, "#%d:2" % number)

    def test_calls_in_loops_and_branches_are_counted(self):
        class Net(nn.Module):
            """A module that is called in a loop and in a branch."""

            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
                self.inner, self.head = nn.Tanh(), nn.Linear(4, 3)

            def forward(self, x):
                for layer in self.layers:
                    x = self.inner(layer(x))
                if x.size(0) > 0:
                    x = self.inner(x)
                return self.head(x)

        net = Net().eval()
        want = [returned[0] for returned in hooked(net)]
        for door, model in self.told(net):
            with self.subTest(door=door):
                results = model.decompose(addend.Input(X, dims=1, baseline=0.25), probes=["inner@*", "layers.1"])
                self.assertEqual(results.names, ["output", "inner@0", "inner@1", "inner@2", "layers.1"])
                for k in range(3):
                    torch.testing.assert_close(results["inner@%d" % k].value.torch(), want[k])
                torch.testing.assert_close(results["layers.1"].value.torch(), net.layers[1](want[0]))


if __name__ == "__main__":
    unittest.main()
