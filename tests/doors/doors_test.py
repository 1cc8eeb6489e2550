"""Every door of the library with every construct: numbers are right, or the door says that they are not.

A door is a way to ask what the columns of rows give to one number of each row. It returns what it found as an `Answer`,
which is held against what PyTorch says of the construct, and against what one door, `explain`, says.
"""

import dataclasses
import decimal
import functools
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import warnings
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple
from xml.etree import ElementTree

import numpy
import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import addend  # noqa: E402
from cells import KNOWN, REFUSED  # noqa: E402
from constructs import CONSTRUCTS, KINDS, Construct  # noqa: E402

PROGRAM = os.environ.get("ADDEND_PROGRAM")
AGREEMENT = 1e-4  # of two doors, of the largest contribution
SIDES = ("adverse", "favourable")
SVG = "{http://www.w3.org/2000/svg}"


@dataclasses.dataclass
class Answer:
    """The findings of a door.

    Attributes:
        contributions: ``[rows, columns]``.
        said: what it said that a reader has to know before any number is read.
        on: of which baseline; None: the means over both.
        of_batch: whether a contribution is that of a column of all rows, the batch being one example.
        references: ``[rows]``, where the door tells of them whether they are the model on the baseline.
        on_baseline: what it tells of that: ``"yes"``, ``"no"`` or ``"unknown"``.
    """

    contributions: Any
    said: Sequence[str]
    on: Optional[int] = 0
    of_batch: bool = False
    references: Any = None
    on_baseline: str = "unknown"


class Asked:
    """A construct with its model, live and from a file, and how it is asked about."""

    def __init__(self, construct: Construct, folder: str):
        self.construct = construct
        self.rows = construct.rows
        self.baseline = construct.baselines[:1]
        self.net = construct.build()
        self.live = addend.compile(self.net)
        # No name of a file says what a note would say.
        self.path = os.path.join(folder, "model%d.pt" % CONSTRUCTS.index(construct))
        self.folder = folder
        construct.script().save(self.path)
        self.file = addend.load_model(self.path)
        self.names = ["part %d" % k for k in range(self.rows.shape[1])]
        self.of_row = "%d" % construct.target
        self.where: Dict[str, Any] = {}
        if construct.at is not None:
            self.where["at"] = construct.at
        if construct.outputs:
            self.where["outputs"] = construct.outputs

    def input(self, rows: Any = None, **choices: Any) -> addend.Input:
        if "baselines" not in choices:
            choices.setdefault("baseline", self.baseline)
        return addend.Input(self.rows if rows is None else rows, dims=1, names=self.names, **choices)

    def concepts(self, side: str) -> Dict[str, Any]:
        """One for each column."""
        listed = [{"name": name, "components": [name]} for name in self.names]
        return {"side": side, "at_most": len(listed), "concepts": listed}

    def questions(self) -> List[Tuple[torch.Tensor, int]]:
        """Questions to a door that takes one example: rows, and the one among them whose number is explained."""
        count = len(self.rows)
        if self.construct.together:
            return [(self.rows, k) for k in range(count)]
        return [(self.rows[k : k + 1], 0) for k in range(count)]


@functools.lru_cache(maxsize=None)
def asked(index: int) -> Asked:
    return Asked(CONSTRUCTS[index], _folder().name)


@functools.lru_cache(maxsize=None)
def _folder() -> Any:
    return tempfile.TemporaryDirectory()


# ---- doors


def attribute(model: Any) -> Callable[[Asked], Any]:
    def ask(own: Asked) -> Any:
        construct = own.construct
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            numbers, delta = addend.attribute(
                model(own), own.rows, own.baseline, construct.target, return_convergence_delta=True, **own.where
            )
        said = [str(one.message) for one in caught if issubclass(one.category, addend.AddendWarning)]
        _require_delta(numbers.double().sum(1) - construct.move(), delta.double(), construct.tolerance(), said)
        yield Answer(numbers, said)

    return ask


def _require_delta(missed: Any, delta: Any, tolerance: float, said: Sequence[str]) -> None:
    for wanted, found in zip(missed.tolist(), delta.tolist()):
        if abs(wanted) < float("inf"):
            assert abs(found - wanted) <= tolerance, "the delta is %g, the sum minus the move is %g" % (found, wanted)
        else:
            assert not abs(found) < float("inf"), "the delta is %g, the move is not finite" % found


