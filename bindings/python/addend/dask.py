"""Attribution of data sets on a cluster of Dask, by the package ``distributed``::

    import addend.dask
    from distributed import Client

    addend.dask.run(Client("tcp://scheduler:8786"), "plan.json")     # the shards of a job; addend.Job.plan makes the plan
    addend.Job.merge("plan.json")

    found = addend.dask.attribute("model.pt", frame, baseline=0)     # a Dask frame or array: one of the contributions

Workers need Addend and the files. One process for each core with one thread each (``dask worker --nworkers 8 --nthreads 1``)
is the usual way.
"""

import math
import os
import queue
import subprocess
import threading
import time
import uuid
import warnings
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple, Union

from . import _native
from ._attribution import Attribution
from ._composition import as_dims
from ._context import PolicyChoices, as_context
from ._errors import Error, FailedPrecondition, NotFound, ResourceExhausted, Unimplemented
from ._input import Input
from ._job_plan import checked_plan, read_plan, require_own_results, results_folder
from ._jobs import Job, Path
from ._model import Model, load_model
from ._table import is_another, said_of_another
from ._unpack import Unpack

__all__ = ["Attributed", "attribute", "results", "run"]

# How often a shard is tried whose workers die; Dask itself gives each try to several workers.
_TRIES = 3

# How often a shard is lost with all the workers that might compute it, where others might not.
_MOST_LOST = 10

# Shards that are with the cluster, for each thread of a worker: one is computed, and one waits.
_AHEAD = 2

# Seconds after which the workers are looked at again where no shard is done.
_LOOK = 1


def run(
    client: Any,
    plan: Path,
    *,
    program: Optional[Path] = None,
    again: bool = False,
    progress: Optional[Callable[[int, int], None]] = None,
    patience: float = 60,
) -> Dict[str, Any]:
    """Computes the shards of a job that are missing, on the workers of a cluster; `Job.merge` puts them together.

    Workers may die, and may join: their shards are computed by others. When the scheduler dies, its successor gets what is
    missing, if the client finds it within `patience`. When the caller dies, running again goes on. Results do not pass
    through the scheduler and the caller.

    A worker that fails before it has finished a shard, as one with other versions or another BLAS does, or one that does
    not see the plan, is warned about and gets no further ones. A shard at which every worker fails ends the run.

    Args:
        client: a ``distributed.Client``.
        plan: the plan, by a path that is the same on all workers.
        program: the program ``addend`` on the workers, which computes each shard in a process of its own: for tables and
            folders of images, which only it reads.
        again: computes shards that are there already once more.
        progress: called with how many shards are done, and how many there are.
        patience: seconds to wait for a scheduler that does not answer, and for another worker where those that compute
            shards are gone and all others are refused.

    Returns:
        `Job.status` after the run, with ``"computed"``, the number of shards that this run computed, and
        ``"refused_workers"``, what each worker said that was given no further shards.

    Raises:
        Error: every worker fails at a shard; what the last one said.
        FailedPrecondition: results that are there are damaged or another plan's; workers write results to another folder
            than the one that is seen here; no worker is left that computes shards.
        InvalidArgument: the plan was changed since it was written.
        ResourceExhausted: workers die whenever they compute a shard, as for want of memory.
        ConnectionError: the scheduler is gone.
    """
    path = os.path.abspath(os.fspath(plan))
    own, status = checked_plan(path)
    if getattr(client, "asynchronous", False):
        raise TypeError("the client is asynchronous: run waits for shards; give it a client that waits, in a thread of its own")
    if program is None and own["data"]["kind"] != "tensors":
        raise Unimplemented(
            "the rows are a %s, which the program addend reads: call run(client, plan, program=...) with its path on "
            "the workers" % own["data"]["kind"]
        )
    if not again:
        require_own_results(path, status)
    total = status["shards"]
    shards = list(range(total)) if again else status["missing"]
    work = _Work(path, own, None if program is None else os.fspath(program), again)
    loop = _Loop(client, work, shards, "addend-shard", patience)
    try:
        loop.run(None if progress is None else lambda done: progress(total - len(shards) + done, total))
    finally:
        loop.leave()
    status = Job.status(path)
    require_own_results(path, status)
    if status["missing"]:
        raise FailedPrecondition(
            "workers computed %d shards, of which %d are not in %s: the folder has to be one that this process and all "
            "workers see" % (loop.done, len(status["missing"]), results_folder(path))
        )
    return dict(status, computed=loop.done, refused_workers=loop.refused)


