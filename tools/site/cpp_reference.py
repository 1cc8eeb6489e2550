"""The reference of C++ over the C interface, made of addend.hpp: its classes, public members and functions."""

import re

import colours
from layout import Name, escape

PAGE = "reference/cpp.html"
_SKIPPED = re.compile(r"^(using|static_assert|namespace|template <>|inline constexpr|constexpr|#|\}|class \w+;|extern)")


class Member:
    def __init__(self, code, comment):
        self.code = code
        self.comment = comment
        match = re.search(r"(operator\s*\S+?|~?\w+)\s*\(", code)
        plain = re.search(r"(\w+)(?:\s*=.*)?;?$", code)
        self.name = (match or plain).group(1) if match or plain else code


def _cut(code):
    """A declaration without its body and its initializers."""
    depth = 0
    for at, letter in enumerate(code):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0 and letter in "{;" or depth == 0 and re.match(r" : \w+[({]", code[at:]):
            return code[:at].strip()
    return None


def _tidy(code):
    return re.sub(r"\s+", " ", code).replace("( ", "(").strip()


def read(text):
    """[(class name or "", its comment, [Member])], in order; functions that stand alone are of the class ""."""
    classes, alone = [], []
    current, comment, code, indent, public = None, [], "", 0, True
    for line in text.splitlines():
        depth = len(line) - len(line.lstrip(" "))
        stripped = line.strip()
        if code:  # in a declaration that goes on
            code += " " + stripped
        elif stripped.startswith("//"):
            if depth == (2 if current else 0):
                comment.append(stripped[2:].strip())
            continue
        elif not stripped:
            comment = []
            continue
        elif not current and re.match(r"template <.*>$", stripped):
            continue  # a class follows, or a function
        elif current and depth == 0 and stripped.startswith("}"):
            current, comment, public = None, [], True
            continue
        elif re.match(r"(public|private|protected):", stripped):
            public, comment = stripped.startswith("public"), []
            continue
        elif not current and re.match(r"(class|struct) \w+[^;]*\{$", stripped):
            match = re.match(r"(class|struct) (\w+)", stripped)
            current = (match.group(2), " ".join(comment), [])
            classes.append(current)
            public, comment = match.group(1) == "struct", []
            continue
        elif depth != (2 if current else 0) or _SKIPPED.match(stripped):
            continue
        else:
            code = stripped
        cut = _cut(code)
        if cut is None:
            continue
        behind = re.search(r";\s+// (.*)$", line)
        if behind and not comment:
            comment = [behind.group(1)]
        if re.match(r"inline \w+ \w+::\w+\(", cut):  # a member, which stands in its class
            comment, code = [], ""
            continue
        if public and not cut.startswith(("explicit Handle", "using ")) and "(" in cut + code.split(";")[0] or \
                public and current and not cut.startswith("using ") and re.search(r"\w \w+( = \S+)?$", cut):
            (current[2] if current else alone).append(Member(_tidy(cut), " ".join(comment)))
        comment, code = [], ""
    return [one for one in classes if one[2]] + [("", "What belongs to no class.", alone)]


def build(site, text):
    found = read(text)
    parts = ["<h1>C++ over the C interface</h1>",
             "<p>Made of <code>addend.hpp</code>, namespace <code>addend::api</code>; header-only. Every function throws "
             "<code>Error</code> where the C function that it calls gives a status.</p>"]
    for name, comment, members in found:
        parts.append('<h2 id="%s">%s</h2><p>%s</p>' % (name or "functions", name or "Functions", escape(comment)))
        if name:
            site.names.append(Name("C++", name, "%s#%s" % (PAGE, name), kind="class"))
        seen = set()
        told = {member.name: member.comment for member in reversed(members) if member.comment}
        for member in members:
            anchor = "%s.%s" % (name, member.name)
            place = "" if anchor in seen else ' id="%s"' % escape(anchor)
            if not place == "":
                site.names.append(Name("C++", member.name, "%s#%s" % (PAGE, anchor), name, "member"))
            seen.add(anchor)
            parts.append('<div class="entry"%s>%s<p>%s</p></div>' % (
                place, colours.block(member.code, "cpp"), escape(member.comment or told.get(member.name, ""))))
    site.add(PAGE, "C++ over the C interface", "\n".join(parts))
