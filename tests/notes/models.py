"""The notes of runs: for each a small model that makes it, what the model is given, and whether the note is a warning.

    models.py FOLDER   writes the models of `TABLE`: NAME.pt or NAME.pt2, the inputs beside it, and cases.json

cases.json holds a list "cases", one object for each case::

    name        of the case
    model       the file
    note        pieces of the sentence: the first begins it, the others follow in this order
    warning     whether it says that numbers may not mean what a reader takes them for
    door        "attribution", "decomposition" or "interactions": the question that gives the note
    inputs      by position: value (a file), dims (the split dimensions), baseline (a number, a file of the shape of the
                input, or null: none is given), baselines (a file that holds several, one a row, or null);
                what names one file shares its memory
    targets     texts; of a decomposition the first is what is explained of the first output
    policy      choices of the policy as texts; "KEY@SELECTOR" for some operators
    options     at (a tensor inside the model, or null: its output), each_example, verify_reference (true or false),
                memory (bytes, 0: any amount)
    no_plan     of an attribution: why a plan of the same question is refused or lacks the note; empty: it has it
    no_job      the same of a job over the rows of the only input, whose targets are those of each row
    row_targets these targets
"""

import json
import os
import sys
from typing import Any, List

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import modules  # noqa: E402
from noted import DECOMPOSITION, INTERACTIONS, Given, Noted  # noqa: E402


def _numbers(*shape: int, seed: int = 5) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


X = torch.tensor([[0.7, 1.2, 2.2]])
ROWS = _numbers(4, 3)
WORDS = torch.tensor([[3, 1, 4]])
NAN = float("nan")


def _row(value: torch.Tensor = X, baseline: Any = 0.0) -> List[Given]:
    return [Given(value, baseline)]


def _two_baselines(second: float) -> List[Given]:
    return [Given(X, None, torch.tensor([[0.0] * 3, [second] * 3]))]


_CONDITIONS = "conditions or indices depend on the input; "
_OF_VALUE = "they are the value's for the reference too"
_OF_BASELINE = "the reference has those of the baseline, and the step between both is leftover"
_SAME = "; on the baseline they are the same: "
_OTHER = "; on the baseline some are others: "
_READS = (
    "the model reads numbers that depend on the input, and may branch on them; the reference is that of the branch "
    "taken"
)
_INFLUENCE = (
    "; what an example gives to the others counts as its own contribution, and what it gets from them as its leftover"
)
# Why there is no plan or job.
_NO_COPIES = "it takes copies of what it is given, and compares no memory"
_ONE_BASELINE = "a plan takes one baseline"
_NO_CHOICE = "a job has no such choice"
_ONE_BY_ONE = "rows that influence each other are refused"
_SIZE = "the program takes three rows at once, and a job tries some alone"

