"""@google_benchmark: Google Benchmark as installed on this machine, or under BENCHMARK_HOME."""

load("//third_party:repositories.bzl", "installed_library")

def repo():
    installed_library(
        name = "google_benchmark",
        what = "Google Benchmark",
        package = "libbenchmark-dev",
        override = "BENCHMARK_HOME",
        header = "benchmark/benchmark.h",
        libraries = {"benchmark": ["benchmark", "pthread"]},
    )
