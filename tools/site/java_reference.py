"""The reference of Java: javadoc's own pages, which are copied, and the names that they list."""

import json
import os
import re
import subprocess

from layout import Name

FOLDER = "reference/java"
# The text of a page, without its menus.
_MAIN = re.compile(r"<main\b.*</main>", re.DOTALL)


def _listed(folder, file):
    """The content of javadoc's index: `memberSearchIndex = [{...}];...`"""
    with open(os.path.join(folder, file), encoding="utf-8") as index:
        return json.loads(re.search(r"=\s*(\[.*?\]);", index.read(), re.DOTALL).group(1))


def build(site, javadoc, sources):
    folder = os.path.join(site.folder, FOLDER)
    os.makedirs(folder)
    command = [javadoc, "-quiet", "-Xdoclint:none", "-notimestamp", "--release", "11", "-encoding", "UTF-8",
               "-windowtitle", "Addend for Java", "-d", folder,
               "-bottom", '<a href="{@docRoot}/../../index.html">All pages of Addend</a>']
    subprocess.run(command + sources, check=True, stdout=subprocess.DEVNULL)
    for one in _listed(folder, "type-search-index.js"):
        if "p" in one:
            page = "%s/%s/%s.html" % (FOLDER, one["p"].replace(".", "/"), one["l"])
            site.names.append(Name("Java", one["l"], page, kind="type"))
            with open(os.path.join(site.folder, page), encoding="utf-8") as file:
                site.searched.append((page, one["l"] + " (Java)", _MAIN.search(file.read()).group()))
    for one in _listed(folder, "member-search-index.js"):
        page = "%s/%s/%s.html" % (FOLDER, one["p"].replace(".", "/"), one["c"])
        name = one["l"].split("(")[0]
        site.names.append(Name("Java", name, "%s#%s" % (page, one.get("u", one["l"])), one["c"], "member"))
