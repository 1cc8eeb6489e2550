"""Explains a saved and a live model where the wheel is installed, and compares with what torch computes.

try_wheel.py FOLDER: it holds model.pt, model.pt2 and sample.safetensors. Prints one line, or fails.
"""

import os
import sys

import torch

import addend


def check(name, explanation, value, value_on_baseline):
    """The value is torch's, and contributions and leftover are what it gained over the baseline."""
    tolerance = 1e-5 * (1 + abs(value) + abs(value_on_baseline))
    total = sum(part.value for part in explanation.top(10**9)) + explanation.leftover
    if abs(explanation.value - value) > tolerance:
        sys.exit("%s: %r, and torch gives %r" % (name, explanation.value, value))
    if abs(total - (value - value_on_baseline)) > tolerance:
        sys.exit("%s: the contributions are %r together, and torch gains %r" % (name, total, value - value_on_baseline))


def saved(folder, file, sample):
    model = addend.load_model(os.path.join(folder, file))
    explanation = model.decompose(addend.Input(sample, dims=(2, 3), baseline=0)).explain("top1")
    reference = torch.jit.load(os.path.join(folder, "model.pt")).eval()
    with torch.no_grad():
        value, index = reference(sample).flatten().max(0)
        on_baseline = reference(torch.zeros_like(sample)).flatten()[index]
    check(file, explanation, float(value), float(on_baseline))
    return explanation


def live():
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.GELU(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 1)).eval()
    row = torch.randn(1, 6)
    explanation = addend.compile(module).decompose(addend.Input(row, dims=(1,), baseline=0)).explain(0)
    contributions = addend.attribute(module, row, target=0)
    with torch.no_grad():
        value, on_baseline = float(module(row)), float(module(torch.zeros(1, 6)))
    check("a live model", explanation, value, on_baseline)
    if abs(float(contributions.sum()) - (value - on_baseline)) > 1e-5 * (1 + abs(value) + abs(on_baseline)):
        sys.exit("the attributions of a live model are %r together, and torch gains %r" % (contributions.sum(), value - on_baseline))


def main(folder):
    sample = addend.read_tensors(os.path.join(folder, "sample.safetensors"))["input"].torch()
    explanation = saved(folder, "model.pt", sample)
    saved(folder, "model.pt2", sample)
    live()
    print("top pixel %s, value %.4f" % (explanation.top(1)[0].name, explanation.value))


if __name__ == "__main__":
    main(sys.argv[1])
