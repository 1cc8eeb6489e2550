"""swig_wrap: the sources of a language binding, made of bindings/swig/addend.i."""

load("@local_swig//:info.bzl", "SWIG", "SWIG_LIB")
load("//tools/bazel:rules.bzl", "CcInfo")

def _swig_wrap_impl(ctx):
    wrapper = ctx.actions.declare_file(ctx.label.name + "_wrap.cc")
    sources = [ctx.actions.declare_file(ctx.label.name + "/" + name) for name in ctx.attr.outs]
    headers = depset(transitive = [
        dep[CcInfo].compilation_context.headers
        for dep in ctx.attr.deps
    ])
    arguments = ctx.actions.args()
    arguments.add_all(["-Wall", "-Werror", "-c++", "-" + ctx.attr.language])

    # Paths in addend.i begin at the root of this repository, wherever it is.
    arguments.add("-I" + (ctx.file.src.owner.workspace_root or "."))
    arguments.add_all(ctx.attr.options)
    arguments.add("-outdir", sources[0].dirname)
    arguments.add("-o", wrapper)
    arguments.add(ctx.file.src)
    ctx.actions.run(
        executable = SWIG,
        arguments = [arguments],
        inputs = depset([ctx.file.src] + ctx.files.typemaps, transitive = [headers]),
        outputs = [wrapper] + sources,
        mnemonic = "Swig",
        progress_message = "Wrapping the C interface for " + ctx.attr.language,
        env = {"SWIG_LIB": SWIG_LIB},
    )
    return [
        DefaultInfo(files = depset([wrapper] + sources)),
        OutputGroupInfo(
            wrapper = depset([wrapper]),
            sources = depset(sources),
        ),
    ]

swig_wrap = rule(
    implementation = _swig_wrap_impl,
    doc = """Output group `wrapper` is the C++ file, `sources` what SWIG writes in the language.

Load HAVE_SWIG too, and declare nothing where it is False.""",
    attrs = {
        "src": attr.label(
            default = "//bindings/swig:addend.i",
            allow_single_file = [".i"],
        ),
        "typemaps": attr.label(default = "//bindings/swig:typemaps"),
        "language": attr.string(
            values = ["csharp", "java", "python"],
            mandatory = True,
        ),
        "outs": attr.string_list(
            mandatory = True,
            doc = "names of the files that SWIG writes in the language",
        ),
        "options": attr.string_list(doc = "further options of SWIG"),
        "deps": attr.label_list(providers = [CcInfo]),
    },
)

HAVE_SWIG = SWIG != ""
