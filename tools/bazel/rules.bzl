"""Rules and providers that no Bazel of every version has built in; the C++ rules are in @rules_cc//cc:defs.bzl."""

load("@addend_rules//:rules.bzl", "RULES")

CcInfo = RULES.CcInfo
JavaInfo = RULES.JavaInfo
PyInfo = RULES.PyInfo
cc_common = RULES.cc_common
sh_binary = RULES.sh_binary
sh_test = RULES.sh_test
