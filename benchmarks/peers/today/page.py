#!/usr/bin/env python3
"""Writes the page of what `measure.py` found: page.py RESULTS_FOLDER PAGE. First comes where a peer is ahead of Addend."""

import json
import sys
from pathlib import Path

import order
from reasons import REASONS

OWN = "Addend faithful"
# Other methods of Addend are no peers.
OURS = "Addend"
# How many peers the first lines name.
MOST_OFTEN = 3
# A share of the move, or of the value, that may be missing.
LITTLE = 1e-3
OTHER_SAMPLES = "maybe nothing but the samples, as the peer was too slow for all of Addend's"


class Measure:
    """A column of the page.

    Attributes:
        title: its head.
        value: of an entry; None where it has none.
        form: the number as text.
        higher: whether more is better.
        margin: what a peer has to be ahead by: a share of Addend's number, and a number.
        says: what a peer does that is ahead: a verb, with "%s" for its number and for Addend's.
        note: what Addend's own number has to be above for a difference to mean something.
    """

    def __init__(self, title, path, form, says, higher=False, share=0.0, least=0.0, above=None):
        self.title = title
        self._path = path
        self.form = form
        self.says = says
        self.higher = higher
        self.share = share
        self.least = least
        self.above = above

    def value(self, entry):
        if not ran(entry):
            return None
        for key in self._path:
            if not isinstance(entry, dict) or entry.get(key) is None:
                return None
            entry = entry[key]
        return entry

    def samples(self, entry):
        """How many samples the number is of."""
        if self._path[0] == "quantus":
            return entry["quantus"]["samples"]
        return 1 if self in COSTS else entry["explained"]

    def is_ahead(self, peer, own):
        if self.above is not None and own <= self.above:
            return False
        gain = peer - own if self.higher else own - peer
        return gain > max(self.share * abs(own), self.least)

    def text(self, entry):
        value = self.value(entry)
        return "" if value is None else self.form(value)


def runs(value):
    return "%.0f" % value if value >= 100 else "%.1f" % value


def mebibytes(value):
    return "%.1f" % value


def error(value):
    if value >= 10:
        return "%.0f times" % value if value < 1e4 else "%.0e times" % value
    return "%.1f %%" % (100 * value) if value >= 1e-3 else "%.0e" % value


def percent(value):
    return "%.0f %%" % (100 * value)


def three(value):
    return "%.3f" % value


# The columns in their order.
MEASURES = (
    Measure("time", ("processor", "ratio", "median"), runs, "takes %s plain runs instead of %s", share=0.1),
    Measure("MiB", ("peak_mib",), mebibytes, "takes %s MiB instead of %s", share=0.1, least=1.0),
    Measure("sum error", ("completeness_error",), error, "misses %s of the move instead of %s", above=1e-4),
    Measure("cause first", ("causes", "cause_first"), percent, "ranks the true cause first in %s of the samples instead of %s",
            higher=True, least=0.01),
    Measure("cannot matter", ("causes", "on_what_cannot_matter"), percent,
            "puts %s of its magnitudes on what cannot matter instead of %s", least=0.01),
    Measure("F", ("faithfulness",), three, "reaches an F of %s instead of %s", higher=True, least=0.01),
    Measure("faithfulness correlation", ("quantus", "faithfulness_correlation"), three,
            "has a faithfulness correlation of %s instead of %s", higher=True, least=0.02),
    Measure("monotonicity", ("quantus", "monotonicity"), three, "has a monotonicity of %s instead of %s", higher=True,
            least=0.05),
    Measure("max-sensitivity", ("quantus", "max_sensitivity"), three, "has a max-sensitivity of %s instead of %s", share=0.1,
            least=0.005),
    Measure("complexity", ("quantus", "complexity"), three, "has a complexity of %s instead of %s", least=0.05),
)
COSTS = MEASURES[:2]


