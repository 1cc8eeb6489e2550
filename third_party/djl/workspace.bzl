"""@djl: DJL with its PyTorch engine, as `tools/setup --djl` fetched it."""

load("//third_party:maven.bzl", "maven_archives")

def repo(declare):
    declare(maven_archives, name = "djl", archives = "djl")
