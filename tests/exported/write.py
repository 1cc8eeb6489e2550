"""Writes exported programs (.pt2) of small models, with inputs and what PyTorch gives for them.

    write.py FOLDER [NAME...]

Runs under PyTorch 2.6 or later. Each model is written twice, as it is exported (NAME.pt2) and after run_decompositions()
(NAME-core.pt2); NAME.safetensors holds the tensors that the model is given, in the order in which they are nested
("input_0", ...), and those that it gives ("output_0", ...). Models whose sizes may change are given a second set
("other_input_0", ...). The metadata says which inputs are no tensors. Architectures of Hugging Face transformers are
written where that package is installed. A model that cannot be exported is named, and the others are written all the
same.
"""

import argparse
import dataclasses
import functools
import inspect
import json
import math
import os
import struct
import sys
import warnings
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch
from torch import nn
from torch.export import Dim

HERE = os.path.dirname(os.path.abspath(__file__))
# The architectures that the tests of transformers explain lie beside this folder, or, in a copy, in it.
sys.path[:0] = [os.path.join(HERE, os.pardir, "transformers"), HERE]


@dataclasses.dataclass
class Case:
    """One model and what it is called with."""

    make: Callable[[], nn.Module]
    args: Callable[[], Tuple[Any, ...]]
    kwargs: Callable[[], Dict[str, Any]] = dict
    dynamic: Any = None
    other: Optional[Callable[[], Tuple[Any, ...]]] = None  # arguments of other sizes
    strict: bool = False
    train: bool = False


CASES: Dict[str, Case] = {}


def case(args, kwargs=dict, dynamic=None, other=None, strict=False, train=False):
    """The class below is a case; its name in small letters is that of the files."""

    def add(cls):
        CASES[cls.__name__.lower()] = Case(cls, args, kwargs, dynamic, other, strict, train)
        return cls

    return add


def randn(*sizes, seed=0, **options):
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed), **options)


def ids(*sizes, high=11, seed=0):
    return torch.randint(0, high, sizes, generator=torch.Generator().manual_seed(seed))


BATCH = Dim("batch", min=2, max=64)


@case(lambda: (randn(3, 4),))
class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))

    def forward(self, x):
        return self.layers(x)


@case(lambda: (randn(3, 4),), dynamic={"x": {0: BATCH}}, other=lambda: (randn(7, 4, seed=1),))
class Batch(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.norm = nn.LayerNorm(8)
        self.second = nn.Linear(8, 3)

    def forward(self, x):
        hidden = torch.tanh(self.norm(self.first(x)))
        return self.second(hidden.view(x.shape[0], 2, 4).transpose(1, 2).reshape(x.shape[0], 8))


@case(lambda: (randn(2, 3, 8, 8),))
class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(4, 6, 3, stride=2, groups=2), nn.GELU(), nn.AdaptiveAvgPool2d(1))
        self.head = nn.Linear(6, 3)
        with torch.no_grad():
            self.features[1].running_mean.uniform_(-0.5, 0.5)
            self.features[1].running_var.uniform_(0.5, 2)

    def forward(self, x):
        return self.head(torch.flatten(self.features(x), 1))


@case(lambda: (randn(2, 5, 3),))
class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 4, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        out, (h, c) = self.rnn(x)
        return self.head(out[:, -1]), h, c


@case(lambda: (randn(5, 2, 3), randn(1, 2, 4, seed=1)))
class Gru(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 4)

    def forward(self, x, h0):
        return self.rnn(x, h0)


@case(lambda: (randn(2, 6, 8), torch.tensor([[0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1]], dtype=torch.bool)))
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.1)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x, padded):
        return self.encoder(x, src_key_padding_mask=padded)


@case(lambda: (randn(2, 5, 8), randn(2, 4, 8, seed=1)))
class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.decoder = nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)

    def forward(self, x, memory):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.decoder(x, memory, tgt_mask=mask, tgt_is_causal=True)


@case(lambda: (ids(9), torch.tensor([0, 2, 5])))
class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = nn.EmbeddingBag(11, 4, mode="mean")
        self.sum = nn.EmbeddingBag(11, 4, mode="sum")

    def forward(self, tokens, offsets):
        return self.mean(tokens, offsets) * self.sum(tokens, offsets)