def read(folder):
    """The results by model, in the order of the runner."""
    found = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in Path(folder).glob("*.json")}
    return {name: found[name] for name in sorted(found, key=order.MODELS.index)}


def ran(entry):
    return refusal(entry) is None


def refusal(entry):
    """Why a method has no result, or None."""
    if "reason" in entry:
        return entry["reason"]
    return "gives NaN or infinity" if entry.get("completeness_error", 0.0) is None else None


def wins(results, measure):
    """Finds where peers are ahead: tuples (model, its number, Addend's, samples of both) by method."""
    found = {}
    for model, own in with_own(results, measure).items():
        addend = results[model]["methods"][OWN]
        for method, entry in results[model]["methods"].items():
            value = measure.value(entry)
            if not method.startswith(OURS) and value is not None and measure.is_ahead(value, own):
                samples = measure.samples(entry), measure.samples(addend)
                found.setdefault(method, []).append((model, value, own, samples))
    # Methods that are most often ahead come first.
    return dict(sorted(found.items(), key=lambda pair: -len(pair[1])))


def on_the_same_samples(won):
    """Keeps the places where a peer's number is of as many samples as Addend's, which are the first ones then."""
    same = {method: [one for one in places if one[3][0] == one[3][1]] for method, places in won.items()}
    return dict(sorted(((method, own) for method, own in same.items() if own), key=lambda pair: -len(pair[1])))


def sentences_by_reason(results, measure):
    """Pairs of a reason why peers are ahead and a sentence about each peer. The last two reasons are None,
    where nobody looked for one, and that the numbers are of other samples."""
    compared, found = compared_on(results, measure), {}
    same = on_the_same_samples(wins(results, measure))
    for method, won in {**same, **wins(results, measure)}.items():
        why = reason(measure.title, method) if method in same else OTHER_SAMPLES
        text = sentence(measure, method, same.get(method, won), compared[method], results)
        found.setdefault(why, []).append(text)
    last = (None, OTHER_SAMPLES)
    return sorted(found.items(), key=lambda pair: (1 + last.index(pair[0]) if pair[0] in last else 0, -len(pair[1])))


def missed(entry):
    """The share that the contributions miss of what they shall add up to."""
    return entry["value_error" if entry["aim"] == "value" else "completeness_error"]


def faster_and_complete(results):
    """A sentence about what misses little where it is ahead in time."""
    found = []
    for method, won in wins(results, MEASURES[0]).items():
        models = ["`%s`" % model for model, *_ in won if missed(results[model]["methods"][method]) < LITTLE]
        if models:
            found.append("%s on %s" % (method, ", ".join(models)))
    return "Of those that are ahead in time, %s less than %s of what they shall add up to." % (
        "; ".join(found) + " miss" if found else "none misses", error(LITTLE)
    )


def with_own(results, measure):
    """Addend's number on each model where there is one."""
    own = {name: measure.value(result["methods"].get(OWN, {"reason": ""})) for name, result in results.items()}
    return {name: value for name, value in own.items() if value is not None}


def samples_of(peer, own):
    """How many samples a number is of, and Addend's where that is of others too."""
    told = "%d sample%s" % (peer, "" if peer == 1 else "s")
    return told if peer == own else "%s, Addend's is of %d" % (told, own)


def compared_on(results, measure):
    """How many models each method has a number of, beside one of Addend."""
    counts = {}
    for name in with_own(results, measure):
        for method, entry in results[name]["methods"].items():
            if measure.value(entry) is not None:
                counts[method] = counts.get(method, 0) + 1
    return counts


