"""Rules for Python that run the configured interpreter (ADDEND_PYTHON, by default /usr/bin/python3).

Bazel's own py_test starts whatever `python` is on PATH, which Debian does not have. Where the interpreter, its headers
or SWIG are missing, the macros declare nothing, and the first one says so.
"""

load("@local_python//:info.bzl", "PYTHON", "PYTHON_INCLUDE", "PYTHON_PACKAGES", "PYTHON_VERSION")
load("@local_swig//:info.bzl", "SWIG_VERSION")
load("@rules_cc//cc:defs.bzl", "cc_binary")
load("//tools/bazel:defs.bzl", "addend_cc_library")
load("//tools/bazel:options.bzl", "MEANING_COPTS")
load("//tools/bazel:rules.bzl", "PyInfo")
load("//tools/bazel:swig.bzl", "HAVE_SWIG", "swig_wrap")
load("//tools/package:defs.bzl", "package_documents", "stripped")

_MISSING = [
    name
    for name, found in [
        ("an interpreter (ADDEND_PYTHON)", PYTHON),
        ("Python.h (package python3-dev)", PYTHON_INCLUDE),
        ("SWIG (package swig)", HAVE_SWIG),
    ]
    if not found
]

HAVE_PYTHON = not _MISSING

def _is_at_least(version, major, minor):
    numbers = [int(number) for number in version.split(".")[:2]]
    return numbers >= [major, minor]

# CPython's stable ABI of 3.11, the first with buffers: what is compiled for it runs on each later version too. It runs
# on 3.10 as well, which has the same struct and the same functions, though not yet as parts of that ABI; what we call
# there is listed in tools/package/python_symbols.txt. Older headers do not know it.
_LIMITED = ["-DPy_LIMITED_API=0x030B0000"] if HAVE_PYTHON and _is_at_least(PYTHON_VERSION, 3, 11) else []

# Whether the native module is for that ABI. What older versions of SWIG write is for one version of CPython.
STABLE_ABI = bool(_LIMITED) and _is_at_least(SWIG_VERSION, 4, 2)

# Tests compare with what these compute.
_MISSING_PACKAGES = [name for name in ["numpy", "torch"] if name not in PYTHON_PACKAGES]

# One thread, as for C++: how many share a sum decides its last bits.
_TEST_ENVIRONMENT = "OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1"

def python_extension(name, srcs, hdrs, library):
    """The native module of the binding: SWIG's wrapper with the helpers that it calls, linked to the library.

    Args:
      name: the file, "addend/_native.so"; Python's module is called "_native".
      srcs: the helpers.
      hdrs: what they declare.
      library: the shared library, which has to lie beside the module.
    """
    if not HAVE_PYTHON:
        # buildifier: disable=print
        print("skipping the Python binding, which needs " + ", ".join(_MISSING))
        return
    if _MISSING_PACKAGES:
        # buildifier: disable=print
        print("skipping the tests of the Python binding: %s lacks %s" % (PYTHON, ", ".join(_MISSING_PACKAGES)))
    include = ["-isystem", PYTHON_INCLUDE]
    addend_cc_library(
        name = "helpers",
        srcs = srcs,
        hdrs = hdrs,
        copts = include + _LIMITED + ["-fvisibility=hidden"],
        # Which breaks a typemap on purpose.
        visibility = ["//tests/conformance/meta:__pkg__"],
        deps = ["//c_api:header"],
    )
    swig_wrap(
        name = "swig",
        language = "python",
        options = ["-interface", "_native"],
        outs = ["addend_native.py"],
        deps = ["//c_api:header"],
    )
    native.filegroup(
        name = "wrapper",
        srcs = [":swig"],
        output_group = "wrapper",
    )
    cc_binary(
        name = name,
        srcs = [":wrapper", library],
        # Code that SWIG generates has warnings of its own.
        copts = MEANING_COPTS + include + (_LIMITED if STABLE_ABI else []) + ["-w", "-fvisibility=hidden"],
        linkopts = ["-Wl,-rpath,$$ORIGIN", "-Wl,-z,relro,-z,now"],
        linkshared = True,
        deps = [":helpers"],
    )

