"""Reads addend.h and addend_ext.h: what they declare, each with its comment. Nothing of C beyond what they use."""

import re

_TOKEN = re.compile(r"/\*.*?\*/|\"[^\"]*\"|[;{}]|[^/\"{};]+|/", re.DOTALL)
_SECTION = re.compile(r"^-{4} (.*?) -+$")
_PARAMETER = re.compile(r"^(.*?)(\w+)$", re.DOTALL)


class Declaration:
    """One declaration: `kind` is "handle", "callback", "struct", "enum", "constant" or "function"."""

    def __init__(self, kind, name, comment="", section="", header="", **parts):
        self.kind = kind
        self.name = name
        self.comment = comment
        self.section = section
        self.header = header
        self.parts = parts


def text_of(comment):
    """A comment without its stars, lines kept."""
    lines = comment[2:-2].strip().splitlines()
    return "\n".join(re.sub(r"^ ?\* ?", "", line.strip() if k == 0 else line.lstrip(" ")) for k, line in enumerate(lines))


def tidy(code):
    return re.sub(r"\s*\*\s*", "* ", re.sub(r"\s+", " ", code)).replace("* *", "**").replace("* )", "*)").strip()


def parameters(code):
    """[(type, name)] of a list of parameters."""
    if tidy(code) in ("", "void"):
        return []
    found = []
    for one in code.split(","):
        match = _PARAMETER.match(tidy(one))
        if not match or not match.group(1).strip():
            raise ValueError("a parameter without a name: %r" % one)
        found.append((match.group(1).strip(), match.group(2)))
    return found


def _constants(text, header):
    """Macros that stand for a number or a text, with the comment above them; the rest of the preprocessor goes."""
    text = text.replace("\\\n", " ")
    found = []
    pattern = r'(/\*(?:[^*]|\*(?!/))*\*/\n)?^#define (ADDEND_\w+) +(-?\d+|"[^"]*") *(?:/\*.*?\*/)?$'
    for comment, name, value in re.findall(pattern, text, re.MULTILINE):
        plain = value.strip('"') if value.startswith('"') else int(value)
        found.append(Declaration("constant", name, text_of(comment.strip()) if comment else "", "", header, value=plain))
    text = re.sub(r"(?m)^#define .*$", ";", text)  # so that no comment of a macro is taken for that of what follows
    return found, re.sub(r"(?m)^#.*$", "", text)


def _values(body):
    """[(name, value, comment)] of an enum's body, with comments behind a value on its line, or above it."""
    found, above, number = [], "", -1
    pattern = r"/\*(.*?)\*/|(ADDEND_\w+)(?:\s*=\s*(-?\w+))?\s*,?[ \t]*(/\*.*?\*/)?"
    for match in re.finditer(pattern, body, re.DOTALL):
        if match.group(2) is None:
            above = text_of("/*%s*/" % match.group(1))
            continue
        number = int(match.group(3), 0) if match.group(3) else number + 1
        behind = text_of(match.group(4)) if match.group(4) else ""
        found.append((match.group(2), number, behind or above))
        above = ""
    return found


def _fields(body):
    """[(type, name, comment)] of a struct's body; callbacks among them are kept as they are written."""
    found, above = [], ""
    for match in re.finditer(r"/\*(.*?)\*/|([^;/]+);[ \t]*(/\*.*?\*/)?", body, re.DOTALL):
        if match.group(2) is None:
            above = text_of("/*%s*/" % match.group(1))
            continue
        behind = text_of(match.group(3)) if match.group(3) else ""
        code = tidy(match.group(2))
        callback = re.match(r"^(.*?)\( ?\* ?(\w+)\)\s*\((.*)\)$", code)
        if callback:
            found.append(("%s (*)(%s)" % (callback.group(1).strip(), callback.group(3)), callback.group(2), behind or above))
        else:
            kind, name = _PARAMETER.match(code).groups()
            found.append((kind.strip(), name, behind or above))
        above = ""
    return found


def _declaration(code, comment, section, header):
    code = re.sub(r"/\*.*?\*/", lambda m: m.group() if "{" in code else " ", code, flags=re.DOTALL).strip()
    code = re.sub(r"\bADDEND_CALL\b", "", code)  # a calling convention, which all callbacks have
    known = dict(comment=comment, section=section, header=header)
    match = re.match(r"^enum (\w+)\s*\{(.*)\}$", code, re.DOTALL)
    if match:
        return Declaration("enum", match.group(1), values=_values(match.group(2)), **known)
    match = re.match(r"^typedef struct (\w+)\s*\{(.*)\}\s*\w+$", code, re.DOTALL)
    if match:
        return Declaration("struct", match.group(1), fields=_fields(match.group(2)), **known)
    match = re.match(r"^(?:typedef )?struct (\w+)(?: \w+)?$", code)
    if match:
        return Declaration("handle", match.group(1), **known)
    match = re.match(r"^typedef (.*?)\(\s*\*\s*(\w+)\)\s*\((.*)\)$", code, re.DOTALL)
    if match:
        given = dict(returns=tidy(match.group(1)), parameters=parameters(match.group(3)))
        return Declaration("callback", match.group(2), **given, **known)
    match = re.match(r"^ADDEND_API((?:\s+ADDEND_[A-Z]+)*)\s+(.*?)\b(addend_\w+)\s*\((.*)\)\s*(?:ADDEND_[A-Z]+\s*)*$", code, re.DOTALL)
    if match:
        given = dict(returns=tidy(match.group(2)), parameters=parameters(match.group(4)))
        return Declaration("function", match.group(3), **given, **known)
    raise ValueError("%s declares something unknown: %s" % (header, code))


def read(path, header):
    """Every declaration of a header, in order. Throws ValueError for what is none of the kinds."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    declarations, text = _constants(text, header)
    text = re.sub(r'extern "C" \{', "", text)
    section = comment = code = ""
    depth = 0
    for token in _TOKEN.findall(text):
        if token.startswith("/*") and not code.strip():
            title = _SECTION.match(text_of(token))
            # Declarations before the first title get the beginning of the header's first comment as theirs.
            section = title.group(1) if title else section or re.split(r"[.,] ", text_of(token))[0]
            comment = "" if title else text_of(token)
        elif token == "}" and depth == 0:  # of extern "C"
            comment = code = ""
        elif token == ";" and depth == 0:
            if code.strip():
                declarations.append(_declaration(code.strip(), comment, section, header))
            comment = code = ""
        else:
            depth += {"{": 1, "}": -1}.get(token, 0)
            code += token
    return declarations
