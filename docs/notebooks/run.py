"""Runs notebooks without Jupyter, and compares what their cells print with what is stored.

    run.py NOTEBOOK...           compares; exits with 1 where something differs
    run.py --renew NOTEBOOK...   stores what the cells print now

Cells run one after the other in one namespace, in the folder of the notebook. What a cell prints, and what its last
line is worth unless it ends with `;`, is its output; a picture is that of `_repr_html_`. Figures of matplotlib that a cell
drew are behind it, as SVG whose texts are texts. Numbers may differ in their last digits. Of figures the texts are compared.
"""

import ast
import base64
import contextlib
import html
import io
import json
import os
import re
import struct
import sys

# How far two numbers may be apart: relative, and absolute where they are rounding.
RELATIVE = 2e-3
ABSOLUTE = 2e-5

_NUMBER = re.compile(r"[-+]?(?:\d+\.\d+|\d+)(?:e[-+]?\d+)?", re.IGNORECASE)
_DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)
_TEXT = re.compile(r"<text\b[^>]*>([^<]*)</text>")


def run(path):
    """The notebook with the outputs that its cells have now."""
    with open(path, encoding="utf-8") as file:
        notebook = json.load(file)
    names = {"__name__": "__main__"}
    count = 0
    with _in_folder_of(path):
        for cell in notebook["cells"]:
            if cell["cell_type"] != "code":
                continue
            count += 1
            cell["execution_count"] = count
            cell["outputs"] = _run_cell("".join(cell["source"]), names, "cell %d" % count, count)
    return notebook


def compare(stored, found):
    """Lists the differences, one line each, with the number of the cell."""
    problems = []
    pairs = zip(_code(stored), _code(found))
    for number, (old, new) in enumerate(pairs, start=1):
        before, after = _texts(old["outputs"]), _texts(new["outputs"])
        if before.keys() != after.keys():
            problems.append("cell %d: has %s, stored is %s" % (number, sorted(after), sorted(before)))
            continue
        for kind in before:
            different = _differ(before[kind], after[kind])
            if different:
                problems.append("cell %d, %s: %s" % (number, kind, different))
    return problems


def _run_cell(source, names, where, count):
    tree = ast.parse(source, where)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, where, "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), where, "eval"), names)
    outputs = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())})
    if value is not None and not source.rstrip().endswith(";"):
        data = {"text/plain": _lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = _lines(value._repr_html_())
        outputs.append({"data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result"})
    return outputs + [{"data": {"image/svg+xml": _lines(figure)}, "metadata": {}, "output_type": "display_data"}
                      for figure in _figures()]


def _figures():
    """The figures that are open, as SVG, which are closed then: Jupyter does so behind each cell."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    drawn = []
    for number in pyplot.get_fignums() if pyplot else []:
        file = io.StringIO()
        # Texts of one figure are equal whenever it is drawn: no date, no random ids, no version.
        with pyplot.rc_context({"svg.fonttype": "none", "svg.hashsalt": "addend"}):
            pyplot.figure(number).savefig(file, format="svg", bbox_inches="tight", metadata={"Creator": None, "Date": None})
        drawn.append(file.getvalue())
        pyplot.close(number)
    return drawn


def _code(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def _texts(outputs):
    """The texts of outputs, by their kind."""
    texts = {}
    for output in outputs:
        if output["output_type"] == "stream":
            texts[output["name"]] = "".join(output["text"])
        for kind, text in output.get("data", {}).items():
            texts[kind] = "".join(text)
    return texts


def _differ(old, new):
    """Why two texts are not the same; empty where they are, but for the last digits of numbers."""
    old, new = _told(old), _told(new)
    words = _NUMBER.sub("#", old), _NUMBER.sub("#", new)
    if re.sub(r"[ \t]+", " ", words[0]) != re.sub(r"[ \t]+", " ", words[1]):
        return "is %r, stored is %r" % (new[:2000], old[:2000])
    for one, two in zip(_NUMBER.findall(old), _NUMBER.findall(new)):
        if abs(float(one) - float(two)) > ABSOLUTE + RELATIVE * abs(float(one)):
            return "has %s, stored is %s" % (two, one)
    return ""


def _told(text):
    """The texts of a figure, or the explanation that a page of Addend shows; the rest of the page names versions and
    seconds."""
    if "<svg" in text[:1000]:
        return "\n".join(html.unescape(one) for one in _TEXT.findall(text))
    data = _DATA.search(html.unescape(text))
    if data is None:
        return text
    record = json.loads(data.group(1))
    if "tokens" in record:  # of a language model
        numbers = base64.b64decode(record["matrix"])
        numbers = struct.unpack("<%dd" % (len(numbers) // 8), numbers)
        return json.dumps([record["tokens"], record["rows"], record["values"], record["references"], numbers])
    keys = ("name", "index", "subtract", "value", "reference", "contributions")
    return json.dumps([[part["name"] for part in record["components"]],
                       [[target[key] for key in keys] for target in record["targets"]]])


def _lines(text):
    return text.splitlines(keepends=True)


@contextlib.contextmanager
def _in_folder_of(path):
    before = os.getcwd()
    os.chdir(os.path.dirname(os.path.abspath(path)))
    try:
        yield
    finally:
        os.chdir(before)


def write(path, notebook):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(notebook, file, indent=1, ensure_ascii=False)
        file.write("\n")


def main(arguments):
    os.environ.setdefault("MPLBACKEND", "agg")  # which needs no screen
    renew = arguments[:1] == ["--renew"]
    wrong = 0
    for path in arguments[renew:]:
        found = run(path)
        if renew:
            write(path, found)
            continue
        with open(path, encoding="utf-8") as file:
            problems = compare(json.load(file), found)
        for problem in problems:
            print("%s: %s" % (path, problem), file=sys.stderr)
        wrong += bool(problems)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