def results(plan: Path) -> Any:
    """The rows of a job, whose shards are all there, as a Dask frame with a partition for each shard; the columns are those
    of `JobResults`. Workers read the shards."""
    import dask.dataframe

    found = Job.results(os.path.abspath(os.fspath(plan)))
    return dask.dataframe.from_map(found.to_pandas, range(found.shards), meta=found.no_rows())


# ---- What a worker does


class _Work:
    """Computes a shard on a worker: ``work(shard)`` returns why it could not, or None."""

    def __init__(self, path: str, plan: Mapping[str, Any], program: Optional[str], again: bool):
        self.path = path
        self.sha256 = plan["sha256"]
        self.threads = plan["libtorch"]["threads"]
        self.program = program
        self.again = again

    def __call__(self, shard: int) -> Optional[Error]:
        try:
            if self.program:
                self._by_program(shard)
            else:
                self._in_process(shard)
        except Error as error:
            return error
        except FileNotFoundError as error:
            return NotFound(str(error))
        except OSError as error:
            return FailedPrecondition(str(error))
        return None

    def _in_process(self, shard: int) -> None:
        kept = _kept_by_worker()
        if getattr(kept, "sha256", None) != self.sha256:
            kept.sha256 = kept.job = None
            if read_plan(self.path).get("sha256") != self.sha256:
                raise FailedPrecondition("%s is another plan here than where the job was started" % self.path)
            # The number holds for this thread only, as in OpenMP.
            _native.set_num_threads(self.threads)
            kept.job = Job(self.path)
            kept.sha256 = self.sha256
        kept.job.run(shard, again=self.again)

    def _by_program(self, shard: int) -> None:
        command = [self.program, "job", "run", self.path, "--shard", str(shard)] + ["--again"] * self.again
        done = subprocess.run(
            command,
            env=dict(os.environ, OMP_NUM_THREADS=str(self.threads)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            universal_newlines=True,
        )
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if line.strip()]
            raise FailedPrecondition(lines[-1] if lines else "%s ended with %d" % (self.program, done.returncode))


def _kept_by_worker() -> Any:
    """The storage of a thread of this worker that lasts between tasks; the worker holds it, so that it ends with the
    worker."""
    from distributed import get_worker

    return vars(get_worker()).setdefault("_addend_kept", threading.local())


def _forget(dask_worker: Any) -> None:
    """Closes what threads of this worker keep."""
    vars(dask_worker).pop("_addend_kept", None)


# ---- What the caller does


class _Given(NamedTuple):
    """A shard that is with the cluster. allowed: the workers that may compute it; None: all."""

    shard: int
    allowed: Optional[Set[str]]


