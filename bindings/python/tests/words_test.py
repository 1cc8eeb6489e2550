"""Words of what tokenizers return. The classes here have the methods and items of those of Hugging Face."""

import collections
import re
import unittest

import numpy as np
import torch
from torch import nn

import addend


class Encoding:
    """One example, as ``tokenizers.Encoding`` has it: attributes."""

    def __init__(self, tokens, word_ids, offsets, sequence_ids=None):
        self.tokens = tokens
        self.ids = [sum(map(ord, token)) % 29 for token in tokens]
        self.word_ids = word_ids
        self.offsets = offsets
        self.sequence_ids = sequence_ids or [None if word is None else 0 for word in word_ids]


class BatchEncoding(collections.UserDict):
    """A batch, as ``transformers.BatchEncoding`` has it: a mapping of tensors or lists, attributes for its items, methods
    for the rest."""

    def __init__(self, encodings, data):
        super().__init__(data)
        self._encodings = encodings

    def __getitem__(self, item):
        return self.data[item] if isinstance(item, str) else self._encodings[item]

    def __getattr__(self, item):
        try:
            return self.data[item]
        except KeyError:
            raise AttributeError(item)

    def __getstate__(self):
        return {"data": self.data, "encodings": self._encodings}

    def __setstate__(self, state):
        self.data, self._encodings = state["data"], state["encodings"]

    def keys(self):
        return self.data.keys()

    def values(self):
        return self.data.values()

    def items(self):
        return self.data.items()

    @property
    def encodings(self):
        return self._encodings

    def tokens(self, batch_index=0):
        return self._encodings[batch_index].tokens

    def word_ids(self, batch_index=0):
        return self._encodings[batch_index].word_ids

    def sequence_ids(self, batch_index=0):
        return self._encodings[batch_index].sequence_ids


def pieces(text, length=4):
    """Words in pieces of so many letters, between special tokens: an `Encoding`."""
    tokens, word_ids, offsets = ["[CLS]"], [None], [(0, 0)]
    for number, word in enumerate(re.finditer(r"\S+", text)):
        for begin in range(word.start(), word.end(), length):
            end = min(begin + length, word.end())
            tokens.append(("##" if begin > word.start() else "") + text[begin:end].lower())
            word_ids.append(number)
            offsets.append((begin, end))
    return Encoding(tokens + ["[SEP]"], word_ids + [None], offsets + [(0, 0)])


def padded(encodings):
    longest = max(len(one.tokens) for one in encodings)
    for one in encodings:
        missing = longest - len(one.tokens)
        one.tokens += ["[PAD]"] * missing
        one.ids += [0] * missing
        one.word_ids += [None] * missing
        one.sequence_ids += [None] * missing
        one.offsets += [(0, 0)] * missing
    return encodings


def batch(*texts):
    encodings = padded([pieces(text) for text in texts])
    ids = torch.tensor([one.ids for one in encodings])
    return BatchEncoding(encodings, {"input_ids": ids, "attention_mask": (ids > 0).long()})


TEXT = "Tokenizers cut words"
NAMES = ["Tokenizers", "cut", "words"]


class WordsTest(unittest.TestCase):
    def test_of_a_batch_of_one(self):
        words = addend.words(batch(TEXT), TEXT)
        self.assertEqual(words.labels, [[-1, 0, 0, 0, 1, 2, 2, -1]])
        self.assertEqual(words.names, NAMES)
        # Without the text, tokens are put together as they are spelled.
        self.assertEqual(addend.words(batch(TEXT)), (words.labels, ["tokenizers", "cut", "words"]))

    def test_words_of_a_batch_are_counted_on(self):
        texts = [TEXT, "Others too"]
        words = addend.words(batch(*texts), texts)
        self.assertEqual(words.labels, [[-1, 0, 0, 0, 1, 2, 2, -1], [-1, 3, 3, 4, -1, -1, -1, -1]])
        self.assertEqual(words.names, NAMES + ["Others", "too"])
        with self.assertRaisesRegex(ValueError, "1 texts for 2 examples"):
            addend.words(batch(*texts), TEXT)

    def test_of_lists_and_of_an_example_alone(self):
        encoding = pieces(TEXT)
        flat = [-1, 0, 0, 0, 1, 2, 2, -1]
        self.assertEqual(addend.words(encoding, TEXT), (flat, NAMES))
        self.assertEqual(addend.words(BatchEncoding([encoding], {"input_ids": encoding.ids}), TEXT), (flat, NAMES))
        ragged = [pieces(TEXT), pieces("one")]
        lists = BatchEncoding(ragged, {"input_ids": [one.ids for one in ragged]})
        self.assertEqual(addend.words(lists, [TEXT, "one"]), ([flat, [-1, 3, -1]], NAMES + ["one"]))

    def test_both_texts_of_a_pair(self):
        one, two = pieces("who cuts"), pieces(TEXT)
        pair = Encoding(
            one.tokens + two.tokens[1:], one.word_ids + two.word_ids[1:], one.offsets + two.offsets[1:],
            [None, 0, 0, None] + [1] * 6 + [None],
        )
        words = addend.words(BatchEncoding([pair], {"input_ids": torch.tensor([pair.ids])}), ("who cuts", TEXT))
        self.assertEqual(words.labels, [[-1, 0, 1, -1, 2, 2, 2, 3, 4, 4, -1]])
        self.assertEqual(words.names, ["who", "cuts"] + NAMES)

    def test_marks_of_tokenizers(self):
        for tokens, name in (
            (["\u0120Ad", "dend"], "Addend"), (["\u2581Ad", "dend"], "Addend"), (["ad", "##dend"], "addend"),
            (["ad", "dend</w>"], "addend"), (["Ad@@", "dend"], "Addend"),
        ):
            encoding = Encoding(tokens, [0, 0], [(0, 2), (2, 6)])
            self.assertEqual(addend.words(encoding).names, [name])

    def test_offsets_and_a_text_are_enough(self):
        encoding = pieces(TEXT)
        spaced = [(max(0, start - 1), end) if start else (start, end) for start, end in encoding.offsets]
        for offsets in (encoding.offsets, spaced, torch.tensor([encoding.offsets])):
            batched = isinstance(offsets, torch.Tensor)
            ids = torch.tensor([encoding.ids]) if batched else encoding.ids
            words = addend.words({"input_ids": ids, "offset_mapping": offsets}, TEXT)
            labels = words.labels[0] if batched else words.labels
            self.assertEqual((labels, words.names), ([-1, 0, 0, 0, 1, 2, 2, -1], NAMES))
        for given in ({"input_ids": [[1, 2]]}, "text", {"input_ids": [1], "offset_mapping": [(0, 1)]}):
            with self.assertRaisesRegex(TypeError, r"takes what a fast tokenizer returns, which has word_ids\(\)"):
                addend.words(given)


