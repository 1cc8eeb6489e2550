"""Committed results of whole runs: one table for each LibTorch and machine.

Runs are equal by design but for how they are judged: C++ by laws and numbers, each other language bit for bit against C++.
So a table keeps each list of counts once, as a column, and says of each run which column is its own.
"""

import json


class Run:
    """One run: the head that its testee gave, date, options, and the counts [passed, failed, skipped] of each subject."""

    def __init__(self, content):
        self.head = content["head"]
        self.date = content["date"]
        self.options = content["options"]
        self.total = content["total"]
        self.subjects = content["subjects"]

    @property
    def device(self):
        return self.head["device"].split(":")[0]

    @property
    def version(self):
        return self.head["LibTorch"]

    @property
    def language(self):
        return self.head["language"]


def table_name(run):
    """The file of the table that `run` belongs to."""
    machine = run.head["machine"]
    return "libtorch-%s%s.json" % (run.version, "" if machine == "x86_64" else "-" + machine)


def read_table(path):
    """The runs of a table."""
    with open(path, encoding="utf-8") as file:
        table = json.load(file)
    runs = []
    for entry in table["runs"]:
        column = entry["column"]
        counts = {subject: _three(row[column]) for subject, row in table["subjects"].items() if row[column] is not None}
        runs.append(Run({**entry, "subjects": counts}))
    return runs


def write_table(path, runs):
    """Writes a table of `runs`, a line for each run and each subject."""
    columns = []
    entries = []
    for run in sorted(runs, key=lambda run: (run.device, run.language)):
        if run.subjects not in columns:
            columns.append(run.subjects)
        column = columns.index(run.subjects)
        entries.append(
            {"head": run.head, "date": run.date, "options": run.options, "total": run.total, "column": column}
        )
    subjects = sorted(set().union(*columns))
    rows = ["%s: %s" % (json.dumps(name), json.dumps([_short(column.get(name)) for column in columns])) for name in subjects]
    with open(path, "w", encoding="utf-8") as file:
        file.write('{"runs": [\n%s\n],\n' % ",\n".join(json.dumps(entry) for entry in entries))
        file.write('"subjects": {\n%s\n}}\n' % ",\n".join(rows))


def with_run(runs, run):
    """`runs` with `run` in place of the one of its language and device."""
    return [other for other in runs if (other.language, other.device) != (run.language, run.device)] + [run]


def _short(counts):
    return counts if counts is None or any(counts[1:]) else counts[0]


def _three(counts):
    return counts if isinstance(counts, list) else [counts, 0, 0]
