"""@libcsv: libcsv as installed on this machine, or under LIBCSV_HOME."""

load("//third_party:repositories.bzl", "installed_library")

def repo(declare):
    installed_library(
        declare,
        name = "libcsv",
        what = "libcsv",
        package = "libcsv-dev",
        override = "LIBCSV_HOME",
        header = "csv.h",
        libraries = {"libcsv": ["csv"]},
    )
