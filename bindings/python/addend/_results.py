"""Results of runs."""

import json
from typing import Any, Callable, Dict, Iterator, List, Optional, Union

from . import _native
from ._composition import Composition
from ._explanation import Explanation
from ._handle import Handle
from ._notes import with_warnings
from ._result_at import result_at
from ._run import Run
from ._target import Target, as_target


class Results(Handle):
    """The results of a run, in order, with its report: the outputs of the model, then the probes.

    ``results[0]`` and ``results["logits"]`` are a `Composition`, or a `Tensor` where nothing was decomposed (integers,
    bools, and what does not depend on the inputs).

    Attributes:
        output: what a live model returned, in the shape that it has there: a tensor, tuple, dict or dataclass with
            compositions in place of tensors. None for models from files.
    """

    __slots__ = ("output", "_run")
    _INSTEAD = "send an explanation of them, or parts of their compositions as arrays"

    def __init__(self, capsule: Any, output: Any = None):
        super().__init__(capsule)
        self.output = output
        self._run = Run(tuple(_lines(_native.results_note, capsule)), tuple(_lines(_native.results_warning, capsule)))

    @property
    def names(self) -> List[Optional[str]]:
        """``"output"``, ``"output.1"``, the selectors of probes."""
        handle = self._handle
        return [_native.results_name(handle, index) for index in range(len(self))]

    def __len__(self) -> int:
        return _native.results_size(self._handle)

    def __getitem__(self, key: Union[int, str]) -> Any:
        if isinstance(key, str):
            names = self.names
            if key not in names:
                raise KeyError("no result %r; there are %s" % (key, ", ".join(map(repr, names))))
            return result_of_run(self._handle, names.index(key), self._run)
        size = len(self)
        index = key + size if key < 0 else key
        if not 0 <= index < size:
            raise IndexError("result %d of %d" % (key, size))
        return result_of_run(self._handle, index, self._run)

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def explain(self, target: Target = "top1", name: Optional[str] = None) -> Explanation:
        """Explains one number of a composition among the results, with the names of the inputs' components.

        Args:
            target: which element: its index (``7``, ``(0, 7)``), ``"top1"`` (the largest), or text such as
                ``"0,7-0,2"``, the first minus the second.
            name: which result; the first one unless given.
        """
        return Explanation(_native.results_explain(self._handle, name, as_target(target)))

    @property
    def report(self) -> Dict[str, Any]:
        """The report of the run: policy, counts, errors, notes, and every check, the worst first."""
        return json.loads(_native.results_report(self._handle))

    def number(self, key: str) -> float:
        """One number of the report, such as ``"worst_recovery_error"``, without the rest; NaN if it has none."""
        return _native.results_report_number(self._handle, key)

    @property
    def notes(self) -> List[str]:
        """The notes that a reader has to know, one line each."""
        self._handle
        return list(self._run.notes)

    @property
    def warnings(self) -> List[str]:
        """The notes that say that numbers may not mean what a reader takes them for."""
        self._handle
        return list(self._run.warnings)

    def __repr__(self) -> str:
        return "Results(closed)" if self.closed else "Results(%s)" % ", ".join(map(repr, self.names))

    def __str__(self) -> str:
        return repr(self) if self.closed else "\n".join(with_warnings([repr(self)], self.warnings))


def _lines(line_at: Callable[[Any, int], Optional[str]], results: Any) -> Iterator[str]:
    index = 0
    while True:
        line = line_at(results, index)
        if line is None:
            return
        yield line
        index += 1


def result_of_run(results: Any, index: int, run: Run) -> Any:
    """One result of a run, which a composition then knows."""

    def composed(capsule: Any) -> Composition:
        composition = Composition._adopt(capsule)
        composition._run = run
        return composition

    return result_at(results, index, composed)
