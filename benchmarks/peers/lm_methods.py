"""Attributions of a language model: Addend and its peers, each a function from a text to what its tokens contributed.

A maker takes a text and the checkouts. It returns what is called and timed, and what makes an Answer of its result. It may
raise anything: what a peer says is the reason that is reported.
"""

import numpy
import tokenizers
import torch
import transformers

import addend
import checkouts
from processes import Missing

SHAPE = {
    "vocab_size": 4000,
    "hidden_size": 256,
    "intermediate_size": 704,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    # Standard deviation of weights: with the 0.02 that training begins with, attention and gates are near uniform.
    "initializer_range": 0.0625,
}
SPECIAL = ("<none>", "<begin>", "<end>")
BASELINE = 0  # the token that means "nothing"

IG_STEPS = 50
# Integrated gradients run so many steps at once that a batch has about as many tokens: all steps at once take more
# memory and are not faster on a CPU.
BATCH_TOKENS = 8192

# Limits of the second Addend: memory beside the model, and tokens that it explains in one sweep.
MEMORY_MB = 50
ROWS_PER_RUN = 8

# Questions: a number for each generated token, or one for all of them.
EACH, TOGETHER = "each", "together"


class Text:
    """A model with random weights, a random prompt, both of a fixed seed, and what the model goes on with.

    Attributes:
        model: a decoder of transformers.
        ids: of prompt and generated tokens in one, [1, tokens].
        first: how many of them are the prompt.
        aims: what the contributions to each generated token shall add up to, by plain runs: "difference" of its
            log-probability to that on a baseline; the same where only the "prompt" is replaced; its "logit".
    """

    def __init__(self, prompt, generated, shape=None, seed=0):
        torch.manual_seed(seed)
        config = transformers.LlamaConfig(
            **{**SHAPE, **(shape or {})}, max_position_embeddings=2048, attn_implementation="sdpa",
            # No token of padding: its embedding would be zero, where integrated gradients do not converge.
            pad_token_id=None, bos_token_id=1, eos_token_id=2,
        )
        self.model = transformers.LlamaForCausalLM(config).eval()
        for parameter in self.model.parameters():
            parameter.requires_grad_(False)
        self.first = prompt
        self.ids = self._continued(torch.randint(len(SPECIAL), config.vocab_size, (1, prompt)), generated)
        baseline = torch.full_like(self.ids, BASELINE)
        prompt_only = torch.cat([baseline[:, :prompt], self.ids[:, prompt:]], 1)
        with torch.no_grad():
            value = self.log_probabilities(self.logits(self.ids))
            self.aims = {
                "difference": value - self.log_probabilities(self.logits(baseline)),
                "prompt": value - self.log_probabilities(self.logits(prompt_only)),
                "logit": self.of_generated(self.logits(self.ids)),
            }
        self.values = value[0]

    def _continued(self, ids, count):
        """Ids and the tokens of the largest logits behind them, special ones left out."""
        cache, given = None, ids
        with torch.no_grad():
            for _ in range(count):
                found = self.model(input_ids=given, past_key_values=cache, use_cache=True, logits_to_keep=1)
                cache = found.past_key_values
                given = found.logits[:, -1, len(SPECIAL) :].argmax(-1, keepdim=True) + len(SPECIAL)
                ids = torch.cat([ids, given], 1)
        return ids

    @property
    def generated(self):
        return self.ids.shape[1] - self.first

    def logits(self, ids=None, embedded=None):
        """Logits at the positions that the generated tokens were taken from: [batch, generated, vocabulary]."""
        found = self.model(
            input_ids=ids, inputs_embeds=embedded, use_cache=False, logits_to_keep=self.generated + 1
        ).logits
        return found[:, :-1]

    def log_probabilities(self, logits):
        return self.of_generated(logits.log_softmax(-1))

    def of_generated(self, numbers):
        """Those of the generated tokens among numbers of the whole vocabulary."""
        own = self.ids[:, self.first :, None].expand(len(numbers), -1, 1)
        return numbers.gather(-1, own).squeeze(-1)

    def tokenizer(self):
        """Each id is a word of its own, since some peers take nothing but text."""
        words = {self._word(k): k for k in range(self.model.config.vocab_size)}
        inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token=SPECIAL[0]))
        inner.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
        return transformers.PreTrainedTokenizerFast(
            tokenizer_object=inner, pad_token=SPECIAL[0], unk_token=SPECIAL[0], bos_token=SPECIAL[1],
            eos_token=SPECIAL[2],
        )

    def words(self, end=None):
        return " ".join(self._word(k) for k in self.ids[0, :end].tolist())

    @staticmethod
    def _word(k):
        return SPECIAL[k] if k < len(SPECIAL) else "w%d" % k


