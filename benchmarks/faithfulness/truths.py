"""Tasks whose causes are known, since they decide how a sample is made, and small networks that learn them.

Each task draws samples of units (tokens, patches, columns). A sample has one cause, the unit that the answer is read
from; a pointer, which marks the cause, where it is a unit of its own; and a question, which says which pointer counts.
"""

import math
import sys

import torch
from torch import nn
from torch.nn import functional

SEEDS = (7, 8, 9)  # of the networks of each task
HELD_OUT = 1000  # what samples to be explained add to a seed
RIGHT = 0.999
BATCH = 64
CHECKED = 2000
CHECK_EVERY = 200
LOSS_RATE = 0.3  # how many of the units that do not matter training removes, so that removed ones are not strange


class Drawn:
    """Samples of a task.

    Attributes:
        inputs: [samples, ...].
        classes: the answers, int64[samples].
        causes: int64[samples], as are `pointers` and `questions`; -1: there is none.
    """

    def __init__(self, inputs, classes, causes, pointers, questions):
        self.inputs = inputs
        self.classes = classes
        self.causes = causes
        self.pointers = pointers
        self.questions = questions

    def removable(self, units, generator):
        """A random choice of the units that do not matter, bool[samples, units]."""
        chosen = torch.rand(len(self.inputs), units, generator=generator) < LOSS_RATE
        for kept in (self.causes, self.pointers, self.questions):
            rows = (kept >= 0).nonzero()[:, 0]
            chosen[rows, kept[rows]] = False
        return chosen


class Retrieval:
    """16 tokens and a question. Three of the tokens are different markers; the question is one of them, and the answer
    is the token behind that marker."""

    what = "17 tokens"
    units, mask, markers, values = 17, 0, 3, 20
    tokens = 1 + markers + values
    classes = tokens
    starts = ("mask token", "zero embeddings", "mean embeddings")  # the natural one first

    def __init__(self, name, network, question_first=False):
        self.name = name
        self.network = network
        self._shift = int(question_first)

    def draw(self, size, generator):
        tokens = 1 + self.markers + torch.randint(self.values, (size, self.units - 1), generator=generator)
        places = 2 * torch.rand(size, 7, generator=generator).argsort(1)[:, : self.markers]
        tokens.scatter_(1, places, (1 + torch.arange(self.markers)).expand(size, -1))
        asked = torch.randint(self.markers, (size, 1), generator=generator)
        pointers = places.gather(1, asked)
        classes = tokens.gather(1, pointers + 1)[:, 0]
        inputs = torch.cat([1 + asked, tokens] if self._shift else [tokens, 1 + asked], 1)
        pointers = pointers[:, 0] + self._shift
        questions = torch.full((size,), 0 if self._shift else self.units - 1)
        return Drawn(inputs, classes, pointers + 1, pointers, questions)

    def without(self, inputs, removed):
        return inputs.masked_fill(removed, self.mask)

    def labels(self, size):
        return torch.arange(self.units).expand(size, -1)

    def start(self, name, network, inputs):
        """A baseline, as `embed` gives inputs, [1, ...]."""
        mask = network.embed(torch.full((1, self.units), self.mask))
        if name == "mask token":
            return mask
        if name == "zero embeddings":
            return torch.zeros_like(mask)
        return network.embed(inputs).mean((0, 1)).expand_as(mask)