@case(lambda: (randn(3, 4),))
class Cond(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(4, 4)
        self.down = nn.Linear(4, 4)

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: self.up(x).relu(), lambda x: self.down(x) * 2, (x,))


@case(lambda: (randn(3, 4),))
class While(nn.Module):
    def __init__(self):
        super().__init__()
        self.step = nn.Linear(4, 4)

    def forward(self, x):
        from torch._higher_order_ops.while_loop import while_loop

        def go_on(i, y):
            return i < 4

        def body(i, y):
            return i + 1, torch.tanh(self.step(y)) + y

        return while_loop(go_on, body, (torch.tensor(0), x))[1]


@case(lambda: (randn(3, 4), randn(4, seed=1)))
class Mapped(nn.Module):
    def forward(self, xs, y):
        from functorch.experimental.control_flow import map as torch_map

        return torch_map(lambda x, y: (x * y).sin() + y, xs, y)


@case(lambda: (randn(5, 3), randn(3, seed=1)))
class Scanned(nn.Module):
    def forward(self, xs, start):
        from torch._higher_order_ops.scan import scan

        def step(carry, x):
            new = torch.tanh(carry * 0.5 + x)
            return new, new * 2

        last, ys = scan(step, start, xs, dim=0)
        return last, ys


@case(lambda: (randn(3, 4),))
class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(4))
        self.register_buffer("calls", torch.tensor(0))

    def forward(self, x):
        self.seen.add_(x.sum(0))
        self.calls += 1
        return x + self.seen * self.calls


@case(lambda: (({"a": randn(2, 3), "b": [randn(2, 3, seed=1), randn(2, 3, seed=2)]}, randn(2, 3, seed=3)), 2))
class Nested(nn.Module):
    def forward(self, inputs, power):
        named, last = inputs
        total = named["a"] + named["b"][0] * named["b"][1]
        return {"total": total ** power, "parts": [named["a"] - last, (last * 2, total.sum())]}


@case(lambda: (randn(2, 3),), kwargs=lambda: {"scale": randn(3, seed=1), "shift": randn(3, seed=2)})
class Named(nn.Module):
    def forward(self, x, *, shift=None, scale=None, unused=None):
        return {"y": x * scale + shift, "none": None, "three": 3}


@case(lambda: (ids(2, 5),))
class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 6)
        self.head = nn.Linear(6, 11, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens):
        return self.head(torch.relu(self.embedding(tokens)))


@case(lambda: (randn(3, 4, dtype=torch.bfloat16),))
class Half(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)).to(torch.bfloat16)

    def forward(self, x):
        return self.layers(x).float().softmax(-1)


