"""Each page of a language begins with the way from nothing to a reason. Here a page is taken at its word: in an empty folder
its files are written and its commands run, in their order and with nothing else, and each prints what the page says.

A file is a block behind its name in backquotes and a colon; commands are blocks of `sh`, and what they print is the block
of `text` that follows. `$addend` names the checkout, and `bazel build` says only whether the package is there.
"""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PART = "From nothing to a reason"
STEPS = ["Install", "A tensor from memory", "A model", "A row with named columns", "A batch", "A plan", "A service",
         "An error and what it says"]
LANGUAGES = {"C++": "cpp", "C#": "csharp", "Java": "java", "Python": "python"}
# Labels of packages: the environment variable that names the files, and the folder in bazel-bin.
PACKAGES = {
    "//bindings/csharp:dist": ("NUGET", "bindings/csharp/dist"),
    "//bindings/java:dist": ("MAVEN", "bindings/java"),
    "//bindings/python:wheel": ("WHEEL", "bindings/python/wheel"),
    "//c_api:sdk": ("SDK", "c_api"),
}
MODEL = "docs/examples/first_minutes/loan.pt"

# The model, as loan.py writes it, and the rows of the pages.
HIDDEN = [([1, -1, 0, 0], -10), ([0, 0, 1, 0], -2), ([-1, 2, 0, 0], 0)]
SCORE = [0.1, 0.3, -0.2], 0.5
COLUMNS = ["income", "debt", "years", "age"]
USUAL = [40, 15, 6, 45]
ROWS = [[32, 20, 1, 29], [60, 10, 12, 51], [38, 30, 3, 33]]


def hidden(row):
    return [sum(w * x for w, x in zip(weights, row)) + bias for weights, bias in HIDDEN]


def score(row):
    weights, bias = SCORE
    return sum(w * max(z, 0) for w, z in zip(weights, hidden(row))) + bias


def contributions(row):
    """The numbers that the columns give: every rectifier has the slope of the straight line from the usual row to this one."""
    slopes = [(max(z, 0) - max(z0, 0)) / (z - z0) for z, z0 in zip(hidden(row), hidden(USUAL))]
    return [sum(w * slope * weights[column] for w, slope, (weights, _) in zip(SCORE[0], slopes, HIDDEN)) *
            (row[column] - USUAL[column]) for column in range(len(COLUMNS))]


def ranked(row):
    return sorted(zip(COLUMNS, contributions(row)), key=lambda one: -abs(one[1]))


def part(language):
    """The part of a page that is taken at its word."""
    with open("docs/%s.md" % LANGUAGES[language], encoding="utf-8") as file:
        return re.search(r"\n## %s\n(.*?)(?=\n## )" % PART, file.read(), re.DOTALL).group(1)


