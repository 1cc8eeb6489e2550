"""@rules_cc, from the distribution's package where there is one.

Debian's Bazel 4.2.3 and Debian's rules_cc are from different years: the rules
load `use_cpp_toolchain`, which that Bazel does not have yet. Two files name it;
they are rewritten when, and only when, the running Bazel lacks the symbol, so
that the same code serves newer Bazels. Asking for the symbol instead of the
version number matters because Debian's Bazel calls itself "no_version".
"""

_DISTRIBUTION_COPY = "/usr/share/bazel/rules/cc"

# For systems without such a package (these have a network).
_RELEASE = struct(
    url = "https://github.com/bazelbuild/rules_cc/releases/download/0.0.9/rules_cc-0.0.9.tar.gz",
    sha256 = "2037875b9a4456dce4a79d112a8ae885bbc4aad968e6587dca6e64f3a0900cdf",
    prefix = "rules_cc-0.0.9",
)

_NEW_SYMBOL = "use_cpp_toolchain"
_USERS_OF_NEW_SYMBOL = [
    "cc/private/rules_impl/cc_flags_supplier.bzl",
    "cc/private/rules_impl/compiler_flag.bzl",
]

def _copy_tree(ctx, source):
    # Links to single files, not to folders: a file is replaced below, and that
    # must not reach through a link into the distribution's copy.
    listing = ctx.execute(["find", source, "-type", "f", "-printf", "%P\\n"])
    if listing.return_code != 0:
        fail("cannot list %s: %s" % (source, listing.stderr))
    for relative in listing.stdout.splitlines():
        # Files that this workspace uses, without the package's tests and migration tools.
        if relative in ["BUILD", "WORKSPACE"] or relative.startswith("cc/"):
            ctx.symlink(source + "/" + relative, relative)

def _rules_cc_impl(ctx):
    source = ctx.os.environ.get("RULES_CC_HOME", "") or _DISTRIBUTION_COPY
    if ctx.path(source + "/cc/defs.bzl").exists:
        _copy_tree(ctx, source)
    else:
        ctx.download_and_extract(
            url = _RELEASE.url,
            sha256 = _RELEASE.sha256,
            stripPrefix = _RELEASE.prefix,
        )

    if _NEW_SYMBOL in ctx.read(Label("@bazel_tools//tools/cpp:toolchain_utils.bzl")):
        return
    for path in _USERS_OF_NEW_SYMBOL:
        if not ctx.path(path).exists:
            continue
        text = ctx.read(path)
        ctx.delete(path)
        text = text.replace(', "%s"' % _NEW_SYMBOL, "")
        text = text.replace(_NEW_SYMBOL + "()", '["@bazel_tools//tools/cpp:toolchain_type"]')
        ctx.file(path, text, executable = False)

_rules_cc = repository_rule(
    implementation = _rules_cc_impl,
    local = True,
    environ = ["RULES_CC_HOME"],
)

def _no_coverage_impl(ctx):
    ctx.file("WORKSPACE", "workspace(name = %r)\n" % ctx.name)
    ctx.file("BUILD", """
filegroup(
    name = "coverage_report_generator",
    visibility = ["//visibility:public"],
)
""")

# Every test rule of Bazel depends on a program that merges coverage reports, and
# would download it even when no coverage is collected.
_no_coverage = repository_rule(implementation = _no_coverage_impl)

def repo(declare):
    declare(_rules_cc, name = "rules_cc")
    declare(_no_coverage, name = "remote_coverage_tools")
