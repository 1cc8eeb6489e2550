"""suite_kit: the conformance suite with everything built that it runs, for a machine that has a GPU and no Bazel."""

load("@local_java//:info.bzl", "JAVA_HOME")
load("@local_python//:info.bzl", "PYTHON")
load("//tools/bazel:java.bzl", "HAVE_JAVA")
load("//tools/bazel:python.bzl", "HAVE_PYTHON")
load("//tools/bazel:rules.bzl", "sh_test")

def suite_kit(name, wheel, suite, programs, jars, files, **kwargs):
    """<name>.tar.gz, a folder "kit".

    Args:
      name: the target's name.
      wheel: the folder of the wheel, whose package, and so library, every testee uses.
      suite: the tarball of the suite.
      programs: testees that are programs of the machine.
      jars: the class path of Java's testee; left out where there is no JDK.
      files: what lies at the top.
      **kwargs: testonly, visibility and the like.
    """
    if not HAVE_PYTHON:
        return
    arguments = ["--out $@", "--wheel $(location %s)" % wheel, "--suite $(location %s)" % suite]
    arguments += ["--program $(location %s)" % program for program in programs]
    arguments += ["--file $(location %s)" % file for file in files]
    if HAVE_JAVA:
        arguments += ["--java '%s'" % JAVA_HOME] + ["--jar $(location %s)" % jar for jar in jars]
    pack = "//tools/gpu:pack.py"
    native.genrule(
        name = name,
        srcs = [wheel, suite] + programs + files + (jars if HAVE_JAVA else []),
        outs = [name + ".tar.gz"],
        cmd = " ".join([PYTHON, "-B", "$(location %s)" % pack] + arguments),
        message = "Packing the suite for a machine without Bazel",
        tools = [pack],
        **kwargs
    )

def kit_test(name, kit, args = [], tags = [], **kwargs):
    """What kit_test.sh says of a kit.

    Args:
      name: the target's name.
      kit: a suite_kit.
      args: "all" for the whole suite.
      tags: of the test.
      **kwargs: everything else that sh_test takes.
    """
    if HAVE_PYTHON:
        sh_test(
            name = name,
            size = "medium",
            timeout = "eternal",
            srcs = ["//tools/gpu:kit_test.sh"],
            args = [PYTHON, "$(location %s)" % kit] + args,
            data = [kit],
            # Python and Java have not loaded a sanitizer.
            tags = tags + ["no-sanitizer"],
            **kwargs
        )
