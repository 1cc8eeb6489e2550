#!/usr/bin/env python3
"""Measures how much cancels in deep networks with random weights, from a baseline of zero; see README.md."""

import argparse
import sys

import torch
from torch import nn

import measure
import methods
import metrics
import networks
import truths

import addend
import machine  # on the path that `measure` adds

SEED = 11
DEPTHS = (2, 6, 12)
WIDTH, HEADS, DRAWN = 32, 4, 10


class Encoder(nn.Module):
    """PyTorch's layers without biases; one number for each class, of the mean token."""

    def __init__(self, depth, norm_first):
        super().__init__()
        choices = {"dropout": 0.0, "activation": "gelu", "batch_first": True, "norm_first": norm_first}
        self.layers = nn.Sequential(
            *(nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, **choices) for _ in range(depth))
        )
        self.output = nn.Linear(WIDTH, 4, False)
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, states):
        return self.output(self.layers(states).mean(1))


class Decoder(nn.Module):
    """RMS norms, causal attention, gated feed-forwards; one number for each class, of the last token."""

    def __init__(self, depth):
        super().__init__()
        self.layers = nn.Sequential(*(networks.DecoderLayer(WIDTH, HEADS) for _ in range(depth)))
        self.norm, self.output = networks.RootMeanSquareNorm(WIDTH), nn.Linear(WIDTH, 4, False)

    def forward(self, states):
        return self.output(self.norm(self.layers(states)[:, -1]))


NETWORKS = {
    "encoder, layer norms first": lambda depth: Encoder(depth, norm_first=True),
    "encoder, layer norms last": lambda depth: Encoder(depth, norm_first=False),
    "decoder, RMS norms first": Decoder,
}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    measure.add_outputs(parser)
    return parser.parse_args()


def measure_network(name, depth, dtype):
    """Conditioning and leftover of a network, by policy."""
    torch.manual_seed(SEED)
    network = NETWORKS[name](depth).to(dtype)
    for parameter in network.parameters():
        parameter.requires_grad_(False)
    inputs = torch.randn(DRAWN, truths.Retrieval.units, WIDTH).to(dtype)
    model, found = addend.compile(network), {}
    for policy, choices in methods.POLICIES.items():
        contributions, gaps = [], []
        for sample in inputs.split(1):
            split = addend.Input(sample, dims=1, baseline=0)
            parts = model.decompose(split, on_failure="ignore", **choices)[0]
            value, reference = parts.value.torch()[0, 0], parts.reference.torch()[0, 0]
            contributions.append(parts.components.torch()[:, 0, 0].numpy())
            gaps.append(float(value - reference))
        found[policy] = {
            "conditioning": metrics.conditioning(contributions, gaps),
            "leftover": metrics.leftover(contributions, gaps),
        }
    return found


def table(results):
    """The results in Markdown."""
    yield from measure.heading("Deep networks from zero", "measure_depth.py", results)
    yield ""
    yield "Each cell: parts over the move; leftover."
    yield ""
    yield "| network | dtype | layers | %s |" % " | ".join(methods.POLICIES)
    yield "|---|---|---:|%s" % ("---|" * len(methods.POLICIES))
    for entry in results["networks"]:
        cells = ["%.3g; %s" % (found["conditioning"], metrics.share(found["leftover"])) for found in in_order(entry)]
        yield "| %s | %s | %d | %s |" % (entry["network"], entry["dtype"], entry["layers"], " | ".join(cells))


def in_order(entry):
    return [entry["policies"][policy] for policy in methods.POLICIES]


def main():
    arguments = parse_arguments()
    machine.make_folders(arguments.json, arguments.markdown)
    torch.set_num_threads(1)
    results = {"machine": machine.facts(), "seed": SEED, "samples": DRAWN, "networks": []}
    for name in NETWORKS:
        for dtype in (torch.float64, torch.float32):
            for depth in DEPTHS:
                results["networks"].append(
                    {
                        "network": name,
                        "dtype": str(dtype).partition(".")[2],
                        "layers": depth,
                        "policies": measure_network(name, depth, dtype),
                    }
                )
    results["load_at_end"] = machine.load()
    measure.publish(arguments, results, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
