"""@cli11: CLI11 as installed on this machine, or under CLI11_HOME."""

load("//third_party:repositories.bzl", "installed_library")

def repo(declare):
    installed_library(
        declare,
        name = "cli11",
        what = "CLI11",
        package = "libcli11-dev",
        override = "CLI11_HOME",
        header = "CLI/CLI.hpp",
        libraries = {"cli11": []},
    )
