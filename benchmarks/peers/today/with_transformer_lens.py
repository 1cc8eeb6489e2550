"""Direct logit attribution of TransformerLens: what each component wrote into the last residual stream is worth to a logit.

Its parts are components (embeddings, attention and feed-forward of each layer), not tokens, so that nothing but the sum is
compared: with the logit itself, which also has what the final norm's and the last layer's biases add.
"""

import importlib.metadata
import tempfile

import torch
from transformer_lens.model_bridge import TransformerBridge

from questions import Explanation, NotFor
from words import tokenizer

VERSION = importlib.metadata.version("transformer-lens")


def direct_logit_attribution(case):
    if case.decoder is None:
        raise NotFor("for models of transformers that continue a text")
    with tempfile.TemporaryDirectory() as folder:
        case.decoder.model.save_pretrained(folder)
        size = case.decoder.model.config.vocab_size
        # The package asks tokenizers for add_bos_token, but is given ids.
        model = TransformerBridge.boot_transformers(folder, device="cpu", tokenizer=tokenizer(size, add_bos_token=True))
    model.enable_compatibility_mode()

    def explain(question):
        with torch.no_grad():
            logits, cache = model.run_with_cache(question.decoder.ids)
            parts = cache.decompose_resid(pos_slice=-1)
            worth = cache.apply_ln_to_stack(parts, pos_slice=-1)[:, 0] @ model.W_U[:, question.target]
        return Explanation(worth, aim="value", of_units=False)

    return explain


METHODS = {"TransformerLens direct logit attribution": direct_logit_attribution}
