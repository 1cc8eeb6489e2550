"""Small networks that learn the tasks of `truths`. A network is made for a task, and gives its outputs for embedded inputs."""

import math

import torch
from torch import nn
from torch.nn import functional


class Tokens(nn.Module):
    """Base of networks of tokens."""

    def __init__(self, task, width):
        super().__init__()
        self.embedding = nn.Embedding(task.tokens, width)
        self.position = nn.Parameter(0.5 * torch.randn(task.units, width))

    def embed(self, inputs):
        return self.embedding(inputs)


class Attention(nn.Module):
    def __init__(self, width, heads, bias, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.inputs = nn.Linear(width, 3 * width, bias)
        self.output = nn.Linear(width, width, bias)
        self.weights = nn.Softmax(-1)

    def forward(self, states):
        samples, length, width = states.shape
        split = self.inputs(states).view(samples, length, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-1, -2) / math.sqrt(width // self.heads)
        if self.causal:
            scores = scores.masked_fill(torch.ones(length, length, dtype=torch.bool).triu(1), -math.inf)
        return self.output((self.weights(scores) @ value).transpose(1, 2).reshape(samples, length, width))


class EncoderLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, bias=True, causal=False)
        self.feed_forward = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, states):
        states = states + self.attention(self.first(states))
        return states + self.feed_forward(self.second(states))


class Encoder(Tokens):
    """Layer norms, biases, GELU."""

    def __init__(self, task, width=64, heads=4, layers=3):
        super().__init__(task, width)
        self.layers = nn.Sequential(*(EncoderLayer(width, heads) for _ in range(layers)))
        self.norm, self.output = nn.LayerNorm(width), nn.Linear(width, task.classes)

    def forward(self, embedded):
        return self.output(self.norm(self.layers(embedded + self.position)[:, -1]))


class RootMeanSquareNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, states):
        return states * (states.pow(2).mean(-1, keepdim=True) + 1e-5).rsqrt() * self.weight


class DecoderLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.first, self.second = RootMeanSquareNorm(width), RootMeanSquareNorm(width)
        self.attention = Attention(width, heads, bias=False, causal=True)
        self.gate, self.up = nn.Linear(width, 2 * width, False), nn.Linear(width, 2 * width, False)
        self.down = nn.Linear(2 * width, width, False)

    def forward(self, states):
        states = states + self.attention(self.first(states))
        normed = self.second(states)
        return states + self.down(functional.silu(self.gate(normed)) * self.up(normed))


class Decoder(Tokens):
    """RMS norms, causal attention, gated feed-forwards, no biases."""

    def __init__(self, task, width=64, heads=4, layers=3):
        super().__init__(task, width)
        self.layers = nn.Sequential(*(DecoderLayer(width, heads) for _ in range(layers)))
        self.norm, self.output = RootMeanSquareNorm(width), nn.Linear(width, task.classes, False)

    def forward(self, embedded):
        return self.output(self.norm(self.layers(embedded + self.position)[:, -1]))


class Lstm(Tokens):
    def __init__(self, task, width=32, hidden=96):
        super().__init__(task, width)
        self.lstm, self.output = nn.LSTM(width, hidden, batch_first=True), nn.Linear(hidden, task.classes)

    def forward(self, embedded):
        return self.output(self.lstm(embedded)[0][:, -1])


class Gru(Tokens):
    """Written out, with a reset gate on the state (Cho et al. 2014)."""

    def __init__(self, task, width=32, hidden=96):
        super().__init__(task, width)
        self.gates, self.inner = nn.Linear(width + hidden, 2 * hidden), nn.Linear(width + hidden, hidden)
        self.output = nn.Linear(hidden, task.classes)
        self.hidden = hidden
        nn.init.constant_(self.gates.bias[:hidden], 1.0)

    def forward(self, embedded):
        state = embedded.new_zeros(len(embedded), self.hidden)
        for token in embedded.unbind(1):
            keep, reset = self.gates(torch.cat([token, state], 1)).sigmoid().chunk(2, 1)
            state = keep * state + (1 - keep) * self.inner(torch.cat([token, reset * state], 1)).tanh()
        return self.output(state)


class SqueezeAndExcite(nn.Module):
    """Features of patches; gates for channels, found from the mean over all patches (Hu et al. 2018); maxima."""

    def __init__(self, task, width=64):
        super().__init__()
        self.patches, self.features = nn.Conv2d(4, width, 4, stride=4), nn.Conv2d(width, width, 1)
        self.gates = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.Sigmoid())
        self.output = nn.Linear(width, task.classes)
        self.place = nn.Parameter(0.1 * torch.randn(width, 4, 4))

    def embed(self, inputs):
        return inputs

    def forward(self, image):
        features = self.features(self.patches(image).relu() + self.place).relu()
        gates = self.gates(features.mean((2, 3)))
        return self.output((features * gates[:, :, None, None]).amax((2, 3)))


class GatedLayers(nn.Module):
    """Two gated linear units (Dauphin et al. 2017)."""

    def __init__(self, task, width=64):
        super().__init__()
        self.means = task.means
        sizes = [task.units, width, width]
        self.content = nn.ModuleList(nn.Linear(*pair) for pair in zip(sizes, sizes[1:]))
        self.gates = nn.ModuleList(nn.Linear(*pair) for pair in zip(sizes, sizes[1:]))
        self.output = nn.Linear(width, task.classes)

    def embed(self, inputs):
        return inputs

    def forward(self, table):
        states = table - self.means
        for content, gates in zip(self.content, self.gates):
            states = content(states) * gates(states).sigmoid()
        return self.output(states)
