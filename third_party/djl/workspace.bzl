"""@djl: DJL with its PyTorch engine, as `tools/setup --djl` fetched it into the Maven repository that ADDEND_MAVEN_CACHE names.

By default that is addend/maven in the user's cache folder. It is one file that tells which archives there are: djl.txt, the
class path of pom.xml. Only Addend's classes for DJL need them, so HAVE_DJL is False instead of an error when absent.
"""

_BUILD = """
filegroup(
    name = "jars",
    srcs = {jars},
    visibility = ["//visibility:public"],
)
"""

def _djl_impl(ctx):
    environ = ctx.os.environ
    cache = environ.get("ADDEND_MAVEN_CACHE", "")
    if not cache:
        cache = environ.get("XDG_CACHE_HOME", environ.get("HOME", "") + "/.cache") + "/addend/maven"
    names = []
    if ctx.path(cache + "/djl.txt").exists:
        # Archives lie where Maven put them below the folder; names are unique.
        paths = [path for path in ctx.read(cache + "/djl.txt").strip().split(":") if path]
        if all([ctx.path(cache + "/" + path).exists for path in paths]):
            for path in paths:
                name = path.split("/")[-1]
                ctx.symlink(cache + "/" + path, name)
                names.append(name)
    ctx.file("WORKSPACE", "workspace(name = %r)\n" % ctx.name)
    ctx.file("BUILD", _BUILD.format(jars = repr(names)))
    ctx.file("info.bzl", """
HAVE_DJL = {have}
# The folder, a Maven repository; empty text where DJL is not there.
MAVEN_CACHE = {cache}
""".format(have = bool(names), cache = repr(cache if names else "")))

_djl = repository_rule(
    implementation = _djl_impl,
    local = True,
    configure = True,
    environ = [
        "ADDEND_MAVEN_CACHE",
        "HOME",
        "XDG_CACHE_HOME",
    ],
)

def repo(declare):
    declare(_djl, name = "djl")
