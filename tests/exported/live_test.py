"""A program of torch.export beside the live module that it was made of, on one LibTorch: the same bits.

Each model of write.py is exported, as it is and after run_decompositions(), saved, loaded by Addend, and run, decomposed
and explained; so is the module itself, and for the decomposed form PyTorch's own module of that program. MODELS is
"own", or "transformers" for the architectures of that library. Both need a PyTorch that has torch.export.
"""

import copy
import inspect
import os
import sys
import tempfile
import unittest
import warnings

import torch

import addend

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

HAS_EXPORT = hasattr(torch, "export")
if HAS_EXPORT:
    import write

# Programs whose bits are not those of the module, with the reason.
DIFFERENT = {}


def tensors_in(value):
    return [leaf for leaf in write.leaves(value) if isinstance(leaf, torch.Tensor)]


def most_telling(leaves):
    """The argument that is split: the first one of numbers, or else the first tensor."""
    tensors = [k for k, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    return next((k for k in tensors if leaves[k].is_floating_point()), tensors[0])


def parts_of(result):
    if isinstance(result, addend.Tensor):
        return {"value": result.torch()}
    return {part: getattr(result, part).torch() for part in ("value", "components", "reference", "leftover")}


def difference(found, known):
    """In words; empty where both have the same bits."""
    if found.shape != known.shape or found.dtype != known.dtype:
        return "%s %s for %s %s" % (found.dtype, list(found.shape), known.dtype, list(known.shape))
    if torch.equal(found.isnan(), known.isnan()) and torch.equal(found.nan_to_num(), known.nan_to_num()):
        return ""
    scale = max(known.abs().max().item(), 1e-30)
    return "other bits, by %.1e of the largest" % ((found - known).abs().max().item() / scale)


class Call:
    """What a model is called with, in two ways: as the module is, and as Addend's models are: by its tensors in order."""

    def __init__(self, one):
        leaves, structure = torch.utils._pytree.tree_flatten((one.args(), one.kwargs()))
        self.tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        split = most_telling(leaves)
        leaves[split] = addend.Input(leaves[split], -1, baseline=0)
        self.inputs = [leaf for leaf in leaves if isinstance(leaf, (torch.Tensor, addend.Input))]
        self.args, self.kwargs = torch.utils._pytree.tree_unflatten(leaves, structure)


def with_seed(function):
    """Every run draws the same numbers, and changes no gradient's state."""
    torch.manual_seed(1)
    with torch.no_grad():
        return function()


def differences(loaded, module, one):
    """All that is not as in the module, one line each."""
    call = Call(one)

    def live():
        # A module of its own: the call may write to its buffers.
        return addend.compile(copy.deepcopy(module))

    plain = with_seed(lambda: tensors_in(copy.deepcopy(module)(*one.args(), **one.kwargs())))
    run = [result.torch() for result in with_seed(lambda: loaded.run(*call.tensors))]
    wrong = [] if len(run) == len(plain) else ["%d outputs for %d" % (len(run), len(plain))]
    wrong += ["output %d: %s" % (k, said) for k, said in enumerate(map(difference, run, plain)) if said]

    known = with_seed(lambda: live().decompose(*call.args, **call.kwargs))
    found = with_seed(lambda: loaded.decompose(*call.inputs))
    if len(found) != len(known):
        wrong.append("decomposed: %d results for %d" % (len(found), len(known)))
    for k, (ours, theirs) in enumerate(zip(map(parts_of, found), map(parts_of, known))):
        if ours.keys() != theirs.keys():
            wrong.append("result %d has %s, not %s" % (k, sorted(ours), sorted(theirs)))
            continue
        for part, tensor in theirs.items():
            said = difference(ours[part], tensor)
            if said:
                wrong.append("%s of result %d: %s" % (part, k, said))

    numbers = [k for k, result in enumerate(known) if isinstance(result, addend.Composition)]
    if numbers and len(found) == len(known):
        at = numbers[0]
        target = tuple(size - 1 for size in known[at].value.torch().shape)
        back = with_seed(lambda: live().explain(*call.args, targets=[target], at=known.names[at], **call.kwargs))
        ours = with_seed(lambda: loaded.explain(*call.inputs, targets=[target], at=found.names[at]))
        if list(ours[0].contributions) != list(back[0].contributions):
            wrong.append("contributions: %s for %s" % (list(ours[0].contributions), list(back[0].contributions)))
    return wrong


class LiveTest(unittest.TestCase):
    @unittest.skipIf(HAS_EXPORT, "each model is a test of its own")
    def test_no_export(self):
        self.skipTest("this PyTorch has no torch.export")

    def export(self, one, decomposed):
        """The program and the module that it has to be like; skips what PyTorch cannot export."""
        torch.manual_seed(0)
        module = one.make()
        module.train(one.train)
        try:
            program = torch.export.export(
                copy.deepcopy(module), one.args(), one.kwargs(), dynamic_shapes=one.dynamic, strict=one.strict
            )
            if decomposed:
                program = program.run_decompositions()
                guards = "check_guards" in inspect.signature(program.module).parameters
                module = program.module(**({"check_guards": False} if guards else {}))
        except Exception as error:
            self.skipTest("PyTorch cannot export it: %s" % (str(error).strip().splitlines() or [""])[0])
        return program, module

    def judge(self, name, one, decomposed):
        program, module = self.export(one, decomposed)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.pt2")
            torch.export.save(program, path)
            loaded = addend.load_model(path)
            wrong = differences(loaded, module, one)
        if name in DIFFERENT:
            self.assertTrue(wrong, "has the same bits by now; take it off the list")
        else:
            self.assertEqual([], wrong)


def add_cases():
    cases = write.CASES if os.environ.get("MODELS", "own") == "own" else write.architectures()
    for name, one in cases.items():
        for decomposed in (False, True):
            full = name + ("-core" if decomposed else "")

            def case(self, full=full, one=one, decomposed=decomposed):
                self.judge(full, one, decomposed)

            setattr(LiveTest, "test_" + full.replace("-", "_"), case)


if HAS_EXPORT:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    # A kernel for whole encoder layers, which modules call and programs do not have.
    torch.backends.mha.set_fastpath_enabled(False)
    add_cases()


if __name__ == "__main__":
    unittest.main()
