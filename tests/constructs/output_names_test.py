"""Results that a model returns by name are called so wherever the model comes from: live, from files, as a program."""

import os
import tempfile
import unittest
import warnings
from typing import Dict, NamedTuple, Tuple

import torch
from torch import nn

import addend

VERSION = tuple(int(number) for number in torch.__version__.split(".")[:2])

X = torch.tensor([[0.5, -1.0, 2.0], [0.3, 0.2, -0.7]])


class Pair(NamedTuple):
    left: torch.Tensor
    right: torch.Tensor


try:
    # Register the type: torch.export asks this of whoever saves a program that returns one.
    torch.utils._pytree._register_namedtuple(Pair, serialized_type_name="output_names_test.Pair")
except AttributeError:
    pass  # this PyTorch exports nothing, or asks for nothing


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 2)
        self.b = nn.Linear(3, 4)


class OfDict(Heads):
    names = ["output.logits", "output.aux"]

    def forward(self, x) -> Dict[str, torch.Tensor]:
        return {"logits": self.a(x), "aux": self.b(x).tanh()}


class OfOne(Heads):
    names = ["output.logits"]

    def forward(self, x) -> Dict[str, torch.Tensor]:
        return {"logits": self.a(x)}


class OfNamedTuple(Heads):
    """A tuple by its fields is a tuple, except for an exported program, which keeps their names from PyTorch 2.7 on."""

    names = ["output", "output.1"]
    names_in_pt2 = ["output.left", "output.right"] if VERSION >= (2, 7) else names

    def forward(self, x) -> Pair:
        return Pair(self.a(x), self.b(x).tanh())


class Nested(Heads):
    names = ["output.0", "output.1.past", "output.1.count"]

    def forward(self, x) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
        return self.a(x), {"past": self.b(x).tanh(), "count": (x > 0).sum()}


class OfTuple(Heads):
    """Has no names: files and programs number what they give."""

    names = ["output", "output.1"]

    def forward(self, x) -> Tuple[torch.Tensor, torch.Tensor]:
        return self.a(x), self.b(x).tanh()


def flattened(returned):
    if isinstance(returned, torch.Tensor):
        return [returned]
    return [tensor for one in (returned.values() if isinstance(returned, dict) else returned) for tensor in flattened(one)]


class OutputNamesTest(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore")
        torch.manual_seed(1)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def models(self, net, name):
        """The doors at which names were numbers; a live model's own names are its places as ever."""
        path = os.path.join(self.folder, name)
        torch.jit.script(net).save(path + ".pt")
        yield "script", addend.load_model(path + ".pt")
        torch.jit.trace(net, X, strict=False, check_trace=False).save(path + ".traced.pt")
        yield "trace", addend.load_model(path + ".traced.pt")
        script = addend.load_model(path + ".pt").record(X)
        script.save(path + ".script.program")
        yield "program of the script", addend.Program.load(path + ".script.program").model()
        live = addend.compile(net).record(X)
        yield "program", live.model()
        live.save(path + ".program")
        yield "program of a folder", addend.Program.load(path + ".program").model()
        live.export_torchscript(path + ".exported.pt")
        yield "exported", addend.load_model(path + ".exported.pt")
        if hasattr(torch, "export") and hasattr(torch.export, "export"):
            torch.export.save(torch.export.export(net, (X,)), path + ".pt2")
            yield "pt2", addend.load_model(path + ".pt2")

    def test_every_door_has_the_names(self):
        split = addend.Input(X, dims=1, baseline=0.25)
        for kind in (OfDict, OfOne, OfNamedTuple, Nested, OfTuple):
            net = kind().eval()
            with torch.no_grad():
                want = dict(zip(kind.names, flattened(net(X))))
            live = addend.compile(net).decompose(split)
            # A live model's tuple counts from 0, and what holds no numbers is no result.
            numbers = [name for name, tensor in want.items() if tensor.is_floating_point()]
            places = ["output.0" if name == "output" else name for name in numbers]
            self.assertEqual(live.names, places)
            for door, model in self.models(net, kind.__name__):
                with self.subTest(kind.__name__, door=door):
                    results = model.decompose(split)
                    names = getattr(kind, "names_in_" + door, kind.names)
                    self.assertEqual(results.names, names)
                    for name, tensor in zip(names, want.values()):
                        if tensor.is_floating_point():
                            torch.testing.assert_close(results[name].recovery.torch(), tensor)
                            found = model.explain(split, targets="1,1", at=name)[0]
                            self.assertAlmostEqual(found.value, tensor[1, 1].item(), places=5)
                            only = model.decompose(split, outputs=[name])
                            self.assertIn(name, only.names)
                            # Its bare name, too, as of a live model.
                            bare = model.explain(split, targets="1,1", at=name[len("output.") :] or name)[0]
                            self.assertAlmostEqual(bare.value, tensor[1, 1].item(), places=5)

    def test_programs_list_them(self):
        program = addend.compile(OfDict().eval()).record(X)
        self.assertEqual([output.name for output in program.outputs], OfDict.names)
        # The program of a live model still gives what the model gives, and so does the file of it.
        self.assertEqual(list(program(X)), ["logits", "aux"])
        path = os.path.join(self.folder, "exported.pt")
        program.export_torchscript(path)
        again = torch.jit.load(path)(X)
        self.assertEqual(list(again), ["logits", "aux"])
        torch.testing.assert_close(again["aux"], program(X)["aux"])

    def test_logits_are_those_of_the_name(self):
        split = addend.Input(X, dims=1, baseline=0.25)
        for kind, name in ((OfDict, "output.logits"), (Nested, None)):
            net = kind().eval()
            for door, model in self.models(net, kind.__name__):
                with self.subTest(kind.__name__, door=door):
                    if name is None:
                        with self.assertRaisesRegex(addend.InvalidArgument, r"any of .* name one of output\.0, output\.1\.past"):
                            model.explain(split, targets="1,1", at="logits")
                    else:
                        found = model.explain(split, targets="1,1", at="logits")[0]
                        self.assertAlmostEqual(found.value, net(X)["logits"][1, 1].item(), places=5)

    def test_a_name_that_is_none_lists_them(self):
        model = addend.compile(OfDict().eval()).record(X).model()
        for at in ("output", "output.1", "output.logit"):
            with self.assertRaisesRegex(addend.InvalidArgument, r"output\.logits, output\.aux"):
                model.explain(addend.Input(X, dims=1), at=at)


if __name__ == "__main__":
    unittest.main()
