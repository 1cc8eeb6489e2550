"""The attribution of every row of a data set, in shards that any engine may run."""

import json
import os
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from . import _native
from ._context import Context, PolicyChoices, as_context
from ._handle import Handle
from ._job_plan import shard_number
from ._job_results import JobResults
from ._notes import warn_of
from ._reasons import described
from ._request import add_outputs, add_targets, explained, new_model_request
from ._unpack import Unpack

Path = Union[str, "os.PathLike[str]"]


class Job(Handle):
    """A worker of a job: the model of a plan, ready to compute shards of it::

        row = addend.Input(row, dims=1, baseline=mean)
        addend.Job.plan("plan.json", "model.pt", row, rows=["rows.npy"], targets="0")
        job = addend.Job("plan.json")
        for shard in range(job.shards):
            job.run(shard)
        addend.Job.merge("plan.json")

    Whoever computes a shard needs the versions, BLAS, instructions and threads (`set_num_threads`) of the process that
    made the plan. Shards may be run twice and killed at any time. Threads that share one wait for each other; what else
    there is to know is in docs/jobs.md.

    Args:
        path: the plan.

    Raises:
        FailedPrecondition: the model is another one, or this process would compute other bits.
        Unimplemented: the rows are a table or a folder of images, which the program addend reads.
    """

    __slots__ = ()
    _INSTEAD = "open the plan where shards are computed"

    def __init__(self, path: Path):
        super().__init__(_native.job_open(os.fspath(path)))

    @property
    def shards(self) -> int:
        """How many shards there are."""
        return _native.job_num_shards(self._handle)

    def run(self, shard: int, *, again: bool = False) -> Dict[str, Any]:
        """Computes a shard and commits it as a whole; returns its receipt.

        Args:
            shard: from 0.
            again: computes one that is there already once more, instead of leaving it as it is.

        Raises:
            FailedPrecondition: the rows are others than when the plan was made, or the results are another plan's.
            InvalidArgument: there is no such shard, or its result cannot be written, as on a full disk.
        """
        number = shard_number(shard, self.shards)
        return json.loads(_native.job_run(self._handle, number, json.dumps({"again": bool(again)})))

    @staticmethod
    def plan(
        path: Path,
        model: Path,
        *inputs: Any,
        rows: Union[Path, Sequence[Path]],
        targets: Any = "top1",
        at: Optional[str] = None,
        outputs: Union[str, Sequence[str]] = (),
        groups: Sequence[str] = (),
        names: Sequence[str] = (),
        classes: Sequence[str] = (),
        concepts: Optional[Mapping[str, Any]] = None,
        contributions: bool = True,
        format: str = "safetensors",
        stop_at_refusal: bool = False,
        dtype: Optional[str] = None,
        device: str = "cpu",
        batch: int = 256,
        shards: Optional[int] = None,
        context: Optional[Context] = None,
        **policy: Unpack[PolicyChoices],
    ) -> Dict[str, Any]:
        """Makes the plan of a job, and tries it on the first rows; returns what was made.

        Args:
            path: where the plan is written. Results come beside it: ``rows.out`` for ``rows.json``.
            model: the file of the model.
            inputs: one row of each input, ``[1, *row]``, split as for `Model.decompose`.
            rows: for each input the ``.npy`` or ``.safetensors`` file (``FILE#NAME``) whose tensor has the rows; one file
                may be given by itself.
            targets: of each row, as for `Model.explain`.
            at: as for `Model.explain`, and so is `outputs`.
            groups: tensors of integers beside the first input, by which rows are put together.
            names: of the components; by their positions unless given.
            classes: names of the elements of the output.
            concepts: a description of concepts as a dictionary, as for `Concepts`; results then hold reasons.
            contributions: whether results hold contributions.
            format: ``"safetensors"`` or ``"csv"``.
            stop_at_refusal: whether a row that cannot be attributed ends its shard, instead of being listed.
            dtype: ``"float32"`` or ``"float64"``, what the model's numbers are converted to.
            device: where workers compute; ``"cuda"`` is the GPU that each worker is given.
            batch: how many rows are attributed together. Bits depend on it.
            shards: how many, about; as many as take ten seconds each unless given.
            context: how to attribute.
            policy: choices of a `Context`, in place of one.

        Raises:
            FailedPrecondition: rows influence each other, or the results of another plan stand beside it.
        """
        chosen = as_context(context, Job.plan, **policy)
        request = new_model_request([inputs])
        add_targets(request, targets, at=explained(at, outputs))
        add_outputs(request, outputs)
        options: Dict[str, Any] = {
            "inputs": _files(rows),
            "groups": _texts("groups", groups),
            "names": _texts("names", names),
            "classes": _texts("classes", classes),
            "contributions": bool(contributions),
            "format": format,
            "stop_at_refusal": bool(stop_at_refusal),
            "device": device,
            "batch": batch,
        }
        if concepts is not None:
            options["concepts"] = described(concepts)
        if dtype is not None:
            options["dtype"] = dtype
        if shards is not None:
            options["shards"] = shards
        made = _native.job_plan(chosen._handle, os.fspath(path), os.fspath(model), request, json.dumps(options))
        return json.loads(made)

    @staticmethod
    def status(path: Path) -> Dict[str, Any]:
        """How far a job is: ``"shards"``, ``"done"``, ``"missing"``, ``"wrong"``, ``"seconds_left"``, ``"notes"`` (what
        runs said of the rows, as of `JobResults.notes`) and more."""
        return json.loads(_native.job_status(os.fspath(path)))

    @staticmethod
    def merge(path: Path) -> Dict[str, Any]:
        """Checks every shard by its digest and puts all rows into one file; returns its ``"path"`` and ``"sha256"``.

        Raises:
            FailedPrecondition: shards are missing or damaged, or have two results.

        Warns:
            AddendWarning: numbers of some rows do not mean what they seem to; see ``"notes"`` of what is returned.
        """
        merged = json.loads(_native.job_merge(os.fspath(path)))
        _warn(merged["notes"])
        return merged

    @staticmethod
    def results(path: Path) -> JobResults:
        """The rows of a job, whose shards are all there, as a table for pandas and for whatever reads Arrow.

        Raises:
            FailedPrecondition: shards are missing, damaged, of another plan, or have two results.
            InvalidArgument: the results are CSV, a table already; or the plan was changed since it was written.

        Warns:
            AddendWarning: numbers of some rows do not mean what they seem to; see `JobResults.notes`.
        """
        results = JobResults(os.fspath(path))
        _warn(results.notes)
        return results

    def __repr__(self) -> str:
        return "Job(closed)" if self.closed else "Job(%d shards)" % self.shards


def _warn(notes: List[Dict[str, Any]]) -> None:
    said = "%s (said by runs with %d rows, from row %d on)"
    warn_of([said % (note["note"], note["rows"], note["row"]) for note in notes if note["warning"]])


def _files(rows: Any) -> List[str]:
    if isinstance(rows, (str, os.PathLike)):
        rows = [rows]
    try:
        return [os.fspath(one) for one in rows]
    except TypeError:
        raise TypeError(
            "rows are .npy or .safetensors files with the rows of each input, not a %s; numpy.save writes one"
            % type(rows).__name__
        ) from None


def _texts(word: str, given: Any) -> List[str]:
    listed = None if isinstance(given, (str, bytes)) or not hasattr(given, "__iter__") else list(given)
    if listed is None or not all(isinstance(one, str) for one in listed):
        raise TypeError("%s are a list of texts, not %r" % (word, given))
    return listed
