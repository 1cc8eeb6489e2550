"""Inseq's methods for a decoder that continues a text."""

import importlib.metadata

import inseq

from questions import Explanation, NotFor
from words import tokenizer, words

VERSION = importlib.metadata.version("inseq")
STEPS = 50


def method(name, aim="difference", **options):
    def make(case):
        if case.decoder is None:
            raise NotFor("for models of transformers that continue a text")
        network = case.decoder.model
        known = tokenizer(network.config.vocab_size)
        model = inseq.load_model(network, name, tokenizer=known)

        def explain(question):
            if question.decoder is None:
                raise NotFor("for texts, not for embeddings between them")
            ids = question.decoder.ids[0].tolist()
            if known(words(ids))["input_ids"] != ids:
                raise ValueError("the tokenizer makes other ids of the words")
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
