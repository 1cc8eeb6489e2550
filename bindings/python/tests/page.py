"""Pages with programs and tables of numbers, for the tests that hold them to what they say."""

import contextlib
import inspect
import io
import re

import addend


class Page:
    """A Markdown page.

    Attributes:
        names: what its programs have defined.
    """

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.text = file.read()
        self.names = {}
        with contextlib.redirect_stdout(io.StringIO()):
            for number, block in enumerate(re.findall(r"```python\n(.*?)```", self.text, re.DOTALL)):
                exec(compile(block, "block %d" % number, "exec"), self.names)

    def rows(self, mark="numbers"):
        """The cells of the table between two marks, without its head."""
        table = re.search(r"<!-- Begin: %s -->\n(.*?)<!-- End -->" % mark, self.text, re.DOTALL).group(1)
        return [cells(line) for line in table.strip().splitlines()[2:]]

    def line_of(self, name, part):
        """The cells of the line that has a name in its first cell, in a part of the page: between two headings."""
        lines = [cells(line) for line in self.part(part).splitlines() if line.startswith("| `")]
        (line,) = [line for line in lines if "`%s`" % name in line[0]]
        return line

    def part(self, heading):
        """The text behind a heading, up to the next one of any level."""
        return re.split(r"^#+ .*\n", self.text.split("# %s\n" % heading, 1)[1], flags=re.MULTILINE)[0]

    def snippets(self):
        """Code of Addend in the cells of tables."""
        lines = [line for line in self.text.splitlines() if line.startswith("|")]
        return sorted({code for line in lines for code in re.findall(r"`([^`]*\baddend\.[^`]*)`", line)})


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def numbers(cell):
    return [float(number) for number in re.findall(r"[-+]?\d+\.\d+(?:e[-+]?\d+)?", cell.replace("\u2212", "-"))]


def told(values):
    """Numbers as a page has them."""
    return ", ".join("%+.4f" % float(value) for value in values)


def unknown_names(snippet):
    """Names of Addend that a snippet uses and that do not exist: attributes of the module, options of its calls."""
    missing = []
    for path in re.findall(r"\baddend((?:\.\w+)+)", snippet):
        found = addend
        for name in path[1:].split("."):
            try:
                found = getattr(found, name, None)
            except ImportError:  # its package, which need not be installed, is not there
                break
        if found is None:
            missing.append("addend" + path)
    for name in re.findall(r"\b(\w+)=(?!=)", snippet):
        if name not in _options():
            missing.append(name + "=")
    return missing


def _options():
    functions = [
        addend.Context, addend.Input, addend.Inside, addend.Model.attribute, addend.Model.decompose,
        addend.Model.explain, addend.Model.shapley, addend.tracing, addend.lm.attribute,
    ]
    return {name for function in functions for name in inspect.signature(function).parameters} | {"outputs"}
