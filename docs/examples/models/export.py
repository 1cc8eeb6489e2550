#!/usr/bin/env python3
"""Exports the trained models with torch.export, for a batch of any size and texts of any length: model.pt2 beside model.pt.

It takes the weights of model.pt, so nothing is trained, and needs PyTorch 2.9 or newer.
"""


import torch

import breast_cancer
import common
import digits
import language
import speaker
import train


def models():
    """The modules by the names of their folders, with the weights of their files."""
    weights = {name: torch.jit.load(common.FOLDER / name / "model.pt").state_dict() for name in train.MODELS}
    table = weights["breast_cancer"]
    made = {
        "breast_cancer": breast_cancer.TableClassifier(table["mean"], table["deviation"], classes=2),
        "digits": digits.DigitClassifier(classes=10),
        "language": language.LanguageClassifier(
            tokens=len(weights["language"]["embedding.weight"]), classes=len(weights["language"]["output.bias"])
        ),
        "speaker": speaker.Speaker(tokens=len(weights["speaker"]["embedding.weight"])),
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
        "speaker": torch.randint(3, 50, (2, 9)),
    }
    batch = torch.export.Dim("batch", min=1, max=65536)
    length = torch.export.Dim("length", min=1, max=65536)
    for name, module in models():
        free = {0: batch, 1: length} if name == "speaker" else {0: batch}
        program = torch.export.export(module, (examples[name],), dynamic_shapes=(free,), strict=False)
        torch.export.save(program, common.FOLDER / name / "model.pt2")


if __name__ == "__main__":
    main()
