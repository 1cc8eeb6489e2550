"""@local_dotnet//:info.bzl: the .NET SDK, if there is one, whether it brings ASP.NET Core, and the NuGet packages that tools/setup restored.

ADDEND_DOTNET names the `dotnet` command, PATH is searched otherwise. ADDEND_NUGET_CACHE names the folder of the
packages. The library needs none of them but, where the SDK is newer than what it is built for, that framework's reference
assemblies; its tests need all that their lock file names. A machine without an SDK still builds everything that is not C#:
DOTNET is then empty instead of an error.
"""

# The first SDK that builds what bindings/csharp is written in.
_OLDEST = 8

def _cache(ctx):
    """The folder of packages; it need not exist."""
    cache = ctx.os.environ.get("ADDEND_NUGET_CACHE", "")
    if cache:
        return cache
    home = ctx.os.environ.get("HOME", "")
    return ctx.os.environ.get("XDG_CACHE_HOME", home + "/.cache") + "/addend/nuget"

def _has_reference_assemblies(ctx, folder):
    """Whether a folder, of the SDK or of packages, has those of the framework that the library is built for."""
    folder = ctx.path(folder)
    return folder.exists and any([
        entry.basename.startswith("%d." % _OLDEST)
        for entry in folder.readdir()
    ])

def _has_test_packages(ctx, cache, version):
    """Whether the packages are those that the lock file of the tests names, for this SDK."""
    restored = ctx.path("%s/restored-%s.json" % (cache, version))
    return restored.exists and ctx.read(restored) == ctx.read(ctx.path(ctx.attr.lock))

def _local_dotnet_impl(ctx):
    dotnet = ctx.os.environ.get("ADDEND_DOTNET", "") or str(ctx.which("dotnet") or "")
    version, missing = "", ""
    cache = _cache(ctx)
    if dotnet:
        result = ctx.execute([dotnet, "--version"])
        if result.return_code == 0:
            version = result.stdout.strip()
    if not version:
        missing = "no .NET SDK (`dotnet` on PATH)"
    elif int(version.split(".")[0]) < _OLDEST:
        missing = "the .NET SDK is %s, and %d is needed" % (version, _OLDEST)
    elif not (_has_reference_assemblies(ctx, "%s/packs/Microsoft.NETCore.App.Ref" % ctx.path(dotnet).realpath.dirname) or
              _has_reference_assemblies(ctx, cache + "/microsoft.netcore.app.ref")):
        missing = ("the .NET SDK %s has no reference assemblies of .NET %d, and neither has %s (tools/setup fetches " +
                   "them; then bazel sync --configure)") % (version, _OLDEST, cache)
    if missing:
        dotnet, version = "", ""

    # ASP.NET Core builds and runs the services in docs/examples.
    root = "%s" % ctx.path(dotnet).realpath.dirname if dotnet else ""
    aspnetcore = dotnet != "" and all([ctx.path(root + folder).exists for folder in [
        "/packs/Microsoft.AspNetCore.App.Ref",
        "/shared/Microsoft.AspNetCore.App",
    ]])
    ctx.file("WORKSPACE", "workspace(name = %r)\n" % ctx.name)
    ctx.file("BUILD", 'exports_files(["info.bzl"])\n')
    ctx.file("info.bzl", """
# Empty text: not found. MISSING says what.
DOTNET = {dotnet}
DOTNET_VERSION = {version}
MISSING = {missing}

# Whether the SDK has ASP.NET Core.
HAVE_ASPNETCORE = {aspnetcore}

# The folder of packages, empty text where there is none; whether it has those of the tests.
NUGET_PACKAGES = {packages}
HAVE_TEST_PACKAGES = {tests}

# Whether TorchSharp is among them, which tools/setup --torchsharp restores.
HAVE_TORCHSHARP = {torchsharp}
""".format(
        aspnetcore = repr(aspnetcore),
        dotnet = repr(dotnet),
        version = repr(version),
        packages = repr(cache if ctx.path(cache).exists else ""),
        torchsharp = repr(ctx.path(cache + "/torchsharp").exists),
        tests = repr(bool(version) and _has_test_packages(ctx, cache, version)),
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
