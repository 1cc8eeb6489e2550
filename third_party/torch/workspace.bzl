"""@libtorch//:torch, the LibTorch that is installed on this machine.

Looked for, in this order:
  1. the folder that LIBTORCH_HOME names, or, where headers and libraries lie in
     different places, the folders that LIBTORCH_INCLUDE (it holds ATen/) and
     LIBTORCH_LIB (it holds libtorch_cpu.so) name: nothing else is tried then;
  2. the `torch` package of the chosen Python (ADDEND_PYTHON, by default
     /usr/bin/python3), so that a process which imports torch and a library built
     here share one copy; the package is located without being imported;
  3. /usr/local and /usr; with ADDEND_SYSROOT those of that system, and no Python's.

@libtorch//:info.bzl says what was chosen: VERSION, ORIGIN, CXX11_ABI,
CXX_STANDARD, LIBRARIES.
"""

load(
    "//third_party:repositories.bzl",
    "find_library_file",
    "has_new_abi",
    "library_dirs",
    "link_headers",
    "starlark_list",
    "sysroot",
    "system_prefixes",
)

_MINIMUM = (1, 13, 1)

_API_INCLUDE = "torch/csrc/api/include"

# The first that exists tells the version; newer LibTorch only includes the second
# from the first.
_VERSION_HEADERS = [
    "torch/headeronly/version.h",
    _API_INCLUDE + "/torch/version.h",
]

_PYTHON_PACKAGE = "Python package"

_FIND_PACKAGE = """
import importlib.util
spec = importlib.util.find_spec("torch")
print(spec.submodule_search_locations[0] if spec else "")
"""

# Folders of LibTorch in an include folder that it shares with others, as in a conda environment: their Abseil must not
# come before the one that is linked.
_HEADER_FOLDERS = ["ATen", "c10", "caffe2", "torch"]

def _system_includes(ctx):
    return [prefix + "/include" for prefix in system_prefixes(ctx)]

def _candidate(origin, include, lib_dirs):
    return struct(origin = origin, include = include, lib_dirs = lib_dirs)

def _prefix_candidate(ctx, origin, prefix):
    return _candidate(
        origin,
        prefix + "/include",
        library_dirs(ctx, prefix) or [prefix + "/lib"],
    )

def _chosen_candidate(ctx):
    """What LIBTORCH_HOME, LIBTORCH_INCLUDE and LIBTORCH_LIB name; None where none of them is set."""
    home, include, lib = [
        ctx.os.environ.get(name, "").rstrip("/")
        for name in ["LIBTORCH_HOME", "LIBTORCH_INCLUDE", "LIBTORCH_LIB"]
    ]
    if not home and not include and not lib:
        return None
    if not home and not (include and lib):
        fail("LIBTORCH_INCLUDE and LIBTORCH_LIB belong together, unless LIBTORCH_HOME names the folder of the other one")
    if home:
        whole = _prefix_candidate(ctx, "LIBTORCH_HOME", home)
        return _candidate(whole.origin, include or whole.include, [lib] if lib else whole.lib_dirs)
    return _candidate("LIBTORCH_INCLUDE and LIBTORCH_LIB", include, [lib])

def _python_package(ctx):
    python = ctx.os.environ.get("ADDEND_PYTHON", "") or "/usr/bin/python3"
    if not python.startswith("/"):
        python = str(ctx.which(python) or python)
    if not ctx.path(python).exists:
        return None, "%s does not exist" % python

    # -I: neither the current folder nor PYTHONPATH decides what is linked.
    result = ctx.execute([python, "-I", "-c", _FIND_PACKAGE])
    folder = result.stdout.strip()
    if result.return_code != 0 or not folder:
        return None, "%s has no package torch" % python
    return folder, None

def _dots(version):
    return ".".join([str(v) for v in version])

def _number(text):
    digits = ""
    for c in text.strip().elems():
        if not c.isdigit():
            break
        digits += c
    return int(digits) if digits else 0

