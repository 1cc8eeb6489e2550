"""The laws that hold for whatever the model is, each a function of a test and a run. The model itself is the oracle."""

import math
import os
import re
import tempfile
import warnings

import torch

import addend
from case import notes_of

SAME = 1e-6  # what rounding leaves of a scale
REFERENCE = 1e-5  # of the output's scale
MOVES = 1e-3  # parts below that, of what they have to explain, are none
LEFT = 1e-4  # of the move


def scale_of(tensor):
    finite = tensor[tensor.isfinite()].abs()
    return max(finite.max().item() if finite.numel() else 0.0, 1e-6)


def apart(a, b, scale=None):
    """The largest difference, as a part of a scale; infinite where only one is not finite."""
    a, b = a.detach().double(), b.detach().double()
    if a.shape != b.shape or not torch.equal(a.isnan(), b.isnan()) or not torch.equal(a.isinf(), b.isinf()):
        return float("inf")
    finite = a.isfinite()
    difference = (a[finite] - b[finite]).abs()
    return (difference.max().item() if difference.numel() else 0.0) / (scale or scale_of(b))


def at_most(test, bound, number, what):
    if not number <= bound:  # NaN is too much
        test.fail("%s by %.1e, bound %.0e" % (what, number, bound))


def recovery(test, run):
    """Components and residual sum to what the model computes, under both presets, and they are not zero."""
    value = run.output(run.values())
    scale = scale_of(value)
    for preset in ("faithful", "fast"):
        with test.subTest(preset):
            results = run.decompose(preset)
            parts = results[0]
            at_most(test, run.case.same, apart(parts.value.torch(), value), "the value differs from the model's")
            recovered = parts.recovery.torch()
            at_most(test, run.case.recovery, apart(recovered, value), "the recovery differs from the value")
            summed = parts.components.torch().sum(0) + parts.residual.torch()
            at_most(test, run.case.recovery, apart(summed, value), "the sum of the parts differs from the value")
            move = scale_of((value - parts.reference.torch()).nan_to_num(0, 0, 0))
            left = parts.leftover.torch().nan_to_num().abs().max().item()
            if preset == "faithful" and not run.case.leftover:
                at_most(test, max(LEFT * move, SAME * scale), left, "something is left over")
            if move > SAME * scale and not run.case.leftover:
                largest = parts.components.torch().nan_to_num().abs().max().item()
                test.assertGreater(largest, MOVES * move, "no component moved the output: %s" % notes_of(results))
            if run.case.notes and preset == "faithful":
                test.assertRegex(notes_of(results), run.case.notes)
                test.assertEqual(parts.notes, results.notes, "compositions know the notes of their run")


def reference(test, run):
    """The reference is the model on the baseline, or the report says that it is not, and a note names why."""
    expected = run.output(run.on_baseline())
    results = run.decompose("faithful")
    report, found = results.report, results[0].reference.torch()
    test.assertEqual(report["reference_is_model_on_baseline"], run.case.reference, notes_of(results))
    if run.case.reference == "yes":
        size = max(scale_of(expected), scale_of(run.output(run.values())))
        at_most(test, REFERENCE, apart(found, expected, size), "the reference differs from the model on the baseline")
        return
    test.assertGreater(apart(found, expected), REFERENCE, "the case has a reference that is the model on the baseline")
    test.assertTrue(run.case.names)
    for name in run.case.names:
        test.assertIn(name, notes_of(results))
        test.assertIn(name, report["reference_reason"])
    if run.case.not_the_baseline:
        with test.assertRaisesRegex(addend.Error, run.case.not_the_baseline):
            run.decompose("faithful", conditions="baseline")
    elif run.case.reference == "no":
        # Whose conditions they are is a choice.
        results = run.decompose("faithful", conditions="baseline")
        parts, value = results[0], run.output(run.values())
        at_most(test, REFERENCE, apart(parts.reference.torch(), expected),
                "with the baseline's conditions, the reference differs from the model on the baseline")
        test.assertEqual(results.report["reference_is_model_on_baseline"], "yes")
        at_most(test, run.case.recovery, apart(parts.recovery.torch(), value), "the recovery differs from the value")


