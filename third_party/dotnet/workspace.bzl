"""@local_dotnet//:info.bzl: the .NET SDK, if there is one, and the NuGet packages that tools/setup restored.

ADDEND_DOTNET names the `dotnet` command, PATH is searched otherwise. ADDEND_NUGET_CACHE names the folder of the
packages. A machine without either still builds everything that is not C#: both are then empty instead of an error.
"""

# The first SDK that builds what bindings/csharp is written in.
_OLDEST = 8

def _packages(ctx, dotnet, version):
    """The folder of packages, if it holds those that the lock file names, for this SDK."""
    cache = ctx.os.environ.get("ADDEND_NUGET_CACHE", "")
    if not cache:
        home = ctx.os.environ.get("HOME", "")
        cache = ctx.os.environ.get("XDG_CACHE_HOME", home + "/.cache") + "/addend/nuget"
    restored = ctx.path("%s/restored-%s.json" % (cache, version))
    if restored.exists and ctx.read(restored) == ctx.read(ctx.path(ctx.attr.lock)):
        return cache
    return ""

def _local_dotnet_impl(ctx):
    dotnet = ctx.os.environ.get("ADDEND_DOTNET", "") or str(ctx.which("dotnet") or "")
    version, packages, missing = "", "", ""
    if dotnet:
        result = ctx.execute([dotnet, "--version"])
        if result.return_code == 0:
            version = result.stdout.strip()
    if not version:
        missing = "no .NET SDK (`dotnet` on PATH)"
    elif int(version.split(".")[0]) < _OLDEST:
        missing = "the .NET SDK is %s, and %d is needed" % (version, _OLDEST)
    else:
        packages = _packages(ctx, dotnet, version)
        if not packages:
            missing = "the NuGet packages are not restored (tools/setup does it; then bazel sync --configure)"
    if missing:
        dotnet, version = "", ""
    ctx.file("WORKSPACE", "workspace(name = %r)\n" % ctx.name)
    ctx.file("BUILD", 'exports_files(["info.bzl"])\n')
    ctx.file("info.bzl", """
# Empty text: not found. MISSING says what.
DOTNET = {dotnet}
DOTNET_VERSION = {version}
NUGET_PACKAGES = {packages}
MISSING = {missing}
""".format(
        dotnet = repr(dotnet),
        version = repr(version),
        packages = repr(packages),
        missing = repr(missing),
    ))

_local_dotnet = repository_rule(
    implementation = _local_dotnet_impl,
    attrs = {
        "lock": attr.label(
            default = "//bindings/csharp:Addend.Tests/packages.lock.json",
            doc = "names the packages",
        ),
    },
    local = True,
    configure = True,
    environ = [
        "ADDEND_DOTNET",
        "ADDEND_NUGET_CACHE",
        "HOME",
        "PATH",
        "XDG_CACHE_HOME",
    ],
)

def repo(declare):
    declare(_local_dotnet, name = "local_dotnet")
