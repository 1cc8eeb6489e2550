"""The static site: pages and references in one folder, made without a network."""

load("@local_java//:info.bzl", "JAVA_HOME")
load("@local_python//:info.bzl", "PYTHON", "PYTHON_PACKAGES")
load("@lunr//:info.bzl", "HAVE_LUNR")

HAVE_SITE = PYTHON != "" and "markdown" in PYTHON_PACKAGES and "pygments" in PYTHON_PACKAGES
HAVE_SEARCH = HAVE_SITE and HAVE_LUNR

# Keys of build.py that are attributes of several files.
_FILES = ["page", "notebook", "file", "python", "xml", "cs", "java", "gallery"]
_KEYS = _FILES + ["api", "hpp", "lunr", "script"]

def _site_impl(ctx):
    out = ctx.actions.declare_directory(ctx.label.name)
    arguments = ctx.actions.args()
    arguments.add("-B")
    arguments.add(ctx.file._build)
    arguments.add(out.path)
    for key in _KEYS:
        arguments.add_all(getattr(ctx.files, key), format_each = key + "=%s", expand_directories = False)
    arguments.add(ctx.file._style, format = "style=%s")
    arguments.add(JAVA_HOME, format = "javadoc=%s/bin/javadoc")
    inputs = [ctx.file._build, ctx.file._style] + ctx.files._modules
    for key in _KEYS:
        inputs += getattr(ctx.files, key)
    ctx.actions.run(
        executable = PYTHON,
        arguments = [arguments],
        inputs = inputs,
        outputs = [out],
        mnemonic = "Site",
        progress_message = "Making the site",
    )
    return [DefaultInfo(files = depset([out]), runfiles = ctx.runfiles([out]))]

_site = rule(
    implementation = _site_impl,
    doc = "A folder of HTML pages. The attributes are the keys of build.py.",
    attrs = dict(
        [(key, attr.label_list(allow_files = True)) for key in _FILES],
        api = attr.label(allow_files = True),
        hpp = attr.label(allow_files = True),
        lunr = attr.label(allow_files = True),
        script = attr.label(allow_files = True, default = "//tools/site:scripts"),
        _build = attr.label(default = "//tools/site:build.py", allow_single_file = True),
        _modules = attr.label(default = "//tools/site:modules"),
        _style = attr.label(default = "//tools/site:style.css", allow_single_file = True),
    ),
)

def site(**kwargs):
    """The site, where the Python that was chosen can read Markdown and colour code. It has a search where there is lunr.js.

    Args:
      **kwargs: see _site.
    """
    if HAVE_SITE:
        _site(lunr = "//third_party/lunr" if HAVE_SEARCH else None, **kwargs)
    else:
        # buildifier: disable=print
        print("skipping the site, which needs Python's packages markdown and pygments (tools/setup installs them)")
