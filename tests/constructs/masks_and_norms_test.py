"""Masks that swallow scores, norms from a baseline without variance, and operators with rules of their own."""

import math
import os
import sys
import unittest

import torch
from torch import nn

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from case import Case, Split  # noqa: E402
from table import table  # noqa: E402

try:
    import torchvision.ops as vision
except ImportError:
    vision = None

LOWEST = torch.finfo(torch.float32).min


class Attention(nn.Module):
    """Queries of padded positions see keys that are masked, all of them.

    Args:
        low: what a masked score becomes.
        way: how: by a mask that is added, by one that is added and clamped, or by filling.
    """

    def __init__(self, low, way):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(8, 8) for _ in range(3))
        self.low, self.way = low, way

    def forward(self, x, mask):
        scores = self.q(x) @ self.k(x).transpose(1, 2)
        seen = mask[:, None].bool().expand(-1, x.shape[1], -1).tril()
        if self.way == "filled":
            weights = scores.masked_fill(~seen, self.low).softmax(-1)
        elif self.way == "filled, then emptied":
            weights = scores.masked_fill(~seen, self.low).softmax(-1).masked_fill(~seen, 0.0)
        elif self.way == "chosen":
            weights = torch.where(seen, scores, torch.tensor(self.low)).softmax(-1)
        else:
            added = scores + torch.zeros(seen.shape).masked_fill(~seen, self.low)
            weights = (added.clamp(min=self.low) if self.way == "added and clamped" else added).softmax(-1)
        return weights @ self.v(x)


def attention(name, low, way, padded, **choices):
    def given(seed):
        torch.manual_seed(seed)
        mask = torch.tensor([[1, 1, 1, 1], [0, 0, 1, 1] if padded == "left" else [1, 1, 0, 0]])
        return torch.randn(2, 4, 8), mask

    choices.setdefault("target", (1, 3, 2))
    return Case(
        "rows that are masked as a whole", "%s, %s, padded %s" % (name, way, padded), lambda: Attention(low, way),
        lambda: [Split(given(5)[0], 1), given(5)[1]], lambda: list(given(6)), **choices,
    )


def stack(depth, norm, channels=8, reflected=False):
    layers = []
    for index in range(depth):
        pad = {"padding_mode": "reflect"} if reflected else {}
        layers += [nn.Conv2d(3 if index == 0 else channels, channels, 3, padding=1, **pad), norm(channels), nn.ReLU()]
    return nn.Sequential(*layers, nn.Conv2d(channels, 2, 1))


def picture():
    torch.manual_seed(7)
    return torch.rand(1, 3, 8, 8)


NOISE = 0.2 + 0.3 * torch.rand(1, 3, 8, 8, generator=torch.Generator().manual_seed(9))
STRIPES = (torch.arange(8)[:, None] // 2).expand(8, 8).contiguous()
BASELINES = {"from zero": 0.0, "from grey": 0.5, "from noise": NOISE}


def stacks(construct, norm, **choices):
    return [
        Case(construct, "%d layers %s" % (depth, name), lambda depth=depth: stack(depth, norm, **choices),
             lambda baseline=baseline: [Split(picture(), None, baseline, STRIPES)], lambda: [picture().flip(2)],
             recovery=1e-4, agreement=1e-3)
        for depth in (1, 4, 8)
        for name, baseline in BASELINES.items()
    ]


class Encoder(nn.Module):
    """Mixes positions, with the norm before or behind each layer."""

    def __init__(self, depth, norm, first):
        super().__init__()
        self.mix = nn.ModuleList(nn.Linear(4, 4, bias=False) for _ in range(depth))
        self.layers = nn.ModuleList(nn.Linear(12, 12) for _ in range(depth))
        self.norms = nn.ModuleList(norm() for _ in range(depth))
        self.first = first

    def forward(self, x):
        for mix, layer, norm in zip(self.mix, self.layers, self.norms):
            inner = norm(x) if self.first else x
            inner = mix(inner.transpose(1, 2)).transpose(1, 2)
            x = x + nn.functional.gelu(layer(inner))
            if not self.first:
                x = norm(x)
        return x


class RootMeanSquare(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(12) + 0.5)

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class WrittenOut(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.rand(12) + 0.5), nn.Parameter(torch.randn(12))

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        return (x - mean) / ((x - mean).square().mean(-1, keepdim=True) + 1e-5).sqrt() * self.weight + self.bias


class Standardized(nn.Module):
    def forward(self, x):
        return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-3)


class Normalized(nn.Module):
    def forward(self, x):
        return nn.functional.normalize(x, dim=-1, eps=1e-3)


def words():
    torch.manual_seed(8)
    return torch.randn(1, 4, 12)


def encoders(construct, name, norm, **choices):
    baselines = {"from zero": 0.0, "from one": 1.0}
    choices = {"recovery": 1e-4, "agreement": 1e-3, **choices}
    return [
        Case(construct, "%s, %d layers, norm %s, %s" % (name, depth, "first" if first else "last", begin),
             lambda depth=depth, first=first: Encoder(depth, norm, first),
             lambda baseline=baseline: [Split(words(), 1, baseline)], **choices)
        for depth, first in ((2, True), (8, True), (8, False))
        for begin, baseline in baselines.items()
    ]


