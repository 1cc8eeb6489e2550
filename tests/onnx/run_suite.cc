// Runs the backend suite of ONNX and prints a line for each test: passed, refused and why, or failed and what differs.
//
//   run_suite [--laws] [--only TEXT] [--chunk K/N] [--expected LIST] [--quiet] SUITE
//
// The options are those of suite_runner.h. The last lines count.
#include <c10/core/GradMode.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>

#include "tests/onnx/suite_runner.h"

namespace {

bool Read(int argc, char** argv, addend::SuiteOptions* options) {
  for (int k = 1; k < argc; ++k) {
    const auto is = [&](const char* name) { return std::strcmp(argv[k], name) == 0; };
    if (is("--laws")) {
      options->laws = true;
    } else if (is("--quiet")) {
      options->quiet = true;
    } else if (is("--only") && k + 1 < argc) {
      options->only = argv[++k];
    } else if (is("--expected") && k + 1 < argc) {
      options->expected = argv[++k];
    } else if (is("--chunk") && k + 1 < argc) {
      if (std::sscanf(argv[++k], "%zu/%zu", &options->chunk, &options->chunks) != 2) return false;
      if (options->chunk < 1 || options->chunk > options->chunks) return false;
    } else if (argv[k][0] == '-' || !options->suite.empty()) {
      return false;
    } else {
      options->suite = argv[k];
    }
  }
  return !options->suite.empty();
}

}  // namespace

int main(int argc, char** argv) {
  const c10::AutoGradMode no_grad(false);
  addend::SuiteOptions options;
  if (!Read(argc, argv, &options)) {
    std::fprintf(stderr, "usage: run_suite [--laws] [--only TEXT] [--chunk K/N] [--expected LIST] [--quiet] SUITE\n");
    return 2;
  }
  try {
    return addend::RunSuite(options, std::cout) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "run_suite: %s\n", error.what());
    return 2;
  }
}
