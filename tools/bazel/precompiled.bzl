"""Headers of LibTorch, Abseil and GoogleTest that are parsed once per build instead of once per file.

GCC takes the <name>.gch beside a header instead of that header, where the first #include of a file names it; so the rules
of defs.bzl put "-include <name>" in front of each file of C++. Sources still name every header that they need: builds with
--//tools/bazel:precompiled=false, and those of workspaces that vendor this one, compile without.
"""

load("@addend_rules//:rules.bzl", "RULES")
load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load(":options.bzl", "TEST_COPTS")

_FLAG = "//tools/bazel:use_precompiled"

def precompiled_copts(kind):
    """Options of each compilation: select() of them, or of none.

    Args:
      kind: "library" or "test".
    """
    return select({
        _FLAG: ["-include", "tools/bazel/precompiled_%s.hpp" % kind] + (TEST_COPTS if kind == "test" else []),
        "//conditions:default": [],
    })

def precompiled_deps(kind):
    """What precompiled_copts needs among `deps`.

    Args:
      kind: "library" or "test".
    """
    return select({
        _FLAG: ["//tools/bazel:precompiled_%s.hpp" % kind],
        "//conditions:default": [],
    })

def _precompiled_header_impl(ctx):
    # The copy and what is compiled from it have to lie in one folder.
    header = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.expand_template(template = ctx.file.src, output = header, substitutions = {})
    context = RULES.cc_common.merge_cc_infos(cc_infos = [dep[RULES.CcInfo] for dep in ctx.attr.deps]).compilation_context
    files = [header] + ctx.files.hdrs

    toolchain = find_cpp_toolchain(ctx)
    if "clang" not in toolchain.compiler:
        compiled = ctx.actions.declare_file(ctx.label.name + ".gch")
        features = RULES.cc_common.configure_features(
            ctx = ctx,
            cc_toolchain = toolchain,
            requested_features = ctx.features,
            unsupported_features = ctx.disabled_features,
        )
        variables = RULES.cc_common.create_compile_variables(
            feature_configuration = features,
            cc_toolchain = toolchain,
            source_file = header.path,
            output_file = compiled.path,
            user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ctx.attr.copts,
            include_directories = context.includes,
            quote_include_directories = depset(["."], transitive = [context.quote_includes]),
            system_include_directories = context.system_includes,
            preprocessor_defines = context.defines,
            use_pic = True,
        )
        ctx.actions.run(
            executable = RULES.cc_common.get_tool_for_action(
                feature_configuration = features,
                action_name = CPP_COMPILE_ACTION_NAME,
            ),
            arguments = RULES.cc_common.get_memory_inefficient_command_line(
                feature_configuration = features,
                action_name = CPP_COMPILE_ACTION_NAME,
                variables = variables,
            ),
            env = RULES.cc_common.get_environment_variables(
                feature_configuration = features,
                action_name = CPP_COMPILE_ACTION_NAME,
                variables = variables,
            ),
            inputs = depset([header] + ctx.files.hdrs, transitive = [context.headers, toolchain.all_files]),
            outputs = [compiled],
            mnemonic = "CppPrecompile",
            progress_message = "Precompiling %s" % ctx.file.src.short_path,
        )
        files.append(compiled)

    # Headers for the compiler, and nothing to link: a file that does not use LibTorch does not come to need it.
    own = RULES.cc_common.create_compilation_context(headers = depset(files))
    return [
        DefaultInfo(files = depset(files)),
        RULES.cc_common.merge_cc_infos(cc_infos = [
            RULES.CcInfo(compilation_context = own),
            RULES.CcInfo(compilation_context = context),
        ]),
    ]

precompiled_header = rule(
    implementation = _precompiled_header_impl,
    attrs = {
        "src": attr.label(allow_single_file = True, mandatory = True, doc = "the header"),
        "copts": attr.string_list(doc = "those of the files that include it"),
        "hdrs": attr.label_list(allow_files = True, doc = "what it includes of this workspace"),
        "deps": attr.label_list(providers = [RULES.CcInfo], doc = "libraries whose headers it includes"),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
    provides = [RULES.CcInfo],
)