class Patches:
    """An image of 4 x 4 patches. All but the first show one of eight patterns; three of these stand on a ground of red,
    green or blue. The first patch has one of these colours, and the answer is the pattern on this ground."""

    what = "16 patches"
    units, side, classes = 16, 4, 8
    starts = ("black", "mean image")

    def __init__(self, name, network):
        self.name = name
        self.network = network
        self._patterns = (torch.rand(8, 4, 4, generator=torch.Generator().manual_seed(SEEDS[0])) < 0.5).float()

    def draw(self, size, generator):
        shown = torch.randint(8, (size, 16), generator=generator)
        places = 1 + torch.rand(size, 15, generator=generator).argsort(1)[:, :3]
        asked = torch.randint(3, (size, 1), generator=generator)
        image = torch.zeros(size, 16, 4, 4, 4)  # patches, channels: pattern, red, green, blue
        image[:, :, 0] = self._patterns[shown]
        image[:, 0, 0] = 0
        rows = torch.arange(size)
        for colour in range(3):
            image[rows, places[:, colour], 1 + colour] = 1
        image[rows, 0, 1 + asked[:, 0]] = 1
        causes = places.gather(1, asked)[:, 0]
        image = image + 0.05 * torch.rand(image.shape, generator=generator)
        image = image.view(size, 4, 4, 4, 4, 4).permute(0, 3, 1, 4, 2, 5).reshape(size, 4, 16, 16)
        none = torch.full((size,), -1)
        return Drawn(image, shown[rows, causes], causes, none, torch.zeros(size, dtype=torch.long))

    def without(self, inputs, removed):
        there = ~removed.view(-1, 1, 4, 4).repeat_interleave(4, 2).repeat_interleave(4, 3)
        return inputs * there

    def labels(self, size):
        return torch.arange(16).view(4, 4).repeat_interleave(4, 0).repeat_interleave(4, 1).expand(size, 4, 16, 16)

    def start(self, name, network, inputs):
        return torch.zeros_like(inputs[:1]) if name == "black" else inputs.mean(0, keepdim=True)


class Columns:
    """24 columns: a switch, two groups of eight of which each has one high number, and seven of noise. The answer is
    the place of the high number in the group that the switch's sign says."""

    what = "24 columns"
    units, classes = 24, 8
    starts = ("mean row", "zero")
    means = 3.0

    def __init__(self, name, network):
        self.name = name
        self.network = network

    def draw(self, size, generator):
        table = 0.3 * torch.randn(size, 24, generator=generator)
        table[:, 17:] *= 3
        high = torch.randint(8, (size, 2), generator=generator)
        rows = torch.arange(size)
        asked = torch.randint(2, (size,), generator=generator)
        table[:, 0] += 2.0 * asked - 1
        for group in (0, 1):
            table[rows, 1 + 8 * group + high[:, group]] += 2
        classes = high[rows, asked]
        none = torch.full((size,), -1)
        return Drawn(table + self.means, classes, 1 + 8 * asked + classes, none, torch.zeros(size, dtype=torch.long))

    def without(self, inputs, removed):
        return torch.where(removed, torch.full_like(inputs, self.means), inputs)

    def labels(self, size):
        return torch.arange(24).expand(size, -1)

    def start(self, name, network, inputs):
        return torch.zeros_like(inputs[:1]) if name == "zero" else inputs.mean(0, keepdim=True)


class Tokens(nn.Module):
    """What networks of tokens share. A network gives its outputs for embedded inputs."""

    def __init__(self, width):
        super().__init__()
        self.embedding = nn.Embedding(Retrieval.tokens, width)
        self.position = nn.Parameter(0.5 * torch.randn(Retrieval.units, width))

    def embed(self, inputs):
        return self.embedding(inputs)


class Attention(nn.Module):
    def __init__(self, width, heads, bias, causal):
        super().__init__()
        self.heads = heads
        self.inputs = nn.Linear(width, 3 * width, bias)
        self.output = nn.Linear(width, width, bias)
        above = torch.ones(Retrieval.units, Retrieval.units, dtype=torch.bool).triu(1)
        self.register_buffer("masked", above if causal else torch.zeros_like(above))

    def forward(self, states):
        samples, length, width = states.shape
        split = self.inputs(states).view(samples, length, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-1, -2) / math.sqrt(width // self.heads)
        weights = scores.masked_fill(self.masked, -math.inf).softmax(-1)
        return self.output((weights @ value).transpose(1, 2).reshape(samples, length, width))


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

    def __init__(self, width=64, heads=4, layers=3):
        super().__init__(width)
        self.layers = nn.Sequential(*(EncoderLayer(width, heads) for _ in range(layers)))
        self.norm, self.output = nn.LayerNorm(width), nn.Linear(width, Retrieval.classes)

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

    def __init__(self, width=64, heads=4, layers=3):
        super().__init__(width)
        self.layers = nn.Sequential(*(DecoderLayer(width, heads) for _ in range(layers)))
        self.norm, self.output = RootMeanSquareNorm(width), nn.Linear(width, Retrieval.classes, False)

    def forward(self, embedded):
        return self.output(self.norm(self.layers(embedded + self.position)[:, -1]))


class Lstm(Tokens):
    def __init__(self, width=32, hidden=96):
        super().__init__(width)
        self.lstm, self.output = nn.LSTM(width, hidden, batch_first=True), nn.Linear(hidden, Retrieval.classes)

    def forward(self, embedded):
        return self.output(self.lstm(embedded)[0][:, -1])


class Gru(Tokens):
    """Written out, with a reset gate on the state (Cho et al. 2014)."""

    def __init__(self, width=32, hidden=96):
        super().__init__(width)
        self.gates, self.inner = nn.Linear(width + hidden, 2 * hidden), nn.Linear(width + hidden, hidden)
        self.output = nn.Linear(hidden, Retrieval.classes)
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

    def __init__(self, width=64):
        super().__init__()
        self.patches, self.features = nn.Conv2d(4, width, 4, stride=4), nn.Conv2d(width, width, 1)
        self.gates = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.Sigmoid())
        self.output = nn.Linear(width, Patches.classes)
        self.place = nn.Parameter(0.1 * torch.randn(width, 4, 4))

    def embed(self, inputs):
        return inputs

    def forward(self, image):
        features = self.features(self.patches(image).relu() + self.place).relu()
        gates = self.gates(features.mean((2, 3)))
        return self.output((features * gates[:, :, None, None]).amax((2, 3)))


