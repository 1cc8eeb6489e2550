"""@turbojpeg: the TurboJPEG interface of libjpeg-turbo as installed on this machine, or under TURBOJPEG_HOME."""

load("//third_party:repositories.bzl", "installed_library")

def repo(declare):
    installed_library(
        declare,
        name = "turbojpeg",
        what = "the TurboJPEG interface of libjpeg-turbo",
        package = "libturbojpeg0-dev",
        override = "TURBOJPEG_HOME",
        header = "turbojpeg.h",
        libraries = {"turbojpeg": ["turbojpeg"]},
    )
