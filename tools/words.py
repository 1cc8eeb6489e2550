#!/usr/bin/python3
"""Finds comments and sentences that have to be read twice.

A comment names its subject first. One that opens with "What", "Of", "Where", "The same",
"By", "As" or "Nothing" makes its reader wait for the subject, so such openings are told.
In Markdown, sentences of more than 35 words are told. Only the standard library is used.
"""

import argparse
import pathlib
import re
import sys

OPENING = re.compile(r"(What|Of|Where|The same|By|As|Nothing)\b")
LONGEST = 35

# Languages by the ends of file names: how a line of a comment begins.
SLASHES = re.compile(r"\s*(?:///?!?|/\*\*?|\*(?!/))(?:\s+|$)(.*)")
HASH = re.compile(r"\s*#(?!!|include\b|define\b|if|end|undef\b|pragma\b|error\b|else\b)\s?(.*)")
COMMENT = {
    ".cc": SLASHES, ".h": SLASHES, ".hpp": SLASHES, ".i": SLASHES, ".java": SLASHES, ".cs": SLASHES, ".js": SLASHES,
    ".py": HASH, ".sh": HASH, ".bzl": HASH, ".txt": HASH, "": HASH,
}
DOCSTRING = re.compile(r'\s*[rR]?"""(.*)')
XML_SUMMARY = re.compile(r"(?:<[a-z]+>)\s*")


def openings(path, lines):
    """Yields (line number, text) of the comments in `lines` whose subject comes late."""
    comment = COMMENT[path.suffix]
    inside = False
    for number, line in enumerate(lines, 1):
        found = comment.match(line)
        docstring = DOCSTRING.match(line) if path.suffix == ".py" else None
        text = ""
        if docstring:
            text = docstring.group(1)
        elif found:
            # A block may begin with lines of marks alone: "/**", "///".
            text = XML_SUMMARY.sub("", found.group(1)).strip()
            if inside:
                text = ""
            elif not text:
                continue
        if OPENING.match(text):
            yield number, text
        inside = bool(found)


# Code, and a list of nothing else, is one word.
CODE = re.compile(r"`[^`]*`(?:, `[^`]*`)*")
LINK = re.compile(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])?")
TAG = re.compile(r"<[^>]*>")
END = re.compile(r"(?<=[.!?])[\"')\]*_]*\s+")
ITEM = re.compile(r"\s*(?:[-*+]|\d+\.)\s+")


def paragraphs(lines):
    """Yields (line number, text) of each paragraph, item of a list, and cell of a table."""
    start, text, fenced = 0, [], False
    for number, line in enumerate([*lines, ""], 1):
        fence = line.lstrip().startswith(("```", "~~~"))
        if fence or fenced or not line.strip() or line.lstrip().startswith(("|", "#", ">")) or ITEM.match(line):
            if text:
                yield start, " ".join(text)
                text = []
            if fence:
                fenced = not fenced
            elif not fenced and line.lstrip().startswith("|"):
                yield from ((number, cell) for cell in line.strip().strip("|").split(" | "))
            elif not fenced and ITEM.match(line):
                start, text = number, [ITEM.sub("", line, count=1)]
        elif text or not line.startswith("    "):
            if not text:
                start = number
            text.append(line.strip())


def long_sentences(path, lines):
    """Yields (line number, text) of the sentences in `lines` of more than LONGEST words."""
    for number, text in paragraphs(lines):
        plain = TAG.sub(" ", LINK.sub(lambda link: link.group(1) or "image", CODE.sub("code", text)))
        for sentence in END.split(plain):
            words = [word for word in sentence.split() if re.search(r"\w", word)]
            if len(words) > LONGEST:
                yield number, f"{len(words)} words: {' '.join(words[:8])} ..."


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=pathlib.Path, help="files to read; standard input lists more, one a line")
    parser.add_argument("--stdin", action="store_true", help="read names of files from standard input")
    arguments = parser.parse_args()
    names = arguments.files + [pathlib.Path(line.strip()) for line in sys.stdin] if arguments.stdin else arguments.files
    for path in names:
        if path.suffix != ".md" and path.suffix not in COMMENT:
            continue
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        check = long_sentences if path.suffix == ".md" else openings
        for number, text in check(path, lines):
            print(f"{path}:{number}: {text}")


if __name__ == "__main__":
    main()
