"""The file of the implementation: libaddend.so.1 chooses among those of a package by LibTorch's version."""

load("@implementations//:info.bzl", "NAMES")
load("@libtorch//:info.bzl", "VERSION")

# "libaddend_torch1.13.so"
IMPLEMENTATION = "libaddend_torch%s.so" % ".".join(VERSION.split(".")[:2])

# Those for other LibTorchs, which were built elsewhere, as file -> target.
OTHER_IMPLEMENTATIONS = {
    name: "@implementations//:" + name
    for name in NAMES
    if name != IMPLEMENTATION
}
