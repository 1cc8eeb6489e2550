"""@libpng: libpng as installed on this machine, or under LIBPNG_HOME."""

load("//third_party:repositories.bzl", "installed_library")

def repo(declare):
    installed_library(
        declare,
        name = "libpng",
        what = "libpng",
        package = "libpng-dev",
        override = "LIBPNG_HOME",
        header = "png.h",
        header_dirs = [
            "png.h",
            "pngconf.h",
            "pnglibconf.h",
        ],
        libraries = {"libpng": ["png16"]},
    )
