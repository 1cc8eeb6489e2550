"""Public names of C# and their types, read from the sources: the XML documentation has names without types, and internal
ones among them."""

import re

_TYPE = re.compile(r"(public |internal |file )?(?:[a-z]+ )*?(class|record struct|record|struct|interface|enum) (\w+)")
_MODIFIERS = re.compile(
    r"(?:(?:abstract|async|const|extern|new|override|partial|readonly|required|sealed|static|unsafe|virtual) )*")
_OPENING, _CLOSING = "(<[{", ")>]}"


def pieces(text, separator=","):
    """The parts of a list, whose own brackets may hold separators."""
    depth, start = 0, 0
    for at, letter in enumerate(text):
        depth += (letter in _OPENING) - (letter in _CLOSING)
        if letter == separator and depth == 0:
            yield text[start:at].strip()
            start = at + 1
    if text[start:].strip():
        yield text[start:].strip()


def _inside(text):
    """The text within the first bracket of a declaration."""
    start = text.index("(")
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if depth == 0:
            return text[start + 1:at]
    return text[start + 1:]


def _typed(text):
    """"IReadOnlyList<string> Names" as (type, name)."""
    text = re.sub(r"<[^<>]*>$", "", text.strip())
    kind, _, name = text.rpartition(" ")
    return kind, name


class Declarations:
    """Public types, and for each of their members (type, number of parameters) of every overload."""

    def __init__(self):
        self.types, self.enums, self.members = set(), set(), {}

    def add(self, owner, name, kind, count):
        self.members.setdefault((owner, name), []).append((kind, count))

    def is_public(self, owner, name):
        """Whether a name of the documentation is public; of a type where there is no owner."""
        if owner is None:
            return name in self.types
        return owner in self.enums or owner in self.types and (name.startswith("op_") or (owner, name) in self.members)

    def type_of(self, owner, name, count):
        """The type of a property or field, or of what a method returns; "" where there is none."""
        overloads = self.members.get((owner, name), [("", count)])
        return next((kind for kind, own in overloads if own == count), overloads[0][0])

    def _add_type(self, header, is_enum, name):
        self.types.add(name)
        if is_enum:
            self.enums.add(name)
        brackets = re.match(r"[^:{]*?\b%s(?:<\w+>)?\(" % name, header)
        parameters = list(pieces(_inside(header))) if brackets else []
        for parameter in parameters:
            kind, parameter_name = _typed(parameter.split(" = ")[0])
            self.add(name, parameter_name, kind, 0)
        self.add(name, "#ctor", "", len(parameters))

    def _add_member(self, owner, text):
        text = _MODIFIERS.sub("", text, count=1)
        head = re.match(r"(.*?)(?:\(|\s=>|\s=\s|;|\{|$)", text, re.DOTALL).group(1).strip()
        is_called = text[len(head):].lstrip().startswith("(")
        count = len(list(pieces(_inside(text)))) if is_called else 0
        if " operator " in " " + head:
            return
        if "this[" in head:
            self.add(owner, "Item", head.split(" this[")[0], 1)
        elif head == owner:
            self.add(owner, "#ctor", "", count)
        else:
            kind, name = _typed(head)
            self.add(owner, name, kind, count)


def read(sources):
    """The declarations of some sources. Types begin at the beginning of a line, and members behind four spaces."""
    found = Declarations()
    for source in sources:
        owner, lines = None, source.splitlines()
        for at, line in enumerate(lines):
            if line.startswith("//") or not line.strip():
                continue
            match = _TYPE.match(line)
            if match:
                owner = match.group(3) if match.group(1) == "public " else None
                if owner:
                    found._add_type(_whole(lines, at), match.group(2) == "enum", owner)
            elif owner and line.startswith("    public "):
                found._add_member(owner, _whole(lines, at).strip()[len("public "):])
    return found


def _whole(lines, at):
    """A declaration up to its body, in one line."""
    text = ""
    for line in lines[at:at + 40]:
        text += " " + line.strip()
        depth = text.count("(") - text.count(")")
        if depth == 0 and re.search(r"[;{]|=>|\)$", text) or depth == 0 and not text.rstrip().endswith(","):
            break
    return re.sub(r"\s+", " ", text).replace("( ", "(").strip()
