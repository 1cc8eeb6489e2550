"""A C++ target that is nothing but include folders of the system.

`cc_library(includes = ...)` takes only folders inside the workspace, and `copts`
do not reach dependents. LibTorch's C++ API lives in
<prefix>/include/torch/csrc/api/include, which no compiler searches by itself.
"""

load("@addend_rules//:rules.bzl", "RULES")

def _absolute_includes_impl(ctx):
    context = RULES.cc_common.create_compilation_context(
        system_includes = depset(ctx.attr.dirs),
    )
    return [RULES.CcInfo(compilation_context = context)]

absolute_includes = rule(
    implementation = _absolute_includes_impl,
    attrs = {
        "dirs": attr.string_list(
            mandatory = True,
            doc = "absolute folders below one that the compiler searches anyway",
        ),
    },
    provides = [RULES.CcInfo],
)
