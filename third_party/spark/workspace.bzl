"""@spark: Apache Spark with its SQL, as `tools/setup --spark` fetched it."""

load("//third_party:maven.bzl", "maven_archives")

def repo(declare):
    declare(maven_archives, name = "spark", archives = "spark")
