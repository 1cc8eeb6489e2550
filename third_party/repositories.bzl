"""Finds libraries that are installed on this machine and makes Bazel repositories of them.

A dependency is looked for under the prefix that its environment variable names
and, only if that is not set, under /usr/local and /usr. Under the latter two
nothing is copied or linked into the repository: compiler and linker look there
anyway, and thousands of symbolic links per sandboxed action double the compile
time of a LibTorch source.

ADDEND_SYSROOT names the root of another machine's system, for which a cross
compiler builds that looks there: its /usr/local and /usr take the place of ours.
"""

def sysroot(ctx):
    """The root of the system that is built for; empty for this machine's own."""
    return ctx.os.environ.get("ADDEND_SYSROOT", "").rstrip("/")

def system_prefixes(ctx):
    """The prefixes under which compiler and linker look by themselves."""
    return [sysroot(ctx) + prefix for prefix in ["/usr/local", "/usr"]]

# Two ways of declaring a repository, of which each dependency's repo() is given one.

def maybe(rule, name, **kwargs):
    """For WORKSPACE: unless the user's own declared a repository of that name before."""
    if name not in native.existing_rules():
        rule(name = name, **kwargs)

def always(rule, name, **kwargs):
    """For a module extension: its repositories are its own, nobody else can have declared them."""
    rule(name = name, **kwargs)

def library_dirs(ctx, prefix):
    """The existing library folders under a prefix, the multiarch one first.

    Args:
      ctx: the repository context.
      prefix: an absolute folder, e.g. "/usr".
    Returns:
      A list of strings.
    """
    dirs = [prefix + "/lib64", prefix + "/lib"]
    return _multiarch_dirs(ctx, prefix) + [d for d in dirs if ctx.path(d).exists]

def _multiarch_dirs(ctx, prefix):
    if not sysroot(ctx):
        own = "%s/lib/%s-linux-gnu" % (prefix, ctx.execute(["uname", "-m"]).stdout.strip())
        return [own] if ctx.path(own).exists else []

    # A sysroot is for one machine, which its folder names.
    lib = ctx.path(prefix + "/lib")
    return [str(d) for d in lib.readdir() if d.basename.endswith("-linux-gnu")] if lib.exists else []

def find_library_file(ctx, dirs, names):
    """The first existing `dir/name`, or None."""
    for d in dirs:
        for n in names:
            if ctx.path(d + "/" + n).exists:
                return d + "/" + n
    return None

def find_prefix(ctx, what, environ, header, hint):
    """The prefix under which `include/<header>` exists.

    Args:
      ctx: the repository context.
      what: the dependency's name for messages.
      environ: the environment variable that overrides the search.
      header: a header that proves the presence of the dependency.
      hint: what to install when nothing is found.
    Returns:
      A struct(prefix, system); `system` says that compiler and linker find it
      by themselves.
    """
    chosen = ctx.os.environ.get(environ, "").rstrip("/")
    tried = []
    for prefix in [chosen] if chosen else system_prefixes(ctx):
        path = "%s/include/%s" % (prefix, header)
        if ctx.path(path).exists:
            return struct(prefix = prefix, system = prefix in system_prefixes(ctx))
        tried.append(path)
    fail(("%s was not found. Install %s (tools/setup does it), or set %s to the " +
          "folder that holds its include/ and lib/. Looked for:\n  %s") %
         (what, hint, environ, "\n  ".join(tried)))

def starlark_list(items):
    """Text of a list for a generated BUILD file."""
    return "[" + ", ".join([repr(i) for i in items]) + "]"

def link_headers(ctx, include_dir, entries):
    """Links those of `entries` that an include folder has into the repository's own include/."""
    for entry in entries:
        if ctx.path(include_dir + "/" + entry).exists:
            ctx.symlink(include_dir + "/" + entry, "include/" + entry)

def _quiet_pkg_config(ctx, prefix, system, modules):
    """`-l` options of pkg-config modules, or None when pkg-config cannot say."""
    tool = ctx.which("pkg-config")
    if not tool or not modules:
        return None
    environment = {}
    if not system or sysroot(ctx):
        # The other system's modules are not to be taken from this one.
        name = "PKG_CONFIG_LIBDIR" if sysroot(ctx) else "PKG_CONFIG_PATH"
        folders = library_dirs(ctx, prefix) + [prefix + "/share"]
        environment[name] = ":".join([d + "/pkgconfig" for d in folders])
    result = ctx.execute([tool, "--libs-only-l"] + modules, environment = environment)
    if result.return_code != 0:
        return None
    return [o for o in result.stdout.split(" ") if o.strip().startswith("-l")]

def _archive_or_library(ctx, found, name, archives):
    """What follows -l: the library's name, or the file name of its archive."""
    archive = "lib%s.a" % name
    if archives and find_library_file(ctx, library_dirs(ctx, found.prefix), [archive]):
        return ":" + archive
    return name

