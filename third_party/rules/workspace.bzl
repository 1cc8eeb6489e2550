"""@addend_rules//:rules.bzl: rules and providers that older Bazels have built in and newer ones load from modules.

A load statement cannot depend on the Bazel that reads it, hence a generated file. //tools/bazel:rules.bzl loads it, and
everything else loads that.
"""

# None: no Bazel needs a module for it yet.
_SYMBOLS = {
    "CcInfo": "@rules_cc//cc/common:cc_info.bzl",
    "JavaInfo": "@rules_java//java/common:java_info.bzl",
    "PyInfo": None,
    "cc_common": "@rules_cc//cc/common:cc_common.bzl",
    "sh_binary": "@rules_shell//shell:sh_binary.bzl",
    "sh_test": "@rules_shell//shell:sh_test.bzl",
}

def _addend_rules_impl(ctx):
    loads, fields = [], []
    for name, label in _SYMBOLS.items():
        value = name
        if ctx.attr.modules and label:
            value = "_" + name
            loads.append('load("%s", %s = "%s")\n' % (label, value, name))
        elif name.startswith("sh_"):
            value = "native." + name
        fields.append("    %s = %s,\n" % (name, value))
    ctx.file("WORKSPACE", "workspace(name = %r)\n" % ctx.name)
    ctx.file("BUILD", 'exports_files(["rules.bzl"])\n')

    # A struct: where a symbol is built in, a variable of the same name would hide it from its own definition.
    ctx.file("rules.bzl", "".join(loads + ["\nRULES = struct(\n"] + fields + [")\n"]))

_addend_rules = repository_rule(
    implementation = _addend_rules_impl,
    attrs = {"modules": attr.bool(doc = "whether they come from the modules that MODULE.bazel names")},
)

def repo(declare, modules = False):
    declare(_addend_rules, name = "addend_rules", modules = modules)
