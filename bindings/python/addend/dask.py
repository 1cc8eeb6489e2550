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
import subprocess
import threading
import time
import uuid
import warnings
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple, Union

from . import _native
from ._errors import Error, FailedPrecondition, ResourceExhausted, Unimplemented
from ._input import Input
from ._job_plan import read_plan, results_folder
from ._jobs import Job, Path
from ._model import Model, load_model

__all__ = ["Attributed", "attribute", "results", "run"]

# How often a shard is tried whose workers die; Dask itself gives each try to several workers.
_TRIES = 3

# Shards that are with the cluster, for each thread of a worker: one is computed, and one waits.
_AHEAD = 2


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

    A worker that fails before it has finished a shard, as one with other versions or another BLAS does, is warned about
    and gets no further ones. A shard at which every worker fails ends the run.

    Args:
        client: a ``distributed.Client``.
        plan: the plan, by a path that is the same on all workers.
        program: the program ``addend`` on the workers, which computes each shard in a process of its own: for tables and
            folders of images, which only it reads.
        again: computes shards that are there already once more.
        progress: called with how many shards are done, and how many there are.
        patience: seconds to wait for a scheduler that does not answer.

    Returns:
        `Job.status` after the run, with ``"computed"``, the number of shards that this run computed, and
        ``"refused_workers"``, what each worker said that was given no further shards.

    Raises:
        Error: every worker fails at a shard; what the last one said.
        FailedPrecondition: workers write results to another folder than the one that is seen here.
        ResourceExhausted: workers die whenever they compute a shard, as for want of memory.
        ConnectionError: the scheduler is gone.
    """
    path = os.path.abspath(os.fspath(plan))
    own = read_plan(path)
    if getattr(client, "asynchronous", False):
        raise TypeError("the client is asynchronous: run waits for shards; give it a client that waits, in a thread of its own")
    if program is None and own["data"]["kind"] != "tensors":
        raise Unimplemented(
            "the rows are a %s, which the program addend reads: call run(client, plan, program=...) with its path on "
            "the workers" % own["data"]["kind"]
        )
    status = Job.status(path)
    total = status["shards"]
    shards = list(range(total)) if again else status["missing"]
    work = _Work(path, own, None if program is None else os.fspath(program), again)
    loop = _Loop(client, work, shards, "addend-shard", patience)
    try:
        loop.run(None if progress is None else lambda done: progress(total - len(shards) + done, total))
    finally:
        loop.leave()
    status = Job.status(path)
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
        return None

    def _in_process(self, shard: int) -> None:
        kept = _kept_by_worker()
        if getattr(kept, "sha256", None) != self.sha256:
            kept.sha256 = kept.job = None
            if read_plan(self.path)["sha256"] != self.sha256:
                raise FailedPrecondition("%s is another plan here than where the job was started" % self.path)
            # Of this thread, as OpenMP has it.
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
    """What a thread of this worker keeps between tasks; the worker's own, so that it ends with the worker."""
    from distributed import get_worker

    return vars(get_worker()).setdefault("_addend_kept", threading.local())


def _forget(dask_worker: Any) -> None:
    """Closes what threads of this worker keep."""
    vars(dask_worker).pop("_addend_kept", None)


