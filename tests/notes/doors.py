"""The questions of the table of notes, as Python asks them."""

import os
import tempfile
import warnings
from typing import Any, Dict, List, Optional

import addend
from noted import ATTRIBUTION, DECOMPOSITION, Noted

FILE, LIVE = "file", "live"


def model_of(case: Noted, kind: str, folder: str) -> Any:
    """The model from its file, which is written to a folder, or as Python runs it."""
    if kind == FILE:
        return addend.load_model(os.path.join(folder, case.write(folder)["model"]))
    return addend.compile(case.made())


def inputs_of(case: Noted) -> List[addend.Input]:
    return [addend.Input(own.value, own.dims, baseline=own.baseline, baselines=own.baselines) for own in case.given]


def context_of(case: Noted) -> addend.Context:
    choices: Dict[str, str] = {}
    overrides: Dict[str, Dict[str, str]] = {}
    for key, value in case.policy.items():
        name, _, selector = key.partition("@")
        (overrides.setdefault(selector, {}) if selector else choices)[name] = value
    return addend.Context(overrides=overrides, **choices)


def ask(case: Noted, model: Any) -> Any:
    """The answer of the case's own door: an `Attribution`, `Results` or `Interactions`."""
    if case.door == ATTRIBUTION:
        return model.explain(*inputs_of(case), memory=case.memory, **_asked(case))
    if case.door == DECOMPOSITION:
        return model.decompose(*inputs_of(case), verify_reference=case.verify_reference, context=context_of(case))
    return model.interactions(*inputs_of(case), target=case.targets[0], context=context_of(case))


def attribute(case: Noted, model: Any) -> None:
    """Asks `addend.attribute`, which gives bare tensors."""
    several = any(own.baselines is not None for own in case.given)
    inputs = tuple(inputs_of(case)) if several else tuple(own.value for own in case.given)
    baselines = None if several else tuple(own.baseline for own in case.given)
    options = _asked(case)
    targets = options.pop("targets")
    addend.attribute(
        model, inputs, baselines, None if case.each_example else targets, memory=case.memory, **options
    )


def plan(case: Noted, model: Any) -> Optional[addend.Attribution]:
    """The attribution of a plan; None where that is refused."""
    try:
        made = model.plan(*inputs_of(case), **_asked(case))
        return made.attribute(*(own.value for own in case.given))
    except (addend.FailedPrecondition, addend.InvalidArgument, addend.Unimplemented):
        return None


def job(case: Noted) -> Optional[List[Dict[str, Any]]]:
    """The notes of a job over the case's rows, as `Job.status` and `Job.merge` have them; None where there is none."""
    given = case.given[0]
    if len(case.given) > 1 or given.baselines is not None or case.memory or case.verify_reference:
        return None
    with tempfile.TemporaryDirectory() as folder:
        described = case.write(folder)
        plan = os.path.join(folder, "job.json")
        try:
            addend.Job.plan(
                plan,
                os.path.join(folder, described["model"]),
                addend.Input(given.value[:1], given.dims, baseline=given.baseline),
                rows=os.path.join(folder, described["inputs"][0]["value"]),
                targets=case.row_targets,
                at=case.at,
                batch=len(given.value),
                context=context_of(case),
            )
        except addend.Error:
            return None
        addend.Job(plan).run(0)
        status = addend.Job.status(plan)["notes"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", addend.AddendWarning)
            merged = addend.Job.merge(plan)["notes"]
    assert status == merged
    return merged


def _asked(case: Noted) -> Dict[str, Any]:
    return {
        "targets": list(case.targets),
        "at": case.at,
        "each_example": case.each_example,
        "verify_reference": case.verify_reference,
        "context": context_of(case),
    }
