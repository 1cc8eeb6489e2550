"""An MLP on the raw columns of the Breast Cancer Wisconsin (Diagnostic) table."""

import numpy
import torch
from torch import nn

import common

SEED = 20240501
HELDOUT = 200
MALIGNANT = 0
SOURCE = (
    "Breast Cancer Wisconsin (Diagnostic), Wolberg, Mangasarian, Street, Street, "
    "UCI Machine Learning Repository 1995, doi:10.24432/C5DW2B, CC BY 4.0; "
    "the copy in scikit-learn (BSD-3-Clause)"
)


class TableClassifier(nn.Module):
    """Takes raw columns: the standardisation is a part of the model."""

    def __init__(self, mean, deviation, classes):
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("deviation", deviation)
        self.layers = nn.Sequential(
            nn.Linear(len(mean), 32),
            nn.ReLU(),
            nn.Linear(32, 16),
            nn.ReLU(),
            nn.Linear(16, classes),
        )

    def forward(self, table: torch.Tensor) -> torch.Tensor:
        return self.layers((table - self.mean) / self.deviation)


def load():
    """Returns the bunch and its (train, held-out) rows as tensors."""
    # Only training needs it.
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split

    data = load_breast_cancer()
    parts = train_test_split(
        data.data.astype(numpy.float32),
        data.target.astype(numpy.int64),
        test_size=HELDOUT,
        stratify=data.target,
        random_state=SEED,
    )
    return data, [torch.from_numpy(part) for part in parts]


def run():
    common.make_deterministic(SEED)
    data, (train, heldout, train_labels, heldout_labels) = load()
    # The mean row is the baseline too, so it is rounded to float32 only once.
    mean = train.double().mean(dim=0).float()
    deviation = train.double().std(dim=0).float()
    model = TableClassifier(mean, deviation, len(data.target_names))
    common.fit(
        model,
        train,
        train_labels,
        epochs=60,
        batch_size=32,
        learning_rate=3e-3,
        weight_decay=1e-2,
        seed=SEED,
    )
    logits = common.predict(model, heldout)
    row = common.nearest_confidence(logits, heldout_labels, MALIGNANT, 0.9)
    metadata = {
        "kind": "table",
        "classes": common.as_json([str(name) for name in data.target_names]),
        "names": common.as_json([str(name) for name in data.feature_names]),
        "source": SOURCE,
    }
    common.write_products(
        "breast_cancer",
        model,
        heldout={"input": heldout, "label": heldout_labels},
        sample={"input": heldout[row : row + 1], "label": heldout_labels[row : row + 1]},
        metadata=metadata,
        sample_metadata=metadata,
        metrics={
            "accuracy": common.accuracy(logits, heldout_labels),
            "samples": len(heldout),
            "parameters": common.count_parameters(model),
            "train_samples": len(train),
            "seed": SEED,
        },
    )
    numpy.save(
        common.FOLDER / "breast_cancer" / "baseline.npy",
        mean.unsqueeze(0).numpy(),
        allow_pickle=False,
    )
    print(f"  sample: held-out row {row}, logits {logits[row].tolist()}")
