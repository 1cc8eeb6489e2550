"""Wrappers of modules are modules: they stand wherever modules do."""

import copy
import pickle
import unittest

import torch
from torch import nn

import addend


class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x):
        return self.norm(self.linear(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
        self.scale = nn.Parameter(torch.rand(3))
        self.drop = nn.Dropout(0.5)
        self.register_buffer("shift", torch.rand(3))

    def forward(self, x):
        return self.drop(self.sub(x)) * self.scale + self.shift

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "own"] = torch.ones(1)

    def _load_from_state_dict(self, state_dict, prefix, *args):
        self.own = state_dict.pop(prefix + "own")
        super()._load_from_state_dict(state_dict, prefix, *args)


X = torch.rand(2, 4)
GIVEN = addend.Input(X, 1)


def equal_states(one, other):
    return list(one) == list(other) and all(torch.equal(one[name], other[name]) for name in one)


class TracedModuleTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.net = Net()
        self.model = addend.compile(self.net)

    def assertDecomposes(self, model, plain):
        output = model(GIVEN)
        self.assertEqual(output.numc, 4)
        torch.testing.assert_close(output.recovery.torch(), plain(X).detach())

    def test_is_a_module_and_a_traced_model(self):
        self.assertIsInstance(self.model, nn.Module)
        self.assertIsInstance(self.model, addend.TracedModel)
        self.assertNotIsInstance(addend.compile(torch.relu), nn.Module)
        self.assertEqual(repr(self.model), "TracedModel(%r)" % self.net)
        self.assertIn("(0): TracedModel(Net(", repr(nn.Sequential(self.model)))

    def test_modes_are_those_of_the_model(self):
        self.assertIs(self.model.eval(), self.model)
        self.assertFalse(self.net.training or self.net.drop.training or self.model.training)
        self.assertDecomposes(self.model, self.net)
        self.assertIs(self.model.train(), self.model)
        self.assertTrue(self.net.training and self.net.sub.norm.training and self.model.training)
        self.model.training = False
        self.assertFalse(self.net.training)

    def test_conversions_reach_the_model(self):
        model = addend.compile(self.net).eval().double()
        self.assertIsInstance(model, addend.TracedModel)
        self.assertEqual(self.net.scale.dtype, torch.float64)
        output = model(addend.Input(X.double(), 1))
        torch.testing.assert_close(output.recovery.torch(), self.net(X.double()).detach())
        self.assertIs(model.to("cpu", torch.float32), model)
        self.assertDecomposes(model, self.net)
        model.requires_grad_(False)
        self.assertFalse(any(parameter.requires_grad for parameter in self.net.parameters()))

    def test_parameters_and_states_have_the_names_of_the_model(self):
        for listed in ("named_parameters", "named_buffers", "named_children", "named_modules"):
            own, other = getattr(self.model, listed)(), getattr(self.net, listed)()
            for (name, value), (other_name, other_value) in zip(own, other):
                self.assertEqual(name, other_name)
                self.assertIs(value, other_value)
        state = self.net.state_dict()
        self.assertTrue(equal_states(self.model.state_dict(), state))
        other = Net()
        other.load_state_dict(self.model.state_dict())
        self.assertTrue(equal_states(other.state_dict(), state))
        again = addend.compile(Net())
        self.assertEqual(again.load_state_dict(state).missing_keys, [])
        self.assertTrue(equal_states(again.model.state_dict(), state))

    def test_stands_inside_of_other_modules(self):
        plain, traced = nn.Sequential(self.net, nn.Tanh()).eval(), nn.Sequential(self.model, nn.Tanh()).eval()
        self.assertFalse(self.net.training)
        self.assertEqual([name for name, _ in traced.named_parameters()], [name for name, _ in plain.named_parameters()])
        state = plain.state_dict()
        self.assertTrue(equal_states(traced.state_dict(), state))
        other = nn.Sequential(addend.compile(Net()), nn.Tanh())
        other.load_state_dict(state)
        self.assertTrue(equal_states(other.state_dict(), state))
        self.assertTrue(hasattr(other[0].model, "own"), "the model's own way to load is taken")
        seen = []
        traced.apply(lambda module: seen.append(type(module)))
        self.assertEqual(seen, [type(module) for module in (*_inner_first(plain),)])
        self.assertDecomposes(traced[:1], self.net)
        traced.double()
        self.assertEqual(self.net.shift.dtype, torch.float64)
        traced.float()
        # A larger model that is traced itself sees a plain module inside, under its own name.
        outer = addend.compile(traced)
        self.assertDecomposes(outer, plain)
        self.assertIn("0.sub.linear.weight", outer.record(X).names("parameter"))
        torch.testing.assert_close(outer.trace(False)(X), plain(X))
        checked = outer.trace().decompose(GIVEN, verify_reference=True).report
        self.assertLess(checked["reference_error"], 1e-6)

    def test_hooks_see_what_the_wrapper_returns(self):
        self.model.eval()
        seen, inner = [], []
        hooks = [
            self.model.register_forward_pre_hook(lambda module, given: seen.append((module, given[0]))),
            self.model.register_forward_hook(lambda module, given, output: seen.append((module, output))),
            self.net.sub.register_forward_hook(lambda module, given, output: inner.append(output)),
        ]
        output = self.model(GIVEN)
        self.assertIs(seen[0][0], self.model)
        self.assertIs(seen[0][1], GIVEN)
        self.assertIs(seen[1][1], output)
        self.assertIsInstance(inner[0], torch.Tensor)
        self.net(X)
        self.assertEqual(len(seen), 2, "they are not the model's own")
        for hook in hooks:
            hook.remove()
        self.model(GIVEN)
        self.assertEqual(len(seen), 2)

    def test_attributes_go_to_the_model(self):
        self.assertIs(self.model.sub, self.net.sub)
        other = nn.Linear(4, 3)
        self.model.sub = other
        self.assertIs(self.net.sub, other)
        self.model.note = 5
        self.assertEqual(self.net.note, 5)
        del self.model.note
        self.assertFalse(hasattr(self.net, "note"))
        self.assertFalse(hasattr(self.model, "note"))
        self.assertDecomposes(self.model.eval(), self.net)

    def test_trace_off_and_on(self):
        self.model.eval()
        self.assertIs(self.model.trace(False), self.model)
        torch.testing.assert_close(self.model(X), self.net(X))
        self.assertIsInstance(self.model(GIVEN), torch.Tensor)
        self.assertDecomposes(self.model.trace(), self.net)

    def test_copies_and_pickles(self):
        self.model.eval()
        for same in (copy.deepcopy(self.model), pickle.loads(pickle.dumps(self.model))):
            self.assertIsNot(same.model, self.net)
            self.assertTrue(equal_states(same.state_dict(), self.net.state_dict()))
            self.assertDecomposes(same, self.net)
            same.scale.data.zero_()
            self.assertFalse(torch.equal(same.model.scale, self.net.scale))
        self.assertIs(copy.copy(self.model).model, self.net)

    def test_options_of_a_wrapper_that_is_compiled_again(self):
        again = addend.compile(addend.compile(self.net.eval(), probes="sub"), preset="faithful")
        self.assertIs(again.model, self.net)
        self.assertIn("sub", again.decompose(GIVEN).names)

    def test_learns(self):
        self.net.drop.p = 0
        self.model.train().trace(False)
        optimizer = torch.optim.SGD(self.model.parameters(), 0.1)
        before = self.net.scale.detach().clone()
        self.model(X).square().sum().backward()
        optimizer.step()
        self.assertFalse(torch.equal(before, self.net.scale))
        self.model.zero_grad(set_to_none=True)
        self.assertIsNone(self.net.scale.grad)


def _inner_first(module):
    for child in module.children():
        yield from _inner_first(child)
    yield module


if __name__ == "__main__":
    unittest.main()
