"""Which symbols of the C interface each face uses nowhere: exactly those of faces.txt, each with a reason.

faces_test.py SYMBOLS EXCEPTIONS HANDLES FILE...
"""

import re
import sys

# Whose files these are, by the beginning of their paths. SWIG's files belong to their languages.
FACES = {
    "C++": ["c_api/addend.hpp"],
    "Python": ["bindings/python/", "bindings/swig/python.i"],
    "Java": ["bindings/java/", "bindings/swig/java.i"],
    "C#": ["bindings/csharp/", "bindings/swig/csharp.i"],
}

# Faces that make the release functions of all handles, by a macro or a generator.
RELEASES_ALL = ("Python", "C#")

_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/|^\s*#[^\n]*", re.DOTALL | re.MULTILINE)
# Lines of SWIG that use nothing: functions that are left out, let other threads run, or are declared to be wrapped.
_NO_USE = re.compile(r"(?m)^(?:%ignore|%exception|ADDEND_UNLOCKED|addend_status\* addend_|void addend_)[^\n]*")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def symbols(path):
    return {line for line in read(path).split() if re.fullmatch(r"addend_\w+", line)}


def exceptions(path):
    """Maps a face to pairs of a pattern and its reason."""
    found = {}
    face = None
    for line in read(path).splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not line.startswith(" "):
            face = found.setdefault(line.strip(), [])
        elif line.startswith("    "):
            pattern, reason = face[-1]
            face[-1] = (pattern, reason + " " + line.strip())
        else:
            pattern, _, reason = line.strip().partition(":")
            face.append((pattern, reason.strip()))
    return found


def used(face, paths, handles):
    names = set()
    for path in paths:
        if not any(path.startswith(prefix) for prefix in FACES[face]):
            continue
        text = _COMMENTS.sub(" ", read(path))
        if path.endswith(".i"):
            text = _NO_USE.sub(" ", text)
        names.update(re.findall(r"\baddend_\w+", text))
        names.update("addend_" + name for name in re.findall(r"\b_native\.(\w+)", text))
    if face in RELEASES_ALL:
        names.update("addend_%s_release" % noun for noun in re.findall(r"(?m)^ADDEND_HANDLE\((\w+)", read(handles)))
    return names


def problems(face, unused, allowed):
    left = set(unused)
    for pattern, reason in allowed:
        expression = re.compile(pattern.replace("*", r"\w*"))
        matched = {symbol for symbol in left if expression.fullmatch(symbol)}
        left -= matched
        if not reason:
            yield "%s: %s has no reason" % (face, pattern)
        if not matched:
            yield "%s: %s is an exception without need" % (face, pattern)
    for symbol in sorted(left):
        yield "%s uses %s nowhere: give it a place there, or a reason in faces.txt" % (face, symbol)


def main(listed, allowed, handles, *paths):
    every = symbols(listed)
    reasons = exceptions(allowed)
    found = []
    if set(reasons) != set(FACES):
        found.append("faces.txt speaks of %s instead of %s" % (sorted(reasons), sorted(FACES)))
    for face in FACES:
        names = used(face, paths, handles)
        if len(names & every) < len(every) / 3:
            found.append("%s: most files are missing" % face)
        found += problems(face, every - names, reasons.get(face, []))
    print("\n".join(found) or "ok: %d symbols, %d faces" % (len(every), len(FACES)))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
