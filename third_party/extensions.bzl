"""The module extension of MODULE.bazel: the repositories of addend_workspace(), without the rules, which are modules."""

load("//third_party:repositories.bzl", "always")
load("//third_party:workspace.bzl", "INSTALLED")
load("//third_party/rules:workspace.bzl", rules = "repo")

def _addend_impl(_module_ctx):
    rules(always, modules = True)
    for declare in INSTALLED:
        declare(always)

addend = module_extension(implementation = _addend_impl)
