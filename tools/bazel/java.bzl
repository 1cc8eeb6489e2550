"""Rules for Java that need nothing but a JDK.

Bazel's own java_library compiles with tools that it downloads. These call the JDK of the machine; where there is none,
they declare nothing. Their targets have JavaInfo, so a java_library of another workspace can depend on them.
"""

load("@djl//:info.bzl", DJL = "HAVE")
load("@junit//:info.bzl", "HAVE_JUNIT")
load("@local_java//:info.bzl", "JAR_DATE", "JAVA_HOME")
load("@local_python//:info.bzl", "PYTHON")
load("@rules_cc//cc:defs.bzl", "cc_binary")
load("@spark//:info.bzl", SPARK = "HAVE")
load("//tools/bazel:options.bzl", "ADDEND_COPTS")
load("//tools/bazel:rules.bzl", "JavaInfo")
load("//tools/bazel:swig.bzl", "HAVE_SWIG", "swig_wrap")

# Java release that the binding promises to run on.
JAVA_RELEASE = "11"

# Python writes a part of the sources.
HAVE_JAVA = JAVA_HOME != "" and HAVE_SWIG and PYTHON != ""

# Libraries of Maven's are needed by Addend's classes for them only.
HAVE_DJL = HAVE_JAVA and DJL
HAVE_SPARK = HAVE_JAVA and SPARK

def say_if_skipped(archive, needs, option, have):
    """Says in one line why there is no archive of Addend's classes for another library.

    Args:
      archive: the archive.
      needs: the library.
      option: of tools/setup, which fetches the library.
      have: whether it is there.
    """
    if HAVE_JAVA and not have:
        print("skipping %s, which needs %s (tools/setup %s fetches it)" % (archive, needs, option))

def say_if_java_is_skipped():
    """Says in one line why a package has fewer targets than its BUILD file names."""
    if not HAVE_JAVA:
        print("skipping the Java binding, which needs %s (tools/setup installs it)" % (
            "a JDK" if not JAVA_HOME else "Python (ADDEND_PYTHON)" if HAVE_SWIG else "SWIG"
        ))
    elif not HAVE_JUNIT:
        print("skipping the tests of the Java binding, which need JUnit 5 (tools/setup installs it)")

# The libraries

# Sources lie in the archive of sources where their package is, wherever the build made them.
_COMPILE = """
set -e
classes=$(mktemp -d)
sources=$(mktemp -d)
trap 'rm -rf "$classes" "$sources"' EXIT
'{home}/bin/javac' --release {release} -encoding UTF-8 -Xlint:all,-options,-try -d "$classes" -cp '{class_path}' "$@"
'{home}/bin/jar' --create --file '{jar}' {date} -C "$classes" .
for source in "$@"; do
  package=$(sed -n 's/^package \\(.*\\);.*/\\1/p' "$source" | tr . /)
  mkdir -p "$sources/$package"
  cp -L "$source" "$sources/$package/"
done
'{home}/bin/jar' --create --file '{source_jar}' --no-manifest {date} -C "$sources" .
"""

def _java_library_impl(ctx):
    jar = ctx.actions.declare_file("lib%s.jar" % ctx.label.name)
    source_jar = ctx.actions.declare_file("lib%s-src.jar" % ctx.label.name)
    deps = [dep[JavaInfo] for dep in ctx.attr.deps]
    class_path = depset(ctx.files.jars, transitive = [dep.transitive_runtime_jars for dep in deps])
    arguments = ctx.actions.args()
    arguments.add_all(ctx.files.srcs)
    ctx.actions.run_shell(
        outputs = [jar, source_jar],
        inputs = depset(ctx.files.srcs, transitive = [class_path]),
        command = _COMPILE.format(
            home = JAVA_HOME,
            release = JAVA_RELEASE,
            class_path = ":".join([f.path for f in class_path.to_list()]),
            jar = jar.path,
            source_jar = source_jar.path,
            date = JAR_DATE,
        ),
        arguments = [arguments],
        mnemonic = "Javac",
        progress_message = "Compiling %s" % ctx.label,
    )
    return [
        DefaultInfo(files = depset([jar])),
        JavaInfo(output_jar = jar, compile_jar = jar, source_jar = source_jar, deps = deps),
    ]

