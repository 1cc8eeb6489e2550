"""The test that reads every package."""

load("@local_dotnet//:info.bzl", "DOTNET")
load("@local_java//:info.bzl", "JAVA_HOME")
load("@local_python//:info.bzl", "PYTHON")
load("//tools/bazel:dotnet.bzl", "HAVE_CSHARP")
load("//tools/bazel:java.bzl", "HAVE_JAVA")
load("//tools/bazel:python.bzl", "HAVE_PYTHON")
load("//tools/package:defs.bzl", "HAVE_PACKAGES", "package_test")

# The packages that are made here; a language's own BUILD file says what is missing where one is not.
PACKAGES = dict([
    (name, label)
    for name, label, made in [
        ("MAVEN", "//bindings/java:dist", HAVE_JAVA),
        ("NUGET", "//bindings/csharp:dist", HAVE_CSHARP),
        ("SDK", "//c_api:sdk", True),
        ("WHEEL", "//bindings/python:wheel", HAVE_PYTHON),
    ]
    if HAVE_PACKAGES and made
])

# The tools of the languages, for tests that call them as users do; empty where there is none.
TOOLS = {
    "DOTNET": DOTNET,
    "JAVA_HOME": JAVA_HOME,
}

def all_packages(name, **kwargs):
    """All packages that are made here.

    Args:
      name: the target's name.
      **kwargs: visibility and the like.
    """
    native.filegroup(name = name, srcs = [PACKAGES[key] for key in sorted(PACKAGES)], **kwargs)

def unittest(name, data = [], variables = {}, **kwargs):
    """A file of unittest cases, <name>.py, which need no package of Python.

    Args:
      name: the target's name.
      data: what it reads.
      variables: names of environment variables -> the target whose files each of them names.
      **kwargs: size and the like.
    """
    package_test(
        name = name,
        srcs = ["//tests/packages:unittest.sh"],
        args = [PYTHON, "$(location //tools/bazel:unittest_runner.py)", "$(location %s.py)" % name] + [
            "'%s=$(locations %s)'" % (variable, variables[variable])
            for variable in sorted(variables)
        ],
        data = data + [name + ".py", "//tools/bazel:unittest_runner.py"] + [variables[key] for key in sorted(variables)],
        tags = [
            "no-sanitizer",
        ],
        **kwargs
    )

def try_packages_test(name, **kwargs):
    """try_packages with every package that is made here, alone and beside another LibTorch.

    Args:
      name: the target's name.
      **kwargs: size and the like.
    """
    package_test(
        name = name,
        srcs = ["try_packages_test.sh"],
        args = [
            "$(location //c_api/stub:foreign/libtorch_cpu.so)",
            "$(location try_packages)",
        ] + ["$(locations %s)" % PACKAGES[key] for key in sorted(PACKAGES)],
        data = [
            "//bindings/csharp:Consumer/Consumer.csproj",
            "//c_api/stub:foreign/libtorch_cpu.so",
            "//docs/examples:Quickstart.cs",
            "//docs/examples:Quickstart.java",
            "//docs/examples:quickstart.c",
            "//docs/examples:quickstart.cc",
            "//docs/examples:quickstart.py",
            "//docs/examples/models",
            "try_packages",
        ] + [PACKAGES[key] for key in sorted(PACKAGES)],
        tags = [
            "long",
            "no-sanitizer",
        ],
        **kwargs
    )
