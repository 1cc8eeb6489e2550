"""The file of the implementation: libaddend.so.1 chooses among those of a package by LibTorch's version."""

load("@libtorch//:info.bzl", "VERSION")

# "libaddend_torch1.13.so"
IMPLEMENTATION = "libaddend_torch%s.so" % ".".join(VERSION.split(".")[:2])
