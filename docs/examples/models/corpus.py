"""Real sentences in several languages, from the manual pages which Debian packages.

The packages are fetched with `apt-get download` and unpacked with
`dpkg-deb -x` into a folder of the caller: nothing is installed, and a dpkg
configuration that leaves manual pages out does not matter.
"""

import gzip
import re
import subprocess
import unicodedata
import zlib
from collections import namedtuple

# Language -> folders below usr/share/man. Untranslated pages have none of their own.
LANGUAGES = {
    "Dutch": ["nl"],
    "English": ["."],
    "French": ["fr"],
    "German": ["de"],
    "Italian": ["it"],
    "Polish": ["pl"],
    "Portuguese": ["pt", "pt_BR"],
    "Spanish": ["es"],
}

# The first line is translations only, the second English only; the others
# have English pages and some of their translations.
PACKAGES = (
    "manpages-de manpages-es manpages-fr manpages-it manpages-nl manpages-pl manpages-pt-br "
    "manpages-de-dev manpages-es-dev manpages-fr-dev manpages-pl-dev manpages-pt-br-dev "
    "coreutils manpages manpages-dev util-linux "
    "adduser apt apt-utils debhelper dpkg dpkg-dev passwd po4a"
).split()

MIN_LENGTH = 40
MAX_LENGTH = 110
MIN_WORDS = 7

# One page name in this many is held out, in all languages alike. The salt only
# picks which: with this one the very long page bash.1 is not held out, which
# would otherwise be half of the held-out sentences of some languages.
HELDOUT_SHARE = 5
HELDOUT_SALT = "page"

Sentence = namedtuple("Sentence", "text language page")


def fetch(folder, packages=PACKAGES):
    """Downloads and unpacks the packages that `folder` does not have yet."""
    folder.mkdir(parents=True, exist_ok=True)
    for package in packages:
        target = folder / package
        if target.is_dir():
            continue
        subprocess.run(["apt-get", "download", package], cwd=folder, check=True)
        (archive,) = folder.glob(f"{package}_*.deb")
        subprocess.run(["dpkg-deb", "-x", archive.name, target.name], cwd=folder, check=True)


def read_sentences(folder):
    """Returns (training sentences, held-out sentences), without duplicates."""
    train, heldout = [], []
    for language in LANGUAGES:
        for page, text in _pages(folder, language):
            part = heldout if _is_heldout(page) else train
            part.extend(
                Sentence(sentence, language, page)
                for paragraph in _paragraphs(text)
                for sentence in _split(paragraph)
                if _is_prose(sentence) and not _is_untranslated(sentence, language)
            )
    # Pages share passages: the training part comes first, so that a sentence
    # of both parts is not held out.
    seen = set()
    return _without_duplicates(train, seen), _without_duplicates(heldout, seen)


def _pages(folder, language):
    """Yields (name such as "mount.8", roff source) of the pages of a language."""
    for package in PACKAGES:
        for subfolder in LANGUAGES[language]:
            root = folder / package / "usr/share/man" / subfolder
            for path in sorted(root.glob("man*/*.gz")):
                # A link is only another name of a page that is read anyway.
                if not path.is_symlink():
                    source = gzip.decompress(path.read_bytes())
                    yield path.name[: -len(".gz")], source.decode("utf-8", errors="replace")


def _is_heldout(page):
    return zlib.crc32(f"{HELDOUT_SALT} {page}".encode()) % HELDOUT_SHARE == 0


# --- roff -> paragraphs -----------------------------------------------------

# Sections at the end of a page: names of the translators and their licence.
_END_SECTIONS = {
    "TRADUCCIÓN",
    "TRADUCTION",
    "TRADUZIONE",
    "TRADUÇÃO",
    "TŁUMACZENIE",
    "VERTALING",
    "ÜBERSETZUNG",
}

# Macros that begin text which is not prose, and those that end it.
_VERBATIM = {"EX": "EE", "nf": "fi", "TS": "TE", "PS": "PE"}

# Macros that set their arguments in other fonts, with spaces between or not.
_FONTS_SPACED = {"B", "I", "R", "SB", "SM"}
_FONTS_JOINED = {"BI", "BR", "IB", "IR", "RB", "RI"}

# Accents as the escape for an accented letter writes them.
_COMBINING = dict(zip(":'`^,~", "\u0308\u0301\u0300\u0302\u0327\u0303"))


def _accented(escape):
    accent, letter = escape.groups()
    return unicodedata.normalize("NFC", letter + _COMBINING[accent])


