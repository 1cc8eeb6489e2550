"""A tokenizer whose ids are words of their own, for packages that take nothing but text."""

import tokenizers
import transformers

SPECIAL = ("<none>", "<begin>", "<end>")


def word(k):
    return SPECIAL[k] if k < len(SPECIAL) else "w%d" % k


def words(ids):
    return " ".join(map(word, ids))


def tokenizer(size, **options):
    # No beginning is added unless asked for: Inseq would explain another text (transformers 5 heeds add_bos_token).
    inner = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word(k): k for k in range(size)}, unk_token=SPECIAL[0])
    )
    inner.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token=SPECIAL[0], unk_token=SPECIAL[0], bos_token=SPECIAL[1], eos_token=SPECIAL[2],
        name_or_path="words", **options,
    )