_java_library = rule(
    implementation = _java_library_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".java"], mandatory = True),
        "deps": attr.label_list(providers = [JavaInfo]),
        "jars": attr.label_list(
            allow_files = [".jar"],
            doc = "archives on the class path that are no targets of these rules",
        ),
    },
)

def _java_import_impl(ctx):
    # A chain of archives, each of which brings the next: there is always one, so that nothing has to be merged.
    info = None
    for jar in reversed(ctx.files.jars):
        info = JavaInfo(output_jar = jar, compile_jar = jar, deps = [info] if info else [])
    return [DefaultInfo(files = depset(ctx.files.jars)), info]

_java_import = rule(
    implementation = _java_import_impl,
    attrs = {"jars": attr.label_list(allow_files = [".jar"], mandatory = True)},
)

def addend_java_import(name, jars, **kwargs):
    """Archives that are built elsewhere, for `deps`.

    Args:
      name: the target's name.
      jars: the archives, at least one.
      **kwargs: visibility, testonly, tags.
    """
    if HAVE_JAVA:
        _java_import(name = name, jars = jars, **kwargs)

def addend_java_library(name, srcs, deps = [], jars = [], **kwargs):
    """A jar of classes, private unless `visibility` says otherwise.

    Args:
      name: the target's name.
      srcs: sources.
      deps: targets of this rule.
      jars: other archives on the class path.
      **kwargs: visibility, testonly, tags.
    """
    if not HAVE_JAVA:
        return
    kwargs.setdefault("visibility", ["//visibility:private"])
    _java_library(name = name, srcs = srcs, deps = deps, jars = jars, **kwargs)

# Programs and tests: scripts that start a JVM

def _class_path(ctx):
    return depset(transitive = [dep[JavaInfo].transitive_runtime_jars for dep in ctx.attr.deps])

def _run_script(ctx, text, files):
    script = ctx.actions.declare_file(ctx.label.name + ".sh")
    ctx.actions.write(script, text, is_executable = True)
    runfiles = ctx.runfiles(ctx.files.data, transitive_files = files)
    for data in ctx.attr.data:
        runfiles = runfiles.merge(data[DefaultInfo].default_runfiles)
    return [DefaultInfo(executable = script, runfiles = runfiles)]

# -XX:-UsePerfData: JVMs of sandboxes beside each other have the same process number, by which their performance data is
# named, and say so on the standard output.
_RUN = """#!/bin/bash
cd "${{RUNFILES_DIR:-$0.runfiles}}/{workspace}" || exit
exec '{home}/bin/java' -XX:-UsePerfData {flags} -cp '{class_path}' {main_class} "$@"
"""

def _java_binary_impl(ctx):
    jars = _class_path(ctx)
    return _run_script(ctx, _RUN.format(
        workspace = ctx.workspace_name,
        home = JAVA_HOME,
        flags = " ".join([ctx.expand_location(flag, ctx.attr.data) for flag in ctx.attr.jvm_flags]),
        class_path = ":".join([jar.short_path for jar in jars.to_list()]),
        main_class = ctx.attr.main_class,
    ), jars)

_java_binary = rule(
    implementation = _java_binary_impl,
    executable = True,
    attrs = {
        "data": attr.label_list(allow_files = True),
        "deps": attr.label_list(providers = [JavaInfo]),
        "jvm_flags": attr.string_list(),
        "main_class": attr.string(mandatory = True),
    },
)

def addend_java_binary(name, srcs, main_class, deps = [], data = [], jvm_flags = [], **kwargs):
    """A program, started by `bazel run`.

    Args:
      name: the target's name.
      srcs: sources.
      main_class: which class has main().
      deps: targets of addend_java_library.
      data: files that the program reads, by paths from the root of the workspace.
      jvm_flags: options of the JVM, as a shell reads them, with "$(rootpath ...)" for files of `data`.
      **kwargs: visibility, testonly, tags.
    """
    if not HAVE_JAVA:
        return
    kwargs.setdefault("visibility", ["//visibility:private"])
    library = name + "_lib"
    _java_library(name = library, srcs = srcs, deps = deps, tags = kwargs.get("tags", []), visibility = kwargs["visibility"])
    _java_binary(
        name = name,
        main_class = main_class,
        deps = deps + [library],
        data = data,
        jvm_flags = jvm_flags,
        **kwargs
    )

