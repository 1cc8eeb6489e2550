"""@minizip: minizip and zlib as installed on this machine, or under MINIZIP_HOME.

Their archives are linked where there are any: what is built needs neither library where it runs.
"""

load("//third_party:repositories.bzl", "installed_library")

def repo(declare):
    installed_library(
        declare,
        name = "minizip",
        what = "minizip",
        package = "libminizip-dev and zlib1g-dev",
        override = "MINIZIP_HOME",
        header = "minizip/unzip.h",
        header_dirs = ["minizip", "zlib.h", "zconf.h"],
        libraries = {"minizip": ["minizip", "z"]},
        archives = True,
    )
