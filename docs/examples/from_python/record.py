"""Records a model of PyTorch as a program, which Java, C#, C++ and C run without Python: record.py FOLDER"""

import dataclasses
import os
import sys

import addend
import torch


@dataclasses.dataclass
class Output:
    logits: torch.Tensor
    states: torch.Tensor


class Classifier(torch.nn.Module):
    """A sentence into one of three classes. It takes a dictionary and returns a dataclass, as models of Hugging Face do."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(100, 16)
        self.query = torch.nn.Linear(16, 16)
        self.key = torch.nn.Linear(16, 16)
        self.value = torch.nn.Linear(16, 16)
        self.head = torch.nn.Linear(16, 3)

    def forward(self, batch):
        words = self.embedding(batch["input_ids"])
        scores = self.query(words) @ self.key(words).transpose(1, 2) / 4
        padding = (batch["attention_mask"] == 0).unsqueeze(1)
        weights = scores.masked_fill(padding, float("-inf")).softmax(-1)
        states = torch.tanh(words + weights @ self.value(words))
        return Output(logits=self.head(states[:, 0]), states=states)


def sentence(ids, length):
    """Encodes ids as a tokenizer does: ids, and a mask that is 0 where the sentence is padded to a length."""
    padded = ids + [0] * (length - len(ids))
    mask = [1] * len(ids) + [0] * (length - len(ids))
    return {"input_ids": torch.tensor([padded]), "attention_mask": torch.tensor([mask])}


def main(folder):
    torch.manual_seed(1)
    model = addend.compile(Classifier().eval())

    # One sentence is recorded. The other, of another length, teaches the program which sizes follow the length.
    program = model.record(sentence([5, 17, 42], length=4), others=[[sentence([8, 3, 9, 27, 61], length=7)]])
    program.save(os.path.join(folder, "program"))

    # A third sentence, for the programs in the other languages. They name the inputs as the program does.
    batch = sentence([11, 42, 7, 23], length=6)
    inputs = {"batch." + name: tensor for name, tensor in batch.items()}
    addend.write_tensors(os.path.join(folder, "sample.safetensors"), inputs)

    # The numbers of the live model.
    batch["input_ids"] = addend.Input(batch["input_ids"], dims=1, baseline=0)
    explanation = model.decompose(batch).explain("top1")
    print("output %s = %.4f" % (explanation.target, explanation.value))
    for word in explanation.top(3):
        print("word %s: %+.4f" % (word.name, word.value))
    print("reference: %.4f" % explanation.reference)
    print("recovery: %.4f" % explanation.recovery)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: record.py FOLDER")
    main(sys.argv[1])
