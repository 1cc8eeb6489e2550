"""@lunr: lunr.js as installed on this machine (Debian: libjs-lunr), or in LUNR_HOME, the folder that holds lunr.js.

Only the search of the site needs it, so HAVE_LUNR is False instead of an error when absent.
"""

_BUILD = """
filegroup(
    name = "lunr",
    srcs = {srcs},
    visibility = ["//visibility:public"],
)
"""

def _lunr_impl(ctx):
    folder = ctx.os.environ.get("LUNR_HOME", "") or "/usr/share/javascript/lunr"
    file = ctx.path(folder).get_child("lunr.js")
    have = file.exists
    if have:
        ctx.symlink(file, "lunr.js")
    ctx.file("WORKSPACE", "workspace(name = %r)\n" % ctx.name)
    ctx.file("BUILD", _BUILD.format(srcs = repr(["lunr.js"] if have else [])))
    ctx.file("info.bzl", "HAVE_LUNR = %r\n" % have)

_lunr = repository_rule(
    implementation = _lunr_impl,
    local = True,
    configure = True,
    environ = ["LUNR_HOME"],
)

def repo(declare):
    declare(_lunr, name = "lunr")
