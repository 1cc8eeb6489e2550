"""Declares every external repository of this workspace."""

load("//third_party/absl:workspace.bzl", absl = "repo")
load("//third_party/benchmark:workspace.bzl", benchmark = "repo")
load("//third_party/cli11:workspace.bzl", cli11 = "repo")
load("//third_party/dotnet:workspace.bzl", dotnet = "repo")
load("//third_party/gtest:workspace.bzl", gtest = "repo")
load("//third_party/java:workspace.bzl", java = "repo")
load("//third_party/json:workspace.bzl", json = "repo")
load("//third_party/junit:workspace.bzl", junit = "repo")
load("//third_party/openssl:workspace.bzl", openssl = "repo")
load("//third_party/python:workspace.bzl", python = "repo")
load("//third_party/rules_cc:workspace.bzl", rules_cc = "repo")
load("//third_party/rules_java:workspace.bzl", rules_java = "repo")
load("//third_party/swig:workspace.bzl", swig = "repo")
load("//third_party/torch:workspace.bzl", torch = "repo")

def addend_workspace():
    """Call this from WORKSPACE. A repository of the same name declared earlier wins."""
    for declare in [
        rules_cc,
        rules_java,
        absl,
        benchmark,
        cli11,
        dotnet,
        gtest,
        java,
        json,
        junit,
        openssl,
        python,
        swig,
        torch,
    ]:
        declare()
