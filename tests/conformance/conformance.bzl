"""Tests that run the conformance suite: one for each language."""

load("@local_python//:info.bzl", "PYTHON", "PYTHON_INCLUDE")
load("//tools/bazel:dotnet.bzl", "HAVE_CSHARP")
load("//tools/bazel:java.bzl", "HAVE_JAVA")
load("//tools/bazel:swig.bzl", "HAVE_SWIG")

# Whether a language's binding is built; what it lacks is said by the binding itself.
_HAVE = {
    "c": True,
    "cpp": True,
    "csharp": HAVE_CSHARP,
    "java": HAVE_JAVA,
    "python": PYTHON_INCLUDE and HAVE_SWIG,
}

def conformance_test(language, testee, data = [], against = None, far = False, far_mode = "", **kwargs):
    """Runs the suite against a testee; its list of expected failures is expected_failures/<language>.txt.

    Args:
      language: one of c, cpp, csharp, java, python; the test's name.
      testee: its command, with $(location ...) and $(python).
      data: what the command needs.
      against: a command; the answers of both are compared bit for bit.
      far: on the device of //tests/far instead of the CPU; the test is called <language>_far.
      far_mode: how that device differs from the CPU, a word of tests/far/README.md; the test's name ends in it.
      **kwargs: everything else that sh_test takes.
    """
    if not PYTHON:
        # buildifier: disable=print
        print("skipping the conformance suite, whose runner needs Python (ADDEND_PYTHON)")
        return
    if not _HAVE[language]:
        # buildifier: disable=print
        print("skipping the conformance suite in %s, whose binding is not built" % language)
        return
    if far:
        mode = "ADDEND_FAR=%s " % far_mode if far_mode else ""
        testee = "env LD_PRELOAD=$(location //tests/far:libfar.so) " + mode + testee
        data = data + ["//tests/far:libfar.so"]
    commands = [
        "--testee",
        testee.replace("$(python)", PYTHON),
        "--failure-list",
        "tests/conformance/expected_failures/%s.txt" % language,
    ]
    if against:
        commands += ["--against", against.replace("$(python)", PYTHON)]
        data = data + ["//tests/conformance:cpp_testee"]
    if far:
        commands += ["--device", "far"]
    native.sh_test(
        name = language + ("_far" if far else "") + ("_" + far_mode if far_mode else ""),
        # Not a large one: Bazel's filter by tags takes its time limit, "long", for the tag of that name.
        size = "medium",
        timeout = "eternal",
        srcs = ["//tests/conformance:execute.sh"],
        args = ["'%s'" % argument for argument in [PYTHON, "tests/conformance/run.py"] + commands],
        data = data + ["//tests/conformance:suite"],
        # Answers of programs that a sanitizer slows down tell nothing more; the runner is not instrumented.
        tags = kwargs.pop("tags", []) + ["no-sanitizer"] + (["long"] if far else []),
        **kwargs
    )

def runner_test(name, data = [], **kwargs):
    """A file of unittest cases about the runner, which need no testee of ours.

    Args:
      name: of the test; the file is tests/<name>.py.
      data: what it reads.
      **kwargs: everything else that sh_test takes.
    """
    if not PYTHON:
        return
    file = "tests/%s.py" % name
    runner = "//tools/bazel:unittest_runner.py"
    native.sh_test(
        name = name,
        srcs = ["//tests/conformance:execute.sh"],
        args = ["'%s'" % PYTHON, "-B", "$(location %s)" % runner, "$(location %s)" % file],
        data = data + [file, runner, "//tests/conformance:runner", "//tests/conformance:tests/toy.py"],
        tags = kwargs.pop("tags", []) + ["no-sanitizer"],
        **kwargs
    )

def dist_test(name, dist, **kwargs):
    """The suite runs from its tarball in an empty folder.

    Args:
      name: of the test.
      dist: the tarball.
      **kwargs: everything else that sh_test takes.
    """
    if not PYTHON:
        return
    files = [dist, "//c_api:sdk"] + (["//bindings/python:wheel"] if _HAVE["python"] else [])
    native.sh_test(
        name = name,
        size = "medium",
        timeout = "eternal",
        srcs = ["dist_test.sh"],
        args = ["'%s'" % PYTHON] + ["$(location %s)" % file for file in files],
        data = files,
        tags = ["no-sanitizer"],
        **kwargs
    )

def _written_impl(ctx):
    ctx.actions.run(
        executable = ctx.executable.tool,
        arguments = [ctx.outputs.outs[0].dirname],
        outputs = ctx.outputs.outs,
        mnemonic = "ExportCases",
        # The emulator of another processor needs the environment.
        use_default_shell_env = True,
    )
    return [DefaultInfo(files = depset(ctx.outputs.outs), runfiles = ctx.runfiles(ctx.outputs.outs))]

# Files that a program writes into the folder that it is given. Unlike a genrule's tools, the program is the one that
# tests use: it holds all of LibTorch's rules, and a genrule would compile them once more for the host.
written = rule(
    implementation = _written_impl,
    attrs = {
        "outs": attr.output_list(mandatory = True),
        "tool": attr.label(
            cfg = "target",
            executable = True,
            mandatory = True,
        ),
    },
)