class _Loop:
    """Gives shards to workers, a bounded number at a time, until all are done.

    Attributes:
        done: how many shards were done here.
        refused: by worker, why it gets no further shards.
    """

    def __init__(
        self,
        client: Any,
        work: Callable[[int], Optional[Error]],
        shards: Sequence[int],
        key: str,
        patience: float,
    ):
        self._client = client
        self._work = work
        self._waiting = list(reversed(shards))
        # Dask takes equal keys for equal results.
        self._key = "%s-%s" % (key, uuid.uuid4().hex)
        self._patience = patience
        self._running: Dict[Any, _Given] = {}
        self._ended: "queue.SimpleQueue[Any]" = queue.SimpleQueue()  # of what is running
        self._tries: Dict[int, int] = {}  # by shard, how often it was given to the cluster
        self._deaths: Dict[int, int] = {}  # likewise, how often workers died of it
        self._lost: Dict[int, int] = {}  # likewise, how often all workers were gone that might compute it
        self._failed: Dict[int, Dict[str, Error]] = {}  # likewise, the workers that failed at it
        self._finished: Set[str] = set()  # workers that have finished a shard
        self._alone_since: Optional[float] = None  # when the last worker was gone that might compute what is left
        self.done = 0
        self.refused: Dict[str, str] = {}

    def run(self, progress: Optional[Callable[[int], None]]) -> None:
        while self._waiting or self._running:
            threads = self._threads()
            self._take_back(threads)
            self._submit(threads)
            self._require_workers()
            try:
                future = self._ended.get(timeout=_LOOK)
            except queue.Empty:
                continue
            given = self._running.pop(future, None)
            if given is None:
                # It was taken back.
                continue
            if self._take(future, given.shard):
                self.done += 1
                if progress is not None:
                    progress(self.done)
            # The scheduler forgets it.
            future.release()

    def leave(self) -> None:
        """Takes back what is not done, and lets workers forget the plan. A scheduler that is gone has nothing left."""
        if self._client.status != "running":
            return
        try:
            self._client.cancel(list(self._running))
            self._client.run(_forget)
        except (OSError, RuntimeError):
            pass

    def _take_back(self, threads: Mapping[str, int]) -> None:
        """Takes back the shards that wait for workers that are gone; another worker, or the same by another address,
        may compute them."""
        for future, (shard, allowed) in list(self._running.items()):
            if allowed is None or allowed.intersection(threads):
                continue
            del self._running[future]
            future.release()
            self._waiting.append(shard)
            self._lost[shard] = self._lost.get(shard, 0) + 1
            if self._lost[shard] == _MOST_LOST:
                raise ResourceExhausted(
                    "workers that get shard %d die, the last ones at %s; a worker may have too little memory: plan more "
                    "shards, or give workers more" % (shard, ", ".join(sorted(allowed)))
                )

    def _submit(self, threads: Mapping[str, int]) -> None:
        # Without workers, Dask keeps a few until one joins.
        limit = _AHEAD * max(1, sum(count for worker, count in threads.items() if worker not in self.refused))
        kept = []
        while self._waiting and len(self._running) < limit:
            shard = self._waiting.pop()
            barred = self._barred(shard)
            options: Dict[str, Any] = {}
            allowed = None
            if barred.intersection(threads):
                allowed = set(threads) - barred
                if not allowed:
                    # Dask takes no workers for any worker.
                    kept.append(shard)
                    continue
                options = {"workers": sorted(allowed), "allow_other_workers": False}
            self._tries[shard] = self._tries.get(shard, 0) + 1
            future = self._client.submit(
                _with_worker,
                self._work,
                shard,
                key="%s-%d-%d" % (self._key, shard, self._tries[shard]),
                pure=False,
                **options,
            )
            self._running[future] = _Given(shard, allowed)
            future.add_done_callback(self._ended.put)
        self._waiting += reversed(kept)

    def _require_workers(self) -> None:
        """Raises FailedPrecondition where, for too long, no worker may compute what is left."""
        if self._running or not self._waiting:
            self._alone_since = None
            return
        now = time.monotonic()
        if self._alone_since is None:
            self._alone_since = now
        if now - self._alone_since < self._patience:
            return
        shard = self._waiting[-1]
        told = dict(self.refused, **{worker: str(error) for worker, error in self._failed.get(shard, {}).items()})
        raise FailedPrecondition(
            "no worker is left for shard %d and %d others, and none joined within %g s. Those that failed: %s. Run again with "
            "other workers: what is done is not computed again"
            % (shard, len(self._waiting) - 1, self._patience, "; ".join("%s: %s" % own for own in sorted(told.items())))
        )

    def _barred(self, shard: int) -> Set[str]:
        """The workers that do not get this shard."""
        return {*self.refused, *self._failed.get(shard, ())}

    def _take(self, future: Any, shard: int) -> bool:
        """Whether the shard is done; one that is not waits again, or ends the run."""
        from distributed.scheduler import KilledWorker

        if future.status == "finished":
            result = self._result(future)
            if result is not None:
                worker, error = result
                if error is None:
                    self._finished.add(worker)
                    return True
                self._fail(shard, worker, error)
        elif future.status == "error":
            error = future.exception()
            if not isinstance(error, KilledWorker):
                raise error
            self._deaths[shard] = self._deaths.get(shard, 0) + 1
            if self._deaths[shard] == _TRIES:
                raise ResourceExhausted(
                    "workers die when they compute shard %d, the last one at %s; a worker may have too little memory: plan "
                    "more shards, or give workers more" % (shard, error.last_worker.address)
                ) from error
        # Otherwise it was lost, with the scheduler or with the worker that kept its result.
        self._waiting.append(shard)
        return False

    def _result(self, future: Any) -> Optional[Tuple[str, Optional[Error]]]:
        """The result of a finished task; None if it is lost."""
        from distributed import CancelledError, TimeoutError

        deadline = time.monotonic() + self._patience
        while future.status == "finished" and time.monotonic() < deadline:
            try:
                return future.result(timeout=_LOOK)
            except (CancelledError, OSError, TimeoutError):
                pass
        return None

    def _fail(self, shard: int, worker: str, error: Error) -> None:
        failed = self._failed.setdefault(shard, {})
        failed[worker] = error
        if worker not in self._finished and worker not in self.refused:
            self.refused[worker] = str(error)
            warnings.warn("the worker %s gets no shards: %s" % (worker, error), RuntimeWarning, stacklevel=5)
        if set(self._threads()) - self._barred(shard):
            return
        # Another worker may join that computes it, unless those fail at it that compute others, or none does.
        if not self._finished or self._finished.intersection(failed):
            raise error

    def _threads(self) -> Dict[str, int]:
        """The threads of each worker. Waits for a scheduler that does not answer."""
        deadline = time.monotonic() + self._patience
        while True:
            if self._client.status == "running":
                try:
                    return self._client.nthreads()
                except (OSError, RuntimeError):
                    pass
            if self._client.status == "closed" or time.monotonic() > deadline:
                raise ConnectionError(
                    "the scheduler %s is gone; %d shards were done here. Run again with a new scheduler: what is done "
                    "is not computed again" % (self._client.scheduler.address, self.done)
                )
            time.sleep(0.1)


