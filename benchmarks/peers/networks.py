"""The networks that are explained, each with an input, its division into components, and the output in question.

They are plain PyTorch with random weights, written so that every peer can run them if it can run such a network at all:
modules for activations, each used once where the network allows it, and matrix products written out.
"""

import math

import torch
from torch import nn


class Setting:
    """A network and what is asked about it.

    Attributes:
        network: in evaluation mode, its parameters frozen.
        input: [rows, ...]; the baseline is zero, [1, ...].
        labels: the component of each element, int64, broadcasts to the input.
        numc: the number of components.
        targets: of each row the output whose contributions are wanted: the one that differs most from the baseline's.
        values, gaps: these outputs, and their differences to the baseline's.
    """

    def __init__(self, network, shape, labels, rows=1):
        self.network = _varied(network).eval()
        for parameter in network.parameters():
            parameter.requires_grad_(False)
        self.input = torch.randn(rows, *shape)
        self.baseline = torch.zeros(1, *shape)
        self.labels = labels
        self.numc = int(labels.max()) + 1
        with torch.no_grad():
            self.output = network(self.input)
            differences = self.output - network(self.baseline)
        self.targets = differences.abs().argmax(1).tolist()
        self.values = self.of_targets(self.output).tolist()
        self.gaps = self.of_targets(differences).tolist()

    def of_targets(self, outputs):
        """The numbers of each row's target, [..., rows], from [..., rows, outputs]."""
        return outputs[..., torch.arange(len(self.targets)), self.targets]


class Block(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.first = nn.Conv2d(before, after, 3, stride, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(after)
        self.first_activation = nn.ReLU()
        self.second = nn.Conv2d(after, after, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(after)
        self.skip = None
        if before != after:
            self.skip = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))
        self.activation = nn.ReLU()

    def forward(self, image):
        hidden = self.first_activation(self.first_norm(self.first(image)))
        past = image if self.skip is None else self.skip(image)
        return self.activation(self.second_norm(self.second(hidden)) + past)


class ResNet(nn.Module):
    """ResNet-18 with half of its channels."""

    def __init__(self, classes=10):
        super().__init__()
        widths = (32, 64, 128, 256)
        self.stem = nn.Sequential(
            nn.Conv2d(3, widths[0], 7, 2, padding=3, bias=False), nn.BatchNorm2d(widths[0]), nn.ReLU(),
            nn.MaxPool2d(3, 2, padding=1),
        )
        stages = []
        before = widths[0]
        for width in widths:
            stages += [Block(before, width, 1 if width == widths[0] else 2), Block(width, width, 1)]
            before = width
        self.stages = nn.Sequential(*stages)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(before, classes)

    def forward(self, image):
        pooled = self.pool(self.stages(self.stem(image)))
        return self.head(pooled.reshape(pooled.shape[0], pooled.shape[1]))


class SelfAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))
        self.softmax = nn.Softmax(-1)

    def split(self, states):
        samples, length, width = states.shape
        return states.reshape(samples, length, self.heads, width // self.heads).transpose(1, 2)

    def weights(self, states):
        query, key = self.split(self.query(states)), self.split(self.key(states))
        return self.softmax(torch.matmul(query, key.transpose(2, 3)) * (1 / math.sqrt(query.shape[3])))

    def forward(self, states):
        samples, length, width = states.shape
        mixed = torch.matmul(self.weights(states), self.split(self.value(states)))
        return self.output(mixed.transpose(1, 2).reshape(samples, length, width))


class EncoderLayer(nn.Module):
    """Normalization behind the sums, as in `nn.TransformerEncoderLayer`."""

    def __init__(self, width, heads, feed_forward):
        super().__init__()
        self.attention = SelfAttention(width, heads)
        self.attention_norm = nn.LayerNorm(width)
        self.expand = nn.Linear(width, feed_forward)
        self.activation = nn.GELU()
        self.contract = nn.Linear(feed_forward, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, states):
        states = self.attention_norm(states + self.attention(states))
        return self.norm(states + self.contract(self.activation(self.expand(states))))


class Transformer(nn.Module):
    """Four layers of width 256 with four heads, the mean over the tokens, a classifier."""

    def __init__(self, width=256, layers=4, heads=4, classes=10):
        super().__init__()
        self.layers = nn.Sequential(*(EncoderLayer(width, heads, 4 * width) for _ in range(layers)))
        self.head = nn.Linear(width, classes)

    def forward(self, tokens):
        return self.head(self.layers(tokens).mean(dim=1))


class Lstm(nn.Module):
    """Written out step by step; the last state is classified."""

    def __init__(self, features=64, hidden=128, classes=10):
        super().__init__()
        self.hidden = hidden
        self.read = nn.Linear(features, 4 * hidden)
        self.carry = nn.Linear(hidden, 4 * hidden, bias=False)
        self.head = nn.Linear(hidden, classes)

    def forward(self, sequence):
        state = cell = torch.zeros(sequence.shape[0], self.hidden)
        size = self.hidden
        for step in range(sequence.shape[1]):
            gates = self.read(sequence[:, step]) + self.carry(state)
            take, forget, give = (torch.sigmoid(gates[:, gate * size : (gate + 1) * size]) for gate in range(3))
            cell = forget * cell + take * torch.tanh(gates[:, 3 * size :])
            state = give * torch.tanh(cell)
        return self.head(state)


def _mlp(rows=1):
    network = nn.Sequential(
        nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)
    )
    return Setting(network, [64], torch.arange(64).view(1, 64), rows)


def _cnn():
    """One component for each of 8 x 8 patches, each of 8 x 8 pixels."""
    patch = torch.arange(64) // 8
    return Setting(ResNet(), [3, 64, 64], (8 * patch.view(-1, 1) + patch).view(1, 1, 64, 64))


def _transformer(tokens):
    return Setting(Transformer(), [tokens, 256], torch.arange(tokens).view(1, tokens, 1))


def _lstm():
    return Setting(Lstm(), [32, 64], torch.arange(32).view(1, 32, 1))


_MAKERS = {
    "mlp": ("MLP 64-256-256-10, 64 features", _mlp),
    "cnn": ("ResNet-18 of half width, 64 patches of an image of 64 x 64", _cnn),
    "lstm": ("LSTM, hidden 128, written out, 32 steps", _lstm),
    "transformer_32": ("Transformer, width 256, 4 layers, 32 tokens", lambda: _transformer(32)),
    "transformer_128": ("Transformer, width 256, 4 layers, 128 tokens", lambda: _transformer(128)),
    "transformer_512": ("Transformer, width 256, 4 layers, 512 tokens", lambda: _transformer(512)),
}

# One input at a time.
NAMES = tuple(_MAKERS)

# Rows of a table in one batch, each with a target of its own.
for _rows in (100, 128, 1024):
    _MAKERS["mlp_%d" % _rows] = (
        "MLP 64-256-256-10, 64 features, %s rows" % format(_rows, ","), lambda rows=_rows: _mlp(rows)
    )
ALL = tuple(_MAKERS)


def title(name):
    return _MAKERS[name][0]


def make(name, seed=0):
    torch.manual_seed(seed)
    return _MAKERS[name][1]()


def _varied(network):
    """Gives normalizations statistics and scales that are not those of a fresh one, which would change nothing."""
    for module in network.modules():
        if isinstance(module, (nn.BatchNorm2d, nn.LayerNorm)):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, std=0.1)
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.running_mean, std=0.1)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
    return network
