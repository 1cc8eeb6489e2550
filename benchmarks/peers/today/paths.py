"""Puts the folders on Python's path that this one shares code with; imported first."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
EXAMPLES = ROOT / "docs" / "examples" / "models"

# Known causes and their measures; processes and arithmetic of the other comparisons; facts; classes of example models.
for _folder in (ROOT / "benchmarks" / "faithfulness", HERE.parent, ROOT / "benchmarks", EXAMPLES):
    sys.path.append(str(_folder))
