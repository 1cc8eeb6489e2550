// Runs the backend suite of ONNX and prints a line for each test: passed, refused and why, or failed and what differs.
//
//   run_suite [--laws] [--only TEXT] [--quiet] SUITE
//
// SUITE: a folder of folders KIND/NAME. --laws: decomposes each model that passes, too. --only: tests with TEXT in
// their names. --quiet: prints no line of a test that passes. The last lines count.
#include <c10/core/GradMode.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include "tests/onnx/laws.h"
#include "tests/onnx/suite.h"

int main(int argc, char** argv) {
  using namespace addend;  // NOLINT
  const c10::AutoGradMode no_grad(false);
  bool laws = false;
  bool quiet = false;
  std::string only;
  std::string suite;
  for (int k = 1; k < argc; ++k) {
    if (std::strcmp(argv[k], "--laws") == 0) {
      laws = true;
    } else if (std::strcmp(argv[k], "--quiet") == 0) {
      quiet = true;
    } else if (std::strcmp(argv[k], "--only") == 0 && k + 1 < argc) {
      only = argv[++k];
    } else {
      suite = argv[k];
    }
  }
  if (suite.empty()) {
    std::fprintf(stderr, "usage: run_suite [--laws] [--only TEXT] [--quiet] SUITE\n");
    return 2;
  }
  std::map<std::string, int> counts;
  int failed = 0;
  for (const SuiteTest& test : TestsOf(suite)) {
    if (test.name.find(only) == std::string::npos) continue;
    const SuiteRun run = RunTest(test);
    const std::string text = run.outcome.Text();
    ++counts[text.substr(0, text.find(':'))];
    failed += run.outcome.kind == Outcome::Kind::kFailed ? 1 : 0;
    if (!quiet || run.outcome.kind != Outcome::Kind::kPassed) std::printf("%s %s\n", test.name.c_str(), text.c_str());
    if (!laws || run.outcome.kind != Outcome::Kind::kPassed) continue;
    const LawOutcome law = CheckLaws(run.model, run.inputs.at(0));
    const std::string law_text = law.Text();
    ++counts[law_text.substr(0, law_text.find(':'))];
    failed += law.kind == LawOutcome::Kind::kBroken ? 1 : 0;
    if (!quiet || law.kind != LawOutcome::Kind::kHeld) std::printf("%s %s\n", test.name.c_str(), law_text.c_str());
    std::fflush(stdout);
  }
  for (const auto& [what, count] : counts) std::printf("%d %s\n", count, what.c_str());
  return failed == 0 ? 0 : 1;
}
