"""Writes the figures that pages quote, from the results.

summary.py EXAMPLE_MODELS.json KNOWN_CAUSES.json SEGMENTS.json README POLICIES NEW_README NEW_POLICIES
"""

import json
import pathlib
import sys

import aims
import blocks

_COLUMNS = 120
_NAMES = {"Addend %s" % name: name for name in ("faithful", "fast")}
_NAMES["Addend faithful, by half"] = "by half"
_NAMES["Addend faithful, gates by half"] = "gates by half"
_NAMES["Addend faithful, 4 segments"] = "4 segments"
_REMOVING = (
    "Addend faithful", "Addend faithful, by half", "Addend fast", "integrated gradients", "occlusion", "input x gradient",
    "random",
)
_KNOWN = _REMOVING[:3] + (
    "Addend faithful, 4 segments", "integrated gradients", "input x gradient", "occlusion",
    "sampled Shapley", "attention rollout", "random",
)
_SEGMENTS = (1, 4, 16)
# Sharings of the interaction with attention, and with gates, side by side in one cell.
_OF_ATTENTION = (
    "Addend faithful", "Addend faithful, attention by magnitude", "Addend faithful, by half", "integrated gradients",
)
_OF_GATES = (
    "Addend faithful", "Addend faithful, gates by half", "Addend faithful, content first", "integrated gradients",
)


def removing(results):
    """F of each example model from its natural baseline."""
    yield from head("", _REMOVING)
    for subject in natural_subjects(results):
        units = "" if subject["units"][0].isdigit() or "words" in subject["name"] else ", %s" % subject["units"]
        values = [subject["methods"][method]["faithfulness"] for method in _REMOVING]
        yield row("%s%s, from %s" % (subject["name"], units, subject["start"]), ["%.3f" % value for value in values])


def known(results, key):
    """A share of each task, from its natural baseline, as the mean over its networks in percent."""
    yield from head("%", _KNOWN)
    for task in results["tasks"]:
        yield row(task["name"], [percent(aims.mean(task, method, key)) for method in _KNOWN])


def segments(results):
    """Tables of the effect of pieces of the line, beside integrated gradients."""
    columns = ["%s, %d" % (shared, count) for shared in ("content first", "by half") for count in _SEGMENTS]
    columns += ["integrated gradients", "integrated gradients, attention held"]
    yield from head("", columns)
    for task in results["tasks"]:
        for key, says in (
            ("cause_first", "true cause first"), ("needed_first", "needed first"),
            ("on_what_cannot_matter", "falls on what cannot matter"),
            ("distance", "distance to integrated gradients"),
        ):
            values = [
                sum(network["methods"][method][key] for network in task["networks"]) / len(task["networks"])
                for method in columns
            ]
            yield row("%s: %s" % (task["name"], says), ["%.0f %%" % (100 * value) for value in values])


def shares(results, methods, with_attention):
    """The worth of sharings, from every baseline of the tasks that have attention, or gates alone."""
    yield "| task, network, baseline | cause first, % | needed first, % | F | cannot matter, % | parts over the move |"
    yield "|---|---|---|---|---|---|"
    for task, place in aims.rows(results):
        if has_attention(task) != with_attention or any(aims.entries(task, method) is None for method in methods):
            continue

        def cells(key, form):
            return ", ".join(form(aims.mean(task, method, key, place)) for method in methods)

        yield row(
            "%s, %s" % (task["name"], task["networks"][0]["starts"][place]["start"]),
            [cells("cause_first", percent), cells("needed_first", percent), cells("faithfulness", "{:.2f}".format),
             cells("on_what_cannot_matter", percent), cells("conditioning", "{:.1f}".format)],
        )