class Answer:
    """Contributions to what was asked.

    Attributes:
        sums: of the contributions to each generated token, or of those to all of them.
        aim: what they shall be; see `Text.aims`.
        beside: what else is reported.
    """

    def __init__(self, matrix, aim="difference", **beside):
        self.sums = torch.as_tensor(matrix).double().sum(-1).reshape(-1).tolist()
        self.aim = aim
        self.beside = beside


class Peers:
    """Checkouts by name; imported when asked for."""

    def __init__(self, folders):
        self._folders = folders

    def captum(self):
        return checkouts.captum(self._folder("captum"))

    def inseq(self):
        return checkouts.inseq(self._folder("inseq"), self._folder("captum"))

    def lxt(self):
        return checkouts.lxt(self._folder("lxt"))

    def _folder(self, name):
        if not self._folders.get(name):
            raise Missing("no checkout of %s was given" % name)
        return self._folders[name]


def plain(text, question, peers):
    """The model itself: what everything is compared with."""
    return torch.no_grad()(lambda: text.logits(text.ids)), None


def addend_lm(**options):
    def make(text, question, peers):
        ids = text.ids[0].tolist()
        span = "all" if question == TOGETHER else None

        def run():
            return addend.lm.attribute(
                text.model, ids[: text.first], ids[text.first :], baseline=BASELINE, span=span, **options
            )

        def answer(found):
            # Largest difference between the reported values and those of plain runs.
            rows = text.values if question == EACH else text.values.sum()[None]
            said = max(abs(float(one) - float(own)) for one, own in zip(found.values, rows))
            return Answer(
                numpy.asarray(found.matrix), value_error=said, leftover=max(map(abs, found.leftovers)),
                recovery_error=max(found.recovery_errors),
            )

        return run, answer

    return make


def gradient_x_input(text, question, peers):
    embedded = text.model.get_input_embeddings()(text.ids)
    return (
        lambda: _gradients(text, embedded, question, text.log_probabilities) * embedded,
        lambda found: Answer(found.sum(-1)),
    )


def integrated_gradients(text, question, peers):
    """On the straight line from the embeddings of the baseline, in batches."""
    embeddings = text.model.get_input_embeddings()
    end, start = embeddings(text.ids), embeddings(torch.full_like(text.ids, BASELINE))
    places, weights = (torch.tensor(own, dtype=end.dtype) for own in numpy.polynomial.legendre.leggauss(IG_STEPS))
    shares = ((places + 1) / 2).view(-1, 1, 1)
    at_once = steps_at_once(text.ids.shape[1])

    def run():
        total = 0
        for first in range(0, IG_STEPS, at_once):
            some = slice(first, first + at_once)
            points = start + shares[some] * (end - start)
            found = _gradients(text, points, question, text.log_probabilities, weights[some] / 2)
            total = total + found
        return total * (end - start)

    return run, lambda found: Answer(found.sum(-1))


