"""Several texts in one run, for `lm`.

Texts are padded behind their ends, where neither a causal decoder nor a masked encoder reads them, so that every token
has the position that it has alone. The generated tokens then stand at other positions in each text, and are of other
classes, while one sweep explains the same element of all texts. So the logits that they were taken from are moved to
the same places: `aligned`.
"""

import functools
import types
from typing import Any, Callable, List, Sequence

from ._lm_targets import Question


def padded(rows: Sequence[Sequence[int]]) -> List[List[int]]:
    """Rows of one length; the id behind their ends is read by nobody."""
    width = max(map(len, rows))
    return [[*row, *([0] * (width - len(row)))] for row in rows]


def place_of(question: Question, k: int) -> int:
    """The place of a generated token among the classes that `aligned` gives."""
    one = question.text.continuation[k]
    return {"entropy": one, "logit": 1 + one, "contrast": 2 + one}.get(question.rows.kind, 0)


def aligned(model: Any, questions: Sequence[Question], logits_of: Callable[[Any], Any]) -> Any:
    """Makes a method of a module that returns the logits which generated tokens were taken from, ``[texts, generated
    tokens, classes]``: what is explained of a token is class 0, and what a contrast subtracts is class 1. A text of
    fewer generated tokens has its last one several times.

    Args:
        logits_of: reads logits from what the model returns, for the last positions at least.
    """
    import torch

    kind = questions[0].rows.kind
    texts = [question.text for question in questions]
    width = max(len(text.written) for text in texts)
    count = max(len(text.continuation) for text in texts)

    def of_each(number: Callable[[Question, int], int]) -> Any:
        return torch.tensor([[number(one, min(k, len(one.rows.this) - 1)) for k in range(count)] for one in questions])

    # Counted from the end of the padded texts.
    places = of_each(lambda one, k: len(one.text.start) - 1 + k - width)
    this, that = (of_each(lambda one, k, side=side: getattr(one.rows, side)[k])[..., None] for side in ("this", "that"))
    text = torch.arange(len(texts))[:, None]

    @functools.wraps(type(model).forward, updated=())
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        logits = logits_of(self(*args, **kwargs))
        device = logits.device
        rows = logits[text.to(device), (places + logits.shape[1]).to(device)]
        if kind == "entropy":
            return rows
        own = rows.gather(2, this.to(device))
        if kind == "logit":
            return torch.cat([own, rows], 2)
        if kind == "contrast":
            return torch.cat([own, rows.gather(2, that.to(device)), rows], 2)
        # A softmax is the same for classes in another order: the explained one and class 0 change places.
        return torch.cat([own, rows.scatter(2, this.to(device), rows[..., :1])[..., 1:]], 2)

    return types.MethodType(forward, model)
