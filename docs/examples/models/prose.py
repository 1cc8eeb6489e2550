"""English prose: the World English Bible, a translation in the public domain, from the package that Debian has of it.

The package holds the text as a module of SWORD: for each testament a file of compressed blocks, and a table of them. The
text is marked up in OSIS, of which paragraphs and lines of verse are kept and notes and headings are left out.
"""

import html
import re
import struct
import zlib

from tokenizer import typed

PACKAGES = ("sword-text-web",)
MODULE = "sword-text-web/usr/share/sword/modules/texts/ztext/engWEB2015eb"
SOURCE = "World English Bible (public domain), module engWEB2015eb of the Debian package sword-text-web 426.0-1"

# Whole books are held out. Little of them is told again in other books, unlike Kings or the Gospels.
HELDOUT_BOOKS = ("Judg", "Ruth", "Jonah", "Phil", "Jas")

_BOOK = re.compile(r'<div canonical="true" osisID="([^"]+)"[^>]*type="book"/>')
_LEFT_OUT = re.compile(r"<(note|title|speaker)\b.*?</\1>", re.DOTALL)
_PARAGRAPH = re.compile(r'<chapter [^>]*sID=[^>]*>|<div [^>]*sID=[^>]*type="x-p"/>|<lg [^>]*sID=[^>]*>|<lb [^>]*>')
_TAG = re.compile(r"<[^>]*>")


def read_paragraphs(folder):
    """Returns (training paragraphs, held-out paragraphs), in the order of the books."""
    train, heldout = [], []
    for testament in ("ot", "nt"):
        for name, source in _books(folder / MODULE, testament):
            (heldout if name in HELDOUT_BOOKS else train).extend(_paragraphs(source))
    return train, heldout


def _books(folder, testament):
    """Yields (name such as "Ruth", marked-up text) of the books of a testament."""
    table = (folder / (testament + ".bzs")).read_bytes()
    data = (folder / (testament + ".bzz")).read_bytes()
    blocks = [zlib.decompress(data[begin : begin + size]) for begin, size, _ in struct.iter_unpack("<III", table)]
    parts = _BOOK.split(b"".join(blocks).decode("utf-8"))
    yield from zip(parts[1::2], parts[2::2])


def _paragraphs(source):
    # Text before the first chapter is about the book.
    source = source[source.index("<chapter ") :]
    for part in _PARAGRAPH.split(_LEFT_OUT.sub(" ", source)):
        text = " ".join(html.unescape(_TAG.sub("", part)).split())
        text = re.sub(r" (?=[,.;:?!\u201d\u2019])", "", text)
        if text:
            yield typed(text)
