// The backend suite of ONNX: folders with a model, its inputs and the outputs that are expected.
#ifndef ADDEND_TESTS_ONNX_SUITE_H_
#define ADDEND_TESTS_ONNX_SUITE_H_

#include <ATen/core/ivalue.h>

#include <memory>
#include <string>
#include <vector>

#include "core/model/model.h"

namespace addend {

struct SuiteTest {
  std::string name;    // "node/test_abs"
  std::string folder;  // with model.onnx and test_data_set_0
};

// The tests of a suite, KIND/NAME, in the order of their names.
std::vector<SuiteTest> TestsOf(const std::string& suite);

struct Outcome {
  enum class Kind { kPassed, kRefused, kFailed };
  Kind kind = Kind::kPassed;
  std::string what;  // why it was refused, or what differs

  // "passed", "refused: ...", "failed: ..."
  std::string Text() const;
};

// Outcome of a test, with the model and what it ran on, for whoever checks more.
struct SuiteRun {
  Outcome outcome;
  std::shared_ptr<Model> model;                  // null where it was refused
  std::vector<std::vector<c10::IValue>> inputs;  // of each data set
};

// Loads the model and compares its outputs with those expected: types, shapes, values within 1e-3 relative and 1e-7.
// An error that says Unimplemented is a refusal.
SuiteRun RunTest(const SuiteTest& test);

}  // namespace addend

#endif  // ADDEND_TESTS_ONNX_SUITE_H_
