"""@local_java//:info.bzl: where the JDK is, if there is one; @local_java//:jni: its headers for native code.

Only the Java binding needs it, so JAVA_HOME is empty instead of an error when absent. The environment variable
JAVA_HOME names the JDK; the javac on PATH tells it otherwise.
"""

_BUILD = """
load("@rules_cc//cc:defs.bzl", "cc_library")

exports_files(["info.bzl"])

cc_library(
    name = "jni",
    hdrs = glob(["include/**/*.h"]),
    includes = ["include", "include/linux"],
    visibility = ["//visibility:public"],
)
"""

def _local_java_impl(ctx):
    home = ctx.os.environ.get("JAVA_HOME", "").rstrip("/")
    if not home and ctx.which("javac"):
        javac = ctx.execute(["readlink", "-f", str(ctx.which("javac"))]).stdout.strip()
        home = javac[:-len("/bin/javac")]
    if home and not ctx.path(home + "/bin/javac").exists:
        home = ""
    release, jar_date = "", ""
    if home:
        ctx.symlink(home + "/include", "include")
        release = ctx.execute([home + "/bin/javac", "-version"]).stdout.strip().split(" ")[-1].split(".")[0]

        # Older ones write the current time into archives.
        if "--date" in ctx.execute([home + "/bin/jar", "--help"]).stdout:
            jar_date = "--date=1980-01-01T00:00:02Z"
    ctx.file("WORKSPACE", "workspace(name = %r)\n" % ctx.name)
    ctx.file("BUILD", _BUILD)
    ctx.file("info.bzl", """
# Empty text: not found.
JAVA_HOME = {home}
JAVA_RELEASE = {release}
# The option of `jar` that makes its output the same each time.
JAR_DATE = {jar_date}
""".format(home = repr(home), release = repr(release), jar_date = repr(jar_date)))

_local_java = repository_rule(
    implementation = _local_java_impl,
    local = True,
    configure = True,
    environ = ["JAVA_HOME", "PATH"],
)

def repo(declare):
    declare(_local_java, name = "local_java")
