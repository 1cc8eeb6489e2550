"""Lists of expected failures: for vendors, and for work in progress. Those of our own testees are empty.

    # A comment.
    required.activation.relu_basic.faithful.f64.recovery   # number
    required.special.*.*.f32.*                             # error

A line has the name of a check, with * for any element or, as the last one, any elements, and behind # the class of the
failure: number, bits, text, error, crash, timeout, protocol or case; what follows the class is for readers.
"""

import re


class FailureList:
    def __init__(self, path, text):
        self.path = path
        self.lines = []  # (number, pattern, class, expression)
        self._used = set()
        for number, line in enumerate(text.splitlines(), 1):
            content, _, remark = line.partition("#")
            pattern = content.strip()
            if not pattern:
                continue
            kind = re.match(r"\w*", remark.strip()).group()
            if not kind:
                raise ValueError("%s:%d: the class of the failure is missing: NAME # CLASS" % (path, number))
            self.lines.append((number, pattern, kind, _expression(pattern)))

    def expects(self, name):
        """The classes of failures that are expected of a check."""
        kinds = set()
        for number, _, kind, expression in self.lines:
            if expression.fullmatch(name):
                self._used.add(number)
                kinds.add(kind)
        return kinds

    def unmatched(self):
        """Lines that no check was called like."""
        return [(number, pattern) for number, pattern, _, _ in self.lines if number not in self._used]


def load(path):
    with open(path, encoding="utf-8") as file:
        return FailureList(path, file.read())


def write(path, outcomes):
    """The list that makes a run succeed: `--fix`."""
    with open(path, "w", encoding="utf-8") as file:
        for outcome in outcomes:
            if outcome.failures and outcome.counts:
                kind, message = outcome.failures[0]
                file.write("%s   # %s: %s\n" % (outcome.name, kind, message.splitlines()[0][:200]))


def _expression(pattern):
    elements = pattern.split(".")
    parts = [r"[^.]*" if element == "*" else _glob(element) for element in elements]
    if elements[-1] == "*":
        parts[-1] = ".*"
    return re.compile(r"\.".join(parts))


def _glob(element):
    return "".join("[^.]*" if letter == "*" else re.escape(letter) for letter in element)