def explain(model: Any) -> Callable[[Asked], Any]:
    def ask(own: Asked) -> Any:
        found = model(own).explain(own.input(), targets=own.of_row, each_example=True, **own.where)
        yield _of_attribution(found)
        elements = found.inputs[0].torch()
        assert torch.equal(elements.double(), _contributions(found).to(elements.dtype).double()), (
            "elements are other than components: %s, %s" % (elements, _contributions(found)))
        rows = []
        for given, k in own.questions():
            found = model(own).explain(own.input(given), targets="%d,%s" % (k, own.of_row), **own.where)
            rows.append(_of_attribution(found))
        yield _joined(rows, own)

    return ask


def _of_attribution(found: Any, **choices: Any) -> Answer:
    for one in found:
        for warning in found.warnings:
            assert warning in str(one), "not printed: %s" % warning
            assert warning in one.notes, "no note: %s" % warning
    references, told = [one.reference for one in found], found.report["reference_is_model_on_baseline"]
    return Answer(_contributions(found), found.warnings, references=references, on_baseline=told, **choices)


def _contributions(found: Any) -> Any:
    return torch.tensor([one.contributions for one in found], dtype=torch.float64)


def _joined(answers: Sequence[Answer], own: Asked, on: Optional[int] = 0) -> Answer:
    """Answers for one row each, of the batch where rows do not stand alone."""
    said = [line for answer in answers for line in answer.said]
    rows = torch.cat([torch.as_tensor(answer.contributions, dtype=torch.float64).reshape(1, -1) for answer in answers])
    told = {answer.on_baseline for answer in answers}
    if answers[0].references is None or len(told) > 1:
        return Answer(rows, said, on, own.construct.together)
    references = [reference for answer in answers for reference in answer.references]
    return Answer(rows, said, on, own.construct.together, references, told.pop())


def decompose(model: Any) -> Callable[[Asked], Any]:
    def ask(own: Asked) -> Any:
        construct, answers = own.construct, []
        choices = {"outputs": construct.outputs} if construct.outputs else {}
        if construct.at is not None:
            choices["probes"] = [construct.at]
        name = construct.at or (construct.outputs or [None])[0]
        for given, k in own.questions():
            results = model(own).decompose(own.input(given), **choices)
            one = results.explain((k, construct.target), name)
            assert all(warning in str(one) for warning in results.warnings)
            told = results.report["reference_is_model_on_baseline"]
            answers.append(Answer(one.contributions, results.warnings, references=[one.reference], on_baseline=told))
        yield _joined(answers, own)

    return ask


def plan(model: Any) -> Callable[[Asked], Any]:
    def ask(own: Asked) -> Any:
        given = own.input(own.rows.flip(0))
        made = model(own).plan(given, targets=own.of_row, each_example=True, **own.where)
        yield _of_attribution(made.attribute(own.rows))

    return ask


def job(own: Asked) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        rows = os.path.join(folder, "rows.npy")
        numpy.save(rows, own.rows.numpy())
        for side in SIDES:
            made = os.path.join(folder, side + ".json")
            choices = dict(rows=rows, targets=own.of_row, concepts=own.concepts(side), **own.where)
            addend.Job.plan(made, own.path, own.input(own.rows[:1]), **choices)
            with addend.Job(made) as work:
                for shard in range(work.shards):
                    work.run(shard)
            said = _warned_of(addend.Job.status(made))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", addend.AddendWarning)
                merged = addend.Job.merge(made)
            assert _warned_of(merged) == said, (merged, said)
            said += [one["reason"] for one in merged["refused"]]
            tensors = addend.read_tensors(merged["path"])
            numbers = torch.as_tensor(numpy.asarray(tensors["contributions"]))
            yield Answer(numbers, said)
            found = [numpy.asarray(tensors[key]) for key in ("reasons", "reason_contributions")]
            _require_reasons(numbers, side, *found)


def _require_reasons(numbers: Any, side: str, which: Any, sizes: Any) -> None:
    """Reasons are the contributions of that side, the largest first."""
    sign = -1 if side == "adverse" else 1
    for row, own in enumerate(sign * numbers):
        columns = [k for k in own.argsort(descending=True).tolist() if own[k] > 0]
        assert which[row][: len(columns)].tolist() == columns, "reasons are %s for %s" % (which[row], numbers[row])
        assert (which[row][len(columns) :] == -1).all(), "reasons are %s for %s" % (which[row], numbers[row])
        assert sizes[row][: len(columns)].tolist() == numbers[row][columns].tolist(), "%s for %s" % (sizes, numbers)