_ESCAPES = [
    (re.compile(r'\\["#].*'), ""),  # comment
    (re.compile(r"\\f(?:\[[^]]*\]|\(..|.)"), ""),  # font
    (re.compile(r"\\s(?:[-+]?\d)"), ""),  # size
    (re.compile(r"\\[~0 ]"), " "),
    (re.compile(r"\\-"), "-"),
    (re.compile(r"\\\(hy|\\\[hy\]"), "-"),
    (re.compile(r"\\\((?:aq|cq|oq)|\\\[(?:aq|cq|oq)\]|\\'"), "'"),
    (re.compile(r"\\\((?:dq|lq|rq)|\\\[(?:dq|lq|rq)\]"), '"'),
    (re.compile(r"\\\(([:'`^,~])([A-Za-z])"), _accented),
    (re.compile(r"\\\(ss"), "ß"),
    (re.compile(r"\\[&/,|^%:c)]"), ""),  # nothing visible
]

_ARGUMENT = re.compile(r'"([^"]*)"|(\S+)')
_SPACES = re.compile(r"\s+")


def _plain(text):
    for pattern, replacement in _ESCAPES:
        text = pattern.sub(replacement, text)
    return text


def _arguments(text):
    return [quoted or bare for quoted, bare in _ARGUMENT.findall(text)]


def _paragraphs(source):
    """Yields the running text of a page, one paragraph at a time.

    A macro that is not known ends the paragraph: at worst that cuts a
    sentence, and a piece of a sentence does not pass as prose.
    """
    words = []
    until = None  # the macro that ends the verbatim text
    is_tag = False  # the line after .TP is the name of an option
    for line in source.splitlines():
        if line.startswith((".", "'")):
            macro, _, rest = line[1:].strip().partition(" ")
            if until is not None:
                until = None if macro == until else until
                continue
            if macro in _FONTS_SPACED:
                words.append(_plain(" ".join(_arguments(rest))))
            elif macro in _FONTS_JOINED:
                words.append(_plain("".join(_arguments(rest))))
            elif macro.startswith('\\"') or not macro:
                continue
            else:
                yield from _flush(words)
                if macro == "SH" and rest.strip().strip('"') in _END_SECTIONS:
                    return
                until = _VERBATIM.get(macro)
                is_tag = macro == "TP"
                continue
        elif until is None:
            words.append(_plain(line))
        if is_tag:
            yield from _flush(words)
            is_tag = False
    yield from _flush(words)


def _flush(words):
    if words:
        text = _SPACES.sub(" ", " ".join(words)).strip()
        yield unicodedata.normalize("NFC", text).replace("\u2010", "-")
        words.clear()


# --- paragraphs -> sentences ------------------------------------------------

_SENTENCE_END = re.compile(r"(?<=[.!?]) (?=[^\W\d_a-z]|[¿¡])")
_PUNCTUATION = set(" ,.;:'’-«»„“”¿?¡!")
# A hyphen outside a word, a period within a word, a space before , or .
_NOT_PROSE = re.compile(r"(?<!\w)-|-(?!\w)|\.\w|\.\.|::| [,.]|''")


def _split(paragraph):
    return _SENTENCE_END.split(paragraph)


def _is_latin(letter):
    return letter.isalpha() and unicodedata.name(letter, "").startswith("LATIN")


def _is_prose(text):
    """Whether this is a plain sentence: no options, paths, code or references."""
    if not MIN_LENGTH <= len(text) <= MAX_LENGTH or not text.endswith("."):
        return False
    if not (text[0].isupper() or text[0] in "¿¡"):
        return False
    if not all(letter in _PUNCTUATION or _is_latin(letter) for letter in text):
        return False
    words = text.split()
    shouted = any(len(word) > 1 and word.isupper() for word in words)
    return len(words) >= MIN_WORDS and not shouted and not _NOT_PROSE.search(text)


_ENGLISH_WORDS = {"and", "are", "from", "that", "the", "this", "which", "with"}


def _is_untranslated(text, language):
    """Translated pages keep the English sentences that nobody has translated yet."""
    if language == "English":
        return False
    return sum(word in _ENGLISH_WORDS for word in text.lower().split()) >= 2


def _without_duplicates(sentences, seen):
    unique = []
    for sentence in sentences:
        key = "".join(filter(str.isalpha, sentence.text.lower()))
        if key not in seen:
            seen.add(key)
            unique.append(sentence)
    return unique
