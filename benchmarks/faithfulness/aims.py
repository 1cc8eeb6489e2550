"""Findings of `measure_truths` as means over the networks of a task, and the aims that they reach."""

import math

OURS, COMPARED_WITH = "Addend faithful", "integrated gradients"
COUNTED = (
    OURS, "Addend faithful, gates by half", "Addend faithful, attention by magnitude", "Addend faithful, by half",
    COMPARED_WITH, "sampled Shapley", "occlusion",
)
WITHIN = 1.96  # deviations in half of a 95 % interval
# Whether a mean, which comes with its half interval, reaches an aim; how it is told.
AIMS = {
    "cause first in 99 %": ("cause_first", lambda value, half: value >= 0.99, "{:.1%}"),
    "needed first in 90 %": ("needed_first", lambda value, half: value >= 0.9, "{:.1%}"),
    "cannot matter: below 10 %": ("on_what_cannot_matter", lambda value, half: value < 0.1, "{:.1%}"),
    "F not below integrated gradients": ("difference", lambda value, half: value + half >= 0, "{:+.3f} \u00b1 {:.3f}"),
    "parts over the move: below 3": ("conditioning", lambda value, half: value < 3, "{:.2f}"),
}
# Why each aim is missed where it is; looked up in the samples that miss it.
WHY = {
    "cause first in 99 %": "in recurrent networks, and in one of copying, the marker or the separator comes first, for "
    "without it there was no answer either. In the image it is mostly another patch with the same pattern as the answer, in "
    "brackets a closed one of the same type. Agreement from zero embeddings misses in one network of three, for a token that "
    "cannot matter; so does the table from zero, which is far from all its columns.",
    "needed first in 90 %": "content first pays the part that the answer is made of for what marker and question brought "
    "about together with it, so that these come among parts that cannot matter.",
    "cannot matter: below 10 %": "content of such parts really flows, through small weights, and cancels in the sum over "
    "parts; magnitudes are taken before it cancels. The methods below that sum to the move have as much, nearly everywhere.",
    "F not below integrated gradients": "what coefficients and content brought about together is mostly the content's, so "
    "that parts which steered the answer are removed late.",
    "parts over the move: below 3": "zero is far from all columns of the table, and parts cancel there with every method that "
    "sums to the move.",
}


def take_repeated(networks):
    """Takes out the policies that say the same as an earlier one, in all networks of a task and from all their baselines.

    Returns:
        For each that was taken, which one says the same.
    """
    starts = [part["methods"] for network in networks for part in network["starts"]]
    policies, repeated = [name for name in starts[0] if name.startswith("Addend ")], {}
    for place, name in enumerate(policies):
        for earlier in policies[:place]:
            if earlier not in repeated and all(agree(methods[name], methods[earlier]) for methods in starts):
                repeated[name] = earlier
                break
    for methods in starts:
        for name in repeated:
            del methods[name]
    return repeated


def agree(one, other):
    """Whether two methods found the same, but for rounding and the time they took."""
    return all(math.isclose(one[key], other[key], abs_tol=1e-6) for key in one if key != "processor_ms_per_sample")


def entries(task, method, place=0):
    """The findings of one method, by network, from one baseline, the natural one first; None: it does not apply."""
    method = task["same"].get(method, method)
    starts = [network["starts"][place]["methods"] for network in task["networks"]]
    return [methods[method] for methods in starts] if method in starts[0] else None


def mean(task, method, key, place=0):
    found = entries(task, method, place)
    return None if found is None else sum(entry[key] for entry in found) / len(found)


def rows(results):
    """Pairs: a task, and the place of a baseline in it."""
    return [(task, place) for task in results["tasks"] for place in range(len(task["networks"][0]["starts"]))]


def reached(task, place, method, aim):
    """Whether a method reaches an aim, and the number; None: one of them does not apply."""
    key, holds, form = AIMS[aim]
    found = entries(task, method, place)
    if found is None or (key == "cause_first" and task["causes"] > 1):
        return None
    half = half_interval(found) if key == "difference" else 0
    if half is None:
        return None
    value = mean(task, method, key, place)
    return holds(value, half), form.format(value, half).replace("%", " %")


def half_interval(found):
    """Half of the interval of a mean difference over networks, each with samples of its own; None: not measured.

    A network without a deviation is taken to have that of the others.
    """
    variances = [entry["difference_deviation"] ** 2 for entry in found if "difference_deviation" in entry]
    return WITHIN * math.sqrt(sum(variances) / len(variances) / len(found)) if variances else None


def table(results):
    """Markdown that says which aims `faithful` reaches, by task and baseline, and how many each method does."""
    yield "## Aims"
    yield ""
    yield "Of `faithful`, at its defaults. An empty cell: the task has two causes, or no interval was measured."
    yield ""
    yield "| task, network, baseline | %s |" % " | ".join(AIMS)
    yield "|---|%s" % ("---|" * len(AIMS))
    missed = set()
    for task, place in rows(results):
        answers = {aim: reached(task, place, OURS, aim) for aim in AIMS}
        missed.update(aim for aim, answer in answers.items() if answer and not answer[0])
        yield "| %s, %s | %s |" % (
            task["name"], task["networks"][0]["starts"][place]["start"], " | ".join(map(told, answers.values())),
        )
    yield ""
    yield from ("- **%s**: %s" % (aim, WHY[aim]) for aim in AIMS if aim in missed)
    yield ""
    yield "In how many of the rows each method reaches them (contributions of occlusion do not sum to the move):"
    yield ""
    yield "| method | %s |" % " | ".join(AIMS)
    yield "|---|%s" % ("---|" * len(AIMS))
    for method in COUNTED:
        yield "| %s | %s |" % (method, " | ".join(counted(results, method, aim) for aim in AIMS))


def told(answer):
    return "" if answer is None else "%s, %s" % ("yes" if answer[0] else "**no**", answer[1])


def counted(results, method, aim):
    places = [(task, place) for task, place in rows(results) if entries(task, method, place) is not None]
    answers = [reached(task, place, method, aim) for task, place in places]
    if AIMS[aim][0] == "difference" and (None in answers or method == COMPARED_WITH):
        return ""
    answers = [answer[0] for answer in answers if answer is not None]
    return "%d of %d" % (sum(answers), len(answers))
