"""@local_swig//:info.bzl: where SWIG is, if it is installed.

Only language bindings need it, so SWIG is empty instead of an error when absent.
SWIG_HOME names the folder that holds bin/swig; PATH is searched otherwise.
"""

def _local_swig_impl(ctx):
    home = ctx.os.environ.get("SWIG_HOME", "").rstrip("/")
    if home:
        found = ctx.path(home + "/bin/swig")
        swig = str(found) if found.exists else ""
    else:
        swig = str(ctx.which("swig") or "")
    library, version = "", ""
    if swig:
        library = ctx.execute([swig, "-swiglib"]).stdout.strip().split("\n")[0]
        for line in ctx.execute([swig, "-version"]).stdout.splitlines():
            if line.startswith("SWIG Version "):
                version = line[len("SWIG Version "):].strip()
        moved = "%s/share/swig/%s" % (home, version)
        if home and not ctx.path(library).exists and ctx.path(moved).exists:
            # The library was moved since the program was compiled, as in the package of PyPI.
            library = moved
    ctx.file("WORKSPACE", "workspace(name = %r)\n" % ctx.name)
    ctx.file("BUILD", 'exports_files(["info.bzl"])\n')
    ctx.file("info.bzl", """
# Empty text: not found.
SWIG = {swig}
SWIG_LIB = {library}
SWIG_VERSION = {version}
""".format(swig = repr(swig), library = repr(library), version = repr(version)))

_local_swig = repository_rule(
    implementation = _local_swig_impl,
    local = True,
    configure = True,
    environ = ["PATH", "SWIG_HOME"],
)

def repo(declare):
    declare(_local_swig, name = "local_swig")
