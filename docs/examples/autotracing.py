"""Decomposes a live model as the guide to PyDec's autotracing does, line by line."""

import torch

from addend import pydec


class SubModule(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)
        self.identity = torch.nn.Identity()

    def forward(self, x):
        return self.identity(self.linear(x))


class MyModel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 2))
        self.param = torch.nn.ParameterList([torch.nn.Parameter(torch.rand(2))])
        self.submodel = SubModule()

    def forward(self, x):
        return self.linear(self.submodel(x)) + self.param[0]


def autotracing(model):
    model = pydec.autotracing.compile(model)

    # One component for each of the four elements.
    input = torch.rand((4,))
    c_input = pydec.Composition(input.size(), len(input)).to(input)
    c_input = pydec.diagonal_init(c_input, input, dim=0)

    print(model(c_input))  # what each of them contributed, and the residual
    print(model(c_input).c_sum())

    model.trace(False)
    print(model(input))  # the model itself: the same numbers


if __name__ == "__main__":
    autotracing(MyModel())
