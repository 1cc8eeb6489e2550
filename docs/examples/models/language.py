"""A small Transformer encoder that names the language of a sentence."""

import collections
import math

import torch
from torch import nn

import common
import corpus

SEED = 20240503
LENGTH = 96
WIDTH = 64
HEADS = 4
LAYERS = 2
FEED_FORWARD = 128
DROPOUT = 0.1

MASK = 0  # "nothing here": padding, and what a removed character becomes
UNKNOWN = 1
KNOWN_CHARACTERS = 150

STEPS = 2300
WARMUP_STEPS = 150
BATCH_SIZE = 32
LEARNING_RATE = 2e-3
WEIGHT_DECAY = 1e-2
MAX_PER_LANGUAGE = 4000
HELDOUT_PER_LANGUAGE = 40

# How training samples lose tokens: the shares of the samples which lose all
# of them, whole words, or single characters; the rest stays whole.
BLANK_SHARE = 0.03
WORDS_SHARE = 0.42
CHARACTERS_SHARE = 0.40
MAX_LOSS_RATE = 0.6

# Picked by eye from the held-out sentences; run() checks that it is classified correctly.
SAMPLE_TEXT = "Die große Mehrheit aller Pakete wird von dieser Änderung nicht betroffen sein."
SOURCE = (
    "sentences of manual pages in Debian packages (manpages, manpages-l10n, dpkg, apt "
    "and others; per page GPL-2+, GPL-3+, BSD or Linux-man-pages-copyleft)"
)