def of_numbers(construct, variant, model, shape=(3, 5), **choices):
    torch.manual_seed(3)
    x = torch.rand(*shape) + 0.5
    choices.setdefault("dims", 1)
    dims, baseline = choices.pop("dims"), choices.pop("baseline", 0.2)
    choices.setdefault("other", lambda: [x.flip(0) * 1.25])
    return Case(construct, variant, lambda: model, lambda: [Split(x, dims, baseline)], **choices)


IMAGE = torch.randn(1, 3, 6, 6, generator=torch.Generator().manual_seed(4))
KERNEL = torch.randn(4, 3, 3, 3, generator=torch.Generator().manual_seed(5))
BOXES = torch.tensor([[0.0, 0.5, 0.5, 4.0, 4.5], [0.0, 1.0, 0.0, 5.0, 3.0]])
OFFSETS = torch.randn(1, 18, 6, 6, generator=torch.Generator().manual_seed(6))


def modulated(s):
    """The weights of a convolution are made from the input, as StyleGAN2 does."""
    weights = KERNEL * s.view(1, -1, 1, 1)
    weights = weights * torch.rsqrt(weights.square().sum((1, 2, 3), keepdim=True) + 1e-8)
    return nn.functional.conv2d(IMAGE, weights, padding=1)


def both(x):
    return nn.functional.conv2d(IMAGE * x.view(1, -1, 1, 1), KERNEL * x.view(1, -1, 1, 1), padding=1, stride=2)


def regions(x, boxes):
    return vision.roi_align(x, boxes, output_size=2, spatial_scale=1.0, sampling_ratio=2)


def deformed(x, offsets):
    return vision.deform_conv2d(x, offsets, KERNEL, padding=1)


def turned(x):
    return torch.angle(torch.complex(x, (3 * x).sin())) + x


def pixels():
    return [Split(IMAGE.abs(), (2,), 0.1)]


def styles():
    return [Split(torch.tensor([0.5, 1.5, -1.0]), 0, 0.1)]


VISION = (vision is not None, "torchvision")
OUTSIDE = {"available": VISION, "file": "trace"}

CASES = [
    *[attention("the lowest number", LOWEST, way, padded)
      for way in ("added", "added and clamped", "filled", "chosen") for padded in ("left", "right")],
    *[attention("-1e9", -1e9, way, padded) for way in ("added", "filled") for padded in ("left", "right")],
    *[attention("-1e4", -1e4, way, "left") for way in ("added", "filled")],
    attention("infinitely low", -math.inf, "filled, then emptied", "left"),
    attention("infinitely low", -math.inf, "filled", "right"),
    attention("infinitely low", -math.inf, "added", "right"),
    attention("infinitely low, rows of NaN", -math.inf, "filled", "left"),
    attention("at a padded position, the lowest number", LOWEST, "added", "left", target=(1, 0, 2)),
    *stacks("stacks of instance norms", lambda c: nn.InstanceNorm2d(c, affine=True), reflected=True),
    *stacks("stacks of group norms", lambda c: nn.GroupNorm(4, c)),
    *encoders("stacks of layer norms", "fused", lambda: nn.LayerNorm(12)),
    *encoders("norms written out", "layer norm", WrittenOut),
    *encoders("norms written out", "root mean square", RootMeanSquare),
    *encoders("norms written out", "by the deviation", Standardized),
    *encoders("norms written out", "by the length", Normalized),
    of_numbers("rows through softmax", "softmax", lambda x: (4 * x).softmax(-1)),
    of_numbers("rows through softmax", "over the split", lambda x: (4 * x).softmax(0)),
    of_numbers("rows through softmax", "wide", lambda x: (9 * x).softmax(-1), shape=(2, 3, 80), dims=2),
    of_numbers("rows through softmax", "log_softmax", lambda x: (4 * x).log_softmax(-1)),
    of_numbers("rows through softmax", "logsumexp", lambda x: (4 * x).logsumexp(-1)),
    of_numbers("rows through softmax", "far apart", lambda x: (400 * x).softmax(-1)),
    Case("convolutions with decomposed weights", "the weights", lambda: modulated, styles),
    Case("convolutions with decomposed weights", "both", lambda: both, styles),
    Case("regions of interest", "", lambda: regions, lambda: [*pixels(), BOXES], **OUTSIDE),
    Case("deformable convolutions", "the image", lambda: deformed, lambda: [*pixels(), OFFSETS], **OUTSIDE),
    Case("deformable convolutions", "image and offsets", lambda: deformed,
         lambda: [*pixels(), Split(OFFSETS, 1, 0.0)], **OUTSIDE),
    of_numbers("neighbours of floating-point numbers", "",
               lambda x: torch.nextafter(x.square(), torch.tensor(9.0)) + x),
    of_numbers("angles", "", turned, dims=1),
    of_numbers("angles", "of real numbers", lambda x: torch.angle(x - 0.7) + x, leftover="steps pass nothing"),
]

Cases = table("masks and norms", CASES, [])


if __name__ == "__main__":
    unittest.main()