# ---- What the caller does


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
        self._running: Dict[Any, int] = {}
        self._tries: Dict[int, int] = {}  # by shard, how often it was given to the cluster
        self._deaths: Dict[int, int] = {}  # likewise, how often workers died of it
        self._failed: Dict[int, Set[str]] = {}  # likewise, the workers that failed at it
        self._finished: Set[str] = set()  # workers that have finished a shard
        self.done = 0
        self.refused: Dict[str, str] = {}

    def run(self, progress: Optional[Callable[[int], None]]) -> None:
        from distributed import as_completed

        completed = as_completed(loop=self._client.loop)
        while self._waiting or self._running:
            for future in self._submit():
                completed.add(future)
            future = next(completed)
            shard = self._running.pop(future)
            if self._take(future, shard):
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

    def _submit(self) -> List[Any]:
        futures = []
        threads = self._threads() if self._waiting else {}
        # Without workers, Dask keeps a few until one joins.
        limit = _AHEAD * max(1, sum(count for worker, count in threads.items() if worker not in self.refused))
        while self._waiting and len(self._running) < limit:
            shard = self._waiting.pop()
            self._tries[shard] = self._tries.get(shard, 0) + 1
            barred = self._failed.get(shard, set()) | set(self.refused)
            options: Dict[str, Any] = {}
            if barred.intersection(threads):
                options = {"workers": [worker for worker in threads if worker not in barred], "allow_other_workers": False}
            future = self._client.submit(
                _with_worker,
                self._work,
                shard,
                key="%s-%d-%d" % (self._key, shard, self._tries[shard]),
                pure=False,
                **options,
            )
            self._running[future] = shard
            futures.append(future)
        return futures

    def _take(self, future: Any, shard: int) -> bool:
        """Whether the shard is done; one that is not waits again, or ends the run."""
        from distributed.scheduler import KilledWorker

        if future.status == "finished":
            worker, error = future.result()
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
        # Otherwise it was lost with the scheduler.
        self._waiting.append(shard)
        return False

    def _fail(self, shard: int, worker: str, error: Error) -> None:
        self._failed.setdefault(shard, set()).add(worker)
        if worker not in self._finished and worker not in self.refused:
            self.refused[worker] = str(error)
            warnings.warn("the worker %s gets no shards: %s" % (worker, error), RuntimeWarning, stacklevel=5)
        if not set(self._threads()) - self._failed[shard] - set(self.refused):
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
    """The attribution of the rows of a Dask array, N rows of C components, all float64; NaN in rows without one.

    Attributes:
        contributions: ``[N, C]``.
        value: ``[N]``, what the model gave: reference + contributions + leftover.
        reference: ``[N]``, what it gives for the baseline.
        leftover: ``[N]``, what no component has.
    """

    contributions: Any
    value: Any
    reference: Any
    leftover: Any


def attribute(
    model: Path,
    rows: Any,
    *,
    dims: Union[int, Iterable[int]] = 1,
    baseline: Any = 0,
    target: Any = "top1",
    at: Optional[str] = None,
    batch: int = 256,
    **policy: Any,
) -> Any:
    """The attribution of each row of a Dask array or frame, computed block by block when it is asked for.

    Rows whose numbers are not finite, and those on which the model fails, have no attribution, and end nothing. How blocks
    are cut decides the last bits; a job (`run`) has the same ones always.

    Args:
        model: the file of a model with one input, by a path that is the same on all workers.
        rows: a Dask array ``[N, *row]``, or a frame of numbers, which are given to the model as float32.
        dims: one component for each position along these dimensions of the input, of which 0 counts rows.
        baseline: of one row, as for `Input`.
        target: of each row: the index of an element of its output, or text as for `Model.explain`.
        at: as for `Model.explain`.
        batch: how many rows are attributed together.
        policy: choices of a `Context`.

    Returns:
        For arrays an `Attributed` of Dask arrays. For frames a frame with the same rows, whose columns are the components by
        the names of their columns, ``"value"``, ``"reference"``, ``"leftover"`` and ``"refused"``: why a row has no
        attribution, ``""`` if it has one.
    """
    chosen = (dims,) if isinstance(dims, int) else tuple(dims)
    block = _Block(os.path.abspath(os.fspath(model)), chosen, baseline, target, at, batch, policy)
    if hasattr(rows, "map_partitions") and hasattr(rows, "dtypes"):
        return _attribute_frame(block, rows)
    if hasattr(rows, "rechunk"):
        return _attribute_array(block, rows)
    raise TypeError("rows are a Dask array or a Dask frame, not a %s" % type(rows).__name__)


def _attribute_array(block: "_Block", rows: Any) -> Attributed:
    import dask.array
    import numpy

    if rows.ndim < 2:
        raise ValueError("an array of rows has two dimensions at least, this one has %d" % rows.ndim)
    components = 1
    for dim in block.dims:
        place = dim + rows.ndim if dim < 0 else dim
        if not 1 <= place < rows.ndim:
            raise ValueError("dims is %d; rows of %d dimensions are split along 1 to %d" % (dim, rows.ndim, rows.ndim - 1))
        components *= rows.shape[place]
    whole = rows.rechunk({dim: -1 for dim in range(1, rows.ndim)})
    found = dask.array.blockwise(
        block,
        (0, rows.ndim),
        whole,
        tuple(range(rows.ndim)),
        new_axes={rows.ndim: components + 3},
        concatenate=True,
        dtype="float64",
        meta=numpy.empty((0, 0)),
    )
    return Attributed(found[:, :components], *(found[:, components + k] for k in range(3)))