# JUnit's report goes to where Bazel wants it. A warning of -Xcheck:jni is a failure whatever the tests say. One thread:
# how many share a sum decides its last bits.
_TEST = """#!/bin/bash
set -uo pipefail
cd "$TEST_SRCDIR/{workspace}" || exit
export MKL_NUM_THREADS=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1{environment}
# Java takes the encoding of file names from it.
export LC_ALL=C.UTF-8
output=$TEST_TMPDIR/output
'{home}/bin/java' -XX:-UsePerfData -ea -Xcheck:jni {flags} -jar {junit} --disable-banner --disable-ansi-colors --details=tree \\
  --class-path '{class_path}' --scan-class-path '{tests}' --reports-dir "$TEST_TMPDIR/reports" \\
  --fail-if-no-tests 2>&1 | tee "$output"
status=$?
if [[ -n ${{XML_OUTPUT_FILE:-}} && -e $TEST_TMPDIR/reports/TEST-junit-jupiter.xml ]]; then
  cp "$TEST_TMPDIR/reports/TEST-junit-jupiter.xml" "$XML_OUTPUT_FILE"
fi
if grep -qE '(WARNING|FATAL ERROR) in native method|WARNING: JNI local refs' "$output"; then
  echo "-Xcheck:jni found misuse of JNI, see above" >&2
  status=1
fi
exit "$status"
"""

def _java_test_impl(ctx):
    jars = _class_path(ctx)
    return _run_script(ctx, _TEST.format(
        workspace = ctx.workspace_name,
        home = JAVA_HOME,
        environment = "".join([" %s=%s" % variable for variable in sorted(ctx.attr.environment.items())]),
        flags = " ".join(ctx.attr.jvm_flags),
        junit = ctx.file._junit.short_path,
        class_path = ":".join([jar.short_path for jar in jars.to_list()]),
        tests = ctx.attr.tests[JavaInfo].runtime_output_jars[0].short_path,
    ), depset([ctx.file._junit], transitive = [jars]))

_java_test = rule(
    implementation = _java_test_impl,
    test = True,
    attrs = {
        "data": attr.label_list(allow_files = True),
        "deps": attr.label_list(providers = [JavaInfo]),
        "environment": attr.string_dict(),
        "jvm_flags": attr.string_list(),
        "tests": attr.label(providers = [JavaInfo], mandatory = True),
        "_junit": attr.label(default = "//third_party/junit", allow_single_file = True),
    },
)

def addend_java_test(name, srcs, deps = [], data = [], jvm_flags = [], environment = {}, size = "medium", tags = [], **kwargs):
    """JUnit tests, under -Xcheck:jni and with LibTorch on one thread.

    Args:
      name: the target's name.
      srcs: sources; tests are the methods with @Test.
      deps: targets of addend_java_library.
      data: files that the tests read, by paths from the root of the workspace.
      jvm_flags: options of the JVM.
      environment: more variables, their values as a shell reads them.
      size: as everywhere.
      tags: as everywhere; ["long"] for tests that take minutes.
      **kwargs: visibility, timeout and the like.
    """
    if not HAVE_JAVA or not HAVE_JUNIT:
        return
    library = name + "_lib"
    _java_library(
        name = library,
        testonly = True,
        srcs = srcs,
        deps = deps,
        jars = ["//third_party/junit"],
        tags = tags,
    )
    # The JVM has not loaded the sanitizers: `tools/test --full` lends them to a few tests.
    _java_test(
        name = name,
        tests = library,
        deps = deps + [library],
        data = data,
        environment = environment,
        jvm_flags = jvm_flags,
        size = size,
        tags = tags + ["no-sanitizer"],
        **kwargs
    )

