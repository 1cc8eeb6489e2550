"""A small decoder that goes on with a text: it gives the next token, again and again."""

import math

import torch
from torch import nn

import common
import corpus
import prose
from tokenizer import END, MASK, Tokenizer, learn_vocabulary

SEED = 20240504
VOCABULARY = 1024
LENGTH = 128
WIDTH = 128
HEADS = 4
LAYERS = 4
FEED_FORWARD = 192
SLOWEST_TURN = 1e-4  # per token, of the last pair of a head

STEPS = 10000
WARMUP_STEPS = 200
BATCH_SIZE = 16
LEARNING_RATE = 4e-3
WEIGHT_DECAY = 0.05
HELDOUT_WINDOWS = 32

# How training samples lose tokens to the mask: the share of the samples that lose any.
LOSSY_SHARE = 0.25

# The beginning of a paragraph that was held out, picked by eye, and the word after it, which run() checks that the model says.
PROMPT = "The children of Israel again did that which was evil in"
NEXT_WORD = "Yahweh's"
SPOKEN_TOKENS = 24


class Norm(nn.Module):
    """Root mean square normalization."""

    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return self.weight * states * torch.rsqrt(states.pow(2).mean(-1, keepdim=True) + 1e-6)


class CausalAttention(nn.Module):
    """Attention to a token and those before it, whose positions turn the queries and the keys."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.scale = 1.0 / math.sqrt(width // heads)
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width, bias=False)
        self.output = nn.Linear(width, width, bias=False)

    def split_heads(self, states: torch.Tensor) -> torch.Tensor:
        samples, length, width = states.shape
        return states.reshape(samples, length, self.heads, width // self.heads).transpose(1, 2)

    def turn(self, states: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        one, two = states.chunk(2, dim=-1)
        return torch.cat([one * cos - two * sin, two * cos + one * sin], dim=-1)

    def forward(
        self, states: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, later: torch.Tensor
    ) -> torch.Tensor:
        query = self.turn(self.split_heads(self.query(states)), cos, sin)
        key = self.turn(self.split_heads(self.key(states)), cos, sin)
        value = self.split_heads(self.value(states))
        scores = torch.matmul(query, key.transpose(2, 3)) * self.scale
        weights = torch.softmax(scores.masked_fill(later, float("-inf")), dim=-1)
        mixed = torch.matmul(weights, value).transpose(1, 2).flatten(2)
        return self.output(mixed)


class DecoderLayer(nn.Module):
    def __init__(self, width: int, heads: int, feed_forward: int):
        super().__init__()
        self.attention_norm = Norm(width)
        self.attention = CausalAttention(width, heads)
        self.feed_forward_norm = Norm(width)
        self.gate = nn.Linear(width, feed_forward, bias=False)
        self.expand = nn.Linear(width, feed_forward, bias=False)
        self.contract = nn.Linear(feed_forward, width, bias=False)

    def forward(
        self, states: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, later: torch.Tensor
    ) -> torch.Tensor:
        states = states + self.attention(self.attention_norm(states), cos, sin, later)
        hidden = self.feed_forward_norm(states)
        return states + self.contract(nn.functional.silu(self.gate(hidden)) * self.expand(hidden))


class Speaker(nn.Module):
    """In the shape of a Llama; the table of tokens is used at both ends."""

    def __init__(self, tokens: int):
        super().__init__()
        self.embedding = nn.Embedding(tokens, WIDTH)
        self.layers = nn.ModuleList([DecoderLayer(WIDTH, HEADS, FEED_FORWARD) for _ in range(LAYERS)])
        self.norm = Norm(WIDTH)
        pairs = WIDTH // HEADS // 2
        self.register_buffer("speeds", SLOWEST_TURN ** (torch.arange(pairs) / (pairs - 1)))
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                is_last = name.endswith(("output.weight", "contract.weight"))
                nn.init.normal_(weight, std=0.05 / math.sqrt(2 * LAYERS) if is_last else 0.05)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        angles = positions.unsqueeze(1) * self.speeds
        cos, sin = angles.cos(), angles.sin()
        later = positions.unsqueeze(1) < positions
        states = self.embedding(tokens)
        for layer in self.layers:
            states = layer(states, cos, sin, later)
        return nn.functional.linear(self.norm(states), self.embedding.weight)


def as_stream(paragraphs, tokenizer):
    """All paragraphs as one row of tokens, each after an end, and where they begin."""
    stream, begins = [], []
    for paragraph in paragraphs:
        begins.append(len(stream))
        stream += tokenizer(paragraph)["input_ids"]
    return torch.tensor(stream + [END]), torch.tensor(begins)


def lose_tokens(tokens, generator):
    """Masks tokens of some rows at random, from none to all of them; the end at their beginning stays.

    Whoever asks for the contribution of a token runs the model without some of them. Such inputs, and the one that has
    nothing but masks, must not be strange to it.
    """
    samples, length = tokens.shape
    lossy = torch.rand(samples, 1, generator=generator) < LOSSY_SHARE
    rate = 1.1 * torch.rand(samples, 1, generator=generator)
    lost = lossy & (torch.rand(samples, length, generator=generator) < rate) & (tokens != END)
    return tokens.masked_fill(lost, MASK)


def learning_rate_factor(step):
    """Linear warm-up, then a cosine down to zero."""
    if step < WARMUP_STEPS:
        return (step + 1) / WARMUP_STEPS
    progress = (step - WARMUP_STEPS) / (STEPS - WARMUP_STEPS)
    return 0.5 * (1.0 + math.cos(math.pi * progress))


def fit(model, stream, begins):
    """Trains on windows of which one half begins with a paragraph and the other anywhere."""
    generator = torch.Generator().manual_seed(SEED)
    last = len(stream) - LENGTH - 1
    begins = begins[begins <= last]
    matrices = [weight for weight in model.parameters() if weight.dim() == 2]
    vectors = [weight for weight in model.parameters() if weight.dim() != 2]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": WEIGHT_DECAY}, {"params": vectors, "weight_decay": 0.0}],
        lr=LEARNING_RATE,
        betas=(0.9, 0.98),
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, learning_rate_factor)
    model.train()
    average = 0.0
    for step in range(STEPS):
        half = BATCH_SIZE // 2
        rows = torch.cat([
            begins[torch.randint(len(begins), (half,), generator=generator)],
            torch.randint(last + 1, (BATCH_SIZE - half,), generator=generator),
        ])
        windows = stream[rows.unsqueeze(1) + torch.arange(LENGTH + 1)]
        logits = model(lose_tokens(windows[:, :-1], generator))
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        average += loss.item()
        if (step + 1) % 200 == 0:
            print(f"  step {step + 1}: loss {average / 200:.4f}", flush=True)
            average = 0.0


def as_windows(stream):
    """The tokens of a stream in rows, without overlap, and the token after each of them."""
    count = (len(stream) - 1) // LENGTH
    return stream[: count * LENGTH].view(count, LENGTH), stream[1 : count * LENGTH + 1].view(count, LENGTH)


@torch.no_grad()
def quality(model, inputs, labels, tokenizer):
    """How well the next tokens are foretold: bits for each byte of the text, the perplexity and the accuracy of tokens."""
    logits = common.predict(model, inputs, batch_size=32)
    nats = nn.functional.cross_entropy(logits.flatten(0, 1).double(), labels.flatten(), reduction="sum").item()
    # An end is one byte, that of a line break.
    size = sum(1 if token == END else len(tokenizer.vocabulary[token].encode()) for token in labels.flatten().tolist())
    return {
        "bits_per_byte": nats / math.log(2) / size,
        "perplexity": math.exp(nats / labels.numel()),
        "accuracy": (logits.argmax(-1) == labels).double().mean().item(),
    }


@torch.no_grad()
def speak(model, tokens, count):
    """The tokens that the model goes on with, each the likeliest, up to the end of the paragraph."""
    spoken = []
    while len(spoken) < count and END not in spoken:
        spoken.append(int(model(torch.tensor([tokens + spoken]))[0, -1].argmax()))
    return spoken


def words_of(rows, tokenizer):
    """The number of the word of every token, from 0 in each row; an end belongs to none, -1."""
    segments = torch.full_like(rows, -1)
    for row, tokens in enumerate(rows.tolist()):
        word = -1
        for position, token in enumerate(tokens):
            begins = position == 0 or tokens[position - 1] == END or tokenizer.vocabulary[token].startswith(" ")
            word += begins and token != END
            if token != END:
                segments[row, position] = word
    return segments


def run(corpus_folder):
    common.make_deterministic(SEED)
    corpus.fetch(corpus_folder, prose.PACKAGES)
    train, heldout = prose.read_paragraphs(corpus_folder)
    tokenizer = Tokenizer(learn_vocabulary(train, VOCABULARY))
    model = Speaker(VOCABULARY)
    stream, begins = as_stream(train, tokenizer)
    fit(model, stream, begins)
    model.eval()

    all_inputs, all_labels = as_windows(as_stream(heldout, tokenizer)[0])
    rows = torch.linspace(0, len(all_inputs) - 1, HELDOUT_WINDOWS).long()
    inputs, labels = all_inputs[rows], all_labels[rows]
    found = quality(model, inputs, labels, tokenizer)
    all_found = quality(model, all_inputs, all_labels, tokenizer)

    if not any(paragraph.startswith(f"{PROMPT} {NEXT_WORD}") for paragraph in heldout):
        raise SystemExit("no paragraph that was held out begins with the sample")
    prompt = tokenizer(PROMPT)["input_ids"]
    spoken = speak(model, prompt, SPOKEN_TOKENS)
    if not tokenizer.decode(spoken).startswith(" " + NEXT_WORD):
        raise SystemExit(f"after the sample the model says {tokenizer.decode(spoken)!r}")
    sample = torch.tensor([prompt])

    metadata = {
        "kind": "text",
        "classes": common.as_json(tokenizer.vocabulary),
        "mask_token": str(MASK),
        "vocabulary": common.as_json(tokenizer.vocabulary),
        "source": prose.SOURCE,
    }
    common.write_products(
        "speaker",
        model,
        heldout={"input": inputs, "segments": words_of(inputs, tokenizer), "label": labels[:, -1]},
        sample={
            "input": sample,
            "segments": words_of(sample, tokenizer),
            "label": torch.tensor(spoken[:1]),
        },
        metadata=metadata,
        sample_metadata={
            **metadata,
            "text": PROMPT,
            "names": common.as_json(PROMPT.split(" ")),
            "continuation": tokenizer.decode(spoken),
        },
        metrics={
            **found,
            "samples": len(inputs),
            "parameters": common.count_parameters(model),
            "train_samples": len(train),
            "train_tokens": len(stream),
            "train_bytes": sum(len(paragraph.encode()) + 1 for paragraph in train),
            "seed": SEED,
            **{f"{name}_all_heldout_books": value for name, value in all_found.items()},
            "samples_all_heldout_books": len(all_inputs),
        },
    )
    print(f"  {PROMPT}{tokenizer.decode(spoken)}")