def _told(results):
    """Its notes, but for the one on how much is left over: of one element it is not what it is of all."""
    return sorted(note for note in results.notes if not note.startswith("much is left over"))


def adjoint(test, run):
    """explain and attribute, which go backward, find what components, which go forward, come to."""
    value = run.output(run.values())
    target = run.target(value)
    results = run.decompose("faithful")
    at = results.explain(target)
    forward = torch.tensor(at.contributions, dtype=torch.float64)
    parts = results[0].components.torch().detach().double()[(slice(None), *target)]
    size = max(scale_of(forward), abs(at.value - at.reference), 1e-6 * abs(at.value))
    at_most(test, SAME, apart(forward, parts, size), "explanations of a decomposition differ from its components")

    model = run.compiled(preset="faithful")
    with run.within():
        found = model.explain(*run.inputs(), targets=[target])
    back = torch.tensor(found[0].contributions, dtype=torch.float64)
    at_most(test, run.case.agreement, apart(back, forward, size), "explain differs from decompose")
    at_most(test, run.case.agreement, abs(found[0].reference - at.reference) / size, "the references differ")
    test.assertAlmostEqual(found[0].value, float(value[target]), delta=run.case.same * scale_of(value))
    test.assertEqual(_told(found), _told(results))

    with run.within():
        numbers, delta = model.attribute(
            tuple(source.input() for source in run.split), target=[target], each_example=False,
            additional_forward_args=tuple(run.plain), return_convergence_delta=True,
        )
    swept = torch.cat([
        source.by_component((own.torch() if hasattr(own, "torch") else own).double()[0])
        for source, own in zip(run.split, numbers)
    ])
    at_most(test, run.case.agreement, apart(swept, forward, size), "attribute differs from decompose")
    at_most(test, run.case.agreement, abs(found[0].leftover - at.leftover) / size, "the leftovers differ")
    try:
        start = float(run.output(run.on_baseline())[target])
    except Exception:  # the model fails there, or gives another shape
        return
    if math.isfinite(start):
        missed = float(swept.sum()) - (float(value[target]) - start)
        at_most(test, run.case.agreement, abs(float(delta[0]) - missed) / max(size, abs(start)), "the delta is wrong")


def own(test, run):
    """A component is what its position alone changes, if the model is a sum over positions."""
    (source,) = run.split
    results = run.decompose("faithful")
    parts = results[0].components.torch()
    nothing, value = run.on_baseline(), source.value
    base = run.output(nothing)
    positions = torch.arange(value.shape[source.dims])
    test.assertEqual(parts.shape[0], len(positions))
    for position in positions:
        shape = [1] * value.dim()
        shape[source.dims] = -1
        alone = torch.where((positions == position).view(shape), value, nothing[0])
        changed = run.output([alone, *run.plain]) - base
        at_most(test, REFERENCE, apart(parts[position], changed, scale_of(base)), "component %d differs" % position)


def file(test, run):
    """The model from a file has the same parts as the live one, and so has what is exported of its recording."""
    results = run.decompose("faithful")
    live, value = results[0], run.output(run.values())
    with tempfile.TemporaryDirectory() as folder:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = run.file(os.path.join(folder, "model.pt"))
        with run.within():
            plain = torch.jit.load(path)(*run.values())
        at_most(test, run.case.same, apart(plain, value), "PyTorch's own run of the file differs from the model")
        model = addend.load_model(path)
        with run.within():
            results = model.decompose(*run.inputs(), preset="faithful")
        parts, size = results[0], max(scale_of(live.components.torch()), 1e-6 * scale_of(value))
        at_most(test, run.case.same, apart(parts.value.torch(), value), "the value differs from the model's")
        at_most(test, run.case.recovery, apart(parts.recovery.torch(), value), "the recovery differs from the value")
        references = apart(parts.reference.torch(), live.reference.torch(), scale_of(value))
        at_most(test, REFERENCE, references, "the references differ")
        components = apart(parts.components.torch(), live.components.torch(), size)
        at_most(test, run.case.agreement, components, "the parts differ")
        test.assertEqual(results.report["reference_is_model_on_baseline"], run.case.reference, notes_of(results))
        for name in run.case.names:
            test.assertIn(name, notes_of(results))
        with run.within():
            program = model.record(*run.values())
        exports(test, run, program, run.case.export if run.case.file_export is None else run.case.file_export, folder)