def _with_worker(work: Callable[[int], Optional[Error]], shard: int) -> Tuple[str, Optional[Error]]:
    from distributed import get_worker

    return get_worker().address, work(shard)


# ---- Collections


class Attributed(NamedTuple):
    """The attribution of the rows of a Dask array, N rows of C components; numbers are float64, NaN in rows without one.

    Attributes:
        contributions: ``[N, C]``.
        value: ``[N]``, what the model gave: reference + contributions + leftover.
        reference: ``[N]``, what it gives for the baseline.
        leftover: ``[N]``, what no component has.
        refused: ``[N]``, why a row has no attribution, ``""`` if it has one.
        warnings: ``[N]``, why the numbers of a row may not mean what a reader takes them for: one sentence for each line,
            ``""`` where there is none. Rows that were attributed together have the same ones.
    """

    contributions: Any
    value: Any
    reference: Any
    leftover: Any
    refused: Any
    warnings: Any


def attribute(
    model: Path,
    rows: Any,
    *,
    dims: Union[int, Iterable[int]] = 1,
    baseline: Any = 0,
    target: Any = "top1",
    at: Optional[str] = None,
    batch: int = 256,
    **policy: Unpack[PolicyChoices],
) -> Any:
    """The attribution of each row of a Dask array or frame, computed block by block when it is asked for.

    Rows whose numbers are not finite, and those on which the model fails, have no attribution, and end nothing. Where no
    row of a block has one, and the baseline in place of a row has none either, for the same reason, the request is at fault
    (a target that the output lacks, for example), and computing raises it. How blocks are cut decides the last bits; a job
    (`run`) has the same ones always.

    Args:
        model: the file of a model with one input, by a path that is the same on all workers.
        rows: a Dask array ``[N, *row]``, or a frame of numbers, which are given to the model as float32.
        dims: one component for each position along these dimensions of the input, of which 0 counts rows; 1 for frames.
        baseline: of one row, as for `Input`.
        target: of each row: the index of an element of its output, or text as for `Model.explain`.
        at: as for `Model.explain`.
        batch: how many rows are attributed together.
        policy: choices of a `Context`.

    Returns:
        For arrays an `Attributed` of Dask arrays. For frames a frame with the same rows, whose columns are the components by
        the names of their columns, ``"value"``, ``"reference"``, ``"leftover"``, ``"refused"`` (why a row has no
        attribution, ``""`` if it has one) and ``"warnings"``, as `Attributed` has them.
    """
    frame = hasattr(rows, "map_partitions") and hasattr(rows, "dtypes")
    if not frame and not hasattr(rows, "rechunk"):
        raise TypeError("rows are a Dask array or a Dask frame, not a %s" % type(rows).__name__)
    as_context(None, attribute, **policy)  # so that what is wrong is told here, and not by the workers
    chosen = _places(dims, rows.ndim)
    block = _Block(os.path.abspath(os.fspath(model)), chosen, baseline, target, at, batch, policy)
    return _attribute_frame(block, rows) if frame else _attribute_array(block, rows)


