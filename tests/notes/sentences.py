"""The sentences of notes as they stand in the sources, read as data."""

import os
import re
from typing import Iterator, Tuple

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")

# Files whose sentences are notes, but for those of errors; and files with other sentences too, of which those
# statements count that add notes.
ABOUT_NOTES = (
    "core/explain/influence.cc",
    "core/explain/note_kinds.cc",
    "core/explain/notes.cc",
    "core/explain/outcome.cc",
    "core/explain/shared_memory.cc",
    "core/program/replay_notes.cc",
)
WITH_NOTES = (
    "core/explain/attribute.cc",
    "core/explain/decompose.cc",
    "core/explain/examples.cc",
    "core/explain/several_baselines.cc",
    "core/explain/target_numbers.cc",
    "core/explain/verify.cc",
    "core/exported/archive.cc",
    "core/exported/exported_model.cc",
    "core/exported/program.cc",
    "core/model/program_model.cc",
)
# Their notes are on decisions, and tested beside them.
ELSEWHERE = ("core/document/reasons.cc",)

_STRING = r'"(?:[^"\\\n]|\\.)*"'
_TOKEN = re.compile(r"//[^\n]*|%s|'(?:[^'\\\n]|\\.)*'|[;{}]" % _STRING)
_ADDS = re.compile(r"\bnotes_?\b(\.push_back|\.insert)|\bNotes\(\) const|\bAbout\(|\bNote\(")
_ERROR = re.compile(r"\bthrow\b|\b(InvalidArgument|FailedPrecondition|Unimplemented|OutOfRange|Internal)\(")


def sentences() -> Iterator[Tuple[str, str]]:
    """The file and the text of each literal of a note."""
    for path in (*ABOUT_NOTES, *WITH_NOTES):
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            source = file.read()
        for statement in _statements(source):
            if _ERROR.search(re.sub(_STRING, "", statement)):
                continue
            if path in ABOUT_NOTES or _ADDS.search(statement):
                for text in _literals(statement):
                    yield path, text


def adds_notes(source: str) -> bool:
    """Whether a source of C++ makes notes of its own sentences."""
    return any(
        re.search(r"\bnotes_?\.(push_back|insert)\(", re.sub(_STRING, '""', statement)) and any(_literals(statement))
        for statement in _statements(source)
    )


def _statements(source: str) -> Iterator[str]:
    """Code without comments, cut behind each semicolon and each block."""
    whole, start = "", 0
    for match in _TOKEN.finditer(source):
        whole += source[start : match.start()]
        start = match.end()
        if match.group().startswith("//"):
            continue
        whole += match.group()
        if match.group() == ";":
            yield whole
            whole = ""
    yield whole


def _literals(statement: str) -> Iterator[str]:
    """Its texts of several words; literals that stand one behind the other are one."""
    for match in re.finditer(r"%s(?:\s*%s)*" % (_STRING, _STRING), statement):
        text = "".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', match.group())).replace('\\"', '"')
        if len(text.strip()) >= 8 and " " in text.strip():
            yield text
