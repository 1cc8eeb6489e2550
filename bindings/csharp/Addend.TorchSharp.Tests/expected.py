"""Computes with Python and the same LibTorch the results that the tests of Addend.TorchSharp expect.

    python expected.py FOLDER FILE

FOLDER is the repository, whose example models are read; FILE is written, in safetensors. PyTorch computes the outputs,
Addend for Python explains them: of TorchScript files, and of two live networks whose weights are written too.
"""

import os
import sys

import torch
from safetensors.torch import load_file, save_file

import addend

SCRIPTS = ["digits", "mlp", "cnn", "gru", "lstm", "relu_network", "unet", "transformer_encoder"]


class Cnn(torch.nn.Module):
    """Networks.Cnn of the tests."""

    def __init__(self):
        super().__init__()
        self._first = torch.nn.Conv2d(2, 4, 3, padding=1)
        self._norm = torch.nn.BatchNorm2d(4)
        self._second = torch.nn.Conv2d(4, 4, 3)
        self._head = torch.nn.Linear(16, 3)

    def forward(self, x):
        h = torch.nn.functional.max_pool2d(self._norm(self._first(x)).relu(), 2)
        return self._head(torch.nn.functional.gelu(self._second(h)).flatten(1))


class Perceptron(torch.nn.Module):
    """Networks.Perceptron of the tests."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.head = torch.nn.Linear(6, 8), torch.nn.Linear(8, 5), torch.nn.Linear(5, 3)

    def forward(self, x):
        return self.head(self.second(self.first(x).relu()).relu())


def files_of(folder, name):
    """The model and its tensors."""
    if name == "digits":
        home = os.path.join(folder, "docs/examples/models/digits")
        return os.path.join(home, "model.pt"), os.path.join(home, "sample.safetensors")
    path = os.path.join(folder, "tests/conformance/models", name)
    return path + ".pt", path + ".safetensors"


def explained(model, x):
    """The output, its components by the first dimension after the batch, and what each element gave to its first one."""
    split = {"dims": 1, "baseline": 0}
    value = model(x)  # gradients are on, as in TorchSharp: without them LibTorch computes LSTMs another way
    with torch.no_grad():
        without_gradients = model(x)
    traced = addend.compile(model)
    composition = traced.decompose(addend.Input(x, **split))[0]
    attribution = traced.explain(addend.Input(x, **split), targets=[",".join("0" * value.dim())])
    return {
        "value": value,
        "without_gradients": without_gradients,
        "components": composition.components.torch(),
        "reference": composition.reference.torch(),
        "elements": attribution.inputs[0].torch(),
    }


def main():
    folder, path = sys.argv[1:]
    torch.set_num_threads(1)
    written = {}

    def write(name, tensors):
        written.update({f"{name}.{key}": tensor.detach().contiguous().clone() for key, tensor in tensors.items()})

    for name in SCRIPTS:
        model, tensors = files_of(folder, name)
        inputs = load_file(tensors)
        x = next(inputs[key] for key in ("input", "table", "image", "sequence", "tokens") if key in inputs)
        x = x.clone()  # onto memory that LibTorch aligned: the last bits of a product depend on how it is
        write("script." + name, explained(torch.jit.load(model).eval(), x))
    for seed, name, network, shape in [(1, "perceptron", Perceptron, (1, 6)), (2, "cnn", Cnn, (1, 2, 8, 8))]:
        torch.manual_seed(seed)
        live, x = network().eval(), torch.randn(shape)
        if name == "cnn":
            live._norm.running_mean.uniform_(-0.5, 0.5)
            live._norm.running_var.uniform_(0.5, 2)
        write("live." + name, {"x": x, **explained(live, x)})
        write(f"live.{name}.state", {key: tensor for key, tensor in live.state_dict().items() if tensor.is_floating_point()})
    save_file(written, path)
    print(torch.__version__, addend.libtorch_version, len(written), "tensors")


main()
