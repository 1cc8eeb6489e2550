"""source_kit: programs of this workspace as sources with their build, for machines that have no Bazel.

The lists of sources, options and folders are those of the targets, read by an aspect: there is no second list that
could fall behind.
"""

load("@local_python//:info.bzl", "PYTHON")
load("//tools/bazel:precompiled.bzl", "without_precompiled")
load("//tools/bazel:python.bzl", "HAVE_PYTHON")
load("//tools/bazel:rules.bzl", "CcInfo", "sh_test")

_Unit = provider(doc = "One compiled target.", fields = ["sources", "copts", "defines", "includes"])
_Kit = provider(
    doc = "What a target is made of.",
    fields = {
        "units": "of it and of what it depends on",
        "headers": "what they include",
        "libraries": "options of libraries for whatever links them",
        "link": "how it is linked, if it is a program",
    },
)

_SOURCES = ["cc", "cpp", "cxx", "c"]

def _place(file):
    # Also of files that the build makes: below the root of the repository.
    return file.short_path

def _folders(ctx, context):
    """The include folders of a compilation, as folders of the kit; those of the system and of other repositories left out."""
    result = []
    root = ctx.bin_dir.path + "/"
    for folder in context.quote_includes.to_list() + context.includes.to_list() + context.system_includes.to_list():
        if folder.startswith(root):
            folder = folder[len(root):]
        if folder.startswith("/") or folder.startswith("external/") or folder.startswith("bazel-out/"):
            continue
        if folder not in result:
            result.append(folder)
    return result

def _kit_aspect_impl(target, ctx):
    attributes = ctx.rule.attr
    deps = [dep for dep in getattr(attributes, "deps", []) if _Kit in dep]
    sources = []
    for source in getattr(attributes, "srcs", []):
        if _Kit in source:
            continue
        sources += [file for file in source.files.to_list() if file.extension in _SOURCES]
    headers = [dep[_Kit].headers for dep in deps]
    units = [dep[_Kit].units for dep in deps]
    libraries = [dep[_Kit].libraries for dep in deps]
    own = []
    if ctx.rule.kind in ["cc_library", "cc_binary"]:
        contexts = [dep[CcInfo].compilation_context for dep in getattr(attributes, "deps", []) if CcInfo in dep]
        if CcInfo in target:
            contexts.append(target[CcInfo].compilation_context)
        here = [file for source in getattr(attributes, "srcs", []) for file in source.files.to_list()]
        headers.append(depset(
            [file for file in here if file.extension in ["h", "hpp"]],
            transitive = [context.headers for context in contexts],
        ))
        folders = []
        for context in contexts:
            folders += [folder for folder in _folders(ctx, context) if folder not in folders]
        if sources and not target.label.workspace_name:
            own.append(_Unit(
                sources = tuple(sources),
                copts = tuple(without_precompiled(attributes.copts)),
                defines = tuple(attributes.local_defines + attributes.defines),
                includes = tuple(folders),
            ))
        if ctx.rule.kind == "cc_library":
            libraries.append(depset([tuple(attributes.linkopts)]))
    return [_Kit(
        units = depset(own, transitive = units, order = "postorder"),
        headers = depset(transitive = headers),
        libraries = depset(transitive = libraries),
        link = None if ctx.rule.kind != "cc_binary" else struct(
            shared = attributes.linkshared,
            options = attributes.linkopts,
        ),
    )]

_kit_aspect = aspect(
    implementation = _kit_aspect_impl,
    attr_aspects = ["deps", "actual"],
)

def _program(target, place, files, libraries):
    """A program as kit.json has it; adds its files, by place, and the options for libraries that it needs."""
    kit = target[_Kit]
    units = []
    for unit in kit.units.to_list():
        for file in unit.sources:
            files[_place(file)] = file
        units.append(struct(
            sources = [_place(file) for file in unit.sources],
            copts = unit.copts,
            defines = unit.defines,
            includes = unit.includes,
        ))
    for file in kit.headers.to_list():
        if not file.owner.workspace_name:
            files[_place(file)] = file
    for options in kit.libraries.to_list():
        libraries += [option for option in options if option not in libraries]
    return struct(place = place, shared = kit.link.shared, options = kit.link.options, units = units)