def replay(test, run):
    """A recorded program gives what the model gives, on other inputs too, or stops there; check_trace tells which."""
    program = run.record()
    value = run.output(run.values())
    with run.within():
        again = program.replay(*run.values())[0].torch()
    at_most(test, run.case.same, apart(again, value), "a replay differs from the model")
    others = run.others()
    expected = run.output(others)
    if not run.case.replay:
        test.assertGreater(apart(expected, value), 0, "the other inputs tell nothing")
        with run.within():
            replayed = program.replay(*others)[0].torch()
        at_most(test, run.case.same, apart(replayed, expected), "a replay differs from the model")
    else:
        with test.assertRaisesRegex(addend.Error, run.case.replay), run.within():
            program.replay(*others)


def check(test, run):
    """check_trace of the model, and check of its recording, agree with what replays do."""
    program = run.record()
    with run.within():
        found = run.compiled().check_trace(*run.values(), others=[tuple(run.others())])
    kinds = {finding.kind for finding in found.findings}
    if run.case.draws:
        test.assertIn("random", kinds, found)
        return
    if "guard" in run.case.replay:
        test.assertIn("guard", kinds, found)
        test.assertFalse(found.ok)
    else:
        test.assertTrue(found.ok, found)
    with run.within():
        found = program.check()
    test.assertTrue(found.ok, found)
    with run.within():
        lacking = run.compiled().requirements(*run.values())
    test.assertFalse([one for one in lacking if one.error and not run.case.leftover], lacking)


def export(test, run):
    """The recording as TorchScript, which PyTorch runs alone, gives what the model gives."""
    with tempfile.TemporaryDirectory() as folder:
        exports(test, run, run.record(), run.case.export, folder)


def exports(test, run, program, refused, folder):
    path = os.path.join(folder, "exported.pt")
    if refused:
        with test.assertRaisesRegex(addend.Error, refused):
            program.export_torchscript(path)
        return
    program.export_torchscript(path)
    loaded = torch.jit.load(path)
    inputs = [run.values()] + ([] if run.case.replay else [run.others()])
    for arguments in inputs:
        with run.within():
            value = loaded(*arguments)
        at_most(test, run.case.same, apart(value, run.output(arguments)), "the exported file differs from the model")


def refusal(test, run):
    """Every call stops with the same sentence."""
    model = run.compiled(preset="faithful")
    calls = {
        "decompose": lambda: model.decompose(*run.inputs()),
        "explain": lambda: model.explain(*run.inputs()),
        "attribute": lambda: model.attribute(
            tuple(source.input() for source in run.split), additional_forward_args=tuple(run.plain), target=0
        ),
    }
    for name, call in calls.items():
        with test.subTest(name), run.within(), test.assertRaises(addend.Error) as caught:
            call()
        if not re.search(run.case.refused, str(caught.exception)):
            test.fail("%s: %s" % (name, caught.exception))


def laws_of(case):
    """The laws that a case has to obey, by name."""
    if case.refused:
        return {"refusal": refusal}
    laws = {"recovery": recovery, "reference": reference, "adjoint": adjoint, "replay": replay, "check": check,
            "export": export}
    if case.own:
        laws["own"] = own
    if case.file is not None:
        laws["file"] = file
    return laws