def evidence(models, causes):
    """Both kinds in two items of a list."""
    with_attention = [task for task in causes["tasks"] if has_attention(task)]

    def shares(method, key):
        return [100 * aims.mean(task, method, key) for task in with_attention]

    def average(method, key):
        return "%.0f %%" % (sum(shares(method, key)) / len(with_attention))

    kinds = list(dict.fromkeys(task["name"].partition(",")[0] for task in with_attention))
    others = ("integrated gradients", "sampled Shapley", "occlusion")
    recurrent = [task for task in causes["tasks"] if task["name"].endswith(("LSTM", "GRU"))]
    items = [
        "The true causes are known in small Transformers that learn %s and %s. The highest contributions of `faithful` are "
        "those of the causes in %s of the samples (%.0f %% on the worst of %d pairs of task and network). With "
        "integrated gradients it is %s, with sampled Shapley values %s, with occlusion %s. Of the magnitudes of "
        "`faithful` %s fall on tokens that cannot matter; with the others it is %s, %s and %s."
        % (
            ", ".join(kinds[:-1]), kinds[-1], average("Addend faithful", "cause_first"),
            min(shares("Addend faithful", "cause_first")), len(with_attention),
            *(average(method, "cause_first") for method in others),
            average("Addend faithful", "on_what_cannot_matter"),
            *(average(method, "on_what_cannot_matter") for method in others),
        )
        + " In an LSTM and a GRU `faithful` names the cause in %s of the samples, and in %s with gates [by half]"
        "(../../docs/policies.md#by_magnitude)."
        % tuple(
            " and ".join(percent(aims.mean(task, method, "cause_first")) + " %" for task in recurrent)
            for method in ("Addend faithful", "Addend faithful, gates by half")
        ),
        "Parts are removed from samples of real models, in the order of their contributions. The rankings of `faithful` are "
        "worth %.3f to %.3f, those of integrated gradients %.3f to %.3f, and random ones %.3f to %.3f (1: the whole difference "
        "to the baseline, at once)."
        % tuple(
            limit([subject["methods"][method]["faithfulness"] for subject in natural_subjects(models)])
            for method in ("Addend faithful", "integrated gradients", "random") for limit in (min, max)
        ),
    ]
    return "".join(blocks.wrap(item, _COLUMNS, "- ", "  ") + "\n" for item in items)


def natural_subjects(results):
    """The example models from their natural baselines, which come first."""
    return list({subject["name"]: subject for subject in reversed(results["subjects"])}.values())[::-1]


def has_attention(task):
    return aims.entries(task, "attention rollout") is not None


def head(first, methods):
    yield row(first, [_NAMES.get(method, method) for method in methods])
    yield "|---|%s" % ("---:|" * len(methods))


def row(first, cells):
    return "| %s |" % " | ".join([first] + cells)


def percent(value):
    return "" if value is None else "%.0f" % (100 * value)


def block(lines):
    return "".join(line + "\n" for line in lines)


def rewrite(path, new_path, bodies):
    """Writes a page in which what stands between the marks of each body is new."""
    text = pathlib.Path(path).read_text(encoding="utf-8")
    for name, body in bodies.items():
        text = blocks.between(text, "<!-- Begin: %s" % name, "<!-- End", body)
    pathlib.Path(new_path).write_text(text, encoding="utf-8")


def main(models, causes, pieces, readme, policies, new_readme, new_policies):
    models, causes, pieces = (
        json.loads(pathlib.Path(path).read_text(encoding="utf-8")) for path in (models, causes, pieces)
    )
    bodies = {name: block(known(causes, name)) for name in ("cause_first", "needed_first", "on_what_cannot_matter")}
    bodies |= {"faithfulness": block(removing(models)), "evidence": evidence(models, causes)}
    rewrite(readme, new_readme, bodies)
    bodies = {
        "segments": block(segments(pieces)),
        "shares of attention": block(shares(causes, _OF_ATTENTION, True)),
        "shares of gates": block(shares(causes, _OF_GATES, False)),
    }
    rewrite(policies, new_policies, bodies)


if __name__ == "__main__":
    main(*sys.argv[1:])
