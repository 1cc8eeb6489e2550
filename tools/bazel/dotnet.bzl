"""Rules for C#: projects of the .NET SDK, built without a network.

Where the SDK, SWIG or Python, which writes a part of the sources, are missing they declare nothing, so that everything
else still builds; csharp_wrapper, which everything else needs, says so in one line. Only tests need the packages of the
lock file.
"""

load(
    "@local_dotnet//:info.bzl",
    "DOTNET",
    "HAVE_ASPNETCORE",
    "HAVE_TEST_PACKAGES",
    "MISSING",
    "NUGET_PACKAGES",
    _HAVE_TORCHSHARP = "HAVE_TORCHSHARP",
)
load("@local_python//:info.bzl", "PYTHON")
load("//tools/bazel:defs.bzl", "addend_cc_binary")
load("//tools/bazel:rules.bzl", "sh_test")
load("//tools/bazel:swig.bzl", "HAVE_SWIG", "swig_wrap")
load("//tools/package:defs.bzl", "package_documents")

HAVE_CSHARP = bool(DOTNET and HAVE_SWIG and PYTHON)

# Whether services can be built.
HAVE_CSHARP_WEB = HAVE_CSHARP and HAVE_ASPNETCORE

HAVE_CSHARP_TESTS = HAVE_CSHARP and HAVE_TEST_PACKAGES

# Whether tests beside TorchSharp itself can be built.
HAVE_TORCHSHARP = HAVE_CSHARP_TESTS and _HAVE_TORCHSHARP

def _dotnet_project_impl(ctx):
    out = ctx.actions.declare_directory(ctx.label.name)
    arguments = ctx.actions.args()
    arguments.add(DOTNET)
    arguments.add(NUGET_PACKAGES)
    arguments.add(ctx.attr.command)
    arguments.add(ctx.file.project)
    arguments.add(out.path)
    for target, name in ctx.attr.properties.items():
        # MSBuild reads the .props file if there are several files.
        files = [file for file in target.files.to_list() if file.basename.endswith(".props")] or target.files
        arguments.add_all(files, format_each = name + "=%s", expand_directories = False)
    ctx.actions.run(
        executable = ctx.executable._build,
        arguments = [arguments],
        inputs = [ctx.file.project] + ctx.files.srcs + ctx.files.properties,
        outputs = [out],
        mnemonic = "Dotnet",
        progress_message = "Running dotnet %s for %s" % (ctx.attr.command, ctx.label),
    )
    return [DefaultInfo(files = depset([out]), runfiles = ctx.runfiles(files = [out]))]

_dotnet_project = rule(
    implementation = _dotnet_project_impl,
    doc = "A folder with what the .NET SDK makes of a project: an assembly and all it needs, or its package.",
    attrs = {
        "project": attr.label(
            allow_single_file = [".csproj"],
            mandatory = True,
        ),
        "srcs": attr.label_list(
            allow_files = True,
            doc = "every file that the project reads; they stay where they are",
        ),
        "properties": attr.label_keyed_string_dict(
            allow_files = True,
            doc = "folders or files -> the MSBuild property that tells the project where they are",
        ),
        "command": attr.string(
            default = "build",
            values = ["build", "pack"],
        ),
        "_build": attr.label(
            default = "//tools/bazel:dotnet_build",
            allow_single_file = True,
            executable = True,
            cfg = "exec",
        ),
    },
)

_RUN_SCRIPT = """#!/bin/sh
# Runs a .NET program beside the native libraries that it needs.
export ADDEND_LIBRARY_PATH="$PWD/{native}" DOTNET_CLI_HOME="${{TEST_TMPDIR:-/tmp}}" DOTNET_EnableDiagnostics=0
export DOTNET_CLI_TELEMETRY_OPTOUT=1 DOTNET_NOLOGO=1
# One thread: how many share a sum decides the order of its terms, hence its last bits.
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
exec "{dotnet}" exec "{program}" {arguments} "$@"
"""

def _run_script(ctx):
    script = ctx.actions.declare_file(ctx.label.name + ".sh")
    ctx.actions.write(script, _RUN_SCRIPT.format(
        dotnet = DOTNET,
        native = ctx.file.native.short_path,
        program = "%s/%s.dll" % (ctx.file.program.short_path, ctx.attr.assembly),
        arguments = " ".join(ctx.attr.arguments),
    ), is_executable = True)
    return [DefaultInfo(
        executable = script,
        runfiles = ctx.runfiles(files = [ctx.file.program, ctx.file.native] + ctx.files.data),
    )]

_RUN_ATTRIBUTES = {
    "program": attr.label(
        allow_single_file = True,
        mandatory = True,
        doc = "a dotnet_project",
    ),
    "assembly": attr.string(
        mandatory = True,
        doc = "the name of its assembly",
    ),
    "native": attr.label(
        allow_single_file = True,
        default = "//bindings/csharp:native",
        doc = "a folder of native libraries",
    ),
    "arguments": attr.string_list(doc = "of the program, as a shell reads them"),
    "data": attr.label_list(
        allow_files = True,
        doc = "files that it reads",
    ),
}

_dotnet_binary = rule(
    implementation = _run_script,
    doc = "Runs a program.",
    executable = True,
    attrs = _RUN_ATTRIBUTES,
)

