"""Writes the table of platforms into docs/building.md, from what tools/matrix and tests/packages/try_wheel wrote.

    page.py OUT BUILDING.md RESULT...

OUT is BUILDING.md with everything between the lines "<!-- NAME: begin -->" and "<!-- NAME: end -->" written anew, for the
names "platforms" and "wheel". A RESULT is a file of `tools/matrix --results` (.json) or of `try_wheel --results` (.jsonl).
Nobody writes a row by hand.
"""

import json
import re
import sys

# Parts that ran, by the folder of their tests: for which language, and what it is called.
_PARTS = {
    "core": ("C++", "core"),
    "tests/conformance:cpp": ("C++", "conformance"),
    "tests/exported": ("C++", "exported programs"),
    "tests/opdb": ("C++ and Python", "operator database"),
    "c_api": ("C", "interface"),
    "tests/conformance:c": ("C", "conformance"),
    "bindings/python": ("Python", "binding"),
    "tests/conformance:python": ("Python", "conformance"),
    "tests/constructs": ("Python", "constructs"),
    "tests/transformers": ("Python", "models of Hugging Face"),
    "bindings/java": ("Java", "binding"),
    "tests/conformance:java": ("Java", "conformance"),
    "bindings/csharp": ("C#", "binding"),
    "tests/conformance:csharp": ("C#", "conformance"),
    "tests/conformance": ("all", "conformance"),
    "tests": ("all", "other tests"),
    "tools": ("all", "tools"),
    "other": ("all", "documents"),
}
_LANGUAGES = ["C++", "C", "Python", "Java", "C#", "C++ and Python", "all"]


def _numbers(text):
    return [int(number) for number in re.findall("[0-9]+", text or "")]


def _origin(release):
    """The origin of a run's LibTorch: "pip" for tools/matrix pip-2.15.0, else the release of Debian."""
    return "pip" if release.startswith("pip-") else release


def _built_with(versions):
    names = (("gcc", "GCC"), ("bazel", "Bazel"), ("python", "Python"), ("java", "JDK"), ("dotnet", ".NET"), ("swig", "SWIG"))
    return ", ".join("%s %s" % (name, versions[key]) for key, name in names if versions.get(key))


def platforms(results):
    """The rows of tools/matrix: one for each LibTorch and language."""
    lines = ["| LibTorch | of | language | what ran | passed | failed | skipped | date |", "|---|---|---|---|---|---|---|---|"]
    builds = []
    order = sorted(results, key=lambda r: (_numbers(r["versions"]["libtorch"]), r["release"], r["mode"], r["date"]))
    for result in order:
        version, origin = result["versions"]["libtorch"], _origin(result["release"])
        mode = "" if result["mode"] == "workspace" else ", " + result["mode"]
        by_language = {}
        for folder, counts in result["folders"].items():
            language, part = _PARTS[folder]
            by_language.setdefault(language, []).append((list(_PARTS).index(folder), part, counts))
        for language in sorted(by_language, key=_LANGUAGES.index):
            parts = sorted(by_language[language], key=lambda part: part[0])
            cells = [version, origin + mode, language, ", ".join(part for _, part, _ in parts)]
            cells += [sum(counts[key] for _, _, counts in parts) for key in ("passed", "failed", "skipped")]
            lines.append("| %s |" % " | ".join(map(str, cells + [result["date"]])))
        builds.append("- LibTorch %s of %s%s: %s" % (version, origin, mode, _built_with(result["versions"])))
    return "\n".join(lines + ["", "Built with:", ""] + sorted(set(builds), key=builds.index))


def wheel(trials):
    """The trials of the wheel: a row for each system and Python, a column for each torch."""
    if not trials:
        return "No trial has been recorded yet."
    torches = sorted({trial["torch"] for trial in trials}, key=_numbers)
    systems = sorted({(trial["system"], trial["python"]) for trial in trials}, key=lambda s: (s[0], _numbers(s[1])))
    # The last one counts.
    found = {(trial["system"], trial["python"], trial["torch"]): trial for trial in trials}
    lines = ["| system | Python | %s |" % " | ".join("torch " + torch for torch in torches), "|---" * (2 + len(torches)) + "|"]
    for system, python in systems:
        cells = []
        for torch in torches:
            trial = found.get((system, python, torch))
            cells.append("" if trial is None else "%s, %s" % (trial["result"], trial["date"]))
        lines.append("| %s |" % " | ".join([system, python] + cells))
    return "\n".join(lines)


def rewrite(page, tables):
    """The page with other tables."""
    for name, table in tables.items():
        begin, end = "<!-- %s: begin -->" % name, "<!-- %s: end -->" % name
        head, found, rest = page.partition(begin)
        _, closed, tail = rest.partition(end)
        if not (found and closed):
            sys.exit("the page has no place for the table %r: %s ... %s" % (name, begin, end))
        page = "%s%s\n\n%s\n\n%s%s" % (head, begin, table, end, tail)
    return page


def main(out, page, *paths):
    results, trials = [], []
    for path in sorted(paths):
        with open(path, encoding="utf-8") as file:
            if path.endswith(".jsonl"):
                trials += [json.loads(line) for line in file if line.strip()]
            else:
                results.append(json.load(file))
    with open(page, encoding="utf-8") as file:
        text = file.read()
    with open(out, "w", encoding="utf-8") as file:
        file.write(rewrite(text, {"platforms": platforms(results), "wheel": wheel(trials)}))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
