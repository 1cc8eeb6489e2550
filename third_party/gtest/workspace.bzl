"""@gtest: GoogleTest and GoogleMock as installed on this machine, or under GTEST_HOME."""

load("//third_party:repositories.bzl", "installed_library")

def repo(declare):
    installed_library(
        declare,
        name = "gtest",
        what = "GoogleTest with GoogleMock",
        package = "libgtest-dev and libgmock-dev",
        override = "GTEST_HOME",
        header = "gmock/gmock.h",
        library = "gtest",
        header_dirs = ["gmock", "gtest"],
        libraries = {
            "gtest": ["gmock", "gtest", "pthread"],
            # GoogleMock's main() initializes GoogleTest too.
            "gtest_main": ["gmock_main", "gmock", "gtest", "pthread"],
        },
    )
