"""Declares every external repository of this workspace."""

load("//third_party:repositories.bzl", "maybe")
load("//third_party/absl:workspace.bzl", absl = "repo")
load("//third_party/benchmark:workspace.bzl", benchmark = "repo")
load("//third_party/cli11:workspace.bzl", cli11 = "repo")
load("//third_party/djl:workspace.bzl", djl = "repo")
load("//third_party/dotnet:workspace.bzl", dotnet = "repo")
load("//third_party/gtest:workspace.bzl", gtest = "repo")
load("//third_party/implementations:workspace.bzl", implementations = "repo")
load("//third_party/java:workspace.bzl", java = "repo")
load("//third_party/json:workspace.bzl", json = "repo")
load("//third_party/junit:workspace.bzl", junit = "repo")
load("//third_party/libcsv:workspace.bzl", libcsv = "repo")
load("//third_party/libpng:workspace.bzl", libpng = "repo")
load("//third_party/lunr:workspace.bzl", lunr = "repo")
load("//third_party/python:workspace.bzl", python = "repo")
load("//third_party/rules:workspace.bzl", rules = "repo")
load("//third_party/rules_cc:workspace.bzl", rules_cc = "repo")
load("//third_party/rules_java:workspace.bzl", rules_java = "repo")
load("//third_party/spark:workspace.bzl", spark = "repo")
load("//third_party/swig:workspace.bzl", swig = "repo")
load("//third_party/torch:workspace.bzl", torch = "repo")
load("//third_party/turbojpeg:workspace.bzl", turbojpeg = "repo")
load("//third_party/zlib:workspace.bzl", zlib = "repo")

# Repositories that are installed on this machine, besides Abseil. MODULE.bazel names each of them again.
INSTALLED = [
    benchmark,
    cli11,
    djl,
    dotnet,
    gtest,
    implementations,
    java,
    json,
    junit,
    libcsv,
    libpng,
    lunr,
    python,
    spark,
    swig,
    torch,
    turbojpeg,
    zlib,
]

def addend_workspace(absl_repository = None):
    """Call this from WORKSPACE. A repository of the same name declared earlier wins.

    Args:
      absl_repository: the workspace's own Abseil, "@com_google_absl" or the like, with the BUILD files that Abseil brings;
        by default the one that is installed.
    """
    rules_cc(maybe)
    rules_java(maybe)
    rules(maybe)
    absl(maybe, absl_repository)
    for declare in INSTALLED:
        declare(maybe)
