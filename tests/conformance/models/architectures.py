"""The networks of the conformance suite: small, of every family, and some that are awkward on purpose.

Their parameters are drawn by make_models.py.
"""

import math
from typing import Dict, List, Optional, Tuple

import torch
from torch import nn


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 3))

    def forward(self, table: torch.Tensor) -> torch.Tensor:
        return self.layers(table)


class ReluNetwork(nn.Module):
    """Convolutions, ReLU and average pooling: every rule that it needs has a closed form of one line."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 4, kernel_size=3, padding=1)
        self.second = nn.Conv2d(4, 6, kernel_size=3, stride=2)
        self.output = nn.Linear(6, 3)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        features = torch.relu(self.first(image))
        features = nn.functional.avg_pool2d(features, 2)
        features = torch.relu(self.second(features))
        return self.output(features.flatten(1))


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, kernel_size=3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 12, kernel_size=3, padding=1),
            nn.BatchNorm2d(12),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.output = nn.Linear(12 * 2 * 2, 4)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.output(self.features(image).flatten(1))


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.recurrent = nn.LSTM(4, 6, num_layers=2, batch_first=True)
        self.output = nn.Linear(6, 3)

    def forward(self, sequence: torch.Tensor) -> torch.Tensor:
        states, _ = self.recurrent(sequence)
        return self.output(states[:, -1])


class Gru(nn.Module):
    def __init__(self):
        super().__init__()
        self.recurrent = nn.GRU(4, 5, bidirectional=True, batch_first=True)
        self.output = nn.Linear(10, 3)

    def forward(self, sequence: torch.Tensor) -> torch.Tensor:
        states, last = self.recurrent(sequence)
        return self.output(states.mean(dim=1)) + self.output(last.transpose(0, 1).flatten(1))


class TransformerEncoder(nn.Module):
    """LibTorch's own layers, which it may run as one fused operator."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(12, 16)
        self.position = nn.Parameter(torch.zeros(7, 16))
        layer = nn.TransformerEncoderLayer(
            16, nhead=4, dim_feedforward=24, dropout=0.1, activation="gelu", batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, num_layers=2)
        self.output = nn.Linear(16, 3)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        states = self.embedding(tokens) + self.position
        return self.output(self.encoder(states).mean(dim=1))


class Attention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.scale = 1.0 / math.sqrt(width // heads)
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)

    def split_heads(self, states: torch.Tensor) -> torch.Tensor:
        return states.unflatten(2, [self.heads, -1]).transpose(1, 2)

    def forward(self, queries: torch.Tensor, memory: torch.Tensor, causal: bool) -> torch.Tensor:
        query = self.split_heads(self.query(queries))
        scores = torch.matmul(query, self.split_heads(self.key(memory)).transpose(2, 3)) * self.scale
        if causal:
            later = torch.ones(scores.size(2), scores.size(3), dtype=torch.bool, device=scores.device).triu(1)
            scores = scores.masked_fill(later, float("-inf"))
        mixed = torch.matmul(torch.softmax(scores, dim=-1), self.split_heads(self.value(memory)))
        return self.output(mixed.transpose(1, 2).flatten(2))