def steps_at_once(tokens):
    return max(1, min(IG_STEPS, BATCH_TOKENS // tokens))


def lxt(text, question, peers):
    """AttnLRP, which distributes a logit: gradients times input, of classes that it gave other gradients."""
    from transformers.models.llama import modeling_llama

    peers.lxt().monkey_patch(modeling_llama)
    embedded = text.model.get_input_embeddings()(text.ids)
    return (
        lambda: _gradients(text, embedded, question, text.of_generated) * embedded,
        lambda found: Answer(found.sum(-1), "logit"),
    )


def _gradients(text, points, question, numbers, weights=None):
    """Weighted sums over points of the gradients of what was asked: [rows, tokens, width], by one run of the model.

    Args:
        points: embeddings, [points, tokens, width].
        numbers: what of the logits is explained.
    """
    points = points.detach().requires_grad_()
    found = numbers(text.logits(embedded=points))
    total = found.sum(0) if weights is None else weights @ found
    asked = total if question == EACH else total.sum()[None]
    rows = []
    for k, one in enumerate(asked):
        (gradient,) = torch.autograd.grad(one, points, retain_graph=k + 1 < len(asked))
        rows.append(gradient.sum(0))
    return torch.stack(rows)


def captum_perturbing(name, **options):
    """Its class for language models around one of its methods that run the model on changed prompts."""

    def make(text, question, peers):
        attr = peers.captum()
        method = attr.LLMAttribution(getattr(attr, name)(text.model), text.tokenizer())
        # Its cache of keys and values gives other numbers than runs without, with transformers 5.
        return _captum(text, attr, method, use_cached_outputs=False, **options)

    return make


def captum_gradients(name, **options):
    """Its class for language models around one of its methods for a layer, here that of the embeddings."""

    def make(text, question, peers):
        attr = peers.captum()
        layer = getattr(attr, name)(text.model, text.model.get_input_embeddings())
        given = {"internal_batch_size": steps_at_once(text.ids.shape[1]), **options} if options else {}
        return _captum(text, attr, attr.LLMGradientAttribution(layer, text.tokenizer()), **given)

    return make


def _captum(text, attr, method, **options):
    prompt = attr.TextTokenInput(text.words(text.first), text.tokenizer(), baselines=BASELINE)
    return (
        lambda: method.attribute(prompt, target=text.ids[0, text.first :], **options),
        lambda found: Answer(found.token_attr, "prompt"),
    )


def inseq(name, **options):
    def make(text, question, peers):
        model = peers.inseq().load_model(text.model, name, tokenizer=text.tokenizer())
        given = {"internal_batch_size": steps_at_once(text.ids.shape[1]), **options} if options else {}

        def run():
            return model.attribute(
                text.words(text.first), text.words(), attributed_fn="probability", logprob=True, show_progress=False,
                pretty_progress=False, **given,
            )

        def answer(found):
            # [tokens, generated, width]; what stands behind a generated token is not a number.
            by_token = found.sequence_attributions[0].target_attributions
            return Answer(by_token.nansum(-1).T)

        return run, answer

    return make


class Method:
    def __init__(self, make, *questions):
        self.make = make
        self.questions = questions or (EACH,)


# In the order of tables; the first word says whose it is.
METHODS = {
    "plain run": Method(plain),
    "Addend faithful": Method(addend_lm(preset="faithful"), EACH, TOGETHER),
    "Addend faithful, %d MB" % MEMORY_MB: Method(
        addend_lm(preset="faithful", memory=MEMORY_MB * 10**6, rows_per_run=ROWS_PER_RUN), EACH, TOGETHER
    ),
    "Addend fast": Method(addend_lm(preset="fast"), EACH, TOGETHER),
    "gradient x input": Method(gradient_x_input, EACH, TOGETHER),
    "integrated gradients": Method(integrated_gradients, EACH, TOGETHER),
    "LXT AttnLRP": Method(lxt, EACH, TOGETHER),
    "Captum gradient x activation": Method(captum_gradients("LayerGradientXActivation")),
    "Captum integrated gradients": Method(captum_gradients("LayerIntegratedGradients", n_steps=IG_STEPS)),
    "Captum ablation": Method(captum_perturbing("FeatureAblation")),
    "Captum Shapley, 1 order": Method(captum_perturbing("ShapleyValueSampling", n_samples=1)),
    "Inseq gradient x input": Method(inseq("input_x_gradient")),
    "Inseq integrated gradients": Method(inseq("integrated_gradients", n_steps=IG_STEPS)),
}
