#!/usr/bin/env python3
"""Exports the trained models with torch.export, for a batch of any size: model.pt2 beside each model.pt.

It takes the weights of model.pt, so nothing is trained, and needs PyTorch 2.9 or newer.
"""


import torch

import breast_cancer
import common
import digits
import language


def models():
    """The modules by the names of their folders, with the weights of their files."""
    weights = {
        name: torch.jit.load(common.FOLDER / name / "model.pt").state_dict()
        for name in ("breast_cancer", "digits", "language")
    }
    table = weights["breast_cancer"]
    made = {
        "breast_cancer": breast_cancer.TableClassifier(table["mean"], table["deviation"], classes=2),
        "digits": digits.DigitClassifier(classes=10),
        "language": language.LanguageClassifier(
            tokens=len(weights["language"]["embedding.weight"]), classes=len(weights["language"]["output.bias"])
        ),
    }
    for name, module in made.items():
        module.load_state_dict(weights[name])
        yield name, module.eval()


def main():
    torch.manual_seed(0)
    examples = {
        "breast_cancer": torch.rand(2, 30),
        "digits": torch.rand(2, 1, 8, 8),
        "language": torch.randint(2, 50, (2, language.LENGTH)),
    }
    for name, module in models():
        batch = torch.export.Dim("batch", min=1, max=65536)
        program = torch.export.export(module, (examples[name],), dynamic_shapes=({0: batch},), strict=False)
        torch.export.save(program, common.FOLDER / name / "model.pt2")


if __name__ == "__main__":
    main()
