"""@absl: Abseil as installed on this machine, or under ABSL_HOME."""

load("//third_party:repositories.bzl", "installed_library")
load("//third_party/absl:packages.bzl", "ABSL_PACKAGES")

def repo(declare):
    installed_library(
        declare,
        name = "absl",
        what = "Abseil",
        package = "libabsl-dev",
        override = "ABSL_HOME",
        header = "absl/status/statusor.h",
        libraries = {
            name: ["absl_" + library for library in libraries]
            for name, libraries in ABSL_PACKAGES.items()
        },
        modules = {name: ["absl_" + name] for name in ABSL_PACKAGES},
    )