def _python_package_impl(ctx):
    placed = dict([(file, file.short_path.split(ctx.label.package + "/", 1)[1]) for file in ctx.files.srcs])
    for target, path in ctx.attr.placed.items():
        placed[target.files.to_list()[0]] = path
    files = []
    for file, path in placed.items():
        link = ctx.actions.declare_file(ctx.label.name + "/" + path)
        ctx.actions.symlink(output = link, target_file = file)
        files.append(link)
    repository = ctx.label.workspace_name or ctx.workspace_name
    return [
        DefaultInfo(files = depset(files), runfiles = ctx.runfiles(files)),
        PyInfo(
            imports = depset(["/".join([repository, ctx.label.package, ctx.label.name])]),
            transitive_sources = depset([file for file in files if file.extension == "py"]),
        ),
    ]

_python_package = rule(
    implementation = _python_package_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = True),
        "placed": attr.label_keyed_string_dict(allow_files = True),
    },
)

def python_package(name, **kwargs):
    """A folder `name` to be put on Python's path, for `deps` of a py_library too.

    Args:
      name: the target's name.
      **kwargs: `srcs`, files that keep their place in the Bazel package; `placed`, others with their places.
    """
    if HAVE_PYTHON:
        _python_package(name = name, **kwargs)

_TEST_SCRIPT = """#!/bin/sh
export PYTHONPATH="$PWD/{path}" {environment}
exec {python} -X faulthandler {arguments} "$@"
"""

def _python_test_impl(ctx):
    script = ctx.actions.declare_file(ctx.label.name + ".sh")
    arguments = [ctx.file._runner.short_path] if ctx.attr.unittest else []
    package = ctx.attr.package.label
    repository = "../" + package.workspace_name if package.workspace_name else "."
    ctx.actions.write(script, _TEST_SCRIPT.format(
        path = "/".join([repository, package.package, package.name]),
        environment = " ".join([_TEST_ENVIRONMENT] + [
            "%s='%s'" % (key, ctx.expand_location(value, ctx.attr.data))
            for key, value in ctx.attr.env.items()
        ]),
        python = PYTHON,
        arguments = " ".join(arguments + [ctx.file.main.short_path]),
    ), is_executable = True)
    runfiles = ctx.runfiles([ctx.file.main, ctx.file._runner] + ctx.files.data)
    return [DefaultInfo(
        executable = script,
        runfiles = runfiles.merge(ctx.attr.package[DefaultInfo].default_runfiles),
    )]

_python_test = rule(
    implementation = _python_test_impl,
    test = True,
    attrs = {
        "main": attr.label(allow_single_file = [".py"], mandatory = True),
        "package": attr.label(mandatory = True),
        "data": attr.label_list(allow_files = True),
        "env": attr.string_dict(),
        "unittest": attr.bool(default = True),
        "_runner": attr.label(
            default = "//tools/bazel:unittest_runner.py",
            allow_single_file = True,
        ),
    },
)

def python_test(name, package, main = None, size = "small", **kwargs):
    """A file of unittest cases.

    Args:
      name: the target's name.
      package: a python_package, which is on the path.
      main: the file; by default <name>.py.
      size: see cc_test.
      **kwargs: `data`, `env` (with "$(rootpath ...)" for files), tags and the like. `unittest = False`: the file is a
        program, whose exit code counts.
    """
    if HAVE_PYTHON and not _MISSING_PACKAGES:
        # LibTorch's and Python's own leaks and threads are noise to sanitizers, which the interpreter has not loaded.
        tags = kwargs.pop("tags", []) + ["no-sanitizer"]
        if kwargs.get("timeout") == "long" and "long" not in tags:
            # Filters of tags take it for one: the test would run with tools/test --full only.
            fail("%s: Bazel takes the time limit \"long\" for a tag; choose a size" % name)
        _python_test(name = name, package = package, main = main or name + ".py", size = size, tags = tags, **kwargs)

def python_genrule(name, script, path, srcs, outs, helpers = [], **kwargs):
    """Files that a program of Python writes: it is called with the sources, then the outputs.

    Args:
      name: the target's name.
      script: the program.
      path: a file whose folder is on its path.
      srcs: what it reads.
      outs: what it writes.
      helpers: further files of that folder.
      **kwargs: everything else that genrule takes.
    """
    if not HAVE_PYTHON:
        return
    native.genrule(
        name = name,
        srcs = srcs,
        outs = outs,
        cmd = "PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$$(dirname $(location %s)) %s $(location %s) %s" % (
            path,
            PYTHON,
            script,
            " ".join(["$(location %s)" % file for file in srcs + outs]),
        ),
        tools = [path, script] + helpers,
        **kwargs
    )

