"""Inputs of models, and how they are divided into components."""

import copy
import numbers
from typing import Any, Iterable, List, Optional, Sequence, Union

from ._composition import Composition, as_dims
from ._table import as_row, as_table
from ._tensor import as_tensor


class Input:
    """A tensor that a model is given, with its split and its baseline.

    Args:
        value: the tensor, as NumPy, PyTorch or anything else has it. Or a table: a frame of pandas, anything with the Arrow
            C interface, or a structured array of NumPy, which becomes ``[rows, columns]`` of float32.
        dims: one component for each position along a dimension, or along several; negative ones count from the end.
        labels: one component for each label: integers of the value's shape, of its leading dimensions, or that broadcast
            to it; -1 for no component. Where the first dimension counts examples, those that may be of the leading
            dimensions or of the last ones are an error: ``[[0, 0, 1]]`` is of columns. Ids of tokens are split by this or
            by `dims`.
        parts: components as given, ``[numc, *shape]``; the rest of the value is its reference.
        baseline: the input that means "nothing": a tensor that broadcasts to the value, a number (for ids: a token), or
            a word: ``"mean:FILE"`` or ``"median:FILE"`` of a file of rows (.npy or .safetensors), ``"buffer:NAME"`` of
            the model (the running mean of a batch normalization of this input), ``"mean"`` of each channel of an
            image, ``"blur"`` or ``"blur:SIGMA"`` of an image. Zero unless given.
            For `Model.explain` also several, of whose attributions the means are given: ``"rows:FILE"``, all rows of a
            file, or ``"nearest:10:FILE"``, those that are nearest to the value by standardized Euclidean distance.
        baselines: several baselines for `Model.explain` in place of one: ``[K, *]``, each as `baseline`.
        names: of the components, in their order, for explanations: one for each, or none, and they are called by their
            position.
        first_component: where the components begin on the axis that all inputs share; unless given, right behind those
            of the inputs before.

    At most one of `dims`, `labels` and `parts` may be given; without any the input is plain, it has no components.
    """

    def __init__(
        self,
        value: Any,
        dims: Union[None, int, Iterable[int]] = None,
        *,
        labels: Any = None,
        parts: Any = None,
        baseline: Any = None,
        baselines: Any = None,
        names: Iterable[str] = (),
        first_component: Optional[int] = None,
    ):
        if baseline is not None and baselines is not None:
            raise TypeError("an input has a baseline or several baselines, not both")
        splits = [name for name, split in (("dims", dims), ("labels", labels), ("parts", parts)) if split is not None]
        if len(splits) > 1:
            raise TypeError("an input is split in one way, not by %s" % " and ".join(splits))
        if first_component is not None and first_component < 0:
            raise ValueError("first_component is %d, it counts from 0" % first_component)
        self.value = value
        self.dims = None if dims is None else as_dims(dims)
        self.labels = labels
        self.parts = parts
        self.baseline = baseline
        self.baselines = baselines
        self.names = tuple(names)
        self.first_component = first_component
        self._take_tables()

    @property
    def has_several_baselines(self) -> bool:
        """Whether attributions are means over several baselines."""
        word = self.baseline if isinstance(self.baseline, str) else ""
        return self.baselines is not None or word.startswith(("rows:", "nearest:"))

    def _take_tables(self) -> None:
        """Puts the numbers of tables in their place, and takes the names of their columns."""
        table = as_table(self.value)
        row = as_table(self.baseline) if table is None else as_row(self.baseline)
        rows = as_table(self.baselines)
        for given, word in ((row, "baseline"), (rows, "baselines")):
            if given is not None and table is not None and given.names != table.names:
                raise ValueError(
                    "the columns of the %s are %s, those of the input %s"
                    % (word, ", ".join(given.names), ", ".join(table.names))
                )
        if rows is not None:
            self.baselines = rows.tensor
        if row is not None:
            self.baseline = row.tensor
        elif table is not None and not (self.baseline is None or isinstance(self.baseline, (numbers.Real, str))):
            self.baseline = as_tensor(self.baseline).to(table.tensor.dtype)
        if table is not None:
            self.value = table.tensor
            if self.dims in ((1,), (-1,)):
                self.names = self.names or table.names

    def __repr__(self) -> str:
        shape = getattr(self.value, "shape", None)
        split = next((name for name in ("dims", "labels", "parts") if getattr(self, name) is not None), "plain")
        return "Input(%s, split=%r)" % ("value" if shape is None else list(shape), split)


