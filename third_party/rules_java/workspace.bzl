"""@rules_java and other rules that Bazel itself loads while it looks for toolchains.

No target here is Java, but a Bazel that registers its Java toolchains loads
@rules_java for any target at all. A Bazel of a distribution ("no_version", built
to work without a network) finds such rules in packages beside it. Every other
Bazel brings its own definitions, which are left alone.
"""

_DISTRIBUTION = "/usr/share/bazel/"

# Enough of @rules_java for a Bazel whose Java rules are built in: the toolchains
# load, and nobody uses them.
_NATIVE_NAMES = [
    "java_binary",
    "java_import",
    "java_library",
    "java_lite_proto_library",
    "java_package_configuration",
    "java_plugin",
    "java_proto_library",
    "java_runtime",
    "java_test",
    "java_toolchain",
]

def _rules_java_impl(ctx):
    installed = ctx.path(_DISTRIBUTION + "rules/java")
    if ctx.path(str(installed) + "/java/defs.bzl").exists:
        for entry in installed.readdir():
            ctx.symlink(entry, entry.basename)
        return
    ctx.file("WORKSPACE", "workspace(name = %r)\n" % ctx.name)
    ctx.file("java/BUILD", "")
    ctx.file("java/defs.bzl", "".join([
        "%s = native.%s\n" % (name, name)
        for name in _NATIVE_NAMES
    ]))

_rules_java = repository_rule(implementation = _rules_java_impl, local = True)

# Loaded by newer Bazels (7.x); a folder that does not exist is an error only for
# who loads it.
_FOLDERS = {
    "bazel_features": "tools/features",
    "bazel_skylib": "tools/skylib",
    "rules_license": "rules/license",
    "rules_proto": "rules/proto",
    "rules_python": "rules/python",
}

def _is_distribution_build():
    return native.bazel_version in ["", "no_version"]

def repo(declare):
    if not _is_distribution_build():
        return
    declare(_rules_java, name = "rules_java")
    for name, folder in _FOLDERS.items():
        declare(native.local_repository, name = name, path = _DISTRIBUTION + folder)