def _warned_of(document: Any) -> List[str]:
    """The warnings among the notes of a job."""
    return [one["note"] for one in document["notes"] if one["warning"]]


def interactions(model: Any) -> Callable[[Asked], Any]:
    def ask(own: Asked) -> Any:
        answers = []
        for given, k in own.questions():
            found = model(own).interactions(own.input(given), target="%d,%s" % (k, own.of_row), **own.where)
            answers.append(Answer(found.contributions, found.warnings))
        yield _joined(answers, own)

    return ask


def reasons(model: Any) -> Callable[[Asked], Any]:
    def ask(own: Asked) -> Any:
        found = model(own).explain(own.input(), targets=own.of_row, each_example=True, **own.where)
        yield _of_reasons([found.reasons(own.concepts(side)) for side in SIDES], own)

    return ask


def _of_reasons(sides: Sequence[Any], own: Asked) -> Answer:
    """Contributions of the concepts, one for each column, that moved a row either way."""
    numbers = torch.zeros(own.rows.shape, dtype=torch.float64)
    for decisions in sides:
        for row, decision in enumerate(decisions):
            sizes = [abs(reason.contribution) for reason in decision.reasons]
            assert sizes == sorted(sizes, reverse=True), sizes
            for reason in decision.reasons:
                numbers[row, own.names.index(reason.concept)] = reason.contribution
            if decision.outcome == "not_finite":
                numbers[row] = float("nan")
        assert all(warning in str(decisions) for warning in decisions.warnings)
    return Answer(numbers, sides[0].warnings)


def baselines(model: Any) -> Callable[[Asked], Any]:
    def ask(own: Asked) -> Any:
        both = own.construct.baselines
        found = model(own).explain(own.input(baselines=both), targets=own.of_row, each_example=True, **own.where)
        yield _of_attribution(found, on=None)
        for which in range(len(both)):
            given = own.input(baselines=both[which : which + 1])
            found = model(own).explain(given, targets=own.of_row, each_example=True, **own.where)
            yield _of_attribution(found, on=which)

    return ask


def command_line(own: Asked) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        rows, baseline = os.path.join(folder, "rows.npy"), os.path.join(folder, "start.npy")
        page = os.path.join(folder, "page.html")
        numpy.save(rows, own.rows.numpy())
        numpy.save(baseline, own.baseline.numpy())
        command = [*_asking(own, rows, baseline), "--each-example", "--target", own.of_row, "--html", page]
        text, document = (_run(command + more) for more in ([], ["--json"]))
        said = re.findall(r"^Note: ((?:.|\n  )*)", text, re.MULTILINE)
        said = [re.sub(r"\n +", " ", one) for one in said]
        found = json.loads(document)
        yield Answer([one["contributions"] for one in found["targets"]], said)
        yield _of_document(found)
        with open(page, encoding="utf-8") as file:
            yield _of_page(file.read())


def _asking(own: Asked, rows: str, baseline: str) -> List[str]:
    at = own.construct.at or "".join(own.construct.outputs)
    asked = [str(PROGRAM), "attribute", own.path, "--input", rows + ":dim=1", "--baseline", baseline]
    return [*asked, "--names", ",".join(own.names), *(["--at", at] if at else [])]


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    if done.returncode != 0:
        raise addend.Error(done.stderr)
    return done.stdout


def page(model: Any) -> Callable[[Asked], Any]:
    def ask(own: Asked) -> Any:
        found = model(own).explain(own.input(), targets=own.of_row, each_example=True, **own.where)
        yield _of_page(found.to_html())

    return ask


def picture(model: Any) -> Callable[[Asked], Any]:
    def ask(own: Asked) -> Any:
        found = model(own).explain(own.input(), targets=own.of_row, each_example=True, **own.where)
        yield _of_pictures([(one.to_svg(), one.contributions, one.reference) for one in found], own, of_batch=False)

    return ask


