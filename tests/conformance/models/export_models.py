#!/usr/bin/env python3
"""Exports models of the conformance suite with torch.export: NAME.pt2 beside NAME.pt, with the weights of that.

Nothing is drawn anew. It needs PyTorch 2.9 or newer; see README.md.
"""

import sys
from pathlib import Path

import torch

import architectures
import make_models

# Those that torch.export can follow: it cannot where a branch of Python depends on the data.
EXPORTED = ["mlp", "relu_network", "cnn", "lstm", "gru", "transformer_encoder", "transformer_decoder", "unet", "mixed", "nested"]
INPUTS = {"transformer_decoder": ["tokens", "memory"], "mixed": ["table", "image", "tokens"]}


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else make_models.FOLDER
    torch.manual_seed(0)
    for name, architecture, tensors in make_models.inputs(torch.Generator().manual_seed(0)):
        if name not in EXPORTED:
            continue
        model = architecture().eval()
        model.load_state_dict(torch.jit.load(make_models.FOLDER / f"{name}.pt").state_dict())
        given = tuple(tensors[key] for key in INPUTS.get(name, [next(iter(tensors))]))
        torch.export.save(torch.export.export(model, given, strict=False), folder / f"{name}.pt2")
        print(f"{name}: {(folder / (name + '.pt2')).stat().st_size} bytes")


if __name__ == "__main__":
    main()
