"""Tasks whose causes are known, since they decide how a sample is made; networks are trained to solve them.

Each task draws samples of units (tokens, patches, columns) and says the role of each unit:

- A cause is what the answer is made of.
- A pointer marks a cause by where it stands.
- A question says which pointer or cause counts.
- A frame tells how the others belong together, but nothing of the answer by itself.
- All others cannot matter: with any of them removed, the answer is the same.
"""

import math
import sys

import torch
from torch import nn
from torch.nn import functional

import networks
from metrics import CANNOT_MATTER, CAUSE, FRAME, POINTER, QUESTION

SEEDS = (7, 8, 9)  # of the networks of each task
HELD_OUT = 1000  # what samples to be explained add to a seed
RIGHT = 0.999
BATCH, RATE = 64, 2e-3
CHECKED = 2000
CHECK_EVERY = 200
LOSS_RATE = 0.3  # how many of the units that cannot matter training removes, so that removed ones are not strange


class Drawn:
    """Samples of a task.

    Attributes:
        inputs: [samples, ...].
        classes: the answers, int64[samples].
        roles: of each unit, int64[samples, units].
    """

    def __init__(self, inputs, classes, roles):
        self.inputs = inputs
        self.classes = classes
        self.roles = roles

    def removable(self, generator):
        """A random choice of the units that cannot matter, bool[samples, units]."""
        chosen = torch.rand(self.roles.shape, generator=generator) < LOSS_RATE
        return chosen & (self.roles == CANNOT_MATTER)


def roles_of(shape, **places):
    """Roles by the places of causes, pointers, questions or frames, int64[samples] or [samples, several] each."""
    roles = torch.full(shape, CANNOT_MATTER)
    for role, where in places.items():
        roles.scatter_(1, where.view(shape[0], -1), {"cause": CAUSE, "pointer": POINTER, "question": QUESTION}[role])
    return roles


class Task:
    """Base of tasks. `network` is one of `networks`."""

    halving = math.inf  # after how many steps of training the rate is half of what it was

    def __init__(self, name, network):
        self.name = name
        self.network = network


class Sequences(Task):
    """Base of tasks of tokens: `tokens` ids, of which 0 is the mask token, in `units` places."""

    units, mask = 17, 0
    starts = ("mask token", "zero embeddings")  # the natural one first

    @property
    def what(self):
        return "%d tokens" % self.units

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


class Retrieval(Sequences):
    """16 tokens and a question. Three of the tokens are different markers; the question is one of them, and the answer
    is the token behind that marker."""

    markers, values = 3, 20
    tokens = 1 + markers + values
    starts = Sequences.starts + ("mean embeddings",)
    classes = tokens

    def __init__(self, name, network, question_first=False):
        super().__init__(name, network)
        self._shift = int(question_first)

    def draw(self, size, generator):
        tokens = 1 + self.markers + torch.randint(self.values, (size, self.units - 1), generator=generator)
        places = 2 * torch.rand(size, 7, generator=generator).argsort(1)[:, : self.markers]
        tokens.scatter_(1, places, (1 + torch.arange(self.markers)).expand(size, -1))
        asked = torch.randint(self.markers, (size, 1), generator=generator)
        pointers = places.gather(1, asked)
        classes = tokens.gather(1, pointers + 1)[:, 0]
        inputs = torch.cat([1 + asked, tokens] if self._shift else [tokens, 1 + asked], 1)
        pointers = pointers + self._shift
        questions = torch.full((size,), 0 if self._shift else self.units - 1)
        roles = roles_of(inputs.shape, cause=pointers + 1, pointer=pointers, question=questions)
        return Drawn(inputs, classes, roles)


class Copying(Sequences):
    """9 to 15 letters, a separator, and the letters once more, as far as there is room. The answer is the next letter:
    the one at the same place before the separator. There are few letters, so that the letters already copied do not
    tell the place."""

    letters, separator = 6, 1
    tokens = 2 + letters
    classes = tokens

    def draw(self, size, generator):
        length = torch.randint(9, self.units - 1, (size, 1), generator=generator)
        letters = 2 + torch.randint(self.letters, (size, self.units), generator=generator)
        places = torch.arange(self.units).expand(size, -1)
        inputs = letters.gather(1, torch.where(places > length, places - length - 1, places))
        inputs.scatter_(1, length, self.separator)
        causes = self.units - 1 - length
        roles = roles_of(inputs.shape, cause=causes, pointer=length)
        return Drawn(inputs, inputs.gather(1, causes)[:, 0], roles)


