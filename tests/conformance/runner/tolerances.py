"""How far numbers may be apart, from tolerances.json; and which of its entries were of use."""

import fnmatch
import json


class Tolerances:
    """The table of one run. Every question is remembered, so that entries that nobody needs can be named."""

    def __init__(self, content):
        self.base = content["base"]
        self.quadrature = content["quadrature"]
        self.kernel = content["kernel"]  # what a device's own kernel may be off, and is then allowed
        self.entries = [Entry(fields) for fields in content["entries"]]

    def of(self, dtype, op, law, kind, policy, kernel=0.0):
        """The allowance of one judgement. `kernel`: what a device's own kernel is off, relative to its results."""
        factor, used = 1.0, []
        for entry in self.entries:
            if entry.fits(dtype, op, law, policy):
                factor *= entry.factor
                used.append(entry)
        quadrature = self.quadrature[dtype] if kind == "path" and dtype in self.quadrature else 0.0
        return Allowance(self.base[dtype]["rtol"], self.base[dtype]["atol"], quadrature, factor, used, kernel)

    def usage(self):
        """The use of the entries, to be merged with other processes' and shown by `remarks`."""
        return [(entry.asked, entry.largest) for entry in self.entries]

    def merge(self, usage):
        for entry, (asked, largest) in zip(self.entries, usage):
            entry.asked += asked
            entry.largest = max(entry.largest, largest)

    def remarks(self):
        """Lines about entries that were not asked for, or allow more than was needed."""
        for entry in self.entries:
            if not entry.asked:
                yield "tolerances.json: nothing asked for %s" % entry
            elif entry.largest <= 1:
                yield "tolerances.json: %s is not needed, the base tolerance is enough" % entry
            elif entry.largest * 4 < entry.factor:
                yield "tolerances.json: %s could shrink to %.3g" % (entry, entry.largest)


class Entry:
    """A looser tolerance, for what a reason is stated."""

    def __init__(self, fields):
        self.fields = fields
        for key in ("factor", "reason", "date"):
            if key not in fields:
                raise ValueError("tolerances.json: an entry lacks its %s: %r" % (key, fields))
        unknown = fields.keys() - {"op", "dtype", "law", "policy", "factor", "reason", "date"}
        if unknown:
            raise ValueError("tolerances.json: an entry has no %s: %r" % (", ".join(sorted(unknown)), fields))
        self.factor = float(fields["factor"])
        if self.factor <= 1:
            raise ValueError("tolerances.json: a factor of %g loosens nothing: %r" % (self.factor, fields))
        self.asked = 0
        self.largest = 0.0  # error over base tolerance

    def fits(self, dtype, op, law, policy):
        for key, value in (("dtype", dtype), ("op", op), ("law", law), ("policy", policy)):
            if key in self.fields and not fnmatch.fnmatchcase(value, self.fields[key]):
                return False
        return True

    def __str__(self):
        place = ", ".join("%s %s" % (key, self.fields[key]) for key in ("op", "law", "policy", "dtype") if key in self.fields)
        return "factor %g of %s" % (self.factor, place or "everything")


class Allowance:
    """An error e of numbers of the size s is allowed if e <= factor (atol + (rtol + quadrature) s) + kernel s."""

    __slots__ = ("rtol", "atol", "quadrature", "factor", "entries", "kernel", "worst")

    def __init__(self, rtol, atol, quadrature, factor, entries, kernel=0.0):
        self.rtol = rtol
        self.atol = atol
        self.quadrature = quadrature
        self.factor = factor
        self.entries = entries
        self.kernel = kernel
        self.worst = 0.0
        for entry in entries:
            entry.asked += 1

    def at(self, size):
        return self.factor * (self.atol + (self.rtol + self.quadrature) * size) + self.kernel * size

    def met(self, ratio):
        """An error that was `ratio` of what `at` allowed."""
        self.worst = max(self.worst, ratio)
        for entry in self.entries:
            entry.largest = max(entry.largest, ratio * self.factor)


def load(path):
    with open(path, encoding="utf-8") as file:
        return Tolerances(json.load(file))
