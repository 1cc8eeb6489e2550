"""addend.lm with models and tokenizers of Hugging Face transformers: what it says is compared with what PyTorch computes.

Models and tokenizers are made here, from configurations and a few sentences: nothing is downloaded.
"""

import json
import os
import pickle
import re
import sys
import types
import unittest
import warnings

import numpy as np
import tokenizers
import torch
import transformers
from tokenizers import decoders, models, pre_tokenizers, processors, trainers

import addend

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import architectures  # noqa: E402

TEXTS = [
    "The cat sat on the mat.",
    "The dog ran to the cat and the mat.",
    "A dog and a cat sat together on a mat.",
    "Where did the cat sit? On the mat.",
    "She said that the dog ran, and he sat.",
]
SPECIAL = ["<pad>", "<s>", "</s>", "<unk>", "<|user|>", "<|assistant|>", "<|system|>"]
CHAT = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
MESSAGES = [
    {"role": "system", "content": "A cat sat."},
    {"role": "user", "content": "Where did the cat sit?"},
]
SAME = 1e-6  # two runs of a model
SUM = 1e-5  # what the parts may miss


def tokenizer_of(byte_level):
    """A tokenizer like that of GPT-2, of bytes and without a token in front; or of Llama, of letters and with one."""
    if byte_level:
        made = tokenizers.Tokenizer(models.BPE())
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.decoder = decoders.ByteLevel()
    else:
        made = tokenizers.Tokenizer(models.BPE(unk_token="<unk>"))
        made.pre_tokenizer = pre_tokenizers.Metaspace()
        made.decoder = decoders.Metaspace()
    made.train_from_iterator(
        TEXTS,
        trainers.BpeTrainer(
            vocab_size=320 if byte_level else 90,
            special_tokens=SPECIAL,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if byte_level else [],
            show_progress=False,
        ),
    )
    if not byte_level:
        made.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>",
        additional_special_tokens=SPECIAL[4:], padding_side="left", chat_template=CHAT,
    )


