"""Refusals say what to do: words of options, dtypes, names and concepts."""

import io
import unittest

import torch
from torch import nn

import addend


class RefusalsTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.network = nn.Linear(3, 2)
        self.x = torch.rand(1, 3)
        file = io.BytesIO()
        torch.jit.save(torch.jit.trace(self.network, self.x), file)
        self.models = {"live": addend.compile(self.network), "file": addend.load_model(file.getvalue())}

    def source(self, value=None, **more):
        return addend.Input(self.x if value is None else value, dims=1, baseline=0, **more)

    def test_target_and_targets_are_told_apart(self):
        for kind, model in self.models.items():
            with self.subTest(kind):
                for name in ("explain", "plan"):
                    with self.assertRaisesRegex(TypeError, r"%s\(\) has no option target: did you mean targets\?" % name):
                        getattr(model, name)(self.source(), target=0)
                with self.assertRaisesRegex(TypeError, r"interactions\(\) has no option targets: did you mean target\?"):
                    model.interactions(self.source(), targets=0)
                with self.assertRaisesRegex(TypeError, r"attribute\(\) has no option targets: did you mean target\?"):
                    model.attribute(self.x, targets=0)
        with self.assertRaisesRegex(TypeError, r"attribute\(\) has no option targets: did you mean target\?"):
            addend.attribute(self.network, self.x, targets=0)

    def test_an_argument_of_the_model_that_is_called_so_is_its_own(self):
        def loss(x, target):
            return ((x - target) ** 2).sum(1)

        target = torch.tensor([[1.0, 0, 0]])
        (found,) = addend.compile(loss).explain(self.source(), target=target, targets=0)
        self.assertAlmostEqual(found.value, ((self.x - target) ** 2).sum().item(), places=6)
        # A name that only **kwargs would take is not meant for the model.
        with self.assertRaisesRegex(TypeError, "did you mean targets"):
            addend.compile(lambda x, **further: self.network(x)).explain(self.source(), target=0)

    def test_both_dtypes_are_named(self):
        layers = {
            "linear": (nn.Linear(4, 2), (2, 4)), "convolution": (nn.Conv1d(4, 2, 1), (2, 4, 3)),
            "normalization": (nn.LayerNorm(4), (2, 4)), "recurrent": (nn.GRU(4, 2, batch_first=True), (2, 5, 4)),
        }
        for name, (layer, shape) in layers.items():
            with self.subTest(name):
                rows = torch.rand(shape, dtype=torch.float64)
                try:
                    layer(rows)
                except RuntimeError as error:
                    own = str(error).splitlines()[0]
                except ValueError:
                    continue  # this PyTorch's Python names both before any operator runs
                else:
                    continue  # this PyTorch takes both
                asked = {"attribute": lambda: addend.attribute(layer, rows, target=0),
                         "explain": lambda: addend.compile(layer).explain(self.source(rows)),
                         "decompose": lambda: addend.compile(layer).decompose(self.source(rows)),
                         "record": lambda: addend.compile(layer).record(rows)}
                for what, call in asked.items():
                    with self.assertRaisesRegex(addend.InvalidArgument, "input is float64, and the parameters of the model "
                                                r"are float32; convert the input by .float\(\), or the model by .double\(\)",
                                                msg=what) as caught:
                        call()
                    self.assertIn(own, str(caught.exception))

    def test_the_input_of_another_dtype_is_named(self):
        network = nn.Linear(3, 2).to(torch.bfloat16)

        def model(ids, rows):
            return network(rows) * ids

        rows = self.x.numpy()
        message = (r"rows is float32, and the parameters of the model are bfloat16; convert the input by .bfloat16\(\), or "
                   r"the model by .float\(\)")
        with self.assertRaisesRegex(addend.InvalidArgument, message):
            addend.attribute(model, (torch.tensor([1]), rows), target=0)
        with self.assertRaisesRegex(addend.InvalidArgument, r"input is int64, .* convert the input by .float\(\) \("):
            addend.attribute(self.network, torch.tensor([[1, 2, 3]]), target=0)

    def test_other_errors_stay_the_models_own(self):
        rows = torch.rand(1, 5, dtype=torch.float64)
        with self.assertRaisesRegex(RuntimeError, "shapes cannot be multiplied") as caught:
            addend.attribute(self.network.double(), rows, target=0)
        self.assertNotIsInstance(caught.exception, addend.Error)

        def strict(x):
            raise RuntimeError("the dtype of the moon")

        with self.assertRaisesRegex(RuntimeError, "^the dtype of the moon$"):
            addend.attribute(strict, rows)

    def test_names_are_as_many_as_components(self):
        for kind, model in self.models.items():
            with self.subTest(kind):
                for names in (["a", "b"], ["a", "b", "c", "d"]):
                    message = "has 3 components, but %d names; give one for each, or none" % len(names)
                    with self.assertRaisesRegex(ValueError, message):
                        model.explain(self.source(names=names), targets=0)
                    with self.assertRaisesRegex(ValueError, message):
                        model.decompose(self.source(names=names))
                (found,) = model.explain(self.source(names=["a", "b", "c"]), targets=0)
                self.assertEqual(found.names, ["a", "b", "c"])
                labelled = addend.Input(self.x, labels=torch.tensor([0, 1, -1]), baseline=0, names=["a"])
                with self.assertRaisesRegex(ValueError, "has 2 components, but 1 names"):
                    model.explain(labelled, targets=0)

    def test_concepts_are_a_dictionary(self):
        (found,) = self.models["live"].explain(self.source(names=["a", "b", "c"]), targets=0)
        for wrong, kind in (([{"name": "A", "components": ["a"]}], "list"), (7, "int")):
            with self.assertRaisesRegex(TypeError, r"concepts are a dictionary .* or its JSON, not a %s" % kind):
                addend.Concepts(wrong)
        with self.assertRaisesRegex(addend.InvalidArgument, 'there is no "A"; there are adverse, at_most, concepts'):
            addend.Concepts({"A": ["a"]})


if __name__ == "__main__":
    unittest.main()
