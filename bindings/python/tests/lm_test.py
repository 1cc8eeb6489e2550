"""Attributions of language models per generated token: sums, causality, groups, baselines, the page."""

import base64
import copy
import json
import os
import pickle
import re
import struct
import subprocess
import sys
import tempfile
import types
import unittest

import numpy as np
import torch
from torch import nn

import addend

VOCABULARY = 40
PAD, BOS, EOS = 0, 1, 2
PROMPT = [BOS, 7, 12, 31, 5, 22]


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(1 + 0.1 * torch.randn(width))

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


class Layer(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads = heads
        self.scale = (width // heads) ** -0.5
        self.causal = causal
        self.norm = Norm(width)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.mlp_norm = Norm(width)
        self.gate, self.up = nn.Linear(width, 2 * width, bias=False), nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)

    def forward(self, x):
        h = self.norm(x)
        shape = (h.shape[0], h.shape[1], self.heads, -1)
        q, k, v = (layer(h).view(shape).transpose(1, 2) for layer in (self.query, self.key, self.value))
        scores = q @ k.transpose(-1, -2) * self.scale
        if self.causal:
            later = torch.ones(h.shape[1], h.shape[1], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(later, float("-inf"))
        x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(x.shape))
        h = self.mlp_norm(x)
        return x + self.down(nn.functional.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    """In the shape of a Llama, small, with random weights in double precision."""

    def __init__(self, causal=True, layer=Layer, norm=Norm):
        super().__init__()
        torch.manual_seed(3)
        self.embed = nn.Embedding(VOCABULARY, 16)
        self.layers = nn.ModuleList([layer(16, 2, causal) for _ in range(2)])
        self.norm = norm(16)
        self.head = nn.Linear(16, VOCABULARY, bias=False)
        self.double().eval()

    def forward(self, input_ids):
        x = self.embed(input_ids)
        for layer in self.layers:
            x = layer(x)
        return 4 * self.head(self.norm(x))


class WithOutput(nn.Module):
    """Returns an object with logits, and has a cache that must not be used."""

    def __init__(self, kind):
        super().__init__()
        self.model = Llama()
        self.kind = kind
        self.caches = []

    def forward(self, input_ids, attention_mask=None, use_cache=True):
        assert attention_mask.tolist() == [[1] * input_ids.shape[1]]
        self.caches.append(use_cache)
        return self.kind(logits=self.model(input_ids))

    def generate(self, ids, max_new_tokens, do_sample, attention_mask, num_return_sequences=1, before=()):
        assert do_sample is False and attention_mask.tolist() == [[1] * ids.shape[1]]
        made = torch.cat([torch.tensor([before], dtype=torch.long), ids, torch.full((1, max_new_tokens), 9)], 1)
        return made.expand(num_return_sequences, -1)


class LastLogits(nn.Module):
    """Computes the logits of the last positions only where it is asked to."""

    def __init__(self):
        super().__init__()
        self.model = Llama()
        self.asked = []

    def forward(self, input_ids, logits_to_keep=0):
        self.asked.append(logits_to_keep)
        return self.model(input_ids)[:, -logits_to_keep:]


class Scaled(Layer):
    """Passes on something else than the sum of what its blocks return."""

    def forward(self, x):
        return x + 0.5 * (super().forward(x) - x)


class PostNorm(Layer):
    """A layer as in the first Transformers: a norm behind the sum."""

    def forward(self, x):
        return self.norm(super().forward(x))


class Shared(Llama):
    """Both layers have the same block."""

    class Layer(nn.Module):
        def __init__(self, block):
            super().__init__()
            self.block = block

        def forward(self, x):
            return x + self.block(x)

    def __init__(self):
        super().__init__()
        block = nn.Linear(16, 16).double()
        self.layers = nn.ModuleList([self.Layer(block), self.Layer(block)])


class Translator(nn.Module):
    """An encoder-decoder: its encoder reads what no mask leaves out, and its decoder also what stands before.

    Attributes:
        shapes: of the sources of its calls.
    """

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.read, self.write = nn.Embedding(VOCABULARY, 8), nn.Embedding(VOCABULARY, 8)
        self.query, self.key = nn.Linear(8, 8), nn.Linear(8, 8)
        self.mix, self.head = nn.Linear(8, 8), nn.Linear(8, VOCABULARY)
        self.double().eval()
        self.shapes = []

    def forward(self, input_ids, attention_mask=None, decoder_input_ids=None):
        self.shapes.append(tuple(input_ids.shape))
        places = torch.arange(input_ids.shape[1]).double()[:, None].sin()
        source = self.read(input_ids) + places
        written = torch.tanh(self.mix(self.write(decoder_input_ids).cumsum(1)))
        scores = self.query(written) @ self.key(source).transpose(1, 2)
        if attention_mask is not None:
            scores = scores.masked_fill(attention_mask[:, None] == 0, float("-inf"))
        return self.head(scores.softmax(-1) @ source + written)


class Skips(Llama):
    """Its head reads the embeddings beside what the last layer passes on."""

    def forward(self, input_ids):
        return super().forward(input_ids) + self.head(self.embed(input_ids))


class Words:
    """A tokenizer in the manner of transformers: each id is a word, marked where a space stands before it."""

    pad_token_id, bos_token_id, eos_token_id, unk_token_id = PAD, BOS, EOS, None
    all_special_ids = [PAD, BOS, EOS]

    def __init__(self):
        self.pieces = ["<pad>", "<s>", "</s>"]
        self.pieces += [("" if k % 3 == 1 else "\u0120") + "w%d" % k for k in range(3, VOCABULARY)]
        self.pieces[22] = "\u0120<script>alert(1)</script>"
        self.pieces[31] = "\u0120&\"'"

    def __call__(self, text, add_special_tokens=True):
        ids = [self.pieces.index("\u0120" + word) for word in text.split()]
        ids = ([BOS] if add_special_tokens else []) + ids
        return {"input_ids": ids, "attention_mask": [1] * len(ids)}

    def convert_ids_to_tokens(self, ids):
        return [self.pieces[k] for k in ids]

    def decode(self, ids):
        return "".join(self.pieces[k] for k in ids).replace("\u0120", " ").strip()

    def apply_chat_template(self, messages, add_generation_prompt, tokenize):
        ids = [BOS]
        for message in messages:
            ids += [30, *self(message["content"], False)["input_ids"], EOS]
        return {"input_ids": [ids + [33] * add_generation_prompt]}


def log_softmax(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids]))[0].log_softmax(-1)


class LmTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = Llama()
        cls.continuation = [9, 17, 4, 28]
        cls.ids = PROMPT + cls.continuation
        cls.first = len(PROMPT)

    def attribute(self, **options):
        options.setdefault("baseline", PAD)
        options.setdefault("continuation", self.continuation)
        return addend.lm.attribute(options.pop("model", self.model), options.pop("prompt", PROMPT), **options)

    def assert_adds(self, found):
        total = found.matrix.sum(1) + found.references + found.leftovers
        np.testing.assert_allclose(total, found.values, rtol=0, atol=1e-10)
        self.assertLess(max(map(abs, found.leftovers)), 1e-9)
        self.assertLess(max(map(abs, found.recovery_errors)), 1e-10)

    def assert_same(self, found, expected, but=()):
        """Compares two attributions up to rounding."""
        self.assert_adds(found)
        one, two = found.to_dict(), expected.to_dict()
        numbers = ("matrix", "values", "references")
        for key in numbers:
            np.testing.assert_allclose(one[key], two[key], rtol=0, atol=1e-12)
        for key in one.keys() - {*numbers, "leftovers", "recovery_errors", "conditionings", "report", *but}:
            self.assertEqual(one[key], two[key], key)

    def test_rows_add_up_to_what_torch_computes(self):
        value, reference = log_softmax(self.model, self.ids), log_softmax(self.model, [PAD] * len(self.ids))
        places = [(self.first + k - 1, one) for k, one in enumerate(self.continuation)]

        def entropy(rows):
            return [-(rows[p].exp() * rows[p]).sum().item() for p, _ in places]

        expected = {
            "log_probability": [[rows[p, one].item() for p, one in places] for rows in (value, reference)],
            "probability": [[rows[p, one].exp().item() for p, one in places] for rows in (value, reference)],
            "entropy": [entropy(value), entropy(reference)],
        }
        for target, (values, references) in expected.items():
            with self.subTest(target=target):
                found = self.attribute(target=target)
                self.assertEqual(found.matrix.shape, (4, len(self.ids)))
                self.assertEqual(found.matrix.dtype, np.float64)
                np.testing.assert_allclose(found.values, values, rtol=0, atol=1e-12)
                np.testing.assert_allclose(found.references, references, rtol=0, atol=1e-12)
                self.assert_adds(found)
        self.assertEqual(found.tokens, [str(one) for one in self.ids])
        self.assertEqual(found.continuation_tokens, [str(one) for one in self.continuation])

    def test_tokens_behind_contribute_nothing(self):
        for options in ({}, {"target": "entropy"}, {"span": "all"}, {"span": [slice(0, 2)]}):
            found = self.attribute(**options)
            for row, span in enumerate(found.spans):
                end = self.first + max(span)
                self.assertTrue((found.matrix[row, end:] == 0).all())
                self.assertTrue((found.matrix[row, :end] != 0).all())

    def test_a_model_that_is_not_causal_is_refused(self):
        with self.assertRaisesRegex(ValueError, "not causal: token 6 or one behind it contributed"):
            self.attribute(model=Llama(causal=False))

    def test_a_span_is_the_sum_of_its_rows(self):
        rows = self.attribute()
        found = self.attribute(span="all")
        self.assertEqual(found.targets, ["continuation:9,17,4,28"])
        np.testing.assert_allclose(found.matrix[0], rows.matrix.sum(0), rtol=0, atol=1e-10)
        np.testing.assert_allclose(found.values[0], sum(rows.values), rtol=0, atol=1e-12)
        self.assert_adds(found)
        for target in ("log_probability", "logit", (None, 3), "entropy"):
            rows = self.attribute(target=target)
            found = self.attribute(target=target, span=[slice(1, 3), slice(3, None), slice(None)])
            expected = [rows.matrix[1:3].sum(0), rows.matrix[3], rows.matrix.sum(0)]
            np.testing.assert_allclose(found.matrix, expected, rtol=0, atol=1e-10)
            self.assertEqual(found.rows, ["174", "28", "917428"])

    def test_a_contrast_is_the_difference_of_logits(self):
        logits = self.attribute(target="logit")
        this = addend.lm.attribute(self.model, PROMPT, [11], baseline=PAD, target="logit")
        np.testing.assert_allclose(
            self.attribute(target=(None, 11)).matrix[0, : self.first],
            (logits.matrix[0] - np.append(this.matrix[0], [0] * 3))[: self.first],
            rtol=0,
            atol=1e-10,
        )
        by_ids = self.attribute(target=(self.continuation, [11, 3, 4, 5]))
        self.assertEqual(by_ids.targets[1], "-4,17--4,3")
        np.testing.assert_array_equal(by_ids.matrix[2], np.zeros(len(self.ids)))  # a token minus itself
        log = self.attribute()
        one = self.attribute(target=(None, 11), span=slice(0, 1))
        with torch.no_grad():
            value = self.model(torch.tensor([self.ids]))[0, self.first - 1]
        self.assertAlmostEqual(one.values[0], (value[9] - value[11]).item(), delta=1e-12)
        self.assertNotAlmostEqual(log.values[0], one.values[0])
        self.assert_adds(by_ids)

    def test_a_memory_limit_and_several_runs(self):
        found = self.attribute()
        limited = self.attribute(memory=20000)
        self.assertTrue(np.array_equal(found.matrix, limited.matrix))
        self.assertEqual(found.values, limited.values)
        self.assertEqual(found.leftovers, limited.leftovers)
        for rows in (1, 3):
            several = self.attribute(rows_per_run=rows)
            np.testing.assert_allclose(several.matrix, found.matrix, rtol=0, atol=1e-12)
            self.assertEqual(several.targets, found.targets)
            self.assertEqual(several.values, found.values)

    def test_layers_add_up_to_the_same_number(self):
        plain = self.attribute()
        self.assertIsNone(plain.layers)
        for options in ({}, {"target": "entropy"}, {"span": "all"}, {"target": (None, 3)}, {"rows_per_run": 3}):
            with self.subTest(options=options):
                found = self.attribute(layers=True, **options)
                layers = found.layers
                np.testing.assert_array_equal(found.matrix, self.attribute(**options).matrix)
                self.assertEqual(
                    layers.names, ["embeddings", "layers.0.out", "layers.0.down", "layers.1.out", "layers.1.down"]
                )
                self.assertEqual((layers.matrix.shape, layers.matrix.dtype), ((len(found.rows), 5), np.float64))
                total = layers.matrix.sum(1) + found.references + layers.leftovers
                np.testing.assert_allclose(total, found.values, rtol=0, atol=1e-12)
                self.assertLess(max(map(abs, layers.leftovers)), 1e-10)
        hooks = [own for module in self.model.modules() for own in (module._forward_hooks, module._forward_pre_hooks)]
        self.assertFalse(any(hooks))

    def test_layers_in_front_of_a_linear_head_give_their_products_with_it(self):
        model = Llama(norm=lambda width: nn.Identity())
        found = self.attribute(model=model, layers=True, target="logit")
        blocks = [block for layer in model.layers for block in (layer.out, layer.down)]

        def outputs(ids):
            noted = []
            hooks = [block.register_forward_hook(lambda _, __, output: noted.append(output[0])) for block in blocks]
            model(torch.tensor([ids]))
            for hook in hooks:
                hook.remove()
            return torch.stack([model.embed(torch.tensor(ids)), *noted])

        with torch.no_grad():
            moves = outputs(self.ids) - outputs([PAD] * len(self.ids))
            for row, one in enumerate(self.continuation):
                expected = 4 * moves[:, self.first + row - 1] @ model.head.weight[one]
                np.testing.assert_allclose(found.layers.matrix[row], expected, rtol=0, atol=1e-12)

    def test_the_last_block_gives_what_passes_through_it(self):
        found = self.attribute(layers=True, target="logit")
        ids = addend.Input(torch.tensor([self.ids]), dims=1, baseline=PAD)
        targets = ["%d,%d" % (self.first + row - 1, one) for row, one in enumerate(self.continuation)]
        passed = addend.compile(self.model, preset="faithful").explain(ids, targets=targets, operators=True)
        last = [one for one in passed.operators if one["module_path"] == "layers.1.down"][-1]
        np.testing.assert_allclose(found.layers.matrix[:, -1], last["passed"], rtol=0, atol=1e-12)
        first = [one for one in passed.operators if one["module_path"] == "layers.0.down"][-1]
        self.assertGreater(abs(found.layers.matrix[:, 2] - first["passed"]).max(), 0.01)  # it is read by later layers too

    def test_layers_are_printed_and_kept(self):
        found = self.attribute(layers=True)
        self.assertEqual(pickle.loads(pickle.dumps(found)), found)
        self.assertNotEqual(found, self.attribute())
        self.assertEqual(found.by("words").layers, found.layers)
        self.assertEqual(pickle.loads(pickle.dumps(found.layers)), found.layers)
        self.assertEqual(len({found.layers, copy.deepcopy(found.layers)}), 1)
        self.assertNotEqual(self.attribute(layers=True, target="logit").layers, found.layers)
        best = int(np.abs(found.layers.matrix[1]).argmax())
        self.assertEqual(found.layers.top(1, 1), [(best, found.layers.names[best], found.layers.matrix[1, best])])
        with self.assertRaises(IndexError):
            found.layers.top(4)
        lines = str(found).split("\n")
        self.assertLessEqual(max(map(len, lines)), 80)
        said = found.layers.top(0, 1)[0]
        self.assertEqual(said.name, "layers.1.out")
        self.assertIn("  0  9                 1.out %+.3g, " % said.value, str(found))
        self.assertEqual(json.loads(json.dumps(found.to_dict()))["layers"]["names"], found.layers.names)

    def test_layers_that_do_not_add_up_are_refused(self):
        cases = [
            (Llama(layer=Scaled), "layer layers.0 passes on something else .*norm, query, key, value, out"),
            (Llama(layer=PostNorm), "layer layers.0 passes on something else"),
            (Shared(), "layers.0.block runs several times"),
            (Skips(), "what stands behind the layers gives .* for row 0 where the model gives"),
            (lambda ids: self.model(ids), "needs a live torch.nn.Module"),
            (nn.Sequential(nn.Embedding(VOCABULARY, 8), nn.Linear(8, VOCABULARY)), "ModuleList, and run once each"),
            (addend.compile(self.model).record(torch.tensor([self.ids])), "needs a live torch.nn.Module"),
        ]
        for model, says in cases:
            with self.subTest(says=says), self.assertRaisesRegex(ValueError, says):
                self.attribute(model=model, layers=True)

    def test_layers_in_half_precision(self):
        model = Llama().bfloat16()
        found = self.attribute(model=model, layers=True)
        total = found.layers.matrix.sum(1) + found.references + found.layers.leftovers
        np.testing.assert_allclose(total, found.values, rtol=0, atol=1e-4)

    def test_groups_sum_their_tokens(self):
        spans = [("a", slice(0, 3)), ("b", [3, 5]), ("c", slice(7, 9))]
        found = self.attribute(groups=spans)
        matrix = found.matrix
        self.assertEqual(
            [group.name for group in found.groups], ["a", "b", "c", "other tokens of the prompt", "other generated tokens"]
        )
        expected = [matrix[:, k].sum(1) for k in ([0, 1, 2], [3, 5], [7, 8], [4], [6, 9])]
        np.testing.assert_allclose(found.group_matrix, np.stack(expected, 1), rtol=0, atol=1e-14)
        np.testing.assert_allclose(found.group_matrix.sum(1), matrix.sum(1), rtol=0, atol=1e-13)
        best = int(np.abs(found.group_matrix[0]).argmax())
        self.assertEqual(found.top(0, 1)[0], (best, found.groups[best].name, found.group_matrix[0, best]))
        self.assertEqual(found.by(None).group_matrix.shape, matrix.shape)
        self.assertEqual(found.by(found.groups), found)
        for wrong, says in (
            ([("a", slice(0, 2)), ("b", slice(1, 3))], "in two groups"),
            ([("a", slice(5, 5))], "no token"),
            ("sentences", '"words"'),
            ("turns", "messages"),
        ):
            with self.assertRaisesRegex(ValueError, says):
                self.attribute(groups=wrong)
        with self.assertRaises(IndexError):
            self.attribute(groups=[("a", [99])])

    def test_words_and_special_tokens(self):
        found = addend.lm.attribute(
            self.model, "w5 <script>alert(1)</script> &\"'", [7, 9, 8], Words(), groups="words"
        )
        self.assertEqual(found.ids, [BOS, 5, 22, 31, 7, 9, 8])
        self.assertEqual(found.tokens, ["<s>", " w5", " <script>alert(1)</script>", " &\"'", "w7", " w9", " w8"])
        self.assertEqual(found.kept, [0])
        self.assertEqual(found.names[0], "<s> (kept)")
        self.assertTrue((found.matrix[:, 0] == 0).all())
        self.assertEqual(found.baseline, [BOS] + [PAD] * 6)
        self.assertEqual(found.baseline_name, "<pad> (0)")
        # A generated token begins a group of its own, also where no space stands before it.
        self.assertEqual([group.positions for group in found.groups], [(0,), (1,), (2,), (3,), (4,), (5,), (6,)])
        joined = addend.lm.attribute(self.model, [5, 7, 9, 10], " w11 w8", Words(), groups="words")
        self.assertEqual([group.name for group in joined.groups], ["w5w7", "w9w10", "w11", "w8"])
        self.assertEqual(joined.kept, [])
        # Tokens that are the same on the baseline belong to their words, special ones to none.
        same = addend.lm.attribute(self.model, [BOS, 5, 7, 9], [10], Words(), groups="words", baseline=7)
        self.assertEqual((same.kept, same.special), ([0, 2], [0]))
        self.assertEqual(same.by("words").groups, same.groups)
        everything = addend.lm.attribute(self.model, PROMPT, [9], Words(), keep=None)
        self.assertNotEqual(everything.matrix[0, 0], 0)
        some = addend.lm.attribute(self.model, PROMPT, [9], Words(), keep=[0, 3, -1])
        self.assertEqual(some.kept, [0, 3, 6])

    def test_chats(self):
        messages = [{"role": "user", "content": "w5 w8"}, {"role": "assistant", "content": "w9"}]
        found = addend.lm.attribute(self.model, messages, [9, 8], Words(), groups="turns")
        self.assertEqual(found.ids, [BOS, 30, 5, 8, EOS, 30, 9, EOS, 33, 9, 8])
        self.assertEqual(
            [(group.name, group.positions) for group in found.groups],
            [
                ("user 0", (0, 1, 2, 3, 4)), ("assistant 1", (5, 6, 7)),
                ("other tokens of the prompt", (8,)), ("other generated tokens", (9, 10)),
            ],
        )
        self.assertEqual(found.kept, [0, 4, 7])
        roles = found.by("roles")
        self.assertEqual([group.name for group in roles.groups[:2]], ["user", "assistant"])
        messages = [{"role": "system", "content": "w11"}, *messages, {"role": "user", "content": "w12"}]
        plain = addend.lm.attribute(self.model, messages, [9, 8], Words())
        self.assertIsNone(plain.groups)
        by_role = {group.name: group.positions for group in plain.by("roles").groups}
        self.assertEqual(by_role["user"], (*range(4, 8), *range(11, 14)))
        self.assertEqual(by_role["system"], tuple(range(4)))
        self.assertEqual([group.name for group in plain.turns], ["system 0", "user 1", "assistant 2", "user 3"])
        self.assertEqual(pickle.loads(pickle.dumps(plain)).by("turns"), addend.lm.attribute(
            self.model, messages, [9, 8], Words(), groups="turns"))

        class Otherwise(Words):
            """Writes how many messages there are."""

            def apply_chat_template(self, messages, add_generation_prompt, tokenize):
                own = super().apply_chat_template(messages, add_generation_prompt, tokenize)
                return [BOS, 30 + len(messages), *own["input_ids"][0]]

        class Pairs(Words):
            def apply_chat_template(self, messages, add_generation_prompt, tokenize):
                if len(messages) % 2:
                    raise RuntimeError("messages come in pairs")
                return super().apply_chat_template(messages, add_generation_prompt, tokenize)

        for tokenizer, says in ((Otherwise(), "writes message 0 otherwise"), (Pairs(), "refuses the messages up to 0")):
            self.assertIsNone(addend.lm.attribute(self.model, messages, [9], tokenizer).turns)
            with self.assertRaisesRegex(ValueError, says):
                addend.lm.attribute(self.model, messages, [9], tokenizer, groups="roles")
        without = Words()
        without.chat_template = None
        with self.assertRaisesRegex(ValueError, "has no chat template: set tokenizer.chat_template"):
            addend.lm.attribute(self.model, messages, [9], without)

    def test_it_goes_on_by_itself(self):
        ids = list(PROMPT)
        for _ in range(5):
            ids.append(int(log_softmax(self.model, ids)[-1].argmax()))
        found = addend.lm.attribute(self.model, PROMPT, baseline=PAD, max_new_tokens=5)
        self.assertEqual(found.continuation_ids, ids[self.first :])
        self.assertFalse([note for note in found.notes if "largest logit" in note])
        self.assert_adds(found)
        tokenizer = Words()
        tokenizer.eos_token_id = ids[self.first + 2]
        end = ids.index(tokenizer.eos_token_id, self.first) + 1
        found = addend.lm.attribute(self.model, PROMPT, tokenizer=tokenizer, max_new_tokens=5)
        self.assertEqual(found.ids, ids[:end])

    def test_outputs_with_logits(self):
        class Plain:
            def __init__(self, logits):
                self.logits = logits

        expected = self.attribute()
        for kind in (dict, Plain, lambda logits: (logits, None), types.SimpleNamespace):
            model = WithOutput(kind)
            found = self.attribute(model=model)
            np.testing.assert_array_equal(found.matrix, expected.matrix)
            self.assertEqual(model.caches, [False])
        made = self.attribute(model=model, continuation=None, max_new_tokens=2)
        self.assertEqual(made.continuation_ids, [9, 9])
        self.assertTrue([note for note in made.notes if "largest logit" in note])
        made = self.attribute(model=model, continuation=None, generation={"max_new_tokens": 1})
        self.assertEqual(made.continuation_ids, [9])
        self.assertFalse([note for note in made.notes if "largest logit" in note])  # it was asked to go another way
        for generation, says in (({"num_return_sequences": 2}, "returned 2 sequences"), ({"before": [5]}, "not return the")):
            with self.assertRaisesRegex(ValueError, says):
                self.attribute(model=model, continuation=None, generation=generation)
        with self.assertRaisesRegex(ValueError, "generation is for models that have generate"):
            self.attribute(continuation=None, generation={"num_beams": 2})

    def test_logits_that_nobody_needs_are_not_computed(self):
        model = LastLogits()
        for target in ("log_probability", "entropy", (None, 3)):
            for span in (None, "all", [slice(1, 3)]):
                found = self.attribute(model=model, target=target, span=span)
                expected = self.attribute(target=target, span=span)
                np.testing.assert_allclose(found.matrix, expected.matrix, rtol=0, atol=1e-13)
                np.testing.assert_allclose(found.values, expected.values, rtol=0, atol=1e-13)
                self.assertEqual(found.targets, expected.targets)
        self.assertEqual(model.asked, [5] * 9)
        all_of_them = self.attribute(model=model, arguments={"logits_to_keep": 0})
        np.testing.assert_allclose(all_of_them.matrix, self.attribute().matrix, rtol=0, atol=1e-13)
        self.assertEqual(self.attribute(model=model, continuation=None, max_new_tokens=2).notes, [])
        likely = int(log_softmax(self.model, PROMPT)[-1].argmax())
        for says, first in (("2 of", 9), ("1 of", likely)):
            made = torch.tensor([PROMPT + [first, 9]])
            model.generate = lambda ids, max_new_tokens, do_sample, made=made: made
            found = self.attribute(model=model, continuation=None, max_new_tokens=2)
            self.assertEqual(found.notes, [says + " the generated tokens have not the largest logit when the text is run at once"])

    def test_what_generate_returned(self):
        tokenizer = Words()
        whole = types.SimpleNamespace(sequences=torch.tensor([PROMPT + [9, 17, EOS, PAD, PAD]]))
        expected = self.attribute(continuation=[9, 17, EOS], tokenizer=tokenizer)
        for given in (whole, dict(sequences=whole.sequences), torch.tensor([9, 17, EOS, PAD]), [9, 17, EOS]):
            self.assertEqual(self.attribute(continuation=given, tokenizer=tokenizer), expected)
        self.assertEqual(len(self.attribute(continuation=[9, EOS, 5, PAD], tokenizer=tokenizer).rows), 4)
        again = self.attribute(continuation=PROMPT + [9])
        self.assertTrue([note for note in again.notes if "begins with the whole prompt again" in note])
        for given, says in (
            (types.SimpleNamespace(sequences=torch.tensor([PROMPT + [9]] * 2)), "2 sequences"),
            (types.SimpleNamespace(sequences=torch.tensor([[5, 6, 7]])), "did not return the prompt"),
        ):
            with self.assertRaisesRegex(ValueError, says):
                self.attribute(continuation=given)
        with self.assertRaisesRegex(ValueError, "2 prompts take a list"):
            self.attribute(prompt=[PROMPT, PROMPT], continuation={"sequences": whole.sequences, "scores": None})

    def test_bytes_of_a_letter(self):
        class Bytes(Words):
            """A vocabulary as GPT-2 has it: the letters are bytes."""

            def __init__(self):
                super().__init__()
                self.pieces[5:9] = ["\u00e4\u00bd", "\u0142", "\u0120\u00e2", "\u010a\u00fd"]

            def decode(self, ids):
                return "\ufffd" if 5 <= ids[0] < 9 else super().decode(ids)

        found = self.attribute(prompt=[5, 6, 7, 8, 30], tokenizer=Bytes())
        self.assertEqual(found.tokens[:5], ["\\xe4\\xbd", "\\xa0", " \\xe2", "\n\\xfd", " w30"])

    def test_functions_compiled_models_files_and_programs(self):
        expected = self.attribute()
        live = [lambda ids: self.model(ids), addend.compile(self.model), addend.compile(self.model, memory=20000)]
        for model in live:
            np.testing.assert_array_equal(self.attribute(model=model).matrix, expected.matrix)
        program = addend.compile(self.model).record(torch.tensor([self.ids]))
        for model in (program, program.model()):
            found = self.attribute(model=model)
            np.testing.assert_allclose(found.matrix, expected.matrix, rtol=0, atol=1e-13)
            np.testing.assert_allclose(found.values, expected.values, rtol=0, atol=1e-13)
        np.testing.assert_array_equal(self.attribute(model=program, memory=20000).matrix, found.matrix)
        with tempfile.TemporaryDirectory() as folder:
            torch.jit.trace(self.model, torch.tensor([self.ids])).save(os.path.join(folder, "model.pt"))
            loaded = addend.load_model(os.path.join(folder, "model.pt"))
        np.testing.assert_allclose(self.attribute(model=loaded).matrix, expected.matrix, rtol=0, atol=1e-13)

    def test_without_pytorch_and_numpy(self):
        class Table(nn.Module):
            """Each token makes the next one likely, and the one before it a little."""

            def forward(self, ids):
                one = nn.functional.one_hot(ids, 5).double()
                return one @ self.table + nn.functional.pad(one[:, :-1], (0, 0, 1, 0)) @ self.table.t()

            def __init__(self):
                super().__init__()
                self.register_buffer("table", torch.arange(25.0, dtype=torch.float64).view(5, 5).sin())

        ids = torch.tensor([[3, 1, 2, 4]])
        expected = addend.lm.attribute(Table(), [3, 1], [2, 4], baseline=0)
        with tempfile.TemporaryDirectory() as folder:
            addend.compile(Table()).record(ids).save(folder)
            program = """
import sys
sys.modules["numpy"] = sys.modules["torch"] = None    # importing them fails
import addend, json
assert "addend.lm" not in sys.modules
found = addend.lm.attribute(addend.Program.load(%r), [3, 1], [2, 4], baseline=0)
assert found.to_html() and str(found)
print(json.dumps(found.matrix))
""" % folder
            said = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True).stdout
        np.testing.assert_allclose(json.loads(said), expected.matrix, rtol=0, atol=1e-14)

    def test_lists_and_padded_batches(self):
        prompts = [PROMPT, PROMPT[2:]]
        found = addend.lm.attribute(self.model, prompts, [[9, 17], [4]], baseline=PAD)
        alone = addend.lm.attribute(self.model, PROMPT[2:], [4], baseline=PAD)
        ids = torch.tensor([PROMPT, [PAD, PAD] + PROMPT[2:]])
        self.assert_same(found[1], alone)
        padded = addend.lm.attribute(
            self.model, {"input_ids": ids, "attention_mask": (torch.arange(6) >= torch.tensor([[0], [2]])).long()},
            [[9, 17], [4]], baseline=PAD,
        )
        self.assertEqual(padded, found)
        self.assertEqual(addend.lm.attribute(self.model, torch.tensor([PROMPT[2:]]), np.array([4]), baseline=PAD), alone)
        text = addend.lm.attribute(self.model, ["w5 w8", "w9"], tokenizer=Words(), max_new_tokens=1)
        self.assertEqual([one.prompt_length for one in text], [3, 2])
        with self.assertRaisesRegex(ValueError, "2 rows of ids, of which nobody says what is padding"):
            self.attribute(prompt=ids)

    def test_several_prompts_run_at_once(self):
        prompts, continuations = [PROMPT, PROMPT[2:], PROMPT[1:]], [self.continuation, [4, 3], [8]]
        shapes = []

        class Noted(Llama):
            def forward(self, ids):
                shapes.append(tuple(ids.shape))
                return super().forward(ids)

        for options in (
            *({"target": one} for one in ("log_probability", "probability", "logit", "entropy", (None, 3), (9, [4, 4]))),
            {"span": "all"}, {"span": slice(-1, None)}, {"rows_per_run": 3}, {"memory": 20000}, {"preset": "fast"},
        ):
            with self.subTest(options=options):
                after = [one[:2] for one in continuations] if options.get("target") == (9, [4, 4]) else continuations
                after = [after[0], after[1], after[1]] if after is not continuations else after
                found = addend.lm.attribute(Noted(), prompts, after, baseline=PAD, **options)
                for one, prompt, own in zip(found, prompts, after):
                    alone = addend.lm.attribute(self.model, prompt, own, baseline=PAD, **options)
                    if "preset" not in options:
                        self.assert_same(one, alone)
                    np.testing.assert_allclose(one.matrix, alone.matrix, rtol=0, atol=1e-12)
                    np.testing.assert_allclose(one.leftovers, alone.leftovers, rtol=0, atol=1e-12)
        self.assertIn((3, 10), shapes)
        shapes.clear()
        found = addend.lm.attribute(Noted(), prompts, continuations, baseline=PAD, prompts_per_run=2)
        self.assertEqual(shapes, [(2, 10), (1, 6), (1, 6)])  # the shorter of the two runs alone too, to be compared
        found = addend.lm.attribute(Noted(), prompts, baseline=PAD, max_new_tokens=2, layers=True)
        self.assertFalse([shape for shape in shapes[3:] if shape[0] > 1])
        self.assertEqual([len(one.layers.names) for one in found], [5] * 3)

    def test_models_that_do_not_take_several_prompts(self):
        class Normed(Llama):
            """Reads all rows of a batch."""

            def forward(self, ids):
                return super().forward(ids) + self.embed.weight.sum() * ids.shape[0]

        class Branches(Llama):
            def forward(self, ids):
                return super().forward(ids) * (1 if self.embed(ids).sum() > 0 else 2)

        class Shifts(Llama):
            """Counts positions from the end of the padding."""

            def forward(self, ids):
                return super().forward(ids) * ids.shape[1]

        for model, why in (
            (WithOutput(dict), r"the model does not take several prompts at once \(.*\); they were run one by one"),
            (Branches(), "it reads numbers, which would be those of all of them"),
            (Shifts(), "it computes other numbers for the shortest one then"),
            (Normed(), "it computes other numbers for the shortest one then"),
        ):
            with self.subTest(why=why):
                found = addend.lm.attribute(model, [PROMPT, PROMPT[1:]], [[9, 17], [4]], baseline=PAD)
                alone = addend.lm.attribute(model, PROMPT[1:], [4], baseline=PAD)
                self.assertRegex(found[1].notes[-1], why)
                np.testing.assert_array_equal(found[1].matrix, alone.matrix)
                self.assertEqual(found[1].notes[:-1], alone.notes)

    def test_several_prompts_leave_a_model_as_one_run_does(self):
        class Counts(Llama):
            def __init__(self):
                super().__init__()
                self.register_buffer("runs", torch.zeros(()))

            def forward(self, ids):
                self.runs += 1
                return super().forward(ids) * self.runs

        model, prompts, after = Counts(), [PROMPT, PROMPT[1:]], [[9, 17], [4]]
        options = {"baseline": PAD, "compare": {"preset": "fast"}, "verify_reference": True}
        found = addend.lm.attribute(model, prompts, after, **options)
        self.assertEqual(model.runs.item(), 1)
        self.assertEqual([note for note in found[1].notes if "one by one" in note], [])
        self.assertTrue(all(note.endswith(" (in a run of 2 prompts)") for note in found[1].notes))
        self.assertIn("preset=fast: much is left over", found[1].warnings[0])
        for one, prompt, own in zip(found, prompts, after):
            self.assertEqual(one.report["reference_is_model_on_baseline"], "yes")
            self.assertLess(one.report["reference_error"], 1e-10)
            alone = addend.lm.attribute(Counts(), prompt, own, **options)
            self.assert_same(one, alone, but=("compared", "notes", "warnings"))

    def test_an_encoder_decoder(self):
        model, source, after, start = Translator(), PROMPT, self.continuation, 3
        generation = {"decoder_start_token_id": start}

        def numbers(source, written):
            with torch.no_grad():
                logits = model(torch.tensor([source]), decoder_input_ids=torch.tensor([written]))
            return [logits[0].log_softmax(-1)[k, one].item() for k, one in enumerate(after)]

        found = addend.lm.attribute(model, source, after, baseline=PAD, generation=generation)
        self.assertEqual(found.ids, [*source, start, *after])
        self.assertEqual((found.source_length, found.prompt_length, found.kept), (6, 7, [6]))
        np.testing.assert_allclose(found.values, numbers(source, [start, *after]), rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.references, numbers([PAD] * 6, [start] + [PAD] * 4), rtol=0, atol=1e-12)
        self.assert_adds(found)
        for row in range(4):
            self.assertTrue((found.matrix[row, 6] == 0) and (found.matrix[row, 7 + row :] == 0).all())
            self.assertTrue((found.matrix[row, :6] != 0).all() and (found.matrix[row, 7 : 7 + row] != 0).all())
        # With a linear head, and nothing but the source's values moving, contributions are products.
        written = [start, *after]
        same = [*[PAD] * 6, *written]
        logit = addend.lm.attribute(model, source, after, baseline=same, generation=generation, target="logit")
        with torch.no_grad():
            moved = [model.read(torch.tensor(one)) for one in (source, [PAD] * 6)]
            places = torch.arange(6).double()[:, None].sin()
            state = torch.tanh(model.mix(model.write(torch.tensor(written)).cumsum(0)))
            weights = [(model.query(state) @ model.key(one + places).T).softmax(-1) for one in moved]
            for row, one in enumerate(after):
                # Content first: the value moves at the weight of the value, the weight at the reference of the content.
                total = weights[0][row] @ ((moved[0] - moved[1]) @ model.head.weight[one])
                total += (weights[0] - weights[1])[row] @ ((moved[1] + places) @ model.head.weight[one])
                self.assertAlmostEqual(logit.matrix[row].sum(), total.item(), delta=1e-12)
        self.assertIn("4 generated tokens, source of 6; baseline 0", str(found))
        groups = found.by([("a", slice(0, 3))]).groups
        self.assertEqual([group.name for group in groups], ["a", "other tokens of the source", "other generated tokens"])
        self.assertEqual(json.loads(re.search(r'id="data">(.*?)</script>', found.to_html()).group(1))["source_length"], 6)

    def test_an_encoder_decoder_goes_on_by_itself_and_reads_several_sources(self):
        model, generation = Translator(), {"decoder_start_token_id": 3}
        sources = [PROMPT, PROMPT[2:], PROMPT[1:]]
        found = addend.lm.attribute(model, sources, baseline=PAD, max_new_tokens=3, generation=generation)
        self.assertIn((3, 6), model.shapes)
        for one, source in zip(found, sources):
            written = [3]
            for _ in range(3):
                with torch.no_grad():
                    logits = model(torch.tensor([source]), decoder_input_ids=torch.tensor([written]))
                written.append(int(logits[0, -1].argmax()))
            self.assertEqual(one.ids, source + written)
            alone = addend.lm.attribute(model, source, baseline=PAD, max_new_tokens=3, generation=generation)
            self.assert_same(one, alone)
        model.generation_config = types.SimpleNamespace(decoder_start_token_id=3)
        self.assertEqual(addend.lm.attribute(model, PROMPT, baseline=PAD, max_new_tokens=3), addend.lm.attribute(
            model, PROMPT, baseline=PAD, max_new_tokens=3, generation=generation))
        again = addend.lm.attribute(model, PROMPT, [3, 9], baseline=PAD)
        self.assertIn("begins with what the decoder begins with again", again.warnings[0])
        made = types.SimpleNamespace(sequences=torch.tensor([[3, 9, 17]]))
        self.assertEqual(addend.lm.attribute(model, PROMPT, made, baseline=PAD).continuation_ids, [9, 17])
        with self.assertRaisesRegex(ValueError, "layers=True is for decoders"):
            addend.lm.attribute(model, PROMPT, [9], baseline=PAD, layers=True)
        del model.generation_config
        with self.assertRaisesRegex(ValueError, "nobody says which token the decoder begins with"):
            addend.lm.attribute(model, PROMPT, [9], baseline=PAD)

    def test_two_policies_side_by_side(self):
        for other, called in (({"content_first": "none"}, "content_first=none"), ({"preset": "fast"}, "preset=fast")):
            found = self.attribute(compare=other)
            alone = self.attribute(**other)
            self.assertEqual(found.compared.policy, called)
            np.testing.assert_array_equal(found.matrix, self.attribute().matrix)
            np.testing.assert_array_equal(found.compared.matrix, alone.matrix)
            self.assertEqual(found.compared.leftovers, alone.leftovers)
            for one, row in zip(found.compared.disagreements, zip(found.matrix, alone.matrix)):
                shares = [numbers / np.abs(numbers).sum() for numbers in row]
                self.assertAlmostEqual(one, np.abs(shares[0] - shares[1]).sum() / 2, delta=1e-12)
            for note in alone.notes:
                self.assertIn("%s: %s" % (called, note), found.notes)
            self.assertEqual(pickle.loads(pickle.dumps(found)), found)
            self.assertIn("under %s (apart" % called, str(found))
            self.assertLessEqual(max(map(len, str(found).split("\n"))), 80)
            contexts = [addend.Context(**{"preset": "faithful", **one}) for one in ({}, other)]
            by_contexts = self.attribute(context=contexts[0], compare=contexts[1])
            self.assertEqual(found.compared, by_contexts.compared)
        batch = addend.lm.attribute(self.model, [PROMPT, PROMPT[1:]], [self.continuation] * 2, baseline=PAD, compare=other)
        np.testing.assert_allclose(batch[0].compared.matrix, alone.matrix, rtol=0, atol=1e-12)
        self.assertIn(" 0  9  ", str(found.by([("a", slice(0, 3))])))
        for compare, error, says in (
            ({"preset": "faithful"}, ValueError, "the policy of the run itself"),
            ({"no_such": 1}, TypeError, "no_such"),
        ):
            with self.assertRaisesRegex(error, says):
                self.attribute(compare=compare)
        with self.assertRaisesRegex(TypeError, "compare is a Context"):
            self.attribute(context=addend.Context(preset="faithful"), compare={"preset": "fast"})

    def test_policies_that_disagree_are_a_warning(self):
        class Gated(nn.Module):
            """The first token opens an attention, and what stands there is the second one's."""

            def __init__(self):
                super().__init__()
                self.table = nn.Embedding.from_pretrained(torch.tensor([[-9, 0], [27, 0], [-9, 2.0]]).double())

            def forward(self, ids):
                scores, content = self.table(ids).cumsum(1).split(1, 2)
                weights = torch.cat([scores, -scores], 2).softmax(2)[:, :, None]
                values = torch.stack([content, torch.zeros_like(content)], 2)
                return (weights @ values)[:, :, 0] * torch.arange(3.0).double()

        options = {"baseline": [0, 0, 0], "target": "logit", "compare": {"content_first": "none"}}
        found = addend.lm.attribute(Gated(), [1, 2], [1], **options)
        # All of the product is the content's here, and a half of it by half.
        np.testing.assert_allclose(found.matrix, [[0, 2, 0]], rtol=0, atol=1e-6)
        np.testing.assert_allclose(found.compared.matrix, [[1, 1, 0]], rtol=0, atol=1e-6)
        self.assertAlmostEqual(found.compared.disagreements[0], 0.5, delta=1e-6)
        says = "under content_first=none more than a third of the contributions goes to other tokens (50 %)"
        self.assertTrue(found.warnings[-1].startswith(says), found.warnings)
        self.assertIn("WARNING: " + says, " ".join(str(found).split()))
        self.assertFalse(self.attribute(compare={"content_first": "none"}).warnings)

    def test_parts_that_cancel_are_told(self):
        model = nn.Sequential(nn.Embedding.from_pretrained(torch.tensor([[0.0, 0], [1e4, 1], [-1e4, 0]]).double()))
        found = addend.lm.attribute(lambda ids: model(ids).cumsum(1), [1, 2], [0], baseline=0, target=(0, 1))
        says = "without their signs these parts come to 2e+04 times the difference that they sum to"
        self.assertIn("WARNING: in row 0 " + says, " ".join(str(found).split()))
        data = json.loads(re.search(r'id="data">(.*?)</script>', found.to_html()).group(1))
        self.assertIn(says, data["cancelling"][0])
        self.assertEqual(self.attribute()._cancelling(0), "")

    def test_baselines(self):
        own = list(reversed(range(10)))
        found = self.attribute(baseline=own)
        reference = log_softmax(self.model, own)
        places = [(self.first + k - 1, one) for k, one in enumerate(self.continuation)]
        np.testing.assert_allclose(found.references, [reference[p, one].item() for p, one in places], rtol=0, atol=1e-12)
        self.assert_adds(found)
        for array in (np.array(own), torch.tensor(own)):
            self.assertEqual(self.attribute(baseline=array).baseline, own)
        for name, one in (("pad", PAD), ("eos", EOS), ("bos_token", BOS), (5, 5), (np.int64(5), 5)):
            found = self.attribute(baseline=name, tokenizer=Words())
            self.assertEqual(found.baseline, [BOS] + [one] * 9)
        tokenizer = Words()
        tokenizer.pad_token_id = None
        found = self.attribute(baseline=None, tokenizer=tokenizer)
        self.assertIn("the baseline is the eos token, because there is no pad token", found.notes)
        with self.assertRaisesRegex(ValueError, "there is no pad token; pass baseline='eos'"):
            self.attribute(baseline="pad", tokenizer=tokenizer)

    def test_a_pair_of_functions_as_tokenizer(self):
        pair = (lambda text: [ord(one) - 97 for one in text], lambda ids: "".join(chr(97 + one) for one in ids))
        found = addend.lm.attribute(self.model, "hello", "you", pair, baseline=PAD)
        self.assertEqual("".join(found.tokens), "helloyou")
        self.assertEqual(found.rows, ["y", "o", "u"])

    def test_values_that_are_printed_copied_and_pickled(self):
        found = self.attribute(prompt="w5 <script>alert(1)</script> &\"' w8 w12", tokenizer=Words(), groups="words")
        again = pickle.loads(pickle.dumps(found))
        self.assertEqual(again, found)
        self.assertEqual(copy.deepcopy(found), found)
        self.assertEqual(hash(again), hash(found))
        self.assertNotEqual(found, found.by(None))
        self.assertEqual(json.loads(json.dumps(found.to_dict()))["values"], found.values)
        lines = str(found).split("\n")
        self.assertLessEqual(max(map(len, lines)), 80)
        self.assertTrue(lines[0].startswith("log-probability of 4 generated tokens, prompt of 6; baseline <pad> (0)"))
        self.assertIn("w9", lines[2])
        top = found.by(None).top(1, 3)
        order = np.argsort(-np.abs(found.matrix[1]))[:3]
        self.assertEqual([part.component for part in top], list(order))
        self.assertEqual([part.value for part in top], list(found.matrix[1][order]))
        self.assertEqual(found.top(-1), found.top(3))
        spaces = self.attribute(tokenizer=(lambda text: [], lambda ids: " " if ids[0] == 7 else str(ids[0])))
        self.assertIn("' ' ", str(spaces))
        with self.assertRaises(IndexError):
            found.top(4)

    def test_the_page(self):
        found = self.attribute(prompt="w5 <script>alert(1)</script> &\"' w8 w12", tokenizer=Words(), groups="words")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "page.html")
            page = found.to_html(path)
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read(), page)
        self.assertNotIn("<script>alert", page)
        self.assertEqual(page.count("</script>"), 2)
        self.assertNotIn("http:", page.replace("http-equiv", ""))
        self.assertNotIn("https:", page)
        data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL).group(1))
        self.assertEqual(data["tokens"], found.tokens)
        self.assertIn(" <script>alert(1)</script>", data["tokens"])
        numbers = base64.b64decode(data["matrix"])
        self.assertEqual(list(struct.unpack("<%dd" % (len(numbers) // 8), numbers)), found.matrix.reshape(-1).tolist())
        self.assertNotIn("<script>alert", found._repr_html_())
        self.assertIsNone(data["layers"])
        layers = self.attribute(layers=True).layers
        page = self.attribute(layers=True).to_html()
        data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL).group(1))["layers"]
        numbers = base64.b64decode(data["matrix"])
        self.assertEqual(list(struct.unpack("<20d", numbers)), layers.matrix.reshape(-1).tolist())
        self.assertEqual((data["names"], data["stack"], data["leftovers"]), (layers.names, "layers.", layers.leftovers))

    def test_what_is_refused(self):
        class Headless(nn.Module):
            def forward(self, ids):
                return {"last_hidden_state": nn.functional.one_hot(ids, VOCABULARY).double()}

        cases = [
            (dict(prompt="w5"), "the prompt is text, which takes a tokenizer"),
            (dict(continuation="w5"), "the continuation is text, which takes a tokenizer"),
            (dict(continuation=[]), "the continuation has no token"),
            (dict(prompt=[]), "the prompt has no token"),
            (dict(continuation=[VOCABULARY]), "no embedding for one of the ids, of which the largest are 40 "),
            (dict(baseline=999), "no embedding for one of the ids, .* 999 on the baseline"),
            (dict(prompt=[-1, 3]), "the id -1; ids count from 0"),
            (dict(baseline=None), "nobody says which token means nothing"),
            (dict(baseline=[0, 0]), "2 ids for 10 tokens"),
            (dict(baseline="mask"), "one of pad, unk, eos, bos, not 'mask'"),
            (dict(model=Headless()), "a dict without them, but logits of shape"),
            (dict(model=lambda ids: self.model(ids)[0]), r"a tensor of shape \[10, 40\], but logits of shape \[1, 10"),
            (dict(model=lambda ids: self.model(ids)[:, -1:]), r"shape \[1, 1, 40\]"),
            (dict(target="perplexity"), "one of logit, log_probability, probability, entropy"),
            (dict(target=(1, 2, 3)), "a contrast is of two tokens"),
            (dict(target=("w5 w8", None), tokenizer=Words()), "is 2 tokens; a contrast takes one"),
            (dict(target=([1, 2], None)), "2 ids for 4 generated tokens"),
            (dict(span="some"), 'span is None, "all" or slices'),
            (dict(span=[slice(4, 9)]), "none of the 4 generated tokens"),
            (dict(span=[]), "no slice of the generated tokens"),
            (dict(keep="all"), "keep is"),
            (dict(rows_per_run=0), "one row at least"),
            (dict(prompts_per_run=0), "one prompt at least"),
            (dict(continuation=None, max_new_tokens=0), "one token at least"),
            (dict(prompt=[PROMPT, PROMPT]), "2 prompts take a list of as many continuations"),
            (dict(prompt=[{"role": "user", "content": "w5"}]), "apply_chat_template"),
        ]
        for options, says in cases:
            with self.subTest(says=says), self.assertRaisesRegex(ValueError, says):
                self.attribute(**options)
        for options, says in [
            (dict(model=3), "model is a live model"),
            (dict(prompt=[1.5, 2]), "one row of ids, not a list of float"),
            (dict(inside=addend.Inside("layers.0", 1)), "no argument 'inside'"),
            (dict(no_such_choice=1), "no_such_choice"),
            (dict(tokenizer=(len,)), "two functions"),
            (dict(span=[1]), "slices of the generated tokens, not a int"),
        ]:
            with self.subTest(says=says), self.assertRaisesRegex(TypeError, says):
                self.attribute(**options)
        seq2seq = Llama()
        seq2seq.config = types.SimpleNamespace(is_encoder_decoder=True)
        with self.assertRaisesRegex(ValueError, "does not take input_ids and decoder_input_ids"):
            self.attribute(model=seq2seq)


if __name__ == "__main__":
    unittest.main()