TABLE = [
    # ---- choices that were made for the caller
    Noted("preset_fast", ("preset auto: fast, because no baseline was given",), False, modules.Summed,
          _row(baseline=None)),
    Noted("preset_faithful", ("preset auto: faithful, because a baseline was given",), False, modules.Summed, _row()),
    Noted("no_baseline", ("no baseline was given: zero for ",), False, modules.Summed, _row(baseline=None)),
    Noted("no_baseline_of_ids", ("no baseline was given: token 0 for ", "contributions are measured from there"), True,
          modules.Ids, _row(WORDS, None), ("0,2,4",)),
    Noted("selector", ("the policy names block.7, but no module or operator of that name ran",), True, modules.Summed, _row(),
          policy={"nonlinearity@block.7": "gradient"}),
    Noted("untold", ("the model does not say which tensor body returned; the result of aten::", " is taken for it"), True,
          modules.Forked, _row(), ("0,1",), at="body", live=False),
    # ---- dtypes
    Noted("float32", ("computed in float32 from tensors of half types: ",), False, modules.Half, _row(X.half()),
          policy={"compute_dtype": "float32"}),
    Noted("float64", ("computed in float64 from tensors of narrower types: ",), False, modules.Summed, _row(),
          policy={"compute_dtype": "float64"}),
    Noted("half_types", ("operators round to a half type, and what that misses is leftover",), False, modules.Half,
          _row(X.half())),
    Noted("single_on_the_way", ("output is in double precision, but went through single precision on its way",), False,
          modules.Narrowed, _row(X.double()), door=DECOMPOSITION),
    # ---- operators without a rule, and failures
    Noted("absorbed", ("no rule, absorbed into the leftover: ", "airy_ai"), True, modules.Airy, _row(),
          policy={"missing_rule": "absorb"}),
    Noted("by_derivative", ("no rule, linearized through the operator's derivative: ", "igamma"), False, modules.Igamma,
          _row(baseline=0.5), policy={"missing_rule": "path"}),
    Noted("no_derivative", ("no rule and no derivative, all of it is leftover: ", "airy_ai"), True, modules.Airy,
          _row(), policy={"missing_rule": "path"}),
    Noted("failures_absorbed", ("tracing failures, absorbed into the leftover: ", "aten::"), True, modules.Summed,
          _row(baseline=0.3), policy={"tolerance": "1e-30", "on_failure": "absorb"}),
    Noted("failures", ("tracing failures, from here on the parts do not add up: ", "aten::"), True, modules.Summed,
          _row(baseline=0.3), policy={"tolerance": "1e-30", "on_failure": "warn"}),
    Noted("off_and_absorbed", ("tracing failure, absorbed into the leftover: the parts of output", ". What helps: "),
          True, modules.Cubes, _row(baseline=300.0), policy={"on_failure": "absorb"}),
    Noted("off_altogether", ("tracing failure: the parts of output", " differ from its value by ",
                             "and digits are lost in rounding numbers of that size", ". What helps: "),
          True, modules.Cubes, _row(baseline=300.0), policy={"on_failure": "warn"}),
    Noted("recovery_off", ("recovery is off: the parts of output", " differ from its value by ",
                           ". The model's own value is rounding to that extent: ",
                           ". What helps: compute in float64"),
          True, lambda: modules.Differences(1e4), _row(torch.tensor([[0.5, 0.5, 1.0]]))),
    Noted("ill_conditioned", ("ill-conditioned: the ", " come to ", " times the difference between value and "
                              "reference that they sum to, so that no single one means much", "To get others: "), True,
          lambda: modules.Differences(1e3), _row(torch.tensor([[0.5, 0.5, 1.0]]))),
    Noted("elements_cancel", ("ill-conditioned: the parts of output", ", element by element, come to ",
                              " times the difference between value and reference that they sum to"), True,
          lambda: torch.nn.Sequential(torch.nn.Flatten(), modules.Differences(1e3)),
          _row(torch.tensor([[[0.5, 0.5, 1.0]]]))),
    Noted("no_move", ("ill-conditioned: the ", " do not vanish, as the difference does,"), True,
          lambda: modules.Differences(1e3, 0.0), _row(torch.tensor([[0.5, 0.5, 1.0]]))),
    Noted("much_left_over", ("much is left over: ", " is in no component"), True, modules.Rounded, _row(),
          policy={"nonlinearity": "gradient"}),
    Noted("much_left_over_fast", ("much is left over: ", "; preset=faithful leaves less"), True, modules.Normalized,
          _row(baseline=0.5), ("0,1",), policy={"preset": "fast"}),
    Noted("more_left_over_than_all", ("much is left over: more than all of the difference",), True, modules.Stepped,
          _row(torch.tensor([[1.0, 1.0, 0.0]])), policy={"nonlinearity": "gradient"}),
    Noted("swamped", ("in 9 elements of aten::sub", " parts are lost in the rounding of a value of 1e+09; what they "
                      "carried is leftover"), True, modules.Swamped, _row()),
    Noted("one_swamped", ("in 1 element of aten::sub", " parts are lost in the rounding of a value of "), True,
          modules.Swamped, _row(torch.tensor([[0.7]]))),
    # ---- what the reference is
    Noted("conditions", (_CONDITIONS + _OF_VALUE + _OTHER, "aten::gt"), True, modules.Where, _row()),
    Noted("conditions_same", (_CONDITIONS + _OF_VALUE + _SAME, "aten::gt"), False, modules.Where,
          _row(baseline=X + 0.01)),
    Noted("conditions_of_baseline", (_CONDITIONS + _OF_BASELINE + _OTHER, "aten::gt"), True, modules.Where, _row(),
          policy={"conditions": "baseline"}),
    Noted("conditions_of_baseline_same", (_CONDITIONS + _OF_BASELINE + _SAME, "aten::gt"), False, modules.Where,
          _row(baseline=X + 0.01), policy={"conditions": "baseline"}),
    Noted("branch", (_READS + ": ", "aten::gt"), True, modules.Branch, _row()),
    Noted("branch_same", (_READS + ", and on the baseline they are the same: ", "aten::gt"), False, modules.Branch,
          _row(baseline=X * 0.8)),
    Noted("random", ("random numbers are drawn by aten::rand", "; value and baseline see the same draws"), True,
          modules.Drawn, _row(),
          no_plan="a model that draws random numbers is refused",
          no_job="a model that draws random numbers is refused"),
    Noted("verified", ("the reference is not what the model gives on the baseline: run on the baseline, the model "
                       "gives other numbers at output, apart by ",), True, modules.Where, _row(),
          verify_reference=True, no_job=_NO_CHOICE),
    Noted("shared_memory", ("", " share memory, and the model writes ", ": it was given copies"), True,
          modules.Writes, [Given(ROWS), Given(ROWS)], no_plan=_NO_COPIES, no_job="it reads each input by itself"),
    Noted("ids_used_otherwise", ("ids are used in ways in which no component follows: ", "aten::cumsum"), True,
          modules.CountedIds, _row(WORDS, 0), no_plan="such ids are refused"),
    # ---- what is not finite
    Noted("stand_ins", ("not finite on the baseline or on the way from it, linearized at the value: ", "aten::log"),
          True, modules.Logarithm, _row()),
    Noted("nan_in_input", ("an input holds NaN or infinity, first at [0, 1]; such elements are in no component",), True,
          modules.Summed, _row(torch.tensor([[1.0, NAN, 3.0]])),
          no_plan="such inputs are refused",
          no_job="such rows are refused, each with its reason"),
    Noted("reads_infinity", ("reads NaN or infinity where the reference is finite, what it makes of that is "
                             "leftover: ",), True, modules.InverseNorm, _row(torch.tensor([[0.0, 2.0, 1.0]]), 1.0)),
    Noted("infinite_number", ("the explained number of output is NaN or infinite where its reference is not; all of "
                              "that is leftover",), True, modules.Shares, _row(torch.tensor([[0.0, 2.0, 1.0]]), 1.0)),
    Noted("infinite_numbers", ("2 explained numbers of output are NaN or infinite where their references are not; all "
                               "of that is leftover",), True,
          modules.Shares, _row(torch.tensor([[0.0, 2.0, 1.0], [0.0, 1.0, 1.0]]), 1.0), ("0", "1"),
          no_job="the targets are numbers of two rows"),
    Noted("infinite_output", ("output is NaN or infinite where its reference is not; all of that is leftover",), True,
          modules.Entropies, _row(torch.tensor([[-0.5, 0.3, 2.0]]), 0.25), ("0,1",), door=DECOMPOSITION),
    Noted("infinite_contributions", ("contributions to 1 target in output are NaN or infinite, because the run met "
                                     "such numbers; they are no shares of anything",), True,
          modules.Divided, _row(baseline=0.5)),
    # ---- targets
    Noted("probabilities", ("the numbers that target log_probability:0,1 takes a softmax of are probabilities already",
                            "at=logits"), True, modules.Probabilities, _row(), ("log_probability:0,1",)),
    Noted("continuation", ("no input ends with the ids of continuation:0,4, so that this is not the log-probability of "
                           "what the model was given",), True, modules.Ids, _row(torch.tensor([[1, 5, 2, 4, 0]]), 3),
          ("continuation:0,4",)),
    Noted("not_reached", ("output.1 does not depend on the split inputs through operators that tracing sees",), True,
          modules.Constant, _row(), ("0",), door=DECOMPOSITION),
    # ---- rows of a batch
    Noted("batch_norm", ("the examples influence each other: aten::", "normalizes by the numbers of the batch",
                         _INFLUENCE, "Put the model into evaluation mode"), True, modules.BatchNorm, _row(ROWS),
          ("()",), each_example=True, no_job=_ONE_BY_ONE),
    Noted("mean_of_rows", ("the examples influence each other: example ", " has a leftover of ",
                           ", which no operator left over", _INFLUENCE, "Attribute them one by one"), True,
          modules.Centred, _row(ROWS), ("()",), each_example=True, no_job=_ONE_BY_ONE),
    Noted("neighbours", ("the examples influence each other: example ", " contributes ", " to targets of others",
                         _INFLUENCE, "Attribute them one by one"), True, modules.Neighbours, _row(ROWS), ("()",),
          each_example=True, policy={"preset": "fast"}, no_job=_ONE_BY_ONE),
    # ---- several runs
    Noted("several_baselines", ("contributions, reference and leftover are means over 2 baselines",
                                "the report is that of the first"), False, modules.Summed,
          _two_baselines(1.0), no_plan=_ONE_BASELINE, no_job=_NO_CHOICE),
    Noted("later_baseline", ("tracing failure: ", "(in a run with a later baseline"), True, modules.Cubes,
          _two_baselines(300.0), policy={"on_failure": "warn"}, no_plan=_ONE_BASELINE, no_job=_NO_CHOICE),
    Noted("one_by_one", ("the model does not take several examples at once (", "); they were attributed one by one"), False,
          modules.OneRow, _row(), door=INTERACTIONS),
    Noted("one_by_one_branches", ("the model reads numbers that depend on the input, in a batch those of all examples "
                                  "together, and may branch on them; examples were attributed one by one",), True,
          modules.BranchOfRows, _row(), door=INTERACTIONS),
    Noted("memory", ("the memory limit was not kept: an operator needs a stand-in",), False, modules.Poles,
          _row(baseline=-X), memory=1, no_plan="it keeps what it needs, and has no limit", no_job=_NO_CHOICE),
    # ---- the file
    Noted("no_checksum", ("", " entries of the file have no checksum, so that damage there is not seen"), True,
          modules.Summed, _row(), file=modules.without_checksums, live=False),
    Noted("compiled_code", ("the file also holds code that AOTInductor compiled, which is not used",), False, None,
          _row(_numbers(3, 4)), ("0,0",), file=modules.exported("mlp", entry="data/aotinductor/model/model.so"),
          live=False, no_job=_SIZE),
    Noted("unchecked_guards", ("the exporter's guards that are not checked: len(L) == 1",), True, None,
          _row(_numbers(3, 4)), ("0,0",), file=modules.exported("mlp", program=modules.add_guard), live=False,
          no_job=_SIZE),
    Noted("exported_in_training", ("the model was exported in training mode: ", "; call eval() before exporting it"),
          True, None, _row(_numbers(3, 4)), ("0,0",), file=modules.exported("training"), live=False,
          no_plan="a model that writes into its buffers is refused", no_job=_SIZE),
]


def main() -> None:
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "cases.json"), "w", encoding="utf-8") as file:
        json.dump({"cases": [case.write(folder) for case in TABLE]}, file, indent=1)


if __name__ == "__main__":
    main()
