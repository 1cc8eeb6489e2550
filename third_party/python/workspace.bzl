"""@local_python//:info.bzl: which Python interpreter is used, if there is one.

ADDEND_PYTHON chooses it, /usr/bin/python3 is the default: `python3` on PATH is
often a private interpreter that knows nothing of the installed libraries. A
machine without Python still builds everything that is C++, so PYTHON is then
empty instead of an error.
"""

_DESCRIBE = """
import importlib.util, sys, sysconfig
print("%d.%d" % sys.version_info[:2])
print(sysconfig.get_paths()["include"])
print(" ".join(name for name in ("markdown", "numpy", "pygments", "torch", "transformers") if importlib.util.find_spec(name)))
"""

def _local_python_impl(ctx):
    python = ctx.os.environ.get("ADDEND_PYTHON", "") or "/usr/bin/python3"
    if not python.startswith("/"):
        python = str(ctx.which(python) or "")
    version, include, packages = "", "", ""
    if python and ctx.path(python).exists:
        result = ctx.execute([python, "-I", "-c", _DESCRIBE])
        if result.return_code == 0:
            version, include, packages = result.stdout.splitlines()
            if not ctx.path(include + "/Python.h").exists:
                include = ""
    if not version:
        python = ""
    ctx.file("WORKSPACE", "workspace(name = %r)\n" % ctx.name)
    ctx.file("BUILD", 'exports_files(["info.bzl"])\n')
    ctx.file("info.bzl", """
# Empty text: not found.
PYTHON = {python}
PYTHON_VERSION = {version}
PYTHON_INCLUDE = {include}

# Which of Markdown, NumPy, Pygments, PyTorch and Hugging Face transformers it has.
PYTHON_PACKAGES = {packages}
""".format(
        python = repr(python),
        version = repr(version),
        include = repr(include),
        packages = repr([name for name in packages.split(" ") if name]),
    ))

_local_python = repository_rule(
    implementation = _local_python_impl,
    local = True,
    configure = True,
    environ = ["ADDEND_PYTHON", "PATH"],
)

def repo(declare):
    declare(_local_python, name = "local_python")
