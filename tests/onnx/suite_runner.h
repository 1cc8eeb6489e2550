// Runs a suite and tells how its tests end.
#ifndef ADDEND_TESTS_ONNX_SUITE_RUNNER_H_
#define ADDEND_TESTS_ONNX_SUITE_RUNNER_H_

#include <cstddef>
#include <ostream>
#include <string>

namespace addend {

struct SuiteOptions {
  std::string suite;     // a folder of folders KIND/NAME
  std::string only;      // tests with this text in their names
  std::string expected;  // a list of the tests that do not pass (expected.h); empty: none may fail
  bool laws = false;     // models that pass are decomposed, too
  bool quiet = false;    // no line of what is as it should be
  size_t chunk = 1;      // every chunks-th test, from the chunk-th on
  size_t chunks = 1;
};

// Writes a line for each test and the counts to `out`. Returns whether there are tests, and all are as they should be:
// each ends as the list says, and no law is broken. Throws what reading the list throws.
bool RunSuite(const SuiteOptions& options, std::ostream& out);

}  // namespace addend

#endif  // ADDEND_TESTS_ONNX_SUITE_RUNNER_H_
