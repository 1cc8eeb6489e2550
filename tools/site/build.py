"""Makes the site: HTML of the repository's pages and notebooks, references of five languages, the glossary across them, a
gallery, and a search over all of it.

usage: build.py OUT KEY=PATH...
  page    a Markdown page               file    a file that pages link to or show
  notebook  a notebook                  lunr    the library of the search; without it the site has none
  api     addend_api.json               hpp     addend.hpp
  python  a source of the package       xml     the folder of the C# assembly, with its documentation
  java    a source of the Java classes  javadoc the program
  cs      a source of the assembly
  gallery a page that Addend wrote      style   the style sheet
  script  a script of the pages
"""

import json
import os
import re
import sys

import c_reference
import cpp_reference
import csharp_reference
import gallery
import java_reference
import landing
import layout
import markdown_pages
import notebooks
import python_reference
import search_index
import words


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def place(path):
    """The path in the repository, of generated files too."""
    return re.sub(r"^bazel-out/[^/]+/bin/", "", path)


def add_pages(site, pages, files, given_notebooks):
    """`files`: shown as they are where they are text, copied where the browser or a program reads them. Gives the site's pages by
    the repository's paths of what they show."""
    where = {place(path): markdown_pages.page_of(place(path)) for path in pages + given_notebooks}
    for path in files:
        copied = path.endswith((".html", ".json", ".png"))
        where[place(path)] = place(path) if copied else "source/%s.html" % place(path)
    for path in pages:
        title, body = markdown_pages.convert(read(path), place(path), where)
        site.add(where[place(path)], title, landing.page(body) if place(path) == "README.md" else body)
    for path in given_notebooks:
        notebooks.build(site, place(path), read(path), where)
    for path in files:
        if where[place(path)] != place(path):
            site.add(where[place(path)], place(path), markdown_pages.source_page(place(path), read(path)))
            continue
        with open(path, "rb") as file:
            site.copy(place(path), file.read())
        if path.endswith(".html"):
            site.searched.append((place(path), place(path), read(path)))
    return where


def main(out, *arguments):
    given = {}
    for argument in arguments:
        key, _, path = argument.partition("=")
        given.setdefault(key, []).append(path)
    site = layout.Site(out)
    stored = [path for path in given["notebook"] if path.endswith(".ipynb")]
    where = add_pages(site, given["page"], given.get("file", []), stored)
    also = []
    if "python" in given:
        python_reference.build(site, {path: read(path) for path in given["python"] if path.endswith(".py")})
    if "java" in given:
        java_reference.build(site, given["javadoc"][0], given["java"])
        also.append("reference/java.html")
        site.copy("reference/java.html", b'<!DOCTYPE html><meta charset="utf-8"><title>Addend for Java</title>'
                  b'<meta http-equiv="refresh" content="0; url=java/index.html"><a href="java/index.html">Java</a>\n')
    if "xml" in given:
        csharp_reference.build(site, read(os.path.join(given["xml"][0], "Addend.xml")), map(read, given["cs"]))
    cpp_reference.build(site, read(given["hpp"][0]))
    c_reference.build(site, json.loads(read(given["api"][0])))
    site.copy("reference/addend_api.json", read(given["api"][0]).encode("utf-8"))
    words.build(site, next(read(path) for path in given["page"] if place(path) == words.GLOSSARY), where)
    words.build_names(site)
    gallery.build(site, given["gallery"])
    for path in given["style"] + given["script"]:
        site.copy(os.path.basename(path), read(path).encode("utf-8"))
    for path in given.get("lunr", []):
        site.copy("search/lunr.js", read(path).encode("utf-8"))
        search_index.build(site)
    site.write(also, searched="lunr" in given)


if __name__ == "__main__":
    main(*sys.argv[1:])
