"""@zlib: zlib as installed on this machine, or under ZLIB_HOME.

Its archive is linked where there is one: what is built does not need zlib where it runs.
"""

load("//third_party:repositories.bzl", "installed_library")

def repo(declare):
    installed_library(
        declare,
        name = "zlib",
        what = "zlib",
        package = "zlib1g-dev",
        override = "ZLIB_HOME",
        header = "zlib.h",
        header_dirs = ["zlib.h", "zconf.h"],
        libraries = {"zlib": ["z"]},
        archives = True,
    )
