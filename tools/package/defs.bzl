"""What every package of a release carries beside its own: licence, notices, a list of what it is made of.

All of it is made by programs of Python; where there is none, no package is declared.
"""

load("@libtorch//:info.bzl", LIBTORCH_ORIGIN = "ORIGIN", LIBTORCH_VERSION = "VERSION")
load("@local_python//:info.bzl", "PYTHON")
load("//tools/bazel:rules.bzl", "sh_test")

HAVE_PACKAGES = PYTHON != ""

def _stripped_impl(ctx):
    outs = []
    for file in ctx.files.srcs:
        out = ctx.actions.declare_file("%s/%s" % (ctx.label.name, file.basename))
        ctx.actions.run(
            executable = PYTHON,
            arguments = ["-B", ctx.file._script.path, file.path, out.path],
            inputs = [file, ctx.file._script],
            outputs = [out],
            mnemonic = "Strip",
            use_default_shell_env = True,
        )
        outs.append(out)
    return [DefaultInfo(files = depset(outs), runfiles = ctx.runfiles(outs))]

_stripped = rule(
    implementation = _stripped_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = True, mandatory = True),
        "_script": attr.label(default = "//tools/package:strip.py", allow_single_file = True),
    },
)

def stripped(name, srcs, **kwargs):
    """Shared libraries as they are packaged, side by side in the folder <name>.

    They have no debug information, and name no folder of this machine in which they look for others.

    Args:
      name: the target's name.
      srcs: the libraries.
      **kwargs: visibility and the like.
    """
    if HAVE_PACKAGES:
        _stripped(name = name, srcs = srcs, **kwargs)

def _provenance_impl(ctx):
    outs = [ctx.actions.declare_file("%s.%s" % (ctx.label.name, kind)) for kind in ["json", "props", "link.json"]]
    status = [ctx.info_file] if ctx.attr.stamped else []
    ctx.actions.run(
        executable = PYTHON,
        arguments = ["-B", ctx.file._script.path] + [file.path for file in outs + status],
        inputs = [ctx.file._script] + status,
        outputs = outs,
        mnemonic = "Provenance",
    )
    return [DefaultInfo(files = depset(outs))]

_provenance = rule(
    implementation = _provenance_impl,
    attrs = {
        "stamped": attr.bool(),
        "_script": attr.label(default = "//tools/package:provenance.py", allow_single_file = True),
    },
)

def provenance(name, **kwargs):
    """Which sources packages are built from: <name>.json, .props and .link.json, empty without --config=stamp.

    Args:
      name: the target's name.
      **kwargs: visibility and the like.
    """
    if HAVE_PACKAGES:
        _provenance(
            name = name,
            stamped = select({
                "//tools/package:stamped": True,
                "//conditions:default": False,
            }),
            **kwargs
        )

def _file(files, extension):
    return [file for file in files if file.basename.endswith(extension)][0]

def _package_documents_impl(ctx):
    notices = ctx.actions.declare_file(ctx.label.name + "/THIRD_PARTY_NOTICES")
    spdx = ctx.actions.declare_file(ctx.label.name + "/addend.spdx.json")
    origin = _file(ctx.files._provenance, ".json")
    arguments = ctx.actions.args()
    arguments.add("-B")
    arguments.add(ctx.file._script)
    arguments.add("--package", ctx.attr.package)
    arguments.add("--version-file", ctx.file._version)
    arguments.add("--components", ctx.file._components)
    arguments.add("--libtorch-version", LIBTORCH_VERSION)
    arguments.add("--libtorch-include", LIBTORCH_ORIGIN.partition(": ")[2])
    arguments.add("--provenance", origin)
    arguments.add("--notices", notices)
    arguments.add("--spdx", spdx)
    arguments.add_all(ctx.files.libraries, expand_directories = False)
    ctx.actions.run(
        executable = PYTHON,
        arguments = [arguments],
        inputs = ctx.files.libraries + [
            ctx.file._script,
            ctx.file._elf,
            ctx.file._version,
            ctx.file._components,
            origin,
        ],
        outputs = [notices, spdx],
        mnemonic = "PackageDocuments",
        progress_message = "Listing what the %s is made of" % ctx.attr.package,
        use_default_shell_env = True,
    )
    files = [ctx.file._license, notices, spdx]
    return [DefaultInfo(files = depset(files), runfiles = ctx.runfiles(files))]

_package_documents = rule(
    implementation = _package_documents_impl,
    attrs = {
        "libraries": attr.label_list(allow_files = True, mandatory = True),
        "package": attr.string(mandatory = True),
        "_components": attr.label(default = "//tools/package:components.json", allow_single_file = True),
        "_elf": attr.label(default = "//tools/package:elf.py", allow_single_file = True),
        "_license": attr.label(default = "//:LICENSE", allow_single_file = True),
        "_provenance": attr.label(default = "//tools/package:provenance"),
        "_script": attr.label(default = "//tools/package:documents.py", allow_single_file = True),
        "_version": attr.label(default = "//:VERSION", allow_single_file = True),
    },
)

def package_documents(name, package, libraries, **kwargs):
    """LICENSE, THIRD_PARTY_NOTICES and addend.spdx.json of a package.

    Args:
      name: the target's name.
      package: what the package is called where it is published: "wheel", "jar", "nupkg", "sdk".
      libraries: the shared libraries in it, as they are packaged, or folders of them.
      **kwargs: visibility and the like.
    """
    if HAVE_PACKAGES:
        _package_documents(name = name, package = package, libraries = libraries, **kwargs)

def package_genrule(**kwargs):
    """A genrule that is left out where no package is made.

    Args:
      **kwargs: see genrule.
    """
    if HAVE_PACKAGES:
        native.genrule(**kwargs)

def package_test(**kwargs):
    """An sh_test of packages, left out where none is made.

    Args:
      **kwargs: see sh_test.
    """
    if HAVE_PACKAGES:
        sh_test(**kwargs)
