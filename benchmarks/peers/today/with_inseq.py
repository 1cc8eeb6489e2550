"""Inseq's methods for a decoder that continues a text; each id is a word of its own, since it takes nothing but text."""

import importlib.metadata

import inseq
import tokenizers
import transformers

from questions import Explanation, NotFor

VERSION = importlib.metadata.version("inseq")
STEPS = 50
SPECIAL = ("<none>", "<begin>", "<end>")


def word(k):
    return SPECIAL[k] if k < len(SPECIAL) else "w%d" % k


def words(ids):
    return " ".join(map(word, ids))


def tokenizer(size):
    inner = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word(k): k for k in range(size)}, unk_token=SPECIAL[0])
    )
    inner.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token=SPECIAL[0], unk_token=SPECIAL[0], bos_token=SPECIAL[1], eos_token=SPECIAL[2],
    )


def method(name, aim="difference", **options):
    def make(case):
        if case.decoder is None:
            raise NotFor("for models of transformers that continue a text")
        network = case.decoder.model
        model = inseq.load_model(network, name, tokenizer=tokenizer(network.config.vocab_size))

        def explain(question):
            ids = question.decoder.ids[0].tolist()
            found = model.attribute(
                words(ids), words(ids + [question.target]), attributed_fn="logit", show_progress=False,
                pretty_progress=False, **options,
            )
            by_token = found.sequence_attributions[0].target_attributions
            # [tokens, generated] or [tokens, generated, width]; the last token is the one that is explained.
            by_token = by_token[: len(ids), -1].double()
            return Explanation(by_token if by_token.dim() == 1 else by_token.sum(-1), aim=aim)

        return explain

    return make


METHODS = {
    "inseq integrated_gradients": method("integrated_gradients", n_steps=STEPS),
    "inseq input_x_gradient": method("input_x_gradient"),
    "inseq occlusion": method("occlusion"),
    "inseq value_zeroing": method("value_zeroing"),
}