def steps(text):
    """[("file", its name, its text), ("run", "", commands), ("prints", "", lines), ...], in order."""
    found = []
    for name, kind, body in re.findall(r"(?:^`([\w.]+)`[^\n]*:\n\n)?^```(\S+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        if kind not in ("sh", "text"):
            assert name, "a program has no name: %s" % body
        found.append(({"sh": "run", "text": "prints"}.get(kind, "file"), name, body))
    return found


def prints(language):
    return [body for kind, _, body in steps(part(language)) if kind == "prints"]


def lines_of(*lines):
    return "".join(line + "\n" for line in lines)


class PagesTest(unittest.TestCase):
    maxDiff = None

    def test_all_pages_take_the_same_steps(self):
        for language in LANGUAGES:
            with self.subTest(language):
                self.assertEqual(re.findall(r"^### (.*)$", part(language), re.MULTILINE), STEPS)
                self.assertEqual(prints(language), prints("C++"))

    def test_the_numbers_are_those_of_the_model(self):
        tensor, model, row, batch, plan, service, error = prints("C++")
        self.assertEqual(tensor, "2 times 3, the last is 6.0\n")
        self.assertEqual(model, "row: %.4f\n" % score(ROWS[0]))
        self.assertAlmostEqual(score(USUAL) + sum(contributions(ROWS[0])), score(ROWS[0]), places=9)
        self.assertEqual(row, lines_of(
            "score %.4f, %.4f on the usual row" % (score(ROWS[0]), score(USUAL)),
            *("%s %+.4f" % one for one in ranked(ROWS[0])[:3]),
            "leftover 0.0000",
        ))
        best = ["score %.4f, most by %s %+.4f" % (score(one), *ranked(one)[0]) for one in ROWS]
        self.assertEqual(batch, lines_of(*best))
        self.assertEqual(plan, batch)
        self.assertEqual(service, "1000 answers of 4 threads, all of them %.4f\n" % score(ROWS[0]))
        self.assertRegex(error, r"^.*f32\[1, 5\].*f32\[1, 4\].*\n$")


def package(label):
    """The files of a package. None: it is not built here, as its BUILD file says."""
    given = os.environ.get(PACKAGES[label][0])
    if given is None:
        return None
    return [os.path.abspath(one) for path in given.split() for one in (glob.glob(path + "/*") if os.path.isdir(path) else [path])]


def checkout(folder):
    """A folder that looks like the checkout behind a build."""
    for label, (_, place) in PACKAGES.items():
        os.makedirs(os.path.join(folder, "bazel-bin", place))
        for path in package(label) or []:
            shutil.copy(path, os.path.join(folder, "bazel-bin", place, os.path.basename(path)))
    os.makedirs(os.path.join(folder, os.path.dirname(MODEL)))
    shutil.copy(MODEL, os.path.join(folder, MODEL))


def script(taken, outputs):
    """The steps as a program of the shell; what the commands print goes to the files outputs.0, outputs.1, ..."""
    lines, number = ["set -euo pipefail"], 0
    for kind, name, body in taken:
        if kind == "file":
            lines.append("cat >%s <<'END_OF_FILE'\n%sEND_OF_FILE" % (name, body))
        elif kind == "run":
            lines.append("{\n%s} >%s.%d" % (body, outputs, number))
            number += 1
    return "\n".join(lines) + "\n"


def tools_on_path(environment):
    """Puts the tools of the build before those of the machine."""
    folders = [os.path.dirname(environment[name]) for name in ("DOTNET",) if environment.get(name)]
    folders += [os.path.join(environment["JAVA_HOME"], "bin")] if environment.get("JAVA_HOME") else []
    return os.pathsep.join(folders + [environment.get("PATH", os.defpath)])


class CommandsTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        environment = {name: value for name, value in os.environ.items()
                       if name not in ("ADDEND_LIBRARY_PATH", "CLASSPATH", "LD_LIBRARY_PATH", "PYTHONPATH", "XDG_CACHE_HOME")}
        home, bin_folder, addend = (os.path.join(self.folder, name) for name in ("home", "bin", "addend"))
        os.mkdir(home)
        os.mkdir(bin_folder)
        checkout(addend)
        environment.update(
            addend=addend, HOME=home, DOTNET_CLI_HOME=home, NUGET_PACKAGES=os.path.join(home, "nuget"),
            PATH=bin_folder + os.pathsep + tools_on_path(environment), DOTNET_CLI_TELEMETRY_OPTOUT="1", DOTNET_NOLOGO="1",
            # No server outlives the test, and no registry is asked.
            MSBUILDDISABLENODEREUSE="1", DOTNET_CLI_USE_MSBUILD_SERVER="0", NuGetAudit="false", UseSharedCompilation="false",
            PIP_NO_INDEX="1",
            PIP_DISABLE_PIP_VERSION_CHECK="1", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1",
            LC_ALL="C.UTF-8",
        )
        self.environment = environment
        # The packages are built: this says whether the page names the right one.
        with open(os.path.join(bin_folder, "bazel"), "w") as file:
            file.write("#!/bin/sh\ncase \"$*\" in\n%s\n*) echo \"bazel $* was not expected\" >&2; exit 1 ;;\nesac\n" % "\n".join(
                '"build %s") [ "$PWD" = "$addend" ] ;;' % label for label in PACKAGES))
        os.chmod(os.path.join(bin_folder, "bazel"), 0o755)

    def take(self, language, label, tools):
        if package(label) is None:
            self.skipTest("no package for %s is built here: its BUILD file says what is missing" % language)
        for tool in tools:
            if shutil.which(tool, path=self.environment["PATH"]) is None:
                self.skipTest("there is no %s" % tool)
        empty, outputs = os.path.join(self.folder, "empty"), os.path.join(self.folder, "printed")
        os.mkdir(empty)
        taken = steps(part(language))
        done = subprocess.run(["bash", "-c", script(taken, outputs)], cwd=empty, env=self.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
        self.assertEqual(done.returncode, 0, done.stderr + "".join(map(text_of, sorted(glob.glob(outputs + ".*")))))
        run = -1
        for kind, _, body in taken:
            run += kind == "run"
            if kind == "prints":
                self.assertEqual(text_of("%s.%d" % (outputs, run)), body, done.stderr)

    def test_cpp(self):
        self.take("C++", "//c_api:sdk", ["c++", "pkg-config", "tar"])

    def test_csharp(self):
        self.take("C#", "//bindings/csharp:dist", ["dotnet"])

    def test_java(self):
        self.take("Java", "//bindings/java:dist", ["java"])

    def test_python(self):
        if subprocess.run([shutil.which("python3") or sys.executable, "-c", "import ensurepip, torch, venv"],
                          stderr=subprocess.DEVNULL).returncode:
            self.skipTest("there is no python3 that has PyTorch and makes environments (Debian's python3-venv)")
        self.take("Python", "//bindings/python:wheel", ["python3"])


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()
