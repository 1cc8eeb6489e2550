"""Outputs of a plain live model on the baselines of a call."""

from typing import Any, Callable, Dict, List, Optional


class OnBaseline:
    """Runs the plain model on the baselines of a traced call, at most once, and where somebody asks."""

    def __init__(self) -> None:
        self._reported = False
        self._run: Optional[Callable[[List[Any]], Dict[str, Any]]] = None
        self._names: Dict[str, int] = {}
        self._baselines: Optional[List[Any]] = None
        self._found: Optional[Dict[str, Any]] = None

    def reported(self, asks: bool = True) -> "OnBaseline":
        """Sets whether the outputs are also given to the report of the call, and returns this object."""
        self._reported = asks
        return self

    def begin(self, run: Callable[[List[Any]], Dict[str, Any]], names: Dict[str, int]) -> None:
        """Takes what runs the model, and the outputs that the call asks for, which are known when it ends."""
        self._run, self._names = run, names

    def __call__(self, baselines: List[Any]) -> Dict[str, Any]:
        """Takes the baselines, and returns the outputs by name for the report; empty unless the report asks for
        them."""
        self._baselines = [baseline.clone() for baseline in baselines]
        return self._outputs() if self._reported else {}

    def output(self, at: Optional[str]) -> Optional[Any]:
        """The plain model's output of that name, or the first one; None if it is no output, or if no call was
        traced."""
        if self._baselines is None:
            return None
        found = self._outputs()
        # Only "logits" is completed to an output's name: another bare name may be that of a module.
        name = next(iter(self._names)) if at is None else "output.logits" if at == "logits" else at
        return found.get(name)

    def _outputs(self) -> Dict[str, Any]:
        if self._found is None:
            assert self._run is not None and self._baselines is not None
            given = self._run(self._baselines)
            self._found = {name: given[name] for name in self._names if name in given}
        return self._found
