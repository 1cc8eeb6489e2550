"""Pages of the repository as pages of the site. Links to files that the site does not have lose their target."""

import posixpath
import re

import colours
import markdown
import samples
from layout import escape, relative

_LINK = re.compile(r'<a href="([^"]*)">(.*?)</a>', re.DOTALL)
_IMAGE = re.compile(r'(<img [^>]*src=")([^"]*)(")')


def page_of(path):
    """The path in the site of a page of the repository."""
    return "index.html" if path == "README.md" else re.sub(r"\.(md|ipynb)$", ".html", path)


def _anchor(text, _separator):
    """The anchor of a heading, as the places that show Markdown name it."""
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def _resolved(href, path):
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), href))


def convert(text, path, files):
    """(title, HTML) of a page. `files`: the site's pages by the repository's paths of what they show."""
    converter = markdown.Markdown(
        extensions=["tables", "fenced_code", "sane_lists", "toc", "attr_list"],
        extension_configs={"toc": {"slugify": _anchor}},
    )
    # Lists may begin right behind a paragraph, which this converter does not know.
    text = re.sub(r"(?m)^((?!\s*(?:[-*]|\d+\.) )\S[^\n|]*\n)(?=(?:- |1\. ))", r"\1\n", text)
    body = linked(converter.convert(text), path, files[path], files)
    body = body.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")
    title = re.search(r"(?m)^# (.*)$", text)
    return (re.sub(r"[`*]", "", title.group(1)) if title else path), colours.page(samples.grouped(body))


def linked(body, path, page, files):
    """HTML made of a text of the repository's `path`, with links and images as the site's `page` has them."""

    def link(match):
        href, shown = match.groups()
        if re.match(r"[a-z]+:", href) or href.startswith("#"):
            return match.group()
        target, mark, anchor = href.partition("#")
        there = files.get(_resolved(target, path))
        if there is None:
            return '<span class="elsewhere">%s</span>' % shown
        return '<a href="%s">%s</a>' % (relative(there + mark + anchor, page), shown)

    def image(match):
        there = files.get(_resolved(match.group(2), path))
        if there is None:
            raise ValueError("%s shows %s, which the site does not have" % (path, match.group(2)))
        return match.group(1) + relative(there, page) + match.group(3)

    return _IMAGE.sub(image, _LINK.sub(link, body))


def source_page(path, text):
    """A file that is shown as it is."""
    return "<h1>%s</h1>\n%s" % (escape(path), colours.file(text, posixpath.basename(path)))
