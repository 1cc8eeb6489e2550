"""What Maven publishes."""

load("@local_java//:info.bzl", "JAVA_HOME")
load("@local_python//:info.bzl", "PYTHON")
load(
    "//tools/bazel:java.bzl",
    "HAVE_JAVA",
    "JAVA_RELEASE",
    "addend_java_library",
    "addend_javadoc_test",
    "say_if_skipped",
)
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

def java_module(name, library, option, have, services = []):
    """Addend's classes for another library: <name>, javadoc_test, and dist, an archive with all that Maven publishes of it.

    Args:
      name: the target's name, that of the package behind dev.addend, and of the library's folder in third_party.
      library: what it is called.
      option: of tools/setup, which fetches the library.
      have: whether it is there; where it is not, a line says so and nothing is declared.
      services: files of META-INF/services.
    """
    archive = "addend-" + name
    say_if_skipped(archive = archive + ".jar", have = have, needs = library, option = option)
    if not have:
        return
    deps = [
        "//bindings/java",
        "//third_party/" + name,
    ]
    sources = native.glob(["dev/addend/%s/*.java" % name])
    addend_java_library(
        name = name,
        srcs = sources,
        visibility = ["//visibility:public"],
        deps = deps,
    )
    addend_javadoc_test(
        name = "javadoc_test",
        size = "small",
        srcs = sources,
        deps = deps,
    )
    arguments = {
        "--class-path": deps,
        "--classes": [":" + name],
        "--documents": ["//:LICENSE"],
        "--out": [archive + ".jar"],
        "--pom": ["dist/pom.xml"],
        "--provenance": ["//tools/package:provenance"],
        "--sources": sources,
        "--version-file": ["//:VERSION"],
    }
    if services:
        arguments["--services"] = services
    java_dist(
        name = "dist",
        srcs = sources + services + deps + [
            "dist/pom.xml",
            ":" + name,
            "//:LICENSE",
            "//:VERSION",
            "//tools/package:provenance",
        ],
        outs = [
            archive + ".jar",
            archive + ".pom",
            archive + "-javadoc.jar",
            archive + "-sources.jar",
        ],
        arguments = arguments,
        script = "//bindings/java:dist/make_jar.py",
        visibility = ["//visibility:public"],
    )