class Agreement(Sequences):
    """A subject, a verb at the end, and between them other nouns; the other tokens are adverbs. The subject is the first
    noun. The answer is the form of the verb: its stem is that of the last token, its class that of the subject. There
    are six classes of nouns: of only two, a network takes one for granted, and a subject of this one has no effect."""

    kinds, nouns, verbs, adverbs = 6, 12, 3, 8
    tokens = 1 + nouns + verbs + adverbs
    classes = verbs * kinds

    def draw(self, size, generator):
        inputs = 1 + self.nouns + self.verbs + torch.randint(self.adverbs, (size, self.units), generator=generator)
        places = torch.rand(size, self.units - 1, generator=generator).argsort(1)[:, :4]
        nouns = torch.randint(self.nouns, (size, 4), generator=generator)
        inputs.scatter_(1, places, 1 + nouns)
        verbs = torch.randint(self.verbs, (size,), generator=generator)
        inputs[:, -1] = 1 + self.nouns + verbs
        subjects, first = places.min(1)
        kind = nouns.gather(1, first[:, None])[:, 0] % self.kinds
        roles = roles_of(inputs.shape, cause=subjects, question=torch.full((size,), self.units - 1))
        return Drawn(inputs, self.kinds * verbs + kind, roles)


class ModularSums(Sequences):
    """Two numbers among letters, and at the end plus or minus. The answer is their sum or difference modulo 7."""

    modulus, letters = 7, 8
    tokens = 1 + modulus + 2 + letters
    classes = modulus

    def draw(self, size, generator):
        inputs = 1 + self.modulus + 2 + torch.randint(self.letters, (size, self.units), generator=generator)
        places = torch.rand(size, self.units - 1, generator=generator).argsort(1)[:, :2].sort(1)[0]
        numbers = torch.randint(self.modulus, (size, 2), generator=generator)
        inputs.scatter_(1, places, 1 + numbers)
        minus = torch.randint(2, (size,), generator=generator)
        inputs[:, -1] = 1 + self.modulus + minus
        classes = (numbers[:, 0] + (1 - 2 * minus) * numbers[:, 1]) % self.modulus
        roles = roles_of(inputs.shape, cause=places, question=torch.full((size,), self.units - 1))
        return Drawn(inputs, classes, roles)


class Brackets(Sequences):
    """Nested brackets of four types, at most three deep; the last one closes, and at least one is open behind it. The
    answer is the type that has to be closed next: that of the last bracket that is open. The brackets behind that one
    are frame: they are closed, and without one of them another bracket would be open."""

    units = 13
    types, deepest = 4, 3
    halving = 400
    tokens = 1 + 2 * types  # opening ones first
    classes = types

    def draw(self, size, generator):
        types = torch.randint(self.types, (size, self.units), generator=generator)
        opens = torch.rand(size, self.units, generator=generator) < 0.5
        inputs = torch.empty_like(types)
        open_places = torch.zeros(size, 1 + self.deepest, dtype=torch.long)  # by depth
        depth, rows = torch.zeros(size, dtype=torch.long), torch.arange(size)
        for place in range(self.units):
            last = place == self.units - 1
            least = 1 if place == self.units - 2 else 0  # so that the last one can close and leave one open
            opening = (opens[:, place] | (depth <= least)) & (depth < self.deepest) & (not last)
            closed = types[rows, open_places[rows, depth]]
            inputs[:, place] = 1 + torch.where(opening, types[:, place], self.types + closed)
            depth = depth + torch.where(opening, 1, -1)
            open_places[rows[opening], depth[opening]] = place
        causes = open_places[rows, depth]
        roles = roles_of(inputs.shape, cause=causes)
        roles[torch.arange(self.units) > causes[:, None]] = FRAME
        return Drawn(inputs, types[rows, causes], roles)


