"""What a library or program says of the sources that it is built from."""

def _provenance_source_impl(ctx):
    status = [ctx.info_file] if ctx.attr.stamped else []
    arguments = ["stamped=1", ctx.info_file.path] if ctx.attr.stamped else ["/dev/null"]
    ctx.actions.run_shell(
        inputs = [ctx.file._script] + status,
        outputs = [ctx.outputs.out],
        command = 'out=$1; shift; awk -f "$@" > "$out"',
        arguments = [ctx.outputs.out.path, ctx.file._script.path] + arguments,
        mnemonic = "ProvenanceSource",
    )
    return [DefaultInfo(files = depset([ctx.outputs.out]))]

_provenance_source = rule(
    implementation = _provenance_source_impl,
    attrs = {
        "out": attr.output(mandatory = True),
        "stamped": attr.bool(),
        "_script": attr.label(default = "//tools/package:provenance.awk", allow_single_file = True),
    },
)

def provenance_source(name, out):
    """The source in C that defines core/base/provenance.h: the same text in every build without --config=stamp.

    Args:
      name: the target's name.
      out: the source that is made.
    """
    _provenance_source(
        name = name,
        out = out,
        stamped = select({
            "//tools/package:stamped": True,
            "//conditions:default": False,
        }),
    )
