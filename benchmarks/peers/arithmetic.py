"""Arithmetic on measured numbers."""

import math
import statistics


def summary(seconds):
    """The median of times, and what lies around it: the quartiles, the number of them."""
    low, _, high = statistics.quantiles(seconds, n=4, method="inclusive") if len(seconds) > 1 else 3 * [seconds[0]]
    return {"median": statistics.median(seconds), "quartiles": [low, high], "runs": len(seconds)}


def rotated(names, turn):
    """The names in an order that begins with another one each turn, so that no method always follows the same one."""
    start = turn % len(names) if names else 0
    return list(names[start:]) + list(names[:start])


def rounds(seconds, budget, most):
    """How many rounds of methods that take these times fit into a budget: at least three, an odd number."""
    total = sum(seconds)
    fitting = min(most, int(budget / total)) if total > 0 else most
    return max(3, fitting - (fitting + 1) % 2)


def completeness_error(contributions, aim):
    """The difference between a sum and what it should be, relative to the latter."""
    return abs(math.fsum(contributions) - aim) / abs(aim)


def sum_error(sums, aims):
    """The differences between several sums and what they should be, relative to the latter, both added up without
    signs: one of them may be almost zero."""
    missed = math.fsum(abs(sum_ - aim) for sum_, aim in zip(sums, aims, strict=True))
    return missed / math.fsum(map(abs, aims))


def within(pairs, pair):
    """The first of pairs of which neither number is larger than that of the pair; None if there is none."""
    return next((own for own in pairs if own[0] <= pair[0] and own[1] <= pair[1]), None)


def recovery_error(recovery, output):
    """The largest difference of an output to what parts and rest add up to, relative to the largest output."""
    return max(abs(sum_ - value) for sum_, value in zip(recovery, output)) / max(map(abs, output))


def one_line(text):
    """The message of an exception, in one line, without the pages that some append."""
    lines = [line.strip() for line in str(text).splitlines() if line.strip()]
    line = lines[0] if lines else "no reason given"
    return line if len(line) <= 160 else line[:157] + "..."
