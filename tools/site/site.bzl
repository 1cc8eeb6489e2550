"""The static site: pages and references in one folder, made without a network."""

load("@local_java//:info.bzl", "JAVA_HOME")
load("@local_python//:info.bzl", "PYTHON", "PYTHON_PACKAGES")

HAVE_SITE = PYTHON != "" and "markdown" in PYTHON_PACKAGES

def _site_impl(ctx):
    out = ctx.actions.declare_directory(ctx.label.name)
    arguments = ctx.actions.args()
    arguments.add("-B")
    arguments.add(ctx.file._build)
    arguments.add(out.path)
    for key in ["page", "file", "api", "hpp", "python", "xml", "cs", "java", "gallery"]:
        arguments.add_all(getattr(ctx.files, key), format_each = key + "=%s", expand_directories = False)
    arguments.add(ctx.file._style, format = "style=%s")
    arguments.add(JAVA_HOME, format = "javadoc=%s/bin/javadoc")
    inputs = [ctx.file._build, ctx.file._style] + ctx.files._modules
    for key in ["page", "file", "api", "hpp", "python", "xml", "cs", "java", "gallery"]:
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
        [(key, attr.label_list(allow_files = True)) for key in ["page", "file", "python", "xml", "cs", "java", "gallery"]],
        api = attr.label(allow_files = True),
        hpp = attr.label(allow_files = True),
        _build = attr.label(default = "//tools/site:build.py", allow_single_file = True),
        _modules = attr.label(default = "//tools/site:modules"),
        _style = attr.label(default = "//tools/site:style.css", allow_single_file = True),
    ),
)

def site(**kwargs):
    """The site, where the Python that was chosen can read Markdown.

    Args:
      **kwargs: see _site.
    """
    if HAVE_SITE:
        _site(**kwargs)
    else:
        # buildifier: disable=print
        print("skipping the site, which needs Python's package markdown (tools/setup installs it)")
