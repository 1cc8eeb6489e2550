"""Modules of the package import each other in one direction: no circle, and no import in a function that hides one."""

import ast
import os
import unittest

import addend

# Imports of the package inside functions, each with the reason why it does not stand at the head of its file.
LATE = {("_compile", "_traced_module"): "it derives from a class of PyTorch, which need not be installed"}


def imports(module, tree, modules):
    """The imports of a module: pairs of what is imported and whether that waits for a call. Those for type checkers alone,
    which no program runs, are left out."""
    found = set()

    def visit(node, late):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            for other in node.orelse:
                visit(other, late)
            return
        if isinstance(node, ast.Import):
            names = [name.name.partition(".")[2] for name in node.names if name.name.split(".")[0] == "addend"]
        elif isinstance(node, ast.ImportFrom):
            names = of_package(node)
        else:
            names = []
        found.update((name if name in modules else "__init__", late) for name in names)
        inside = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for child in ast.iter_child_nodes(node):
            visit(child, late or inside)

    def of_package(node):
        path = (node.module or "").split(".")
        if node.level == 0 and path[0] != "addend":
            return []
        path = path if node.level else path[1:]
        return [path[0]] if path and path[0] else [name.name for name in node.names]

    visit(tree, False)
    return found - {(module, False)}


def circles(graph):
    """The sets of modules that import each other on some way."""
    reached = {}
    for start in graph:
        reached[start], left = set(), [start]
        while left:
            for name in graph.get(left.pop(), ()):
                if name not in reached[start]:
                    reached[start].add(name)
                    left.append(name)
    return {frozenset(two for two in reached[one] if one in reached.get(two, ())) for one in graph if one in reached[one]}


def problems(sources, late, native=("_native",)):
    """Problems of a package, of whose modules the sources are given by name."""
    modules = {*sources, *native}
    found = {name: imports(name, ast.parse(text), modules) for name, text in sources.items()}
    waiting = {(name, other) for name, others in found.items() for other, waits in others if waits}
    for name, other in sorted(waiting - set(late)):
        yield "%s imports %s inside a function: import it at the head, or give the reason" % (name, other)
    for name, other in sorted(set(late) - waiting):
        yield "%s does not import %s inside a function" % (name, other)
    graph = {name: {other for other, _ in others} for name, others in found.items()}
    for circle in sorted(map(sorted, circles(graph))):
        yield "import each other: " + ", ".join(circle)


class ImportCirclesTest(unittest.TestCase):
    def test_the_package_has_none(self):
        folder = os.path.dirname(addend.__file__)
        sources = {}
        for file in os.listdir(folder):
            if file.endswith(".py"):
                with open(os.path.join(folder, file), encoding="utf-8") as text:
                    sources[file[:-3]] = text.read()
        self.assertGreater(len(sources), 60)
        self.assertEqual(list(problems(sources, LATE)), [])

    def test_what_is_wrong_is_found(self):
        fine = {"__init__": "from . import _a", "_a": "from . import _native\nfrom ._b import f", "_b": "import os"}
        self.assertEqual(list(problems(fine, {})), [])
        for own, says in [
            ("from ._a import g", ["import each other: _a, _b"]),
            ("import addend._a", ["import each other: _a, _b"]),
            ("from addend._a import g", ["import each other: _a, _b"]),
            ("try:\n    from ._a import g\nexcept ImportError:\n    g = None", ["import each other: _a, _b"]),
            ("import addend", ["import each other: __init__, _a, _b"]),
            ("from . import version", ["import each other: __init__, _a, _b"]),
            (
                "def f():\n    from . import _a",
                ["_b imports _a inside a function: import it at the head, or give the reason", "import each other: _a, _b"],
            ),
            (
                "class C:\n    def f(self):\n        if self:\n            from ._c import g",
                ["_b imports _c inside a function: import it at the head, or give the reason"],
            ),
            ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ._a import g", []),
        ]:
            with self.subTest(own):
                self.assertEqual(list(problems({**fine, "_b": own, "_c": ""}, {})), says)
        reason = {("_b", "_a"): "a reason"}
        self.assertEqual(list(problems(fine, reason)), ["_b does not import _a inside a function"])
        # A reason is one for an import that waits, and none for a circle.
        self.assertEqual(
            list(problems({**fine, "_b": "def f():\n    from . import _a"}, reason)), ["import each other: _a, _b"]
        )


if __name__ == "__main__":
    unittest.main()
