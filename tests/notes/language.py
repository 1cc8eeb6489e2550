"""Notes of language models: for each a call of `addend.lm.attribute` that gives it."""

import dataclasses
from typing import Any, Callable

import torch
from torch import nn

import addend
from noted import SEED, Sentence

PROMPT = [1, 5, 2]


class Decoder(nn.Module):
    """The smallest that reads the tokens before its own alone.

    Attributes:
        branches: whether it counts its ids, which no component follows.
    """

    def __init__(self, branches: bool = False):
        super().__init__()
        torch.manual_seed(SEED)
        self.table = nn.Embedding(12, 6)
        self.layers = nn.ModuleList([Layer()])
        self.head = nn.Linear(6, 12)
        self.branches = branches
        self.double().eval()

    def forward(self, input_ids):
        x = self.table(input_ids).cumsum(1)
        if self.branches:
            x = x * input_ids.cumsum(1).unsqueeze(2)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(6, 6), nn.Tanh())

    def forward(self, x):
        return x + self.mlp(x)


class Elsewhere(Decoder):
    """Generates another path than that of the largest logits."""

    def generate(self, ids, max_new_tokens, do_sample):
        return torch.cat([ids, torch.full((1, max_new_tokens), 9)], 1)


class HalfHead(Decoder):
    """Looks at a mask of what the layers pass on, behind them."""

    def forward(self, input_ids):
        x = self.table(input_ids).cumsum(1)
        for layer in self.layers:
            x = layer(x)
        return self.head(torch.where(x > 0, x, x * 0.1 - 1))


class Opened(nn.Module):
    """The ids 1 and 5 open an attention, and 2 is what stands there."""

    def __init__(self):
        super().__init__()
        rows = [[27.0 if k in (1, 5) else -9.0, float(k == 2)] for k in range(12)]
        self.table = nn.Embedding.from_pretrained(torch.tensor(rows))

    def forward(self, input_ids):
        scores, content = self.table(input_ids).cumsum(1).split(1, 2)
        weights = torch.cat([scores, -scores], 2).softmax(2)[:, :, None]
        values = torch.stack([content, torch.zeros_like(content)], 2)
        return (weights @ values)[:, :, 0] * torch.arange(12.0)


class Shifts(Decoder):
    """Counts positions from the end of the padding."""

    def forward(self, input_ids):
        return super().forward(input_ids) * input_ids.shape[1]


class Translator(Decoder):
    """Reads a source, and goes on behind it."""

    def forward(self, input_ids, decoder_input_ids):
        return self.head(self.table(input_ids).sum(1, keepdim=True) + self.table(decoder_input_ids).cumsum(1))


class NoPad:
    """A tokenizer without a token of padding."""

    eos_token_id, pad_token_id = 0, None

    def encode(self, text, add_special_tokens=True):
        return [int(word) for word in text.split()]

    def decode(self, ids, skip_special_tokens=False):
        return " ".join(map(str, ids))


def explained(model: Any = None, **options: Any) -> Any:
    options = {"continuation": [4, 7], "baseline": 0, "preset": "faithful", **options}
    return addend.lm.attribute(Decoder() if model is None else model, PROMPT, **options)


def several(model: Any) -> Any:
    options = {"baseline": 0, "preset": "faithful"}
    return addend.lm.attribute(model, [PROMPT, PROMPT[1:]], [[4, 7], [4, 7]], **options)


@dataclasses.dataclass
class LanguageNoted(Sentence):
    """A note, and what asks for it.

    Attributes:
        ask: gives a `TokenAttribution`.
    """

    ask: Callable[[], Any] = explained


TABLE = [
    LanguageNoted("no_pad", ("the baseline is the eos token, because there is no pad token",), False,
                  lambda: explained(tokenizer=NoPad(), baseline=None)),
    LanguageNoted("prompt_again", ("the continuation begins with the whole prompt again",), True,
                  lambda: explained(continuation=[*PROMPT, 4])),
    LanguageNoted("unlikely", ("2 of the generated tokens have not the largest logit when the text is run at once",),
                  True, lambda: explained(Elsewhere(), continuation=None, max_new_tokens=2)),
    LanguageNoted("conditions", ("conditions or indices depend on the input",), True, lambda: explained(Decoder(True))),
    LanguageNoted("policies", ("under content_first=none more than a third of the contributions goes to other tokens",), True,
                  lambda: explained(Opened(), baseline=[0] * 5, target="logit", compare={"content_first": "none"})),
    LanguageNoted("of_the_other_policy", ("preset=fast: much is left over",), True,
                  lambda: explained(Opened(), baseline=[0, 0, 2, 0, 0], target="logit", compare={"preset": "fast"})),
    LanguageNoted("magnitude", ("conditions or indices depend on the input",), True,
                  lambda: explained(Decoder(True), by_magnitude="attention+gate")),
    LanguageNoted("one_by_one", ("the model does not take several prompts at once (it computes other numbers",), False,
                  lambda: several(Shifts())[0]),
    LanguageNoted("of_several", ("conditions or indices depend on the input", "(in a run of 2 prompts)"), True,
                  lambda: several(Decoder(True))[0]),
    LanguageNoted("encoder", ("the continuation begins with what the decoder begins with again",), True,
                  lambda: explained(Translator(), continuation=[3, 4], generation={"decoder_start_token_id": 3})),
    LanguageNoted("of_layers", ("layers: conditions or indices depend on the input",), True,
                  lambda: explained(HalfHead(), layers=True)),
]
