"""Writes loan.pt, the model of the first minutes with Addend: a score of four columns, whose weights are made up.

usage: loan.py loan.pt

tests/packages/pages_test.py computes its contributions by hand.
"""

import sys

import torch


class Loan(torch.nn.Module):
    """Rows of income, debt, years in the job and age, [N, 4], to scores [N, 1]. The age counts for nothing."""

    def __init__(self):
        super().__init__()
        self.hidden = torch.nn.Linear(4, 3)
        self.score = torch.nn.Linear(3, 1)
        with torch.no_grad():
            self.hidden.weight.copy_(torch.tensor([[1.0, -1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [-1.0, 2.0, 0.0, 0.0]]))
            self.hidden.bias.copy_(torch.tensor([-10.0, -2.0, 0.0]))
            self.score.weight.copy_(torch.tensor([[0.1, 0.3, -0.2]]))
            self.score.bias.copy_(torch.tensor([0.5]))

    def forward(self, row: torch.Tensor) -> torch.Tensor:
        return self.score(torch.relu(self.hidden(row)))


if __name__ == "__main__":
    torch.jit.script(Loan().eval()).save(sys.argv[1])
