"""The words of the glossary, each with its spelling in five languages side by side, and the page that finds a name."""

import json
import re

import markdown
import markdown_pages
from layout import escape, relative

LANGUAGES = ["Python", "Java", "C#", "C++", "C"]
PAGE = "words.html"
GLOSSARY = "docs/glossary.md"
_MOST = 3  # spellings of one word in one language


def tokens(name):
    """"addend_composition_numc", "recoveryError" -> lower-case pieces, in the singular."""
    pieces = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|\d+", name.replace("addend_", "").replace("ADDEND_", ""))
    return [re.sub(r"(?<=[^s])s$", "", piece.lower()) for piece in pieces]


def rank(word, name):
    """How well a name spells a word: 0 is best, None is not at all."""
    pieces = tokens(name.name)
    if name.kind in ("argument", "key"):
        return 7 if pieces == word else 8 if word == pieces[-len(word):] else None
    size = len(word)
    whole = name.kind in ("class", "type")
    if pieces == word:
        return 0 if whole else 1
    if pieces[-size:] == word:
        return 2 if whole else 3
    if pieces[:size] == word:
        return 4 if whole else 5
    if not whole and any(pieces[k:k + size] == word for k in range(len(pieces))):
        return 6
    return None


def glossary(text):
    """[(title, [(word, meaning)])] of the tables below "Words"."""
    found = []
    for line in text[text.index("\n## Words"):].splitlines():
        title = re.fullmatch(r"\*\*(.*)\*\*", line)
        row = re.fullmatch(r"\| ([^|]+) \| (.*) \|", line)
        if title:
            found.append((title.group(1), []))
        elif row and row.group(1) not in ("word", "---") and not set(row.group(1)) <= set("-| "):
            found[-1][1].append((row.group(1), row.group(2)))
    return found


# Names of words that a language calls otherwise, or says by an argument of another name.
_OTHER_NAMES = {
    ("split", "Python"): ["Input"],
    ("live model", "Python"): ["compile", "TracedModel"],
    ("live model", "Java"): ["TracingScope"],
    ("live model", "C#"): ["TracingScope"],
    ("live model", "C"): ["addend_trace_begin"],
    ("tracing scope", "Python"): ["tracing"],
    ("tracing scope", "C"): ["addend_trace_begin"],
    ("eager call", "Python"): ["call"],
    ("eager call", "Java"): ["Addend.call"],
    ("eager call", "C#"): ["Operators.Call"],
    ("eager call", "C"): ["addend_call"],
    ("inside", "C"): ["addend_request_add_inside"],
    ("request", "Python"): ["Model.decompose"],
    ("status", "Python"): ["Error"],
    ("status", "Java"): ["AddendException"],
    ("status", "C#"): ["AddendException"],
    ("status", "C++"): ["Error"],
}


def spellings(word, names):
    """{language: [Name]}, the best first."""
    wanted = tokens(word)
    found = {}
    for language in LANGUAGES:
        ranked = sorted(((rank(wanted, name), k, name) for k, name in enumerate(names)
                         if name.language == language and rank(wanted, name) is not None), key=lambda one: one[:2])
        others = _OTHER_NAMES.get((word, language), [])
        shown = [next(name for name in names if name.language == language and name.full == other) for other in others
                 if any(name.language == language and name.full == other for name in names)]
        for _, _, name in ranked:
            if name.full not in [other.full for other in shown]:
                shown.append(name)
        found[language] = shown[:_MOST]
    return found


def broken(name):
    """A name that lines may break behind its dots and underscores."""
    return re.sub(r"(_|\.|::)", r"\1<wbr>", escape(name))


def _inline(text, files):
    """A meaning, whose links lead from the glossary to the `files` of the site."""
    return re.sub(r"^<p>|</p>$", "", markdown_pages.linked(markdown.markdown(text), GLOSSARY, PAGE, files))


def _word(word, told, found):
    columns = []
    for language in LANGUAGES:
        links = ['<a href="%s">%s</a>' % (escape(relative(name.href, PAGE)), broken(name.full)) for name in found[language]]
        columns.append("<div><b>%s</b> %s</div>" % (language, " ".join(links) or "<span>-</span>"))
    anchor = word.replace(" ", "-")
    return '<div class="word" id="%s"><h2>%s</h2>%s<div class="five">%s</div></div>' % (
        anchor, escape(word), told, "".join(columns))


def build(site, text, files):
    """Words that no language has as a name are told without spellings. `files`: the site's pages by what they show."""
    parts = ["<h1>One word, five languages</h1>",
             "<p>Addend uses one word for each idea in every language. Each word of the glossary stands here with the names "
             "that spell it. To find any other name, use <a href=\"names.html\">the list of all names</a>.</p>"]
    index = []
    for title, rows in glossary(text):
        parts.append("<h2>%s</h2>" % escape(title))
        for word, meaning in rows:
            found, told = spellings(word, site.names), _inline(meaning, files)
            if any(found.values()):
                parts.append(_word(word, told, found))
            else:
                parts.append('<div class="word" id="%s"><h2>%s</h2>%s</div>' % (
                    word.replace(" ", "-"), escape(word), told))
            index.append('<a href="#%s">%s</a>' % (word.replace(" ", "-"), escape(word)))
    parts.insert(2, "<p>%s</p>" % " &middot; ".join(index))
    site.add(PAGE, "One word, five languages", "\n".join(parts), "broad")


_FIND = """<h1>Find a name</h1>
<p>Types, functions and members of all languages.</p>
<input id="find" type="search" placeholder="decompose, leftover, Split" aria-label="name" autofocus>
<ul id="found"></ul>
<noscript><p>The list needs JavaScript; the references of the languages do not.</p></noscript>
<script>
const names = %s;
const field = document.getElementById("find"), list = document.getElementById("found");
function find() {
  const wanted = field.value.toLowerCase().split(/[\\s.:]+/).filter(Boolean);
  const found = wanted.length ? names.filter(n => wanted.every(w => n[3].includes(w))) : [];
  found.sort((a, b) => a[1].length - b[1].length);
  list.replaceChildren(...found.slice(0, 200).map(n => {
    const item = document.createElement("li"), language = document.createElement("span"), link = document.createElement("a");
    language.textContent = n[0]; link.textContent = n[1]; link.href = n[2];
    item.append(language, link);
    return item;
  }));
}
for (const n of names) n.push(n[1].toLowerCase());
field.addEventListener("input", find);
</script>"""


def build_names(site):
    rows = [[name.language, name.full, name.href] for name in site.names]
    site.add("names.html", "Find a name", _FIND % json.dumps(rows, separators=(",", ":")).replace("</", "<\\/"))
