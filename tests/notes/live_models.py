"""Notes that only runs of Python have, or runs of what Python recorded: for each a question that gives it."""

import concurrent.futures
import dataclasses
import json
import os
import tempfile
from typing import Any, Callable, List

import torch
from torch import nn

import addend
from noted import SEED, Sentence

X = torch.tensor([[0.7, 1.2, 2.2]])


@dataclasses.dataclass
class LiveNoted(Sentence):
    """A note, and what asks for it.

    Attributes:
        ask: gives an `Attribution` or `Results`.
    """

    ask: Callable[[], Any] = lambda: None


def _explained(model: Any) -> addend.Attribution:
    return addend.compile(model).explain(addend.Input(X, 1, baseline=0.0), targets=["0,0"])


class Wrapper(nn.Module):
    """A wrapper as `torch.compile` puts it around a module."""

    def __init__(self, module: nn.Module):
        super().__init__()
        self._orig_mod = module


def _uncompiled() -> addend.Attribution:
    return _explained(Wrapper(nn.Tanh()))


def _given_away() -> addend.Attribution:
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return _explained(lambda x: x + pool.submit(lambda: x.detach() * 10).result())


class Smallest(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        listed: List[float] = x.view(-1).tolist()
        return x * sorted(listed)[0]


def _listed() -> addend.Attribution:
    return _explained(torch.jit.script(Smallest()))


def _of_two_runs() -> addend.Results:
    double = addend.compile(lambda x: 2 * x)
    one, other = (double(addend.Input(X, 1, baseline=0.0)) for _ in range(2))
    return addend.compile(lambda x, y: x * y).decompose(one, other)


def _without_nested_tensors() -> addend.Attribution:
    torch.manual_seed(SEED)
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), 1).eval()
    padding = torch.tensor([[False, False, True]])
    with torch.no_grad():
        return addend.compile(model).explain(
            addend.Input(torch.randn(1, 3, 8), 1, baseline=0.0), targets=["0,0,0"], src_key_padding_mask=padding
        )


class ByWeight(nn.Module):
    """The gradient of something that bends by the weight of a layer before a norm, which keeps what it needs unseen."""

    def __init__(self):
        super().__init__()
        self.layer, self.norm = nn.Linear(3, 3), nn.LayerNorm(3)

    def forward(self, x):
        with torch.enable_grad():
            given = self.norm(self.layer(x)).sin().sum()
            return torch.autograd.grad(given, self.layer.weight, create_graph=True)[0]


def _by_weight() -> nn.Module:
    torch.manual_seed(SEED)
    return ByWeight().double()


def _saved() -> addend.Attribution:
    source = addend.Input(X.double(), 1, baseline=0.1)
    return addend.compile(_by_weight()).explain(source, targets=["0,0"])


def _saved_in_program() -> addend.Attribution:
    program = addend.compile(_by_weight()).record(X.double())
    return program.model().explain(addend.Input(X.double(), 1, baseline=0.1), targets=["0,0"])


def _saved_in_replay() -> addend.Results:
    return addend.compile(_by_weight()).record(X.double()).replay(X.double())


def _drawn_in_replay() -> addend.Results:
    return addend.compile(lambda x: x + torch.rand(1, 3)).record(X).replay(X)


def _of_another_libtorch() -> addend.Attribution:
    with tempfile.TemporaryDirectory() as folder:
        addend.compile(torch.tanh).record(X).save(folder)
        path, weights = (os.path.join(folder, name) for name in ("program.json", "weights.safetensors"))
        with open(path, encoding="utf-8") as file:
            program = json.load(file)
        program["libtorch"] = "9.1.0"
        with open(path, "w", encoding="utf-8") as file:
            json.dump(program, file)
        addend.write_tensors(weights, addend.read_tensors(weights))  # without the checksums
        model = addend.Program.load(folder).model()
    return model.explain(addend.Input(X, 1, baseline=0.0), targets=["0,0"])


def _in_bfloat16() -> addend.Attribution:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        return _explained(nn.Linear(3, 2))
    finally:
        torch.set_float32_matmul_precision(before)


class Around(nn.Module):
    """A module that gives back what it was given, which others read around it."""

    def __init__(self):
        super().__init__()
        self.first, self.drop, self.second = nn.Linear(3, 3), nn.Dropout(), nn.Linear(3, 3)

    def forward(self, x):
        hidden = self.first(x)
        return self.second(self.drop(hidden)) + hidden.tanh()


class Within(nn.Module):
    """A module that reads itself what it returns."""

    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, x):
            given = self.layer(x)
            return given, given.tanh()

    def __init__(self):
        super().__init__()
        self.pair = Within.Pair()

    def forward(self, x):
        one, other = self.pair(x)
        return one.sin() + other


def _inside(model: nn.Module, selector: str) -> addend.Attribution:
    inside = addend.Inside(selector, dims=1, baseline=0)
    return addend.compile(model.eval()).explain(X, inside=inside, targets=["0,0"])


def _by_parameters() -> addend.Attribution:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "exported.pt")
        addend.compile(nn.Sequential(nn.Sequential(nn.Linear(3, 3), nn.GELU()))).record(X).export_torchscript(path)
        context = addend.Context(overrides={"0": {"nonlinearity": "gradient"}})
        source = addend.Input(X, 1, baseline=0.0)
        return addend.load_model(path).explain(source, targets=["0,0"], context=context)


_SAVED = "a gradient reads what an operator saved for it: "

TABLE = [
    LiveNoted("around", ("drop returns its own input, and it is not known who reads it from there: "
                         "the parts begin at all readers, aten::linear",), True, lambda: _inside(Around(), "drop")),
    LiveNoted("within", ("what pair:0 returned is also read within it: the parts begin there too, at aten::tanh",), True,
              lambda: _inside(Within(), "pair:0")),
    LiveNoted("by_parameters", ("the model does not tell which operators 0 runs; its policy is that of those which read its "
                                "parameters",), True, _by_parameters),
    LiveNoted("uncompiled", ("torch.compile wraps the model, which ran as it is inside, uncompiled",), False,
              _uncompiled),
    LiveNoted("given_away", ("the model gave work to another thread, where no operator is seen",), True, _given_away),
    LiveNoted("listed", ("the TorchScript module itself takes a list of a tensor's elements",), True, _listed),
    LiveNoted("two_runs", ("2 compositions that no single run gave share the components from 0 on",), True,
              _of_two_runs),
    LiveNoted("bfloat16", ("the model may multiply in bfloat16: parts agree to 1e-2 (",), True, _in_bfloat16),
    LiveNoted("nested", ("the model ran without nested tensors: the same numbers",), True, _without_nested_tensors),
    LiveNoted("saved", (_SAVED, "compare it with what the model gives there"), True, _saved),
    LiveNoted("saved_in_program", (_SAVED, "compare a replay with the model"), True, _saved_in_program),
    LiveNoted("saved_in_replay", (_SAVED, "compare a replay with the model"), True, _saved_in_replay),
    LiveNoted("drawn_in_replay", ("random numbers are drawn by aten::rand", "; a replay draws its own"), True,
              _drawn_in_replay),
    LiveNoted("other_libtorch", ("the model is a program; ", "9.1.0", ", whose operators may compute otherwise"), False,
              _of_another_libtorch),
]