def _header_version(ctx, include):
    for name in _VERSION_HEADERS:
        header = ctx.path(include + "/" + name)
        if not header.exists:
            continue
        found = {}
        for line in ctx.read(header).splitlines():
            words = [w for w in line.split(" ") if w]
            if len(words) >= 3 and words[0] == "#define":
                found[words[1]] = words[2]
        if "TORCH_VERSION_MAJOR" in found:
            return tuple([
                _number(found.get("TORCH_VERSION_" + part, "0"))
                for part in ["MAJOR", "MINOR", "PATCH"]
            ])
    return None

def _package_version(ctx):
    """What dpkg says. The header of Debian's 1.13.1 calls itself 1.13.0."""
    if not ctx.which("dpkg-query"):
        return None
    admin = sysroot(ctx) + "/var/lib/dpkg"
    result = ctx.execute(["dpkg-query", "--admindir=" + admin, "-W", "-f", "${Version}", "libtorch-dev"])
    parts = result.stdout.strip().split(".")
    if result.return_code != 0 or len(parts) < 3:
        return None
    return tuple([_number(p) for p in parts[:3]])

def _is_of_the_system(ctx, include):
    """Whether the headers are those that are installed on this machine, also where links lead to them."""
    header = str(ctx.path(include + "/ATen/ATen.h").realpath)
    return any([header.startswith(folder + "/") for folder in _system_includes(ctx)])

def _version(ctx, candidate):
    version = _header_version(ctx, candidate.include)
    if version and _is_of_the_system(ctx, candidate.include):
        packaged = _package_version(ctx)
        if packaged and packaged[:2] == version[:2]:
            return packaged
    return version

def _cxx_standard(ctx, include):
    """The language that LibTorch's headers ask for: those of 2.14 and newer refuse C++17."""
    return "c++20" if "__cplusplus < 202002L" in ctx.read(include + "/ATen/ATen.h") else "c++17"

def _examine(ctx, candidate):
    """A struct describing a usable candidate, or text saying why it is not."""
    if not ctx.path(candidate.include + "/ATen/ATen.h").exists:
        return None, "%s/ATen/ATen.h is missing" % candidate.include
    if not ctx.path(candidate.include + "/" + _API_INCLUDE).exists:
        return None, "%s/%s is missing" % (candidate.include, _API_INCLUDE)
    cpu = find_library_file(ctx, candidate.lib_dirs, ["libtorch_cpu.so"])
    if not cpu:
        return None, "libtorch_cpu.so is not in " + " or ".join(candidate.lib_dirs)
    lib_dir = cpu.rpartition("/")[0]
    if candidate.origin == _PYTHON_PACKAGE and ctx.path(cpu).realpath.dirname != ctx.path(lib_dir).realpath:
        # Debian's package consists of links to the system's files.
        return None, "%s is a link to a copy elsewhere, which is tried as such" % cpu

    version = _version(ctx, candidate)
    if not version:
        return None, "%s has no readable version.h" % candidate.include
    if version < _MINIMUM:
        return None, "%s is version %s, but %s is the oldest that works" % (
            candidate.include,
            _dots(version),
            _dots(_MINIMUM),
        )

    libc10 = find_library_file(ctx, [lib_dir], ["libc10.so"])
    if not libc10:
        return None, "%s/libc10.so is missing" % lib_dir
    return struct(
        origin = candidate.origin,
        include = candidate.include,
        lib_dir = lib_dir,
        system_headers = candidate.include in _system_includes(ctx),
        system_libraries = lib_dir in [d for prefix in system_prefixes(ctx) for d in library_dirs(ctx, prefix)],
        version = version,
        cxx11_abi = 1 if has_new_abi(ctx, libc10) else 0,
        cxx_standard = _cxx_standard(ctx, candidate.include),
        per_operator_headers = ctx.path(candidate.include + "/ATen/ops").exists,
    ), None

def _candidates(ctx):
    chosen = _chosen_candidate(ctx)
    if chosen:
        return [chosen], []
    result, notes = [], []
    package, reason = (None, "is of this machine") if sysroot(ctx) else _python_package(ctx)
    if package:
        result.append(_candidate(_PYTHON_PACKAGE, package + "/include", [package + "/lib"]))
    else:
        notes.append(_PYTHON_PACKAGE + ": " + reason)
    for prefix in system_prefixes(ctx):
        result.append(_prefix_candidate(ctx, "system", prefix))
    return result, notes

