"""@absl: Abseil, one target for each name of packages.bzl. @absl_source: all of it, compiled from its sources.

@absl is Abseil as installed on this machine, or under ABSL_HOME, or another repository of the workspace that vendors
this one: see `absl` in ../workspace.bzl and `abseil` in ../extensions.bzl.

@absl_source takes its place with --//third_party/absl:from_source: Abseil becomes part of what uses it, and no Abseil is
needed where that runs. The archives that distributions install beside their shared libraries cannot serve for this:
those of Debian are compiled for programs (-fPIE), and a shared library cannot hold their thread-local variables.
ABSL_SOURCE names the folder of the sources, the one that holds absl/; by default it is where `tools/setup --dist` puts
them, addend/abseil in XDG_CACHE_HOME (~/.cache).
"""

load("//third_party:repositories.bzl", "installed_library")
load("//third_party/absl:packages.bzl", "ABSL_PACKAGES", "ABSL_TARGETS")

_SOURCE = """
load("@rules_cc//cc:defs.bzl", "cc_library")
load("@libtorch//:info.bzl", "CXX11_ABI", "CXX_STANDARD")

_FOLDERS = [
    "base", "container", "crc", "debugging", "hash", "numeric", "profiling", "strings", "synchronization", "time", "types",
]

cc_library(
    name = "absl",
    srcs = glob(
        ["absl/%s/**/*.cc" % folder for folder in _FOLDERS] + ["absl/status/status*.cc"],
        exclude = [
            "**/*_benchmark.cc",
            "**/*_fuzz.cc",
            "**/*_test*.cc",
            "**/*matchers*.cc",
            "**/*mock*.cc",
            "**/*test_*.cc",
            "**/*testing*.cc",
            "**/print_hash_of.cc",
        ],
    ),
    hdrs = glob(["absl/**/*.h", "absl/**/*.inc"]),
    # The C++ ABI of strings is that of LibTorch, to which the same programs are linked.
    copts = ["-DNDEBUG", "-w", "-std=" + CXX_STANDARD, "-D_GLIBCXX_USE_CXX11_ABI=%d" % CXX11_ABI],
    includes = ["."],
    linkopts = ["-pthread"],
    linkstatic = True,
    visibility = ["//visibility:public"],
)
"""

# Who does not ask for it need not have it; `bazel query` looks at it nevertheless.
_MISSING_RULE = """
def _missing_impl(ctx):
    fail(ctx.attr.message)

missing = rule(implementation = _missing_impl, attrs = {"message": attr.string()})
"""

_MISSING = """
load(":missing.bzl", "missing")

missing(
    name = "absl",
    message = %r,
    visibility = ["//visibility:public"],
)
"""

def _source_folder(ctx):
    chosen = ctx.os.environ.get("ABSL_SOURCE", "").rstrip("/")
    if chosen:
        return chosen
    home = ctx.os.environ.get("HOME", "")
    return (ctx.os.environ.get("XDG_CACHE_HOME", "") or home + "/.cache") + "/addend/abseil"

def _source_impl(ctx):
    folder = _source_folder(ctx)
    ctx.file("WORKSPACE", "workspace(name = %r)\n" % ctx.name)
    if not ctx.path(folder + "/absl/base/config.h").exists:
        ctx.file("missing.bzl", _MISSING_RULE)
        ctx.file("BUILD", _MISSING % (
            ("the sources of Abseil are not in %s: there is no absl/base/config.h. `tools/setup --dist` fetches them, or " +
             "set ABSL_SOURCE to the folder of Abseil's release that holds absl/.") % folder
        ))
        return

    # Without Abseil's own BUILD files: each would make a package of its folder, which the target below cannot see into.
    copied = ctx.execute([
        "sh",
        "-c",
        "cp -R \"$1/absl\" absl && find absl '(' -name BUILD -o -name BUILD.bazel ')' -delete",
        "sh",
        folder,
    ])
    if copied.return_code != 0:
        fail("cannot copy %s/absl: %s" % (folder, copied.stderr))
    ctx.file("BUILD", _SOURCE)

_source = repository_rule(
    implementation = _source_impl,
    local = True,
    configure = True,
    environ = ["ABSL_SOURCE", "HOME", "XDG_CACHE_HOME"],
)

def _elsewhere_impl(ctx):
    ctx.file("WORKSPACE", "workspace(name = %r)\n" % ctx.name)
    text = 'package(default_visibility = ["//visibility:public"])\n'
    for name, target in sorted(ABSL_TARGETS.items()):
        text += "\nalias(name = %r, actual = %r)\n" % (name, "%s//%s" % (ctx.attr.repository, target))
    ctx.file("BUILD", text)

_elsewhere = repository_rule(
    implementation = _elsewhere_impl,
    attrs = {"repository": attr.string(mandatory = True, doc = "with its @")},
)

def repo(declare, repository = None):
    """Declares @absl and @absl_source.

    Args:
      declare: see ../repositories.bzl.
      repository: a repository, with its @, that has Abseil with Abseil's own BUILD files; None: the one that is installed.
    """
    declare(_source, name = "absl_source")
    if repository:
        declare(_elsewhere, name = "absl", repository = repository)
        return
    installed_library(
        declare,
        name = "absl",
        what = "Abseil",
        package = "libabsl-dev",
        override = "ABSL_HOME",
        header = "absl/status/statusor.h",
        libraries = {
            name: ["absl_" + library for library in libraries]
            for name, libraries in ABSL_PACKAGES.items()
        },
        modules = {name: ["absl_" + name] for name in ABSL_PACKAGES},
        # One of those that hand strings over.
        library = "absl_strings",
        other_abi = "--@addend//third_party/absl:from_source compiles Abseil as LibTorch was",
    )
