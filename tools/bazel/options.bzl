"""The compiler options that our code is right with, whatever those of the workspace that builds it.

They come after the options of the command line, so that they win. The rules of defs.bzl use them for each target, and
precompiled.bzl for the headers that it compiles: a compiled header serves only files with the same options.
"""

load("@libtorch//:info.bzl", "CXX_STANDARD")

# LibTorch, Abseil and the rest arrive as system headers: these concern our code.
ADDEND_C_COPTS = [
    "-Wall",
    "-Wextra",
]

# Options that decide the meaning of a file of C++: its language, and what LibTorch's headers ask for.
MEANING_COPTS = [
    # Class layouts and inline functions of LibTorch depend on it, and released copies are built with it. So our own
    # invariants are never checked by assert().
    "-DNDEBUG",
    # Sums have the same bits in every build: no fused multiply-add unless the source says so.
    "-ffp-contract=off",
] + select({
    "//tools/bazel:use_cxx20": ["-std=c++20"],
    "//conditions:default": ["-std=" + CXX_STANDARD],
})

# The options of each file of C++ of this workspace.
ADDEND_COPTS = ADDEND_C_COPTS + [
    "-Wnon-virtual-dtor",
    "-Woverloaded-virtual",
] + MEANING_COPTS

# Further options of tests where headers are precompiled, which means in everyday builds: a test spends most of its time in the
# library, and its own code compiles in three quarters of the time.
TEST_COPTS = ["-O1"]