def sentence(measure, method, won, compared, results):
    """A sentence with the largest difference, relative to Addend's number, and the policy that is best there, if it is ahead too.

    What saves time or memory also has what its parts miss there.
    """
    model, value, own, samples = max(won, key=lambda one: abs(one[1] - one[2]) / max(abs(one[2]), 1e-12))
    where = "on %d of %d models" % (len(won), compared) if compared > 1 else "on its model"
    text = "**%s** is ahead %s: on `%s`%s it %s" % (
        method, where, model, "" if measure in COSTS else " (%s)" % samples_of(*samples),
        measure.says % (measure.form(value), measure.form(own))
    )
    if measure in COSTS:
        entry = results[model]["methods"][method]
        text += " and misses %s%s the %s" % (
            error(missed(entry)), " of" if missed(entry) < 10 else "", "value" if entry["aim"] == "value" else "move"
        )
    others = {
        name: measure.value(entry) for name, entry in results[model]["methods"].items()
        if name.startswith(OURS) and name != OWN and measure.value(entry) is not None
        and measure.is_ahead(measure.value(entry), own)
    }
    if others:
        best = (max if measure.higher else min)(others, key=others.get)
        text += "; `%s` has %s there" % (best, measure.form(others[best]))
    return text + "."


def reason(title, method):
    """The one of the longest beginning of the method's name."""
    known = REASONS.get(title, {})
    fitting = [start for start in known if method.startswith(start)]
    return known[max(fitting, key=len)] if fitting else None


def row(cells):
    return "| %s |" % " | ".join(cells)


def summary(results, measure):
    """One measure of all methods and models."""
    with_it = {
        name: result for name, result in results.items()
        if any(measure.value(entry) is not None for entry in result["methods"].values())
    }
    methods = []
    for result in with_it.values():
        methods += [name for name in result["methods"] if name not in methods]
    methods.sort(key=order_of_packages)
    yield row(["", *("`%s`" % name for name in with_it)])
    yield "|---|%s" % ("---:|" * len(with_it))
    for method in methods:
        cells = [measure.text(result["methods"].get(method, {})) for result in with_it.values()]
        if any(cells):
            yield row([method, *cells])


def order_of_packages(method):
    return order.PACKAGES.index(method.split()[0])


def details(result):
    """Every number of one model, and the reasons of what did not run."""
    yield row(["method", *(measure.title for measure in MEASURES), "of the value", "samples"])
    yield "|---|%s" % ("---:|" * (len(MEASURES) + 2))
    refused = []
    for method, entry in result["methods"].items():
        if not ran(entry):
            refused.append((method, refusal(entry)))
            continue
        once = "" if entry["processor"]["ratio"]["runs"] > 1 else " *"
        cells = [measure.text(entry) + (once if measure is MEASURES[0] else "") for measure in MEASURES]
        value = error(entry["value_error"]) if entry["aim"] == "value" else ""
        yield row([method, *cells, value, str(entry["explained"])])
    if refused:
        yield ""
        yield "Without a result:"
        yield ""
        for method, why in refused:
            yield "- %s: `%s`" % (method, why.replace("`", "'").encode("ascii", "ignore").decode().strip())


def versions(results):
    """The version of each package, as the results have them."""
    found = {}
    for result in results.values():
        for method, entry in result["methods"].items():
            known = entry["versions"]
            if "own" in known:
                found.setdefault(method.split()[0], set()).add(known["own"])
            for name, version in known.items():
                if name != "own":
                    found.setdefault(name, set()).add(version)
            if "version" in entry.get("quantus", {}):
                found.setdefault("Quantus", set()).add(entry["quantus"]["version"])
    return found


def pytorchs(results, own):
    """The versions of PyTorch that Addend, or the others, ran with."""
    return {
        entry["versions"]["torch"] for result in results.values() for method, entry in result["methods"].items()
        if method.startswith(OURS) == own
    }


def loads(results):
    values = [entry["load"] for result in results.values() for entry in result["methods"].values()]
    return min(values), max(values)


def dates(results):
    return sorted({entry["date"][:10] for result in results.values() for entry in result["methods"].values()})