def picture_by_the_command_line(own: Asked) -> Any:
    drawn = []
    with tempfile.TemporaryDirectory() as folder:
        rows, baseline, svg = (os.path.join(folder, name) for name in ("rows.npy", "start.npy", "picture.svg"))
        numpy.save(baseline, own.baseline.numpy())
        for given, k in own.questions():
            numpy.save(rows, given.numpy())
            command = [*_asking(own, rows, baseline), "--target", "%d,%s" % (k, own.of_row), "--svg", svg, "--json"]
            (found,) = json.loads(_run(command))["targets"]
            with open(svg, encoding="utf-8") as file:
                drawn.append((file.read(), found["contributions"], found["reference"]))
    yield _of_pictures(drawn, own, of_batch=own.construct.together)


def _of_pictures(drawn: Sequence[Tuple[str, Sequence[float], float]], own: Asked, of_batch: bool) -> Answer:
    """A picture for each row, with the numbers that it draws. It writes them with few digits: those have to be theirs."""
    said, told = [], "yes"
    for svg, contributions, _ in drawn:
        texts = [text for text in ElementTree.fromstring(svg).iter(SVG + "text") if text.text]
        lines: Dict[Any, List[str]] = {}
        for text in texts:
            lines.setdefault(text.get("y"), []).append(text.text)
        numbers = {line[0]: line[-1].replace("\N{MINUS SIGN}", "-") for line in lines.values()}
        for name, contribution in zip(own.names, contributions):
            number = decimal.Decimal(numbers[name])
            digit = 10.0 ** number.as_tuple().exponent
            assert abs(float(number) - contribution) <= 0.51 * digit, "%s draws %s for %g" % (name, number, contribution)
        notes = _below(["".join(text.itertext()) for text in texts])
        said += [note[len("Warning: ") :] for note in notes if note.startswith("Warning: ")]
        if any("what the model gives on the baseline" in note for note in notes):
            told = "no"
    references = [reference for _, _, reference in drawn]
    return Answer([one for _, one, _ in drawn], said, of_batch=of_batch, references=references, on_baseline=told)


def _below(lines: Sequence[str]) -> List[str]:
    """The notes below a picture, which are broken into lines."""
    notes: List[str] = []
    for line in lines:
        if line.startswith(("Warning: ", "Note: ")):
            notes.append(line)
        elif notes:
            notes[-1] += " " + line
    return notes


def _of_page(text: str) -> Answer:
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    return _of_document(json.loads(data.group(1)))


def _of_document(document: Dict[str, Any]) -> Answer:
    report, targets = document["report"], document["targets"]
    return Answer(
        [one["contributions"] for one in targets],
        report["warnings"],
        references=[one["reference"] for one in targets],
        on_baseline=report["reference_is_model_on_baseline"],
    )


def live(own: Asked) -> Any:
    return own.live


def file(own: Asked) -> Any:
    return own.file


DOORS: Dict[str, Callable[[Asked], Any]] = {
    "attribute": attribute(live),
    "attribute of a file": attribute(file),
    "explain": explain(live),
    "explain of a file": explain(file),
    "decompose": decompose(live),
    "decompose of a file": decompose(file),
    "plan": plan(live),
    "plan of a file": plan(file),
    "job": job,
    "reasons": reasons(live),
    "reasons of a file": reasons(file),
    "interactions": interactions(live),
    "interactions of a file": interactions(file),
    "baselines": baselines(live),
    "baselines of a file": baselines(file),
    "command line": command_line,
    "page": page(live),
    "page of a file": page(file),
    "picture": picture(live),
    "picture of a file": picture(file),
    "picture by the command line": picture_by_the_command_line,
}


# ---- what is right


def says(words: Sequence[str], said: Sequence[str]) -> bool:
    return any(word in line for word in words for line in said)


def judge(test: unittest.TestCase, construct: Construct, answer: Answer) -> None:
    """Whether numbers are those of PyTorch, or the answer says that they are not."""
    if answer.on_baseline == "yes" and answer.on is not None:
        starts = construct.numbers(construct.build(), construct.baseline(answer.on))
        missed = (torch.tensor(answer.references, dtype=torch.float64) - starts).abs().max()
        test.assertLessEqual(missed, construct.tolerance(), "the reference is said to be the model on the baseline")
    numbers = torch.as_tensor(answer.contributions, dtype=torch.float64)
    wrong = wrong_of(construct, numbers, answer)
    if not construct.says:
        test.assertEqual(wrong, "")
        test.assertEqual(list(answer.said), [], "numbers are right, and the door says otherwise")
    elif wrong and not says(construct.says, answer.said):
        test.fail("%s, and nothing says it: %s" % (wrong, list(answer.said)))


