"""The reference of Python, made of the package's sources: what __all__ names, with signatures and docstrings."""

import ast
import inspect
import os
import re

import colours
from layout import Name, escape

PAGE = "reference/python.html"
# Modules of the package that are shown beside it. Not ops, whose functions the eager way lists, nor pydec, which has a page.
SUBMODULES = ("dask", "lm", "plots")


def docstring(text):
    """A docstring as HTML: paragraphs, ``code``, `names`, indented blocks, and lists of Args."""
    blocks = []
    for block in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        title = re.match(r"^(Args|Returns|Raises|Attributes):\n", block)
        if title:
            rows = re.split(r"\n(?=    \S)", "\n" + block[title.end():])
            cells = []
            for row in filter(None, (row.strip() for row in rows)):
                name, _, told = row.partition(":")
                told = re.sub(r"\s+", " ", told)
                cells.append("<dt>%s</dt><dd>%s</dd>" % (escape(name), _inline(told)) if told else "<dt></dt><dd>%s</dd>" % _inline(name))
            blocks.append("<p class=\"badge\">%s</p><dl>%s</dl>" % (title.group(1), "".join(cells)))
        elif re.match(r"^(    .*\n?)+$", block):
            blocks.append(colours.block(inspect.cleandoc(block), "python"))
        else:
            blocks.append("<p>%s</p>" % _inline(re.sub(r"\s+", " ", block).replace("::", ":")))
    return "\n".join(blocks)


def _inline(text):
    return re.sub(r"``(.+?)``|`(.+?)`", lambda m: "<code>%s</code>" % (m.group(1) or m.group(2)), escape(text))


def _signature(node, method):
    arguments = ast.unparse(node.args)
    if method and not any(getattr(d, "id", "") == "staticmethod" for d in node.decorator_list):
        arguments = re.sub(r"^(self|cls)(, )?(/, )?", "", arguments)
    returns = " -> " + ast.unparse(node.returns).strip("'\"") if node.returns else ""
    return "%s(%s)%s" % (node.name, arguments, returns)


def _decorated(node, name):
    return any(ast.unparse(decorator).split("(")[0] == name for decorator in node.decorator_list)


def _members(node):
    """(name, signature, docstring, names of arguments) of what users see of a class."""
    for one in node.body:
        if isinstance(one, ast.FunctionDef) and (not one.name.startswith("_") or one.name == "__init__"):
            if _decorated(one, "overload") or _decorated(one, "typing.overload"):
                continue
            text = ast.get_docstring(one) or ""
            if one.name == "__init__" and not text:
                continue
            plain = _decorated(one, "property")
            returns = ": " + ast.unparse(one.returns).strip("'\"") if one.returns else ""
            named = [argument.arg for argument in one.args.args[1:] + one.args.kwonlyargs]
            yield one.name, one.name + returns if plain else _signature(one, True), text, named
        elif isinstance(one, ast.AnnAssign) and not ast.unparse(one.target).startswith("_"):
            yield ast.unparse(one.target), ast.unparse(one), "", []


class Package:
    """The modules of the package, by their names, and what each defines."""

    def __init__(self, sources):
        self.modules = {os.path.basename(path)[:-3]: ast.parse(text) for path, text in sources.items()}
        self.defined = {}
        for module, tree in self.modules.items():
            for node in tree.body:
                if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                    self.defined[module, node.name] = node
        self.exported = {}  # name -> (module, name there)
        for module, prefix in [("__init__", "")] + [(name, name + ".") for name in SUBMODULES if name in self.modules]:
            for node in self.modules[module].body:
                if isinstance(node, ast.ImportFrom) and node.module:
                    for alias in node.names:
                        self.exported[prefix + (alias.asname or alias.name)] = (node.module, alias.name)
                elif isinstance(node, ast.FunctionDef):
                    self.exported[prefix + node.name] = (module, node.name)

    def public(self):
        """The names of __all__, in order, those of modules with the module's name before them."""
        # Exported by its name alone: `from addend import *` would hide Python's own.
        found = self._all("__init__") | {"compile"}
        for module in set(SUBMODULES) & set(self.modules):
            found |= {"%s.%s" % (module, name) for name in self._all(module)}
        return sorted(found)

    def _all(self, module):
        for node in self.modules[module].body:
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
                return {ast.literal_eval(element) for element in node.value.elts}
        raise ValueError("%s has no __all__" % module)

    def find(self, name):
        return self.defined.get(self.exported.get(name, ("", "")))

    def bases(self, node):
        """The classes of the package that a class extends, whose members it has."""
        for base in node.bases:
            name = ast.unparse(base).split("[")[0]
            for (_, defined), other in self.defined.items():
                if defined == name and isinstance(other, ast.ClassDef):
                    yield other


def _class(package, name, node, site):
    parts = [colours.block("class " + name, "python") + docstring(ast.get_docstring(node) or "")]
    seen = set()
    for holder in [node] + list(package.bases(node)):
        for member, signature, text, arguments in _members(holder):
            if member in seen:
                continue
            seen.add(member)
            anchor = "%s.%s" % (name, member)
            site.names.append(Name("Python", member, "%s#%s" % (PAGE, anchor), name, "member"))
            shown = name if member == "__init__" else anchor
            for argument in arguments:
                site.names.append(Name("Python", argument, "%s#%s" % (PAGE, anchor), shown, "argument"))
            parts.append('<div class="entry" id="%s">%s%s</div>' % (anchor, colours.block(signature, "python"), docstring(text)))
    return "\n".join(parts)


def build(site, sources):
    package = Package(sources)
    names = [name for name in package.public() if package.find(name) is not None]
    parts = ["<h1>Python</h1>", docstring(ast.get_docstring(package.modules["__init__"]) or "")]
    for name in names:
        node = package.find(name)
        kind = "class" if isinstance(node, ast.ClassDef) else "function"
        parts.append('<h2 id="%s">%s</h2>' % (name, name))
        if kind == "class":
            parts.append(_class(package, name, node, site))
        else:
            parts.append(colours.block(_signature(node, False), "python") + docstring(ast.get_docstring(node) or ""))
        site.names.append(Name("Python", name, "%s#%s" % (PAGE, name), kind=kind))
    site.add(PAGE, "Python", "\n".join(parts))