def _choose(ctx):
    candidates, tried = _candidates(ctx)
    for candidate in candidates:
        torch, reason = _examine(ctx, candidate)
        if torch:
            return torch
        tried.append("%s: %s" % (candidate.origin, reason))
    fail(("no usable LibTorch (%s or newer) was found. Install libtorch-dev " +
          "(tools/setup does it), or set LIBTORCH_HOME to the folder that holds " +
          "its include/ and lib/, or LIBTORCH_INCLUDE and LIBTORCH_LIB to those two. Tried:\n  %s") %
         (_dots(_MINIMUM), "\n  ".join(tried)))

def _link_options(torch):
    options = []
    if not torch.system_libraries:
        options += ["-L" + torch.lib_dir, "-Wl,-rpath," + torch.lib_dir]
    options += ["-ltorch_cpu", "-lc10"]

    # Kernels of other devices, to which nothing refers by name, register themselves when their library is loaded, which
    # libtorch.so does where there is one. A linker that drops "unneeded" libraries would lose libtorch.so. No other
    # library is named, so that one library serves LibTorchs with and without CUDA.
    options += ["-Wl,--push-state,--no-as-needed", "-ltorch", "-Wl,--pop-state"]
    return options

_BUILD = """
load("@rules_cc//cc:defs.bzl", "cc_library")
load(":absolute_includes.bzl", "absolute_includes")

package(default_visibility = ["//visibility:public"])

exports_files(["info.bzl"])

absolute_includes(
    name = "system_include",
    dirs = {system_dirs},
)

cc_library(
    name = "torch",
    hdrs = {hdrs},
    defines = {defines},
    includes = {includes},
    linkopts = {linkopts},
    deps = [":system_include"],
)
"""

_INFO = """
# The LibTorch that this workspace is built with.
VERSION = {version}
ORIGIN = {origin}
CXX11_ABI = {cxx11_abi}
# The option of the compiler, without "-std=".
CXX_STANDARD = {cxx_standard}
# The folder of libtorch_cpu.so.
LIBRARIES = {libraries}
"""

def _libtorch_impl(ctx):
    torch = _choose(ctx)
    # NDEBUG: what includes LibTorch's headers has to be compiled as the library was.
    defines = ["_GLIBCXX_USE_CXX11_ABI=%d" % torch.cxx11_abi, "NDEBUG"]
    if torch.per_operator_headers:
        # ATen/ATen.h otherwise declares all operators: twice the compile time.
        defines.append("AT_PER_OPERATOR_HEADERS")
    if torch.system_headers:
        hdrs, includes = "[]", []
        system_dirs = [torch.include + "/" + _API_INCLUDE]
    else:
        link_headers(ctx, torch.include, _HEADER_FOLDERS)
        hdrs, includes = 'glob(["include/**"])', ["include", "include/" + _API_INCLUDE]
        system_dirs = []
    ctx.file("WORKSPACE", "workspace(name = %r)\n" % ctx.name)
    ctx.symlink(Label("//third_party/torch:absolute_includes.bzl"), "absolute_includes.bzl")
    ctx.file("BUILD", _BUILD.format(
        system_dirs = starlark_list(system_dirs),
        hdrs = hdrs,
        defines = starlark_list(defines),
        includes = starlark_list(includes),
        linkopts = starlark_list(_link_options(torch)),
    ))
    ctx.file("info.bzl", _INFO.format(
        version = repr(_dots(torch.version)),
        origin = repr("%s: %s" % (torch.origin, torch.include)),
        cxx11_abi = torch.cxx11_abi,
        cxx_standard = repr(torch.cxx_standard),
        libraries = repr(torch.lib_dir),
    ))

libtorch_repository = repository_rule(
    implementation = _libtorch_impl,
    # The files live outside the workspace: look again when a server starts.
    local = True,
    configure = True,
    environ = ["ADDEND_PYTHON", "ADDEND_SYSROOT", "LIBTORCH_HOME", "LIBTORCH_INCLUDE", "LIBTORCH_LIB"],
)

def repo(declare):
    declare(libtorch_repository, name = "libtorch")
