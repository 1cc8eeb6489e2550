"""@implementations: libraries libaddend_torch<version>.so that were built elsewhere, for packages that serve several LibTorchs.

ADDEND_IMPLEMENTATIONS names the folder that holds them. They have to be of the same sources: the stub refuses others.
Without the variable there are none.
"""

def _implementations_impl(ctx):
    folder = ctx.os.environ.get("ADDEND_IMPLEMENTATIONS", "")
    names = []
    if folder:
        path = ctx.path(folder)
        if not path.exists:
            fail("ADDEND_IMPLEMENTATIONS names %s, which does not exist" % folder)
        names = sorted([
            entry.basename
            for entry in path.readdir()
            if entry.basename.startswith("libaddend_torch") and entry.basename.endswith(".so")
        ])
        if not names:
            fail("ADDEND_IMPLEMENTATIONS names %s, which holds no libaddend_torch<version>.so" % folder)
    for name in names:
        ctx.symlink(folder + "/" + name, name)
    ctx.file("WORKSPACE", "workspace(name = %r)\n" % ctx.name)
    ctx.file("BUILD", "exports_files(%r)\n" % (names + ["info.bzl"]))
    ctx.file("info.bzl", "NAMES = %r\n" % names)

_implementations = repository_rule(
    implementation = _implementations_impl,
    local = True,
    configure = True,
    environ = ["ADDEND_IMPLEMENTATIONS"],
)

def repo(declare):
    declare(_implementations, name = "implementations")
