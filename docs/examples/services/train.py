"""Trains the model of docs/services.md, and writes what the services need: train.py MODEL...

The ending of a MODEL says what it is: .pt2 (an exported program, by torch.export), .onnx, or .pt (TorchScript, by any PyTorch).
Several are the same network. Its folder also gets baseline.npy, sample.safetensors, concepts.json and rows.csv.
"""

import json
import os
import sys

import addend
import numpy
import torch

COLUMNS = ["income", "debt_share", "years_in_job", "late_payments"]
CONCEPTS = {
    "format": "addend.concepts", "version": 1,
    # A high score is a default: what raises it speaks against the person.
    "adverse": "positive", "at_most": 2, "threshold_share": 0.05,
    "concepts": [
        {"name": "Income", "code": "R01", "components": ["income"], "unit": "EUR", "decimals": 0,
         "text": "{concept} of {value} {unit}, where {baseline} {unit} is usual"},
        {"name": "Debt", "code": "R02", "components": ["debt_share"], "decimals": 2,
         "text": "{concept} of {value} of the income, where {baseline} is usual"},
        {"name": "Job", "code": "R03", "components": ["years_in_job"], "decimals": 1, "text": "{value} years in the job"},
        {"name": "Late payments", "code": "R04", "components": ["late_payments"], "decimals": 0, "text": "{concept}: {value}"},
    ],
}


class Credit(torch.nn.Module):
    """Rows [N, 4] to the logits of a default and of a repayment, [N, 2]. It standardizes the columns itself."""

    def __init__(self, mean, scale):
        super().__init__()
        self.register_buffer("mean", torch.from_numpy(mean))
        self.register_buffer("scale", torch.from_numpy(scale))
        self.hidden = torch.nn.Linear(len(COLUMNS), 8)
        self.logits = torch.nn.Linear(8, 2)

    def forward(self, row: torch.Tensor) -> torch.Tensor:
        return self.logits(torch.tanh(self.hidden((row - self.mean) / self.scale)))


def applications(count):
    """Made-up applications, and which of them ended in a default."""
    random = numpy.random.default_rng(1)
    rows = numpy.stack([random.gamma(6, 550, count).round(), random.beta(2, 5, count).round(2),
                        random.gamma(1.5, 4, count).round(1), random.poisson(0.7, count)], 1)
    odds = -2.6 + 5 * rows[:, 1] + 0.9 * rows[:, 3] - 0.7 * numpy.log1p(rows[:, 2]) - 0.0003 * (rows[:, 0] - 3300)
    return rows, random.random(count) < 1 / (1 + numpy.exp(-odds))


def trained(rows, default):
    """A network that was trained in float64, where every machine finds the same weights, and computes in float32."""
    torch.manual_seed(1)
    network = Credit(rows.mean(0), rows.std(0)).double()
    optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
    given, wanted = torch.from_numpy(rows), torch.from_numpy(numpy.where(default, 0, 1))
    for _ in range(200):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(given), wanted).backward()
        optimizer.step()
    return network.float().eval()


def save(network, row, path):
    if path.endswith(".pt2"):
        rows = {0: torch.export.Dim("rows", min=1, max=65536)}
        torch.export.save(torch.export.export(network, (row.repeat(2, 1),), dynamic_shapes=(rows,), strict=False), path)
    elif path.endswith(".onnx"):
        torch.onnx.export(network, (row,), path, input_names=["row"], dynamic_axes={"row": {0: "rows"}})
    else:
        torch.jit.script(network).save(path)


def main(paths):
    rows, default = applications(2000)
    mean = rows.mean(0, keepdims=True).astype("float32")
    network = trained(rows, default)
    for path in paths:
        folder = os.path.dirname(os.path.abspath(path))
        save(network, torch.from_numpy(mean), path)
        numpy.save(os.path.join(folder, "baseline.npy"), mean)
        addend.write_tensors(os.path.join(folder, "sample.safetensors"), {"input": torch.from_numpy(mean)},
                             {"names": json.dumps(COLUMNS)})
        with open(os.path.join(folder, "concepts.json"), "w") as file:
            json.dump(CONCEPTS, file, indent=1)
        numpy.savetxt(os.path.join(folder, "rows.csv"), rows[:100], fmt="%g", delimiter=",", header=",".join(COLUMNS), comments="")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: train.py MODEL...")
    main(sys.argv[1:])
