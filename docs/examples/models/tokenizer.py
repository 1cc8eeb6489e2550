"""Tokens of the `speaker` model: a tokenizer in the form that `addend.lm` takes, and how its vocabulary was learned.

    sample = addend.read_tensors("speaker/sample.safetensors")
    tokenizer = Tokenizer(json.loads(sample.metadata("vocabulary")))

The vocabulary is a list of texts. The first ones are single characters, each of the others joins two of those before it
(byte pair encoding), so the list says both what the tokens are and in which order they are joined. A space belongs to the
word after it.
"""

import collections
import functools
import re

SPECIAL = ("[mask]", "[unknown]", "[end]")
MASK, UNKNOWN, END = range(len(SPECIAL))

# Texts that are joined within themselves only: endings such as 's, words, numbers, punctuation.
_PIECES = re.compile(r"'[a-z]+| ?[^\W\d_]+| ?\d+| ?[^\w\s]+|\s")
# Typographic signs that no keyboard has, and what the vocabulary has in their place.
_TYPED = str.maketrans("\u201c\u201d\u2018\u2019\u2014", "\"\"''-")


class Tokenizer:
    """Text to ids and back.

    Its attributes and methods are those that `addend.lm` looks for in a tokenizer. A text begins with the end of the one
    before it, and `[mask]` is the token that means nothing.
    """

    pad_token_id, unk_token_id, eos_token_id, bos_token_id = MASK, UNKNOWN, END, END
    all_special_ids = (MASK, UNKNOWN, END)

    def __init__(self, vocabulary):
        self.vocabulary = list(vocabulary)
        self._ids = {text: token for token, text in enumerate(self.vocabulary)}
        self._encode_piece = functools.lru_cache(maxsize=None)(self._joined)

    def __call__(self, text, add_special_tokens=True):
        ids = [END] if add_special_tokens else []
        for piece in _PIECES.findall(typed(text)):
            ids += self._encode_piece(piece)
        return {"input_ids": ids}

    def convert_ids_to_tokens(self, ids):
        return [self.vocabulary[token] for token in ids]

    def decode(self, ids):
        return "".join(self.convert_ids_to_tokens(ids))

    def _joined(self, piece):
        """The ids of one piece: of all neighbours that can be joined, those that stand first in the vocabulary are next."""
        parts = list(piece)
        while True:
            pairs = [(self._ids.get(one + two), k) for k, (one, two) in enumerate(zip(parts, parts[1:]))]
            first = min((pair for pair in pairs if pair[0] is not None), default=None)
            if first is None:
                return [self._ids.get(part, UNKNOWN) for part in parts]
            k = first[1]
            parts[k : k + 2] = [parts[k] + parts[k + 1]]


def typed(text):
    """The text with the signs of a keyboard."""
    return text.translate(_TYPED)


def learn_vocabulary(texts, size):
    """Byte pair encoding: the characters of texts, then again and again the most frequent pair of neighbours, joined."""
    words = collections.Counter(piece for text in texts for piece in _PIECES.findall(text))
    parts = {word: list(word) for word in words}
    vocabulary = [*SPECIAL, *sorted(set("".join(words)))]
    pairs = collections.Counter()
    holders = collections.defaultdict(set)

    def count(word, sign):
        for pair in zip(parts[word], parts[word][1:]):
            pairs[pair] += sign * words[word]
            holders[pair].add(word)

    for word in words:
        count(word, 1)
    while len(vocabulary) < size:
        # Ties of counts are broken by the texts, so that the order is fixed.
        one, two = max(pairs, key=lambda pair: (pairs[pair], pair))
        vocabulary.append(one + two)
        for word in holders.pop((one, two)):
            count(word, -1)
            old, new = parts[word], []
            for part in old:
                if new and new[-1] == one and part == two:
                    new[-1] = one + two
                else:
                    new.append(part)
            parts[word] = new
            count(word, 1)
        del pairs[one, two]
    return vocabulary
