"""The rules that BUILD files of this workspace use.

They are the C++ rules with our warnings and defaults, so that a choice that
concerns all targets is made once.
"""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library", "cc_test")
load(":options.bzl", "ADDEND_C_COPTS", "ADDEND_COPTS")
load(":precompiled.bzl", "precompiled_copts", "precompiled_deps")

# One thread: how many share a sum decides the order of its terms, hence its last
# bits, and tests compare those.
_ONE_THREAD = {
    "MKL_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}

def addend_cc_library(name, copts = [], deps = [], linkstatic = True, **kwargs):
    """cc_library with our warnings, private unless `visibility` says otherwise.

    Static by default: everything ends up in one library or program, and a shared
    object per target would double the number of link steps. A library that
    registers something when loaded needs `alwayslink = True`.

    Args:
      name: the target's name.
      copts: further compiler options.
      deps: libraries.
      linkstatic: see cc_library.
      **kwargs: everything else that cc_library takes.
    """
    kwargs.setdefault("visibility", ["//visibility:private"])
    cc_library(
        name = name,
        copts = ADDEND_COPTS + copts + precompiled_copts("library"),
        deps = deps + precompiled_deps("library"),
        linkstatic = linkstatic,
        **kwargs
    )

def addend_cc_binary(name, copts = [], deps = [], **kwargs):
    """cc_binary with our warnings, private unless `visibility` says otherwise.

    Args:
      name: the target's name.
      copts: further compiler options.
      deps: libraries.
      **kwargs: everything else that cc_binary takes.
    """
    kwargs.setdefault("visibility", ["//visibility:private"])
    cc_binary(
        name = name,
        copts = ADDEND_COPTS + copts + precompiled_copts("library"),
        deps = deps + precompiled_deps("library"),
        **kwargs
    )

def addend_c_library(name, copts = [], **kwargs):
    """A library in C with our warnings, private unless `visibility` says otherwise.

    Args:
      name: the target's name.
      copts: further compiler options.
      **kwargs: everything else that cc_library takes.
    """
    kwargs.setdefault("visibility", ["//visibility:private"])
    cc_library(
        name = name,
        copts = ADDEND_C_COPTS + ["-std=gnu11"] + copts,
        linkstatic = True,
        **kwargs
    )

def addend_c_binary(name, **kwargs):
    """A program in C11 with our warnings.

    Args:
      name: the target's name.
      **kwargs: everything else that cc_binary takes.
    """
    kwargs.setdefault("visibility", ["//visibility:private"])
    cc_binary(
        name = name,
        copts = ADDEND_C_COPTS + ["-std=c11"],
        **kwargs
    )

def addend_cc_test(
        name,
        srcs = None,
        copts = [],
        data = [],
        deps = [],
        env = {},
        main = "//third_party/gtest:gtest_main",
        size = "small",
        **kwargs):
    """A GoogleTest program (GoogleMock included) that computes on one thread.

    Args:
      name: the target's name.
      srcs: sources; by default <name>.cc.
      copts: further compiler options.
      data: files that the test reads.
      deps: libraries; GoogleTest need not be named.
      env: further environment variables; they win over the defaults.
      main: what provides main(); None if `srcs` do.
      size: see cc_test. "small" means one minute.
      **kwargs: everything else that cc_test takes. Tests that take minutes get
        `tags = ["long"]` and run with `tools/test --full` only.
    """
    kwargs.setdefault("linkstatic", True)
    kwargs.setdefault("visibility", ["//visibility:private"])
    cc_test(
        name = name,
        srcs = srcs if srcs != None else [name + ".cc"],
        copts = ADDEND_COPTS + copts + precompiled_copts("test"),
        data = data + ["//tools/bazel:tsan.supp"],
        deps = deps + ([main] if main else ["//third_party/gtest:gtest"]) + precompiled_deps("test"),
        env = dict(_ONE_THREAD, **env),
        size = size,
        **kwargs
    )

def embedded_text(name, src, out, header, symbol, parts = []):
    """A source of C++ that defines `const char symbol[]` with the content of a text file.

    Args:
      name: the target's name.
      src: the text; it may not hold )ADDEND_TEXT".
      out: the source that is made, for `srcs` of a library.
      header: what declares the symbol, as an #include names it.
      symbol: the qualified name.
      parts: files in the same folder as `src`, each of which stands in place of its line "@include FILE".
    """
    insert = " ".join([
        "-e '/^@include {}$$/{{r $(location {})' -e 'd' -e '}}'".format(part.split("/")[-1], part)
        for part in parts
    ])
    native.genrule(
        name = name,
        srcs = [src] + parts,
        outs = [out],
        cmd = """
            {{
              printf '%s\\n' '#include "{header}"'
              printf '%s' 'const char {symbol}[] = R"ADDEND_TEXT('
              sed {insert} $(location {src})
              printf '%s\\n' ')ADDEND_TEXT";'
            }} > $@
        """.format(header = header, insert = insert or "''", src = src, symbol = symbol),
    )

_STALENESS_SCRIPT = """#!/bin/sh
# Are the two files equal?
if cmp -s '{generated}' '{committed}'; then
  exit 0
fi
diff -u '{committed}' '{generated}' | head -n 100
cat >&2 <<'END'
{committed} is not what the build generates. If the change is intended:
  bazel build {label} && cp -f {output} {committed}
END
exit 1
"""

def _staleness_test_impl(ctx):
    script = ctx.actions.declare_file(ctx.label.name + ".sh")
    ctx.actions.write(script, _STALENESS_SCRIPT.format(
        generated = ctx.file.generated.short_path,
        committed = ctx.file.committed.short_path,
        label = ctx.attr.generated.label,
        output = ctx.file.generated.path.replace(ctx.bin_dir.path, "bazel-bin", 1),
    ), is_executable = True)
    return [DefaultInfo(
        executable = script,
        runfiles = ctx.runfiles([ctx.file.generated, ctx.file.committed]),
    )]

_staleness_test = rule(
    implementation = _staleness_test_impl,
    test = True,
    attrs = {
        "committed": attr.label(allow_single_file = True, mandatory = True),
        "generated": attr.label(allow_single_file = True, mandatory = True),
    },
)

def staleness_test(name, generated, committed, **kwargs):
    """Fails, with the difference and the command that mends it, when a committed file is out of date.

    Args:
      name: the target's name.
      generated: label of the file as the build makes it.
      committed: label of the file in the repository.
      **kwargs: tags, visibility and the like.
    """
    kwargs.setdefault("size", "small")
    _staleness_test(
        name = name,
        generated = generated,
        committed = committed,
        **kwargs
    )
