"""@google_benchmark: Google Benchmark as installed on this machine, or under BENCHMARK_HOME."""

load("//third_party:repositories.bzl", "installed_library")

def repo(declare):
    installed_library(
        declare,
        name = "google_benchmark",
        what = "Google Benchmark",
        package = "libbenchmark-dev",
        override = "BENCHMARK_HOME",
        header = "benchmark/benchmark.h",
        library = "benchmark",
        libraries = {"benchmark": ["benchmark", "pthread"]},
    )