class Output(collections.OrderedDict):
    """An output as transformers has it: a dict whose items are attributes."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name)


class Classifier(nn.Module):
    """Takes and gives what models of transformers do."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(29, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, input_ids=None, attention_mask=None, return_dict=True):
        mask = attention_mask[..., None].to(self.embedding.weight.dtype)
        hidden = torch.tanh(self.embedding(input_ids)) * mask
        return Output(logits=self.head(hidden.sum(1) / mask.sum(1)), hidden_states=(hidden,))


class Takes(nn.Module):
    """Takes the whole batch as one argument."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, batch):
        return self.model(**batch)


class BatchEncodingTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(4)
        self.model = Classifier().eval()
        self.encoding = batch(TEXT)
        self.words = addend.words(self.encoding, TEXT)

    def split(self):
        encoding = self.encoding.copy()
        words = self.words
        encoding["input_ids"] = addend.Input(
            encoding["input_ids"], labels=words.labels, names=words.names, baseline=28
        )
        return encoding

    def test_as_arguments_by_name_and_as_one(self):
        explained = addend.compile(self.model).explain(**self.split(), targets=1)[0]
        self.assertEqual(explained.names, NAMES)
        with torch.no_grad():
            value = self.model(**self.encoding).logits[0, 1].item()
        self.assertAlmostEqual(explained.value, value, places=5)
        special = self.encoding["input_ids"].clone()
        special[0, 1:-1] = 28  # special tokens stay as they are
        with torch.no_grad():
            reference = self.model(special, self.encoding["attention_mask"]).logits[0, 1].item()
        self.assertAlmostEqual(explained.reference, reference, places=5)
        self.assertAlmostEqual(sum(explained.contributions), value - reference, places=5)

        whole = addend.compile(Takes(self.model))
        given = self.split()
        self.assertEqual(whole.explain(given, targets=1)[0], explained)
        self.assertIsInstance(given["input_ids"], addend.Input)  # what the caller has stays as it was
        output = whole(given)
        self.assertIsInstance(output, Output)
        self.assertIsInstance(output.logits, addend.Composition)
        np.testing.assert_allclose(output.logits.recovery, self.model(**self.encoding).logits.detach(), rtol=1e-5)

    def test_as_inputs_of_attribute_and_of_programs(self):
        inputs = self.encoding.copy()
        inputs["attention_mask"] = addend.Input(inputs["attention_mask"])
        found = addend.attribute(self.model, inputs, {"input_ids": 28}, target=1, at="output.logits")
        self.assertEqual(list(found), ["input_ids", "attention_mask"])
        self.assertEqual(found["input_ids"].shape, self.encoding["input_ids"].shape)
        self.assertIsNone(found["attention_mask"])
        traced = addend.compile(self.model)
        program = traced.record(**self.encoding)
        value = self.model(**self.encoding).logits.detach()
        torch.testing.assert_close(program.replay(self.encoding)[0].torch(), value)
        explained = program.model().explain(self.split(), targets=(0, 1))[0]
        expected = traced.explain(**self.split(), targets=(0, 1), at="output.logits")[0]
        np.testing.assert_allclose(explained.contributions, expected.contributions, rtol=1e-4, atol=1e-6)
        others = [batch("a longer text than the first one"), batch("another one of some words")]
        longer = traced.record(**self.encoding, others=others)
        other = batch("what nobody has recorded before")
        torch.testing.assert_close(longer.replay(other)[0].torch(), self.model(**other).logits.detach())


if __name__ == "__main__":
    unittest.main()
