"""Archives of Maven's, as an option of tools/setup fetched them into the Maven repository that ADDEND_MAVEN_CACHE names.

By default that is addend/maven in the user's cache folder. A file there tells which archives a repository has: djl.txt is the class
path of third_party/djl/pom.xml. Only Addend's classes for such a library need them, so HAVE is False instead of an error when absent.
"""

_BUILD = """
filegroup(
    name = "jars",
    srcs = {jars},
    visibility = ["//visibility:public"],
)
"""

def _maven_archives_impl(ctx):
    environ = ctx.os.environ
    cache = environ.get("ADDEND_MAVEN_CACHE", "")
    if not cache:
        cache = environ.get("XDG_CACHE_HOME", environ.get("HOME", "") + "/.cache") + "/addend/maven"
    names = []
    listed = "%s/%s.txt" % (cache, ctx.attr.archives)
    if ctx.path(listed).exists:
        # Archives lie where Maven put them below the folder; names are unique.
        paths = [path for path in ctx.read(listed).strip().split(":") if path]
        if all([ctx.path(cache + "/" + path).exists for path in paths]):
            for path in paths:
                name = path.split("/")[-1]
                ctx.symlink(cache + "/" + path, name)
                names.append(name)
    ctx.file("WORKSPACE", "workspace(name = %r)\n" % ctx.name)
    ctx.file("BUILD", _BUILD.format(jars = repr(names)))
    ctx.file("info.bzl", """
HAVE = {have}
# The folder, a Maven repository; empty text where the archives are not there.
MAVEN_CACHE = {cache}
""".format(have = bool(names), cache = repr(cache if names else "")))

maven_archives = repository_rule(
    implementation = _maven_archives_impl,
    attrs = {"archives": attr.string(mandatory = True)},
    local = True,
    configure = True,
    environ = [
        "ADDEND_MAVEN_CACHE",
        "HOME",
        "XDG_CACHE_HOME",
    ],
)
