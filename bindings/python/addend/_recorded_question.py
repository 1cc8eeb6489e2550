"""A call of a live model, recorded to be asked what takes several runs of it."""

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ._attribution import Attribution
from ._composition import Composition
from ._errors import FailedPrecondition, InvalidArgument
from ._input import Input, as_inputs
from ._live_call import LiveCall
from ._live_check import require_same
from ._live_examples import record_call
from ._live_record import record_several
from ._live_tensors import has_parts, live_tensor
from ._model import Model
from ._reasons import Interactions
from ._same_numbers import APART, numbers_in
from ._state import State
from ._structure import map_leaves
from ._tensor import as_tensor

_OTHER_WAY = "a guard does not hold"
_ONE_WAY = (
    "%s. What is asked takes several runs of the model, for which a live one is recorded, and one of them goes another way "
    "than the call that was given: spell the branch with torch.where, or take a baseline with which the way is the same"
)
_TRIED = "were tried; record with an example of this size"
_NOT_ALONE = (
    "%s. The model does something else where it is given so many examples, as batch normalization does in training mode, so "
    "that the examples of a batch may influence each other: put it into evaluation mode, or ask for one example at a time"
)
_ALL_TOGETHER = (
    "the model reads numbers of all examples of the batch together, by which it may branch, so that they cannot be told "
    "apart: ask for one example at a time"
)


class RecordedQuestion(NamedTuple):
    """A call of a live model, recorded to be asked as a model from a file is.

    Attributes:
        model: the recording.
        inputs: every tensor of the call, by the names that the model gives them.
        positions: of them among these, by the identity of what was given.
        output: what the model returned.
        places: the tensors in that by their places, in order.
        names: what the recording calls them, by their places.
        before: the state of the model in which the call began, and so does every run.
        after: that which the call left.
    """

    model: Model
    inputs: Dict[str, Input]
    positions: Dict[int, int]
    output: Any
    places: Dict[str, Any]
    names: Dict[str, str]
    before: State
    after: State

    def explain(
        self, asked: Dict[str, Any], outputs: Optional[Sequence[str]], options: Dict[str, Any]
    ) -> Tuple[Attribution, Dict[int, int]]:
        """Explains, and returns what `TracedModel._explain` returns."""
        asked = {**asked, "at": self._at(asked["at"])}
        found = self._ask(self.model.explain, self.inputs, **asked, outputs=self._outputs(outputs), **options)
        found.output = self.output
        return found, self.positions

    def interactions(
        self, target: Any, concepts: Any, at: Optional[str], outputs: Optional[Sequence[str]], options: Dict[str, Any]
    ) -> Interactions:
        asked = {"target": target, "concepts": concepts, "at": self._at(at), "outputs": self._outputs(outputs)}
        return self._ask(self.model.interactions, self.inputs, **asked, **options)

    def shapley(self, cancellation: Any) -> Composition:
        return self._ask(self.model.shapley, self.inputs, cancellation=cancellation)

    def replayed(self) -> Dict[str, Any]:
        """The numbers that the recording gives on what the model was given, by their places."""
        results = self._ask(self.model.run, *[source.value for source in self.inputs.values()])
        return {place: results[name].torch() for place, name in self.names.items()}

    def _ask(self, ask: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self.before.restore()
        try:
            return ask(*args, **kwargs)
        except FailedPrecondition as error:
            if _OTHER_WAY not in str(error):
                raise
            raise FailedPrecondition(_ONE_WAY % error) from error
        except InvalidArgument as error:
            if _TRIED not in str(error):
                raise
            raise FailedPrecondition(_NOT_ALONE % error) from error
        finally:
            self.after.restore()

    def _outputs(self, outputs: Optional[Sequence[str]]) -> List[str]:
        """The names that the recording has for outputs of the model."""
        known = [place for place, tensor in self.places.items() if has_parts(tensor)]
        if outputs is not None and len(outputs) == 0:
            raise ValueError("outputs is empty; name some of %s, or leave it out" % ", ".join(known))
        for place in outputs or ():
            if place not in known:
                raise ValueError("the model returned no %s that holds numbers; it has %s" % (place, ", ".join(known)))
        return [self.names[place] for place in outputs or ()]

    def _at(self, at: Optional[str]) -> Optional[str]:
        """The recording's name of the explained tensor if it is an output of the model; else `at`, which is inside the
        model."""
        found = next((place for place in (at, "output.%s" % at) if place in self.places), None)
        return at if found is None else self.names[found]


def recorded_question(call: LiveCall, each_example: Optional[bool]) -> RecordedQuestion:
    """Records a call to be run again and again.

    Args:
        each_example: whether the first dimension counts examples; None: runs have the sizes of this one.
    """
    sources = as_inputs(call.given)
    if all(source.dims is None and source.labels is None and source.parts is None for source in sources):
        raise ValueError("nothing to attribute to: pass an addend.Input with dims or labels")
    before = call.state()
    program, returned, places = record_call(call.model, call.args, call.kwargs, True)
    after = call.state()
    given = (call.args, call.kwargs)
    larger = [] if each_example is None else _larger_calls(call.places, sources, given, each_example)
    # Numbers that left the tensors of a batch would be those of all its examples together.
    if larger and program.summary["guards"]:
        if _examples_of(sources, each_example) > 1:
            raise FailedPrecondition(_ALL_TOGETHER)
    elif larger:
        # Batches of examples have other sizes; a model that takes them is asked with them.
        before.restore()
        try:
            program = record_several(call.model, [given, *larger], True, numbers_in(returned))
        except Exception as error:
            if _examples_of(sources, each_example) > 1 or str(error).startswith(APART):
                raise
        finally:
            after.restore()
    inputs = dict(zip([name or "" for name in call.names], sources))
    names = dict(zip(places, (output.name for output in program.outputs)))
    question = RecordedQuestion(program.model(), inputs, call.places, returned, places, names, before, after)
    # The recording may draw from a generator, or read memory, that nobody knows of.
    require_same(call, numbers_in(returned), question.replayed())
    return question


def _examples_of(sources: Sequence[Input], each_example: Optional[bool]) -> int:
    """How many examples the inputs of a call hold; 0 where they count none."""
    split = [tuple(as_tensor(one.value).shape) for one in sources if one.dims is not None or one.labels is not None]
    count = split[0][0] if each_example and split and split[0] else 1
    return count if split and all(shape[:1] == (count,) for shape in split) else 0


def _larger_calls(
    places: Dict[int, int], sources: Sequence[Input], call: Tuple[Any, Any], each_example: bool
) -> List[Tuple[Any, Any]]:
    """Copies of a call with twice and three times as many examples; none if its inputs count none.

    Args:
        places: the inputs, by their identity.
        call: positional and named arguments.
    """
    import torch

    examples = _examples_of(sources, each_example)

    def times(factor: int) -> Any:
        made: Dict[int, Any] = {}

        def repeat(leaf: Any, path: str) -> Any:
            if id(leaf) not in places:
                return leaf
            if id(leaf) not in made:
                own = live_tensor(leaf if isinstance(leaf, torch.Tensor) else leaf.value)
                made[id(leaf)] = torch.cat([own] * factor) if own.shape[:1] == (examples,) else own
            return made[id(leaf)]

        return map_leaves(repeat, call, "")

    return [times(2), times(3)] if examples else []
