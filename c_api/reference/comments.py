"""Comments of the headers as data: the parts of a comment, and who owns a parameter.

The top of addend.h says how comments are written.
"""

import re

_PARTS = re.compile(r"(?:^|(?<=\. )|(?<=\n))(in|out|errors|thread):(?=[ \n])")
# "model, request (borrowed)", "components [numc, *S] (shared; NULL for zeros)"
_OWNED = re.compile(r"((?:\w+(?: \[[^\]]*\])?, )*\w+(?: \[[^\]]*\])?) \(((?:[^()]|\([^()]*\))*)\)")
_WORDS = ("borrowed", "shared", "copied", "taken over", "new")


def parts(comment):
    """{"text": ..., "in": ..., "out": ..., "errors": ..., "thread": ...}, those that are there."""
    pieces = _PARTS.split(comment)
    found = {"text": pieces[0].strip()}
    for name, text in zip(pieces[1::2], pieces[2::2]):
        found[name] = text.strip()
    return {name: text for name, text in found.items() if text}


def _clauses(text):
    """The pieces between semicolons that are in no brackets."""
    depth, start = 0, 0
    for at, letter in enumerate(text):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(letter, 0)
        if letter == ";" and depth <= 0:
            yield text[start:at]
            start = at + 1
    yield text[start:]


def owned(said, names):
    """Maps parameters to a word such as "shared", as "in" and "out" say it."""
    found = {}
    for listed, words in _OWNED.findall(said.get("in", "") + "\n" + said.get("out", "")):
        word = next((word for word in _WORDS if re.search(r"\b%s\b" % word, words)), None)
        for name in re.findall(r"\w+", re.sub(r"\[[^\]]*\]", "", listed)):
            if word and name in names:
                found.setdefault(name, word)
    return found


def nullable(said, names):
    """Parameters of which "in" says that NULL stands for something."""
    found = set()
    given = said.get("in", "")
    for listed, words in _OWNED.findall(given):
        if "NULL" in words:
            found.update(name for name in re.findall(r"\w+", re.sub(r"\[[^\]]*\]", "", listed)) if name in names)
    subject = []
    for clause in _clauses(_OWNED.sub(r"\1", given)):
        begin = re.match(r"\s*((?:\w+, )*\w+):", clause)
        subject = begin.group(1).split(", ") if begin else subject
        if "NULL" in clause:
            found.update(name for name in subject if name in names)
    return found