_dotnet_test = rule(
    implementation = _run_script,
    doc = "Runs a program as a test.",
    test = True,
    attrs = _RUN_ATTRIBUTES,
)

def _folder_impl(ctx):
    out = ctx.actions.declare_directory(ctx.label.name)
    command = 'cp -fL "$@" "{out}"'
    if ctx.attr.strip:
        command += ' && chmod u+w "{out}"/* && strip "{out}"/*'
    ctx.actions.run_shell(
        inputs = ctx.files.srcs,
        outputs = [out],
        command = command.format(out = out.path),
        arguments = [f.path for f in ctx.files.srcs],
        mnemonic = "Folder",
    )
    return [DefaultInfo(files = depset([out]), runfiles = ctx.runfiles(files = [out]))]

_folder = rule(
    implementation = _folder_impl,
    doc = "Files side by side: shared libraries find each other there, and the SDK takes folders of sources.",
    attrs = {
        "srcs": attr.label_list(allow_files = True),
        "strip": attr.bool(doc = "whether they are libraries, whose debug information stays here"),
    },
)

def dotnet_project(needs_test_packages = False, **kwargs):
    """A folder with what the .NET SDK makes of a project: an assembly and all it needs, or its package.

    Args:
      needs_test_packages: whether its lock file names packages.
      **kwargs: see _dotnet_project.
    """
    if HAVE_CSHARP_TESTS if needs_test_packages else HAVE_CSHARP:
        _dotnet_project(**kwargs)

def dotnet_binary(**kwargs):
    """Runs a program.

    Args:
      **kwargs: see _dotnet_binary.
    """
    if HAVE_CSHARP:
        _dotnet_binary(**kwargs)

def dotnet_test(arguments = [], tags = [], **kwargs):
    """Runs the xunit tests of an assembly; each is a case of the test's result.

    Args:
      arguments: of xunit's runner, which choose among the tests.
      tags: as everywhere.
      **kwargs: see _dotnet_test.
    """
    if HAVE_CSHARP_TESTS:
        _dotnet_test(
            arguments = ["-noLogo", "-noColor", "-jUnit", '"$XML_OUTPUT_FILE"'] + arguments,
            # .NET has not loaded the sanitizers: `tools/test --full` lends them to a few tests.
            tags = tags + ["no-sanitizer"],
            **kwargs
        )

def csharp_genrule(**kwargs):
    """A genrule that is skipped where C# is; in `cmd`, $(PYTHON) is the interpreter.

    Args:
      **kwargs: see genrule.
    """
    if HAVE_CSHARP:
        cmd = kwargs.pop("cmd").replace("$(PYTHON)", PYTHON)
        native.genrule(cmd = cmd, **kwargs)

def dotnet_sh_test(tags = [], **kwargs):
    """An sh_test that needs the .NET SDK, which it finds in $DOTNET, with what tools/setup restored in $NUGET_CACHE.

    Args:
      tags: as everywhere.
      **kwargs: see sh_test.
    """
    if HAVE_CSHARP:
        sh_test(env = {"DOTNET": DOTNET, "NUGET_CACHE": NUGET_PACKAGES}, tags = tags + ["no-sanitizer"], **kwargs)

def folder(**kwargs):
    """Files side by side.

    Args:
      **kwargs: see _folder.
    """
    if HAVE_CSHARP:
        _folder(**kwargs)

def document_folder(name, package, libraries):
    """What a package carries beside its own, side by side.

    Args:
      name: the target's name.
      package: see package_documents.
      libraries: see package_documents.
    """
    if HAVE_CSHARP:
        package_documents(name = name + "_files", package = package, libraries = libraries)
        _folder(name = name, srcs = [name + "_files"])

def csharp_wrapper(name, library, deps, options = []):
    """What SWIG makes of the C interface: a shared library, and sources in C#.

    Args:
      name: of the output groups' target: `wrapper` and `sources`, see swig_wrap.
      library: the file name of the shared library, a target too.
      deps: the C interface, its headers first.
      options: further options of SWIG.
    """
    if not HAVE_CSHARP:
        # buildifier: disable=print
        print("C# is skipped: " + (MISSING or "no %s (tools/setup installs it)" % ("python3" if HAVE_SWIG else "swig")))
        return
    if not HAVE_CSHARP_TESTS:
        # buildifier: disable=print
        print("The tests of C# are skipped: their NuGet packages are not restored (tools/setup does it; then " +
              "bazel sync --configure)")
    swig_wrap(
        name = name,
        language = "csharp",
        options = options,
        outs = [
            "AddendNative.cs",
            "AddendNativePINVOKE.cs",
        ],
        deps = deps[:1],
    )
    native.filegroup(
        name = name + "_wrapper",
        srcs = [name],
        output_group = "wrapper",
    )
    native.filegroup(
        name = name + "_sources",
        srcs = [name],
        output_group = "sources",
        visibility = ["//tests/abi:__pkg__"],
    )
    addend_cc_binary(
        name = library,
        srcs = [name + "_wrapper"] + deps[1:],
        # The C++ is SWIG's.
        copts = ["-w"],
        linkopts = [
            "-Wl,-rpath,$$ORIGIN",
            "-Wl,--no-undefined",
        ],
        linkshared = True,
        deps = deps[:1],
    )
