"""The example model that speaks: what it was measured to do, its tokenizer, and its contributions, from each of its files."""

import json
import math
import re
import sys
import unittest

import numpy as np
import torch

import addend

sys.path.insert(0, "docs/examples/models")
from tokenizer import END, MASK, UNKNOWN, Tokenizer, learn_vocabulary  # noqa: E402

FOLDER = "docs/examples/models/speaker/"
PROMPTS = ["The king said to his servants,", "Jesus answered them,", "Yahweh's word came to", "Then the priest"]


def words(text):
    return re.findall(r"[a-z]+", text.lower())


class SpeakerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.sample = addend.read_tensors(FOLDER + "sample.safetensors")
        cls.held_out = addend.read_tensors(FOLDER + "heldout.safetensors")
        cls.vocabulary = json.loads(cls.sample.metadata("vocabulary"))
        cls.tokenizer = Tokenizer(cls.vocabulary)
        cls.prompt = cls.sample.metadata("text")
        cls.network = torch.jit.load(FOLDER + "model.pt").double().eval()

    def logits(self, ids):
        with torch.no_grad():
            return self.network(torch.tensor([ids]))[0]

    def test_the_tokenizer(self):
        (ids,) = self.sample["input"].tolist()
        self.assertEqual(self.tokenizer(self.prompt)["input_ids"], ids)
        self.assertEqual(self.tokenizer(self.prompt, add_special_tokens=False)["input_ids"], ids[1:])
        self.assertEqual(self.tokenizer.decode(ids), "[end]" + self.prompt)
        text = 'He said, "Don\'t go to Nineveh," 3 times; but Jonah went.'
        ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        self.assertEqual(self.tokenizer.decode(ids), text)
        self.assertLess(len(ids), len(text) / 2)
        self.assertEqual(self.tokenizer("\u201cDon\u2019t\u201d")["input_ids"], self.tokenizer('"Don\'t"')["input_ids"])
        self.assertEqual(self.tokenizer("\u0416", add_special_tokens=False)["input_ids"], [UNKNOWN])

    def test_every_token_joins_two_before_it(self):
        self.assertEqual(len(set(self.vocabulary)), len(self.vocabulary))
        before = set()
        for text in self.vocabulary[3:]:
            if len(text) > 1:
                self.assertTrue(any(text[:k] in before and text[k:] in before for k in range(1, len(text))), text)
            before.add(text)

    def test_a_vocabulary_is_learned_by_joining_the_most_frequent_pair(self):
        # "ab" 4 times, then "ab" + "c" 3 times, then "xy" twice, then one of those that there are once.
        found = learn_vocabulary(["abc abc", "abc ab", "xy xy"], 13)
        self.assertEqual(found, ["[mask]", "[unknown]", "[end]", " ", "a", "b", "c", "x", "y", "ab", "abc", "xy", " xy"])

    def test_the_numbers_of_its_page(self):
        with open(FOLDER + "metrics.json", encoding="utf-8") as file:
            metrics = json.load(file)
        inputs = torch.tensor(self.held_out["input"].tolist())
        last = torch.tensor(self.held_out["label"].tolist())
        labels = torch.cat([inputs[:, 1:], last[:, None]], 1)
        with torch.no_grad():
            rows = torch.cat([self.network(part) for part in inputs.split(4)]).log_softmax(-1)
        nats = -rows.gather(-1, labels[..., None]).sum().item()
        size = sum(1 if one == END else len(self.vocabulary[one].encode()) for one in labels.flatten().tolist())
        self.assertAlmostEqual(nats / math.log(2) / size, metrics["bits_per_byte"], delta=1e-4)
        self.assertAlmostEqual(math.exp(nats / labels.numel()), metrics["perplexity"], delta=1e-3)
        self.assertEqual(sum(one.numel() for one in self.network.parameters()), metrics["parameters"])
        self.assertEqual(len(inputs), metrics["samples"])

    def test_it_goes_on_with_words(self):
        """Text that was not trained on has nearly all the words that it says, and it says different ones."""
        known = set(words(" ".join(self.tokenizer.decode(row) for row in self.held_out["input"].tolist())))
        model = addend.load_model(FOLDER + "model.pt")
        said = []
        for prompt in PROMPTS:
            found = addend.lm.attribute(model, prompt, tokenizer=self.tokenizer, max_new_tokens=16)
            said += words("".join(found.continuation_tokens).replace("[end]", ""))
        self.assertGreater(len(said), 30)
        self.assertGreater(len(set(said)), 15)
        self.assertGreater(sum(word in known for word in said) / len(said), 0.8, said)

    def test_the_sample_in_each_file(self):
        spoken = self.sample.metadata("continuation")
        for name in ("model.pt", "model.pt2"):
            with self.subTest(file=name):
                model = addend.load_model(FOLDER + name)
                found = addend.lm.attribute(model, self.prompt, tokenizer=self.tokenizer, max_new_tokens=24)
                self.assertEqual("".join(found.continuation_tokens), spoken)
                self.assertEqual(found.continuation_ids[:1], self.sample["label"].tolist())
                # Float32: the parts are computed in it, and so is what they have to sum to.
                sums = found.matrix.sum(1) + found.references + found.leftovers
                np.testing.assert_allclose(sums, found.values, rtol=0, atol=1e-4)
                self.assertLess(max(map(abs, found.leftovers)), 1e-4)
                self.assertEqual(found.baseline, [one if one == END else MASK for one in found.ids])

    def test_contributions_sum_to_what_torch_computes(self):
        model = addend.load_model(FOLDER + "model.pt2", dtype="float64")
        found = addend.lm.attribute(model, self.prompt, tokenizer=self.tokenizer, max_new_tokens=24)
        first = found.prompt_length
        places = [(first + k - 1, one) for k, one in enumerate(found.continuation_ids)]
        value, reference = self.logits(found.ids).log_softmax(-1), self.logits(found.baseline).log_softmax(-1)
        np.testing.assert_allclose(found.values, [value[p, one].item() for p, one in places], rtol=0, atol=1e-9)
        np.testing.assert_allclose(found.references, [reference[p, one].item() for p, one in places], rtol=0, atol=1e-9)
        sums = found.matrix.sum(1) + found.references + found.leftovers
        np.testing.assert_allclose(sums, found.values, rtol=0, atol=1e-9)
        self.assertLess(max(map(abs, found.leftovers)), 1e-9)

    def test_the_model_misses_what_contributed_most(self):
        """Without the token that contributed most, what was said is less likely than without the one that contributed least."""
        model = addend.load_model(FOLDER + "model.pt2")
        lower = rows = 0
        for prompt in [self.prompt, *PROMPTS]:
            found = addend.lm.attribute(model, prompt, tokenizer=self.tokenizer, max_new_tokens=8)
            for k, row in enumerate(found.matrix):
                end = found.prompt_length + k
                order = sorted(range(1, end), key=lambda one: row[one])
                without = []
                for one in (order[-1], min(order, key=lambda own: abs(row[own]))):
                    ids = found.ids[:one] + [MASK] + found.ids[one + 1 : end]
                    without.append(self.logits(ids)[-1].log_softmax(-1)[found.ids[end]].item())
                lower += without[0] < without[1]
                rows += 1
        self.assertGreater(lower / rows, 0.85)


if __name__ == "__main__":
    unittest.main()
