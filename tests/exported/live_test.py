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

# Refusals of modules, but not of programs: PyTorch runs higher-order operators of a module out of sight, and programs
# have compositions for these operators.
ONLY_IN_PROGRAMS = (
    "torch.export.save",
    "no composition rule for aten::_native_batch_norm_legit_functional",
)


def is_tensor(leaf):
    return isinstance(leaf, torch.Tensor)


def most_telling(leaves):
    """The argument that is split: the first one of numbers, or else the first tensor."""
    tensors = [k for k, leaf in enumerate(leaves) if is_tensor(leaf)]
    return next((k for k in tensors if leaves[k].is_floating_point()), tensors[0])


def parts_of(result):
    """Tensors by what they are: of a composition its parts, else the value alone."""
    if isinstance(result, addend.Composition):
        return {part: getattr(result, part).torch() for part in ("value", "components", "reference", "leftover")}
    return {"value": result if is_tensor(result) else result.torch()}


def difference(found, known):
    """In words; empty where both have the same bits."""
    if found.shape != known.shape or found.dtype != known.dtype:
        return "%s %s for %s %s" % (found.dtype, list(found.shape), known.dtype, list(known.shape))
    if torch.equal(found.isnan(), known.isnan()) and torch.equal(found.nan_to_num(), known.nan_to_num()):
        return ""
    wide = torch.complex128 if known.is_complex() else torch.float64
    found, known = found.to(wide), known.to(wide)
    return "other bits, by %.1e of the largest" % ((found - known).abs().max() / max(known.abs().max().item(), 1e-30))


class Call:
    """Arguments of a model in two forms: as the module takes them, and as Addend's models do: tensors in order."""

    def __init__(self, one):
        self.plain = (one.args(), one.kwargs())
        leaves, structure = torch.utils._pytree.tree_flatten(self.plain)
        self.tensors = [leaf for leaf in leaves if is_tensor(leaf)]
        split = most_telling(leaves)
        leaves[split] = addend.Input(leaves[split], -1, baseline=0)
        self.inputs = [leaf for leaf in leaves if isinstance(leaf, (torch.Tensor, addend.Input))]
        self.args, self.kwargs = torch.utils._pytree.tree_unflatten(leaves, structure)


def calling(one, function):
    """Returns what `function` gives for a call of its own, since models may write to their arguments. Every call is the
    same, draws the same numbers, and has no gradients."""
    torch.manual_seed(1)
    call = Call(one)
    with torch.no_grad():
        return function(call)


def outputs_of(module, one):
    """The outputs of PyTorch; of a copy of the module, since the run may write to its buffers."""
    copied = copy.deepcopy(module)
    outputs = calling(one, lambda call: copied(*call.plain[0], **call.plain[1]))
    return [leaf for leaf in write.leaves(outputs) if is_tensor(leaf)]


def differences_of_runs(loaded, known, one):
    run = [result.torch() for result in calling(one, lambda call: loaded.run(*call.tensors))]
    if len(run) != len(known):
        return ["%d outputs for %d" % (len(run), len(known))]
    return ["output %d: %s" % (k, said) for k, said in enumerate(map(difference, run, known)) if said]


def names_of_outputs(found, output):
    """The names of a program's results, whose order is another one, in the order of the leaves of the live output: "output",
    "output.1" and so on, or "output.logits" where the program has kept the names."""
    if "output" in found.names:
        return ["output" + (".%d" % k if k else "") for k in range(len(found))]
    flat, _ = torch.utils._pytree.tree_flatten_with_path(output)
    return [
        ".".join(["output"] + [str(key.key if hasattr(key, "key") else key.idx) for key in path])
        for path, leaf in flat
        if isinstance(leaf, (torch.Tensor, addend.Composition))
    ]