def _source_kit_impl(ctx):
    files = {}
    libraries = []
    programs = [
        _program(ctx.attr.library, ctx.attr.library_place, files, libraries),
        _program(ctx.attr.implementation, ctx.attr.implementation_place, files, libraries),
    ]
    for target, place in ctx.attr.programs.items():
        programs.append(_program(target, place, files, libraries))
    for target, place in ctx.attr.placed.items():
        files[place] = target.files.to_list()[0]
    for file in ctx.files.data:
        files[_place(file)] = file
    plan = ctx.actions.declare_file(ctx.label.name + ".json")
    ctx.actions.write(plan, struct(
        programs = programs,
        libraries = libraries,
        copts = ctx.fragments.cpp.copts,
        cxxopts = ctx.fragments.cpp.cxxopts,
    ).to_json())
    listing = ctx.actions.declare_file(ctx.label.name + ".files")
    ctx.actions.write(listing, "".join(["%s\t%s\n" % (file.path, place) for place, file in sorted(files.items())]))
    archive = ctx.actions.declare_file(ctx.label.name + ".tar.gz")
    ctx.actions.run(
        executable = PYTHON,
        arguments = [ctx.file._pack.path, archive.path, plan.path, listing.path] + ctx.attr.system_headers,
        inputs = depset([ctx.file._pack, plan, listing] + files.values()),
        outputs = [archive],
        mnemonic = "SourceKit",
        progress_message = "Packing sources for a machine without Bazel",
        # pkg-config and the like are not asked, but the compiler is: where the libraries are.
        use_default_shell_env = True,
    )
    return [DefaultInfo(files = depset([archive]), runfiles = ctx.runfiles([archive]))]

_source_kit = rule(
    implementation = _source_kit_impl,
    attrs = {
        "implementation": attr.label(aspects = [_kit_aspect], mandatory = True),
        "implementation_place": attr.string(mandatory = True),
        "library": attr.label(aspects = [_kit_aspect], mandatory = True),
        "library_place": attr.string(mandatory = True),
        "programs": attr.label_keyed_string_dict(aspects = [_kit_aspect]),
        "placed": attr.label_keyed_string_dict(allow_files = True),
        "data": attr.label_list(allow_files = True),
        "system_headers": attr.string_list(),
        "_pack": attr.label(default = "//tools/gpu:pack.py", allow_single_file = True),
    },
    fragments = ["cpp"],
)

def source_kit(name, **kwargs):
    """<name>.tar.gz: sources of programs, what they read, and kit.json, which says how they are compiled.

    Args:
      name: the target's name.
      **kwargs: `library`, a shared library, which is built as `library_place`; `implementation`, which that opens, built
        as `implementation_place`; `programs` that link the library, with the places of their files; `data`, files that keep their places; `placed`, others with theirs; `system_headers`, folders of
        header files that the compiler finds here and not there.
    """
    if HAVE_PYTHON:
        _source_kit(name = name, **kwargs)

def kit_test(name, kit, args = [], tags = [], **kwargs):
    """What kit_test.sh says of a kit.

    Args:
      name: the target's name.
      kit: a source_kit.
      args: "all" for all of it.
      tags: of the test.
      **kwargs: everything else that sh_test takes.
    """
    if HAVE_PYTHON:
        sh_test(
            name = name,
            size = "medium",
            timeout = "eternal",
            srcs = ["//tools/gpu:kit_test.sh"],
            args = [PYTHON, "$(location %s)" % kit] + args,
            data = [kit],
            # It compiles with options of its own.
            tags = tags + ["no-sanitizer"],
            **kwargs
        )
