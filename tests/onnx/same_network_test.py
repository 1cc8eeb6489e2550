"""A network as live module, TorchScript file, exported program and ONNX model: the same contributions."""

import os
import sys
import unittest

import numpy as np
import torch

import addend

MODELS = "tests/conformance/models/"
sys.path.insert(0, MODELS)

import architectures  # noqa: E402

# Differences in float32 are judged by the largest contribution.
TOLERANCE = 1e-5

# Networks with their inputs, in order: the tensor's name, and how it is split: dims, and a tensor or number as baseline.
NETWORKS = {
    "mlp": (architectures.Mlp, [("table", 1, "baseline")]),
    "relu_network": (architectures.ReluNetwork, [("image", (2, 3), "baseline")]),
    "cnn": (architectures.Cnn, [("image", (2, 3), "baseline")]),
    "lstm": (architectures.Lstm, [("sequence", 1, "baseline")]),
    "gru": (architectures.Gru, [("sequence", 1, "baseline")]),
    "transformer_encoder": (architectures.TransformerEncoder, [("tokens", 1, "baseline")]),
    "mixed": (architectures.Mixed, [("table", 1, "table_baseline"), ("image", 2, 0.25), ("tokens", 1, 0)]),
    "awkward": (architectures.Awkward, [("table", 1, "same_branch")]),
    "nested": (architectures.Nested, [("table", 1, "baseline")]),
}
# ONNX files that hold a network of another name.
ALSO = {"lstm": ["lstm_loop"]}


def inputs_of(name, splits):
    tensors = {key: torch.from_numpy(np.array(value)) for key, value in addend.read_tensors(MODELS + name + ".safetensors").items()}
    for key, dims, baseline in splits:
        yield addend.Input(tensors[key], dims, baseline=tensors[baseline] if isinstance(baseline, str) else baseline)


def live(name, architecture):
    module = architecture().eval()
    module.load_state_dict(torch.jit.load(MODELS + name + ".pt").state_dict())
    return addend.compile(module)


class SameNetworkTest(unittest.TestCase):
    def models(self, name):
        yield "module", live(name, NETWORKS[name][0])
        files = [name + ".pt", name + ".pt2", name + ".onnx"] + [other + ".onnx" for other in ALSO.get(name, [])]
        for file in files:
            if file != "awkward.pt2":  # torch.export follows no branch of Python
                yield file, addend.load_model(MODELS + file)

    def judge(self, name):
        splits = NETWORKS[name][1]
        for preset in ("faithful", "fast"):
            known = None
            for form, model in self.models(name):
                targets = [(0, 0), (0, 1)]
                with torch.no_grad():
                    found = model.explain(*inputs_of(name, splits), targets=targets, preset=preset)
                for k, explanation in enumerate(found):
                    own = np.array(explanation.contributions)
                    if known is None or k == len(known):
                        known = (known or []) + [(own, explanation.value, explanation.reference)]
                        self.assertGreater(np.abs(own).max(), 0)
                        continue
                    parts, value, reference = known[k]
                    with self.subTest(form=form, preset=preset, target=targets[k]):
                        scale = np.abs(parts).max()
                        self.assertLess(np.abs(own - parts).max(), TOLERANCE * scale)
                        self.assertLess(abs(explanation.value - value), TOLERANCE * max(scale, abs(value)))
                        self.assertLess(abs(explanation.reference - reference), TOLERANCE * max(scale, abs(value)))


for _name in NETWORKS:
    setattr(SameNetworkTest, "test_" + _name, lambda self, name=_name: self.judge(name))


if __name__ == "__main__":
    unittest.main()