def _places(dims: Union[int, Iterable[int]], count: int) -> Tuple[int, ...]:
    """Dimensions of so many that rows are split along, counted from 0."""
    if count < 2:
        raise ValueError("an array of rows has two dimensions at least, this one has %d" % count)
    places: List[int] = []
    for dim in as_dims(dims):
        place = dim + count if dim < 0 else dim
        if not 1 <= place < count:
            raise ValueError("dims is %d; rows of %d dimensions are split along 1 to %d" % (dim, count, count - 1))
        if place in places:
            raise ValueError("dims names dimension %d twice" % place)
        places.append(place)
    if not places:
        raise ValueError("dims names no dimension; rows of %d dimensions are split along 1 to %d" % (count, count - 1))
    return tuple(places)


def _attribute_array(block: "_Block", rows: Any) -> Attributed:
    import dask.array
    import numpy

    components = 1
    for dim in block.dims:
        components *= rows.shape[dim]
    if math.isnan(components):
        raise ValueError("how long rows are is not known; rows.compute_chunk_sizes() finds it")
    whole = rows.rechunk({dim: -1 for dim in range(1, rows.ndim)})
    kind = _block_dtype(components)
    found = dask.array.blockwise(
        block, (0,), whole, tuple(range(rows.ndim)), concatenate=True, dtype=kind, meta=numpy.empty(0, kind)
    )
    numbers = found["numbers"]
    sums = (numbers[:, components + k] for k in range(3))
    return Attributed(numbers[:, :components], *sums, found["refused"], found["warnings"])


def _block_dtype(components: int) -> Any:
    """The dtype of the result of a row: contributions, value, reference and leftover, or why it has none; and warnings."""
    import numpy

    return numpy.dtype([("numbers", "f8", (components + 3,)), ("refused", "O"), ("warnings", "O")])


