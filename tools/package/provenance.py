"""Writes what packages say of the sources that they were built from.

    provenance.py JSON PROPS SOURCELINK [STATUS]

STATUS is Bazel's file with what tools/package/status printed; without it, or where git did not know, nothing is said. JSON
is an object with "repository", "commit", "date" and "download" where they are known; PROPS are the same as properties of
MSBuild; SOURCELINK tells debuggers where the lines of the assembly are.
"""

import json
import os
import sys
from xml.sax.saxutils import escape

_KEYS = {"STABLE_ADDEND_REPOSITORY": "repository", "STABLE_ADDEND_COMMIT": "commit", "STABLE_ADDEND_DATE": "date"}
_GITHUB = "https://github.com/"


def read(path):
    """The object of a status file."""
    facts = {}
    if path:
        with open(path, encoding="utf-8") as file:
            for line in file:
                key, _, value = line.strip().partition(" ")
                if key in _KEYS and value:
                    facts[_KEYS[key]] = value
    if "repository" in facts and "commit" in facts:
        facts["download"] = "git+%s@%s" % (facts["repository"], facts["commit"])
    return facts


def properties(facts):
    """Pairs of names and values for MSBuild."""
    result = []
    if "repository" in facts:
        result += [("RepositoryType", "git"), ("RepositoryUrl", facts["repository"])]
        result.append(("PackageProjectUrl", facts["repository"]))
        if "commit" in facts:
            result.append(("RepositoryCommit", facts["commit"]))
    return result


def source_link(facts):
    """The address of the sources that the assembly calls /addend/, or None if it is not known."""
    if not facts.get("repository", "").startswith(_GITHUB) or "commit" not in facts:
        return None
    project = facts["repository"][len(_GITHUB) :]
    raw = "https://raw.githubusercontent.com/%s/%s/bindings/csharp/*" % (project, facts["commit"])
    return {"documents": {"/addend/*": raw}}


def main():
    json_out, props_out, link_out = sys.argv[1:4]
    facts = read(sys.argv[4] if len(sys.argv) > 4 else None)
    link = source_link(facts)
    lines = ["    <%s>%s</%s>\n" % (name, escape(value), name) for name, value in properties(facts)]
    if link:
        lines.append("    <SourceLink>$(MSBuildThisFileDirectory)%s</SourceLink>\n" % os.path.basename(link_out))
    for path, text in [
        (json_out, json.dumps(facts, indent=2, sort_keys=True) + "\n"),
        (props_out, "<Project>\n  <PropertyGroup>\n%s  </PropertyGroup>\n</Project>\n" % "".join(lines)),
        (link_out, json.dumps(link or {"documents": {}}) + "\n"),
    ]:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
