"""Bindings with one typemap that is wrong, and tests that see the suite notice it."""

load("@local_python//:info.bzl", "PYTHON", "PYTHON_INCLUDE")
load("@rules_cc//cc:defs.bzl", "cc_binary")
load("//tools/bazel:dotnet.bzl", "HAVE_CSHARP")
load("//tools/bazel:java.bzl", "HAVE_JAVA")
load("//tools/bazel:swig.bzl", "HAVE_SWIG", "swig_wrap")

# How each language calls SWIG and its wrapper, as its binding does.
_PYTHON = struct(
    have = PYTHON_INCLUDE and HAVE_SWIG,
    options = ["-interface", "_native"],
    outs = ["addend_native.py"],
    copts = ["-isystem", PYTHON_INCLUDE],
    srcs = [],
    deps = ["//bindings/python:helpers"] if PYTHON_INCLUDE and HAVE_SWIG else [],
    library = "_native.so",
    data = [
        "//bindings/python:package",
        "//tests/conformance:testees/python/testee.py",
    ],
)
_JAVA = struct(
    have = HAVE_JAVA,
    options = ["-module", "AddendNative", "-package", "dev.addend"],
    outs = ["AddendNative.java", "AddendNativeJNI.java"],
    copts = ["-fno-strict-aliasing"],
    srcs = ["//bindings/java:jni_support"],
    deps = ["//third_party/java:jni"] if HAVE_JAVA else [],
    library = "libaddend_jni.so",
    data = ["//tests/conformance/testees/java:testee"],
)
_CSHARP = struct(
    have = HAVE_CSHARP,
    options = [
        "-namespace",
        "Addend.Native",
        "-module",
        "AddendNative",
        "-dllimport",
        "addend_csharp",
        "-DSWIG_CSHARP_NO_EXCEPTION_HELPER",
        "-DSWIG_CSHARP_NO_IMCLASS_STATIC_CONSTRUCTOR",
        "-DSWIG_CSHARP_NO_STRING_HELPER",
        "-DSWIG_CSHARP_NO_WSTRING_HELPER",
    ],
    outs = ["AddendNative.cs", "AddendNativePINVOKE.cs"],
    copts = [],
    srcs = ["//bindings/csharp:wrapper_support"],
    deps = [],
    library = "libaddend_csharp.so",
    data = ["//tests/conformance/testees/csharp:testee"],
)
_LANGUAGES = {"csharp": _CSHARP, "java": _JAVA, "python": _PYTHON}

def meta_test(name, arguments, data, **kwargs):
    """A class of meta_test.py.

    Args:
      name: of the target.
      arguments: of meta_test.py's environment, a dict.
      data: what they name.
      **kwargs: everything else that sh_test takes.
    """
    if PYTHON:
        runner = "//tools/bazel:unittest_runner.py"
        native.sh_test(
            name = name,
            srcs = ["//tests/conformance:execute.sh"],
            args = ["'%s'" % PYTHON, "-B", "$(location %s)" % runner, "$(location meta_test.py)"] +
                   [kwargs.pop("cases")],
            data = data + [
                "meta_test.py",
                runner,
                "//tests/conformance:cpp_testee",
                "//tests/conformance:suite",
            ],
            env = dict(arguments, CPP_TESTEE = "$(location //tests/conformance:cpp_testee)", PYTHON = PYTHON),
            tags = kwargs.pop("tags", []) + ["no-sanitizer"],
            **kwargs
        )

def broken_typemap_test(language):
    """A test that the suite notices a wrong typemap of a language.

    Args:
      language: csharp, java or python.
    """
    how = _LANGUAGES[language]
    if not how.have:
        return
    prefix = language + "_broken"
    swig_wrap(
        name = prefix,
        language = language,
        options = how.options,
        outs = how.outs,
        src = "broken_%s.i" % language,
        tags = ["manual"],
        typemaps = ":typemaps",
        deps = ["//c_api:header"],
    )
    native.filegroup(
        name = prefix + "_wrapper",
        srcs = [prefix],
        output_group = "wrapper",
        tags = ["manual"],
    )
    cc_binary(
        name = "%s/%s" % (prefix, how.library),
        srcs = how.srcs + [prefix + "_wrapper", "//c_api:libaddend.so.1"],
        copts = how.copts + ["-w", "-fvisibility=hidden"],
        linkopts = ["-Wl,-rpath,$$ORIGIN"],
        linkshared = True,
        tags = ["manual"],
        deps = how.deps + ["//c_api:header"],
    )
    meta_test(
        name = language + "_typemap_test",
        size = "medium",
        arguments = {
            "BROKEN": "$(location %s/%s)" % (prefix, how.library),
            "LANGUAGE": language,
        },
        cases = "BrokenTypemapTest",
        data = how.data + ["%s/%s" % (prefix, how.library)],
    )