def _attribute_frame(block: "_Block", rows: Any) -> Any:
    import pandas

    names = [str(name) for name in rows.columns]
    for name, dtype in zip(names, rows.dtypes):
        if getattr(dtype, "kind", "O") not in "biuf":
            raise TypeError('column "%s" holds no numbers but %s; make numbers or one-hot columns of it' % (name, dtype))
    results = names + ["value", "reference", "leftover", "refused"]
    for name in results:
        if results.count(name) > 1:
            raise ValueError('two columns of the result would be called "%s"; rename that of the frame' % name)
    meta = pandas.DataFrame({name: pandas.Series(dtype="float64") for name in results[:-1]})
    meta["refused"] = pandas.Series(dtype="object")
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
        """``[n, *row]`` -> ``[n, components + 3]``."""
        return self._open().attribute(numbers)[0]

    def frame(self, part: Any) -> Any:
        """A part of a frame -> the same rows of the result."""
        import pandas

        numbers = part.to_numpy(dtype="float32", na_value=math.nan)
        found, refused = self._open().attribute(numbers)
        names = [str(name) for name in part.columns] + ["value", "reference", "leftover"]
        result = pandas.DataFrame(found.reshape(len(part), len(names)), columns=names, index=part.index)
        result["refused"] = pandas.Series(refused, index=part.index, dtype="object")
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


class _Opened:
    """The model of a `_Block` and its plan, in the process that computes."""

    def __init__(self, block: _Block):
        self._block = block
        self._model: Model = load_model(block.model)
        self._plan: Any = None  # False: the model cannot be planned

    def attribute(self, numbers: Any) -> Tuple[Any, List[str]]:
        """``[n, *row]`` -> contributions, value, reference and leftover, ``[n, components + 3]``, and by row why it has
        none."""
        import numpy

        rows = len(numbers)
        components = math.prod(numbers.shape[dim] for dim in self._block.dims)
        found = numpy.full((rows, components + 3), math.nan)
        refused = [""] * rows
        finite = numpy.isfinite(numbers.reshape(rows, math.prod(numbers.shape[1:]))).all(1)
        for row in numpy.flatnonzero(~finite):
            refused[row] = "a number is missing or not finite"
        places = numpy.flatnonzero(finite)
        for begin in range(0, len(places), self._block.batch):
            own = places[begin : begin + self._block.batch]
            try:
                found[own] = self._together(numpy.ascontiguousarray(numbers[own]), components)
            except ResourceExhausted:
                raise
            except Error:
                for row in own:
                    try:
                        found[row] = self._explain(numpy.ascontiguousarray(numbers[row : row + 1]), components)[0]
                    except ResourceExhausted:
                        raise
                    except Error as error:
                        refused[row] = str(error)
        return found, refused

    def _input(self, numbers: Any) -> Input:
        return Input(numbers, dims=self._block.dims, baseline=self._block.baseline)

    def _together(self, numbers: Any, components: int) -> Any:
        import numpy

        block = self._block
        if self._plan is None:
            try:
                self._plan = self._model.plan(
                    self._input(numbers), targets=block.target, at=block.at, each_example=True, **block.policy
                )
            except FailedPrecondition:
                self._plan = False
        if self._plan:
            contributions = numpy.empty((len(numbers), components))
            sums = numpy.empty((len(numbers), 3))
            try:
                self._plan.attribute_into(numbers, contributions=contributions, sums=sums)
                return numpy.concatenate([contributions, sums], 1)
            except FailedPrecondition:
                # These rows lead the model another way than the first ones.
                pass
        return self._explain(numbers, components)

    def _explain(self, numbers: Any, components: int) -> Any:
        import numpy

        block = self._block
        targets = self._model.explain(
            self._input(numbers), targets=block.target, at=block.at, each_example=True, **block.policy
        )
        found = numpy.empty((len(numbers), components + 3))
        for row, own in enumerate(targets):
            found[row] = [*own.contributions, own.value, own.reference, own.leftover]
        return found