class DecoderLayer(nn.Module):
    def __init__(self, width: int, heads: int, feed_forward: int):
        super().__init__()
        self.self_norm = nn.LayerNorm(width)
        self.self_attention = Attention(width, heads)
        self.cross_norm = nn.LayerNorm(width)
        self.cross_attention = Attention(width, heads)
        self.feed_forward_norm = nn.LayerNorm(width)
        self.expand = nn.Linear(width, feed_forward)
        self.contract = nn.Linear(feed_forward, width)

    def forward(self, states: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        normed = self.self_norm(states)
        states = states + self.self_attention(normed, normed, True)
        states = states + self.cross_attention(self.cross_norm(states), memory, False)
        hidden = nn.functional.silu(self.expand(self.feed_forward_norm(states)))
        return states + self.contract(hidden)


class TransformerDecoder(nn.Module):
    """Tokens look at themselves under a causal mask and at a memory of numbers; it ends in log-probabilities."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10, 12)
        self.position = nn.Parameter(torch.zeros(5, 12))
        self.layers = nn.ModuleList([DecoderLayer(12, 3, 20) for _ in range(2)])
        self.norm = nn.LayerNorm(12)
        self.output = nn.Linear(12, 10)

    def forward(self, tokens: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        states = self.embedding(tokens) + self.position
        for layer in self.layers:
            states = layer(states, memory)
        return torch.log_softmax(self.output(self.norm(states)), dim=-1)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1 = nn.Sequential(nn.Conv2d(1, 4, kernel_size=3, padding=1), nn.LeakyReLU(0.1))
        self.down2 = nn.Sequential(nn.Conv2d(4, 8, kernel_size=3, padding=1), nn.GroupNorm(2, 8), nn.SiLU())
        self.bottom = nn.Sequential(nn.Conv2d(8, 12, kernel_size=3, padding=1), nn.ReLU())
        self.up2 = nn.ConvTranspose2d(12, 8, kernel_size=2, stride=2)
        self.merge2 = nn.Conv2d(16, 6, kernel_size=3, padding=1)
        self.up1 = nn.ConvTranspose2d(6, 4, kernel_size=2, stride=2)
        self.merge1 = nn.Conv2d(8, 4, kernel_size=3, padding=1)
        self.output = nn.Conv2d(4, 2, kernel_size=1)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        fine = self.down1(image)
        middle = self.down2(nn.functional.max_pool2d(fine, 2))
        coarse = self.bottom(nn.functional.max_pool2d(middle, 2))
        states = torch.relu(self.merge2(torch.cat([middle, self.up2(coarse)], dim=1)))
        states = torch.relu(self.merge1(torch.cat([fine, self.up1(states)], dim=1)))
        return self.output(states)


class Mixed(nn.Module):
    """A table, an image and token ids, as products are: three towers and one head."""

    def __init__(self):
        super().__init__()
        self.table_tower = nn.Sequential(nn.Linear(4, 6), nn.Tanh())
        self.image_tower = nn.Sequential(nn.Conv2d(1, 4, kernel_size=3), nn.ReLU(), nn.AdaptiveAvgPool2d(2))
        self.embedding = nn.Embedding(9, 6)
        self.gate = nn.Linear(6, 6)
        self.head = nn.Sequential(nn.Linear(6 + 16 + 6, 10), nn.ELU(), nn.Linear(10, 3))

    def forward(self, table: torch.Tensor, image: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        columns = self.table_tower(table)
        pixels = self.image_tower(image).flatten(1)
        words = self.embedding(tokens).mean(dim=1) * torch.sigmoid(self.gate(columns))
        return self.head(torch.cat([columns, pixels, words], dim=1))


class Awkward(nn.Module):
    """Writes in place and through views, works in a buffer, and takes a branch that depends on the data."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(6, 6))
        self.output = nn.Linear(6, 2)

    def forward(self, table: torch.Tensor) -> torch.Tensor:
        states = table @ self.weight
        states[:, :3] += table[:, 3:]
        states.mul_(2.0).add_(0.5)
        left, right = states.chunk(2, dim=1)
        left.relu_()
        buffer = torch.zeros_like(states)
        for i in range(3):
            buffer[:, i] = left[:, i] * right[:, 2 - i]
            buffer[:, 3 + i] = right[:, i]
        flat = buffer.view(-1)
        flat[0] = -flat[0]
        if bool((table.sum() > 0).item()):
            buffer = buffer.t().contiguous().t() + states
        else:
            buffer = buffer.tanh()
        return self.output(buffer)


class Nested(nn.Module):
    """Its results are a tensor, a dictionary, and a list with integers in it."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(5, 6)
        self.head = nn.Linear(6, 3)

    def forward(self, table: torch.Tensor) -> Tuple[torch.Tensor, Dict[str, torch.Tensor], List[torch.Tensor]]:
        hidden = torch.nn.functional.softplus(self.body(table))
        logits = self.head(hidden)
        named = {"hidden": hidden, "probabilities": torch.softmax(logits, dim=-1)}
        return logits, named, [logits.argmax(dim=-1), hidden.pow(2).sum(dim=-1).sqrt()]


class Structured(nn.Module):
    """Takes a tuple, a dictionary, a list and plain values; has other methods than forward()."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 3)

    def forward(
        self,
        pair: Tuple[torch.Tensor, torch.Tensor],
        masks: Dict[str, torch.Tensor],
        steps: List[Tuple[torch.Tensor, int]],
        scale: float,
        bias: Optional[torch.Tensor] = None,
        mode: str = "sum",
    ) -> torch.Tensor:
        table, memory = pair
        states = self.encode(table) * masks["keep"] - self.encode(memory) * masks["drop"]
        for step, times in steps:
            states = states + step * times
        if bias is not None:
            states = states + bias
        states = states * scale
        return states.sum(dim=0) if mode == "sum" else states

    @torch.jit.export
    def encode(self, table: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.softplus(self.body(table))

    @torch.jit.export
    def decode(self, states: torch.Tensor) -> torch.Tensor:
        return states @ self.body.weight

    def expectations(self, tensors: Dict[str, torch.Tensor]) -> Dict[str, torch.Tensor]:
        """The results of plain PyTorch for the inputs."""
        pair = (tensors["table"], tensors["memory"])
        masks = {"keep": tensors["keep"], "drop": tensors["drop"]}
        steps = [(tensors["step_0"], 2), (tensors["step_1"], -1)]
        return {
            "output": self(pair, masks, steps, 0.5, None, "each"),
            "biased": self(pair, masks, steps, 0.5, tensors["bias"], "sum"),
            "encoded": self.encode(tensors["table"]),
            "decoded": self.decode(tensors["step_0"]),
        }


class Heads(nn.Module):
    """An attention of two heads and what comes behind: in forward() as one, and cut in two by other methods."""

    def __init__(self):
        super().__init__()
        self.query = nn.Linear(6, 6)
        self.mix = nn.Linear(6, 6)
        self.output = nn.Linear(6, 2)

    def forward(self, table: torch.Tensor) -> torch.Tensor:
        return self.rest(self.heads(table), table)

    @torch.jit.export
    def heads(self, table: torch.Tensor) -> torch.Tensor:
        query = self.query(table).reshape(-1, 2, 3).transpose(0, 1)
        weights = torch.softmax(torch.matmul(query, query.transpose(1, 2)), dim=-1)
        return torch.matmul(weights, query).transpose(0, 1).contiguous()

    @torch.jit.export
    def rest(self, heads: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        return self.output(torch.tanh(self.mix(heads.flatten(1)) + table))

    def expectations(self, tensors: Dict[str, torch.Tensor]) -> Dict[str, torch.Tensor]:
        """The results of plain PyTorch for the second half: the heads move along the straight line from their
        baseline, and tanh, the only function in it that is not affine, has the slope of its secant."""
        table, baseline = tensors["table"], tensors["baseline"]
        heads = self.heads(table)
        inner, start = (self.mix(h.flatten(1)) + table for h in (heads, baseline.expand_as(heads)))
        slope = (inner.tanh() - start.tanh()) / (inner - start)
        # [rows, heads, 3, inner] and [rows, heads, 3, outputs]
        moved = (heads - baseline).unsqueeze(3) * self.mix.weight.t().view(2, 3, 6)
        elements = (moved * slope.view(-1, 1, 1, 6)) @ self.output.weight.t()
        return {
            "output": self(table),
            "heads": heads,
            "reference": self.rest(baseline.expand_as(heads), table),
            "components": elements.sum(2).transpose(0, 1),
            "elements": elements.permute(3, 0, 1, 2),
        }