class Cases:
    """Tests of one architecture with one kind of attention."""

    architecture = ""
    attention = ""

    @classmethod
    def setUpClass(cls):
        own = next(one for one in architectures.ALL if one.name == cls.architecture)
        gpt = cls.architecture == "GPT-2"
        cls.tokenizer = tokenizer_of(gpt)
        places = "n_positions" if gpt else "max_position_embeddings"
        cls.model = own.make(cls.attention, vocab_size=len(cls.tokenizer), **{places: 64})
        cls.text, cls.continuation = "The dog ran to the cat", " and sat on the mat."
        cls.before = cls.tokenizer(cls.text)["input_ids"]
        cls.after = cls.tokenizer(cls.continuation, add_special_tokens=False)["input_ids"]

    def attribute(self, prompt=None, continuation=None, **options):
        if prompt is None:
            prompt, continuation = self.text, self.continuation if continuation is None else continuation
        return addend.lm.attribute(self.model, prompt, continuation, self.tokenizer, **options)

    def logits(self, ids):
        with torch.no_grad():
            return self.model(input_ids=torch.tensor([ids]), use_cache=False).logits[0]

    def generated(self, **options):
        given = self.tokenizer(self.text, return_tensors="pt")
        with torch.no_grad():
            return self.model.generate(**given, max_new_tokens=6, **options)

    def assert_adds(self, found):
        total = found.matrix.sum(1) + found.references + found.leftovers
        np.testing.assert_allclose(total, found.values, rtol=0, atol=SUM)
        self.assertLess(max(map(abs, found.leftovers)), SUM)

    def numbers(self, ids, first, target):
        """A target's number at each generated token, by PyTorch. The ids of explained tokens are the text's."""
        rows = self.logits(ids)[first - 1 : -1].double()  # a sum of many terms is rounded once
        own = torch.tensor((self.before + self.after)[first:])[:, None]
        log = rows.log_softmax(-1)
        return {
            "log_probability": lambda: log.gather(1, own),
            "probability": lambda: log.gather(1, own).exp(),
            "logit": lambda: rows.gather(1, own),
            "entropy": lambda: -(log.exp() * log).sum(1),
            (None, 5): lambda: rows.gather(1, own) - rows[:, 5:6],
        }[target]().flatten().tolist()

    def test_numbers_are_those_of_pytorch_and_parts_add_up(self):
        first = len(self.before)
        for target in ("log_probability", "probability", "logit", "entropy", (None, 5)):
            for keep in ("special", None):
                with self.subTest(target=target, keep=keep):
                    found = self.attribute(target=target, keep=keep)
                    self.assertEqual(found.ids, self.before + self.after)
                    self.assertEqual((found.matrix.shape, found.matrix.dtype), ((len(self.after), len(found.ids)), np.float64))
                    kept = [k for k, one in enumerate(found.ids) if keep and one < len(SPECIAL)]
                    self.assertEqual(found.kept, kept)
                    self.assertEqual(found.baseline, [one if k in kept else 0 for k, one in enumerate(found.ids)])
                    values, references = (self.numbers(ids, first, target) for ids in (found.ids, found.baseline))
                    np.testing.assert_allclose(found.values, values, rtol=0, atol=SAME)
                    np.testing.assert_allclose(found.references, references, rtol=0, atol=SAME)
                    self.assert_adds(found)
                    self.assertEqual(found.notes, [])
                    for row in range(len(self.after)):
                        self.assertTrue((found.matrix[row, first + row :] == 0).all())
                        self.assertTrue((found.matrix[row, kept] == 0).all())

    def test_contributions_are_those_of_a_decomposition_forward(self):
        found = self.attribute(target="logit", keep=None)
        ids = addend.Input(torch.tensor([found.ids]), dims=1, baseline=0)
        mask = torch.ones(1, len(found.ids), dtype=torch.long)
        results = addend.compile(self.model, preset="faithful", outputs="output.logits", direction="forward").decompose(
            input_ids=ids, attention_mask=mask, use_cache=False
        )
        components = results["output.logits"].components.torch()[:, 0]
        self.assertEqual(results.report["direction"], "forward")
        for row, one in enumerate(self.after):
            expected = components[:, len(self.before) + row - 1, one]
            np.testing.assert_allclose(found.matrix[row], expected, rtol=0, atol=SUM)

    def test_it_goes_on_by_itself(self):
        ids = list(self.before)
        for _ in range(6):
            ids.append(int(self.logits(ids)[-1].argmax()))
        found = self.attribute(self.text, max_new_tokens=6)
        self.assertEqual(found.ids, ids)
        self.assertEqual(found.notes, [])
        self.assert_adds(found)
        beams = self.attribute(self.text, max_new_tokens=6, generation={"num_beams": 3})
        self.assertEqual(beams.ids, self.generated(num_beams=3, do_sample=False)[0].tolist())
        torch.manual_seed(7)
        expected = self.generated(do_sample=True, temperature=1.5)[0].tolist()
        torch.manual_seed(7)
        sampled = self.attribute(self.text, max_new_tokens=6, generation={"do_sample": True, "temperature": 1.5})
        self.assertEqual(sampled.ids, expected)
        self.assertNotEqual(sampled.ids, ids)
        for one in (beams, sampled):
            self.assert_adds(one)
            log = self.logits(one.ids).log_softmax(-1)
            first = one.prompt_length
            expected = [log[first + k - 1, token].item() for k, token in enumerate(one.continuation_ids)]
            np.testing.assert_allclose(one.values, expected, rtol=0, atol=SAME)

    def test_a_continuation_in_every_form(self):
        expected = self.attribute()
        both = torch.tensor([self.before + self.after])
        encoding = self.tokenizer(self.text, return_tensors="pt")
        made = self.generated(return_dict_in_generate=True, do_sample=False)
        self.assertEqual(self.attribute(encoding, made).ids, made.sequences[0].tolist())
        made.sequences = both
        for prompt in (self.text, self.before, encoding, encoding["input_ids"]):
            for continuation in (self.continuation, self.after, torch.tensor(self.after), np.array(self.after), made):
                self.assertEqual(self.attribute(prompt, continuation), expected)

    def test_words(self):
        found = self.attribute(groups="words")
        words = [group.name for group in found.groups if not set(group.positions) <= set(found.kept)]
        self.assertEqual(words, (self.text + self.continuation).split())
        np.testing.assert_allclose(found.group_matrix.sum(1), found.matrix.sum(1), rtol=0, atol=1e-12)
        self.assertEqual("".join(found.tokens[len(self.before) :]), self.continuation)

    def test_spans(self):
        rows = self.attribute()
        whole = self.attribute(span="all")
        np.testing.assert_allclose(whole.matrix[0], rows.matrix.sum(0), rtol=0, atol=SUM)
        part = self.attribute(span=[slice(1, 3)])
        np.testing.assert_allclose(part.matrix[0], rows.matrix[1:3].sum(0), rtol=0, atol=SUM)
        np.testing.assert_allclose(part.values[0], sum(rows.values[1:3]), rtol=0, atol=SAME)

    def test_a_chat(self):
        found = self.attribute(MESSAGES, " On the mat.", groups="turns")
        asked = self.tokenizer.apply_chat_template(MESSAGES, add_generation_prompt=True)["input_ids"]
        self.assertEqual(found.ids[: found.prompt_length], asked)
        self.assertEqual(
            [group.name for group in found.groups],
            ["system 0", "user 1", "other tokens of the prompt", "other generated tokens"],
        )
        ends = [k + 1 for k, one in enumerate(asked) if one == self.tokenizer.eos_token_id]
        self.assertEqual([group.positions[-1] + 1 for group in found.groups[:2]], ends)
        self.assert_adds(found)
        np.testing.assert_allclose(found.group_matrix.sum(1), found.matrix.sum(1), rtol=0, atol=1e-12)
        self.assertEqual([group.name for group in found.by("roles").groups[:2]], ["system", "user"])
        self.assertEqual(found.by("turns"), found)
        without = tokenizer_of(self.architecture == "GPT-2")
        without.chat_template = None
        with self.assertRaisesRegex(ValueError, "the tokenizer has no chat template: set tokenizer.chat_template"):
            addend.lm.attribute(self.model, MESSAGES, " On the mat.", without)
        by_itself = self.attribute(MESSAGES, max_new_tokens=2)
        self.assertEqual(by_itself.prompt_length, len(asked))

    def test_a_batch_that_is_padded_in_front(self):
        prompts = ["The cat", self.text]
        padded = self.tokenizer(prompts, padding=True, return_tensors="pt")
        self.assertIn(0, padded["input_ids"][0].tolist())
        found = self.attribute(padded, max_new_tokens=4)
        with torch.no_grad():
            made = self.model.generate(**padded, max_new_tokens=4, do_sample=False)[:, padded["input_ids"].shape[1] :]
        given = self.attribute(padded, made)
        for row, prompt in enumerate(prompts):
            alone = self.attribute(prompt, max_new_tokens=4)
            self.assertEqual(alone.continuation_ids, made[row].tolist()[: len(alone.rows)])
            for one in (found[row], given[row]):
                self.assertEqual((one.ids, one.notes), (alone.ids, alone.notes))
                np.testing.assert_allclose(one.matrix, alone.matrix, rtol=0, atol=SUM)
                np.testing.assert_allclose(one.values, alone.values, rtol=0, atol=SUM)

    def test_two_policies(self):
        found = self.attribute(compare={"content_first": "none"})
        alone = self.attribute(content_first="none")
        np.testing.assert_array_equal(found.compared.matrix, alone.matrix)
        total = found.compared.matrix.sum(1) + found.compared.references + found.compared.leftovers
        # Parts of norms that are shared by half are large and cancel, with larger rounding; the result says by how much.
        np.testing.assert_allclose(abs(total - found.values), np.abs(found.compared.recovery_errors), rtol=0, atol=SUM)
        np.testing.assert_allclose(total, found.values, rtol=0, atol=100 * SUM)

    def terms(self, ids):
        """The embeddings and what every block returned, by hooks of PyTorch; and the norm that reads their sum."""
        if self.architecture == "GPT-2":
            decoder, norm = self.model.transformer, self.model.transformer.ln_f
            layers, blocks = decoder.h, [block for layer in decoder.h for block in (layer.attn, layer.mlp)]
        else:
            decoder, norm = self.model.model, self.model.model.norm
            layers, blocks = decoder.layers, [block for layer in decoder.layers for block in (layer.self_attn, layer.mlp)]
        noted = []

        def note(_, __, output):
            noted.append((output[0] if isinstance(output, tuple) else output)[0])

        hooks = [layers[0].register_forward_pre_hook(lambda _, given: noted.append(given[0][0]))]
        hooks += [block.register_forward_hook(note) for block in blocks]
        self.logits(ids)
        for hook in hooks:
            hook.remove()
        return torch.stack(noted).double(), norm

    def test_layers_give_what_the_formula_of_the_norm_says(self):
        """Content first (docs/policies.md): the content meets the deviation of the value, and the deviation the content of
        the reference."""
        found = self.attribute(target="logit", layers=True, keep=None)
        values, norm = self.terms(found.ids)
        references, _ = self.terms(found.baseline)
        centred = self.architecture == "GPT-2"

        def content(rows):
            return rows - rows.mean(-1, keepdim=True) if centred else rows

        moves = content(values - references)
        value, reference = content(values.sum(0)), content(references.sum(0))
        squares = [one.pow(2).mean(-1, keepdim=True) for one in (value, reference)]
        epsilon = norm.eps if centred else norm.variance_epsilon
        roots = [(one + epsilon).rsqrt() for one in squares]
        slope = (roots[0] - roots[1]) / (squares[0] - squares[1])
        normed = moves * roots[0] + reference * slope * (moves * (value + reference)).mean(-1, keepdim=True)
        head = self.model.lm_head.weight.double() * norm.weight.double()
        for row, one in enumerate(self.after):
            expected = normed[:, len(self.before) + row - 1] @ head[one]
            np.testing.assert_allclose(found.layers.matrix[row], expected.detach(), rtol=0, atol=SUM)
        self.assertEqual(len(found.layers.names), 5)

    def test_layers_add_up(self):
        for options in ({}, {"target": "entropy"}, {"span": "all", "memory": 100_000}, {"target": (None, 5)}):
            found = self.attribute(layers=True, **options)
            total = found.layers.matrix.sum(1) + found.references + found.layers.leftovers
            np.testing.assert_allclose(total, found.values, rtol=0, atol=SUM)
            self.assertLess(max(map(abs, found.layers.leftovers)), SUM)

    def test_other_precisions(self):
        before = self.model
        try:
            for dtype, allowed in ((torch.double, 1e-5), (torch.bfloat16, 0.2)):
                self.model = pickle.loads(pickle.dumps(before)).to(dtype)
                found = self.attribute(layers=True)
                for parts in (found, found.layers):
                    total = parts.matrix.sum(1) + found.references + parts.leftovers
                    np.testing.assert_allclose(total, found.values, rtol=0, atol=SUM)
                    self.assertLess(max(map(abs, parts.leftovers)), allowed)
                value = self.logits(found.ids).double().log_softmax(-1)
                expected = [value[len(self.before) + k - 1, one].item() for k, one in enumerate(self.after)]
                np.testing.assert_allclose(found.values, expected, rtol=0, atol=1e-5)
        finally:
            self.model = before

    def test_a_memory_limit_changes_no_bit(self):
        expected = self.attribute()
        for memory in (1, 100_000, 1_000_000):
            found = self.attribute(memory=memory)
            np.testing.assert_array_equal(found.matrix, expected.matrix)
            self.assertEqual((found.values, found.leftovers), (expected.values, expected.leftovers))
        several = self.attribute(rows_per_run=2)
        np.testing.assert_allclose(several.matrix, expected.matrix, rtol=0, atol=SUM)

    def test_what_it_becomes(self):
        found = self.attribute()
        self.assertEqual(pickle.loads(pickle.dumps(found)), found)
        self.assertIn("log-probability of %d generated tokens" % len(self.after), str(found))
        data = re.search(r'id="data">(.*?)</script>', found.to_html(), re.DOTALL).group(1)
        self.assertEqual(json.loads(data)["tokens"], found.tokens)

    def test_nothing_warns(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.attribute()
            self.attribute(self.text, max_new_tokens=2)


def translator_of(name, words):
    """A small random encoder-decoder with as many words."""
    ids = {"vocab_size": words, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    halves = {
        "%s_%s" % (half, key): one
        for half in ("encoder", "decoder") for key, one in (("layers", 2), ("attention_heads", 4), ("ffn_dim", 24))
    }
    if name == "T5":
        config = transformers.T5Config(
            **ids, d_model=16, d_kv=4, d_ff=24, num_layers=2, num_heads=4, decoder_start_token_id=0, initializer_factor=2.0
        )
        model = transformers.T5ForConditionalGeneration(config)
    else:
        kind, model = {
            "BART": (transformers.BartConfig, transformers.BartForConditionalGeneration),
            "Marian": (transformers.MarianConfig, transformers.MarianMTModel),
            "mBART": (transformers.MBartConfig, transformers.MBartForConditionalGeneration),
        }[name]
        start = {"BART": 2, "Marian": 0, "mBART": 5}[name]
        config = kind(
            **ids, **halves, d_model=16, max_position_embeddings=64, init_std=0.25, decoder_start_token_id=start
        )
        model = model(config)
        model.generation_config.forced_eos_token_id = None  # or the last token would not be that of the largest logit
    return model.eval()


class TranslatorCases:
    """Tests of an encoder-decoder."""

    name = ""

    @classmethod
    def setUpClass(cls):
        cls.tokenizer = tokenizer_of(False)
        torch.manual_seed(3)
        cls.model = translator_of(cls.name, len(cls.tokenizer))
        cls.start = cls.model.config.decoder_start_token_id
        cls.texts = ["The dog ran to the cat", "A cat", "She said that"]
        cls.sources = [cls.tokenizer(text)["input_ids"] for text in cls.texts]
        cls.after = cls.tokenizer(" and sat on the mat.", add_special_tokens=False)["input_ids"]

    def attribute(self, source=None, continuation=None, **options):
        return addend.lm.attribute(
            self.model, self.texts[0] if source is None else source, continuation, self.tokenizer, **options
        )

    def rows(self, source, written, after):
        """The logits that generated tokens are taken from."""
        with torch.no_grad():
            logits = self.model(
                input_ids=torch.tensor([source]), attention_mask=torch.ones(1, len(source), dtype=torch.long),
                decoder_input_ids=torch.tensor([written]), use_cache=False,
            ).logits[0].double()
        return logits[: len(after)]

    def generated(self, source, **options):
        given = torch.tensor([source])
        with torch.no_grad():
            made = self.model.generate(given, attention_mask=torch.ones_like(given), max_new_tokens=5, **options)
        return made[0].tolist()

    def assert_adds(self, found):
        total = found.matrix.sum(1) + found.references + found.leftovers
        np.testing.assert_allclose(total, found.values, rtol=0, atol=SUM)
        self.assertLess(max(map(abs, found.leftovers)), 2 * SUM)

    def test_numbers_are_those_of_pytorch_and_parts_add_up(self):
        source, start, after = self.sources[0], self.start, self.after
        for keep in ("special", None):
            found = self.attribute(source, after, keep=keep)
            self.assertEqual(found.ids, [*source, start, *after])
            first = len(source) + 1
            self.assertEqual((found.source_length, found.prompt_length), (len(source), first))
            own = {first - 1, *(k for k, one in enumerate(found.ids) if keep and one < len(SPECIAL))}
            self.assertEqual(found.kept, sorted(own | {k for k, one in enumerate(found.ids) if one == 0}))
            base = [one if k in own else 0 for k, one in enumerate(found.ids)]
            self.assertEqual(found.baseline, base)
            for ids, numbers in ((found.ids, found.values), (base, found.references)):
                log = self.rows(ids[: first - 1], ids[first - 1 :], after).log_softmax(-1)
                expected = log.gather(1, torch.tensor(after)[:, None]).flatten()
                np.testing.assert_allclose(numbers, expected, rtol=0, atol=SAME)
            self.assert_adds(found)
            self.assertEqual(found.notes, [])
            for row in range(len(after)):
                self.assertTrue((found.matrix[row, first + row :] == 0).all())
                self.assertTrue((found.matrix[row, found.kept] == 0).all())
                read = [k for k in range(first + row) if k not in found.kept]
                self.assertTrue((found.matrix[row, read] != 0).all())

    def test_contributions_are_those_of_a_decomposition_forward(self):
        source, written = self.sources[0], [self.start, *self.after]
        found = self.attribute(source, self.after, target="logit", keep=None)
        baseline = torch.tensor([found.baseline[len(source) :]])
        results = addend.compile(self.model, preset="faithful", outputs="output.logits", direction="forward").decompose(
            input_ids=addend.Input(torch.tensor([source]), dims=1, baseline=0, first_component=0),
            attention_mask=torch.ones(1, len(source), dtype=torch.long),
            decoder_input_ids=addend.Input(torch.tensor([written]), dims=1, baseline=baseline, first_component=len(source)),
            use_cache=False,
        )
        components = results["output.logits"].components.torch()[:, 0]
        for row, one in enumerate(self.after):
            np.testing.assert_allclose(found.matrix[row], components[:, row, one], rtol=0, atol=2 * SUM)

    def test_it_goes_on_by_itself(self):
        source = self.sources[0]
        written = [self.start]
        while len(written) < 6 and (len(written) == 1 or written[-1] != self.tokenizer.eos_token_id):
            written.append(int(self.rows(source, written, written)[-1].argmax()))
        found = self.attribute(max_new_tokens=5)
        self.assertEqual(found.ids, [*source, *written])
        self.assertEqual(found.notes, [])
        beams = self.attribute(max_new_tokens=5, generation={"num_beams": 3})
        self.assertEqual(beams.ids, [*source, *self.generated(source, num_beams=3, do_sample=False)])
        torch.manual_seed(7)
        expected = self.generated(source, do_sample=True, temperature=1.5)
        torch.manual_seed(7)
        sampled = self.attribute(max_new_tokens=5, generation={"do_sample": True, "temperature": 1.5})
        self.assertEqual(sampled.ids, [*source, *expected])
        for one in (found, beams, sampled):
            self.assert_adds(one)

    def test_a_continuation_in_every_form(self):
        expected = self.attribute(self.sources[0], self.after)
        made = types.SimpleNamespace(sequences=torch.tensor([[self.start, *self.after]]))
        for continuation in (" and sat on the mat.", torch.tensor(self.after), made):
            self.assertEqual(self.attribute(self.texts[0], continuation), expected)

    def test_sources_that_are_padded(self):
        for side in ("right", "left"):
            self.tokenizer.padding_side = side
            padded = self.tokenizer(self.texts, padding=True, return_tensors="pt")
            self.tokenizer.padding_side = "left"
            for options in ({}, {"span": "all"}, {"target": "entropy"}, {"rows_per_run": 2}, {"prompts_per_run": 2}):
                found = self.attribute(padded, [self.after, self.after[:3], self.after[1:]], **options)
                for k, after in enumerate((self.after, self.after[:3], self.after[1:])):
                    alone = self.attribute(self.texts[k], after, **options)
                    np.testing.assert_allclose(found[k].matrix, alone.matrix, rtol=0, atol=2 * SUM)
                    np.testing.assert_allclose(found[k].values, alone.values, rtol=0, atol=SUM)
                    np.testing.assert_allclose(found[k].references, alone.references, rtol=0, atol=SUM)
                    self.assertEqual((found[k].ids, found[k].notes), (alone.ids, alone.notes))

    def test_nothing_warns(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.attribute(max_new_tokens=2)


def add_cases():
    for name in ("T5", "BART", "Marian", "mBART"):
        globals()[name + "Test"] = type(name + "Test", (TranslatorCases, unittest.TestCase), {"name": name})
    for architecture in ("GPT-2", "Llama", "Mistral"):
        for attention in ("eager", "sdpa"):
            name = "".join(one for one in architecture if one.isalnum()) + attention.capitalize() + "Test"
            globals()[name] = type(name, (Cases, unittest.TestCase), {"architecture": architecture, "attention": attention})


add_cases()

if __name__ == "__main__":
    unittest.main()
