"""Small models, each for one note, and files that were changed to have one."""

import json
import os
import zipfile
from typing import Any, Callable, Optional, Tuple

import torch
from torch import nn


class Summed(nn.Module):
    """The end of most models here: a number for each row."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x).sum(1)

    def body(self, x: torch.Tensor) -> torch.Tensor:
        return (x * x).tanh()


def _half(x: torch.Tensor) -> torch.Tensor:
    return x / 2


class Forked(nn.Module):
    """Its file tells nothing of its modules, because it starts tasks."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 3), nn.Tanh())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        task = torch.jit.fork(_half, self.body(x))
        return torch.jit.wait(task).sum(1)


class Airy(Summed):
    """An operator without a rule and without a derivative."""

    def body(self, x: torch.Tensor) -> torch.Tensor:
        return torch.special.airy_ai(x)


class Igamma(Summed):
    """An operator without a rule, whose derivative is known."""

    def body(self, x: torch.Tensor) -> torch.Tensor:
        return torch.igamma(torch.full_like(x, 2.0), x)


class Half(Summed):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1.0, 2.0, 3.0]).half())

    def body(self, x: torch.Tensor) -> torch.Tensor:
        return (x * self.weight).to(torch.float32).tanh()


class Where(Summed):
    """A mask of the input decides what is added."""

    def body(self, x: torch.Tensor) -> torch.Tensor:
        return torch.where(x > 1, x + 1, x)


class Branch(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if bool(x.sum() > 1):
            return 2 * x.sum(1)
        return x.sum(1)


class Drawn(Summed):
    def body(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rand(1, 3)


class CountedIds(nn.Module):
    """Ids are looked up, and are factors too."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(10, 4)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return (self.table(ids) * ids.cumsum(0).to(torch.float32).unsqueeze(2)).sum((1, 2))


class Ids(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(10, 4)
        self.head = nn.Linear(4, 10)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.table(ids).cumsum(1).tanh())


class Logarithm(Summed):
    def body(self, x: torch.Tensor) -> torch.Tensor:
        return x.log()


class InverseNorm(nn.Module):
    """Its first step is infinite where an element is zero, and its output is not."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.norm(x, -1.0, [1])


class Shares(nn.Module):
    """Infinite where the first element is zero."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum(1) / x[:, 0]


class Divided(Summed):
    def body(self, x: torch.Tensor) -> torch.Tensor:
        return x / torch.zeros_like(x)


class Rounded(Summed):
    def body(self, x: torch.Tensor) -> torch.Tensor:
        return (x * 10).round() + x


class Stepped(nn.Module):
    """Two parts that cancel, of which one is left over."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, 0] - x[:, 1].round()


class Normalized(nn.Module):
    """Shares of the whole, whose denominator a fast run freezes."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / (1 + x * x).sum(1, keepdim=True)


class Swamped(Summed):
    """Scores that a mask takes away as a whole."""

    def body(self, x: torch.Tensor) -> torch.Tensor:
        scores = x.unsqueeze(1) * x.unsqueeze(2) - 1e9 * torch.ones_like(x).unsqueeze(1)
        return scores.softmax(-1).sum(1) + x


class Differences(nn.Module):
    """Two huge parts that cancel, beside something small."""

    def __init__(self, factor: float, small: float = 0.01):
        super().__init__()
        self.factor, self.small = factor, small

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.tanh().sum(1) * self.small + x[:, 0] * self.factor - x[:, 1] * self.factor


class Cubes(Summed):
    def body(self, x: torch.Tensor) -> torch.Tensor:
        return x * x * x


class Centred(Summed):
    """Each row reads the mean of all."""

    def body(self, x: torch.Tensor) -> torch.Tensor:
        return (x - x.mean(0, keepdim=True)).tanh()


class Neighbours(nn.Module):
    """Each row reads the one before it, beside something that is left over anyway."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ((3 * x).softmax(1) + 0.4 * x.roll(1, 0))[:, 0]


class BatchNorm(Summed):
    """Without statistics of its own it normalizes by those of the batch, in evaluation mode too."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3, track_running_stats=False)

    def body(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x).tanh()


class Poles(nn.Module):
    """The line from the baseline to the value goes through a pole of 1 / x."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y = y.tanh()
        y = y.reciprocal()
        y = y * 0.3
        y = y.tanh()
        return y.sum(1).tanh()


class Probabilities(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * 2).softmax(1)


class Writes(nn.Module):
    """Writes its first argument."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.mul_(2.0)
        return (x * y).sum(1)


class Entropies(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.special.entr(x)


class Narrowed(Summed):
    """In double precision but for one step."""

    def body(self, x: torch.Tensor) -> torch.Tensor:
        return x.to(torch.float32).exp().to(torch.float64)


class Constant(nn.Module):
    """An output that nothing of the input reaches."""

    def forward(self, x: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        return x.tanh().sum(1), torch.ones(1, 2)


class OneRow(nn.Module):
    """Takes one row at a time."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(3).tanh().sum().view(1)


class BranchOfRows(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if bool(x.sum() > 1):
            return (2 * x).tanh().sum(1)
        return x.tanh().sum(1)


def without_checksums(path: str) -> None:
    """Takes the checksums out of an archive, as `torch.save` writes it where it is told to compute none."""
    with open(path, "rb") as file:
        content = bytearray(file.read())
    with zipfile.ZipFile(path) as archive:
        entries, central = archive.infolist(), archive.start_dir
    for entry in entries:
        content[entry.header_offset + 14 : entry.header_offset + 18] = bytes(4)
        at = content.index(b"PK\x01\x02", central)
        content[at + 16 : at + 20] = bytes(4)
        central = at + 4
    with open(path, "wb") as file:
        file.write(content)


def exported(name: str, program: Optional[Callable[[Any], None]] = None, entry: str = "") -> Callable[[str], None]:
    """A function that writes a program of `torch.export`: one of those that tests/exported holds.

    Args:
        name: of the program there.
        program: changes its description.
        entry: one more, which is beside the program.
    """
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "exported", "data", "2.14")

    def write(path: str) -> None:
        with zipfile.ZipFile(os.path.join(folder, name + ".pt2")) as whole, zipfile.ZipFile(path, "w") as changed:
            for info in whole.infolist():
                content = whole.read(info)
                if program is not None and info.filename.endswith("/models/model.json"):
                    description = json.loads(content)
                    program(description)
                    content = json.dumps(description).encode("utf-8")
                changed.writestr(info.filename, content)
            if entry:
                changed.writestr("%s/%s" % (name, entry), b"compiled")

    return write


def add_guard(description: Any) -> None:
    """A condition on the inputs that nobody reads but Python."""
    description["guards_code"] = ["len(L) == 1"]
