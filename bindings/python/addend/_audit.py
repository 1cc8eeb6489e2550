"""A log of what was decided and why, that can be checked later."""

import json
import os
from typing import Any, Dict, Optional, Sequence, Union

from . import _native
from ._attribution import Attribution
from ._handle import Handle

Path = Union[str, "os.PathLike[str]"]


class AuditLog(Handle):
    """A file to which one record is appended for each decision, on the disk before `append` returns::

        with addend.AuditLog("decisions.jsonl") as log:
            log.append(model.explain(addend.Input(row, dims=1, baseline=mean), "0"), context={"application": 4711})

    Records are chained by hashes: `verify` names every one that is not as it was written, and computes them again. The
    file is locked while the log is open. Any number of threads may share one.

    Args:
        path: the file; it is begun where there is none.
        keep_inputs: whether records hold the inputs themselves, and not only their digest.

    Raises:
        FailedPrecondition: the file is open as a log already, or its last record is damaged.
        InvalidArgument: the file is no log.
        NotFound: its folder is not there, or it cannot be opened.
    """

    __slots__ = ()
    _INSTEAD = "open it where it is written"

    def __init__(self, path: Path, *, keep_inputs: bool = False):
        super().__init__(_native.audit_log_open(os.fspath(path), json.dumps({"keep_inputs": bool(keep_inputs)})))

    def append(
        self,
        attribution: Attribution,
        *,
        context: Any = None,
        reasons: Any = None,
        model_sha256: Optional[str] = None,
        salt: Optional[str] = None,
        time: Optional[str] = None,
    ) -> Dict[str, Any]:
        """Appends a record and returns it; it is on the disk then.

        Args:
            attribution: what `Model.explain` gave.
            context: what belongs to the decision, as JSON has it: the number of an application, who asked.
            reasons: reasons that were made of the contributions, as JSON has them.
            model_sha256: the digest of a live model's file, of which Addend knows none.
            salt: 64 hexadecimal digits instead of random ones, for tests.
            time: ``"2026-11-25T16:30:00.123456Z"`` instead of now, for tests.

        Raises:
            TypeError: this is no attribution: `Model.attribute` gives tensors, which do not know what they were asked.
            InvalidArgument: the file cannot be written, as on a full disk. Nothing was appended.
            FailedPrecondition: something else wrote to the file, or the model's file is another one now.
        """
        if not isinstance(attribution, Attribution):
            raise TypeError(
                "a record is made of an Attribution, which model.explain(...) gives, and not of a %s: tensors, as "
                "model.attribute(...) gives them, do not say what was asked" % type(attribution).__name__
            )
        options = {"context": context, "reasons": reasons, "model_sha256": model_sha256, "salt": salt, "time": time}
        given = json.dumps({key: value for key, value in options.items() if value is not None}, allow_nan=False)
        return json.loads(_native.audit_log_append(self._handle, attribution._handle.native(), given))

    @property
    def path(self) -> str:
        """The file."""
        return self._state()["path"]

    @property
    def records(self) -> int:
        """How many records it holds."""
        return self._state()["records"]

    @property
    def hash(self) -> Optional[str]:
        """The hash of the last record, None where there is none. Keep it where the log is not: only it shows that a log
        was not written anew."""
        return self._state()["hash"]

    @property
    def torn_bytes(self) -> int:
        """How many bytes of a record that was never acknowledged were set aside when it was opened."""
        return self._state()["torn_bytes"]

    @staticmethod
    def verify(
        path: Path,
        *,
        models: Sequence[Path] = (),
        inputs: Sequence[Path] = (),
        sample: Optional[int] = None,
        seed: Optional[int] = None,
        expect: Optional[str] = None,
    ) -> Dict[str, Any]:
        """Reads every bit of a log, and computes records again where models are given.

        Args:
            path: the log, which somebody may have open.
            models: files of models, whose records are computed again.
            inputs: files of tensors, in which inputs are found that records do not hold.
            sample: how many records are computed again, drawn at random; all unless given.
            seed: of the draw.
            expect: a hash that some record has to have.

        Returns:
            The document that ``docs/schemas`` calls audit. Its key ``"verified"`` says whether nothing is wrong.
        """
        options: Dict[str, Any] = {"models": list(map(os.fspath, models)), "inputs": list(map(os.fspath, inputs))}
        for key, value in (("sample", sample), ("seed", seed), ("expect", expect)):
            if value is not None:
                options[key] = value
        return json.loads(_native.audit_verify(os.fspath(path), json.dumps(options)))

    def __repr__(self) -> str:
        return "AuditLog(closed)" if self.closed else "AuditLog(%r, %d records)" % (self.path, self.records)

    def _state(self) -> Dict[str, Any]:
        return json.loads(_native.audit_log_state(self._handle))
