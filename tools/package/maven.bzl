"""What Maven publishes."""

load("@local_java//:info.bzl", "JAVA_HOME")
load("@local_python//:info.bzl", "PYTHON")
load("//tools/bazel:java.bzl", "HAVE_JAVA", "JAVA_RELEASE")
load("//tools/package:defs.bzl", "HAVE_PACKAGES", "package_documents", "stripped")

def java_native(name, srcs, **kwargs):
    """Native libraries as they are packaged, and <name>_documents, what a package of them carries.

    Args:
      name: the target's name, and the folder.
      srcs: the libraries.
      **kwargs: visibility and the like.
    """
    if not HAVE_JAVA:
        return
    stripped(name = name, srcs = srcs, **kwargs)
    package_documents(
        name = name + "_documents",
        package = "jar",
        libraries = [name],
    )

def java_dist(name, srcs, outs, script, arguments, **kwargs):
    """What a program of Python makes for Maven; it is also told of the JDK's javadoc.

    Args:
      name: the target's name.
      srcs: what it reads.
      outs: what it writes.
      script: the program.
      arguments: its options -> the files that each names.
      **kwargs: visibility and the like.
    """
    if not HAVE_JAVA or not HAVE_PACKAGES:
        return
    options = " ".join([
        "%s %s" % (option, " ".join(["$(locations %s)" % label if label not in outs else "$(location %s)" % label for label in labels]))
        for option, labels in sorted(arguments.items())
    ])
    native.genrule(
        name = name,
        srcs = srcs,
        outs = outs,
        cmd = "%s -B $(location %s) --javadoc-tool '%s/bin/javadoc' --release %s %s" % (
            PYTHON,
            script,
            JAVA_HOME,
            JAVA_RELEASE,
            options,
        ),
        tools = [script],
        **kwargs
    )
