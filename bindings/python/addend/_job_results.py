"""The results of a job as a table: shard by shard, so that no more than one is in memory."""

import array
import hashlib
import json
import math
import os
from typing import Any, Dict, List, Optional, Tuple

from ._arrow import Batch, Column, Field, stream, texts, validity
from ._errors import FailedPrecondition, InvalidArgument
from ._files import TensorFile, read_file, read_tensors
from ._job_plan import checked_plan, require_own_results, results_folder, shard_number


class JobResults:
    """The rows of a job; `Job.results` gives it. A line for each row of the data set and target, with the columns

    - ``"row"``: its number in the data set, from 0;
    - ``"target"``: which element of the row's output is explained, -1 for differences and the like;
    - ``"value"``, ``"reference"``, ``"leftover"``: value = reference + contributions + leftover;
    - the contribution of each component by the component's name, if results hold them;
    - ``"reason 1"``, ``"reason 1 contribution"``, ...: the reasons in order, if results hold them;
    - ``"refused"``: why the row has no attribution, else null.

    Whatever reads the Arrow C interface takes it, as ``pyarrow.table(results)`` does. With
    several targets, those of a row are one behind the other.

    Attributes:
        columns: names.
        shards: how many parts it has; results are read part by part, each checked by its digest and by its receipt, which
            has to be of this plan.
        notes: what runs said of the rows, warnings first: ``[{"note", "row", "rows", "warning"}]`` with the first row
            that each is about, and how many there are.
    """

    def __init__(self, plan: str):
        made, status = checked_plan(plan)
        if made["results"]["format"] != "safetensors":
            raise InvalidArgument("the results of %s are CSV, which is a table already" % plan)
        self._names: List[str] = made["names"]["components"] if made["results"]["contributions"] else []
        require_own_results(plan, status)
        self.notes: List[Dict[str, Any]] = status["notes"]
        self._sha256: str = made["sha256"]
        self._rows: int = made["data"]["rows"]
        self._shard_rows: int = made["shards"]["rows"]
        self._files = _find(plan, len(made["shards"]["sha256"]))
        self.shards = len(self._files)
        first, _ = self._read(0)
        reasons = first["reasons"].shape[-1] if "reasons" in first else 0
        self._fields = [Field("row", "l"), Field("target", "l")]
        self._fields += [Field(name, "g") for name in ("value", "reference", "leftover", *self._names)]
        for k in range(1, reasons + 1):
            self._fields += [Field("reason %d" % k, "u"), Field("reason %d contribution" % k, "g")]
        self._fields.append(Field("refused", "u"))
        self.columns = [field.name for field in self._fields]

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """A capsule with an ``ArrowArrayStream``, a batch for each shard. The schema is as it is."""
        return stream(self._fields, lambda: map(self._batch, range(self.shards)))

    def to_pandas(self, shard: Optional[int] = None) -> Any:
        """A frame of pandas: of one shard, from 0, or of all."""
        import pandas

        shards = range(self.shards) if shard is None else [shard_number(shard, self.shards)]
        return pandas.concat([self._frame(self._columns(one)) for one in shards], ignore_index=True)

    def no_rows(self) -> Any:
        """A frame of pandas with the columns alone. Reads nothing."""
        return self._frame([[]] * len(self._fields))

    def __repr__(self) -> str:
        return "JobResults(%d shards, %d columns)" % (self.shards, len(self.columns))

    def _read(self, shard: int) -> Tuple[TensorFile, Dict[int, str]]:
        """The tensors of a shard, and by row why it is refused."""
        path, sha256 = self._files[shard]
        content = read_file(path)
        if hashlib.sha256(content).hexdigest() != sha256:
            raise FailedPrecondition("%s is damaged: its bytes have another digest than its name says" % path)
        return read_tensors(content, path), self._refused(shard, path[: -len(_ENDING)] + ".json", sha256)

    def _refused(self, shard: int, path: str, sha256: str) -> Dict[int, str]:
        """Reads from the receipt of a shard's result why rows are refused, by row, and checks the receipt as the
        library does."""
        text = read_file(path).decode("utf-8", "replace")
        rows = min(self._rows - shard * self._shard_rows, self._shard_rows)
        try:
            receipt = json.loads(text)
            own = (receipt["plan"], receipt["shard"], receipt["rows"], receipt["result"]["sha256"])
            refused = {one["row"]: one["reason"] for one in receipt["refused"]}
            # The hash is that of the canonical text without the hash's own member, which is never the last one.
            content = text[:-1].replace('"hash":"%s",' % receipt["hash"], "", 1)
            whole = hashlib.sha256(content.encode("utf-8")).hexdigest() == receipt["hash"]
        except (KeyError, TypeError, ValueError):
            raise FailedPrecondition("%s is no receipt of a shard" % path) from None
        if not whole:
            raise FailedPrecondition("%s is damaged: its hash is not that of its content" % path)
        if own != (self._sha256, shard, rows, sha256):
            raise FailedPrecondition("%s belongs to another plan or another shard" % path)
        return refused

    def _frame(self, columns: List[Any]) -> Any:
        import pandas

        # Columns are placed by position, as two may have one name.
        placed = enumerate(zip(self._fields, columns))
        frame = pandas.DataFrame({k: pandas.Series(own, dtype=_PANDAS[field.format]) for k, (field, own) in placed})
        frame.columns = self.columns
        return frame

    def _columns(self, shard: int) -> List[Any]:
        """Numbers as memory (``'d'`` and ``'q'``), texts as lists."""
        tensors, refused = self._read(shard)
        value = _numbers(tensors["value"])
        rows = len(tensors["refused"])
        targets = len(value) // rows
        first = shard * self._shard_rows
        lines = [first + k // targets for k in range(len(value))]
        columns: List[Any] = [array.array("q", lines), _numbers(tensors["target"]), value]
        columns += [_numbers(tensors[name]) for name in ("reference", "leftover")]
        if self._names:
            contributions = _numbers(tensors["contributions"])
            columns += [contributions[k :: len(self._names)] for k in range(len(self._names))]
        if "reasons" in tensors:
            concepts = json.loads(tensors.metadata("concepts") or "[]")
            most = tensors["reasons"].shape[-1]
            which, sizes = _numbers(tensors["reasons"]), _numbers(tensors["reason_contributions"])
            for k in range(most):
                columns.append([concepts[one] if one >= 0 else None for one in which[k::most]])
                own = zip(which[k::most], sizes[k::most])
                columns.append(array.array("d", [size if one >= 0 else math.nan for one, size in own]))
        columns.append([refused.get(line) for line in lines])
        return columns

    def _batch(self, shard: int) -> Batch:
        columns = self._columns(shard)
        # Numbers of rows without an attribution are null, and contributions of reasons that there are not.
        there = validity([reason is None for reason in columns[-1]])
        given = []
        for field, column in zip(self._fields, columns):
            if field.format == "u":
                given.append(texts(column))
                there = validity([text is not None for text in column])
            elif field.format == "g":
                given.append(Column((there.buffers[0], column.tobytes()), there.nulls))
            else:
                given.append(Column((None, column.tobytes())))
        return Batch(len(columns[0]), given)


_ENDING = ".safetensors"
_PANDAS = {"l": "int64", "g": "float64", "u": "object"}


def _numbers(tensor: Any) -> "memoryview":
    """The elements of a tensor of float64 or int64, row by row."""
    memory = tensor.memoryview()
    return memory.cast("B").cast(memory.format)


def _find(plan: str, count: int) -> List[Tuple[str, str]]:
    """The result of each shard, and its digest as its name says."""
    folder = os.path.join(results_folder(plan), "shards")
    found: Dict[int, Tuple[str, str]] = {}
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        parts = name.split(".")
        if len(parts) == 3 and "." + parts[2] == _ENDING and parts[0].isdigit():
            found[int(parts[0])] = (os.path.join(folder, name), parts[1])
    missing = [shard for shard in range(count) if shard not in found]
    if missing:
        raise FailedPrecondition(
            "%d of %d shards are missing, the first is %d; run them with addend job run %s"
            % (len(missing), count, missing[0], plan)
        )
    return [found[shard] for shard in range(count)]
