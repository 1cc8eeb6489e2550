"""Writes the notices and the SPDX list of a package.

    documents.py --package NAME --version-file VERSION --components JSON --libtorch-version V --libtorch-include DIR
        --provenance JSON --notices OUT --spdx OUT LIBRARY...

NAME is what the package is called where it is published, such as "wheel". A LIBRARY is a shared library of the package,
or a folder of them. What they need is read from them: a library that components.json does not know ends the build.
"""

import argparse
import glob
import hashlib
import json
import os
import sys
import uuid

import elf

_NOTICES = """The package %s %s is licensed under the Apache License 2.0: see the file LICENSE.

It is made with what others wrote. "Compiled in" means that code of it is part of the package; "needed" means that the
package looks for it on the machine, and does not hold it.
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", required=True)
    parser.add_argument("--version-file", required=True)
    parser.add_argument("--components", required=True)
    parser.add_argument("--libtorch-version", required=True)
    parser.add_argument("--libtorch-include", required=True)
    parser.add_argument("--provenance", required=True)
    parser.add_argument("--notices", required=True)
    parser.add_argument("--spdx", required=True)
    parser.add_argument("libraries", nargs="+")
    arguments = parser.parse_args()

    version = _read(arguments.version_file).strip()
    libraries = _libraries(arguments.libraries)
    components = _components(
        json.loads(_read(arguments.components))["components"], libraries, arguments.libtorch_version
    )
    variables = dict(
        os.environ, LIBTORCH_INCLUDE=arguments.libtorch_include, LIBTORCH_VERSION=arguments.libtorch_version
    )
    _write(arguments.notices, notices(arguments.package, version, components, variables))
    document = spdx(arguments.package, version, libraries, components, json.loads(_read(arguments.provenance)))
    _write(arguments.spdx, json.dumps(document, indent=2, sort_keys=True) + "\n")


def _libraries(paths):
    """For each shared library its name, SHA-256, and the SONAMEs that it needs."""
    found = []
    for path in paths:
        for file in sorted(glob.glob(path + "/*")) if os.path.isdir(path) else [path]:
            with open(file, "rb") as stream:
                digest = hashlib.sha256(stream.read()).hexdigest()
            found.append({"name": os.path.basename(file), "sha256": digest, "needs": elf.describe(file)[1]})
    return sorted(found, key=lambda library: library["name"])


def _components(known, libraries, libtorch_version):
    """The components that these libraries have, with "version", "needed_by" and "inside": names of libraries."""
    own = [library["name"] for library in libraries]
    for component in known:
        component.update(needed_by=[], inside=[], sonames=set(), version=None)
    for component in known:
        if component["compiled_in"]:
            component["inside"] += _implementations(own)
    for library in libraries:
        for soname in library["needs"]:
            if soname in own:
                continue
            owners = [c for c in known if soname.startswith(tuple(c["libraries"]))]
            if not owners:
                sys.exit(
                    "%s needs %s, which tools/package/components.json does not know: add it there, with its licence"
                    % (library["name"], soname)
                )
            owners[0]["needed_by"].append(library["name"])
            owners[0]["sonames"].add(soname)
    for component in known:
        if component["name"] == "LibTorch":
            component["version"] = libtorch_version
        elif component.get("soname_is_release") and component["sonames"]:
            # "20220623" of libabsl_hash.so.20220623
            component["version"] = sorted(component["sonames"])[0].partition(".so.")[2] or None
    return [component for component in known if component["needed_by"] or component["inside"]]


def _implementations(names):
    """The libraries that hold what the sources are compiled with: those for one LibTorch, where there are any."""
    return [n for n in names if n.startswith("libaddend_torch")] or [n for n in names if n.startswith("libaddend.so")]


def notices(package, version, components, variables):
    """The text of THIRD_PARTY_NOTICES."""
    lines = [_NOTICES % (package, version)]
    for component in components:
        name = component["name"] + (" " + component["version"] if component["version"] else "")
        lines.append("%s\n%s\n%s\nlicence: %s" % ("=" * 80, name, component["home"], component["license"]))
        if component["inside"]:
            lines.append("compiled in: " + ", ".join(component["inside"]))
        if component["needed_by"]:
            lines.append("needed: " + ", ".join(sorted(component["sonames"])))
        if component["inside"]:
            lines.append("\n" + (_text(component["texts"], variables) or (
                "The text of its licence was not on the machine that built this package; %s has it." % component["home"])))
        lines.append("")
    return "\n".join(lines)


def _text(patterns, variables):
    """The first licence text that is there; "$NAME" in a pattern is a variable, without which the pattern is skipped."""
    for pattern in patterns:
        try:
            expanded = "/".join(_expand(part, variables) for part in pattern.split("/"))
        except KeyError:
            continue
        for path in sorted(glob.glob(expanded)):
            return _read(path).strip() + "\n"
    return None


def _expand(part, variables):
    for name in ("LIBTORCH_INCLUDE", "LIBTORCH_VERSION", "ABSL_HOME", "NLOHMANN_JSON_HOME", "ZLIB_HOME"):
        if "$" + name in part:
            part = part.replace("$" + name, variables[name])
    return part


def spdx(package, version, libraries, components, provenance):
    """A document of SPDX 2.3. The same package gives the same bytes."""
    root = _spdx_package("addend", "addend", version, "Apache-2.0", "LIBRARY")
    root["supplier"] = "Organization: The Addend authors"
    root["downloadLocation"] = provenance.get("download", "NOASSERTION")
    packages, relations = [root], [("SPDXRef-DOCUMENT", "DESCRIBES", root)]
    ids = {}
    for library in libraries:
        entry = _spdx_package("library-" + library["name"], library["name"], version, "Apache-2.0", "LIBRARY")
        entry.update(
            packageFileName=library["name"],
            checksums=[{"algorithm": "SHA256", "checksumValue": library["sha256"]}],
            supplier="Organization: The Addend authors",
        )
        ids[library["name"]] = entry
        packages.append(entry)
        relations.append((root["SPDXID"], "CONTAINS", entry))
    for component in components:
        entry = _spdx_package(
            "component-" + component["name"], component["name"], component["version"], component["license"], "LIBRARY"
        )
        entry.update(supplier="NOASSERTION", homepage=component["home"])
        packages.append(entry)
        relations += [(ids[name]["SPDXID"], "STATIC_LINK", entry) for name in component["inside"]]
        relations += [(ids[name]["SPDXID"], "DYNAMIC_LINK", entry) for name in sorted(set(component["needed_by"]))]
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": "addend-%s-%s" % (version, package),
        # The date of the commit, or a fixed one: archives too are the same whenever they are built.
        "creationInfo": {
            "created": provenance.get("date", "1980-01-01T00:00:00Z"),
            "creators": ["Organization: The Addend authors", "Tool: addend-documents-" + version],
        },
        "packages": packages,
        "relationships": [
            {"spdxElementId": subject, "relationshipType": kind, "relatedSpdxElement": target["SPDXID"]}
            for subject, kind, target in relations
        ],
    }
    content = json.dumps(document, sort_keys=True)
    document["documentNamespace"] = "urn:uuid:%s" % uuid.uuid5(uuid.NAMESPACE_URL, content)
    return document


def _spdx_package(key, name, version, license_id, purpose):
    entry = {
        "SPDXID": "SPDXRef-" + "".join(c if c.isalnum() or c in ".-" else "-" for c in key),
        "name": name,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": license_id,
        "licenseDeclared": license_id,
        "copyrightText": "NOASSERTION",
        "primaryPackagePurpose": purpose,
    }
    if version:
        entry["versionInfo"] = version
    return entry


def _read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def _write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
