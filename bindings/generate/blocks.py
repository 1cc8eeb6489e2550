"""Lists in blocks: the form of core/base/policy_choices.txt and its kind, and what generators do with texts.

A line without indentation begins a block, a line that is indented by two spaces says something of it ("head: text"), a
deeper one goes on with the line above. Comments begin with #.
"""

import html
import re
import textwrap


class ListError(ValueError):
    """A line of a list that has no form."""


def read(path):
    """Pairs: the line that begins a block, and the pairs (head, text) under it."""
    blocks = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            stripped = line.strip()
            if not stripped or stripped.startswith("#"):
                continue
            indent = len(line) - len(line.lstrip(" "))
            if indent == 0:
                blocks.append((stripped, []))
            elif not blocks or (indent > 2 and not blocks[-1][1]):
                raise ListError("a line under nothing: " + stripped)
            elif indent > 2:
                head, text = blocks[-1][1][-1]
                blocks[-1][1][-1] = (head, text + " " + stripped)
            else:
                head, colon, text = stripped.partition(": ")
                if not colon:
                    raise ListError('not of the form "head: text": ' + stripped)
                blocks[-1][1].append((head, text))
    return blocks


def fill(template, name, texts):
    """A file in which each line "{mark} {name}: KEY" is replaced by texts[KEY], with the indentation of that line.

    template: text of the file, in a language whose comments begin with # or //.
    """

    def block(match):
        return textwrap.indent(texts[match.group(2)].rstrip("\n"), match.group(1)) + "\n"

    return re.sub(r"(?m)^([ ]*)(?://|#) %s: (\w+)\n" % name, block, template)


def between(text, begin, end, body):
    """The text with other lines between the first that holds `begin` and the next that holds `end`."""
    lines = text.splitlines(keepends=True)
    first = next((k for k, line in enumerate(lines) if begin in line), None)
    last = first and next((k for k, line in enumerate(lines) if k > first and end in line), None)
    if not last:
        raise ListError("no line holds %s, or none behind it %s" % (begin, end))
    return "".join(lines[: first + 1]) + body + "".join(lines[last:])


def wrap(text, width, first="", later=None):
    """Lines of at most `width` columns, words unbroken."""
    return textwrap.fill(
        text,
        width,
        initial_indent=first,
        subsequent_indent=first if later is None else later,
        break_long_words=False,
        break_on_hyphens=False,
    )


def escaped(sentence):
    """A sentence as text of HTML or XML, which documentation comments of Java and C# are."""
    return html.escape(sentence, quote=False)


def javadoc(lines):
    """A comment of Javadoc, whose lines may be longer before. It is as wide as a member of a class may be; one line where
    that fits an enumerator too, which is indented twice."""
    width = 118
    if len(lines) == 1 and len(lines[0]) < width - 10:
        return "/** %s */\n" % lines[0]
    wrapped = [wrap(line, width, " * ", " *     " if line[:1] == "@" else " * ") if line else " *" for line in lines]
    return "/**\n" + "\n".join(wrapped) + "\n */\n"


def pascal(name):
    """missing_rule: MissingRule."""
    return "".join(piece[:1].upper() + piece[1:] for piece in name.split("_") if piece)


def camel(name):
    """missing_rule: missingRule."""
    word = pascal(name)
    return word[:1].lower() + word[1:]