@case(lambda: (randn(3, 4),))
class Complex(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("turn", torch.polar(torch.ones(2), torch.tensor([0.3, 1.2])), persistent=False)

    def forward(self, x):
        turned = torch.view_as_complex(x.reshape(3, 2, 2)) * self.turn * (1 + 0.5j)
        return torch.view_as_real(turned).flatten(1), turned.abs()


@case(lambda: (randn(6, 4),), dynamic={"x": {0: Dim("n", min=4, max=32)}}, other=lambda: (randn(11, 4, seed=1),))
class Sizes(nn.Module):
    """Numbers computed from sizes."""

    def forward(self, x):
        n = x.shape[0]
        half = n // 2
        mask = torch.ones(n, n).tril() / (n + 1)
        position = torch.arange(n) * math.sqrt(2.0)
        return mask @ x, torch.arange(half) + half % 2, position, torch.cat([x, x[: n - 1]]).sum(0) * torch.sym_float(n), x.reshape(n * 2, 2)


@case(lambda: (randn(3, 5),), dynamic={"x": {0: Dim("n", min=2), 1: Dim("m", min=2)}},
      other=lambda: (randn(4, 9, seed=1),))
class Pairs(nn.Module):
    def forward(self, x):
        left, right = x.unsqueeze(0).transpose(1, 2), x.unsqueeze(0)
        pairs = (left @ right).softmax(-1).squeeze(0)
        return torch.cat([pairs, pairs + 1]), pairs.reshape(x.size(1) * x.size(1))


@case(lambda: (randn(2, 6, 4, 4),))
class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.group = nn.GroupNorm(3, 6)
        self.instance = nn.InstanceNorm2d(6, affine=True)
        self.layer = nn.LayerNorm([4, 4])
        self.rms = nn.RMSNorm(4)
        self.still = nn.InstanceNorm2d(6)
        self.batch = nn.BatchNorm2d(6, affine=False, track_running_stats=False)

    def forward(self, x):
        return self.rms(self.layer(self.instance(self.group(x)))) + self.still(x) + self.batch(x)


@case(lambda: (randn(2, 4, 8), randn(2, 3, 6, 6, seed=1), randn(1, 2, 4, 4, 4, seed=2)))
class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Conv1d(4, 5, 3, padding="same")
        self.turned = nn.ConvTranspose2d(3, 4, 3, stride=2, output_padding=1)
        self.around = nn.Conv2d(3, 4, 3, padding=1, padding_mode="circular")
        self.three = nn.Conv3d(2, 3, 2, dilation=2)

    def forward(self, a, b, c):
        return self.one(a), self.turned(b), self.around(b), self.three(c)


@case(lambda: (randn(2, 4, 5, 8), randn(2, 2, 5, 8, seed=1), randn(2, 2, 5, 8, seed=2), randn(2, 1, 5, 5, seed=3)))
class Attention(nn.Module):
    """Scaled dot-product attention in every form, read afterwards by a view."""

    def forward(self, q, k, v, mask):
        attend = nn.functional.scaled_dot_product_attention
        k2, v2 = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
        causal = attend(q, k2, v2, is_causal=True)
        some = attend(q, k2, v2, attn_mask=mask > -1.5)
        added = attend(q, k2, v2, attn_mask=mask, scale=0.25)
        shared = attend(q, k, v, enable_gqa=True)
        return causal.transpose(1, 2).reshape(2, 5, 32), some, added, shared.transpose(1, 2).contiguous().view(2, 5, 32)


@case(lambda: (randn(5, 7), ids(5, 3, high=7)))
class Indexing(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("order", torch.tensor([2, 0, 1]))

    def forward(self, x, at):
        y = x.clone()
        y[1:3, ::2] = 0
        y[:, 0] += 1
        y[self.order, self.order] = x[0, :3]
        picked = x.gather(1, at)
        spread = torch.zeros_like(x).scatter_add(1, at, picked)
        top, where = x.topk(3, dim=1)
        chosen = x.index_select(1, self.order)
        sorted_, order = x.sort(dim=1, descending=True)
        masked = x.masked_fill(x > 0, -1.0)
        return y, spread, top, where, chosen, sorted_, order, masked, torch.where(x > 0, x, 0.5), x[at[:, 0] % 5, at[:, 1]]


@case(lambda: (randn(3, 4, 6), randn(3, 6, 5, seed=1)))
class Shapes(nn.Module):
    def forward(self, x, y):
        a, b = x.chunk(2, dim=2)
        first, second, third = x.unbind(0)
        stacked = torch.stack([first, second * third], 1)
        padded = nn.functional.pad(x, (1, 2, 0, 1), value=0.5)
        return (torch.einsum("bij,bjk->bik", x, y), torch.cat([a, b.flip(1)], 1), stacked.permute(2, 0, 1), padded,
                x.roll(1, 2), x.squeeze(0).unsqueeze(-1).expand(-1, -1, -1, 2), x.split([1, 5], 2)[1], x.tile(1, 2, 1),
                x.movedim(0, 2).flatten(), x.narrow(1, 1, 2), torch.diff(x, dim=1), x.diagonal(dim1=1, dim2=2),
                x.unfold(2, 3, 2), x.mean((0, 2)), x.var(1), x.std(), x.amax((0, 1)), x.cumsum(1), x.logsumexp(2),
                x.norm(dim=-1), torch.linalg.vector_norm(x, ord=3, dim=1), x.any(), (x > 0).all(2), x.prod(1))


@case(lambda: (randn(2, 3, 6, 6),))
class Pixels(nn.Module):
    def forward(self, x):
        sized = nn.functional.interpolate
        return (sized(x, scale_factor=2.0, mode="nearest"), sized(x, size=(9, 4), mode="bilinear", align_corners=False),
                sized(x, size=(4, 4), mode="bicubic"), nn.functional.avg_pool2d(x, 2), nn.functional.max_pool2d(x, 3, 2, 1),
                nn.functional.adaptive_max_pool2d(x, 2), nn.functional.pixel_shuffle(x.repeat(1, 4, 1, 1), 2),
                nn.functional.unfold(x, 3), nn.functional.pad(x, (1, 1, 1, 1), mode="reflect"),
                nn.functional.grid_sample(x, torch.zeros(2, 4, 4, 2) + 0.1, align_corners=False))


@case(lambda: (randn(3, 5),))
class Activations(nn.Module):
    def __init__(self):
        super().__init__()
        self.prelu = nn.PReLU()

    def forward(self, x):
        f = nn.functional
        return (f.gelu(x), f.gelu(x, approximate="tanh"), f.silu(x), f.elu(x), f.selu(x), f.hardswish(x), f.hardtanh(x),
                f.mish(x), f.softplus(x), f.leaky_relu(x), self.prelu(x), f.relu6(x), f.log_softmax(x, 1), f.softmin(x, 0),
                f.glu(torch.cat([x, x], 1)), f.softsign(x), f.normalize(x), f.cosine_similarity(x, x * 2 + 1), f.celu(x),
                f.threshold(x, 0.1, 2.0), f.logsigmoid(x), torch.erf(x), torch.expm1(x), x.clamp(-0.5, 0.5), x.clamp(min=x * 2),
                torch.floor(x), x % 0.7, x ** 2, 2 ** x, torch.atan2(x, x + 1), torch.lerp(x, x * 2, 0.3), x.sign(), x / 3, 3 / x,
                x // 0.5, torch.rsqrt(x * x + 1), torch.addcmul(x, x, x, value=0.5), x.fmod(2), 1 - x, x.nan_to_num())


@case(lambda: (randn(3, 4), torch.tensor(2)))
class Reads(nn.Module):
    """A number that leaves a tensor, checked and used as a size."""

    def forward(self, x, count):
        n = count.item()
        torch._check(n >= 0)
        torch._check(n <= 3)
        return x * n, x.new_zeros(n) + n


@case(lambda: (randn(3, 4),))
class Nonzero(nn.Module):
    def forward(self, x):
        found = torch.nonzero(x > 0)
        return found.sum(0), (x > 0).float().sum()


@case(lambda: (randn(3, 4),), train=True)
class Training(nn.Module):
    """Exported without eval(); what is drawn is multiplied by zero."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.norm(x) + self.drop(x) * 0


@case(lambda: (randn(3, 4),))
class Regions(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x):
        with torch.no_grad():
            a = self.inner(x).sin()
        with torch.autocast("cpu", enabled=False):
            b = self.inner(a) * 2
        return b + x


@case(lambda: (randn(3, 4), randn(3, 4, seed=1)))
class Written(nn.Module):
    """Writes to an input, and to views."""

    def forward(self, x, y):
        y.add_(x)
        z = x.clone()
        z.view(-1)[2:5].mul_(3)
        z[0].copy_(y[1])
        return z, y * 2


@case(lambda: (randn(4, 4),))
class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = nn.Linear(4, 4)

    def forward(self, x):
        return self.shared(torch.relu(self.shared(x)))


@case(lambda: (randn(8), randn(3, 3, seed=1)))
class Transforms(nn.Module):
    def forward(self, x, a):
        spectrum = torch.fft.rfft(x)
        square = a @ a.T + torch.eye(3)
        return (torch.fft.irfft(spectrum * 2), spectrum.abs(), torch.linalg.inv(square), torch.linalg.cholesky(square),
                torch.linalg.solve(square, a), torch.outer(x, x), torch.kron(a, a), torch.cdist(a, a + 1), torch.trace(a))


@case(lambda: (torch.randint(0, 255, (2, 3), dtype=torch.uint8), torch.tensor([[True, False, True], [False, True, True]])))
class Kinds(nn.Module):
    def forward(self, bytes_, flags):
        numbers = bytes_.to(torch.float32) / 255
        whole = (numbers * 10).to(torch.int32)
        return numbers, whole // 3, whole.bitwise_and(3), flags & (numbers > 0.5), ~flags, whole.double(), flags.sum(), (
            whole.to(torch.int64) << 2), torch.full((2,), True), torch.argmax(numbers, 1), numbers.half().float()


class Rotary(nn.Module):
    """The position embedding of a decoder, with its no_grad."""

    def __init__(self, dim):
        super().__init__()
        self.register_buffer("inverse", 1 / (100 ** (torch.arange(0, dim, 2) / dim)), persistent=False)

    @torch.no_grad()
    def forward(self, position):
        angles = position[:, None].float() @ self.inverse[None, :]
        angles = torch.cat([angles, angles], -1)
        return angles.cos(), angles.sin()


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm = nn.RMSNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.after = nn.RMSNorm(width)
        self.gate = nn.Linear(width, 2 * width, bias=False)
        self.up = nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)

    def forward(self, x, cos, sin):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1))

        def turned(t):
            a, b = t.chunk(2, -1)
            return t * cos + torch.cat([-b, a], -1) * sin

        attended = nn.functional.scaled_dot_product_attention(turned(q), turned(k), v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        y = self.after(x)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))


@case(lambda: (ids(2, 6),), dynamic={"tokens": {0: BATCH, 1: Dim("length", min=2, max=16)}},
      other=lambda: (ids(5, 9, seed=1),))
class Language(nn.Module):
    """A decoder as large language models are, of any length."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 8)
        self.rotary = Rotary(4)
        self.blocks = nn.ModuleList(Block(8, 2) for _ in range(1))
        self.norm = nn.RMSNorm(8)
        self.head = nn.Linear(8, 11, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        cos, sin = self.rotary(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x, cos, sin)
        return {"logits": self.head(self.norm(x))}


# ---------------------------------------------------------------------------------- architectures of transformers


class Called(nn.Module):
    """A model with the arguments by name, which keeps what it gives under their names."""

    def __init__(self, model, names, output):
        super().__init__()
        self.model = model
        self.names = names
        self.output = output

    def forward(self, *tensors):
        given = self.model(**dict(zip(self.names, tensors)), **({"use_cache": False} if self.no_cache else {}))
        return given if self.output is None else {self.output: getattr(given, self.output)}

    no_cache = False


def architectures() -> Dict[str, Case]:
    """Those that the tests of transformers have, and a few more."""
    try:
        import architectures as known
        import transformers
    except ImportError as error:
        print("no transformers:", error)
        return {}
    cases = {}

    def add(name, model, given, output, no_cache):
        def make():
            try:
                made = model("sdpa")
            except ValueError:  # the architecture has no such attention
                made = model("eager")
            called = Called(made, list(given), output)
            called.no_cache = no_cache
            return called.eval()

        cases[name] = Case(make, lambda: tuple(given.values()))

    for architecture in known.ALL:
        given = architecture.given(architecture.masks[-1])
        tensors = {name: split[0] for name, split in given.split.items()}
        tensors.update({name: value for name, value in given.plain.items() if isinstance(value, torch.Tensor)})

        def model(attention, architecture=architecture):
            return architecture.make(attention if attention in architecture.attentions else architecture.attentions[0])

        if architecture.name == "GPT-2":
            # Some versions of PyTorch cannot export what it writes with "sdpa".
            model = functools.partial(lambda made, attention: made("eager"), architecture.make)
        name = "hf-" + architecture.name.lower().replace("-", "")
        add(name, model, tensors, architecture.output, given.plain.get("use_cache") is False)

    text, small, vision = known._text(True, False), known._SMALL, known._VISION
    words = {"input_ids": text.split["input_ids"][0], "attention_mask": text.plain["attention_mask"]}
    pixels = {"pixel_values": torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(2))}
    sound = {"input_values": randn(1, 80)}
    made, shared = known._made, known._SHARED_HEADS
    stages = {"hidden_sizes": [8, 16], "depths": [1, 1], "num_labels": 3}
    for name, model, given, output, no_cache in [
        ("opt", made("OPTForCausalLM", "OPTConfig", **known._TEXT, hidden_size=16, ffn_dim=24, num_hidden_layers=2,
                     num_attention_heads=4, max_position_embeddings=32, word_embed_proj_dim=16), words, "logits", True),
        ("gptneox", made("GPTNeoXForCausalLM", "GPTNeoXConfig", **small), words, "logits", True),
        ("qwen3moe", made("Qwen3MoeForCausalLM", "Qwen3MoeConfig", **shared, head_dim=4, num_experts=4,
                          num_experts_per_tok=2, moe_intermediate_size=12), words, "logits", True),
        ("roberta", made("RobertaForMaskedLM", "RobertaConfig", **small), words, "logits", False),
        ("distilbert", made("DistilBertForMaskedLM", "DistilBertConfig", vocab_size=23, dim=16, n_layers=2, n_heads=4,
                            hidden_dim=24, max_position_embeddings=32), words, "logits", False),
        ("olmo2", made("Olmo2ForCausalLM", "Olmo2Config", **shared), words, "logits", True),
        ("falcon", made("FalconForCausalLM", "FalconConfig", vocab_size=23, hidden_size=16, num_hidden_layers=2,
                        num_attention_heads=4), words, "logits", True),
        ("bloom", made("BloomForCausalLM", "BloomConfig", vocab_size=23, hidden_size=16, n_layer=2, n_head=4), words, "logits",
         True),
        ("resnet", made("ResNetForImageClassification", "ResNetConfig", embedding_size=8, hidden_sizes=[8, 16],
                        depths=[1, 1], layer_type="basic", num_labels=3), pixels, "logits", False),
        ("convnext", made("ConvNextForImageClassification", "ConvNextConfig", patch_size=2, num_stages=2, **stages), pixels,
         "logits", False),
        ("swin", made("SwinForImageClassification", "SwinConfig", image_size=8, patch_size=2, embed_dim=8, depths=[1, 1],
                      num_heads=[2, 2], window_size=2, num_labels=3), pixels, "logits", False),
        ("segformer", made("SegformerForImageClassification", "SegformerConfig", num_encoder_blocks=2, depths=[1, 1],
                           sr_ratios=[2, 1], hidden_sizes=[8, 16], patch_sizes=[3, 3], strides=[2, 2],
                           num_attention_heads=[1, 2], mlp_ratios=[2, 2], num_labels=3), pixels, "logits", False),
        ("dinov2", made("Dinov2ForImageClassification", "Dinov2Config", **{**vision, "image_size": 8}, num_labels=3), pixels,
         "logits", False),
        ("wav2vec2", made("Wav2Vec2Model", "Wav2Vec2Config", hidden_size=16, intermediate_size=24, num_hidden_layers=2,
                          num_attention_heads=4, conv_dim=[8, 8], conv_stride=[3, 2], conv_kernel=[4, 3],
                          num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=2), sound, "last_hidden_state", False),
        ("whisperencoder", lambda attention: made("WhisperModel", "WhisperConfig", **known._TEXT, d_model=16,
         encoder_layers=2, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=24,
         decoder_ffn_dim=24, num_mel_bins=4, max_source_positions=6, max_target_positions=8)(attention).encoder,
         {"input_features": randn(2, 4, 12)}, "last_hidden_state", False),
        ("patchtst", made("PatchTSTForPrediction", "PatchTSTConfig", num_input_channels=2, context_length=16, patch_length=4,
                          patch_stride=4, prediction_length=4, d_model=8, num_attention_heads=2, num_hidden_layers=1,
                          ffn_dim=16), {"past_values": randn(2, 16, 2)}, "prediction_outputs", False),
    ]:
        add("hf-" + name, model, given, output, no_cache)
    # The output is a class of the architecture's own: a named structure.
    add("hf-structure", made("BertModel", "BertConfig", **small), words, None, False)
    return cases


# ------------------------------------------------------------------------------------------------------ files

DTYPES = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64",
          torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL"}


def write_tensors(path: str, tensors: Dict[str, torch.Tensor], metadata: Dict[str, str]) -> None:
    """A .safetensors file; complex tensors as pairs of numbers."""
    header: Dict[str, Any] = {"__metadata__": metadata}
    chunks: List[bytes] = []
    offset = 0
    order = sorted(tensors, key=lambda name: -tensors[name].element_size())
    for name in order:
        tensor = tensors[name].detach()
        tensor = (torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor).contiguous()
        data = bytes(tensor.reshape(-1).view(torch.uint8).tolist())
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
        chunks.append(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(chunks))


def leaves(value: Any) -> List[Any]:
    return torch.utils._pytree.tree_leaves(value)


def call(model, args, kwargs, prefix: str, tensors: Dict[str, torch.Tensor], plain: Dict[str, Any]) -> None:
    """Runs the model on copies, since it may write what it is given."""
    given = leaves((args, kwargs))
    for k, leaf in enumerate(given):
        if isinstance(leaf, torch.Tensor):
            tensors[f"{prefix}input_{k}"] = leaf.clone()
        else:
            plain[f"{prefix}input_{k}"] = leaf
    with torch.no_grad():
        result = model(*args, **kwargs)
    for k, leaf in enumerate(leaf for leaf in leaves(result) if isinstance(leaf, torch.Tensor)):
        tensors[f"{prefix}output_{k}"] = leaf


def require_same_shapes(model: nn.Module, program: Any, one: Case) -> None:
    """Some versions decompose some operators wrongly: PyTorch's own program then gives other shapes than the model."""
    found = []
    for run in (model, program.module(check_guards=False) if "check_guards" in inspect.signature(program.module).parameters
                else program.module()):
        kept = {key: value.clone() for key, value in model.state_dict().items()}
        with torch.no_grad():
            found.append([leaf.shape for leaf in leaves(run(*one.args(), **one.kwargs())) if isinstance(leaf, torch.Tensor)])
        model.load_state_dict(kept)
    if found[0] != found[1]:
        raise ValueError("this version's own program gives other shapes than the model")


def write(name: str, one: Case, folder: str, forms: List[str]) -> None:
    torch.manual_seed(0)
    model = one.make()
    model.train(one.train)
    kept = {key: value.clone() for key, value in model.state_dict().items()}
    exported = torch.export.export(model, one.args(), one.kwargs(), dynamic_shapes=one.dynamic, strict=one.strict)
    failure = None
    for form in forms:
        path = os.path.join(folder, name + ("-core.pt2" if form == "core" else ".pt2"))
        try:
            program = exported.run_decompositions() if form == "core" else exported
            require_same_shapes(model, program, one)
            torch.export.save(program, path)
        except Exception as error:  # pylint: disable=broad-except
            failure = error
            if os.path.exists(path):
                os.remove(path)
    tensors: Dict[str, torch.Tensor] = {}
    plain: Dict[str, Any] = {}
    model.load_state_dict(kept)
    call(model, one.args(), one.kwargs(), "", tensors, plain)
    if one.other is not None:
        model.load_state_dict(kept)
        call(model, one.other(), one.kwargs(), "other_", tensors, plain)
    write_tensors(os.path.join(folder, name + ".safetensors"), tensors,
                  {"torch": torch.__version__, "plain": json.dumps(plain)})
    if failure is not None:
        raise failure


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*", help="of the models; by default all")
    parser.add_argument("--form", action="append", choices=["exported", "core"], help="by default both")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    os.makedirs(options.folder, exist_ok=True)
    cases = dict(CASES)
    if not options.names or any(name.startswith("hf-") for name in options.names):
        cases.update(architectures())
    failed = 0
    for name in options.names or cases:
        try:
            write(name, cases[name], options.folder, options.form or ["exported", "core"])
            print("wrote", name, flush=True)
        except Exception as error:  # pylint: disable=broad-except
            failed += 1
            print("not written:", name, type(error).__name__, str(error).strip().splitlines()[:1], flush=True)
    print(f"{failed} of {len(options.names or cases)} models could not be exported")
    return 0


if __name__ == "__main__":
    sys.exit(main())