class GatedLayers(nn.Module):
    """Two gated linear units (Dauphin et al. 2017)."""

    def __init__(self, width=64):
        super().__init__()
        sizes = [Columns.units, width, width]
        self.content = nn.ModuleList(nn.Linear(*pair) for pair in zip(sizes, sizes[1:]))
        self.gates = nn.ModuleList(nn.Linear(*pair) for pair in zip(sizes, sizes[1:]))
        self.output = nn.Linear(width, Columns.classes)

    def embed(self, inputs):
        return inputs

    def forward(self, table):
        states = table - Columns.means
        for content, gates in zip(self.content, self.gates):
            states = content(states) * gates(states).sigmoid()
        return self.output(states)


def all_tasks():
    """From the quickest to the slowest."""
    yield Columns("table, gated linear units", GatedLayers)
    yield Patches("image, squeeze-and-excite", SqueezeAndExcite)
    yield Retrieval("encoder", Encoder)
    yield Retrieval("decoder, gated feed-forwards", Decoder)
    yield Retrieval("LSTM", Lstm, question_first=True)
    yield Retrieval("GRU", Gru, question_first=True)


def train(task, seed, steps=8000, rate=2e-3):
    """A network that solves the task, and how much of it, after how many steps."""
    torch.manual_seed(seed)
    network, generator = task.network(), torch.Generator().manual_seed(seed)
    optimizer, right = torch.optim.AdamW(network.parameters(), rate), 0.0
    for step in range(1, steps + 1):
        drawn = task.draw(BATCH, generator)
        inputs = task.without(drawn.inputs, drawn.removable(task.units, generator))
        loss = functional.cross_entropy(network(network.embed(inputs)), drawn.classes)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        if step % CHECK_EVERY == 0:
            before, right = right, accuracy(network, task.draw(CHECKED, generator))
            print("  step %d: %.4f right" % (step, right), file=sys.stderr, flush=True)
            if min(before, right) >= RIGHT:
                break
    for parameter in network.parameters():
        parameter.requires_grad_(False)
    return network.eval(), {"seed": seed, "steps": step}


def accuracy(network, drawn):
    with torch.no_grad():
        return float((network(network.embed(drawn.inputs)).argmax(1) == drawn.classes).double().mean())


def load_or_train(task, seed, folder):
    """What `train` gives; from a folder, where it was kept there, to which it is added else. None: no folder."""
    path = folder / ("%s_%d.pt" % (task.name.replace(", ", "_").replace(" ", "_"), seed)) if folder else None
    if path and path.exists():
        kept = torch.load(path)
        network = task.network()
        network.load_state_dict(kept["state"])
        for parameter in network.parameters():
            parameter.requires_grad_(False)
        return network.eval(), kept["trained"]
    network, trained = train(task, seed)
    if path:
        torch.save({"state": network.state_dict(), "trained": trained}, path)
    return network, trained