class SelfAttention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.scale = 1.0 / math.sqrt(width // heads)
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)

    def split_heads(self, states: torch.Tensor) -> torch.Tensor:
        samples, length, width = states.shape
        return states.reshape(samples, length, self.heads, width // self.heads).transpose(1, 2)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        query = self.split_heads(self.query(states))
        key = self.split_heads(self.key(states))
        value = self.split_heads(self.value(states))
        scores = torch.matmul(query, key.transpose(2, 3)) * self.scale
        weights = torch.softmax(scores, dim=-1)
        mixed = torch.matmul(weights, value).transpose(1, 2).flatten(2)
        return self.output(mixed)


class EncoderLayer(nn.Module):
    def __init__(self, width: int, heads: int, feed_forward: int, dropout: float):
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = SelfAttention(width, heads)
        self.feed_forward_norm = nn.LayerNorm(width)
        self.expand = nn.Linear(width, feed_forward)
        self.activation = nn.GELU()
        self.contract = nn.Linear(feed_forward, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        states = states + self.dropout(self.attention(self.attention_norm(states)))
        hidden = self.activation(self.expand(self.feed_forward_norm(states)))
        return states + self.dropout(self.contract(hidden))


class LanguageClassifier(nn.Module):
    """Needs no attention mask: the mask token is a token like any other."""

    def __init__(self, tokens: int, classes: int):
        super().__init__()
        self.embedding = nn.Embedding(tokens, WIDTH)
        self.position = nn.Parameter(0.02 * torch.randn(LENGTH, WIDTH))
        self.dropout = nn.Dropout(DROPOUT)
        self.layers = nn.Sequential(
            *(EncoderLayer(WIDTH, HEADS, FEED_FORWARD, DROPOUT) for _ in range(LAYERS))
        )
        self.norm = nn.LayerNorm(WIDTH)
        self.output = nn.Linear(WIDTH, classes)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        states = self.dropout(self.embedding(tokens) + self.position)
        return self.output(self.norm(self.layers(states)).mean(dim=1))


def shorten(text):
    """Cuts a sentence after its last whole word within the fixed length."""
    if len(text) <= LENGTH:
        return text
    return text[: text.rindex(" ", 0, LENGTH + 1)]


def make_vocabulary(texts):
    """The characters of the tokens; the two special tokens have names instead."""
    counts = collections.Counter(character for text in texts for character in text)
    # Sorted by character too, so that equal counts have a fixed order.
    ranking = sorted(counts, key=lambda character: (-counts[character], character))
    return ["[mask]", "[unknown]"] + ranking[:KNOWN_CHARACTERS]


def encode(texts, vocabulary):
    """Returns the tokens and the word number of every position; -1 is padding."""
    number = {character: token for token, character in enumerate(vocabulary)}
    tokens = torch.full((len(texts), LENGTH), MASK)
    segments = torch.full((len(texts), LENGTH), -1)
    for row, text in enumerate(texts):
        word = 0
        for position, character in enumerate(text):
            tokens[row, position] = number.get(character, UNKNOWN)
            segments[row, position] = word
            word += character == " "
    return tokens, segments


def balanced(sentences, limit, generator):
    """At most `limit` random sentences of every language, in order."""
    chosen = []
    for language in corpus.LANGUAGES:
        own = [sentence for sentence in sentences if sentence.language == language]
        rows = torch.randperm(len(own), generator=generator)[:limit].tolist()
        chosen.extend(own[row] for row in sorted(rows))
    return chosen


def lose_tokens(tokens, segments, generator):
    """Masks parts of a batch at random. Returns it and which rows are all mask.

    Whoever asks for the contribution of a word runs the model with some words
    removed. Such inputs, and the empty one, must not be strange to it.
    """
    samples = len(tokens)
    kind = torch.rand(samples, 1, generator=generator)
    rate = MAX_LOSS_RATE * torch.rand(samples, 1, generator=generator)
    word_draw = torch.rand(samples, LENGTH, generator=generator).gather(
        1, segments.clamp(min=0)
    )
    character_draw = torch.rand(samples, LENGTH, generator=generator)
    blank = kind < BLANK_SHARE
    by_word = kind < BLANK_SHARE + WORDS_SHARE
    by_character = ~by_word & (kind < BLANK_SHARE + WORDS_SHARE + CHARACTERS_SHARE)
    lost = blank | (by_word & (word_draw < rate)) | (by_character & (character_draw < rate))
    lossy = tokens.masked_fill(lost, MASK)
    return lossy, (lossy == MASK).all(dim=1)


def targets(labels, blank, classes):
    """One-hot rows; where there is nothing to see every language is as likely."""
    rows = nn.functional.one_hot(labels, classes).float()
    rows[blank] = 1.0 / classes
    return rows


def learning_rate_factor(step):
    """Linear warm-up, then a cosine down to zero."""
    if step < WARMUP_STEPS:
        return (step + 1) / WARMUP_STEPS
    progress = (step - WARMUP_STEPS) / (STEPS - WARMUP_STEPS)
    return 0.5 * (1.0 + math.cos(math.pi * progress))


def fit(model, tokens, segments, labels, classes):
    """Trains on batches in which every language is equally frequent."""
    generator = torch.Generator().manual_seed(SEED)
    weights = 1.0 / labels.bincount(minlength=classes)[labels].double()
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, learning_rate_factor)
    model.train()
    for step in range(STEPS):
        rows = weights.multinomial(BATCH_SIZE, replacement=True, generator=generator)
        batch, blank = lose_tokens(tokens[rows], segments[rows], generator)
        loss = nn.functional.cross_entropy(
            model(batch), targets(labels[rows], blank, classes)
        )
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if (step + 1) % 500 == 0:
            print(f"  step {step + 1}: loss {loss.item():.4f}", flush=True)


def dataset(sentences, vocabulary):
    """Returns (texts, tokens, segments, labels) of sentences."""
    classes = list(corpus.LANGUAGES)
    texts = [shorten(sentence.text) for sentence in sentences]
    tokens, segments = encode(texts, vocabulary)
    labels = torch.tensor([classes.index(sentence.language) for sentence in sentences])
    return texts, tokens, segments, labels


def run(corpus_folder):
    common.make_deterministic(SEED)
    corpus.fetch(corpus_folder)
    classes = list(corpus.LANGUAGES)
    train, all_heldout = corpus.read_sentences(corpus_folder)
    generator = torch.Generator().manual_seed(SEED)
    train = balanced(train, MAX_PER_LANGUAGE, generator)
    heldout = balanced(all_heldout, HELDOUT_PER_LANGUAGE, generator)
    vocabulary = make_vocabulary(sentence.text for sentence in train)

    _, tokens, segments, labels = dataset(train, vocabulary)
    model = LanguageClassifier(len(vocabulary), len(classes))
    fit(model, tokens, segments, labels, len(classes))

    texts, tokens, segments, labels = dataset(heldout, vocabulary)
    logits = common.predict(model, tokens)
    _, all_tokens, _, all_labels = dataset(all_heldout, vocabulary)
    all_logits = common.predict(model, all_tokens)
    blank = common.predict(model, torch.full((1, LENGTH), MASK)).softmax(dim=1)[0]
    row = texts.index(SAMPLE_TEXT)
    if logits[row].argmax() != labels[row]:
        raise SystemExit("the sample sentence is not classified correctly")

    metadata = {
        "kind": "text",
        "classes": common.as_json(classes),
        "mask_token": str(MASK),
        "vocabulary": common.as_json(vocabulary),
        "source": SOURCE,
    }
    common.write_products(
        "language",
        model,
        heldout={"input": tokens, "segments": segments, "label": labels},
        sample={
            "input": tokens[row : row + 1],
            "segments": segments[row : row + 1],
            "label": labels[row : row + 1],
        },
        metadata={
            **metadata,
            "texts": common.as_json(texts),
            "pages": common.as_json([sentence.page for sentence in heldout]),
        },
        sample_metadata={
            **metadata,
            "text": SAMPLE_TEXT,
            "names": common.as_json(SAMPLE_TEXT.split(" ")),
            "page": heldout[row].page,
        },
        metrics={
            "accuracy": common.accuracy(logits, labels),
            "samples": len(heldout),
            "parameters": common.count_parameters(model),
            "train_samples": len(train),
            "seed": SEED,
            "accuracy_all_heldout_pages": common.accuracy(all_logits, all_labels),
            "samples_all_heldout_pages": len(all_heldout),
        },
    )
    print("  all-mask input:", dict(zip(classes, blank.tolist())))
    print(f"  sample: held-out row {row}, logits {logits[row].tolist()}")
