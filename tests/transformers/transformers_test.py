"""Models of Hugging Face transformers, live: decomposed, explained and attributed, with and without a padding mask.

ARCHITECTURES names those that run, separated by commas. What is found goes into result.json of the test's outputs.
"""

import json
import os
import sys
import unittest

import torch
import transformers

import addend

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import architectures  # noqa: E402
import result  # noqa: E402

RECOVERY = 1e-4  # of the output's scale
AGREEMENT = 1e-4  # of the largest contribution
SAME = 1e-5  # of the output's scale: two runs of a model


def scale_of(tensor):
    return max(tensor.abs().max().item(), 1e-30)


def apart(a, b, scale):
    """The largest difference, as a part of a scale; infinite where one is NaN and the other is not."""
    if not torch.equal(a.isnan(), b.isnan()):
        return float("inf")
    return (a - b).nan_to_num().abs().max().item() / scale


class Run:
    """One architecture with one kind of attention, and one call of it."""

    def __init__(self, architecture, attention, masked):
        self.architecture = architecture
        self.model = architecture.make(attention)
        self.given = architecture.given(masked)
        with torch.no_grad():
            self.value = self._output({name: tensor for name, (tensor, _, _) in self.given.split.items()})
            self.baseline = self._output({
                name: torch.zeros_like(tensor) + baseline for name, (tensor, _, baseline) in self.given.split.items()
            })
        # The largest number at the last position of the second example, which is the padded one.
        last = (1,) + (-1,) * (self.value.dim() - 2)
        largest = self.value[last].argmax().item()
        self.target = tuple(self.value.shape[k] - 1 for k in range(1, self.value.dim() - 1))
        self.target = (1, *self.target, largest)

    def _output(self, tensors):
        return self.model(**tensors, **self.given.plain)[self.architecture.output]

    def inputs(self):
        """The arguments of a traced model: one component for each position along the split dimension."""
        split = {
            name: addend.Input(tensor, dim, baseline=baseline)
            for name, (tensor, dim, baseline) in self.given.split.items()
        }
        return {**split, **self.given.plain}

    def decompose(self, preset):
        results = addend.compile(self.model, preset=preset).decompose(**self.inputs())
        return results, results["output." + self.architecture.output]

    def explain(self):
        return addend.compile(self.model, preset="faithful").explain(**self.inputs(), targets=[self.target])

    def attribute(self):
        """The contributions of all elements to the target, summed up to the components of `inputs`."""
        values = {name: tensor for name, (tensor, _, _) in self.given.split.items()}
        baselines = {name: baseline for name, (_, _, baseline) in self.given.split.items()}
        plain = self.given.plain

        class Called(torch.nn.Module):
            """The model with its plain arguments in place."""

            def __init__(self, model):
                super().__init__()
                self.model = model

            def forward(self, **tensors):
                return self.model(**tensors, **plain)

        found = addend.compile(Called(self.model), preset="faithful").attribute(
            values, baselines, target=[self.target], each_example=False
        )
        parts = []
        for name, (tensor, dim, _) in self.given.split.items():
            own = found[name].reshape(tensor.shape)
            parts.append(own.movedim(dim, 0).reshape(tensor.shape[dim], -1).sum(1))
        return torch.cat(parts)


def noted_about_reference(notes):
    """Whether one of them says that the reference need not be the model on the baseline."""
    return any("reference" in note or "baseline" in note for note in notes)


class TransformersTest(unittest.TestCase):
    rows = []

    def judge(self, architecture, attention, masked):
        """Fills one row of the table, as far as it gets."""
        row = {"architecture": architecture.name, "attention": attention, "mask": masked, "notes": []}
        self.rows.append(row)
        try:
            self.fill(row, Run(architecture, attention, masked))
        except Exception as error:
            if isinstance(error, ValueError) and "does not support an attention implementation" in str(error):
                # Newer versions have dropped Gemma2's.
                self.rows.remove(row)
                self.skipTest("transformers %s has no %s attention for it" % (transformers.__version__, attention))
            row["failure"] = str(error).strip().split("\n")[0][:200]
            raise

    def at_most(self, bound, number, what):
        if not number <= bound:  # NaN is too much
            self.fail("%s by %.1e, bound %.0e" % (what, number, bound))

    def fill(self, row, run):
        architecture = run.architecture
        scale = scale_of(run.value)
        results, composition = run.decompose("faithful")
        value, recovery, reference, leftover = (
            getattr(composition, part).torch() for part in ("value", "recovery", "reference", "leftover")
        )
        move = scale_of(run.value - run.baseline)
        row["recovery"] = apart(recovery, run.value, scale)
        row["leftover"] = leftover.abs().max().item() / move
        row["reference"] = apart(reference, run.baseline, scale_of(run.baseline))
        row["notes"] = sorted(results.notes)
        self.at_most(SAME, apart(value, run.value, scale), "the value differs from the model's")
        self.at_most(RECOVERY, row["recovery"], "the recovery differs from the value")
        if row["reference"] > SAME and not noted_about_reference(results.notes):
            self.fail("the reference differs from the model on the baseline by %.1e, and no note says why: %s"
                      % (row["reference"], results.notes))

        at = results.explain(run.target, "output." + architecture.output)
        forward = torch.tensor(at.contributions, dtype=torch.float64)
        size = max(scale_of(forward), abs(at.value - at.reference))
        self.assertGreater(scale_of(forward), 1e-3 * abs(at.value - at.reference), "no component reaches the target")
        explained = run.explain()
        back = torch.tensor(explained[0].contributions, dtype=torch.float64)
        row["explain"] = apart(forward, back, size)
        self.at_most(AGREEMENT, row["explain"], "explain differs from decompose")
        self.at_most(SAME, abs(explained[0].value - at.value) / scale, "the explained number differs from the value")
        row["attribute"] = apart(forward, run.attribute().double(), size)
        self.at_most(AGREEMENT, row["attribute"], "attribute differs from decompose")

        results, composition = run.decompose("fast")
        row["fast_recovery"] = apart(composition.recovery.torch(), run.value, scale)
        row["fast_leftover"] = composition.leftover.torch().abs().max().item() / move
        self.at_most(RECOVERY, row["fast_recovery"], "under fast, the recovery differs from the value")


def add_cases():
    asked = [name for name in os.environ.get("ARCHITECTURES", "").split(",") if name]
    known = {architecture.name: architecture for architecture in architectures.ALL}
    for name in asked or known:
        architecture = known[name]
        for attention in architecture.attentions:
            for masked in architecture.masks:
                def case(self, architecture=architecture, attention=attention, masked=masked):
                    self.judge(architecture, attention, masked)

                title = "_".join([name, attention, "mask" if masked else "no_mask"])
                setattr(TransformersTest, "test_" + "".join(c if c.isalnum() else "_" for c in title), case)


add_cases()


def tearDownModule():
    found = {
        "libtorch": addend.libtorch_version,
        "transformers": transformers.__version__,
        "rows": TransformersTest.rows,
    }
    print(result.table(found["rows"]))
    folder = os.environ.get("TEST_UNDECLARED_OUTPUTS_DIR")
    if folder:
        with open(os.path.join(folder, "result.json"), "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    unittest.main()
