"""Two policies side by side, for `lm`: how much of the contributions goes to other tokens under each."""

import dataclasses
import math
from typing import Any, Dict, List, Mapping, Sequence

from ._lm_model import Run, as_matrix

# The share of the contributions from which on two policies disagree.
_APART = 1 / 3


@dataclasses.dataclass(eq=False)
class Comparison:
    """Contributions to the same numbers under another policy.

    For each row ``reference + contributions + leftover`` is the value here too, up to the recovery error.

    Attributes:
        policy: the choices that differ: ``"content_first=none"``.
        matrix: the contributions, as of `TokenAttribution`.
        references: by row, and so are `leftovers` and `recovery_errors`.
        disagreements: by row, the share of the contributions that goes to other tokens, or to the same ones with the other
            sign: 0 where both policies share out in the same proportions, 1 where they have nothing in common.
    """

    policy: str
    matrix: Any
    references: List[float]
    leftovers: List[float]
    recovery_errors: List[float]
    disagreements: List[float]

    def to_dict(self) -> Dict[str, Any]:
        """All of it as data that JSON knows."""
        return {**self.__dict__, "matrix": self.matrix if isinstance(self.matrix, list) else self.matrix.tolist()}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Comparison):
            return NotImplemented
        return repr(self.to_dict()) == repr(other.to_dict())  # as text, in which NaN is NaN

    def __hash__(self) -> int:
        return hash((self.policy, tuple(self.leftovers)))


def name_of_policy(other: Mapping[str, str], own: Mapping[str, str]) -> str:
    """The name of a policy beside another one: the choices in which it differs.

    Raises:
        ValueError: it does not.
    """
    choices = ["%s=%s" % (key, other[key]) for key in other if other[key] != own.get(key)]
    choices += ["%s as ever" % key for key in own if key not in other]
    if not choices:
        raise ValueError('compare is the policy of the run itself; give one that differs, such as {"content_first": "none"}')
    return ", ".join(choices)


def compared(policy: str, matrix: Sequence[Any], runs: Sequence[Run]) -> Comparison:
    """Puts the runs under another policy beside the rows of a matrix."""
    others = [row for run in runs for row in run.matrix]
    numbers = [one for run in runs for one in run.explanations]
    apart = [disagreement(*both) for both in zip(matrix, others)]
    _, references, leftovers, recovery_errors, _ = map(list, zip(*numbers))
    return Comparison(policy, as_matrix(others), references, leftovers, recovery_errors, apart)


def note_on(comparison: Comparison) -> List[str]:
    """The warning that two policies disagree; none where they do not."""
    apart = comparison.disagreements
    many = sum(one > _APART for one in apart)
    if not many:
        return []
    worst = max(range(len(apart)), key=apart.__getitem__)
    where = "" if len(apart) == 1 else " in %d of %d rows, most in row %d" % (many, len(apart), worst)
    return [
        "under %s more than a third of the contributions goes to other tokens%s (%.0f %%): the policies answer different "
        "questions, so say which one is asked" % (comparison.policy, where, 100 * apart[worst])
    ]


def disagreement(one: Sequence[float], other: Sequence[float]) -> float:
    """The share of the contributions that two policies give to other tokens, or with the other sign."""
    sums = [math.fsum(abs(number) for number in row) for row in (one, other)]
    if not all(0 < total < math.inf for total in sums):  # NaN is not either
        return float(sums[0] != sums[1])
    return math.fsum(abs(a / sums[0] - b / sums[1]) for a, b in zip(one, other)) / 2
