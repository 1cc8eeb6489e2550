"""The module extension of MODULE.bazel: the repositories of addend_workspace(), without the rules, which are modules."""

load("//third_party:repositories.bzl", "always")
load("//third_party:workspace.bzl", "INSTALLED")
load("//third_party/absl:workspace.bzl", absl = "repo")
load("//third_party/rules:workspace.bzl", rules = "repo")

_abseil = tag_class(
    attrs = {
        "strings": attr.label(
            mandatory = True,
            doc = "the target absl/strings of the repository: Label(\"@abseil-cpp//absl/strings\")",
        ),
    },
    doc = "The workspace's own Abseil, instead of the one that is installed. Only the main module's counts.",
)

def _own_abseil(module_ctx):
    for module in module_ctx.modules:
        for tag in module.tags.abseil if module.is_root else []:
            return str(tag.strings).split("//")[0]
    return None

def _addend_impl(module_ctx):
    rules(always, modules = True)
    absl(always, _own_abseil(module_ctx))
    for declare in INSTALLED:
        declare(always)

addend = module_extension(
    implementation = _addend_impl,
    tag_classes = {"abseil": _abseil},
)