class Inside:
    """A tensor inside a model at which components begin: the heads of an attention, neurons, experts. What the model
    computes before it is the same for all of them, and its arguments are plain.

    Args:
        selector: which floating-point tensor, told as probes are: ``"layers.0.attention"`` (a module), ``"#28"`` (an
            operator by its number), ``"aten::gelu"`` or ``"aten::gelu:2"`` (by its name), ``"logits"``.
        dims: one component for each position along a dimension of the tensor, or along several.
        labels: one component for each label; this or `dims` is given. Its shape is as for `Input`.
        heads: one component for each head of an attention, in place of `dims` and `labels`. True: `selector` is the module
            of an attention, and the tensor is the one in which its heads lie next to each other: what its last projection
            reads, or what it gives where it projects nothing behind the attention. A number: the same with that many
            heads; or `selector` is an operator's result, ``[batch, heads, tokens, size]`` or, of fewer dimensions,
            ``[..., heads * size]``. The model is recorded once more to find it.
        experts: one component for each expert that runs, in place of `dims` and `labels`: `selector` is the module that
            holds them, as modules ``"0"``, ``"1"``, or in parameters whose first dimension counts experts. It stands for
            several of these, in the order of the experts. The model is recorded once more to find them.
        baseline: what means "nothing" there, as for `Input`, but for words that need the value; zero unless given.
        names: as for `Input`; ``"head 0"`` or ``"expert 0"`` unless given, with the selector in front where there are
            several of these.
        first_component: as for `Input`.
    """

    def __init__(
        self,
        selector: str,
        dims: Union[None, int, Iterable[int]] = None,
        *,
        labels: Any = None,
        heads: Union[None, bool, int] = None,
        experts: bool = False,
        baseline: Any = None,
        names: Iterable[str] = (),
        first_component: Optional[int] = None,
    ):
        asked = [("dims", dims is not None), ("labels", labels is not None), ("heads", heads), ("experts", experts)]
        splits = [name for name, given in asked if given]
        if len(splits) > 1:
            raise TypeError("a tensor inside is split in one way, not by %s" % " and ".join(splits))
        if heads is not None and (not isinstance(heads, int) or (heads is not True and heads < 0)):
            raise TypeError("heads is True or their number, not %r" % (heads,))
        if heads and heads is True and "::" in selector:
            raise TypeError("%s is an operator, of which heads=8 says how many heads it has" % selector)
        if (heads or experts) and (selector.startswith("#") or selector == "logits"):
            raise TypeError("%s is neither a module nor an operator by its name" % selector)
        if first_component is not None and first_component < 0:
            raise ValueError("first_component is %d, it counts from 0" % first_component)
        self.selector = selector
        self.dims = None if dims is None else as_dims(dims)
        self.labels = labels
        self.heads = heads or None
        self.experts = bool(experts)
        self.parts = None
        self.baseline = baseline
        self.names = tuple(names)
        self.first_component = first_component

    def __repr__(self) -> str:
        splits = ("dims", "labels", "heads", "experts")
        split = next((name for name in splits if getattr(self, name) not in (None, False)), "plain")
        return "Inside(%r, split=%r)" % (self.selector, split)


def one_or_list(inside: Any) -> Any:
    """None, also where there are none; one of them as it is; several, of which some iterables give each only once, as a
    tuple or list."""
    if inside is None or isinstance(inside, (Inside, tuple, list)):
        return inside or None
    return list(inside) or None


def as_insides(inside: Any) -> List[Inside]:
    """None, one of them, or several."""
    listed = [] if inside is None else [inside] if isinstance(inside, Inside) else list(inside)
    for one in listed:
        if not isinstance(one, Inside):
            raise TypeError("inside is an addend.Inside or a list of them, not a %s" % type(one).__name__)
    return listed


def as_inputs(values: Sequence[Any]) -> List[Input]:
    """Inputs as they are; tensors as plain ones. Compositions become their components, the residual being the
    reference: all of them share one axis, from component 0 on, as they do wherever compositions meet, and what has no
    place of its own comes behind them. `Input` with `parts` and `first_component` places them otherwise."""
    for value in values:
        if isinstance(value, Inside):
            raise TypeError("what is inside a model is no argument of it; pass inside=%r" % value)
    behind = max((value.numc for value in values if isinstance(value, Composition)), default=0)
    inputs = []
    end = 0  # of the components so far
    for value in values:
        if isinstance(value, Composition):
            source = Input(value.value, parts=value.components, first_component=0)
        else:
            source = value if isinstance(value, Input) else Input(value)
            if behind and source.first_component is None and _is_split(source):
                source = copy.copy(source)
                source.first_component = max(end, behind)
        if behind and _is_split(source):
            end = max(end, (source.first_component or 0) + _count(source))
        inputs.append(source)
    return inputs


def as_input(value: Any) -> Input:
    """One of them."""
    return as_inputs([value])[0]


def note_of_axis(values: Sequence[Any]) -> Optional[str]:
    """Returns a note on the shared component axis if compositions that no single run gave are used together, else
    None."""
    given = [value for value in values if isinstance(value, Composition)]
    if len({id(value._run if value._run is not None else value) for value in given}) < 2:
        return None
    return (
        "%d compositions that no single run gave share the components from 0 on, so that component 0 is the same cause "
        "in all; give them as addend.Input(value, parts=..., first_component=...) where it is not" % len(given)
    )


def warnings_before(values: Sequence[Any]) -> List[str]:
    """The warnings of the runs that gave compositions among some values, or what these were computed from, each once."""
    runs = [value._run or value._origin for value in values if isinstance(value, Composition)]
    return list(dict.fromkeys(warning for run in runs if run is not None for warning in run.warnings))


def _is_split(source: Input) -> bool:
    return source.dims is not None or source.labels is not None or source.parts is not None


def _count(source: Input) -> int:
    """The components of a split input; 0 where the split does not fit, which the run says."""
    if source.parts is not None:
        return as_tensor(source.parts).shape[0]
    if source.labels is not None:
        labels = as_tensor(source.labels).tolist()
        while labels and isinstance(labels, list) and isinstance(labels[0], list):
            labels = [label for row in labels for label in row]
        return max(labels, default=-1) + 1 if isinstance(labels, list) else labels + 1
    shape = as_tensor(source.value).shape
    count = 1
    for dim in source.dims or ():
        count *= shape[dim] if -len(shape) <= dim < len(shape) else 0
    return count


def require_names(name: Optional[str], source: Input) -> None:
    """Makes sure that an input has a name for each of its components, or none.

    Raises:
        ValueError: it has another number of names.
    """
    if source.names and _is_split(source) and len(source.names) != _count(source):
        raise ValueError(
            "%s has %d components, but %d names; give one for each, or none"
            % (name or "the input", _count(source), len(source.names))
        )