def _attribute_frame(block: "_Block", rows: Any) -> Any:
    import pandas

    names = [str(name) for name in rows.columns]
    for name, dtype in zip(names, rows.dtypes):
        if getattr(dtype, "kind", "O") not in "biuf":
            raise TypeError('column "%s" holds no numbers but %s; make numbers or one-hot columns of it' % (name, dtype))
    results = names + ["value", "reference", "leftover", "refused", "warnings"]
    for name in results:
        if results.count(name) > 1:
            raise ValueError('two columns of the result would be called "%s"; rename that of the frame' % name)
    texts = results[-2:]
    meta = pandas.DataFrame({name: pandas.Series(dtype="object" if name in texts else "float64") for name in results})
    meta.index = meta.index.astype(rows._meta.index.dtype)
    meta.index.name = rows._meta.index.name
    return rows.map_partitions(block.frame, meta=meta)


class _Block:
    """Attributes a block of rows. It is made by the caller and pickled to workers, where the model is kept."""

    def __init__(
        self,
        model: str,
        dims: Tuple[int, ...],
        baseline: Any,
        target: Any,
        at: Optional[str],
        batch: int,
        policy: Mapping[str, Any],
    ):
        if batch < 1:
            raise ValueError("batch is %d, and counts the rows that are attributed together" % batch)
        self.model = model
        self.dims = dims
        self.baseline = baseline
        self.target = target
        self.at = at
        self.batch = batch
        self.policy = dict(policy)
        self._opened: Optional[_Opened] = None
        self._lock = threading.Lock()

    def __getstate__(self) -> Dict[str, Any]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        vars(self).update(state)
        self._opened = None
        self._lock = threading.Lock()

    def __dask_tokenize__(self) -> Any:
        from dask.base import normalize_token

        # Another file by the same name is another model.
        file = os.stat(self.model)
        return normalize_token((type(self).__name__, self.__getstate__(), file.st_size, file.st_mtime_ns))

    def __call__(self, numbers: Any) -> Any:
        """``[n, *row]`` -> ``[n]`` of `_block_dtype`."""
        import numpy

        found, refused, warned = self._open().attribute(numbers)
        result = numpy.empty(len(found), _block_dtype(found.shape[1] - 3))
        result["numbers"] = found
        result["refused"] = refused
        result["warnings"] = ["\n".join(own) for own in warned]
        return result

    def frame(self, part: Any) -> Any:
        """A part of a frame -> the same rows of the result."""
        import pandas

        numbers = part.to_numpy(dtype="float32", na_value=math.nan)
        found, refused, warned = self._open().attribute(numbers)
        for row, said in _others(part, numbers):
            if not refused[row]:
                warned[row] = [said, *warned[row]]
        names = [str(name) for name in part.columns] + ["value", "reference", "leftover"]
        result = pandas.DataFrame(found.reshape(len(part), len(names)), columns=names, index=part.index)
        result["refused"] = pandas.Series(refused, index=part.index, dtype="object")
        result["warnings"] = pandas.Series(["\n".join(own) for own in warned], index=part.index, dtype="object")
        return result

    def _open(self) -> "_Opened":
        """The model; on a worker of Dask, kept from block to block."""
        try:
            kept = _kept_by_worker()
        except (ImportError, ValueError):
            # Dask computes in threads of this process, which share this object.
            with self._lock:
                if self._opened is None:
                    self._opened = _Opened(self)
                return self._opened
        from dask.base import tokenize

        token = tokenize(self)
        if getattr(kept, "token", None) != token:
            kept.token = kept.opened = None
            kept.opened = _Opened(self)
            kept.token = token
        return kept.opened


def _others(part: Any, numbers: Any) -> Iterator[Tuple[int, str]]:
    """The rows of a frame of which single precision makes other numbers, each with what is said of it.

    Args:
        numbers: what it makes of them.
    """
    import numpy

    for k, name in enumerate(part.columns):
        column, single = part.iloc[:, k], numbers[:, k]
        whole = column.dtype.kind in "iu"
        # No others can be, and most columns have none of these.
        places = numpy.flatnonzero((numpy.abs(single) >= 2.0**24) & numpy.isfinite(single) if whole else single == 0)
        for row, value in zip(places.tolist(), column.iloc[places].tolist()):
            if is_another(value, float(single[row])):
                yield row, said_of_another(str(name), value, float(single[row]))


