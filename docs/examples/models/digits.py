"""A small CNN on the 8x8 grey images of handwritten digits."""

import numpy
import torch
from torch import nn

import common

SEED = 20240502
HELDOUT = 400
SAMPLE_DIGIT = 8
SOURCE = (
    "Optical Recognition of Handwritten Digits (its test part), Alpaydin, Kaynak, "
    "UCI Machine Learning Repository 1998, doi:10.24432/C50P49, CC BY 4.0; "
    "the copy in scikit-learn (BSD-3-Clause)"
)


class DigitClassifier(nn.Module):
    """Takes grey values 0..16 as the data set has them; black is 0."""

    def __init__(self, classes):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, kernel_size=3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, kernel_size=3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.dropout = nn.Dropout(0.25)
        self.hidden = nn.Linear(32 * 2 * 2, 32)
        self.output = nn.Linear(32, classes)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        features = self.features(image / 16.0).flatten(1)
        hidden = torch.relu(self.hidden(self.dropout(features)))
        return self.output(self.dropout(hidden))


def load():
    """Returns the (train, held-out) images and labels as tensors."""
    # Only training needs it.
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    data = load_digits()
    parts = train_test_split(
        data.images.astype(numpy.float32)[:, None],
        data.target.astype(numpy.int64),
        test_size=HELDOUT,
        stratify=data.target,
        random_state=SEED,
    )
    return [torch.from_numpy(part) for part in parts]


def run():
    common.make_deterministic(SEED)
    train, heldout, train_labels, heldout_labels = load()
    model = DigitClassifier(classes=10)
    common.fit(
        model,
        train,
        train_labels,
        epochs=40,
        batch_size=64,
        learning_rate=4e-3,
        weight_decay=1e-2,
        seed=SEED,
    )
    logits = common.predict(model, heldout)
    row = common.nearest_confidence(logits, heldout_labels, SAMPLE_DIGIT, 0.95)
    metadata = {
        "kind": "image",
        "classes": common.as_json([str(digit) for digit in range(10)]),
        "source": SOURCE,
    }
    common.write_products(
        "digits",
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
    print(f"  sample: held-out row {row}, logits {logits[row].tolist()}")
