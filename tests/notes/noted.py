"""An entry of the table of notes, and how it becomes a file."""

import dataclasses
import os
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import torch
from torch import nn

SEED = 11
ATTRIBUTION, DECOMPOSITION, INTERACTIONS = "attribution", "decomposition", "interactions"


@dataclasses.dataclass
class Given:
    """An input of a model, split along dimensions.

    Attributes:
        value: the tensor.
        baseline: one number or a tensor of the shape of the value; None: nobody gives one.
        baselines: several, one in each row, in place of one.
        dims: one component for each position along these.
    """

    value: torch.Tensor
    baseline: Union[None, float, torch.Tensor] = 0.0
    baselines: Optional[torch.Tensor] = None
    dims: Tuple[int, ...] = (1,)


@dataclasses.dataclass
class Sentence:
    """A note.

    Attributes:
        name: of the case that has it.
        note: pieces of the sentence: the first begins it, the others follow in this order.
        warning: whether it says that numbers may not mean what a reader takes them for; the others are remarks.
    """

    name: str
    note: Tuple[str, ...]
    warning: bool

    def is_in(self, notes: Sequence[str]) -> bool:
        return any(self.is_said(note) for note in notes)

    def is_said(self, note: str) -> bool:
        """Whether a sentence is this note."""
        if not note.startswith(self.note[0]):
            return False
        at = 0
        for piece in self.note:
            at = note.find(piece, at)
            if at < 0:
                return False
            at += len(piece)
        return True


@dataclasses.dataclass
class Noted(Sentence):
    """A note, and the smallest run that has it.

    Attributes:
        model: makes it, called with the same random numbers every time; None: there is only the file.
        given: its arguments, in order.
        targets: texts, as `Model.explain` takes them.
        policy: choices of the policy as texts; ``"KEY@SELECTOR"`` for some operators.
        at, each_example, verify_reference, memory: as `Model.explain` takes them.
        door: the question that has the note.
        file: what is done with the path of the file: it is changed, or made where there is no model.
        live: the note is one of runs of Python too, and not only of the file.
        no_plan: why a plan is refused, or does not have the note; empty: it has it.
        no_job: why a job over the rows of the case is refused, or does not have the note; empty: it has it.
    """

    model: Optional[Callable[[], nn.Module]]
    given: Sequence[Given]
    targets: Tuple[str, ...] = ("0",)
    policy: Dict[str, str] = dataclasses.field(default_factory=dict)
    at: Optional[str] = None
    each_example: bool = False
    verify_reference: bool = False
    memory: int = 0
    door: str = ATTRIBUTION
    file: Optional[Callable[[str], None]] = None
    live: bool = True
    no_plan: str = ""
    no_job: str = ""

    @property
    def row_targets(self) -> List[str]:
        """The targets as a job takes them, as targets of each row."""
        return [target if self.each_example else _of_row(target) for target in self.targets]

    def made(self) -> nn.Module:
        assert self.model is not None
        torch.manual_seed(SEED)
        return self.model().eval()

    def write(self, folder: str) -> Dict[str, Any]:
        """Writes the model and its inputs; what cases.json says of them."""
        import numpy

        names: Dict[int, str] = {}

        def stored(what: str, given: Any) -> Any:
            if not isinstance(given, torch.Tensor):
                return given
            if id(given) not in names:
                names[id(given)] = "%s.%s.npy" % (self.name, what)
                numpy.save(os.path.join(folder, names[id(given)]), given.numpy())
            return names[id(given)]

        path = os.path.join(folder, self.name + (".pt2" if self.model is None else ".pt"))
        if self.model is not None:
            torch.jit.script(self.made()).save(path)
        if self.file is not None:
            self.file(path)
        inputs = [
            {
                "value": stored("value%d" % k, given.value),
                "dims": list(given.dims),
                "baseline": stored("baseline%d" % k, given.baseline),
                "baselines": stored("baselines%d" % k, given.baselines),
            }
            for k, given in enumerate(self.given)
        ]
        return {
            "name": self.name,
            "model": os.path.basename(path),
            "note": list(self.note),
            "warning": self.warning,
            "door": self.door,
            "inputs": inputs,
            "targets": list(self.targets),
            "policy": self.policy,
            "options": {
                "at": self.at,
                "each_example": self.each_example,
                "verify_reference": self.verify_reference,
                "memory": self.memory,
            },
            "no_plan": self.no_plan,
            "no_job": self.no_job,
            "row_targets": self.row_targets,
        }


def _of_row(target: str) -> str:
    """A target of the first row as one of each row."""
    word, colon, index = target.rpartition(":")
    if word == "continuation":
        return target
    return word + colon + (index[2:] if index.startswith("0,") else "()" if index == "0" else index)