class _Opened:
    """The model of a `_Block` and its plan, in the process that computes."""

    def __init__(self, block: _Block):
        self._block = block
        self._model: Model = load_model(block.model)
        self._plan: Any = None  # False: the model cannot be planned
        self._worked = False  # whether any row had an attribution

    def attribute(self, numbers: Any) -> Tuple[Any, List[str], List[List[str]]]:
        """``[n, *row]`` -> contributions, value, reference and leftover, ``[n, components + 3]``; by row why it has none;
        and by row the warnings of its run."""
        import numpy

        rows = len(numbers)
        components = math.prod(numbers.shape[dim] for dim in self._block.dims)
        found = numpy.full((rows, components + 3), math.nan)
        refused = [""] * rows
        warned: List[List[str]] = [[] for _ in range(rows)]
        finite = numpy.isfinite(numbers.reshape(rows, math.prod(numbers.shape[1:]))).all(1)
        for row in numpy.flatnonzero(~finite):
            refused[row] = "a number is missing or not finite"
        places = numpy.flatnonzero(finite)
        failed: Dict[int, Error] = {}
        for begin in range(0, len(places), self._block.batch):
            own = places[begin : begin + self._block.batch]
            try:
                found[own], said = self._together(numpy.ascontiguousarray(numbers[own]), components)
                for row in own:
                    warned[row] = said
            except ResourceExhausted:
                raise
            except Error:
                for row in own:
                    try:
                        found[row], warned[row] = self._explain(numpy.ascontiguousarray(numbers[row : row + 1]), components)
                    except ResourceExhausted:
                        raise
                    except Error as error:
                        failed[row] = error
        self._worked = self._worked or len(failed) < len(places)
        if failed and not self._worked:
            self._require_request(numbers[:1], components, list(failed.values()))
        for row, error in failed.items():
            refused[row] = str(error)
        return found, refused, warned

    def _require_request(self, like: Any, components: int, errors: Sequence[Error]) -> None:
        """Raises the error of all rows of a block where the baseline has it too, in place of a row: then it is the request's,
        not theirs."""
        import numpy

        if len(set(map(str, errors))) > 1:
            return
        row = numpy.zeros_like(like)
        if not isinstance(self._block.baseline, str):
            try:
                row[...] = self._block.baseline
            except (TypeError, ValueError):
                # It does not fit, or is none; then zeros.
                pass
        try:
            self._explain(row, components)
        except Error as error:
            if str(error) == str(errors[0]):
                raise errors[0] from None

    def _input(self, numbers: Any) -> Input:
        return Input(numbers, dims=self._block.dims, baseline=self._block.baseline)

    def _together(self, numbers: Any, components: int) -> Tuple[Any, List[str]]:
        block = self._block
        if self._plan is None:
            try:
                self._plan = self._model.plan(
                    self._input(numbers), targets=block.target, at=block.at, each_example=True, **block.policy
                )
            except FailedPrecondition:
                self._plan = False
        if self._plan:
            try:
                return _numbers_of(self._plan.attribute(numbers), components)
            except FailedPrecondition:
                # These rows lead the model another way than the first ones.
                pass
        return self._explain(numbers, components)

    def _explain(self, numbers: Any, components: int) -> Tuple[Any, List[str]]:
        block = self._block
        attribution = self._model.explain(
            self._input(numbers), targets=block.target, at=block.at, each_example=True, **block.policy
        )
        return _numbers_of(attribution, components)


def _numbers_of(attribution: Attribution, components: int) -> Tuple[Any, List[str]]:
    """The numbers of each row, as `_Opened.attribute` gives them, and the warnings of their run."""
    import numpy

    found = numpy.empty((len(attribution), components + 3))
    for row, own in enumerate(attribution):
        found[row] = [*own.contributions, own.value, own.reference, own.leftover]
    return found, attribution.warnings