_JAVADOC_TEST = """#!/bin/bash
cd "$TEST_SRCDIR/{workspace}" || exit
exec '{home}/bin/javadoc' --release {release} -quiet -Xdoclint:all -Werror -d "$TEST_TMPDIR/javadoc" -classpath '{class_path}' {sources}
"""

def _javadoc_test_impl(ctx):
    jars = _class_path(ctx)
    return _run_script(ctx, _JAVADOC_TEST.format(
        workspace = ctx.workspace_name,
        home = JAVA_HOME,
        release = JAVA_RELEASE,
        class_path = ":".join([jar.short_path for jar in jars.to_list()]),
        sources = " ".join([source.short_path for source in ctx.files.data]),
    ), jars)

_javadoc_test = rule(
    implementation = _javadoc_test_impl,
    test = True,
    attrs = {
        "data": attr.label_list(allow_files = [".java"]),
        "deps": attr.label_list(providers = [JavaInfo]),
    },
)

def addend_javadoc_test(name, srcs, **kwargs):
    """Fails where something public has no complete comment.

    Args:
      name: the target's name.
      srcs: all sources of a library.
      **kwargs: deps, what the sources are compiled against; size, tags and the like.
    """
    if HAVE_JAVA:
        _javadoc_test(name = name, data = srcs, **kwargs)

# Native code and generated sources

def addend_jni_library(name, module, package, outs, srcs, deps, shared_library, **kwargs):
    """lib<name>.so of functions that SWIG writes, and the group <name>_sources of their Java side.

    Args:
      name: the library's name, as System.loadLibrary knows it.
      module: the Java class of the functions.
      package: its package.
      outs: the Java files that SWIG writes.
      srcs: what the typemaps use.
      deps: headers.
      shared_library: what it is linked to and packaged with.
      **kwargs: visibility, tags.
    """
    if not HAVE_JAVA:
        return
    swig_wrap(
        name = name + "_swig",
        language = "java",
        options = ["-module", module, "-package", package],
        outs = outs,
        deps = deps,
    )
    for group in ["sources", "wrapper"]:
        native.filegroup(
            name = "%s_%s" % (name, group),
            srcs = [name + "_swig"],
            output_group = group,
            visibility = ["//tests/abi:__pkg__"],
        )
    cc_binary(
        name = "lib%s.so" % name,
        srcs = srcs + [name + "_wrapper", shared_library],
        # Java casts pointers to numbers and back.
        copts = ADDEND_COPTS + ["-fvisibility=hidden", "-fno-strict-aliasing"],
        linkopts = ["-Wl,-rpath,$$ORIGIN"],
        linkshared = True,
        deps = deps + ["//third_party/java:jni"],
        **kwargs
    )

def addend_test_jni_library(name, srcs, deps, **kwargs):
    """A shared library with native methods of a test's own classes.

    Args:
      name: the file's name, lib<name>.so.
      srcs: sources, which may include <jni.h>.
      deps: libraries.
      **kwargs: visibility, tags.
    """
    if not HAVE_JAVA:
        return
    cc_binary(
        name = name,
        testonly = True,
        srcs = srcs,
        copts = ADDEND_COPTS + ["-fvisibility=hidden"],
        linkopts = ["-Wl,--no-undefined"],
        linkshared = True,
        deps = deps + ["//third_party/java:jni"],
        **kwargs
    )

def java_genrule(name, **kwargs):
    """A genrule that is skipped where Java is."""
    if HAVE_JAVA:
        native.genrule(name = name, **kwargs)

def java_page_programs(name, page, out):
    """The programs of a page as tests, written by the generate_docs.py of the package.

    Args:
      name: the target's name.
      page: the page.
      out: the source of the tests.
    """
    java_genrule(
        name = name,
        srcs = [
            "generate_docs.py",
            "//bindings/generate:pages.py",
            page,
        ],
        outs = [out],
        cmd = "PYTHONPATH=$$(dirname $(location //bindings/generate:pages.py)) PYTHONDONTWRITEBYTECODE=1 " + PYTHON +
              " $(location generate_docs.py) $(location %s) $@" % page,
    )