def wrong_of(construct: Construct, numbers: Any, answer: Answer) -> str:
    """The fault of numbers; empty if there is none."""
    # All rows together have no other rows beside them.
    complete = construct.answer == "complete" or (construct.together and answer.of_batch)
    if construct.answer == "none" and not complete:
        return "these numbers need a word"
    which = [answer.on] if answer.on is not None else range(len(construct.baselines))
    if complete:
        found, wanted, of = numbers.sum(1), [construct.move(k) for k in which], "the sum"
    else:
        found, wanted, of = numbers, [construct.contributions(k) for k in which], "a contribution"
    apart = (found - sum(wanted) / len(wanted)).abs()
    if bool((apart <= construct.tolerance()).all()):
        return ""
    return "%s is %g off: %s for %s" % (of, apart.max(), found.tolist(), (sum(wanted) / len(wanted)).tolist())


@functools.lru_cache(maxsize=None)
def first_door(index: int, on: Optional[int], of_batch: bool) -> Any:
    """The answer of `explain` of the live model to the same question."""
    own = asked(index)
    if on is None:
        return sum(first_door(index, k, of_batch) for k in range(len(own.construct.baselines))) / 2
    given = own.input(baseline=own.construct.baselines[on : on + 1])
    asked_for: Dict[str, Any] = {"targets": own.of_row, "each_example": True}
    if of_batch:
        asked_for = {"targets": ["%d,%s" % (k, own.of_row) for k in range(len(own.rows))]}
    return _contributions(own.live.explain(given, **asked_for, **own.where))


def agree(test: unittest.TestCase, index: int, answer: Answer) -> None:
    numbers = torch.as_tensor(answer.contributions, dtype=torch.float64)
    wanted = first_door(index, answer.on, answer.of_batch)
    near = torch.allclose(numbers, wanted, rtol=0, atol=AGREEMENT * max(1.0, wanted.abs().max()), equal_nan=True)
    test.assertTrue(near, "explain says %s, this door %s" % (wanted.tolist(), numbers.tolist()))


def cell(test: unittest.TestCase, door: str, index: int) -> None:
    construct, own = CONSTRUCTS[index], asked(index)
    try:
        answers = list(DOORS[door](own))
    except addend.Error as error:
        refused = REFUSED.get((door, construct.name))
        if refused is None and not construct.refused:
            raise
        test.assertRegex(str(error), refused or "|".join(construct.refused))
        return
    test.assertEqual(construct.refused, (), "the door does not stop")
    test.assertTrue(answers)
    for answer in answers:
        judge(test, construct, answer)
        agree(test, index, answer)


class DoorsTest(unittest.TestCase):
    maxDiff = None

    def test_every_kind_has_a_construct(self):
        self.assertEqual(sorted({construct.kind for construct in CONSTRUCTS}), sorted(KINDS))
        names = [construct.name for construct in CONSTRUCTS]
        self.assertEqual(len(set(names)), len(names))
        for table in (REFUSED, KNOWN):
            self.assertLessEqual(set(table), {(door, name) for door in DOORS for name in names})

    def test_the_answers_are_answers(self):
        """Each column moves its number alone where the table has contributions, so that they sum to the move; where it
        has no answer, words have to be said."""
        for construct in CONSTRUCTS:
            with self.subTest(construct.name):
                parts = construct.contributions()
                if parts is None:
                    continue
                missed = (parts.sum(1) - construct.move()).abs().max().item()
                self.assertLessEqual(missed, construct.tolerance())
                self.assertGreater(parts.abs().max().item(), 10 * construct.tolerance())


def _add(door: str, index: int) -> None:
    construct = CONSTRUCTS[index]

    def test(self: DoorsTest) -> None:
        if "command line" in door and PROGRAM is None:
            self.skipTest("ADDEND_PROGRAM names no program")
        reason = KNOWN.get((door, construct.name))
        if reason is None:
            cell(self, door, index)
            return
        with self.assertRaises((AssertionError, addend.Error), msg="works now; take it out of KNOWN: " + reason):
            cell(unittest.TestCase(), door, index)

    title = "%s: %s" % (door, construct.name)
    test.__doc__ = title
    setattr(DoorsTest, "test_" + "".join(c if c.isalnum() else "_" for c in title), test)


for _door in DOORS:
    for _index in range(len(CONSTRUCTS)):
        _add(_door, _index)

if __name__ == "__main__":
    unittest.main()