class Patches(Task):
    """An image of 4 x 4 patches. All but the first show one of eight patterns; three of these stand on a ground of red,
    green or blue. The first patch has one of these colours, and the answer is the pattern on this ground."""

    what = "16 patches"
    units, side, classes = 16, 4, 8
    starts = ("black", "mean image")

    def __init__(self, name, network):
        super().__init__(name, network)
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
        roles = roles_of((size, self.units), cause=causes, question=torch.zeros(size, dtype=torch.long))
        return Drawn(image, shown[rows, causes], roles)

    def without(self, inputs, removed):
        there = ~removed.view(-1, 1, 4, 4).repeat_interleave(4, 2).repeat_interleave(4, 3)
        return inputs * there

    def labels(self, size):
        return torch.arange(16).view(4, 4).repeat_interleave(4, 0).repeat_interleave(4, 1).expand(size, 4, 16, 16)

    def start(self, name, network, inputs):
        return torch.zeros_like(inputs[:1]) if name == "black" else inputs.mean(0, keepdim=True)


class Columns(Task):
    """24 columns: a switch, two groups of eight of which each has one high number, and seven of noise. The answer is
    the place of the high number in the group that the switch's sign says."""

    what = "24 columns"
    units, classes = 24, 8
    starts = ("mean row", "zero")
    means = 3.0

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
        questions = torch.zeros(size, dtype=torch.long)
        roles = roles_of((size, self.units), cause=1 + 8 * asked + classes, question=questions)
        return Drawn(table + self.means, classes, roles)

    def without(self, inputs, removed):
        return torch.where(removed, torch.full_like(inputs, self.means), inputs)

    def labels(self, size):
        return torch.arange(24).expand(size, -1)

    def start(self, name, network, inputs):
        return torch.zeros_like(inputs[:1]) if name == "zero" else inputs.mean(0, keepdim=True)


def all_tasks():
    yield Columns("table, gated linear units", networks.GatedLayers)
    yield Patches("image, squeeze-and-excite", networks.SqueezeAndExcite)
    yield Retrieval("retrieval, encoder", networks.Encoder)
    yield Retrieval("retrieval, decoder", networks.Decoder)
    yield Copying("copying, decoder", networks.Decoder)
    yield Agreement("agreement, encoder", networks.Encoder)
    yield Agreement("agreement, decoder", networks.Decoder)
    yield ModularSums("modular sums, encoder", networks.Encoder)
    yield ModularSums("modular sums, decoder", networks.Decoder)
    yield Brackets("nested brackets, decoder", networks.Decoder)
    yield Retrieval("retrieval, LSTM", networks.Lstm, question_first=True)
    yield Retrieval("retrieval, GRU", networks.Gru, question_first=True)


def train(task, seed, steps=20000):
    """A network that solves the task, and after how many steps it did in two checks in a row."""
    torch.manual_seed(seed)
    network, generator = task.network(task), torch.Generator().manual_seed(seed)
    optimizer, right = torch.optim.AdamW(network.parameters(), RATE), 0.0
    for step in range(1, steps + 1):
        optimizer.param_groups[0]["lr"] = RATE * 0.5 ** (step // task.halving)
        drawn = task.draw(BATCH, generator)
        inputs = task.without(drawn.inputs, drawn.removable(generator))
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
    else:
        raise RuntimeError("%s, seed %d: %.4f right after %d steps" % (task.name, seed, right, steps))
    for parameter in network.parameters():
        parameter.requires_grad_(False)
    return network.eval(), {"seed": seed, "steps": step}


def accuracy(network, drawn):
    """How many of the samples a network answers."""
    return _right(network, drawn.inputs, drawn.classes)


def accuracy_of_needed(task, network, drawn):
    """How many it answers with all units removed that cannot matter."""
    return _right(network, task.without(drawn.inputs, drawn.roles == CANNOT_MATTER), drawn.classes)


def _right(network, inputs, classes):
    with torch.no_grad():
        return float((network(network.embed(inputs)).argmax(1) == classes).double().mean())


def load_or_train(task, seed, folder):
    """The result of `train`, read from a folder if it was kept there, else added to it. None: no folder."""
    path = folder / ("%s_%d.pt" % (task.name.replace(", ", "_").replace(" ", "_"), seed)) if folder else None
    if path and path.exists():
        kept = torch.load(path)
        network = task.network(task)
        network.load_state_dict(kept["state"])
        for parameter in network.parameters():
            parameter.requires_grad_(False)
        return network.eval(), kept["trained"]
    network, trained = train(task, seed)
    if path:
        torch.save({"state": network.state_dict(), "trained": trained}, path)
    return network, trained