def link_options(ctx, found, modules, fallback, archives = False):
    """Options that link a dependency.

    Only libraries that are really used become a load-time dependency of the
    result: one Abseil package names thirty shared libraries.

    Args:
      ctx: the repository context.
      found: what find_prefix returned.
      modules: pkg-config modules to ask for.
      fallback: library names (without -l) for machines without pkg-config.
      archives: take a library's archive where there is one. Only for libraries in C, without thread-local variables:
        distributions compile archives for programs (-fPIE), and a shared library cannot hold such variables of theirs.
    Returns:
      A list of strings for `linkopts`.
    """
    options = _quiet_pkg_config(ctx, found.prefix, found.system, modules)
    if options == None:
        options = ["-l" + _archive_or_library(ctx, found, name, archives) for name in fallback]
    options = [o.strip() for o in options]
    if not options:
        return []
    search = []
    if not found.system:
        for d in library_dirs(ctx, found.prefix):
            search += ["-L" + d, "-Wl,-rpath," + d]
    return search + ["-Wl,--push-state,--as-needed"] + options + ["-Wl,--pop-state"]

_TARGET = """
cc_library(
    name = {name},
    hdrs = {hdrs},
    includes = {includes},
    linkopts = {linkopts},
)
"""

def has_new_abi(ctx, file):
    """Whether a library of C++ has strings of the C++ ABI that GCC 5 brought.

    Mangled names of std::string differ between the two and are part of the library's symbol table, which is plain text
    within the file: no nm is needed. Only names of the library's own functions count: one with the old ABI may hold parts of
    the C++ library's, which have both.

    Args:
      ctx: the repository context.
      file: a shared library or an archive.
    """
    own = "_ZNK?[0-9]+[A-Za-z][A-Za-z0-9_]*NSt7__cxx1112basic_string"
    return ctx.execute(["grep", "-q", "-a", "-E", own, file]).return_code == 0

def _require_abi(ctx, found):
    """Fails where the library and LibTorch have different ABIs: what uses both could not be linked."""
    file = find_library_file(ctx, library_dirs(ctx, found.prefix), [
        "lib%s%s" % (ctx.attr.library, suffix)
        for suffix in [".so", ".a"]
    ])
    if not file or "CXX11_ABI = 0" not in ctx.read(ctx.path(ctx.attr._libtorch)) or not has_new_abi(ctx, file):
        return
    fail(("LibTorch has the old C++ ABI (_GLIBCXX_USE_CXX11_ABI=0), and %s, %s, the new one: a program cannot be linked " +
          "to both. %s; or take a LibTorch that has the new one, as those of 2.7 and newer have.") %
         (ctx.attr.what, file, ctx.attr.other_abi or "Build it as LibTorch was and name it in " + ctx.attr.override))

def _installed_library_impl(ctx):
    found = find_prefix(ctx, ctx.attr.what, ctx.attr.override, ctx.attr.header, ctx.attr.package)
    if ctx.attr.library:
        _require_abi(ctx, found)
    hdrs, includes = "[]", "[]"
    if not found.system:
        top = ctx.attr.header.split("/")[0]
        link_headers(ctx, found.prefix + "/include", ctx.attr.header_dirs or [top])
        hdrs, includes = 'glob(["include/**"])', '["include"]'
    text = 'load("@rules_cc//cc:defs.bzl", "cc_library")\n\n'
    text += 'package(default_visibility = ["//visibility:public"])\n'
    for name, fallback in sorted(ctx.attr.libraries.items()):
        text += _TARGET.format(
            name = repr(name),
            hdrs = hdrs,
            includes = includes,
            linkopts = starlark_list(link_options(
                ctx,
                found,
                ctx.attr.modules.get(name, []),
                fallback,
                ctx.attr.archives,
            )),
        )
    ctx.file("WORKSPACE", "workspace(name = %r)\n" % ctx.name)
    ctx.file("BUILD", text)

_installed_library = repository_rule(
    implementation = _installed_library_impl,
    attrs = {
        "what": attr.string(mandatory = True, doc = "name for messages"),
        "package": attr.string(mandatory = True, doc = "what to install"),
        "override": attr.string(mandatory = True, doc = "environment variable"),
        "header": attr.string(mandatory = True, doc = "proof of presence"),
        "header_dirs": attr.string_list(doc = "entries of include/ that belong to it"),
        "libraries": attr.string_list_dict(mandatory = True, doc = "target -> library names"),
        "modules": attr.string_list_dict(doc = "target -> pkg-config modules"),
        "archives": attr.bool(doc = "link archives where there are any; see link_options"),
        "library": attr.string(doc = "one whose C++ ABI has to be LibTorch's"),
        "other_abi": attr.string(doc = "what to do where it is not, as the beginning of a sentence"),
        "_libtorch": attr.label(default = "@libtorch//:info.bzl"),
    },
    # The files live outside the workspace: look again when a server starts.
    local = True,
    configure = True,
    # `environ` cannot depend on an attribute; these are all values of `override`.
    environ = [
        "ABSL_HOME",
        "ADDEND_SYSROOT",
        "BENCHMARK_HOME",
        "CLI11_HOME",
        "GTEST_HOME",
        "LIBCSV_HOME",
        "LIBPNG_HOME",
        "NLOHMANN_JSON_HOME",
        "TURBOJPEG_HOME",
        "ZLIB_HOME",
    ],
)

def installed_library(declare, name, **kwargs):
    declare(_installed_library, name = name, **kwargs)
