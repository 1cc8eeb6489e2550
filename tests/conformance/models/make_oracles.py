"""Writes the networks whose attributions are known from elsewhere: integrated gradients, DeepLIFT, LRP and gradient times
input, computed by others or by hand, agree on them. See cases/models_oracles.json.

    /usr/bin/python3 tests/conformance/models/make_oracles.py
"""

import os
import sys

import torch
from torch import nn

from make_models import FIXED_ENVIRONMENT, FOLDER, write_torchscript


def linear(weight, bias=None):
    layer = nn.Linear(len(weight[0]), len(weight), bias=bias is not None)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(weight))
        if bias is not None:
            layer.bias.copy_(torch.tensor(bias))
    return layer


class TwoLayers(nn.Module):
    """No bias: every method agrees."""

    def __init__(self):
        super().__init__()
        self.first = linear([[2.0] * 3] * 3)
        self.second = linear([[3.0] * 3])

    def forward(self, x):
        return self.second(self.first(x).relu())


class WithBias(nn.Module):
    """One unit stays off, the others stay on."""

    def __init__(self):
        super().__init__()
        self.first = linear([[1.0] * 3] * 4, [-10.0, 1.0, 1.0, 1.0])
        self.second = linear([[1.0] * 4], [-1.0])

    def forward(self, x):
        return self.second(self.first(x).relu())


class TwoInputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = linear([[3.0, 1.0, 0.0]])
        self.second = linear([[2.0, 3.0, 0.0]])

    def forward(self, a, b):
        return self.first(a).relu() + self.second(b).relu()


class Maximum(nn.Module):
    """The winner takes it all."""

    def __init__(self):
        super().__init__()
        self.pool = nn.MaxPool1d(4)

    def forward(self, x):
        return self.pool(x)


class ShiftedRelu(nn.Module):
    def forward(self, a, b):
        return 2 * a.relu() + 2 * (b - 1.5).relu()


class ShiftedTanh(nn.Module):
    def forward(self, a, b):
        return 2 * a.tanh() + 2 * (b - 1.5).tanh()


class Difference(nn.Module):
    def forward(self, a, b):
        return (a.relu() - 1 - b.relu()).relu()


def main():
    if any(os.environ.get(name) != value for name, value in FIXED_ENVIRONMENT.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **FIXED_ENVIRONMENT})
    for name, model in {
        "two_layers": TwoLayers(),
        "with_bias": WithBias(),
        "two_inputs": TwoInputs(),
        "maximum": Maximum(),
        "shifted_relu": ShiftedRelu(),
        "shifted_tanh": ShiftedTanh(),
        "difference": Difference(),
    }.items():
        write_torchscript(FOLDER / f"oracle_{name}.pt", model)


if __name__ == "__main__":
    main()