def _python_folder_impl(ctx):
    out = ctx.actions.declare_directory(ctx.label.name)
    ctx.actions.run(
        executable = PYTHON,
        arguments = ["-B", ctx.file.script.path, out.path],
        inputs = [ctx.file.script] + ctx.files.helpers,
        outputs = [out],
        mnemonic = "PythonFolder",
        progress_message = "Making %s" % ctx.label,
        env = {"OMP_NUM_THREADS": "1"},
        use_default_shell_env = True,
    )
    return [DefaultInfo(files = depset([out]), runfiles = ctx.runfiles([out]))]

python_folder = rule(
    implementation = _python_folder_impl,
    doc = "A folder that a program of Python fills: it is called with the folder. Only where there is a Python.",
    attrs = {
        "script": attr.label(
            allow_single_file = [".py"],
            mandatory = True,
            doc = "the program",
        ),
        "helpers": attr.label_list(
            allow_files = True,
            doc = "what it imports and reads",
        ),
    },
)

def _python_wheel_impl(ctx):
    out = ctx.actions.declare_directory(ctx.label.name)
    provenance = [file for file in ctx.files._provenance if file.basename == "provenance.json"]
    arguments = ctx.actions.args()
    arguments.add("-B")
    arguments.add(ctx.file._script)
    arguments.add("--out", out.path)
    arguments.add("--version-file", ctx.file._version)
    arguments.add("--readme", ctx.file.readme)
    if STABLE_ABI:
        arguments.add("--stable-abi", ctx.file._symbols)
    arguments.add_all("--provenance", provenance)
    arguments.add_all("--documents", ctx.files.documents)
    arguments.add_all("--libraries", ctx.files.libraries)
    arguments.add_all("--files", ctx.files.package)
    inputs = [ctx.file._script, ctx.file._symbols, ctx.file._version, ctx.file.readme] + ctx.files._helpers + provenance
    ctx.actions.run(
        executable = PYTHON,
        arguments = [arguments],
        inputs = inputs + ctx.files.documents + ctx.files.libraries + ctx.files.package,
        outputs = [out],
        mnemonic = "Wheel",
        # readelf is asked what the libraries need.
        use_default_shell_env = True,
    )
    return [DefaultInfo(files = depset([out]), runfiles = ctx.runfiles([out]))]

_python_wheel = rule(
    implementation = _python_wheel_impl,
    attrs = {
        "documents": attr.label_list(allow_files = True),
        "libraries": attr.label_list(allow_files = True),
        "package": attr.label(mandatory = True),
        "readme": attr.label(allow_single_file = [".md"], mandatory = True),
        "_helpers": attr.label_list(
            default = [
                "//tools/package:elf.py",
                "//tools/package:platform_tag.py",
            ],
            allow_files = True,
        ),
        "_provenance": attr.label(default = "//tools/package:provenance"),
        "_script": attr.label(default = "//tools/package:wheel.py", allow_single_file = True),
        "_symbols": attr.label(default = "//tools/package:python_symbols.txt", allow_single_file = True),
        "_version": attr.label(default = "//:VERSION", allow_single_file = True),
    },
)

def python_wheel(name, package, libraries, readme, **kwargs):
    """A folder with the wheel of a package; the wheel's name has the version and the tags that are true for it.

    Args:
      name: the target's name.
      package: a python_package.
      libraries: the shared libraries in it, which are stripped.
      readme: what an index shows.
      **kwargs: tags, visibility and the like.
    """
    if not HAVE_PYTHON:
        return
    stripped(
        name = name + "_libraries",
        srcs = libraries,
    )
    package_documents(
        name = name + "_documents",
        package = "wheel",
        libraries = [name + "_libraries"],
    )
    _python_wheel(
        name = name,
        package = package,
        documents = [name + "_documents"],
        libraries = [name + "_libraries"],
        readme = readme,
        **kwargs
    )