def differences_of_decompositions(loaded, module, one):
    """Compares with what Addend says of the live module: all parts of all outputs, and contributions to one number."""

    def live():
        return addend.compile(copy.deepcopy(module))

    try:
        known = calling(one, lambda call: live().decompose(*call.args, **call.kwargs))
    except addend.Error as refused:
        better = any(words in str(refused) for words in ONLY_IN_PROGRAMS)
        try:
            calling(one, lambda call: loaded.decompose(*call.inputs))
        except type(refused):
            return ["refused as well as the module: %s" % refused] if better else []
        return [] if better else ["the module is refused, the program is not: %s" % refused]
    found = calling(one, lambda call: loaded.decompose(*call.inputs))

    leaves = [leaf for leaf in write.leaves(known.output) if isinstance(leaf, (torch.Tensor, addend.Composition))]
    names = names_of_outputs(found, known.output)
    if len(found) != len(leaves):
        return ["decomposed: %d results for %d" % (len(found), len(leaves))]
    wrong, explained = [], None
    for k, (name, theirs) in enumerate(zip(names, leaves)):
        have, want = parts_of(found[name]), parts_of(theirs)
        # A live output that the module passes on untouched is a plain tensor.
        for part, tensor in want.items():
            said = difference(have[part], tensor) if part in have else "not there"
            if said:
                wrong.append("%s of result %d: %s" % (part, k, said))
        if explained is None and isinstance(theirs, addend.Composition):
            explained = k
    if explained is None or wrong:
        return wrong
    target = tuple(size - 1 for size in leaves[explained].value.torch().shape)
    back = calling(one, lambda call: live().explain(*call.args, targets=[target], at=known.names[0], **call.kwargs))
    ours = calling(one, lambda call: loaded.explain(*call.inputs, targets=[target], at=names[explained]))
    if list(ours[0].contributions) != list(back[0].contributions):
        wrong.append("contributions: %s for %s" % (list(ours[0].contributions), list(back[0].contributions)))
    return wrong


class LiveTest(unittest.TestCase):
    @unittest.skipIf(HAS_EXPORT, "each model is a test of its own")
    def test_no_export(self):
        self.skipTest("this PyTorch has no torch.export")

    def judge(self, one, decomposed):
        torch.manual_seed(0)
        module = one.make()
        module.train(one.train)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.pt2")
            try:
                program = torch.export.export(
                    copy.deepcopy(module), one.args(), one.kwargs(), dynamic_shapes=one.dynamic, strict=one.strict
                )
                if decomposed:
                    program = program.run_decompositions()
                guards = "check_guards" in inspect.signature(program.module).parameters
                of_program = program.module(**({"check_guards": False} if guards else {}))
                known = outputs_of(of_program, one)
                torch.export.save(program, path)
            except Exception as error:
                self.skipTest("PyTorch cannot export, run or save it: %s" % (str(error).strip().splitlines() or [""])[0])
            try:
                loaded = addend.load_model(path)
            except addend.Unimplemented as refused:
                # Its decomposed program is loaded, by a test of its own.
                if decomposed or "run_decompositions()" not in str(refused):
                    raise
                self.skipTest("refused at load: %s" % refused)
            self.assertEqual([], differences_of_runs(loaded, known, one), "beside PyTorch's own run of the program")
            # A decomposed program has other operators, and other bits, than the module. Some versions of PyTorch give other
            # bits for convolutions of programs too, in their own run.
            alike = not decomposed and not any(map(difference, known, outputs_of(module, one)))
            live = module if alike else of_program
            wrong = differences_of_decompositions(loaded, live, one)
            self.assertEqual([], wrong, "beside the live module")


def add_cases():
    cases = write.CASES if os.environ.get("MODELS", "own") == "own" else write.architectures()
    for name, one in cases.items():
        for decomposed in (False, True):

            def case(self, one=one, decomposed=decomposed):
                self.judge(one, decomposed)

            setattr(LiveTest, "test_" + name.replace("-", "_") + ("_core" if decomposed else ""), case)


if HAS_EXPORT:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    # A kernel for whole encoder layers, which modules call and programs do not have.
    torch.backends.mha.set_fastpath_enabled(False)
    add_cases()


if __name__ == "__main__":
    unittest.main()
