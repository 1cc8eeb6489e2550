"""@junit: JUnit 5 as installed on this machine, or under JUNIT_HOME.

It is one archive that holds everything, junit-platform-console-standalone; Debian's names the others beside it. Only the
tests of the Java binding need it, so HAVE_JUNIT is False instead of an error when absent.
"""

_NAME = "junit-platform-console-standalone"
_BUILD = """
filegroup(
    name = "junit",
    srcs = {srcs},
    visibility = ["//visibility:public"],
)
"""

def _find(ctx, folder):
    """The archive in a folder, with or without a version in its name; None where there is none."""
    folder = ctx.path(folder)
    if not folder.exists:
        return None
    plain = folder.get_child(_NAME + ".jar")
    if plain.exists:
        return plain
    for entry in folder.readdir():
        if entry.basename.startswith(_NAME + "-") and entry.basename.endswith(".jar"):
            return entry
    return None

def _junit_impl(ctx):
    archive = _find(ctx, ctx.os.environ.get("JUNIT_HOME", "") or "/usr/share/java")
    if archive:
        ctx.symlink(archive, _NAME + ".jar")
    ctx.file("WORKSPACE", "workspace(name = %r)\n" % ctx.name)
    ctx.file("BUILD", _BUILD.format(srcs = repr([_NAME + ".jar"] if archive else [])))
    ctx.file("info.bzl", "HAVE_JUNIT = %r\n" % bool(archive))

_junit = repository_rule(
    implementation = _junit_impl,
    local = True,
    configure = True,
    environ = ["JUNIT_HOME"],
)

def repo(declare):
    declare(_junit, name = "junit")