def page(results):
    """The page in Markdown."""
    yield "# Addend beside the packages of today"
    yield ""
    yield from where_ahead(results)
    for title, measure in (
        ("Time in plain runs", MEASURES[0]), ("What the sum misses of the move", MEASURES[2]),
        ("The true cause first", MEASURES[3]), ("F", MEASURES[5]),
    ):
        lines = list(summary(results, measure))
        if len(lines) > 2:
            yield from ("", "## " + title, "", *lines)
    for name, result in results.items():
        yield ""
        yield "## `%s`" % name
        yield ""
        yield "%s; %d parts." % (result["title"], result["parts"])
        yield ""
        yield from details(result)
    yield ""
    yield "## How it was measured"
    yield ""
    yield from circumstances(results)


def where_ahead(results):
    """In short, and then with the largest difference of each peer, by the reason why it is ahead."""
    yield "Where a peer is ahead of `%s` by more than a margin, on how many models, and which peers most often:" % OWN
    yield ""
    for measure in MEASURES:
        yield "- **%s**: %s" % (measure.title, in_short(results, measure))
    yield ""
    yield faster_and_complete(results)
    yield ""
    yield (
        "Below: [why](#why-a-peer-is-ahead), tables, and [how it was measured](#how-it-was-measured). The "
        "[README](../README.md#columns) says what the columns are."
    )
    yield ""
    yield "## Why a peer is ahead"
    yield ""
    yield (
        "Each sentence has the model where the difference is largest, and the best other row of Addend there, if that is ahead "
        "of `%s` too." % OWN
    )
    for measure in MEASURES:
        reasons = sentences_by_reason(results, measure)
        if not reasons:
            continue
        yield ""
        yield "### %s" % (measure.title[0].upper() + measure.title[1:])
        for why, sentences in reasons:
            yield ""
            yield "Why: %s." % why if why else "No reason was looked for:"
            yield ""
            yield from ("- " + one for one in sentences)


def in_short(results, measure):
    """On how many models a peer is ahead, and which ones most often."""
    of = counted(len(with_own(results, measure)))
    won = on_the_same_samples(wins(results, measure))
    if not compared_on(results, measure):
        return "not compared, since Addend has no such number."
    if not won:
        return "no peer, on %s." % of
    models = {model for one in won.values() for model, *_ in one}
    often = ", ".join("%s on %d" % (method, len(won[method])) for method in list(won)[:MOST_OFTEN])
    return "a peer on %d of %s (%s)." % (len(models), of, often)


def counted(models):
    return "1 model" if models == 1 else "%d models" % models


def circumstances(results):
    """Versions, time and load."""
    yield "page.py wrote this from the JSON files beside it."
    yield ""
    yield "- Versions: %s." % ", ".join(
        "%s %s" % (name, " and ".join(sorted(found))) for name, found in sorted(versions(results).items(), key=first_known)
    )
    yield "- Measured on %s, one thread, while other programs used the machine (load %g to %g on two cores)." % (
        " and ".join(dates(results)), *loads(results)
    )
    yield (
        "- Times are ratios of the processor's time: a method and plain runs took turns in one process, five times, and the "
        "median of the five ratios counts (* one run). By the clock they are in the JSON; it also saw the other programs."
    )
    if pytorchs(results, own=True) != pytorchs(results, own=False):
        yield (
            "- **Addend ran with PyTorch %s, the others with %s.** Its times are ratios to plain runs of its own PyTorch, to be "
            "measured again with a package for that of the others." % tuple(
                " and ".join(sorted(pytorchs(results, own))) for own in (True, False)
            )
        )
    yield "- Command: `python3 benchmarks/peers/today/measure.py --out benchmarks/peers/today/results --networks FOLDER`."


def first_known(pair):
    return order.PACKAGES.index(pair[0]) if pair[0] in order.PACKAGES else len(order.PACKAGES), pair[0]


def main(folder, path):
    Path(path).write_text("\n".join(page(read(folder))) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
