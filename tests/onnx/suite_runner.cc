#include "tests/onnx/suite_runner.h"

#include <map>
#include <optional>
#include <vector>

#include "tests/onnx/expected.h"
#include "tests/onnx/laws.h"
#include "tests/onnx/suite.h"

namespace addend {
namespace {

class Runner {
 public:
  Runner(const SuiteOptions& options, std::ostream& out) : options_(options), out_(out) {
    if (!options.expected.empty()) expected_ = ExpectedOutcomes::Read(options.expected);
  }

  bool RunAll() {
    const std::vector<SuiteTest> tests = TestsOf(options_.suite);
    for (size_t k = options_.chunk - 1; k < tests.size(); k += options_.chunks) {
      if (tests[k].name.find(options_.only) != std::string::npos) Run(tests[k]);
    }
    if (expected_) {
      for (const std::string& name : expected_->Missing(tests)) Complain(name, "is on the list, and not in the suite");
    }
    for (const auto& [what, count] : counts_) out_ << count << " " << what << "\n";
    if (complaints_ > 0) out_ << complaints_ << " not as they should be\n";
    return complaints_ == 0 && !counts_.empty();
  }

 private:
  void Run(const SuiteTest& test) {
    const SuiteRun run = RunTest(test);
    const bool passed = run.outcome.kind == Outcome::Kind::kPassed;
    const std::string difference = expected_ ? expected_->DifferenceOf(test.name, run.outcome) : "";
    Tell(test.name, run.outcome.Text(), expected_ ? difference.empty() : passed);
    if (!difference.empty()) Complain(test.name, difference);
    if (!expected_ && run.outcome.kind == Outcome::Kind::kFailed) ++complaints_;
    if (!options_.laws || !passed) return;
    const LawOutcome law = CheckLaws(run.model, run.inputs.at(0));
    Tell(test.name, law.Text(), law.kind == LawOutcome::Kind::kHeld || law.kind == LawOutcome::Kind::kHeldForward);
    if (law.kind == LawOutcome::Kind::kBroken) ++complaints_;
  }

  void Tell(const std::string& name, const std::string& text, bool as_it_should) {
    ++counts_[text.substr(0, text.find(':'))];
    if (!options_.quiet || !as_it_should) out_ << name << " " << text << std::endl;  // a run may take long
  }

  void Complain(const std::string& name, const std::string& what) {
    out_ << "NOT AS EXPECTED: " << name << " " << what << "\n";
    ++complaints_;
  }

  const SuiteOptions& options_;
  std::ostream& out_;
  std::optional<ExpectedOutcomes> expected_;
  std::map<std::string, int> counts_;  // of tests, by how they end
  int complaints_ = 0;
};

}  // namespace

bool RunSuite(const SuiteOptions& options, std::ostream& out) { return Runner(options, out).RunAll(); }

}  // namespace addend
